"""Dead letters: messages as they were put, with the fields of MQ's dead-letter header as properties (R6.8).

Body and descriptor stay unchanged, so that the message can be put on its queue once the reason is gone. MQ's header has
the reason, the queue and queue manager where the message should have gone, and the time and the program that set it
aside; `attempts` and `error` are ours: the number of attempts, and a description of the error.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final, Literal, NamedTuple

from ..errors import InorderError, Reason
from ..model.kinds import Feedback
from ..model.message import Message
from ..model.properties import Properties
from .retries import without

PREFIX = "dlh."
MARK = "dlh.reason"
Buried = Literal["buried", "discarded"]
ERROR_CHARACTERS_MAX = 4_000
NO_QUEUE: Final = (
    "there is no dead-letter queue: name one with ALTER QMGR DEADQ(...) or alter_manager(dead_letter_queue=...)"
)


TASK_FAILED: Final = 65_536  # for a worker's function that gives no number; the first that MQ leaves to applications
REASON_NAMES: Final[Mapping[int, str]] = MappingProxyType(
    {int(one): one.name for one in (*Feedback, *Reason)} | {TASK_FAILED: "TASK_FAILED"}
)


def reason_name(reason: int) -> str:
    """The name of a reason of a dead letter, or its number."""
    return REASON_NAMES.get(reason, str(reason))


class WhyDead(NamedTuple):
    """Why a message is a dead letter.

    Args:
        reason: MQ's reason code, or a number chosen by the program that set it aside.
        queue: its destination.
        manager: the queue manager of that queue; empty: this one.
        time: when it was set aside, seconds since 1970.
        program: the program that set it aside.
        attempts: how many attempts failed; 0: unknown.
        error: a description of the error.
    """

    reason: int
    queue: str
    manager: str = ""
    time: float = 0.0
    program: str = ""
    attempts: int = 0
    error: str = ""


def is_dead(message: Message) -> bool:
    """Whether the message is a dead letter; these cause no report of arrival or delivery (R6.6)."""
    text = message.properties.text
    return text is not None and MARK in text and MARK in message.properties


def buried(message: Message, why: WhyDead) -> Message | Reason:
    """Makes a dead letter of the message, or returns the reason why its properties do not allow that: 2478, 2498."""
    said: dict[str, Any] = why._asdict() | {"error": why.error[:ERROR_CHARACTERS_MAX]}
    kept = {name: value for name, value in without(message).items() if not name.startswith(PREFIX)}
    header = {PREFIX + name: value for name, value in said.items() if value or name in ("reason", "queue", "time")}
    try:
        properties = Properties(kept | header)
    except InorderError as error:
        return error.reason
    return message.with_values(properties=properties, delay=0.0)


def why_dead(message: Message) -> WhyDead:
    """Reads from its properties why a message is a dead letter; reason 0 if it is not one."""
    values = {name: message.properties.get(PREFIX + name) for name in WhyDead._fields}
    found = {name: value for name, value in values.items() if _fits(value, name)}
    return WhyDead(**{"reason": 0, "queue": "", **found})


def _fits(value: object, name: str) -> bool:
    """Whether the value suits this field: any program may write such properties."""
    if name in ("reason", "attempts"):
        return isinstance(value, int) and not isinstance(value, bool)
    if name == "time":
        return isinstance(value, float) and math.isfinite(value)
    return isinstance(value, str)


def revived(message: Message) -> Message:
    """The original message of a dead letter."""
    kept = {name: value for name, value in without(message).items() if not name.startswith(PREFIX)}
    return message.with_values(properties=Properties(kept))
