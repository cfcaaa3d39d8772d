"""A property as one word: `NAME=VALUE` is a text, `NAME:TYPE=VALUE` has another type.

===========  =====================================================
`text`       the value as it stands; the type may be left out
`int`        decimal: `count:int=3`
`float`      `weight:float=2.5`
`bool`       `paid:bool=true`, `paid:bool=false`
`bytes`      hexadecimal digits: `key:bytes=00ff`
`none`       no value: `note:none=`
===========  =====================================================
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from ..errors import bad_argument
from ..model.properties import PropertyValue

ALLOWED: Final = "NAME=VALUE or NAME:TYPE=VALUE"


def _bool(text: str) -> bool:
    return {"true": True, "false": False}[text]


def _none(text: str) -> None:
    if text:
        raise ValueError(text)


TYPES: Final[Mapping[str, tuple[Callable[[str], PropertyValue], str]]] = {
    "text": (str, "a text"),
    "int": (int, "an integer"),
    "float": (float, "a number"),
    "bool": (_bool, "true or false"),
    "bytes": (bytes.fromhex, "hexadecimal digits, two for each byte"),
    "none": (_none, "nothing"),
}
TYPE_OF: Final[Mapping[type, str]] = {int: "int", float: "float", bool: "bool"}


def read_property(word: str) -> tuple[str, PropertyValue]:
    """Reads the name and the value of a property. `Properties` checks whether they are allowed.

    Raises ArgumentError for another form, an unknown type, or a value that is not of the type.
    """
    head, equals, value = word.partition("=")
    name, colon, kind = head.partition(":")
    if not equals:
        raise bad_argument("a property", word, ALLOWED)
    if (kind if colon else "text") not in TYPES:
        raise bad_argument(f"the type of the property {name}", kind, f"one of: {', '.join(TYPES)}")
    read, allowed = TYPES[kind if colon else "text"]
    try:
        return name, read(value)
    except (KeyError, ValueError):
        raise bad_argument(f"the property {name}", value, f"{allowed}, because its type is {kind}") from None


def write_property(name: str, value: PropertyValue) -> str:
    """Writes a property as `read_property` reads it."""
    if value is None:
        return f"{name}:none="
    if isinstance(value, str):
        return f"{name}={value}"
    if isinstance(value, bytes):
        return f"{name}:bytes={value.hex()}"
    return f"{name}:{TYPE_OF[type(value)]}={repr(value).lower()}"
