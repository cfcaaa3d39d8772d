"""Arrow IPC streams: turns record batches into staged messages, and pages of a store into record batches."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import pyarrow as pa
from pyarrow import ipc

from ..client.bulk import BulkPage, Slice, Stager
from ..errors import ArgumentError, Reason
from .columns import Fault, check_schema, chunks, judge, kept
from .framing import Broken, Frame
from .pages import Origin, batches
from .schema import arrow_schema

Sign = Callable[[int, dict[str, Sequence[Any]]], Mapping[str, Sequence[Any]]]


def schema_of(frame: Frame) -> pa.Schema:
    """Reads the schema of a stream. Raises Broken; ArgumentError if its record batches cannot be messages."""
    with _readable():
        schema = ipc.read_schema(pa.py_buffer(frame.data))
        names = schema.names
    del names  # they are UTF-8
    check_schema(schema)
    return schema


def staged(frames: Sequence[Frame], schema: pa.Schema, stager: Stager, before: int, *, sign: Sign) -> int:
    """Stages the rows of record batches; returns how many.

    Args:
        before: rows of the stream before these, for errors.
        sign: adds the putter to the columns, given the number of rows.

    Raises Broken; ArgumentError if a row is not a message; errors of `Stager.stage`.
    """
    rows = 0
    for batch in _joined(frames, schema):
        for chunk in chunks(batch):
            with _readable():
                judged = judge(chunk)
            if judged.faults:
                raise _bad_row(judged.faults, before + rows)
            stager.stage(chunk.num_rows, sign(chunk.num_rows, kept(judged)))
            rows += chunk.num_rows
    return rows


def head() -> bytes:
    """The schema of bulk reads, as the beginning of a stream."""
    return bytes(arrow_schema().serialize())


def parts(page: BulkPage, queue: str, part: Slice) -> Iterator[bytes]:
    """Record batches of a page of a claim, as parts of a stream."""
    for batch in batches([page], Origin(queue, part.claim, part.delivered)):
        yield bytes(batch.serialize())


def _joined(frames: Iterable[Frame], schema: pa.Schema) -> list[pa.RecordBatch]:
    """The record batches, with small ones combined."""
    with _readable():
        found = [ipc.read_record_batch(pa.py_buffer(one.data), schema) for one in frames]
        for one in found:
            one.validate(full=True)
        if len(found) < 2:
            return found
        joined: list[pa.RecordBatch] = pa.Table.from_batches(found, schema).combine_chunks().to_batches()
        return joined


@contextmanager
def _readable() -> Iterator[None]:
    """Raises Broken if pyarrow cannot read or cast."""
    try:
        yield
    except (pa.ArrowException, OSError, ValueError, KeyError, TypeError, OverflowError) as error:
        raise Broken(f"Arrow cannot read it: {error}") from None


def _bad_row(faults: Sequence[Fault], before: int) -> Exception:
    first = faults[0]
    more = f", and {len(faults) - 1:,} more rows" if len(faults) > 1 else ""
    number = before + first.row + 1
    text = f"row {number:,}: {first.why}{more}"
    return ArgumentError(text, reason=Reason.ARGUMENT_ERROR, argument="row", value=number, allowed="a message")
