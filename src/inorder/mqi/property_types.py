"""MQ's types of properties, and their values as bytes.

A message keeps a property's value, not the width of its number. So an integer comes back with 32 bits if it fits, else
with 64, and a floating-point number with 64; MQIMPO_CONVERT_TYPE gives a number in any width in which it fits. Other
conversions are those of IBM's table for MQIMPO: everything becomes a string, and a string becomes a number or a Boolean
if it says one.

Rules: M-12 of *mqi*.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Mapping
from typing import Final

from ..model.properties import PropertyValue
from . import constants as mq
from .conversion import INTEGERS, NORMAL, OF_PROGRAM, REVERSED, UTF_8, character_set
from .refusals import Refused

INTEGER_TYPES: Final[Mapping[int, str]] = {
    mq.MQTYPE_INT8: "b",
    mq.MQTYPE_INT16: "h",
    mq.MQTYPE_INT32: "i",
    mq.MQTYPE_INT64: "q",
}
FLOAT_TYPES: Final[Mapping[int, str]] = {mq.MQTYPE_FLOAT32: "f", mq.MQTYPE_FLOAT64: "d"}
NUMBERS: Final[Mapping[int, str]] = {mq.MQTYPE_BOOLEAN: "i", **INTEGER_TYPES, **FLOAT_TYPES}
TYPES: Final = frozenset({*NUMBERS, mq.MQTYPE_STRING, mq.MQTYPE_BYTE_STRING, mq.MQTYPE_NULL})
FLOAT_ORDERS: Final[Mapping[int, str]] = {mq.MQENC_FLOAT_IEEE_NORMAL: ">", mq.MQENC_FLOAT_IEEE_REVERSED: "<"}
INTEGER_ORDERS: Final[Mapping[int, str]] = {NORMAL: ">", REVERSED: "<"}
BOOLEANS: Final[Mapping[str, bool]] = {"TRUE": True, "1": True, "FALSE": False, "0": False}
DEFAULT_CCSIDS: Final = frozenset({OF_PROGRAM, mq.MQCCSI_Q_MGR})
INT_32: Final = range(-(2**31), 2**31)


def type_of(value: PropertyValue) -> int:
    """The type with which a value of a message comes back."""
    if isinstance(value, bool):
        return int(mq.MQTYPE_BOOLEAN)
    if isinstance(value, int):
        return int(mq.MQTYPE_INT32 if value in INT_32 else mq.MQTYPE_INT64)
    others = {str: mq.MQTYPE_STRING, bytes: mq.MQTYPE_BYTE_STRING, float: mq.MQTYPE_FLOAT64}
    return int(others.get(type(value), mq.MQTYPE_NULL))


def _order(kind: int, encoding: int) -> str | None:
    if kind in FLOAT_TYPES:
        return FLOAT_ORDERS.get(encoding & mq.MQENC_FLOAT_MASK)
    return INTEGER_ORDERS.get(encoding & INTEGERS)


def read(kind: int, data: bytes, encoding: int, ccsid: int) -> PropertyValue:
    """The value that MQSETMP is given.

    Raises: Refused 2473, no such type; 2005, a length that the type does not have; 2111, 2112, 2114, the value is not
    as MQSMPO says.
    """
    if kind not in TYPES:
        raise Refused(mq.MQRC_PROPERTY_TYPE_ERROR)
    if kind in NUMBERS:
        order, code = _order(kind, encoding), NUMBERS[kind]
        if order is None:
            is_float = kind in FLOAT_TYPES
            raise Refused(mq.MQRC_SOURCE_FLOAT_ENC_ERROR if is_float else mq.MQRC_SOURCE_INTEGER_ENC_ERROR)
        if len(data) != struct.calcsize(f"={code}"):
            raise Refused(mq.MQRC_BUFFER_LENGTH_ERROR)
        (number,) = struct.unpack(order + code, data)
        return bool(number) if kind == mq.MQTYPE_BOOLEAN else number
    if kind == mq.MQTYPE_NULL:
        if data:
            raise Refused(mq.MQRC_BUFFER_LENGTH_ERROR)
        return None
    return bytes(data) if kind == mq.MQTYPE_BYTE_STRING else _text(data, encoding, ccsid)


def _text(data: bytes, encoding: int, ccsid: int) -> str:
    source = character_set(UTF_8 if ccsid in DEFAULT_CCSIDS else ccsid, encoding)
    try:
        if source is not None:
            return source.decode(data)
    except UnicodeDecodeError:
        pass
    raise Refused(mq.MQRC_SOURCE_CCSID_ERROR)


def written(kind: int, value: PropertyValue, encoding: int, ccsid: int) -> tuple[bytes, int, int, int]:
    """A value as MQINQMP returns it, with its encoding, character set and the reason of the warning, or 0.

    A value that cannot be written in this encoding or character set is in this machine's and in UTF-8: 2466.
    """
    ccsid = UTF_8 if ccsid in DEFAULT_CCSIDS else ccsid
    data = _data(kind, value, encoding, ccsid)
    if data is not None:
        return data, encoding, ccsid, 0
    data = _data(kind, value, mq.MQENC_NATIVE, UTF_8)
    assert data is not None, "this machine has an encoding"
    return data, mq.MQENC_NATIVE, UTF_8, mq.MQRC_PROP_VALUE_NOT_CONVERTED


def _data(kind: int, value: PropertyValue, encoding: int, ccsid: int) -> bytes | None:
    if kind in NUMBERS:
        order = _order(kind, encoding)
        return None if order is None else struct.pack(order + NUMBERS[kind], value)
    if isinstance(value, str):
        target = character_set(ccsid, encoding)
        return None if target is None else target.encode(value)
    return value if isinstance(value, bytes) else b""


def converted(value: PropertyValue, kind: int, wanted: int) -> PropertyValue:
    """The value as another type.

    Args:
        kind: its own type.
        wanted: the wanted type; MQTYPE_AS_SET does not change the value.

    Raises: Refused 2473, no such type; 2470, there is no such conversion, or a number does not fit; 2472, a string says
    no number.
    """
    if wanted in (kind, mq.MQTYPE_AS_SET):
        return value
    if wanted not in TYPES:
        raise Refused(mq.MQRC_PROPERTY_TYPE_ERROR)
    made: PropertyValue = None
    if value is not None and wanted == mq.MQTYPE_STRING:
        made = _as_string(value)
    elif isinstance(value, str) and wanted in NUMBERS:
        made = _number(value, wanted)
    elif isinstance(value, int) and wanted in INTEGER_TYPES:
        made = int(value)
    elif isinstance(value, float) and wanted in FLOAT_TYPES:
        made = value
    if made is None or not _fits(made, wanted):
        raise Refused(mq.MQRC_PROP_CONV_NOT_SUPPORTED)
    return made


def _as_string(value: PropertyValue) -> str:
    if isinstance(value, bytes):
        return value.hex().upper()
    return str(value).upper() if isinstance(value, bool) else str(value)


def _number(text: str, wanted: int) -> PropertyValue:
    try:
        if wanted == mq.MQTYPE_BOOLEAN:
            return BOOLEANS[text.strip().upper()]
        number = int(text) if wanted in INTEGER_TYPES else float(text)
    except (KeyError, ValueError):
        raise Refused(mq.MQRC_PROP_NUMBER_FORMAT_ERROR) from None
    if not _fits(number, wanted):
        raise Refused(mq.MQRC_PROP_NUMBER_FORMAT_ERROR)
    return number


def _fits(value: PropertyValue, wanted: int) -> bool:
    if wanted not in NUMBERS or wanted == mq.MQTYPE_BOOLEAN:
        return True
    assert isinstance(value, int | float)
    try:
        struct.pack("=" + NUMBERS[wanted], value)
    except (struct.error, OverflowError):
        return False
    return math.isfinite(value)
