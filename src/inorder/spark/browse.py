"""The source in browse mode: it removes nothing.

A batch surveys each queue once, and cuts it into stretches, which are divided among the tasks. A query on one queue is
a query on a list of one.

A stream is a strict browse of each queue. For each queue its offset holds a browse token (B-41), the stretches of the
batch that ends there, so that Spark reads the same ones again after a restart, and the number of messages shown. No
message is missed or shown twice. A batch that Spark reads again is the same only if no messages were removed in
between: a browse locks nothing. The offset of a query on one queue is that queue's entry, as in 0.1.0.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.datasource import DataSourceReader, InputPartition

from ..arrow.pages import Origin, batches
from ..client.bulk import BulkBrowser, Stretch
from ..client.manager import QueueManager
from ..errors import OptionsError, QueueCondition, Reason
from ..model.fields import GIVEN
from ..model.options import MATCHABLE
from ..model.parameters import Integer
from ..rules.ordering import UNSET
from .options import NO_LIMIT, STORE, SourceOptions
from .planning import BatchLimits, QueueStream, limits
from .source_queues import SourceQueue, SourceQueuePartition, Stores, name_in, packed, rows_of, slices_of
from .versions import Filter, ReadLimit

Offset = dict[str, Any]
FILTERED: Mapping[str, type] = {
    **{one.name: int if isinstance(one.kind, Integer) else bytes for one in MATCHABLE if one.name in GIVEN},
    **dict.fromkeys(("number", "uid_number"), int),
    **dict.fromkeys((STORE, "queue", "uid_origin"), str),
}
"""The columns on which filters give the same result here as in Spark, with the types of their values."""

log = logging.getLogger("inorder.spark.source")
COMPARISONS = {
    "EqualTo": pc.equal,
    "GreaterThan": pc.greater,
    "GreaterThanOrEqual": pc.greater_equal,
    "LessThan": pc.less,
    "LessThanOrEqual": pc.less_equal,
}


class StretchPartition(InputPartition):
    """One stretch of a queue.

    Args:
        before: how many messages the survey counted before it.
    """

    def __init__(self, stretch: Stretch, before: int) -> None:
        super().__init__(None)
        self.stretch, self.before = stretch, before


Part = tuple[SourceQueue, StretchPartition, int]  # with the messages that the survey counted in it


def parts_of(source: SourceQueue, stretches: Iterable[Stretch], before: int) -> list[Part]:
    """The stretches of a queue, each with the number of messages before it."""
    found = []
    for stretch in stretches:
        found.append((source, StretchPartition(stretch, before), stretch.messages))
        before += stretch.messages
    return found


def tasks_of(parts: Sequence[Part], options: SourceOptions) -> list[SourceQueuePartition]:
    """Divides the stretches among tasks. For a single queue each stretch is a task: there are some for every
    priority.
    """
    return packed(parts, options.partitions if options.is_several else len(parts))


def read_stretches(partition: InputPartition, options: SourceOptions, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Reads the stretches of a task, in the requested columns."""

    def read(qm: QueueManager, source: SourceQueue, part: StretchPartition) -> Iterator[pa.RecordBatch]:
        with qm.open(source.queue, browse=True) as queue:
            pages = BulkBrowser(queue).read(part.stretch)
            yield from batches(
                pages, Origin(source.queue, None, part.before), body=options.body, join=options.join_segments
            )

    return rows_of(partition, schema, read)


def changed(queue: str) -> QueueCondition:
    """The token of a stream belongs to another queue: 2041."""
    return QueueCondition(
        f"{queue} was deleted and created again since this stream began: begin with a new checkpoint",
        reason=Reason.OBJECT_CHANGED,
        queue=queue,
    )


