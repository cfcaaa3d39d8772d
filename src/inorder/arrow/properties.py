"""Properties in Arrow, and in Spark: a map of names to values, each a struct that has a field for each type.

::

    properties['colour'].string = 'red'      properties['count'].long > 3

One of the fields has the value, which also shows its type: an integer of 64 bits is read back as one, and not as the
float or the text that it would become in a map of one type. A property without a value is null. Plain maps of one type
are accepted as well, `map('colour', colour)`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import pyarrow as pa

from ..errors import InorderError
from ..model.properties import Properties, PropertyValue, decoded

FIELD_OF: Final[Mapping[type, str]] = {str: "string", int: "long", float: "double", bool: "boolean", bytes: "binary"}
VALUE: Final = pa.struct(
    [
        ("string", pa.string()),
        ("long", pa.int64()),
        ("double", pa.float64()),
        ("boolean", pa.bool_()),
        ("binary", pa.binary()),
    ]
)
PROPERTIES: Final = pa.map_(pa.string(), VALUE)
ALLOWED: Final = "a map of texts to values, such as map('colour', colour), or to the structs of the source"


def as_maps(texts: Sequence[str | None]) -> pa.Array:
    """Makes a column of type PROPERTIES from texts of a store."""
    return pa.array([None if text is None else as_pairs(decoded(text)) for text in texts], PROPERTIES)


def as_pairs(properties: Mapping[str, PropertyValue]) -> list[tuple[str, dict[str, PropertyValue] | None]]:
    """The properties of a message as a value of that column."""
    return [(name, None if value is None else {FIELD_OF[type(value)]: value}) for name, value in properties.items()]


def properties_of(pairs: Sequence[tuple[str, Any]] | None) -> Properties:
    """Reads properties from a value of such a column. Raises ArgumentError; ValueError with the reason."""
    return Properties.from_text(None) if not pairs else Properties({name: _plain(name, value) for name, value in pairs})


def _plain(name: str, value: Any) -> PropertyValue:
    if not isinstance(value, Mapping):
        found: PropertyValue = value
        return found
    given = [(field, one) for field, one in value.items() if one is not None]
    if len(given) > 1:
        raise ValueError(f"the property {name!r} has several values: {', '.join(field for field, _ in given)}")
    return given[0][1] if given else None


def as_texts(column: pa.Array) -> tuple[pa.Array, list[tuple[int, str]]]:
    """Makes texts of a store from such a column; also the rows where that is impossible, with the reasons."""
    texts: list[str | None] = []
    faults: list[tuple[int, str]] = []
    for row, pairs in enumerate(column.to_pylist()):
        text = None
        try:
            text = properties_of(pairs).text
        except (InorderError, ValueError) as wrong:
            faults.append((row, str(wrong.args[0])))
        texts.append(text)
    return pa.array(texts, pa.string()), faults
