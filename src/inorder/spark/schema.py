"""The columns of the source, and of every archive: the descriptor as `Message` names it, the body, and where it stood.

There is one schema, as Arrow; Spark's is made from it. Order in Spark exists only inside a partition, so each row
carries its position: `rank, number, ordinal` is its place on the queue, `group_position` the place at which its group
stands, `delivery_number` its turn among all that this reader was given.
"""

from __future__ import annotations

from typing import Literal

import pyarrow as pa
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from ..errors import OptionsError, nearest_names
from .properties import PROPERTIES
from .versions import as_arrow

Body = Literal["binary", "string"]

POSITION = pa.struct([("rank", pa.int32()), ("number", pa.int64()), ("ordinal", pa.int32())])
TIME = pa.timestamp("us", tz="UTC")

PLACE = (  # where it stood
    ("queue", pa.string()),
    ("claim", pa.int64()),  # null: browsed
    ("rank", pa.int32()),  # smaller is earlier
    ("number", pa.int64()),
    ("ordinal", pa.int32()),
    ("group_position", POSITION),  # null: the head of its group is not there
    ("delivery_number", pa.int64()),  # from 1
)
DESCRIPTOR = (
    ("report", pa.int32()),
    ("message_type", pa.int32()),
    ("expiry", pa.float64()),  # seconds left; null: unlimited
    ("feedback", pa.int32()),
    ("encoding", pa.int32()),
    ("coded_character_set_id", pa.int32()),
    ("format", pa.string()),
    ("priority", pa.int32()),
    ("persistent", pa.bool_()),
    ("message_id", pa.binary()),
    ("correlation_id", pa.binary()),  # null: none
    ("reply_to_queue", pa.string()),
    ("reply_to_queue_manager", pa.string()),
    ("user_identifier", pa.string()),
    ("accounting_token", pa.binary()),  # null: none
    ("application_identity_data", pa.string()),
    ("put_application_type", pa.int32()),
    ("put_application_name", pa.string()),
    ("put_at", TIME),
    ("application_origin_data", pa.string()),
    ("group_id", pa.binary()),  # null: in no group, and no segment
    ("sequence_number", pa.int32()),
    ("offset", pa.int32()),
    ("flags", pa.int32()),  # message.Flags
    ("original_length", pa.int32()),
    ("properties", PROPERTIES),  # null: none
)
CONTENT = (
    ("body", pa.binary()),
    ("length", pa.int32()),
    ("backout_count", pa.int32()),
    ("uid_origin", pa.string()),
    ("uid_number", pa.int64()),
)


def arrow_schema(body: Body = "binary") -> pa.Schema:
    """The columns in their order.

    Args:
        body: as which type bodies are given; "string" reads them as UTF-8.
    """
    schema = pa.schema([*PLACE, *DESCRIPTOR, *CONTENT])
    if body == "string":
        schema = schema.set(schema.get_field_index("body"), pa.field("body", pa.string()))
    return schema


def spark_schema(body: Body = "binary") -> StructType:
    """The same as Spark knows it."""
    return from_arrow_schema(arrow_schema(body))


def fitted_schema(asked: StructType, body: Body) -> pa.Schema:
    """The columns that a caller asked for with `.schema(...)`, any of ours in any order, as Spark takes them.

    Raises: OptionsError, a column that is not ours or is of another type.
    """
    ours = {field.name: field.dataType for field in spark_schema(body)}
    for field in asked:
        if field.name not in ours:
            near = nearest_names(field.name, ours)
            hint = f"did you mean {' or '.join(near)}?" if near else f"there are {', '.join(ours)}"
            raise OptionsError(f"schema: the source has no column {field.name!r}; {hint}")
        if field.dataType.simpleString() != ours[field.name].simpleString():
            hint = "; option body=string gives text" if field.name == "body" else ""
            raise OptionsError(
                f"schema: the column {field.name} is {ours[field.name].simpleString()}, not "
                f"{field.dataType.simpleString()}: leave out .schema(...), and cast it after the read{hint}"
            )
    return as_arrow(asked)
