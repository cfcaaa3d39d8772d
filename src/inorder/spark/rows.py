"""Columns of a data frame as columns of staged messages: mapped by name, cast and checked a column at a time.

What cannot be a message at all, a column that is none of a message's or has a type that no cast makes right, is refused
before anything is written. Single rows are judged with the batch at hand, by Arrow: `judge` says for each rule which
rows break it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

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

from ..errors import OptionsError, nearest_names
from ..field_checks import EXPIRY_SECONDS_MAX, ID_LENGTH, NUMBER_MAX, REPORT_REJECT_MASK
from ..message import ANY_SEGMENT, REPLY_NEEDED, REPORT_GENERATED, SEGMENT, SEGMENTATION_ALLOWED
from .options import SinkOptions
from .properties import ALLOWED, as_texts, is_map
from .schema import DESCRIPTOR, PLACE

PRIORITY_MAX = 9
INT_MAX = 2**31 - 1
POSITIONS = frozenset({name for name, _ in PLACE} | {"length", "backout_count", "uid_origin", "uid_number"})
"""Columns of the source that say where a message was: a put gives new ones, so the sink passes over them."""

INTEGERS = (ByteType, ShortType, IntegerType, LongType)
NUMBERS = (*INTEGERS, FloatType, DoubleType)
MADE_BY_GROUPS = ("group_id", "sequence_number", "offset")
TEXTS = (StringType, CharType, VarcharType)
KEYS = (*NUMBERS, *TEXTS, BinaryType, BooleanType, DateType, TimestampType, TimestampNTZType)

Check = Callable[[pa.Array], pa.Array]


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a message.

    Args:
        kind: what it becomes.
        accepts: Spark types that become that without loss, or that each row is checked for.
        good: for each value that is not null whether a message may have it.
        allowed: the same in words.
        remedy: what to do about another type.
    """

    kind: pa.DataType
    accepts: tuple[type[DataType], ...]
    good: Check | None
    allowed: str
    remedy: str


def _integer(low: int, high: int) -> Column:
    return Column(
        pa.int64(), INTEGERS, lambda column: _between(column, low, high), f"{low:,} to {high:,}", "cast it to int"
    )


def _checked_integer(good: Check, allowed: str) -> Column:
    return Column(pa.int64(), INTEGERS, good, allowed, "cast it to int")


def _seconds(high: float, low: float = 0.0, allowed: str = "") -> Column:
    words = allowed or f"seconds from {low:,g} to {high:,.1f}"
    return Column(
        pa.float64(), NUMBERS, lambda column: _between(column, low, high), words, "cast it to double, in seconds"
    )


def _text(length: int) -> Column:
    return Column(
        pa.string(),
        TEXTS,
        lambda column: pc.less_equal(pc.utf8_length(column), length),
        f"at most {length} characters",
        "cast it to string",
    )


def _octets(length: int) -> Column:
    return Column(
        pa.binary(),
        (BinaryType,),
        lambda column: pc.less_equal(pc.binary_length(column), length),
        f"at most {length} bytes",
        "make it binary: unhex(...) of hexadecimal digits, encode(..., 'UTF-8') of a text",
    )


def _between(column: pa.Array, low: float, high: float) -> pa.Array:
    return pc.and_(pc.greater_equal(column, low), pc.less_equal(column, high))


def _is_expiry(column: pa.Array) -> pa.Array:
    return pc.or_(_between(column, 0.1, EXPIRY_SECONDS_MAX), pc.equal(column, float("inf")))


def _is_message_type(column: pa.Array) -> pa.Array:
    known = pc.is_in(column, value_set=pa.array([1, 2, 4, 8], pa.int64()))
    return pc.or_(known, _between(column, 65536, NUMBER_MAX))


def _is_report(column: pa.Array) -> pa.Array:
    refused = pc.bit_wise_and(column, pa.scalar(REPORT_REJECT_MASK | REPORT_GENERATED, pa.int64()))
    return pc.and_(_between(column, 0, INT_MAX), pc.equal(refused, 0))


