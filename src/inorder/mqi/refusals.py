"""Refusals: a failed verb's completion code and reason, and MQ's reasons in place of inorder's own.

An error with one of MQ's reasons keeps it. `CLOSEST` has the others: each has the reason of MQ whose meaning is the
closest for the program, so that the program should react in the same way.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from ..errors import InorderError, Reason
from .constants import MQ_REASON_MAX

MQCC_OK: Final = 0
MQCC_WARNING: Final = 1
MQCC_FAILED: Final = 2
Codes = tuple[int, int]
"""A completion code and a reason code."""


class Refused(Exception):
    """A verb fails, or ends with a warning, for this reason code."""

    def __init__(self, reason: int, completion: int = MQCC_FAILED) -> None:
        super().__init__(reason)
        self.reason, self.completion = int(reason), completion


CLOSEST: Final[Mapping[Reason, Reason]] = MappingProxyType({
    Reason.ORDER_PENDING: Reason.NO_MSG_AVAILABLE,
    Reason.ORDER_UNSUPPORTED: Reason.OPTION_NOT_VALID_FOR_TYPE,
    Reason.ORDER_SELF_BLOCKED: Reason.NO_MSG_AVAILABLE,
    Reason.ORDER_DEADLOCK: Reason.NO_MSG_AVAILABLE,
    Reason.WRONG_STATE: Reason.UOW_NOT_AVAILABLE,
    Reason.FORKED: Reason.CONNECTION_BROKEN,
    Reason.STORE_FOREIGN: Reason.Q_MGR_NOT_AVAILABLE,
    Reason.STORE_NEWER: Reason.Q_MGR_NOT_AVAILABLE,
    Reason.STORE_OLDER: Reason.Q_MGR_NOT_AVAILABLE,
    Reason.STORE_DAMAGED: Reason.OBJECT_DAMAGED,
    Reason.UNIT_OF_ANOTHER: Reason.CALL_IN_PROGRESS,
    Reason.WAIT_ENDED: Reason.NO_MSG_AVAILABLE,
    Reason.UNDELIVERABLE: Reason.UNKNOWN_REMOTE_Q_MGR,
    Reason.DUPLICATE_PENDING: Reason.OBJECT_IN_USE,
    Reason.TOO_MANY_LOG_INS: Reason.NOT_AUTHORIZED,
})  # fmt: skip
"""MQ's reasons for errors of inorder that have none; any other error is UNEXPECTED_ERROR."""


def reason_of(error: InorderError) -> int:
    """MQ's reason code for an error."""
    reason = error.reason
    return int(reason) if reason <= MQ_REASON_MAX else int(CLOSEST.get(reason, Reason.UNEXPECTED_ERROR))
