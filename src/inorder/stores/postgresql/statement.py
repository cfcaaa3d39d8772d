"""Statements and values in PostgreSQL's form: `$1` where the shared texts have `?`, `?1` or `:name`; values in the
binary format of libpq, integers always as eight bytes, so that a statement is prepared once.
"""

from __future__ import annotations

import functools
import re
import struct
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

_PARTS = re.compile(r"""('(?:[^']|'')*'|"[^"]*"|::)|\?(\d*)|(?<![\w:]):([a-z_]+)""")

Kinds = tuple[type, ...]
NULL: Final = type(None)


class Statement(NamedTuple):
    """A text with numbered parameters; `names`: the names of its parameters in order, if they have names."""

    text: str
    names: tuple[str, ...]

    def values(self, given: Mapping[str, Any]) -> Sequence[Any]:
        """Returns the values of its parameters in order."""
        return [given[name] for name in self.names]


@functools.lru_cache(maxsize=2048)
def statement(text: str) -> Statement:
    """Converts a text with `?`, `?1` or `:name`."""
    names: list[str] = []
    count = 0

    def numbered(found: re.Match[str]) -> str:
        nonlocal count
        quoted, number, name = found.groups()
        if quoted:
            return quoted
        if number:
            return f"${number}"
        if name is None:
            count += 1
            return f"${count}"
        if name not in names:
            names.append(name)
        return f"${names.index(name) + 1}"

    return Statement(_PARTS.sub(numbered, text), tuple(names))


# --- values


class NumberArray(bytes):
    """An array of integers in the server's format."""


class Reals(bytes):
    """An array of floats."""


class Texts(bytes):
    """An array of texts."""


class Bodies(bytes):
    """An array of bytes."""


BIGINT, BYTEA, DOUBLE, TEXT = 20, 17, 701, 25
_OIDS: Final[Mapping[type, int]] = {
    int: BIGINT, bool: BIGINT, float: DOUBLE, str: TEXT, bytes: BYTEA, NULL: 0,
    NumberArray: 1016, Reals: 1022, Texts: 1009, Bodies: 1001,
}  # fmt: skip


Packer = Callable[[Any], bytes | None]


class _Packers(dict[type, Packer]):
    """The functions that pack values, by type. A derived type is packed like its base."""

    def __missing__(self, kind: type) -> Packer:
        self[kind] = found = self[_base(kind)]
        return found


_nothing: Packer = {None: None}.__getitem__  # implemented in C, because some values of each message are NULL


def _packed(array: bytes) -> bytes:
    return array


_number = struct.Struct(">q").pack
_PACKERS: Final = _Packers({
    int: _number, bool: _number, float: struct.Struct(">d").pack, str: str.encode, bytes: bytes, NULL: _nothing,
    bytearray: bytes, memoryview: bytes, NumberArray: _packed, Reals: _packed, Texts: _packed,
    Bodies: _packed,
})  # fmt: skip


def _base(kind: type) -> type:
    for base in kind.__mro__:
        if base in _OIDS:
            return base
    if kind in (bytearray, memoryview):
        return bytes
    raise TypeError(f"a statement takes no {kind.__name__}")


def packers(kinds: Kinds) -> Sequence[Packer]:
    """Returns the functions that pack values of these types."""
    return [_PACKERS[kind] for kind in kinds]


def oids(kinds: Kinds) -> list[int]:
    """Returns the server's ids of the types of values."""
    return [_OIDS[_base(kind)] for kind in kinds]


_counted_number, _counted_real = struct.Struct(">iq").pack, struct.Struct(">id").pack
_count = struct.Struct(">i").pack
_array = struct.Struct(">5i").pack
_NO_ELEMENT: Final = _count(-1)

Elements = Sequence[int | None] | Sequence[float | None] | Sequence[str | None] | Sequence[bytes | None]


def array(values: Elements, kind: type | None = None) -> bytes:
    """Returns values of one kind, by default the first one's, as one value; a statement unpacks it."""
    if kind is None:
        kind = type(values[0]) if values else int
    made, packs, size = _ARRAYS[_base(kind)]
    count, has_null = len(values), None in values
    if count > 1 and values.count(values[0]) == count:  # as in most columns of a block
        parts = _elements(values[:1], packs, size) * count
    else:
        parts = _elements(values, packs, size)
    return made(b"".join([_array(1, has_null, _OIDS[_base(kind)], count, 1), *parts]))


def _elements(values: Elements, packs: Callable[..., bytes], size: int) -> list[bytes]:
    """Packs the elements of an array, without copying long ones."""
    if size:
        return [_NO_ELEMENT if one is None else packs(size, one) for one in values]
    parts: list[bytes] = []
    for one in values:
        if one is None:
            parts.append(_NO_ELEMENT)
        else:
            packed = packs(one)
            parts += _count(len(packed)), packed
    return parts


# For each kind: the type of its array, the function that packs an element, and the element's length if it is fixed.
_ARRAYS: Final[Mapping[type, tuple[type[bytes], Callable[..., bytes], int]]] = {
    int: (NumberArray, _counted_number, 8),
    bool: (NumberArray, _counted_number, 8),
    float: (Reals, _counted_real, 8),
    str: (Texts, str.encode, 0),
    bytes: (Bodies, bytes, 0),
}