COLUMNS: Mapping[str, Column] = {
    "report": _checked_integer(_is_report, "report options that are supported"),
    "message_type": _checked_integer(_is_message_type, "1, 2, 4, 8, or 65,536 to 999,999,999"),
    "expiry": Column(
        pa.float64(),
        NUMBERS,
        _is_expiry,
        f"seconds from 0.1 to {EXPIRY_SECONDS_MAX:,.1f}, or infinity",
        "cast it to double",
    ),
    "feedback": _integer(0, NUMBER_MAX),
    "encoding": _integer(0, INT_MAX),
    "coded_character_set_id": _integer(-4, INT_MAX),
    "format": _text(8),
    "priority": _integer(0, NUMBER_MAX),
    "persistent": Column(pa.bool_(), (BooleanType,), None, "", "cast it to boolean"),
    "message_id": _octets(ID_LENGTH),
    "correlation_id": _octets(ID_LENGTH),
    "reply_to_queue": _text(48),
    "reply_to_queue_manager": _text(48),
    "user_identifier": _text(12),
    "accounting_token": _octets(32),
    "application_identity_data": _text(32),
    "put_application_type": _integer(-1, INT_MAX),
    "put_application_name": _text(28),
    "put_at": Column(
        pa.float64(),
        (TimestampType,),
        lambda column: _between(column, 0, 253402300799),
        "a time from 1970 to 9999",
        "cast it to timestamp",
    ),
    "application_origin_data": _text(4),
    "group_id": _octets(ID_LENGTH),
    "sequence_number": _integer(1, NUMBER_MAX),
    "offset": _integer(0, NUMBER_MAX),
    "flags": _integer(0, 31),
    "original_length": _integer(-1, NUMBER_MAX),
    "delay": _seconds(EXPIRY_SECONDS_MAX),
    "properties": Column(pa.string(), (MapType,), None, "", f"make it {ALLOWED}"),
    "body": Column(pa.binary(), (BinaryType, *TEXTS), None, "", "cast it to string, or make it binary"),
}
assert {name for name, _ in DESCRIPTOR} <= COLUMNS.keys()


def check_columns(schema: StructType, options: SinkOptions) -> None:
    """Whether a data frame of these columns can be messages.

    Raises: OptionsError, naming the column and what to do: it is unknown, has a wrong type, or is missing.
    """
    keys = {"groupBy": options.group_by, "orderBy": options.order_by}
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
        is_key = field.name in keys.values()
        if is_key and not isinstance(field.dataType, KEYS):
            raise OptionsError(
                f"the column {field.name!r} is {field.dataType.simpleString()}, by which messages cannot be ordered or "
                "grouped: cast it to a number, string, binary, date or timestamp"
            )
        _check_column(field.name, field.dataType, is_key)
    if "body" not in names:
        raise OptionsError(
            f"the data frame has no column 'body', it has {', '.join(names) or 'none'}: a message needs one. Name it "
            "so, for example .withColumn('body', to_json(struct('*'))), and drop what is then in it"
        )
    if options.group_by is not None:
        _check_own_groups(names, options)


def _check_column(name: str, kind: DataType, is_key: bool) -> None:
    known = COLUMNS.get(name)
    if known is None:
        if is_key or name in POSITIONS:
            return
        near = nearest_names(name, COLUMNS)
        hint = f"did you mean {' or '.join(near)}? Else drop" if near else "drop"
        raise OptionsError(
            f"the column {name!r} is not a field of a message; {hint} it, .drop({name!r}), or put it into the body. "
            f"Fields are {', '.join(COLUMNS)}"
        )
    if not isinstance(kind, known.accepts) or (name == "properties" and not is_map(kind)):
        raise OptionsError(
            f"the column {name!r} is {kind.simpleString()}, which is no {name} of a message: {known.remedy}"
        )


def _only_keys(options: SinkOptions) -> frozenset[str]:
    """Fields that are only a key here: what groupBy makes again may be made by what it was before."""
    if options.group_by is None:
        return frozenset()
    return frozenset(MADE_BY_GROUPS) & {options.group_by, options.order_by}


def _check_own_groups(names: Sequence[str], options: SinkOptions) -> None:
    own = [name for name in MADE_BY_GROUPS if name in names and name not in _only_keys(options)]
    if own:
        raise OptionsError(
            f"groupBy makes groups and numbers them, and the data frame has {', '.join(own)} of its own: drop "
            f"{'them' if len(own) > 1 else 'it'}, or leave out groupBy"
        )


class Fault(NamedTuple):
    """A row that is not a message, and why.

    Args:
        row: its place in the batch, from 0.
    """

    row: int
    why: str


class Judged(NamedTuple):
    """A batch as columns of staged messages.

    Args:
        columns: by the names of `STAGED_COLUMNS`, whole batches; properties as texts of a store. Of a row with a
            fault they hold anything.
        faults: rows that are not messages, each once, in order.
        high_priorities: good rows whose priority is above 9, which counts as 9.
    """

    rows: int
    columns: Mapping[str, pa.Array]
    faults: Sequence[Fault]
    high_priorities: int


