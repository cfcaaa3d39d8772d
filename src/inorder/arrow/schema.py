"""The columns of the source, and of every archive: the descriptor as `Message` names it, the body, and the place.

There is one schema; Spark's is made from it. Rows may be read in parallel, so each has its position: `rank, number,
ordinal` is its place on the queue, `group_position` the place of its group, `delivery_number` its number among all
messages delivered to this reader.
"""

from __future__ import annotations

from typing import Literal

import pyarrow as pa

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
    """The columns in order.

    Args:
        body: the type of bodies; "string" reads them as UTF-8.
    """
    schema = pa.schema([*PLACE, *DESCRIPTOR, *CONTENT])
    if body == "string":
        schema = schema.set(schema.get_field_index("body"), pa.field("body", pa.string()))
    return schema


__all__ = ["CONTENT", "DESCRIPTOR", "PLACE", "POSITION", "TIME", "Body", "arrow_schema"]
