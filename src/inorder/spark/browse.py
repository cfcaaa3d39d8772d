"""The source in browse mode: it removes nothing.

A batch surveys the queue once, and cuts it into stretches; each partition reads one of them.

A stream is a strict browse. Its offset is a browse token (B-41) together with the stretches of the batch that ends
there, so that Spark reads the same ones again after a restart, and the number of messages shown. No message is missed
or shown twice. A batch that Spark reads again is the same only if no messages were removed in between: a browse locks
nothing.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.datasource import DataSourceReader, DataSourceStreamReader, InputPartition

from ..arrow.pages import Origin, batches
from ..client.bulk import NO_LIMIT, BulkBrowser, Stretch
from ..client.manager import QueueManager
from ..client.queue import Queue
from ..errors import OptionsError, QueueCondition, Reason
from ..model.fields import GIVEN
from ..model.options import MATCHABLE
from ..model.parameters import Integer
from ..rules.ordering import UNSET
from .opening import check_queue, check_same, made_at, store_for_task
from .options import STORE, SourceOptions
from .planning import BatchLimits, Planner, limits
from .versions import Filter, ReadLimit, SupportsTriggerAvailableNow

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
        made: when its queue was created, so that a task can tell that it reads the right one.
        before: how many messages the survey counted before it.
    """

    def __init__(self, stretch: Stretch | None, made: int, before: int) -> None:
        super().__init__(None)
        self.stretch, self.made, self.before = stretch, made, before

    @property
    def messages(self) -> int:
        """How many messages the survey counted in it."""
        return 0 if self.stretch is None else self.stretch.messages


def partitions_of(stretches: Iterable[Stretch], made: int, before: int) -> list[StretchPartition]:
    found = []
    for stretch in stretches:
        found.append(StretchPartition(stretch, made, before))
        before += stretch.messages
    return found


def read_partition(options: SourceOptions, partition: InputPartition, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Reads a stretch, in the requested columns."""
    assert isinstance(partition, StretchPartition)
    if partition.stretch is None:
        return
    with store_for_task(options.url) as qm, qm.open(options.queue, browse=True) as queue:
        browser = BulkBrowser(queue)
        check_same(qm, options.queue, partition.made)
        origin = Origin(options.queue, None, partition.before)
        pages = browser.read(partition.stretch)
        for batch in batches(pages, origin, body=options.body, join=options.join_segments):
            yield batch.select(schema.names).cast(schema) if batch.schema != schema else batch


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
        options = self._options
        with store_for_task(options.url) as qm:
            made = made_at(qm, check_queue(qm, options.queue).name)
            with qm.open(options.queue, browse=True) as queue:
                survey = BulkBrowser(queue).survey(options.wanted, slices=options.partitions)
                found = partitions_of(survey.stretches, made, 0)
        return found or [StretchPartition(None, 0, 0)]  # Spark wants at least one

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        wanted = self._schema
        needed = {column_of(one) for one in self._filters}
        missing = [name for name in needed if name not in wanted.names]
        assert not missing, f"Spark pushed a filter on a column that it did not ask for: {missing}"
        for batch in self.rows(partition):
            kept = batch
            for one in self._filters:
                kept = kept.filter(matches(one, kept))
            yield kept

    def rows(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of a partition, before filters."""
        return read_partition(self._options, partition, self._schema)


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


class BrowseStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """A stream that browses, strictly.

    Spark has one copy in the planner, which asks for offsets, and others in tasks, which read.
    """

    def __init__(self, options: SourceOptions, schema: pa.Schema) -> None:
        self._options = options
        self._schema = schema
        self._planner = Planner(options)
        self._horizon: int | None = None

    def initialOffset(self) -> Offset:  # noqa: N802 - Spark's names, here and below
        """The beginning of the queue."""
        browser = self._browser()
        return StreamPosition(browser.token(UNSET), 0, 0, ()).as_offset(self._options.queue)

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        """The limit from the options."""
        return BatchLimits.default(self._options)

    def latestOffset(self, start: Offset, limit: ReadLimit) -> Offset:  # noqa: N802
        """The offset after the present messages, within the limit; `start` if there are none."""
        position, asked = StreamPosition.of(start), limits(limit, self._options)
        browser = self._browser()
        cursor = browser.cursor(position.token)
        if cursor is None:
            raise changed(self._options.queue)
        survey = browser.survey(
            self._wanted(),
            cursor=cursor,
            most=asked.messages,
            most_bytes=asked.size,
            slices=self._options.partitions,
            horizon=self._horizon,
        )
        if not survey.stretches:
            return start
        shown = position.shown + survey.messages
        following = StreamPosition(browser.token(survey.cursor), shown, position.shown, survey.stretches)
        return following.as_offset(self._options.queue)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """Messages that arrive after this moment are not shown in this run."""
        self._horizon = self._browser().survey(self._wanted(), most=1, most_bytes=NO_LIMIT).horizon

    def partitions(self, start: Offset, end: Offset) -> Sequence[InputPartition]:
        """The stretches between two offsets, as they were surveyed."""
        before, upto = StreamPosition.of(start), StreamPosition.of(end)
        if before.token == upto.token:
            return []
        check_continues(before.shown, upto.since)
        qm = self._planner.manager()
        return partitions_of(upto.stretches, made_at(qm, check_queue(qm, self._options.queue).name), before.shown)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Reads a stretch."""
        return read_partition(self._options, partition, self._schema)

    def commit(self, end: Offset) -> None:
        """Does nothing: a browse holds no messages."""

    def stop(self) -> None:
        """Ends the planner's connection; also called after the driver was killed, and does nothing else."""
        self._planner.close()

    def _wanted(self) -> Any:
        return self._options.wanted_strictly

    def _browser(self) -> BulkBrowser:
        return BulkBrowser(self._planner.queue(open_for_browse))


def open_for_browse(qm: QueueManager, name: str) -> Queue:
    return qm.open(name, browse=True)


__all__ = ["BrowseReader", "BrowseStreamReader", "FilteringReader"]
