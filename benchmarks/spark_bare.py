"""The bare reader that a queue's source is compared with: one statement over the store's tables, as Arrow batches."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice

import apsw
import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from inorder.spark.schema import CONTENT, DESCRIPTOR
from inorder.stores.sql.codec import NARROW
from inorder.stores.sql.descriptors import KEPT

PARTITIONS, ROWS = 2, 8192
NOT_STORED = frozenset("backout_count uid_origin uid_number length message_id put_at expiry".split())
COLUMNS = [(name, kind) for name, kind in (*DESCRIPTOR, *CONTENT) if name not in NOT_STORED]
SCHEMA = pa.schema([("id", pa.int64()), *COLUMNS])
BARE = (
    "SELECT m.id, {columns} FROM message m CROSS JOIN content c ON c.id = m.id WHERE m.id BETWEEN ? AND ? ORDER BY m.id"
)


class Range(InputPartition):
    """Numbers of messages."""

    def __init__(self, first: int, last: int) -> None:
        self.first, self.last = first, last


class BareSource(DataSource):
    """The tables of a store, without any of its rules."""

    @classmethod
    def name(cls) -> str:
        return "bare"

    def schema(self) -> StructType:
        return from_arrow_schema(SCHEMA)

    def reader(self, schema: StructType) -> BareReader:
        return BareReader(self.options)


class BareReader(DataSourceReader):
    """Reads ranges of numbers."""

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
        columns = ", ".join(_column(name) for name, _ in COLUMNS)
        connection = self._connection()
        found = connection.execute(BARE.replace("{columns}", columns), (partition.first, partition.last))
        while rows := list(islice(found, ROWS)):
            values = zip(*rows, strict=True)
            arrays = [
                pa.array(column, pa.int64()).cast(pa.bool_()) if pa.types.is_boolean(field.type)
                else pa.array(column, field.type)
                for column, field in zip(values, SCHEMA, strict=True)
            ]  # fmt: skip
            yield pa.RecordBatch.from_arrays(arrays, schema=SCHEMA)
        connection.close()


def _column(name: str) -> str:
    """A field of a message, as SQL."""
    if name not in KEPT:
        return f'{"m" if name in NARROW else "c"}."{name}"'
    place, default = list(KEPT).index(name), KEPT[name]
    value = f"c.descriptor ->> '$[{place}]'"
    return f"unhex({value})" if default is None else f"coalesce({value}, {default!r})"
