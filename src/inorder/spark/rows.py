"""Turns columns of a data frame into columns of staged messages, with the keys that order and group them.

Columns that are not fields of a message, or have a type that cannot be cast, are refused before anything is written.
Single rows are checked batch by batch (`arrow.columns`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.types import (
    BinaryType,
    BooleanType,
    ByteType,
    CharType,
    DataType,
    DateType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    MapType,
    ShortType,
    StringType,
    StructType,
    TimestampNTZType,
    TimestampType,
    VarcharType,
)

from ..arrow.columns import COLUMNS, POSITIONS, Given, Judged, cast_columns, judged_of, rows_where
from ..arrow.properties import ALLOWED, FIELD_OF
from ..errors import OptionsError, nearest_names
from ..model.message import ANY_SEGMENT, SEGMENT, SEGMENTATION_ALLOWED
from ..support.advice import translated
from .options import SinkOptions

INTEGERS = (ByteType, ShortType, IntegerType, LongType)
NUMBERS = (*INTEGERS, FloatType, DoubleType)
MADE_BY_GROUPS = ("group_id", "sequence_number", "offset")
TEXTS = (StringType, CharType, VarcharType)
KEYS = (*NUMBERS, *TEXTS, BinaryType, BooleanType, DateType, TimestampType, TimestampNTZType)
PLAIN = (*TEXTS, BooleanType, *NUMBERS, BinaryType)
ACCEPTED: Final[Mapping[Given, tuple[tuple[type[DataType], ...], str]]] = {
    "integer": (INTEGERS, "cast it to int"),
    "number": (NUMBERS, "cast it to double, in seconds"),
    "text": (TEXTS, "cast it to string"),
    "binary": ((BinaryType,), "make it binary: unhex(...) of hexadecimal digits, encode(..., 'UTF-8') of a text"),
    "text or binary": ((BinaryType, *TEXTS), "cast it to string, or make it binary"),
    "boolean": ((BooleanType,), "cast it to boolean"),
    "time": ((TimestampType,), "cast it to timestamp"),
    "map": ((MapType,), f"make it {ALLOWED}"),
}
"""Spark's types for each kind, and the advice about other types."""


def check_columns(schema: StructType, options: SinkOptions) -> None:
    """Checks that a data frame with these columns can become messages.

    Raises OptionsError with the column and the remedy: it is unknown, has a wrong type, or is missing.
    """
    targets = {"queueColumn": options.queue_column, "storeColumn": options.store_column}
    keys = {"groupBy": options.group_by, "orderBy": options.order_by} | targets
    names = [field.name for field in schema]
    for option, name in keys.items():
        if name is not None and name not in names:
            near = nearest_names(name, names)
            hint = f"did you mean {' or '.join(near)}?" if near else f"there are {', '.join(names)}"
            raise OptionsError(f"option {option} names a column {name!r}, which the data frame does not have; {hint}")
    for field in schema:
        if names.count(field.name) > 1:
            raise OptionsError(
                f"the data frame has {names.count(field.name)} columns {field.name!r}: rename or drop one"
            )
        for option, name in targets.items():
            if field.name == name and not isinstance(field.dataType, TEXTS):
                raise OptionsError(
                    f"option {option} names the column {name!r}, which is {field.dataType.simpleString()}: cast it to "
                    f"string, the name of a {option.removesuffix('Column')}"
                )
        is_key = field.name in keys.values()
        if is_key and not isinstance(field.dataType, KEYS):
            raise OptionsError(
                f"the column {field.name!r} is {field.dataType.simpleString()}, which cannot order or group messages: "
                "cast it to a number, string, binary, date or timestamp"
            )
        _check_column(field.name, field.dataType, is_key)
    if "body" not in names:
        raise OptionsError(
            f"the data frame has no column 'body', it has {', '.join(names) or 'none'}: a message needs one. Name it "
            "so, for example .withColumn('body', to_json(struct('*'))), and drop the columns that are then in it"
        )
    if options.group_by is not None:
        _check_own_groups(names, options)


