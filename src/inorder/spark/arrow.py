"""Rows of a store as Arrow record batches: whole columns at a time, never a row.

A store gives pages of rows, as tuples in the order of `BULK_COLUMNS`. `zip` turns a page into columns, Arrow takes each
of them in one call. What is the same for all rows of a slice is a column made of one value. Segments of one logical
message are put together first, if that is asked for; other rows are not touched by it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from operator import itemgetter
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from ..bulk import BULK_COLUMNS, BulkRow
from ..errors import QueueCondition, Reason
from ..message import ANY_SEGMENT, LAST_SEGMENT
from .schema import POSITION, TIME, Body, arrow_schema

BATCH_ROWS, BATCH_BYTES = 8192, 64 * 2**20
AT = {name: index for index, name in enumerate(BULK_COLUMNS)}
FLAGS, OFFSET, BODY, LENGTH = AT["flags"], AT["offset"], AT["body"], AT["length"]
LENGTH_OF = itemgetter(LENGTH)
SAME_MESSAGE = (AT["group_id"], AT["sequence_number"], AT["coded_character_set_id"], AT["encoding"])


class Origin(NamedTuple):
    """What all rows of a slice share.

    Args:
        claim: None: browsed.
        before: messages that were delivered before the claim, or the stretch, within which `delivery` counts from 1.
    """

    queue: str
    claim: int | None
    before: int


def batches(
    pages: Iterable[Sequence[BulkRow]], origin: Origin, *, body: Body = "binary", join: bool = False
) -> Iterator[pa.RecordBatch]:
    """Record batches of the columns of `arrow_schema(body)`, of bounded size.

    Args:
        join: put the segments of a logical message together.

    Raises: QueueCondition 2110, a body that is to be a text is no UTF-8; the message is named.
    """
    schema = arrow_schema(body)
    for rows in _bounded(joined(pages) if join else pages):
        yield record_batch(rows, origin, schema)


def record_batch(rows: Sequence[BulkRow], origin: Origin, schema: pa.Schema) -> pa.RecordBatch:
    """One batch of all these rows."""
    columns = dict(zip(BULK_COLUMNS, zip(*rows, strict=True), strict=True))
    count = len(rows)
    made: dict[str, Callable[[], pa.Array]] = {
        "queue": lambda: _repeated(origin.queue, count, pa.string()),
        "claim": lambda: _repeated(origin.claim, count, pa.int64()),
        "group_position": lambda: _positions(columns),
        "delivery_number": lambda: pc.add(pa.array(columns["delivery"], pa.int64()), origin.before),
        "persistent": lambda: pc.cast(pa.array(columns["persistent"]), pa.bool_()),  # a file keeps 0 and 1
        "put_at": lambda: _times(columns["put_at"]),
        "body": lambda: _bodies(columns, origin.queue, schema.field("body").type),
    }
    arrays = [
        made[field.name]() if field.name in made else _column(columns[field.name], field.type) for field in schema
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _column(values: tuple[Any, ...], kind: pa.DataType) -> pa.Array:
    """Most fields of most messages have their default: to see that costs a fourth of what reading each value does."""
    if values.count(values[0]) == len(values):
        return _repeated(values[0], len(values), kind)
    return pa.array(values, kind)


def _repeated(value: object, count: int, kind: pa.DataType) -> pa.Array:
    return pa.nulls(count, kind) if value is None else pa.repeat(pa.scalar(value, kind), count)


def _positions(columns: dict[str, tuple[Any, ...]]) -> pa.Array:
    parts = [_column(columns[f"group_{field.name}"], field.type) for field in (POSITION.field(n) for n in range(3))]
    fields = [POSITION.field(n) for n in range(3)]
    return pa.StructArray.from_arrays(parts, fields=fields, mask=pc.is_null(parts[0]))


def _times(seconds: tuple[float, ...]) -> pa.Array:
    micros = pc.round(pc.multiply(pa.array(seconds, pa.float64()), 1e6))
    return pc.cast(pc.cast(micros, pa.int64()), TIME)


def _bodies(columns: dict[str, tuple[Any, ...]], queue: str, kind: pa.DataType) -> pa.Array:
    bodies = pa.array(columns["body"], pa.binary())
    if kind == pa.binary():
        return bodies
    try:
        return pc.cast(bodies, pa.string())
    except pa.ArrowInvalid:
        raise _not_a_text(columns, queue) from None


def _not_a_text(columns: dict[str, tuple[Any, ...]], queue: str) -> QueueCondition:
    for row, body in enumerate(columns["body"]):
        try:
            body.decode()
        except UnicodeDecodeError as error:
            message_id, number = columns["message_id"][row], columns["number"][row]
            return QueueCondition(
                f"the body of message {message_id.hex()} (number {number:,} on {queue}) is no UTF-8: byte "
                f"{body[error.start]:#04x} at {error.start:,}. Read with body=binary, and decode it as what it is: "
                f"its format is {columns['format'][row]!r}, its coded_character_set_id "
                f"{columns['coded_character_set_id'][row]}",
                reason=Reason.FORMAT_ERROR,
                message_id=message_id,
                number=number,
            )
    raise AssertionError("Arrow refused what Python takes for UTF-8")


def _bounded(pages: Iterable[Sequence[BulkRow]]) -> Iterator[Sequence[BulkRow]]:
    """The rows in runs of at most `BATCH_ROWS`, and of `BATCH_BYTES` of bodies if there is more than one."""
    for page in pages:
        if len(page) <= BATCH_ROWS and sum(map(LENGTH_OF, page)) <= BATCH_BYTES:
            if page:
                yield page
            continue
        first = size = 0
        for index, row in enumerate(page):
            if index > first and (index - first >= BATCH_ROWS or size + row[LENGTH] > BATCH_BYTES):
                yield page[first:index]
                first, size = index, 0
            size += row[LENGTH]
        yield page[first:]


def joined(pages: Iterable[Sequence[BulkRow]]) -> Iterator[Sequence[BulkRow]]:
    """The same rows, with the segments of a logical message, which follow each other, as one (rules.segmentation).

    Where the character set or the encoding changes within the message, a new row begins (R3.45).
    """
    pieces: list[BulkRow] = []
    for page in pages:
        if not pieces and not any(row[FLAGS] & ANY_SEGMENT for row in page):
            yield page
            continue
        done: list[BulkRow] = []
        for row in page:
            if pieces and not _goes_on(pieces[-1], row):
                done.append(_one(pieces))
                pieces = []
            if not row[FLAGS] & ANY_SEGMENT:
                done.append(row)
                continue
            pieces.append(row)
        yield done
    if pieces:
        yield [_one(pieces)]


def _goes_on(before: BulkRow, row: BulkRow) -> bool:
    return bool(
        row[FLAGS] & ANY_SEGMENT
        and not before[FLAGS] & LAST_SEGMENT
        and row[OFFSET] == before[OFFSET] + before[LENGTH]
        and all(row[at] == before[at] for at in SAME_MESSAGE)
    )


def _one(pieces: Sequence[BulkRow]) -> BulkRow:
    """As `rules.segmentation.join` joins them: the first one's descriptor, "the only segment"."""
    if len(pieces) == 1:
        return pieces[0]
    row = list(pieces[0])
    row[BODY] = b"".join(piece[BODY] for piece in pieces)
    row[LENGTH] = len(row[BODY])
    row[FLAGS] |= pieces[-1][FLAGS] & LAST_SEGMENT
    return tuple(row)


__all__ = ["Origin", "batches", "joined", "record_batch"]
