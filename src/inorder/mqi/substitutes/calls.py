"""The common part of `ibmmqc` and `pymqe`: a function for each verb, over bytes.

Each returns a tuple that ends with CompCode and Reason. Structures come as bytes of the newest length and go back in
that length.
"""

from __future__ import annotations

import struct
from typing import Any

from .. import constants as mq
from .. import layouts, verbs
from ..layouts import NUL_TERMINATED
from ..property_types import NUMBERS

__all__ = [
    "MQBACK", "MQBEGIN", "MQCLOSE", "MQCMIT", "MQCONN", "MQCRTMH", "MQDISC", "MQGET", "MQOPEN", "MQPUT", "MQPUT1",
    "MQSETMP", "MQSUB",
]  # fmt: skip
"""The functions that both modules have."""

Result = tuple[Any, ...]


class WrongSize(Exception):
    """A structure has another length than the newest version of it."""


def structure(name: str, given: bytes) -> bytearray:
    """A copy that a verb can write. Raises WrongSize."""
    expected = layouts.layout(name).size()
    if len(given) != expected:
        raise WrongSize(f"MQ{name} wrong size. Given: {len(given)}, expected {expected}")
    return bytearray(given)


def MQCONN(name: bytes) -> Result:
    """Connects. Returns: hconn."""
    return verbs.mqconn(_as_bytes(name))


def MQDISC(hconn: int) -> Result:
    """Disconnects, and commits."""
    return verbs.mqdisc(hconn)


def MQOPEN(hconn: int, od: bytes, options: int) -> Result:
    """Opens an object. Returns: hobj, MQOD."""
    buffer = structure("OD", od)
    hobj, *codes = verbs.mqopen(hconn, buffer, options)
    return (hobj, bytes(buffer), *codes)


def MQCLOSE(hconn: int, hobj: int, options: int) -> Result:
    """Closes an object."""
    return verbs.mqclose(hconn, hobj, options)


def MQPUT(hconn: int, hobj: int, md: bytes, pmo: bytes, message: bytes) -> Result:
    """Puts a message. Returns: MQMD, MQPMO."""
    descriptor, options = structure("MD", md), structure("PMO", pmo)
    codes = verbs.mqput(hconn, hobj, descriptor, options, message)
    return (bytes(descriptor), bytes(options), *codes)


def MQPUT1(hconn: int, od: bytes, md: bytes, pmo: bytes, message: bytes) -> Result:
    """Puts one message on a queue that is not open. Returns: MQMD, MQPMO."""
    opened, descriptor, options = structure("OD", od), structure("MD", md), structure("PMO", pmo)
    codes = verbs.mqput1(hconn, opened, descriptor, options, message)
    return (bytes(descriptor), bytes(options), *codes)


def MQGET(hconn: int, hobj: int, md: bytes, gmo: bytes, most: int) -> Result:
    """Gets a message. Returns: its data, MQMD, MQGMO, the length of the whole message."""
    descriptor, options, buffer = structure("MD", md), structure("GMO", gmo), bytearray(max(most, 0))
    length, *codes = verbs.mqget(hconn, hobj, descriptor, options, buffer)
    return (bytes(buffer[:length]), bytes(descriptor), bytes(options), length, *codes)


def MQCMIT(hconn: int) -> Result:
    """Commits."""
    return verbs.mqcmit(hconn)


def MQBACK(hconn: int) -> Result:
    """Backs out."""
    return verbs.mqback(hconn)


def MQBEGIN(hconn: int) -> Result:
    """Begins a global unit of work."""
    return verbs.mqbegin(hconn, layouts.layout("BO").new())


def MQSUB(hconn: int, sd: bytes, hobj: int) -> Result:
    """Subscribes. Returns: MQSD, hobj, hsub."""
    buffer = structure("SD", sd)
    return (bytes(buffer), *verbs.mqsub(hconn, buffer, hobj))


def MQCRTMH(hconn: int, cmho: bytes) -> Result:
    """Creates a message handle. Returns: hmsg."""
    return verbs.mqcrtmh(hconn, structure("CMHO", cmho))


def MQSETMP(
    hconn: int, hmsg: int, smpo: bytes, name: bytes | str, pd: bytes, kind: int, value: object, length: int
) -> Result:
    """Sets a property of a message handle."""
    options, description = structure("SMPO", smpo), structure("PD", pd)
    return verbs.mqsetmp(hconn, hmsg, options, _as_bytes(name), description, kind, _stored(kind, value, length))


def inquired(hconn: int, hmsg: int, impo: Any, name: bytes | str, pd: Any, kind: int, most: int) -> Result:
    """MQINQMP. Returns: the value, its length, its name, CompCode, Reason."""
    buffer = bytearray(max(most, 0))
    found, length, returned, completion, reason = verbs.mqinqmp(hconn, hmsg, impo, _as_bytes(name), pd, kind, buffer)
    return _loaded(found, bytes(buffer[:length])), length, returned, completion, reason


def _as_bytes(text: bytes | str) -> bytes:
    return text.encode() if isinstance(text, str) else bytes(text)


def _stored(kind: int, value: Any, length: int) -> bytes:
    """A value of a property as it is stored in memory."""
    if kind in NUMBERS:
        number = int(value) if NUMBERS[kind] in "bhiq" else float(value)
        return struct.pack(NUMBERS[kind], number)
    if kind not in (mq.MQTYPE_STRING, mq.MQTYPE_BYTE_STRING):
        return b""
    text = _as_bytes(value)
    return text.partition(b"\0")[0] if length == NUL_TERMINATED else text[:length]


def _loaded(kind: int, stored: bytes) -> Any:
    if kind in NUMBERS:
        size = struct.calcsize(NUMBERS[kind])
        return struct.unpack(NUMBERS[kind], stored)[0] if len(stored) == size else None
    if kind == mq.MQTYPE_STRING:
        return stored.decode(errors="replace")
    return stored if kind == mq.MQTYPE_BYTE_STRING else None
