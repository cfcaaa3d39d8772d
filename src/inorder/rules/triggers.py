"""Trigger messages: when one is due, and its contents (mq-semantics R4.9, between P-2).

A queue whose trigger control is on has a program started for it. At the end of each call that changed the queue, the
rules look at the messages that are visible to all; MQ counts uncommitted puts as well. One row for each trigger type:

========  =============================================================  ==================================
type      a trigger message is due for                                   and only if
========  =============================================================  ==================================
first     the first message that can be got, and while some can be got   nobody has the queue open for input
          for a newcomer after the trigger interval
every     each newcomer
depth     a newcomer that makes the depth `trigger_depth`, or finds it   nobody has the queue open for input;
          larger                                                         trigger control is off afterwards
group     each group that a newcomer makes whole; a message in no group  (MQ has no such type)
          is whole by itself
========  =============================================================  ==================================

For first and depth a message that was got, or locked under a lock id, and becomes free again counts as a newcomer; one
that a browse locked for its handle does not. The close by the last reader, and a change of a definition, count as a
newcomer to an empty queue. Messages below `trigger_priority` do not count at all. Nothing is due while gets are
inhibited, or while the initiation queue or the process that the queue names does not exist; only a transmission queue
may name no process.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Final, NamedTuple

from ..errors import bad_argument
from ..model.attributes import QueueAttributes
from ..model.message import Message
from .reports import APPLICATION_TYPE_QUEUE_MANAGER, PROGRAM_NAME_LENGTH

FORMAT: Final = "MQTRIG"
ENCODING: Final = 546  # integers in a trigger message are little-endian
CHARACTER_SET: Final = 1208

_ID: Final = b"TM  "
_VERSION: Final = 1
_LAYOUT: Final = struct.Struct("<4si48s48s64si256s128s128s")
_TEXTS: Final[Mapping[str, int]] = {
    "queue": 48,
    "process": 48,
    "trigger_data": 64,
    "application_id": 256,
    "environment_data": 128,
    "user_data": 128,
}

NAME_LENGTH: Final = 48
_ARGUMENT_HEAD: Final = b"TMC    2"
_NO_TYPE: Final = b"    "
_TEXTS_BEFORE_TYPE: Final = 3
ARGUMENT_LENGTH: Final = len(_ARGUMENT_HEAD) + sum(_TEXTS.values()) + len(_NO_TYPE) + NAME_LENGTH


class SeenQueue(NamedTuple):
    """The effect of a call on a queue, and the queue's state afterwards; only messages of sufficient priority count.

    Args:
        came: how many became visible to all in this call; groups: how many groups became whole.
        back: how many became free again.
        there: how many can be got; the store may stop counting above `needed`.
        has_reader: whether any handle has the queue open for input.
        quiet: seconds since the queue's last trigger message.
        was_released: whether its last reader has closed it, or a definition has changed.
    """

    came: int
    back: int
    groups: int
    there: int
    has_reader: bool
    quiet: float
    was_released: bool


def needed(queue: QueueAttributes, came: int) -> int:
    """How far to count available messages if `came` have arrived or become free again; 0: do not count."""
    match queue.trigger_type:
        case "first":
            return came + 1
        case "depth":
            return queue.trigger_depth
        case _:
            return 0


def due(queue: QueueAttributes, interval: float, seen: SeenQueue) -> int:
    """How many trigger messages are due."""
    if not queue.get_allowed:
        return 0
    came = seen.came + seen.back
    match queue.trigger_type:
        case "every":
            return seen.came
        case "group":
            return seen.groups
        case "first":
            is_first = seen.was_released or (came > 0 and (seen.there <= came or seen.quiet >= interval))
            return int(is_first and seen.there > 0 and not seen.has_reader)
        case "depth":
            has_changed = seen.was_released or came > 0
            return int(has_changed and seen.there >= queue.trigger_depth and not seen.has_reader)
        case _:
            return 0


@dataclass(frozen=True, slots=True, kw_only=True)
class TriggerMessage:
    """The body of a trigger message: MQTM, 684 bytes, with integers in encoding 546.

    Args:
        queue: the queue that the program is to serve.
        process: the process definition of the program; "" if the queue names none.
        trigger_data: that of the queue.
        application_type, application_id, environment_data, user_data: those of the process definition.
    """

    queue: str
    process: str = ""
    trigger_data: str = ""
    application_type: int = 0
    application_id: str = ""
    environment_data: str = ""
    user_data: str = ""

    def to_bytes(self) -> bytes:
        """Encodes the body. A text that is too long for its field is cut after the last character that fits."""
        texts = {name: _fitted(getattr(self, name), length) for name, length in _TEXTS.items()}
        return _LAYOUT.pack(
            _ID,
            _VERSION,
            texts["queue"],
            texts["process"],
            texts["trigger_data"],
            self.application_type,
            texts["application_id"],
            texts["environment_data"],
            texts["user_data"],
        )

    @classmethod
    def from_bytes(cls, body: bytes) -> TriggerMessage:
        """Decodes a body. Raises ArgumentError if it is not that of a trigger message."""
        allowed = f"a trigger message: MQTM of version 1, {_LAYOUT.size} bytes"
        try:
            identifier, version, *values = _LAYOUT.unpack(body)
            said: dict[str, Any] = dict(zip([each.name for each in fields(cls)], map(_said, values), strict=True))
        except (struct.error, UnicodeDecodeError) as error:
            raise bad_argument("body", body, allowed) from error
        if (identifier, version) != (_ID, _VERSION):
            raise bad_argument("body", body, allowed)
        return cls(**said)

    def to_argument(self, manager: str) -> str:
        """Encodes the argument for the program that is started: MQTMC2, 732 bytes, all of them characters.

        Args:
            manager: the name of the queue manager.
        """
        texts = [_fitted(getattr(self, name), length) for name, length in _TEXTS.items()]
        before, after = texts[:_TEXTS_BEFORE_TYPE], texts[_TEXTS_BEFORE_TYPE:]
        return b"".join((_ARGUMENT_HEAD, *before, _NO_TYPE, *after, _fitted(manager, NAME_LENGTH))).decode()

    @classmethod
    def from_argument(cls, argument: str) -> TriggerMessage:
        """Decodes a program's argument; the application type is lost, because MQTMC2 does not have it.

        Raises ArgumentError if it is not MQTMC2.
        """
        body = argument.encode(errors="surrogateescape") if isinstance(argument, str) else b""
        if len(body) != ARGUMENT_LENGTH or not body.startswith(_ARGUMENT_HEAD):
            raise bad_argument("argument", argument, f"MQTMC2 of version 2, {ARGUMENT_LENGTH} bytes")
        at, said = len(_ARGUMENT_HEAD), dict[str, Any]()
        for number, (name, length) in enumerate(_TEXTS.items()):
            at += len(_NO_TYPE) if number == _TEXTS_BEFORE_TYPE else 0
            said[name] = body[at : at + length].decode(errors="replace").rstrip(" \0")
            at += length
        return cls(**said)


def trigger_message(said: TriggerMessage, manager: str, message_id: bytes, now: float) -> Message:
    """Makes a trigger message as it arrives, except for the priority and persistence that its queue sets.

    Args:
        manager: the name of the queue manager, which puts it.
        message_id: a new one.
    """
    body = said.to_bytes()
    return Message().with_values(
        message_id=message_id,
        format=FORMAT,
        encoding=ENCODING,
        coded_character_set_id=CHARACTER_SET,
        put_application_type=APPLICATION_TYPE_QUEUE_MANAGER,
        put_application_name=manager[:PROGRAM_NAME_LENGTH],
        put_at=now,
        body=body,
        length=len(body),
    )


def _fitted(text: str, length: int) -> bytes:
    return text.encode()[:length].decode(errors="ignore").encode().ljust(length)


def _said(value: bytes | int) -> str | int:
    return value if isinstance(value, int) else value.rstrip(b" \0").decode()
