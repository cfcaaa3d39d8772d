"""Reads and writes `ibm-mq-usr`, the header with the properties of a message.

::

    header   = property { "," property }               a request may have several such headers
    property = name ";" value ";" type

The form is that of IBM's bridge for HTTP (`x-msg-usr`), from which the header has its name: ``myProp1;5;i1`` or
``myProp2;"My String";string``. IBM's page on version 3 was not readable as far as its types, so requests may also use
the names of types in JMS. Answers use the bridge's names, and the shortest type that holds an integer.

Text is in double quotes. A header can only have printable ASCII, so a quote is written ``\\"``, a backslash ``\\\\``,
and any other character ``\\uXXXX``, as in JSON. Requests may also use UTF-8, and a backslash before any other character
stands for itself. Bytes (``bin.hex``) and a name without a value (``null``) are our additions.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final

from ..model.parameters import Integer, Switch, one_of
from ..model.properties import PropertyValue

NAME, TYPE = r'\s*([^;,"\s]+)\s*', r"\s*([A-Za-z0-9.]+)\s*"
VALUE: Final = r'(\s*"(?:[^"\\]|\\.)*"\s*|[^;,"]*)'  # with its blanks, so that a text fits in one way only
PIECE: Final = re.compile(f"{NAME};{VALUE};{TYPE}(?:,|$)", re.DOTALL)
ESCAPED: Final = re.compile(r'\\(["\\]|u[0-9a-fA-F]{4})')
INTEGERS: Final = {"i1": 8, "i2": 16, "i4": 32, "i8": 64}
SYNONYMS: Final = {
    "byte": "i1",
    "short": "i2",
    "integer": "i4",
    "int": "i4",
    "long": "i8",
    "float": "r4",
    "double": "r8",
}
TRUTH: Final = Switch(("TRUE", "FALSE"))
R4_MAX: Final = 3.4028235e38


def read(headers: Iterable[str]) -> dict[str, PropertyValue]:
    """The properties in all headers of a request. Raises: ValueError, with the mistake."""
    found: dict[str, PropertyValue] = {}
    for header in headers:
        for name, value in _pieces(header):
            if name in found:
                raise ValueError(f"the property {name} is given twice")
            found[name] = value
    return found


def _pieces(header: str) -> Iterator[tuple[str, PropertyValue]]:
    place = 0
    while place < len(header):
        piece = PIECE.match(header, place)
        if piece is None:
            raise ValueError(f'at character {place + 1}: each property is name;value;type, as in color;"red";string')
        name, text, kind = piece.groups()
        kind = SYNONYMS.get(kind.lower(), kind.lower())
        if kind not in READ:
            raise ValueError(f"the type of {name} must be {one_of(READ)}")
        yield name, READ[kind](name, text.strip())
        place = piece.end()


def _boolean(name: str, text: str) -> bool:
    return bool(TRUTH.read(name, text.upper()))


def _integer(bits: int) -> Callable[[str, str], int]:
    return Integer(-(2 ** (bits - 1)), 2 ** (bits - 1) - 1).read


def _real(most: float) -> Callable[[str, str], float]:
    def read_real(name: str, text: str) -> float:
        try:
            value = float(text) if len(text) < 400 and "_" not in text else math.nan
        except ValueError:
            value = math.nan
        if not abs(value) <= most:
            raise ValueError(f"{name} must be a number whose size is at most {most}")
        return value

    return read_real


def _string(name: str, text: str) -> str:
    if text.startswith('"'):
        text = ESCAPED.sub(_meant, text[1:-1])
    try:
        return text.encode("utf-16", "surrogatepass").decode("utf-16")  # joins the halves of a surrogate pair
    except UnicodeDecodeError:
        raise ValueError(f"{name} must be valid text: it has an unpaired surrogate") from None


def _meant(escaped: re.Match[str]) -> str:
    what = escaped[1]
    return what if len(what) == 1 else chr(int(what[1:], 16))


def _bytes(name: str, text: str) -> bytes:
    try:
        return bytes.fromhex(text.strip('"'))
    except ValueError:
        raise ValueError(f"{name} must be bytes in hex") from None


def _null(name: str, text: str) -> None:
    if text:
        raise ValueError(f"{name} must have no value: write {name};;null")


READ: Final[Mapping[str, Callable[[str, str], PropertyValue]]] = {
    "boolean": _boolean,
    **{kind: _integer(bits) for kind, bits in INTEGERS.items()},
    "r4": _real(R4_MAX),
    "r8": _real(1.7976931348623157e308),
    "string": _string,
    "bin.hex": _bytes,
    "null": _null,
}


def written(properties: Mapping[str, PropertyValue]) -> str:
    """Writes properties as one header."""
    return ", ".join(f"{_ascii(name)};{_value(value)}" for name, value in properties.items())


def _value(value: PropertyValue) -> str:
    match value:
        case None:
            return ";null"
        case bool():
            return f"{str(value).upper()};boolean"
        case int():
            kind = next(kind for kind, bits in INTEGERS.items() if -(2 ** (bits - 1)) <= value < 2 ** (bits - 1))
            return f"{value};{kind}"
        case float():
            return f"{value!r};r8"
        case str():
            return f'"{_ascii(value)}";string'
        case bytes():
            return f"{value.hex()};bin.hex"


def _ascii(text: str) -> str:
    """The text in printable ASCII, with other characters escaped as in JSON."""
    if text.isascii() and text.isprintable() and '"' not in text and "\\" not in text:
        return text
    pieces = []
    for one in text:
        if one in '"\\':
            pieces.append(f"\\{one}")
        elif " " <= one <= "~":
            pieces.append(one)
        else:
            halves = one.encode("utf-16-be", "surrogatepass")
            pieces += [f"\\u{halves[n : n + 2].hex()}" for n in range(0, len(halves), 2)]
    return "".join(pieces)
