"""Record batches as columns of staged messages: mapped by name, cast and checked a column at a time.

`check_schema` refuses, before anything is written, columns that are not fields of a message or have a type that cannot
be cast. `judge` checks the rows of a batch with Arrow, and returns those that break a rule.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from ..errors import Reason, bad_argument, written
from ..model.fields import GIVEN, Instants, MessageTypes, PropertySets, ReportOptions
from ..model.message import REPLY_NEEDED
from ..model.parameters import Integer, Octets, ParameterKind, Seconds, Text
from ..model.properties import Properties
from ..rules.ordering import PRIORITY_MAX
from ..support.advice import unknown_name
from .properties import FIELD_OF, as_texts
from .schema import PLACE

CHUNK_ROWS, CHUNK_BYTES = 10_000, 16 * 2**20
POSITIONS = frozenset({name for name, _ in PLACE} | {"store", "length", "backout_count", "uid_origin", "uid_number"})
"""Columns of the source that say where a message was: a put makes new values, so these are ignored."""

Check = Callable[[pa.Array], pa.Array]
Given = Literal["integer", "number", "text", "binary", "text or binary", "boolean", "time", "map"]
"""The types that a column may have."""


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a message.

    Args:
        kind: the type it is converted to.
        given: the accepted types: they convert without loss, or each row is checked.
        good: marks the allowed ones among values that are not null; None: all are allowed.
        allowed: the allowed values in words.
    """

    kind: pa.DataType
    given: Given
    good: Check | None = None
    allowed: str = ""


def _between(column: pa.Array, low: float, high: float) -> pa.Array:
    return pc.and_(pc.greater_equal(column, low), pc.less_equal(column, high))


def _in_range(kind: Integer | Seconds, besides: Iterable[float]) -> Check:
    low, high, others = kind.low, kind.high, list(besides)
    if not others:
        return lambda column: _between(column, low, high)
    return lambda column: pc.or_(_between(column, low, high), pc.is_in(column, pa.array(others, column.type)))


def _column(kind: ParameterKind[Any] | None) -> Column:
    """The column of a field of that kind, in which null stands for the queue's default."""
    match kind:
        case ReportOptions():
            low, high, refused = kind.low, kind.high, pa.scalar(kind.refused, pa.int64())
            good: Check = lambda column: pc.and_(  # noqa: E731
                _between(column, low, high), pc.equal(pc.bit_wise_and(column, refused), 0)
            )
            return Column(pa.int64(), "integer", good, kind.allowed)
        case Integer():
            known = kind.known if isinstance(kind, MessageTypes) else ()
            return Column(pa.int64(), "integer", _in_range(kind, known), kind.taking().allowed)
        case Seconds():
            allowed = kind.worded({math.inf: "infinity"})
            given: Given = "time" if isinstance(kind, Instants) else "number"
            return Column(pa.float64(), given, _in_range(kind, allowed.also.values()), allowed.allowed)
        case Text():
            longest = kind.most
            good = lambda column: pc.less_equal(pc.utf8_length(column), longest)  # noqa: E731
            return Column(pa.string(), "text", good, kind.allowed)
        case Octets():
            length = kind.length
            good = lambda column: pc.less_equal(pc.binary_length(column), length)  # noqa: E731
            return Column(pa.binary(), "binary", good, Octets(length).allowed)
        case PropertySets():
            return Column(pa.string(), "map")
        case _:
            return Column(pa.bool_(), "boolean")


COLUMNS: Mapping[str, Column] = {
    **{name: _column(field.kind) for name, field in GIVEN.items() if field.arrow},
    "body": Column(pa.binary(), "text or binary"),
}


# --- checks of the schema


def _is_text(kind: pa.DataType) -> bool:
    return bool(types.is_string(kind) or types.is_large_string(kind))


def _is_binary(kind: pa.DataType) -> bool:
    is_fixed = types.is_fixed_size_binary(kind) and kind.byte_width > 0  # or any number of rows has no bytes
    return bool(types.is_binary(kind) or types.is_large_binary(kind) or is_fixed)


