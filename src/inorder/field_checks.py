"""Checks of what a caller gives for a field of a message: the value as it is kept, or MQ's reason against it."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any
from uuid import UUID

from .errors import ArgumentError, Reason, bad_argument
from .properties import NO_PROPERTIES, Properties

ID_LENGTH = 24
BYTES_LIKE = (bytes, bytearray, memoryview)  # made once: a union in a check costs more than the check
REAL = (int, float)
NUMBER_MAX = 999_999_999
EXPIRY_SECONDS_MAX = 99_999_999.9
REPORT_REJECT_MASK = 270270464
REPORT_ACTIVITY = 4


def integer(low: int, high: int, reason: Reason = Reason.MD_ERROR) -> Callable[[str, Any], int]:
    """An integer in this range."""

    def check(name: str, value: Any) -> int:
        if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
            raise bad_argument(name, value, f"an integer from {low:,} to {high:,}", reason)
        return int(value)

    return check


def octets(length: int) -> Callable[[str, Any], bytes]:
    """So many bytes: fewer are padded with NUL."""

    def check(name: str, value: Any) -> bytes:
        try:
            given = bytes(value) if isinstance(value, BYTES_LIKE) else None
        except ValueError:  # a memoryview that was released
            given = None
        if given is None or len(given) > length:
            raise bad_argument(name, value, f"bytes, at most {length} of them", Reason.MD_ERROR)
        return given.ljust(length, b"\0")

    return check


def identifier(name: str, value: Any) -> bytes:
    """An id, which may be given as a text, its UTF-8, or as a UUID."""
    given = value
    if isinstance(value, UUID):
        given = value.bytes
    elif isinstance(value, str) and is_storable(value):
        given = value.encode()
    try:
        return _octets_of_id(name, given)
    except ArgumentError:
        allowed = f"bytes or a text in UTF-8, at most {ID_LENGTH} bytes of it, or a uuid.UUID"
        raise bad_argument(name, value, allowed, Reason.MD_ERROR) from None


_octets_of_id = octets(ID_LENGTH)


def is_storable(value: str) -> bool:
    """Whether it is text: halves of characters, which Python allows, are not text, and no file can hold them."""
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def text(length: int) -> Callable[[str, Any], str]:
    """A text of at most so many characters, without its trailing blanks."""

    def check(name: str, value: Any) -> str:
        if not isinstance(value, str) or len(value) > length or not is_storable(value):
            raise bad_argument(name, value, f"a text of at most {length} characters", Reason.MD_ERROR)
        return value.rstrip(" \0")

    return check


def seconds(low: float, high: float, reason: Reason) -> Callable[[str, Any], float]:
    """Seconds in this range."""

    def check(name: str, value: Any) -> float:
        if isinstance(value, bool) or not isinstance(value, REAL) or not low <= value <= high:
            raise bad_argument(name, value, f"seconds from {low:,} to {high:,}", reason)
        return float(value)

    return check


def report_options(name: str, value: Any) -> int:
    """Report options, the bits of `Report` added up."""
    allowed = "report option bits that MQ defines"
    report = integer(0, 2**31 - 1, Reason.REPORT_OPTIONS_ERROR)(name, value)
    if report & REPORT_REJECT_MASK:
        raise bad_argument(name, value, allowed, Reason.REPORT_OPTIONS_ERROR)
    if report & REPORT_ACTIVITY:
        allowed = "without activity reports, which are not supported"
        raise bad_argument(name, value, allowed, Reason.REPORT_OPTIONS_ERROR)
    return report


def message_type(name: str, value: Any) -> int:
    """One of `MessageType`, or a program's own."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise bad_argument(name, value, "a MessageType", Reason.MSG_TYPE_ERROR)
    if value not in (1, 2, 4, 8) and not 65536 <= value <= NUMBER_MAX:
        raise bad_argument(name, value, "1, 2, 4, 8, or 65,536 to 999,999,999", Reason.MSG_TYPE_ERROR)
    return int(value)


def expiry(name: str, value: Any) -> float | None:
    """A life in seconds; infinite: for ever; None: the queue's."""
    if value is None or (isinstance(value, float) and value == math.inf):
        return value
    allowed = "seconds from 0.1 to 99,999,999.9, math.inf for never, or None for the queue's"
    try:
        return seconds(0.1, EXPIRY_SECONDS_MAX, Reason.EXPIRY_ERROR)(name, value)
    except ArgumentError:
        raise bad_argument(name, value, allowed, Reason.EXPIRY_ERROR) from None


def priority(name: str, value: Any) -> int | None:
    """A priority, which may be above 9; None: the queue's."""
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= NUMBER_MAX:
        allowed = "an integer from 0 (9 is the highest that counts), or None for the queue's"
        raise bad_argument(name, value, allowed, Reason.PRIORITY_ERROR)
    return int(value)


def persistent(name: str, value: Any) -> bool | None:
    """Whether it survives a restart; None: what the queue says."""
    if value is not None and not isinstance(value, bool):
        raise bad_argument(name, value, "True, False, or None for the queue's", Reason.PERSISTENCE_ERROR)
    return value


def property_values(name: str, value: Any) -> Properties:
    """Properties, of any mapping."""
    made = value if type(value) is Properties else Properties(value)  # isinstance costs more, with a class like this
    return NO_PROPERTIES if made.text is None else made


def body_bytes(name: str, value: Any) -> bytes:
    """The data, of anything that is bytes."""
    if not isinstance(value, BYTES_LIKE):
        hint = "bytes (encode a text first, for example with .encode())"
        if isinstance(value, dict | list | tuple):
            hint = "bytes: write json.dumps(...).encode() to have it as JSON"
        raise bad_argument(name, value, hint, Reason.ARGUMENT_ERROR)
    try:
        return bytes(value)
    except ValueError:
        raise bad_argument(name, value, "bytes, not a memoryview that was released") from None


name_of_object = text(48)
