"""Properties of a message: names, values, and the text in which a store keeps them.

Names follow MQ's rules: parts of letters, digits, `_` and `$`, joined by dots, case-sensitive. A value is a bool, an
integer of 64 bits, a finite float, a text, bytes, or None, which gives a name without a value.

A store keeps all properties of a message as one text, or NULL if it has none: a JSON object sorted by name, without
blanks. Bytes, which JSON lacks, are a list that holds their hex digits as one text. Every value is read back with the
same type and, for floats, the same bits. Equal properties give equal texts, so a database can search in the text with
its own functions to narrow a selection. `Properties` keeps the text and parses it on first use.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from json.encoder import encode_basestring
from math import isfinite
from typing import Any, Final

from ..errors import PropertyNotAvailable, Reason, bad_argument, nearest_names, written
from .parameters import is_storable

PropertyValue = bool | int | float | str | bytes | None
"""The types of a property's value."""

NAME_LENGTH_MAX: Final = 4_095  # MQ_MAX_PROPERTY_NAME_LENGTH
LENGTH_MAX: Final = 65_536  # bytes of all names and values as they are stored
INTEGER_MIN, INTEGER_MAX = -(2**63), 2**63 - 1
# The keywords of selectors, which no name may be, in any case.
RESERVED: Final = frozenset("NULL TRUE FALSE NOT AND OR BETWEEN LIKE IN IS ESCAPE".split())
# The one name beginning with JMS that does not stand for a field of the message.
JMS_TYPE: Final = "JMSType"
# The characters that may begin a part of a name, and continue it: Java's identifiers without invisible characters.
BEGINS: Final = frozenset("Lu Ll Lt Lm Lo Nl Sc Pc".split())
FOLLOWS: Final = BEGINS | frozenset("Nd Mn Mc".split())
BASIC_PLANE_END: Final = "\uffff"


def is_reserved(name: str) -> bool:
    """Whether this is a keyword of selectors, in any case; letters that only `upper()` turns into one do not count."""
    return name.isascii() and name.upper() in RESERVED


def fault_of_name(name: str) -> tuple[Reason, str] | None:
    """Why this cannot be the name of a property: MQ's reason, and the allowed names, to be read after "must be". None
    if it can.
    """
    if not 1 <= len(name) <= NAME_LENGTH_MAX:
        return Reason.PROPERTY_NAME_LENGTH_ERR, f"of 1 to {NAME_LENGTH_MAX:,} characters"
    fault = next((allowed for is_wrong, allowed in _NAME_RULES if is_wrong(name)), None)
    return None if fault is None else (Reason.PROPERTY_NAME_ERROR, fault)


def _is_no_identifier(name: str) -> bool:
    return not all(_is_part(part) for part in name.split("."))


def _is_part(part: str) -> bool:
    if not part or max(part) > BASIC_PLANE_END:
        return False
    first, *rest = map(unicodedata.category, part)
    return first in BEGINS and FOLLOWS.issuperset(rest)


def _has_folders_of_mq(name: str) -> bool:
    folded = name.casefold()
    return folded.startswith("mq") and not folded.startswith("mq_usr") and name.count(".") > 1


_NAME_RULES: tuple[tuple[Callable[[str], bool], str], ...] = (
    (_is_no_identifier, "parts of letters, digits, _ and $, joined by dots, no part beginning with a digit"),
    (is_reserved, "no keyword of selectors"),
    (lambda name: name.startswith("usr."), "written without usr., which MQ leaves out itself"),
    (
        lambda name: name.startswith("JMS") and name != JMS_TYPE,
        "one that does not begin with JMS: give the message's own field, such as correlation_id or group_id",
    ),
    (
        lambda name: name.partition(".")[0] in {"Root", "Body"},
        "one outside Root and Body: give a field of the message by its own name, such as priority",
    ),
    (_has_folders_of_mq, "one with a single dot, because it begins with mq and not with mq_usr"),
)


