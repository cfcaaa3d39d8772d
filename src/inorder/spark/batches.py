"""Converts rows of Python values to record batches of limited size, and back."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import pyarrow as pa

BATCH_ROWS, BATCH_BYTES = 4096, 8 * 2**20


def in_batches(rows: Iterable[tuple[Any, ...]], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Packs rows into record batches; the rows have the order of the schema's columns, one of which is `body`."""
    body = schema.get_field_index("body")
    some: list[tuple[Any, ...]] = []
    size = 0
    for row in rows:
        some.append(row)
        size += len(row[body])
        if len(some) >= BATCH_ROWS or size >= BATCH_BYTES:
            yield batch_of(some, schema)
            some, size = [], 0
    if some:
        yield batch_of(some, schema)


def batch_of(rows: list[tuple[Any, ...]], schema: pa.Schema) -> pa.RecordBatch:
    """Packs all rows into one record batch."""
    columns = [pa.array(values, field.type) for values, field in zip(zip(*rows, strict=True), schema, strict=True)]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def rows_of(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[Any, ...]]:
    """The rows of record batches, as they arrive."""
    for batch in batches:
        yield from zip(*(column.to_pylist() for column in batch.columns), strict=True)