class BrowseReader(DataSourceReader):
    """A batch that browses."""

    def __init__(self, options: SourceOptions, schema: pa.Schema) -> None:
        self._options = options
        self._schema = schema
        self._filters: list[Filter] = []

    def partitions(self) -> Sequence[InputPartition]:
        options, stores = self._options, Stores(self._options)
        try:
            there = {key: one for key, one in stores.look().items() if one.is_chosen and one.depth}
            seen = {key: one for key, one in there.items() if self._may_pass(one.source)}
            slices = slices_of({key: one.depth for key, one in seen.items()}, options.partitions)

            def survey(key: str, source: SourceQueue) -> list[Part]:
                with stores.manager(source.url).open(source.queue, browse=True) as queue:
                    found = BulkBrowser(queue).survey(options.wanted, slices=slices[key])
                return parts_of(source, found.stretches, 0)

            surveyed = stores.each({key: one.source for key, one in seen.items()}, survey)
        finally:
            stores.close()
        parts = [part for key in seen for part in surveyed[key]]
        return tasks_of(parts, options) or [SourceQueuePartition([])]  # Spark wants at least one

    def _may_pass(self, source: SourceQueue) -> bool:
        """Whether rows of a queue can pass the filters on the columns `store` and `queue`; the others are not read."""
        row = pa.record_batch({STORE: [source.url], "queue": [source.queue]})
        filters = (one for one in self._filters if column_of(one) in row.schema.names)
        return all(matches(one, row)[0].as_py() for one in filters)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        wanted = self._schema
        needed = {column_of(one) for one in self._filters}
        missing = [name for name in needed if name not in wanted.names]
        assert not missing, f"Spark pushed a filter on a column that it did not ask for: {missing}"
        for batch in read_stretches(partition, self._options, wanted):
            kept = batch
            for one in self._filters:
                kept = kept.filter(matches(one, kept))
            yield kept


class FilteringReader(BrowseReader):
    """A batch that browses and accepts filters; if Spark's setting is off, Spark refuses a reader that could accept
    some.
    """

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:  # noqa: N802 - Spark's name
        """Takes the filters that it applies exactly, and returns the others."""
        left = []
        for one in filters:
            if is_applied(one):
                self._filters.append(one)
            else:
                left.append(one)
        shown = [", ".join(map(str, some)) or "none" for some in (self._filters, left)]
        log.info("filters that the source applies: %s; that Spark applies: %s", *shown)
        return left


def column_of(one: Any) -> str:
    """The column of a filter that was taken."""
    name: str = one.attribute[0]
    return name


def is_applied(one: Filter) -> bool:
    """Whether this is a comparison that gives the same result here as in Spark."""
    path: tuple[str, ...] = getattr(one, "attribute", ())
    kind = type(one).__name__
    if len(path) != 1 or path[0] not in FILTERED:
        return False
    if kind in ("IsNull", "IsNotNull"):
        return True
    wanted = FILTERED[path[0]]
    value = getattr(one, "value", None)
    if kind == "In":
        return isinstance(value, tuple | list) and all(type(each) is wanted for each in value)
    return type(value) is wanted and (kind == "EqualTo" or (kind in COMPARISONS and wanted is int))


def matches(one: Any, batch: pa.RecordBatch) -> pa.Array:
    """For each row, whether it passes; null, which means no, if the value is missing."""
    column = batch.column(column_of(one))
    kind = type(one).__name__
    if kind == "IsNull":
        return pc.is_null(column)
    if kind == "IsNotNull":
        return pc.is_valid(column)
    if kind == "In":
        return pc.and_(pc.is_valid(column), pc.is_in(column, value_set=pa.array(one.value, column.type)))
    return COMPARISONS[kind](column, pa.scalar(one.value, column.type))


def check_continues(shown: int, since: int) -> None:
    """Raises OptionsError if an offset does not continue where the one before it ends."""
    if since != shown:
        raise OptionsError(
            f"the checkpoint has lost an offset: one after {shown:,} messages is followed by one that continues after "
            f"{since:,}. Begin with a new checkpoint",
        )


class StreamPosition(NamedTuple):
    """The parts of a stream's offset.

    Args:
        shown: how many messages were shown so far.
        since: `shown` of the offset before this one; the `stretches` lie between them.
    """

    token: str
    shown: int
    since: int
    stretches: Sequence[Stretch]

    def as_offset(self, queue: str) -> Offset:
        """The offset in the form that Spark stores: texts and integers only."""
        return {
            "queue": queue,
            "token": self.token,
            "shown": self.shown,
            "since": self.since,
            "stretches": json.dumps(self.stretches, separators=(",", ":")),
        }

    @classmethod
    def of(cls, offset: Mapping[str, Any]) -> StreamPosition:
        """Raises OptionsError if the offset belongs to another kind of source."""
        try:
            stretches = [
                Stretch(bool(logical), rank, (first[0], first[1]), (last[0], last[1]), messages)
                for logical, rank, first, last, messages in json.loads(offset["stretches"])
            ]
            return cls(offset["token"], offset["shown"], offset["since"], stretches)
        except (KeyError, TypeError, ValueError):
            raise OptionsError(
                f"the checkpoint's offset {dict(offset)!r} is not from a stream that browses a queue: it was written "
                "with mode=drain, or by another source. Give this query its own checkpoint",
            ) from None


