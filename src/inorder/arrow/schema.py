"""The columns of the source, and of every archive: the descriptor as `Message` names it, the body, and the place.

There is one schema; Spark's is made from it. Rows may be read in parallel, so each has its position: `rank, number,
ordinal` is its place on the queue, `group_position` the place of its group, `delivery_number` its number among all
messages delivered to this reader.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import pyarrow as pa

from ..model.fields import GIVEN, Instants, PropertySets
from ..model.parameters import Integer, Octets, ParameterKind, Seconds, Switch, Text
from .properties import PROPERTIES

Body = Literal["binary", "string"]

POSITION = pa.struct([("rank", pa.int32()), ("number", pa.int64()), ("ordinal", pa.int32())])
TIME = pa.timestamp("us", tz="UTC")

PLACE = (  # the place
    ("queue", pa.string()),
    ("claim", pa.int64()),  # null: browsed
    ("rank", pa.int32()),  # smaller is earlier
    ("number", pa.int64()),
    ("ordinal", pa.int32()),
    ("group_position", POSITION),  # null: the head of its group is not on the queue
    ("delivery_number", pa.int64()),  # from 1
)
TYPES: Mapping[type[ParameterKind[Any]], pa.DataType] = {
    Integer: pa.int32(),
    Seconds: pa.float64(),
    Instants: TIME,
    Text: pa.string(),
    Octets: pa.binary(),
    Switch: pa.bool_(),
    PropertySets: PROPERTIES,
}
"""Of the fields of each kind. A value for which stores have NULL is null, and so are no properties."""


def _type_of(kind: ParameterKind[Any] | None) -> pa.DataType:
    return next(TYPES[one] for one in type(kind).__mro__ if one in TYPES)


DESCRIPTOR = tuple((name, _type_of(field.kind)) for name, field in GIVEN.items() if field.arrow and field.remains)
CONTENT = (
    ("body", pa.binary()),
    ("length", pa.int32()),
    ("backout_count", pa.int32()),
    ("uid_origin", pa.string()),
    ("uid_number", pa.int64()),
)


def arrow_schema(body: Body = "binary") -> pa.Schema:
    """The columns in order.

    Args:
        body: the type of bodies; "string" reads them as UTF-8.
    """
    schema = pa.schema([*PLACE, *DESCRIPTOR, *CONTENT])
    if body == "string":
        schema = schema.set(schema.get_field_index("body"), pa.field("body", pa.string()))
    return schema