def judge(batch: pa.RecordBatch, options: SinkOptions) -> Judged:
    """Casts a batch and looks for rows that are not messages."""
    columns: dict[str, pa.Array] = {}
    why: dict[int, str] = {}
    only_keys = _only_keys(options)
    for name, values in zip(batch.schema.names, batch.columns, strict=True):
        if name in COLUMNS and name not in only_keys:
            columns[name], wrong = as_texts(values) if name == "properties" else _judged(name, values)
            for row, text in wrong:
                why.setdefault(row, text)
    if options.group_by is not None and "flags" in columns:
        for row in _rows(_is_part(columns["flags"])):
            why.setdefault(row, "it is a segment, and groupBy numbers whole messages: read with joinSegments=true")
        columns["flags"] = pc.bit_wise_and(columns["flags"], pa.scalar(SEGMENTATION_ALLOWED, pa.int64()))
    for row, text in _wrong_together(columns):
        why.setdefault(row, text)
    for name, option in (("group_key", options.group_by), ("order_key", options.order_by)):
        if option is not None:
            columns[name] = as_key(batch.column(option))
            for row in _rows(_is_nan(columns[name])):
                why.setdefault(row, f"{option} is not a number, by which nothing can be ordered or grouped")
    faults = [Fault(row, why[row]) for row in sorted(why)]
    return Judged(batch.num_rows, columns, faults, _high_priorities(columns.get("priority"), why))


def _is_part(flags: pa.Array) -> pa.Array:
    bits = pc.bit_wise_and(flags, pa.scalar(ANY_SEGMENT, pa.int64()))
    return pc.equal(bits, SEGMENT)


def _judged(name: str, values: pa.Array) -> tuple[pa.Array, Iterable[tuple[int, str]]]:
    """A column as it is kept, and the rows that cannot be one, each with why."""
    column = _cast(name, values)
    return column, _wrong(name, column, values)


def _cast(name: str, values: pa.Array) -> pa.Array:
    kind = COLUMNS[name].kind
    if pa.types.is_timestamp(values.type):
        micros = pc.cast(pc.cast(values, pa.timestamp("us", tz=values.type.tz)), pa.int64())
        return pc.divide(pc.cast(micros, pa.float64()), 1e6)
    return pc.cast(values, kind)


def _wrong(name: str, column: pa.Array, given: pa.Array) -> Iterator[tuple[int, str]]:
    if name == "body":
        for row in _rows(pc.is_null(column)):
            yield row, "body is null; an empty one is good"
        return
    known = COLUMNS[name]
    if known.good is None:
        return
    for row in _rows(pc.invert(pc.fill_null(known.good(column), True))):
        value = given[row].as_py()
        shown = repr(value) if len(repr(value)) <= 60 else f"{repr(value)[:57]}..."
        yield row, f"{name} is {shown}, and must be {known.allowed}"


def _wrong_together(columns: Mapping[str, pa.Array]) -> Iterator[tuple[int, str]]:
    """What no column can tell alone: reply-to queue (2027)."""
    kinds, reports = columns.get("message_type"), columns.get("report")
    if kinds is None and reports is None:
        return
    count = len(columns["body"])
    asks = pa.repeat(pa.scalar(False), count)
    if kinds is not None:
        asks = pc.or_(asks, pc.fill_null(pc.equal(kinds, 1), False))
    if reports is not None:
        bits = pc.bit_wise_and(reports, pa.scalar(REPLY_NEEDED, pa.int64()))
        asks = pc.or_(asks, pc.fill_null(pc.not_equal(bits, 0), False))
    queues = columns.get("reply_to_queue")
    named = pa.repeat(pa.scalar(False), count) if queues is None else pc.fill_null(pc.not_equal(queues, ""), False)
    for row in _rows(pc.and_(asks, pc.invert(named))):
        yield row, "reply_to_queue is missing; a request, and a message that asks for reports, needs it"


def _high_priorities(priorities: pa.Array | None, faults: Mapping[int, str]) -> int:
    if priorities is None:
        return 0
    return sum(row not in faults for row in _rows(pc.greater(priorities, PRIORITY_MAX)))


def _rows(mask: pa.Array) -> list[int]:
    """Where it is true."""
    found: list[int] = pc.indices_nonzero(pc.fill_null(mask, False)).to_pylist()
    return found


def _is_nan(column: pa.Array) -> pa.Array:
    if pa.types.is_floating(column.type):
        return pc.is_nan(column)
    return pa.repeat(pa.scalar(False), len(column))


def as_key(column: pa.Array) -> pa.Array:
    """A column as keys that a store can line up: integers, floats, texts or bytes, in the same order."""
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


__all__ = ["COLUMNS", "POSITIONS", "Fault", "Judged", "as_key", "check_columns", "judge"]
