"""The bare reader with which a queue's source is compared: one statement over the store's tables, as Arrow batches.

It is the fastest simple reader: plain columns in the order of the key; each distinct descriptor is decoded once; a
column of equal values is made from one value. It does without the promises of a queue: order and groups, limits,
claims, and the check of each row with its checksum.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

import apsw
import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from inorder.arrow.schema import CONTENT, DESCRIPTOR
from inorder.stores.sql.codec import IN_CONTENT
from inorder.stores.sql.descriptors import FIELDS as DESCRIBED
from inorder.stores.sql.descriptors import values_of

PARTITIONS, ROWS, ROWS_AT_ONCE = 2, 8192, 256
NOT_STORED = frozenset("backout_count uid_origin uid_number length message_id put_at expiry properties".split())
COLUMNS = [(name, kind) for name, kind in (*DESCRIPTOR, *CONTENT) if name not in NOT_STORED]
SCHEMA = pa.schema([("id", pa.int64()), *COLUMNS])
STORED = ["id", "descriptor", *(name for name, _ in COLUMNS if name not in DESCRIBED)]
WIDE = IN_CONTENT | {"descriptor", "body"}
_SELECTED = ", ".join(f'{"c" if name in WIDE else "m"}."{name}"' for name in STORED)
BARE = f"SELECT {_SELECTED} FROM message m CROSS JOIN content c ON c.id = m.id WHERE m.id BETWEEN ? AND ? ORDER BY m.id"


class Range(InputPartition):
    """A range of message numbers."""

    def __init__(self, first: int, last: int) -> None:
        self.first, self.last = first, last


class BareSource(DataSource):
    """Reads the tables of a store, without its rules."""

    @classmethod
    def name(cls) -> str:
        return "bare"

    def schema(self) -> StructType:
        return from_arrow_schema(SCHEMA)

    def reader(self, schema: StructType) -> BareReader:
        return BareReader(self.options)


class BareReader(DataSourceReader):
    """Reads ranges of message numbers."""

    def __init__(self, options: Mapping[str, str]) -> None:
        self._path = options["path"]

    def _connection(self) -> apsw.Connection:
        return apsw.Connection(self._path, flags=apsw.SQLITE_OPEN_READONLY)

    def partitions(self) -> Sequence[InputPartition]:
        connection = self._connection()
        first, last = next(connection.execute("SELECT min(id), max(id) FROM message"))
        connection.close()
        step = -(-(last - first + 1) // PARTITIONS)
        return [Range(at, at + step - 1) for at in range(first, last + 1, step)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, Range)
        connection = self._connection()
        found = connection.execute(BARE, (partition.first, partition.last))
        while columns := _columns(islice(found, ROWS)):
            yield pa.RecordBatch.from_arrays(_arrays(columns), schema=SCHEMA)
        connection.close()


def _columns(found: Iterator[tuple[Any, ...]]) -> list[list[Any]]:
    """Returns some rows as columns, few enough to escape the garbage collector; none if there are no more."""
    columns: list[list[Any]] = []
    while rows := list(islice(found, ROWS_AT_ONCE)):
        columns = columns or [[] for _ in STORED]
        for column, values in zip(columns, zip(*rows, strict=True), strict=True):
            column.extend(values)
    return columns


def _arrays(columns: Sequence[list[Any]]) -> list[pa.Array]:
    """Decodes each distinct descriptor once."""
    found = dict(zip(STORED, columns, strict=True))
    texts = found.pop("descriptor")
    described = {text: values_of(text) for text in set(texts)}
    for name, *values in zip(DESCRIBED, *described.values(), strict=True):
        found[name] = (
            values * len(texts) if len(values) == 1 else list(map(dict(zip(described, values, strict=True)).get, texts))
        )
    return [_array(found[field.name], field.type) for field in SCHEMA]


def _array(values: list[Any], kind: pa.DataType) -> pa.Array:
    if values[0] == values[-1] and values.count(values[0]) == len(values):
        return (
            pa.nulls(len(values), kind)
            if values[0] is None
            else pa.repeat(pa.scalar(values[0]).cast(kind), len(values))
        )
    return pa.array(values).cast(kind) if kind == pa.bool_() else pa.array(values, kind)