@lru_cache(4_096)
def _key(name: str) -> str:
    """Checks a name and writes it in its stored form."""
    if not isinstance(name, str):
        raise bad_argument("the name of a property", name, "a text", Reason.PROPERTY_NAME_ERROR)
    if fault := fault_of_name(name):
        reason, allowed = fault
        raise bad_argument("the name of a property", name, allowed, reason)
    return f"{encode_basestring(name)}:"


@lru_cache(256)
def _in_order(names: tuple[str, ...]) -> tuple[list[tuple[str, str]], bool]:
    """Sorts names and gives each its key; also whether any has folders. Cached, because names recur."""
    try:
        ordered = sorted(names)
    except TypeError:  # one of them is not a text; it is refused later
        ordered = list(names)
    keys = [(name, _key(name)) for name in ordered]
    return [(str.__str__(name), key) for name, key in keys], any("." in name for name in names)


def _bad_value(name: str, value: object, allowed: str) -> Exception:
    return bad_argument(f"property {written(name)}", value, allowed, Reason.PROPERTY_TYPE_ERROR)


def _plain(name: str, value: Any) -> PropertyValue:
    """Converts the value to one of the plain types."""
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int):
        if not INTEGER_MIN <= value <= INTEGER_MAX:
            raise _bad_value(name, value, "an integer of 64 bits, from -2**63 to 2**63 - 1")
        return int(value)
    if isinstance(value, float):
        if not isfinite(value):
            raise _bad_value(name, value, "a finite number")
        return float(value)
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, bytes | bytearray | memoryview):
        try:
            return bytes(value)
        except ValueError:
            raise _bad_value(name, value, "bytes, not a memoryview that was released") from None
    raise _bad_value(name, value, "a bool, an integer, a float, a text, bytes or None")


def _written(value: PropertyValue) -> str:
    """Writes a plain value in its stored form."""
    if isinstance(value, str):
        return encode_basestring(value)
    if isinstance(value, bytes):
        return f'["{value.hex()}"]'
    return "null" if value is None else repr(value).lower()


def encoded(properties: Mapping[str, PropertyValue]) -> tuple[dict[str, PropertyValue], str | None]:
    """Checks properties and returns them sorted by name, with the text that a store keeps; None if there are none.

    Raises:
        ArgumentError: for a bad name (2442, 2513), a name that continues another (2498), a bad value (2473), or more
            than 65,536 bytes (2478).
    """
    if type(properties) is not dict and not isinstance(properties, Mapping):
        raise bad_argument("properties", properties, "a mapping of names to values")
    value: Any
    values: dict[str, PropertyValue] = {}
    pieces = []
    ordered, has_folders = _in_order(tuple(properties))
    for name, key in ordered:
        value = properties[name]
        kind = type(value)
        if kind is str:
            pieces.append(key + encode_basestring(value))
        elif (kind is int and INTEGER_MIN <= value <= INTEGER_MAX) or (kind is float and isfinite(value)):
            pieces.append(f"{key}{value!r}")  # repr of a float is the shortest text that is read back as the same bits
        else:
            value = _plain(name, value)
            pieces.append(key + _written(value))
        values[name] = value
    if not pieces:
        return values, None
    text = f"{{{','.join(pieces)}}}"
    if has_folders:
        _check_folders(values)
    if JMS_TYPE in values and not isinstance(values[JMS_TYPE], str | None):
        raise _bad_value(JMS_TYPE, values[JMS_TYPE], "a text, as JMS has it")
    _check_length(values, text)
    return values, text


def _check_folders(values: Mapping[str, PropertyValue]) -> None:
    for name in values:
        folder = name
        while "." in folder:
            folder = folder.rpartition(".")[0]
            if folder in values:
                allowed = f"one that does not continue another property's name, {written(folder)}"
                raise bad_argument("the name of a property", name, allowed, Reason.MIXED_CONTENT_NOT_ALLOWED)


def _check_length(values: Mapping[str, PropertyValue], text: str) -> None:
    try:
        length = len(text) if text.isascii() else len(text.encode())
    except UnicodeEncodeError:  # a lone surrogate, which UTF-8 cannot encode
        name = next(name for name, value in values.items() if isinstance(value, str) and not is_storable(value))
        raise _bad_value(name, values[name], "a text of whole characters") from None
    if length > LENGTH_MAX:
        allowed = f"at most {LENGTH_MAX:,} bytes together"
        raise bad_argument("properties", f"{length:,} bytes", allowed, Reason.PROPERTIES_TOO_BIG)


