"""The format "inorder": the class that Spark calls first, which chooses the reader or writer."""

from __future__ import annotations

from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    DataSourceStreamWriter,
    DataSourceWriter,
)
from pyspark.sql.types import StructType

from ..errors import OptionsError
from .browse import BrowseReader, BrowseStreamReader, FilteringReader
from .drain import DrainReader
from .opening import check_queue, store_for_task
from .options import SourceOptions, check_source, sink_options, source_options
from .schema import fitted_schema, spark_schema
from .sink import BatchWriter, RowStreamWriter, StreamWriter, refuse_overwrite
from .source_queues import check_source_queues
from .versions import FILTERS_SINCE, HAS_STREAM_ARROW_WRITER, STREAMS_SINCE, need

FORMAT = "inorder"


class InorderSource(DataSource):
    """Queues as source and sink; `inorder.spark.register` registers it with a session. Options: `options.OPTIONS`.

    `schema` opens the stores to check the options, when a frame or view is made. A reader checks them again with the
    connections that its plan needs, so it opens no store for that.
    """

    @classmethod
    def name(cls) -> str:
        """The name of the format."""
        return FORMAT

    def schema(self) -> StructType:
        """The columns. Spark asks for them early, so errors in the options, or a missing store, are found here."""
        options = check_source(self.options)
        check_store(options)
        return spark_schema(options.body, several=options.is_several)

    def reader(self, schema: StructType) -> DataSourceReader:
        """Browses. Raises OptionsError for options, and for a column that it does not have; drain is for streams."""
        options = source_options(self.options, "batch read")
        if options.mode == "drain":
            raise OptionsError(
                "spark.read cannot drain a queue: Spark never tells a batch read that its rows are safe, so that a "
                "failed job would lose them. Drain with spark.readStream and .trigger(availableNow=True), which ends "
                "when the queue has been read, or browse with mode=browse, which removes nothing"
            )
        if options.pushdown:
            need(FILTERS_SINCE, "option pushdown", "or leave it out: Spark then filters the rows itself")
        columns = fitted_schema(schema, options.body, several=options.is_several)
        return (FilteringReader if options.pushdown else BrowseReader)(options, columns)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802 - Spark's name
        """Drains or browses. Spark calls this in two processes for each query, so nothing is started here."""
        need(STREAMS_SINCE, "a stream from a queue", "a batch read in mode=browse works with older ones")
        options = source_options(self.options, "stream read")
        columns = fitted_schema(schema, options.body, several=options.is_several)
        return (DrainReader if options.mode == "drain" else BrowseStreamReader)(options, columns)

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        """Appends a data frame."""
        refuse_overwrite(overwrite)
        return BatchWriter(sink_options(self.options, "batch write"), schema)

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:  # noqa: N802
        """Appends a stream."""
        refuse_overwrite(overwrite)
        options = sink_options(self.options, "stream write")
        return StreamWriter(options, schema) if HAS_STREAM_ARROW_WRITER else RowStreamWriter(options, schema)


def check_store(options: SourceOptions) -> None:
    """Raises StoreError, UnknownQueue or WrongQueueType, with the reason, if there is nothing to read."""
    if options.is_several:
        check_source_queues(options)
        return
    with store_for_task(options.url, options.application, is_check=True) as qm:
        check_queue(qm, options.queue)