class BrowseStreamReader(QueueStream):
    """A stream that browses each queue, strictly."""

    def initialOffset(self) -> Offset:  # noqa: N802 - Spark's names, here and below
        """The beginning of all queues."""
        if self._options.is_several:
            return {"queues": {}}
        only = self._stores.only()
        return StreamPosition(self._browser(only).token(UNSET), 0, 0, ()).as_offset(only.queue)

    def latestOffset(self, start: Offset, limit: ReadLimit) -> Offset:  # noqa: N802
        """The offset after the present messages, within the limit; `start` if there are none."""
        before, asked = self._positions(start), limits(limit, self._options)
        wanted, there = self._wanted()
        self._turn += 1
        left, size = asked
        found: dict[str, Offset] = {}
        for index, source in enumerate(wanted):
            if min(left, size) < 1:
                break
            key, others = source.key, len(wanted) - index
            share = BatchLimits(max(1, left // others), size if size == NO_LIMIT else max(1, size // others))
            following = self._survey(source, before.get(key), share)
            if following is not None:
                found[key] = following.as_offset(source.queue)
                left -= following.shown - following.since
                size -= share.size if size != NO_LIMIT else 0  # a survey does not tell its bytes
                self._served[key] = self._turn
        self._stores.close_unused(frozenset())
        if not found:
            return start
        if not self._options.is_several:
            return next(iter(found.values()))
        kept = {key: one | {"stretches": "[]"} for key, one in start["queues"].items() if key in there}
        return {"queues": kept | found}

    def partitions(self, start: Offset, end: Offset) -> Sequence[InputPartition]:
        """The stretches between two offsets, as they were surveyed."""
        before, upto = self._positions(start), self._positions(end)
        moved = {key: one for key, one in upto.items() if key not in before or before[key].token != one.token}
        there = self._wanted()[1] if moved else {}
        parts = []
        for key, one in moved.items():
            shown = before[key].shown if key in before else 0
            check_continues(shown, one.since)
            if key not in there:
                raise changed(name_in(key))
            parts += parts_of(there[key], one.stretches, shown)
        return tasks_of(parts, self._options)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Reads the stretches of a task."""
        return read_stretches(partition, self._options, self._schema)

    def commit(self, end: Offset) -> None:
        """Does nothing: a browse holds no messages."""

    def stop(self) -> None:
        """Ends the planner's connections; also called after the driver was killed, and does nothing else."""
        self._stores.close()

    def _wanted(self) -> tuple[list[SourceQueue], dict[str, SourceQueue]]:
        """The queues to look through, those first that were served longest ago; and all that exist, by key."""
        if not self._options.is_several:
            only = self._stores.only()
            return [only], {only.key: only}
        seen, served = self._stores.look(), self._served
        wanted = [
            (served.get(key, 0), one.depth, key)
            for key, one in seen.items()
            if one.is_chosen and one.depth and (self._counters is None or self._counters.get(key))
        ]
        return [seen[key].source for _, _, key in sorted(wanted)], {key: one.source for key, one in seen.items()}

    def _survey(self, source: SourceQueue, before: StreamPosition | None, share: BatchLimits) -> StreamPosition | None:
        """The next position on a queue; None if there is nothing after the one before."""
        with suppress(*self._stores.gone):
            browser = self._browser(source)
            cursor = UNSET if before is None else browser.cursor(before.token)
            if cursor is None:
                raise changed(source.queue)
            survey = browser.survey(
                self._options.wanted_strictly,
                cursor=cursor,
                most=share.messages,
                most_bytes=share.size,
                slices=self._options.partitions,
                horizon=None if self._counters is None else self._counters[source.key],
            )
            if survey.stretches:
                since = 0 if before is None else before.shown
                return StreamPosition(browser.token(survey.cursor), since + survey.messages, since, survey.stretches)
        return None

    def _browser(self, source: SourceQueue) -> BulkBrowser:
        return BulkBrowser(self._stores.queue(source, browse=True))

    def _positions(self, offset: Offset) -> dict[str, StreamPosition]:
        """The positions in an offset by key. Raises OptionsError if the checkpoint is from another kind of query."""
        if not self._options.is_several:
            return {self._stores.only().key: StreamPosition.of(offset)}
        entries = offset.get("queues")
        if not isinstance(entries, dict):
            raise OptionsError(
                f"the checkpoint's offset {dict(offset)!r} is not from a stream that browses several queues: it was "
                "written by a query on one queue, or by another source. Give this query its own checkpoint"
            )
        return {key: StreamPosition.of(one) for key, one in entries.items()}
