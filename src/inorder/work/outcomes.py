"""The outcomes of attempts."""

from __future__ import annotations

import enum
from typing import NamedTuple

from ..errors import QueueCondition
from ..reasons import Reason


class Outcome(enum.Enum):
    """The outcome of an attempt."""

    DONE = "done"
    RETRIED = "retried"
    DISCARDED = "discarded"
    DEAD = "dead"
    OVERDUE = "overdue"
    UNKNOWN = "unknown"
    RETURNED = "returned"


class Ended(NamedTuple):
    """An attempt that has ended.

    Args:
        message_id: the id of the message, or of the first message of a group.
        attempt: its number, from 1; for a message set aside without a call, the number of its last attempt; 0: it had
            none.
        delay: seconds before the next attempt.
        error: a description of the error; empty: none.
        trace: the traceback, for a log.
        reason: the reason of the dead letter; 0: the message is not a dead letter.
    """

    outcome: Outcome
    message_id: bytes
    group_id: bytes
    attempt: int
    delay: float = 0.0
    error: str = ""
    trace: str = ""
    reason: int = 0


class JobFailed(QueueCondition):
    """The job whose result was asked for has ended without one; data: queue, state, type (of the exception), why."""

    reason = Reason.JOB_FAILED


def eager_failure(ended: Ended) -> JobFailed:
    """The error of an attempt, for a sender that waits for it."""
    state, why = ended.outcome.value, ended.trace or ended.error
    return JobFailed(f"job {ended.message_id.hex()} is {state}: {why}", queue="", state=state, type="", why=ended.error)
