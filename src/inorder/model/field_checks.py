"""Kinds of the fields of a message: each checks a value and returns it as it is stored, or raises MQ's reason."""

from __future__ import annotations

import math
from typing import Any, Final

from ..errors import Reason, bad_argument
from .parameters import BYTES_LIKE, ID_LENGTH, Integer, Octets, Seconds, Switch, Text
from .properties import NO_PROPERTIES, Properties

NUMBER_MAX: Final = 999_999_999
EXPIRY_SECONDS_MAX: Final = 99_999_999.9
INT_MAX: Final = 2**31 - 1
REPORT_REJECT_MASK: Final = 270270464
REPORT_ACTIVITY: Final = 4
BY_QUEUE: Final = {"None for the queue's default": None}


def integer(low: int, high: int, reason: Reason = Reason.MD_ERROR) -> Integer:
    """An integer in this range."""
    return Integer(low, high, reason)


def text(length: int) -> Text:
    """A text with at most this many characters; trailing blanks are removed."""
    return Text(length, Reason.MD_ERROR, trimmed=True)


class ReportOptions(Integer):
    """The bits of `Report` added up."""

    __slots__ = ()

    def check(self, name: str, value: Any) -> int:
        report = int(super().check(name, value))
        if report & REPORT_REJECT_MASK:
            raise bad_argument(name, value, "report option bits that MQ defines", self.reason)
        if report & REPORT_ACTIVITY:
            raise bad_argument(name, value, "without activity reports, which are not supported", self.reason)
        return report


class MessageTypes(Integer):
    """One of `MessageType`, or a program's own."""

    __slots__ = ()

    def check(self, name: str, value: Any) -> int:
        if isinstance(value, bool) or not isinstance(value, int):
            raise bad_argument(name, value, "a MessageType", self.reason)
        if value not in (1, 2, 4, 8) and not 65536 <= value <= NUMBER_MAX:
            raise bad_argument(name, value, "1, 2, 4, 8, or 65,536 to 999,999,999", self.reason)
        return int(value)


REPORT: Final = ReportOptions(0, INT_MAX, Reason.REPORT_OPTIONS_ERROR)
MESSAGE_TYPE: Final = MessageTypes(1, NUMBER_MAX, Reason.MSG_TYPE_ERROR)
EXPIRY: Final = Seconds(0.1, EXPIRY_SECONDS_MAX, Reason.EXPIRY_ERROR, also={"math.inf for never": math.inf, **BY_QUEUE})
PRIORITY: Final = Integer(0, NUMBER_MAX, Reason.PRIORITY_ERROR, also=BY_QUEUE)
PERSISTENT: Final = Switch(reason=Reason.PERSISTENCE_ERROR, also=BY_QUEUE)
ID: Final = Octets(ID_LENGTH, named=True)
NAME: Final = text(48)


def property_values(name: str, value: Any) -> Properties:
    """Makes properties from any mapping."""
    made = value if type(value) is Properties else Properties(value)  # isinstance is slower for a Mapping
    return NO_PROPERTIES if made.text is None else made


def body_bytes(name: str, value: Any) -> bytes:
    """Makes bytes from anything that is bytes-like."""
    if not isinstance(value, BYTES_LIKE):
        hint = "bytes (encode a text first, for example with .encode())"
        if isinstance(value, dict | list | tuple):
            hint = "bytes: write json.dumps(...).encode() to have it as JSON"
        raise bad_argument(name, value, hint, Reason.ARGUMENT_ERROR)
    try:
        return bytes(value)
    except ValueError:
        raise bad_argument(name, value, "bytes, not a memoryview that was released") from None