def _is_number(kind: pa.DataType) -> bool:
    return bool(types.is_integer(kind) or types.is_float32(kind) or types.is_float64(kind))


def _is_map(kind: pa.DataType) -> bool:
    if not types.is_map(kind) or not _is_text(kind.key_type):
        return False
    value = kind.item_type
    if not types.is_struct(value):
        return _is_plain(value)
    ours = set(FIELD_OF.values())
    return value.num_fields > 0 and all(field.name in ours and _is_plain(field.type) for field in value)


def _is_plain(kind: pa.DataType) -> bool:
    return _is_text(kind) or _is_binary(kind) or _is_number(kind) or bool(types.is_boolean(kind))


ACCEPTED: Final[Mapping[Given, tuple[Callable[[pa.DataType], bool], str]]] = {
    "integer": (types.is_integer, "an integer"),
    "number": (_is_number, "an integer, float or double"),
    "text": (_is_text, "string or large_string"),
    "binary": (_is_binary, "binary, large_binary or fixed_size_binary"),
    "text or binary": (lambda kind: _is_text(kind) or _is_binary(kind), "binary, string, or a large one of them"),
    "boolean": (types.is_boolean, "bool"),
    "time": (lambda kind: types.is_timestamp(kind) and kind.tz is not None, "timestamp with a time zone"),
    "map": (_is_map, "a map of strings to plain values, or to the structs of the source"),
}
"""For each kind, Arrow's types and their names. Dictionaries, views and run ends are refused, because few bytes of them
can expand to many.
"""


def check_schema(schema: pa.Schema) -> None:
    """Checks that record batches of this schema can be messages; columns that say where a message was are ignored.

    Raises ArgumentError with the column: it is unknown, occurs twice, has another type, or `body` is missing.
    """
    for field in schema:
        if schema.names.count(field.name) > 1:
            raise bad_argument("schema", field.name, "columns of different names", Reason.ARGUMENT_ERROR)
        if field.name in POSITIONS:
            continue
        if field.name not in COLUMNS:
            raise unknown_name("column", field.name, COLUMNS, Reason.ARGUMENT_ERROR)
        is_good, words = ACCEPTED[COLUMNS[field.name].given]
        if not is_good(field.type):
            raise bad_argument(f"column {field.name}", str(field.type), f"of type {words}", Reason.ARGUMENT_ERROR)
    if "body" not in schema.names:
        raise bad_argument("schema", schema.names, "columns with body among them", Reason.ARGUMENT_ERROR)


# --- rows


class Fault(NamedTuple):
    """A row that cannot be a message, and why.

    Args:
        row: its position in the batch, from 0.
    """

    row: int
    why: str


class Judged(NamedTuple):
    """A batch as columns of staged messages.

    Args:
        columns: by the names of `STAGED_COLUMNS`, whole batches; properties as texts of a store. The values in rows
            with a fault are undefined.
        faults: rows that cannot be messages, each once, in order.
        high_priorities: good rows whose priority is above 9, which counts as 9.
    """

    rows: int
    columns: Mapping[str, pa.Array]
    faults: Sequence[Fault]
    high_priorities: int


def judge(batch: pa.RecordBatch) -> Judged:
    """Casts a batch and finds rows that cannot be messages. Raises ArrowInvalid if a value cannot be cast."""
    columns, why = cast_columns(batch)
    return judged_of(batch.num_rows, columns, why)


def cast_columns(
    batch: pa.RecordBatch, without: frozenset[str] = frozenset()
) -> tuple[dict[str, pa.Array], dict[int, str]]:
    """The columns of a batch that are fields of messages, and the rows that cannot be messages, with the reasons.

    Args:
        without: columns to ignore.
    """
    columns: dict[str, pa.Array] = {}
    why: dict[int, str] = {}
    for name, values in zip(batch.schema.names, batch.columns, strict=True):
        if name in COLUMNS and name not in without:
            columns[name], wrong = as_texts(values) if name == "properties" else _judged(name, values)
            for row, text in wrong:
                why.setdefault(row, text)
    for row, text in _wrong_together(columns):
        why.setdefault(row, text)
    return columns, why