def _no_constant(text: str) -> float:
    raise ValueError(f"{text} is not a value of a property")


_read = json.JSONDecoder(parse_constant=_no_constant).raw_decode


def decoded(text: str) -> dict[str, PropertyValue]:
    """Reads the properties from a stored text. Raises ValueError if `encoded` did not write it."""
    try:
        values, end = _read(text)
        if "[" in text:
            for name, value in values.items():
                if type(value) is list:
                    values[name] = bytes.fromhex(*value)
    except (AttributeError, TypeError, RecursionError) as error:
        raise ValueError(f"no properties: {error}") from None
    if end != len(text) or type(values) is not dict:
        raise ValueError("no properties")
    return values


def is_encoded(text: str) -> bool:
    """Whether `encoded` wrote this text exactly: for a check that looks for damage."""
    try:
        return encoded(decoded(text))[1] == text
    except ValueError:
        return False


_STRING = r'"(?:[^"\\\x00-\x1f]|\\["\\bfnrt]|\\u00[01][0-9a-f])*"'
_NUMBER = r"-?[0-9]{1,19}(?:\.[0-9]{1,17})?(?:e[+-][0-9]{2,3})?"
_VALUE = rf'(?:{_STRING}|{_NUMBER}|true|false|null|\["(?:[0-9a-f]{{2}})*"\])'
_PAIR = rf'"[^"\\\x00-\x1f]+":{_VALUE}'
_has_form = re.compile(rf"\{{{_PAIR}(?:,{_PAIR})*\}}").fullmatch


def is_readable(text: str) -> bool:
    """Whether `decoded` can read this text; it does not read all of it."""
    return len(text) <= LENGTH_MAX and _has_form(text) is not None


class Properties(Mapping[str, PropertyValue]):
    """The properties of one message, sorted by name. They never change.

    Args:
        given: names and values.

    Raises:
        ArgumentError: 2442, 2513 for a name; 2498 for a name that continues another; 2473 for a value of a type that
            properties cannot have; 2478 for more than 65,536 bytes.
    """

    __slots__ = ("_text", "_values")
    _text: str | None
    _values: dict[str, PropertyValue] | None

    def __init__(self, given: Mapping[str, PropertyValue]) -> None:
        self._values, self._text = encoded(given)

    @classmethod
    def from_text(cls, text: str | None) -> Properties:
        """Makes properties from the text that a store kept; it is parsed on first use."""
        if text is None:
            return NO_PROPERTIES
        properties: Properties = object.__new__(cls)
        properties._text, properties._values = text, None
        return properties

    @property
    def text(self) -> str | None:
        """The text that a store keeps; None if there are no properties."""
        return self._text

    def __getitem__(self, name: str) -> PropertyValue:
        values = self._read()
        try:
            return values[name]
        except KeyError:
            near = nearest_names(name, values) if isinstance(name, str) else []
            hint = f": did you mean {' or '.join(near)}?" if near else ""
            text = f"the message has no property {written(name)}{hint}"
            raise PropertyNotAvailable(text, property=name, nearest=near) from None

    def get(self, name: str, default: Any = None) -> Any:
        """The value, or the default if there is no such name."""
        return self._read().get(name, default)

    def __contains__(self, name: object) -> bool:
        return name in self._read()

    def __iter__(self) -> Iterator[str]:
        return iter(self._read())

    def __len__(self) -> int:
        return 0 if self._text is None else len(self._read())

    def _read(self) -> dict[str, PropertyValue]:
        values = self._values
        if values is None:
            values = self._values = decoded(self._text or "")
        return values

    def __hash__(self) -> int:
        return hash(frozenset(self._read().items()))

    def __reduce__(self) -> tuple[Callable[[str | None], Properties], tuple[str | None]]:
        return Properties.from_text, (self._text,)

    def __repr__(self) -> str:
        return f"Properties({self._read()!r})"


NO_PROPERTIES: Final = Properties({})
