"""The smallest stream for which Python can be the source: generated rows, all offered at once."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, SupportsTriggerAvailableNow
from pyspark.sql.types import StructType

from inorder.spark.schema import arrow_schema

PARTITIONS = 2
LEAST = arrow_schema("binary")
SIZE = 1024


class LeastSource(DataSource):
    """A stream of numbers and bodies that ends; the option `rows` is their number."""

    @classmethod
    def name(cls) -> str:
        return "least"

    def schema(self) -> StructType:
        return from_arrow_schema(LEAST)

    def streamReader(self, schema: StructType) -> LeastReader:  # noqa: N802 - Spark's name
        return LeastReader(int(self.options["rows"]))


class Rows(InputPartition):
    """The number of rows that a task makes."""

    def __init__(self, count: int) -> None:
        self.count = count


class LeastReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Offers all its rows at once."""

    def __init__(self, rows: int) -> None:
        self._rows = rows

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802 - Spark's names, here and below
        return {"row": 0}

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:  # noqa: N802
        del start, limit
        return {"row": self._rows}

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        return ReadAllAvailable()

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        pass

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        count = end["row"] - start["row"]
        return [Rows((count + number) // PARTITIONS) for number in range(PARTITIONS)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, Rows)
        values = {"queue": "Q", "put_at": 0, "body": os.urandom(SIZE)}
        arrays = [pa.array([values.get(field.name)] * partition.count, field.type) for field in LEAST]
        yield pa.RecordBatch.from_arrays(arrays, schema=LEAST)