def judged_of(rows: int, columns: Mapping[str, pa.Array], why: Mapping[int, str]) -> Judged:
    """Combines the columns and the faults of a batch."""
    faults = [Fault(row, why[row]) for row in sorted(why)]
    return Judged(rows, columns, faults, _high_priorities(columns.get("priority"), why))


def _judged(name: str, values: pa.Array) -> tuple[pa.Array, Iterable[tuple[int, str]]]:
    """A column as it is stored, and the rows whose values are not allowed, with the reasons."""
    column = _cast(name, values)
    return column, _wrong(name, column, values)


def _cast(name: str, values: pa.Array) -> pa.Array:
    kind = COLUMNS[name].kind
    if pa.types.is_timestamp(values.type):
        micros = pc.cast(pc.cast(values, pa.timestamp("us", tz=values.type.tz)), pa.int64())
        return pc.divide(_as_floats(micros), 1e6)
    return _as_floats(values) if kind == pa.float64() else pc.cast(values, kind)


def _as_floats(values: pa.Array) -> pa.Array:
    """Numbers as floats; an integer beyond 2**53, such as the microseconds of the year 2256, becomes the nearest."""
    return pc.cast(values, pa.float64(), safe=False)


def _wrong(name: str, column: pa.Array, given: pa.Array) -> Iterator[tuple[int, str]]:
    if name == "body":
        for row in rows_where(pc.is_null(column)):
            yield row, "body must not be null; it may be empty"
        return
    known = COLUMNS[name]
    if known.good is None:
        return
    for row in rows_where(pc.invert(pc.fill_null(known.good(column), True))):
        value = given[row].cast(pa.string()) if known.given == "time" else given[row]
        yield row, f"{name} must be {known.allowed}, not {written(value.as_py())}"


def _wrong_together(columns: Mapping[str, pa.Array]) -> Iterator[tuple[int, str]]:
    """Checks fields that depend on each other: reply-to queue (2027)."""
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
    for row in rows_where(pc.and_(asks, pc.invert(named))):
        yield row, "reply_to_queue is missing; a request, and a message that asks for reports, needs it"


def _high_priorities(priorities: pa.Array | None, faults: Mapping[int, str]) -> int:
    if priorities is None:
        return 0
    return sum(row not in faults for row in rows_where(pc.greater(priorities, PRIORITY_MAX)))


def value_of(scalar: pa.Scalar) -> Any:
    """A value as Python's; a time or day that Python cannot hold, before the year 1 or after 9999, as a text."""
    try:
        return scalar.as_py()
    except OverflowError:
        return scalar.cast(pa.string()).as_py()


def rows_where(mask: pa.Array) -> list[int]:
    """The positions at which it is true."""
    found: list[int] = pc.indices_nonzero(pc.fill_null(mask, False)).to_pylist()
    return found


def kept(judged: Judged) -> dict[str, Sequence[Any]]:
    """The good rows' columns as Python values; columns that are entirely null are left to the put's defaults."""
    columns = judged.columns
    if judged.faults:
        bad = {fault.row for fault in judged.faults}
        mask = pa.array([row not in bad for row in range(judged.rows)])
        columns = {name: column.filter(mask) for name, column in columns.items()}
    if not len(columns["body"]):
        return {}
    found = {
        name: column.to_pylist()
        for name, column in columns.items()
        if name == "body" or column.null_count < len(column)
    }
    if "properties" in found:
        found["properties"] = [Properties.from_text(text) for text in found["properties"]]
    return found


def chunks(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """Splits a batch into parts with limited rows and bytes."""
    count: int = batch.num_rows
    if not count:
        return
    rows = max(1, min(CHUNK_ROWS, count * CHUNK_BYTES // max(1, batch.nbytes)))
    for first in range(0, count, rows):
        yield batch.slice(first, rows)
