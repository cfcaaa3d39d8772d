"""Reads and writes PCF: a header and parameters, each a structure of 32-bit words.

A structure begins with its type and its length. Integers are in the byte order that the `encoding` of the message says,
and texts in its character set unless the structure names another one. `read` checks every length before it uses it, and
refuses what it cannot read with MQ's reason code.

Rules: *mqi* M-14.
"""

from __future__ import annotations

import struct
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from ..constants import constants
from ..conversion import UNICODE, CharacterSet

COMMAND, RESPONSE, COMMAND_XR = 1, 2, 16  # MQCFT
INTEGER, STRING, INTEGER_LIST, STRING_LIST, BYTE_STRING = 3, 4, 5, 6, 9
INTEGER_FILTER, STRING_FILTER, BYTE_STRING_FILTER, GROUP, INTEGER64, INTEGER64_LIST = 13, 14, 15, 20, 23, 25
LAST, NOT_LAST = 1, 0  # MQCFC
FAILED: Final = 2  # MQCC
HEADER: Final = 36
VERSION_MAX: Final = 3
GROUPS_MAX: Final = 16  # groups within groups

Value = int | str | bytes | list[int] | list[str]


class PcfFault(Exception):
    """A request, or a part of it, is not valid, or it has failed.

    Args:
        reason: MQ's reason code, or the name of it.

    Attributes:
        reason: MQ's reason code.
        parameter: the number of the parameter; None: the fault is not in one.
        header: the header of the request, if it could be read.
    """

    def __init__(self, reason: str | int, parameter: int | None = None) -> None:
        super().__init__(reason)
        self.reason = reason if isinstance(reason, int) else int(constants()[reason])
        self.parameter = parameter
        self.header: Header | None = None


class Header(NamedTuple):
    """An MQCFH without its length and its count of parameters."""

    type: int
    version: int
    command: int
    sequence: int = 1
    control: int = LAST
    completion: int = 0
    reason: int = 0


@dataclass(frozen=True, slots=True)
class PcfParameter:
    """A parameter: MQCFIN, MQCFST, MQCFIL, ..., or a filter or a group.

    Attributes:
        number: MQ's number of it, MQIA_ or MQCA_ and so on.
        value: texts without the blanks and NULs at their end; of a group the parameters in it.
        type: MQCFT_INTEGER and so on.
        operator: the operator of a filter, MQCFOP_EQUAL and so on.
    """

    number: int
    value: Value | tuple[PcfParameter, ...]
    type: int
    operator: int = 0

    @property
    def is_filter(self) -> bool:
        return self.type in (INTEGER_FILTER, STRING_FILTER, BYTE_STRING_FILTER)


class Padded(NamedTuple):
    """A text that is written with blanks up to a length."""

    text: str
    length: int


@dataclass(frozen=True, slots=True)
class Coding:
    """The coding of integers and texts: the byte order as `struct` names it, and the character set."""

    order: str
    texts: CharacterSet = UNICODE

    def integers(self, *values: int) -> bytes:
        return struct.pack(f"{self.order}{len(values)}i", *values)


NATIVE: Final = Coding("<" if sys.byteorder == "little" else ">")
NAMES: Final = {
    INTEGER: "CFIN", STRING: "CFST", INTEGER_LIST: "CFIL", STRING_LIST: "CFSL", BYTE_STRING: "CFBS",
    INTEGER_FILTER: "CFIF", STRING_FILTER: "CFSF", BYTE_STRING_FILTER: "CFBF", GROUP: "CFGR", INTEGER64: "CFIN",
    INTEGER64_LIST: "CFIL",
}  # fmt: skip
"""The structures by their types, as the reason codes of their faults name them."""
FIXED: Final = {
    INTEGER: 16, STRING: 20, INTEGER_LIST: 16, STRING_LIST: 24, BYTE_STRING: 16, INTEGER_FILTER: 20, STRING_FILTER: 24,
    BYTE_STRING_FILTER: 20, GROUP: 16, INTEGER64: 24, INTEGER64_LIST: 16,
}  # fmt: skip
"""The lengths of the structures, without the values of those whose length varies."""


# ---- reading


