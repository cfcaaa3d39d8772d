"""Pages of a store as Arrow record batches: whole columns at a time, never a row.

A store gives pages of columns, and Arrow takes each of them in one call. A value that all rows share becomes a constant
column. On request, segments of one logical message are joined first; pages without segments are not affected.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from ..client.bulk import BULK_COLUMNS, BulkPage, BulkRow
from ..errors import QueueCondition, Reason
from ..model.message import ANY_SEGMENT, LAST_SEGMENT, stored_original_length
from .properties import as_maps
from .schema import POSITION, TIME, Body, arrow_schema

BATCH_ROWS, BATCH_BYTES = 8192, 64 * 2**20
AT = {name: index for index, name in enumerate(BULK_COLUMNS)}
FLAGS, OFFSET, BODY, LENGTH = AT["flags"], AT["offset"], AT["body"], AT["length"]
MESSAGE_TYPE, ORIGINAL_LENGTH = AT["message_type"], AT["original_length"]
SAME_MESSAGE = (AT["group_id"], AT["sequence_number"], AT["coded_character_set_id"], AT["encoding"])


class Origin(NamedTuple):
    """The values that all rows of a slice share.

    Args:
        claim: None: browsed.
        before: messages that were delivered earlier in the claim, or in the browsed range, where `delivery` counts from
            1.
    """

    queue: str
    claim: int | None
    before: int


def batches(
    pages: Iterable[BulkPage], origin: Origin, *, body: Body = "binary", join: bool = False
) -> Iterator[pa.RecordBatch]:
    """Makes record batches with the columns of `arrow_schema(body)`, of limited size.

    Args:
        join: join the segments of a logical message.

    Raises QueueCondition 2110 if a body that should become a text is not UTF-8; the error names the message.
    """
    schema = arrow_schema(body)
    for page in joined(pages) if join else pages:
        if page:
            yield from _bounded(record_batch(page, origin, schema))


def record_batch(page: BulkPage, origin: Origin, schema: pa.Schema) -> pa.RecordBatch:
    """Makes one batch of all rows of a page."""
    made: dict[str, Callable[[], pa.Array]] = {
        "queue": lambda: _repeated(origin.queue, len(page), pa.string()),
        "claim": lambda: _repeated(origin.claim, len(page), pa.int64()),
        "group_position": lambda: _positions(page),
        "delivery_number": lambda: pc.add(_column(page, "delivery", pa.int64()), origin.before),
        "properties": lambda: as_maps(page.column("properties")),
        "put_at": lambda: _times(_column(page, "put_at", pa.float64())),
        "body": lambda: _bodies(page, origin.queue, schema.field("body").type),
    }
    arrays = [made[one.name]() if one.name in made else _column(page, one.name, one.type) for one in schema]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _column(page: BulkPage, name: str, kind: pa.DataType) -> pa.Array:
    if name in page.shared:
        return _repeated(page.shared[name], len(page), kind)
    if kind == pa.bool_():
        return pc.cast(pa.array(page.columns[name]), kind)  # a file stores 0 and 1
    return pa.array(page.columns[name], kind)


def _repeated(value: object, count: int, kind: pa.DataType) -> pa.Array:
    return pa.nulls(count, kind) if value is None else pa.repeat(pa.scalar(value).cast(kind), count)


def _positions(page: BulkPage) -> pa.Array:
    fields = [POSITION.field(n) for n in range(3)]
    parts = [_column(page, f"group_{field.name}", field.type) for field in fields]
    return pa.StructArray.from_arrays(parts, fields=fields, mask=pc.is_null(parts[0]))


def _times(seconds: pa.Array) -> pa.Array:
    return pc.cast(pc.cast(pc.round(pc.multiply(seconds, 1e6)), pa.int64()), TIME)


def _bodies(page: BulkPage, queue: str, kind: pa.DataType) -> pa.Array:
    bodies = _column(page, "body", pa.binary())
    if kind == pa.binary():
        return bodies
    try:
        return pc.cast(bodies, pa.string())
    except pa.ArrowInvalid:
        raise _not_a_text(page, queue) from None


def _not_a_text(page: BulkPage, queue: str) -> QueueCondition:
    for row in page:
        one = dict(zip(BULK_COLUMNS, row, strict=True))
        body, message_id, number = one["body"], one["message_id"], one["number"]
        try:
            body.decode()
        except UnicodeDecodeError as error:
            return QueueCondition(
                f"the body of message {message_id.hex()} (number {number:,} on {queue}) is not UTF-8: byte "
                f"{body[error.start]:#04x} at {error.start:,}. Read with body=binary, and decode it accordingly: "
                f"its format is {one['format']!r}, its coded_character_set_id {one['coded_character_set_id']}",
                reason=Reason.FORMAT_ERROR,
                message_id=message_id,
                number=number,
            )
    raise AssertionError("Arrow refused text that Python accepts as UTF-8")


def _bounded(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """Splits into runs of at most `BATCH_ROWS` rows, and of `BATCH_BYTES` of bodies if there is more than one row."""
    lengths = batch.column("length")
    if batch.num_rows <= BATCH_ROWS and pc.sum(lengths).as_py() <= BATCH_BYTES:
        yield batch
        return
    first = size = 0
    for row, length in enumerate(lengths.to_pylist()):
        if row > first and (row - first >= BATCH_ROWS or size + length > BATCH_BYTES):
            yield batch.slice(first, row - first)
            first, size = row, 0
        size += length
    yield batch.slice(first)


def joined(pages: Iterable[BulkPage]) -> Iterator[BulkPage]:
    """Joins the segments of each logical message, which follow each other, into one row (rules.segmentation).

    If the character set or the encoding changes within the message, a new row begins (R3.45).
    """
    pieces: list[BulkRow] = []
    for page in pages:
        if not pieces and not _has_segments(page):
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
        yield BulkPage.of_rows(done)
    if pieces:
        yield BulkPage.of_rows([_one(pieces)])


def _has_segments(page: BulkPage) -> bool:
    flags = [page.shared["flags"]] if "flags" in page.shared else page.columns["flags"]
    return any(one & ANY_SEGMENT for one in flags)


def _goes_on(before: BulkRow, row: BulkRow) -> bool:
    return bool(
        row[FLAGS] & ANY_SEGMENT
        and not before[FLAGS] & LAST_SEGMENT
        and row[OFFSET] == before[OFFSET] + before[LENGTH]
        and all(row[at] == before[at] for at in SAME_MESSAGE)
    )


def _one(pieces: Sequence[BulkRow]) -> BulkRow:
    """Joins like `rules.segmentation.join`: the first piece's descriptor, "the only segment"."""
    if len(pieces) == 1:
        return pieces[0]
    row = list(pieces[0])
    row[BODY] = b"".join(piece[BODY] for piece in pieces)
    row[LENGTH] = len(row[BODY])
    row[FLAGS] |= pieces[-1][FLAGS] & LAST_SEGMENT
    row[ORIGINAL_LENGTH] = stored_original_length(row[MESSAGE_TYPE], row[FLAGS], row[ORIGINAL_LENGTH], row[LENGTH])
    return tuple(row)
