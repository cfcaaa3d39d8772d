"""The source in browse mode for several queues and stores: batches and streams.

An offset of a stream has, for each queue, the token and stretches that an offset of one queue has; see `browse`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition

from ..client.bulk import BulkBrowser
from ..errors import OptionsError, QueueDeleted, UnknownQueue
from ..rules.ordering import UNSET
from .browse import (
    BrowseReader,
    FilteringReader,
    Offset,
    StreamPosition,
    StretchPartition,
    changed,
    check_continues,
    column_of,
    matches,
    partitions_of,
    read_partition,
)
from .options import NO_LIMIT, STORE, SourceOptions
from .planning import BatchLimits, limits
from .source_queues import SourceQueue, SourceQueuePartition, Stores, packed, slices_of, with_store, without_store
from .versions import ReadLimit, SupportsTriggerAvailableNow


def read_several(options: SourceOptions, partition: InputPartition, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Reads the stretches of a task, one queue after the other."""
    assert isinstance(partition, SourceQueuePartition)
    for source, part in partition.parts:
        for batch in read_partition(source.options(options), part, without_store(schema)):
            yield with_store(batch, schema, source.url)


class SeveralBrowseReader(BrowseReader):
    """A batch that browses several queues."""

    def partitions(self) -> Sequence[InputPartition]:
        options, stores = self._options, Stores(self._options)
        try:
            there = {key: one for key, one in stores.look().items() if one.is_chosen and one.depth}
            seen = {key: one for key, one in there.items() if self._may_pass(one.source)}
            slices = slices_of({key: one.depth for key, one in seen.items()}, options.partitions)

            def survey(key: str, source: SourceQueue) -> list[StretchPartition]:
                with stores.queue(source, browse=True) as queue:
                    found = BulkBrowser(queue).survey(options.wanted, slices=slices[key])
                return partitions_of(found.stretches, source.made, 0)

            surveyed = stores.each({key: one.source for key, one in seen.items()}, survey)
        finally:
            stores.close()
        parts = [(seen[key].source, part, part.messages) for key in seen for part in surveyed[key]]
        return packed(parts, options.partitions) or [SourceQueuePartition([])]  # Spark wants at least one

    def _may_pass(self, source: SourceQueue) -> bool:
        """Whether rows of a queue can pass the filters on the columns `store` and `queue`; the others are not read."""
        row = pa.record_batch({STORE: [source.url], "queue": [source.queue]})
        filters = (one for one in self._filters if column_of(one) in row.schema.names)
        return all(matches(one, row)[0].as_py() for one in filters)

    def rows(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return read_several(self._options, partition, self._schema)


class SeveralFilteringReader(SeveralBrowseReader, FilteringReader):
    """The same, and it accepts filters."""


class SeveralBrowseStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """A stream that browses several queues, each strictly."""

    def __init__(self, options: SourceOptions, schema: pa.Schema) -> None:
        self._options = options
        self._schema = schema
        self._stores = Stores(options)
        self._counters: dict[str, int] | None = None  # of each queue, when an AvailableNow run was prepared
        self._served: dict[str, int] = {}
        self._turn = 0

    def initialOffset(self) -> Offset:  # noqa: N802 - Spark's names, here and below
        """The beginning of all queues."""
        return {"queues": {}}

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        """The limit from the options, of all queues together."""
        return BatchLimits.default(self._options)

    def latestOffset(self, start: Offset, limit: ReadLimit) -> Offset:  # noqa: N802
        """The offset after the present messages, within the limit; `start` if there are none."""
        before, asked = positions_of(start), limits(limit, self._options)
        seen = self._stores.look()
        wanted = [
            key
            for key, one in seen.items()
            if one.is_chosen and one.depth and (self._counters is None or self._counters.get(key))
        ]
        self._turn += 1
        left, size = asked
        found: dict[str, dict[str, Any]] = {}
        for index, key in enumerate(sorted(wanted, key=lambda key: (self._served.get(key, 0), seen[key].depth, key))):
            if min(left, size) < 1:
                break
            others = len(wanted) - index
            share = BatchLimits(max(1, left // others), size if size == NO_LIMIT else max(1, size // others))
            following = self._survey(key, seen[key].source, before.get(key), share)
            if following is not None:
                found[key] = following.as_offset(seen[key].source.queue)
                left -= following.shown - following.since
                size -= share.size if size != NO_LIMIT else 0  # a survey does not tell its bytes
                self._served[key] = self._turn
        if not found:
            return start
        kept = {key: one | {"stretches": "[]"} for key, one in start["queues"].items() if key in seen}
        return {"queues": kept | found}

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """Messages and queues that arrive after this moment are not shown in this run."""
        self._counters = {key: one.counter for key, one in self._stores.look().items()}

    def partitions(self, start: Offset, end: Offset) -> Sequence[InputPartition]:
        """The stretches between two offsets, as they were surveyed."""
        before, upto = positions_of(start), positions_of(end)
        moved = {key: one for key, one in upto.items() if key not in before or before[key].token != one.token}
        seen = self._stores.look() if moved else {}
        parts = []
        for key, one in moved.items():
            shown = before[key].shown if key in before else 0
            check_continues(shown, one.since)
            if key not in seen:
                raise changed(key.rpartition("@")[0])
            source = seen[key].source
            parts += [(source, part, part.messages) for part in partitions_of(one.stretches, source.made, shown)]
        return packed(parts, self._options.partitions)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Reads the stretches of a task."""
        return read_several(self._options, partition, self._schema)

    def commit(self, end: Offset) -> None:
        """Does nothing: a browse holds no messages."""

    def stop(self) -> None:
        """Ends the planner's connections."""
        self._stores.close()

    def _survey(
        self, key: str, source: SourceQueue, before: StreamPosition | None, share: BatchLimits
    ) -> StreamPosition | None:
        """The next position on a queue; None if there is nothing after the one before."""
        with (
            suppress(QueueDeleted, UnknownQueue),
            self._stores.queue(source, browse=True) as queue,
        ):  # since it was seen
            browser = BulkBrowser(queue)
            cursor = UNSET if before is None else browser.cursor(before.token)
            if cursor is None:
                raise changed(source.queue)
            survey = browser.survey(
                self._options.wanted_strictly,
                cursor=cursor,
                most=share.messages,
                most_bytes=share.size,
                slices=self._options.partitions,
                horizon=None if self._counters is None else self._counters[key],
            )
            if survey.stretches:
                since = 0 if before is None else before.shown
                return StreamPosition(browser.token(survey.cursor), since + survey.messages, since, survey.stretches)
        return None


def positions_of(offset: Mapping[str, Any]) -> dict[str, StreamPosition]:
    """The positions in an offset by key. Raises OptionsError if the checkpoint is that of another kind of query."""
    entries = offset.get("queues")
    if not isinstance(entries, dict):
        raise OptionsError(
            f"the checkpoint's offset {dict(offset)!r} is not from a stream that browses several queues: it was "
            "written by a query on one queue, or by another source. Give this query its own checkpoint"
        )
    return {key: StreamPosition.of(one) for key, one in entries.items()}


__all__ = ["SeveralBrowseReader", "SeveralBrowseStreamReader", "SeveralFilteringReader"]