class _Reader:
    """Reads structures one after the other."""

    def __init__(self, data: bytes, coding: Coding, texts_of: Callable[[int], CharacterSet | None]) -> None:
        self.data, self.coding, self.at = data, coding, 0
        self.texts_of = texts_of

    def words(self, offset: int, count: int) -> tuple[int, ...]:
        return struct.unpack_from(f"{self.coding.order}{count}i", self.data, self.at + offset)

    def header(self) -> tuple[Header, int]:
        if len(self.data) < HEADER:
            raise PcfFault("MQRCCF_MSG_LENGTH_ERROR")
        kind, length, version, command, sequence, control, completion, reason, count = self.words(0, 9)
        known = version if 1 <= version <= VERSION_MAX else 1  # that of the reply to a request that has another one
        header = Header(kind, known, command, sequence, control, completion, reason)
        try:
            if length != HEADER:
                raise PcfFault("MQRCCF_CFH_LENGTH_ERROR")
            if version != known:
                raise PcfFault("MQRCCF_CFH_VERSION_ERROR")
            if count < 0:
                raise PcfFault("MQRCCF_CFH_PARM_COUNT_ERROR")
        except PcfFault as fault:
            fault.header = header
            raise
        self.at = HEADER
        return header, count

    def parameter(self, depth: int = 0) -> PcfParameter:
        left = len(self.data) - self.at
        if left < 12:
            raise PcfFault("MQRCCF_MSG_LENGTH_ERROR")
        kind, length, number = self.words(0, 3)
        if kind not in FIXED:
            raise PcfFault("MQRCCF_STRUCTURE_TYPE_ERROR")
        self._check(FIXED[kind] <= length <= left, kind, "LENGTH_ERROR", number)
        varies = kind not in (INTEGER, INTEGER64, INTEGER_FILTER, GROUP)
        self._check(varies or length == FIXED[kind], kind, "LENGTH_ERROR", number)
        read = _READ[kind](self, length, number)
        self.at += length
        if kind != GROUP:
            return read
        count = read.value
        assert isinstance(count, int)
        if not 0 <= count <= len(self.data) // 12 or depth == GROUPS_MAX:
            raise PcfFault("MQRCCF_CFGR_PARM_COUNT_ERROR", number)
        return PcfParameter(number, tuple(self.parameter(depth + 1) for _ in range(count)), GROUP)

    def _check(self, holds: bool, kind: int, fault: str, number: int) -> None:
        if not holds:
            raise PcfFault(f"MQRCCF_{NAMES[kind]}_{fault}", number)

    def _integer(self, length: int, number: int) -> PcfParameter:
        return PcfParameter(number, self.words(12, 1)[0], INTEGER)

    def _integer64(self, length: int, number: int) -> PcfParameter:
        return PcfParameter(number, struct.unpack_from(f"{self.coding.order}q", self.data, self.at + 16)[0], INTEGER64)

    def _integers(self, length: int, number: int) -> PcfParameter:
        kind = self.words(0, 1)[0]
        size, form = (8, "q") if kind == INTEGER64_LIST else (4, "i")
        count = self.words(12, 1)[0]
        self._check(count >= 0, kind, "COUNT_ERROR", number)
        self._check(length == 16 + count * size, kind, "LENGTH_ERROR", number)
        return PcfParameter(
            number, list(struct.unpack_from(f"{self.coding.order}{count}{form}", self.data, self.at + 16)), kind
        )

    def _string(self, length: int, number: int) -> PcfParameter:
        character_set, size = self.words(12, 2)
        self._check(size >= 0, STRING, "STRING_LENGTH_ERR", number)
        self._check(length == 20 + _padded(size), STRING, "LENGTH_ERROR", number)
        return PcfParameter(number, self._text(20, size, character_set), STRING)

    def _strings(self, length: int, number: int) -> PcfParameter:
        character_set, count, size = self.words(12, 3)
        self._check(0 <= count <= len(self.data), STRING_LIST, "COUNT_ERROR", number)
        self._check(size >= 0, STRING_LIST, "STRING_LENGTH_ERR", number)
        self._check(length == 24 + _padded(count * size), STRING_LIST, "LENGTH_ERROR", number)
        texts = [self._text(24 + place * size, size, character_set) for place in range(count)]
        return PcfParameter(number, texts, STRING_LIST)

    def _bytes(self, length: int, number: int) -> PcfParameter:
        size = self.words(12, 1)[0]
        self._check(size >= 0, BYTE_STRING, "STRING_LENGTH_ERR", number)
        self._check(length == 16 + _padded(size), BYTE_STRING, "LENGTH_ERROR", number)
        return PcfParameter(number, self._at(16, size), BYTE_STRING)

    def _integer_filter(self, length: int, number: int) -> PcfParameter:
        operator, value = self.words(12, 2)
        return PcfParameter(number, value, INTEGER_FILTER, operator)

    def _string_filter(self, length: int, number: int) -> PcfParameter:
        operator, character_set, size = self.words(12, 3)
        self._check(size >= 0, STRING_FILTER, "FILTER_VAL_LEN_ERR", number)
        self._check(length == 24 + _padded(size), STRING_FILTER, "LENGTH_ERROR", number)
        return PcfParameter(number, self._text(24, size, character_set), STRING_FILTER, operator)

    def _byte_filter(self, length: int, number: int) -> PcfParameter:
        operator, size = self.words(12, 2)
        self._check(size >= 0, BYTE_STRING_FILTER, "FILTER_VAL_LEN_ERR", number)
        self._check(length == 20 + _padded(size), BYTE_STRING_FILTER, "LENGTH_ERROR", number)
        return PcfParameter(number, self._at(20, size), BYTE_STRING_FILTER, operator)

    def _group(self, length: int, number: int) -> PcfParameter:
        return PcfParameter(number, self.words(12, 1)[0], GROUP)

    def _at(self, offset: int, size: int) -> bytes:
        return bytes(self.data[self.at + offset : self.at + offset + size])

    def _text(self, offset: int, size: int, character_set: int) -> str:
        texts = self.coding.texts if character_set <= 0 else self.texts_of(character_set)
        if texts is None:
            raise PcfFault("MQRCCF_CCSID_ERROR")
        try:
            return texts.decode(self._at(offset, size)).rstrip("\0 ")
        except UnicodeError:
            raise PcfFault("MQRCCF_CCSID_ERROR") from None


