"""Stores the part of a descriptor that is mostly the same for all messages of a program as one text, followed by the
properties.

It is a JSON array without blanks, with a value for each field in the order of KEPT. Default values at its end are
omitted, so that the usual text has only a program and its user. The accounting token is in hexadecimal, or null if all
of it is NUL. A transmission is a list of its two names, or null. The same values always have the same text, so that a
match can compare texts. Values that no caller could have given are refused when a text is read. The latest conversions
are cached in both directions.

A message with properties has all of those values, including defaults, followed by the properties on a separate line::

    ["app","ann",6,0,"","",8,"",0,0,546,"","",null,null,
    {"colour":"red","count":3}]

JSON text contains no line breaks, so the two parts are separated without decoding, and the first part is cached as
before. The properties have a fixed position, where a statement finds them.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping
from typing import Any, Final

from ...errors import ArgumentError
from ...model.fields import GIVEN, NO_ACCOUNTING, NONE, Transmission
from ...model.properties import Properties, is_encoded, is_readable

FIELDS: Final = tuple(name for name, field in GIVEN.items() if field.text is not None)
_PLACES = {name: field.text for name, field in GIVEN.items() if field.text is not None}
KEPT: Final[Mapping[str, object]] = {
    name: None if name in NONE else GIVEN[name].default for name in sorted(FIELDS, key=lambda name: _PLACES[name])
} | {"encoding": 546}
"""The fields in the order of a text, with their defaults, the same on every machine. Those that rarely have their
defaults come first.

The accounting token must be the last, because a list at the end would look like the end of the text.
"""
LENGTH_MAX: Final = 4096  # the length of a text without properties: more than any values of callers can need
BETWEEN: Final = ",\n"  # between the values and the properties
REMEMBERED: Final = 1024
_ORDER = [FIELDS.index(name) for name in KEPT]
_BACK = [list(KEPT).index(name) for name in FIELDS]
_DEFAULTS = list(KEPT.values())

Values = tuple[Any, ...]  # of FIELDS; the accounting token is None if all of it is NUL


@functools.lru_cache(maxsize=REMEMBERED)
def as_text(values: Values) -> str:
    """Returns the text of these values of FIELDS; an accounting token of 32 NULs is accepted, too."""
    kept = _in_order(values)
    while kept and kept[-1] == _DEFAULTS[len(kept) - 1]:
        kept.pop()
    return _as_json(kept)


@functools.lru_cache(maxsize=REMEMBERED)
def begun_text(values: Values) -> str:
    """Returns the text if properties follow: all values, without the end."""
    return _as_json(_in_order(values))[:-1]


def with_properties(values: Values, properties: Properties) -> str:
    """Returns the text of these values and properties."""
    text = properties.text
    return as_text(values) if text is None else f"{begun_text(values)}{BETWEEN}{text}]"


def _in_order(values: Values) -> list[Any]:
    return [_as_kept(name, values[index]) for name, index in zip(KEPT, _ORDER, strict=True)]


def _as_json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _as_kept(name: str, value: Any) -> Any:
    if name != "accounting_token":
        return value
    return None if value is None or value == NO_ACCOUNTING else value.hex()


def parts_of(text: str) -> tuple[str, str | None]:
    """Splits a text into the part for `values_of` and the text of the properties, whose form is checked.

    Raises: ValueError, if the properties cannot have been written.
    """
    begun, between, properties = text.partition(BETWEEN)
    if not between:
        return text, None
    if properties[-1:] != "]" or not is_readable(properties[:-1]):
        raise ValueError("its properties cannot be read")
    return begun, properties[:-1]


def check(text: str) -> None:
    """Checks all of a text, which takes longer than reading it.

    Raises: one of `damage.DECODING`, if it cannot have been written.
    """
    begun, properties = parts_of(text)
    values_of(begun)
    if properties is not None and not is_encoded(properties):
        raise ValueError("its properties cannot be read")


@functools.lru_cache(maxsize=REMEMBERED)
def values_of(text: str) -> Values:
    """Returns the values of a text, or of its first part. Raises: one of `damage.DECODING`, if it cannot have been
    written.
    """
    is_begun = not text.endswith("]")
    found = json.loads(f"{text}]" if is_begun else text) if len(text) <= LENGTH_MAX else None
    if type(found) is not list or len(found) > len(KEPT):
        raise ValueError(f"it is not a list of {len(KEPT)} values or fewer")
    values = [_checked(name, value) for name, value in zip(KEPT, found, strict=False)] + _DEFAULTS[len(found) :]
    made = tuple([values[index] for index in _BACK])
    if (begun_text(made) if is_begun else as_text(made)) != text:  # a match compares texts
        raise ValueError("the same values have another text")
    return made


def _checked(name: str, value: Any) -> Any:
    if name == "accounting_token":
        return None if value is None else _token(value)
    if name == "transmission":
        return None if value is None else _transmission(value)
    if _kept(name, value) != value:
        raise ValueError(f"{name} cannot be {value!r:.60}")
    return value


def _kept(name: str, value: Any) -> Any:
    kind = GIVEN[name].kind
    assert kind is not None, name
    try:
        return kind.check(name, value)
    except ArgumentError as error:
        raise ValueError(error.args[0]) from error


def _token(text: str) -> bytes:
    token = bytes.fromhex(text)
    if len(token) != len(NO_ACCOUNTING) or token == NO_ACCOUNTING or token.hex() != text:
        raise ValueError(f"accounting_token cannot be {text!r:.60}")
    return token


def _transmission(names: list[str]) -> Transmission:
    kept: Transmission | None = _kept("transmission", tuple(names))
    if kept is None or list(kept) != names:
        raise ValueError(f"transmission cannot be {names!r:.120}")
    return kept


# --- in statements

PROPERTIES: Final = f"c.descriptor -> '$[{len(KEPT)}]'"
"""The properties of a message, as SQL: their text; NULL if there are none."""


def column(name: str) -> str:
    """Returns SQL for one of FIELDS: the text of its value."""
    return f"coalesce(c.descriptor -> '$[{list(KEPT).index(name)}]', '{_as_json(KEPT[name])}')"


def compared(name: str, value: object) -> str:
    """Returns the value of `column` for a field with this value."""
    return _as_json(_as_kept(name, value))
