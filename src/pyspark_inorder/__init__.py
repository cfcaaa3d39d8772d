"""Makes `spark.read.format("inorder")` known without `inorder.spark.register`.

Spark imports every package whose name begins with pyspark_ when it first meets a format that it does not know, in each
application of an environment that has one. So this is light: it loads `inorder` when somebody uses the format.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSource

if TYPE_CHECKING:
    from pyspark.sql.datasource import (
        DataSourceReader,
        DataSourceStreamReader,
        DataSourceStreamWriter,
        DataSourceWriter,
    )
    from pyspark.sql.types import StructType

__all__ = ["DefaultSource"]


class DefaultSource(DataSource):
    """The format "inorder"; everything else is `inorder.spark.source.InorderSource`."""

    @classmethod
    def name(cls) -> str:
        """The name of the format."""
        return "inorder"

    def schema(self) -> StructType | str:
        """The columns."""
        return self._source().schema()

    def reader(self, schema: StructType) -> DataSourceReader:
        """Browses."""
        return self._source().reader(schema)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802 - Spark's names
        """Drains or browses."""
        return self._source().streamReader(schema)

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        """Appends a data frame."""
        return self._source().writer(schema, overwrite)

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:  # noqa: N802
        """Appends a stream."""
        return self._source().streamWriter(schema, overwrite)

    def _source(self) -> DataSource:
        source: DataSource = import_module("inorder.spark.source").InorderSource(self.options)
        return source