_READ: Final[dict[int, Callable[[_Reader, int, int], PcfParameter]]] = {
    INTEGER: _Reader._integer,
    STRING: _Reader._string,
    INTEGER_LIST: _Reader._integers,
    STRING_LIST: _Reader._strings,
    BYTE_STRING: _Reader._bytes,
    INTEGER_FILTER: _Reader._integer_filter,
    STRING_FILTER: _Reader._string_filter,
    BYTE_STRING_FILTER: _Reader._byte_filter,
    GROUP: _Reader._group,
    INTEGER64: _Reader._integer64,
    INTEGER64_LIST: _Reader._integers,
}


def _padded(size: int) -> int:
    return -(-size // 4) * 4


def no_texts(character_set: int) -> CharacterSet | None:
    """Allows only the character set of the message."""
    return None


def read(
    data: bytes, coding: Coding, texts_of: Callable[[int], CharacterSet | None] = no_texts
) -> tuple[Header, tuple[PcfParameter, ...]]:
    """Reads a message: its header, and its parameters.

    Args:
        texts_of: the coded character set that a structure names; None: there is no such one.

    Raises: PcfFault, with the header if that could be read.
    """
    reader = _Reader(data, coding, texts_of)
    header, count = reader.header()
    try:
        parameters = tuple(reader.parameter() for _ in range(count))
        if reader.at != len(data):
            raise PcfFault("MQRCCF_PARM_COUNT_TOO_BIG" if count == 0 else "MQRCCF_MSG_LENGTH_ERROR")
    except PcfFault as fault:
        fault.header = header
        raise
    return header, parameters


# ---- writing


def write(header: Header, parameters: Sequence[bytes], coding: Coding) -> bytes:
    """Writes a message. `parameters`: as `parameter` writes them; those in a group count for their group."""
    head = coding.integers(
        header.type, HEADER, header.version, header.command, header.sequence, header.control, header.completion,
        header.reason, len(parameters),
    )  # fmt: skip
    return b"".join((head, *parameters))


def parameter(number: int, value: Value | Padded | Iterable[str], coding: Coding, character_set: int = 0) -> bytes:
    """Writes a parameter: an integer as MQCFIN, or MQCFIN64 if it needs to be, bytes as MQCFBS, and so on.

    Args:
        character_set: the character set of texts; 0: the message's.
    """
    match value:
        case int() if -(2**31) <= value < 2**31:
            return coding.integers(INTEGER, 16, number, value)
        case int():
            return coding.integers(INTEGER64, 24, number, 0) + struct.pack(f"{coding.order}q", value)
        case bytes():
            return coding.integers(BYTE_STRING, 16 + _padded(len(value)), number, len(value)) + _filled(value)
        case str() | Padded():
            text, length = value if isinstance(value, Padded) else (value, 0)
            encoded = coding.texts.encode(text.ljust(length))
            head = coding.integers(STRING, 20 + _padded(len(encoded)), number, character_set, len(encoded))
            return head + _filled(encoded)
    values = list(value)
    if numbers := [each for each in values if isinstance(each, int)]:
        return coding.integers(INTEGER_LIST, 16 + 4 * len(numbers), number, len(numbers), *numbers)
    texts = [coding.texts.encode(str(each)) for each in values]
    size = _padded(max(map(len, texts), default=0))
    blank = coding.texts.encode(" ")
    joined = b"".join(each + blank * ((size - len(each)) // len(blank)) for each in texts)
    return coding.integers(STRING_LIST, 24 + len(joined), number, character_set, len(texts), size) + joined


def _filled(value: bytes) -> bytes:
    return value.ljust(_padded(len(value)), b"\0")