def _check_column(name: str, kind: DataType, is_key: bool) -> None:
    known = COLUMNS.get(name)
    if known is None:
        if is_key or name in POSITIONS:
            return
        if told := translated(name, COLUMNS):
            raise OptionsError(f"the column {name!r} is not a field of a message; it must be {told}")
        near = nearest_names(name, COLUMNS)
        hint = f"did you mean {' or '.join(near)}? Otherwise drop" if near else "drop"
        raise OptionsError(
            f"the column {name!r} is not a field of a message; {hint} it, .drop({name!r}), or put it into the body. "
            f"Fields are {', '.join(COLUMNS)}"
        )
    accepted, remedy = ACCEPTED[known.given]
    if not isinstance(kind, accepted) or (name == "properties" and not is_map(kind)):
        raise OptionsError(
            f"the column {name!r} is {kind.simpleString()}, which a message's {name} cannot be: {remedy}"
        )


def _only_keys(options: SinkOptions) -> frozenset[str]:
    """Fields that serve only as a key here: groupBy makes new values for a field, and may use its old values as the
    key.
    """
    if options.group_by is None:
        return frozenset()
    return frozenset(MADE_BY_GROUPS) & {options.group_by, options.order_by}


def _check_own_groups(names: Sequence[str], options: SinkOptions) -> None:
    own = [name for name in MADE_BY_GROUPS if name in names and name not in _only_keys(options)]
    if own:
        raise OptionsError(
            f"groupBy makes groups and numbers them, and the data frame already has {', '.join(own)}: drop "
            f"{'them' if len(own) > 1 else 'it'}, or leave out groupBy"
        )


def is_map(kind: DataType) -> bool:
    """Whether the sink accepts a column of this type."""
    if not isinstance(kind, MapType) or not isinstance(kind.keyType, TEXTS):
        return False
    value = kind.valueType
    if not isinstance(value, StructType):
        return isinstance(value, PLAIN)
    ours = set(FIELD_OF.values())
    return bool(value.fields) and all(field.name in ours and isinstance(field.dataType, PLAIN) for field in value)


def judge(batch: pa.RecordBatch, options: SinkOptions) -> Judged:
    """Casts a batch, with its keys, and finds rows that cannot be messages."""
    columns, why = cast_columns(batch, _only_keys(options))
    if options.group_by is not None and "flags" in columns:
        for row in rows_where(_is_part(columns["flags"])):
            why.setdefault(row, "it is a segment, and groupBy numbers whole messages: read with joinSegments=true")
        columns["flags"] = pc.bit_wise_and(columns["flags"], pa.scalar(SEGMENTATION_ALLOWED, pa.int64()))
    for name, option in (("group_key", options.group_by), ("order_key", options.order_by)):
        if option is not None:
            columns[name] = as_key(batch.column(option))
            for row in rows_where(_is_nan(columns[name])):
                why.setdefault(row, f"{option} is not a number (NaN), which cannot order or group messages")
    return judged_of(batch.num_rows, columns, why)


def _is_part(flags: pa.Array) -> pa.Array:
    bits = pc.bit_wise_and(flags, pa.scalar(ANY_SEGMENT, pa.int64()))
    return pc.equal(bits, SEGMENT)


def _is_nan(column: pa.Array) -> pa.Array:
    if pa.types.is_floating(column.type):
        return pc.is_nan(column)
    return pa.repeat(pa.scalar(False), len(column))


def as_key(column: pa.Array) -> pa.Array:
    """Converts a column to keys that a store can sort: integers, floats, texts or bytes, in the same order."""
    kind = column.type
    if pa.types.is_timestamp(kind):
        return pc.cast(pc.cast(column, pa.timestamp("us", tz=kind.tz)), pa.int64())
    if pa.types.is_date(kind):
        return pc.cast(pc.cast(column, pa.int32()), pa.int64())
    if pa.types.is_boolean(kind) or pa.types.is_integer(kind):
        return pc.cast(column, pa.int64())
    if pa.types.is_floating(kind):
        return pc.cast(column, pa.float64())
    return column
