"""The sink: many tasks stage rows, and the commit puts them in one step.

`write` runs once for each attempt of a task, and Spark may make several: each stages under its own name, beside the
queue, where no reader sees it. Only the winners' reports reach `commit`, which puts their staged messages in one
transaction for each store, and records the batch in the ledger: a repeated batch is dropped (`sink_stores`). The
stagings of losers and dead drivers expire.
"""

from __future__ import annotations

import base64
import datetime
import json
import logging
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from ..arrow.columns import Fault, Judged, chunks, judged_of, kept, value_of
from ..client.bulk import LedgerKey, Settled, Stager
from ..client.manager import QueueManager
from ..errors import (
    ArgumentError,
    CallerError,
    MessageTooBig,
    OptionsError,
    QueueCondition,
    UnknownQueue,
    WrongQueueType,
)
from . import points
from .batches import batch_of
from .opening import check_queue, check_same, store_for_task
from .options import SinkOptions, store_place
from .rows import check_columns, judge
from .sink_stores import BatchCommit, SinkPlace, SinkStore, StagedAt, divided_by_contents, sink_stores, stager_on
from .tally import Tally
from .versions import DataSourceStreamArrowWriter, as_arrow

log = logging.getLogger("inorder.spark.sink")

ROWS_AT_ONCE = 1000  # for a writer that gets rows
QUERY_ID, BATCH_ID = "sql.streaming.queryId", "streaming.sql.batchId"
APPEND_ONLY = (
    "the sink appends: messages on a queue belong to its readers, and cannot be overwritten. Use "
    ".mode('append'), or outputMode('append'); to empty a queue first, read it with mode=drain"
)


class TaskMessage(WriterCommitMessage):
    """The report of a task to the commit.

    Args:
        partition: the partition of the data frame, from 0.
        staged: the staged messages, one staging for each queue.
        diverted: the staged rows that cannot be messages, one staging for each store.
        query, batch: for a stream; empty in a batch write.
        high_priorities: how many messages have a priority above 9, which counts as 9.
    """

    def __init__(
        self,
        partition: int,
        *,
        staged: Sequence[StagedAt],
        diverted: Sequence[StagedAt],
        query: str,
        batch: str,
        high_priorities: int,
    ) -> None:
        self.partition, self.staged, self.diverted = partition, staged, diverted
        self.query, self.batch, self.high_priorities = query, batch, high_priorities


class Stagers:
    """The stagings of one attempt: one for each place that its rows go to. The first row opens its store and queue.

    Attributes:
        messages: by place, as options or rows name it.
        diverted: by store; rows that cannot be messages.
    """

    def __init__(self, stores: Sequence[SinkStore], handles: ExitStack, options: SinkOptions) -> None:
        self._stores, self._handles, self._options = stores, handles, options
        self._managers: dict[str, QueueManager] = {}
        self.messages: dict[SinkPlace, Stager] = {}
        self.diverted: dict[str, Stager] = {}

    def to(self, place: SinkPlace) -> Stager:
        """The staging for a place. Raises UnknownQueue, NotOpenFor and others, as `open`."""
        if place not in self.messages:
            check_queue(self._manager(place.url), place.queue)
            self.messages[place] = self._opened(place)
        return self.messages[place]

    def to_bad_rows(self, url: str) -> Stager:
        """The staging for rows of a store that cannot be messages."""
        if url not in self.diverted:
            assert self._options.bad_rows is not None
            self.diverted[url] = self._opened(SinkPlace(url, self._options.bad_rows))
        return self.diverted[url]

    def judged(self, chunk: pa.RecordBatch) -> tuple[Judged, list[SinkPlace]]:
        """Judges rows, and returns the place of each; of bad ones too, whose store is right."""
        options, found = self._options, judge(chunk, self._options)
        if len(self._stores) == 1 and options.queue_column is None and options.store_column is None:
            return found, [SinkPlace(self._stores[0].url, options.queue)] * found.rows
        why = {fault.row: fault.why for fault in found.faults}
        urls = self._urls(chunk, found, why)
        if options.queue_column is None:
            of_store = {one.url: SinkPlace(one.url, options.queue) for one in self._stores}
            return judged_of(found.rows, found.columns, why), [of_store[url] for url in urls]
        queues = chunk.column(options.queue_column).to_pylist()
        places = [SinkPlace(url, queue or options.queue) for url, queue in zip(urls, queues, strict=True)]
        for row in (row for row, queue in enumerate(queues) if queue == ""):
            unnamed = "names no queue to put on: it is empty, and only null means that of option queue"
            why.setdefault(row, f"{options.queue_column} {unnamed}")
        for place in dict.fromkeys(places):
            try:
                self.to(place)
            except (ArgumentError, UnknownQueue, WrongQueueType) as error:
                for row in (row for row, one in enumerate(places) if one == place):
                    why.setdefault(row, f"{options.queue_column} names no queue to put on: {error.args[0]}")
        return judged_of(found.rows, found.columns, why), places

    def _urls(self, chunk: pa.RecordBatch, found: Judged, why: dict[int, str]) -> list[str]:
        """The store of each row. A row that names none of them is bad."""
        known, column = [one.url for one in self._stores], self._options.store_column
        named = [None] * found.rows if column is None else chunk.column(column).to_pylist()
        chosen = {name: _store_named(name, known, self._options.folder) for name in set(named) - {None}}
        urls: dict[str | None, str] = {name: url for name, (url, _) in chosen.items() if url is not None}
        if urls.keys() >= set(named):
            return [urls[name] for name in named]
        for row, name in enumerate(named):
            if name is not None and name not in urls:
                why.setdefault(row, f"{column} names no store of option url: {chosen[name][1]}")
        numbers = divided_by_contents(found, len(known))
        return [urls.get(name, known[number]) for name, number in zip(named, numbers, strict=True)]

    def undo(self) -> None:
        """Removes all stagings."""
        for url, qm in self._managers.items():
            stagers = [one for place, one in self.messages.items() if place.url == url]
            qm.bulk.undo_staging([one.name for one in (*stagers, *filter(None, [self.diverted.get(url)]))])

    def _opened(self, place: SinkPlace) -> Stager:
        handle = self._handles.enter_context(self._manager(place.url).open(place.queue, output=True))
        return stager_on(handle, self._options)

    def _manager(self, url: str) -> QueueManager:
        if url not in self._managers:
            qm = self._handles.enter_context(store_for_task(url, self._options.application))
            check_same(qm, self._options.queue, next(one.made for one in self._stores if one.url == url))
            self._managers[url] = qm
        return self._managers[url]


def _store_named(name: str, known: Sequence[str], folder: str) -> tuple[str | None, str]:
    """The store that a row names, and if there is none the reason."""
    if not name:
        return None, "it is empty, and only null leaves the choice open"
    try:
        url = store_place("url", name, folder)
    except CallerError as error:
        return None, str(error.args[0])
    return (url, "") if url in known else (None, f"it has no {url}")


def divided(
    good: Mapping[str, Sequence[Any]], places: Sequence[SinkPlace]
) -> dict[SinkPlace, Mapping[str, Sequence[Any]]]:
    """Good rows by their places, in the same order."""
    if not places or places.count(places[0]) == len(places):
        return dict.fromkeys(places[:1], good)
    rows: dict[SinkPlace, list[int]] = {}
    for row, place in enumerate(places):
        rows.setdefault(place, []).append(row)
    return {
        place: {name: [values[row] for row in some] for name, values in good.items()} for place, some in rows.items()
    }


class SinkTask:
    """One attempt of one task: stages its rows; if it fails, it removes its own stagings."""

    def __init__(self, options: SinkOptions, stores: Sequence[SinkStore]) -> None:
        self._options, self._stores = options, stores
        context = TaskContext.get()
        self._partition = 0 if context is None else context.partitionId()
        self._query = (context and context.getLocalProperty(QUERY_ID)) or ""
        self._batch = (context and context.getLocalProperty(BATCH_ID)) or ""
        self._rows = self._size = self._high_priorities = 0

    def run(self, given: Iterable[pa.RecordBatch]) -> TaskMessage:
        with ExitStack() as handles:
            tally = Tally()
            stagers = Stagers(self._stores, handles, self._options)
            try:
                for batch in given:
                    for chunk in chunks(batch):
                        self._stage(chunk, stagers)
                        tally.note(self._rows, self._size)
            except BaseException:
                stagers.undo()
                raise
        points.at("staged")
        bad = self._options.bad_rows or ""
        return TaskMessage(
            self._partition,
            staged=[StagedAt(place, one.staged) for place, one in stagers.messages.items() if one.count],
            diverted=[StagedAt(SinkPlace(url, bad), one.staged) for url, one in stagers.diverted.items()],
            query=self._query,
            batch=self._batch,
            high_priorities=self._high_priorities,
        )

    def _stage(self, chunk: pa.RecordBatch, stagers: Stagers) -> None:
        judged, places = stagers.judged(chunk)
        if judged.faults and self._options.bad_rows is None:
            raise self._bad_row(judged.faults, chunk)
        for url, faults in _by_store(judged.faults, places).items():
            bodies = [self._complaint(fault, chunk) for fault in faults]
            stagers.to_bad_rows(url).stage(len(bodies), {"body": bodies, "format": ["MQSTR"] * len(bodies)})
        if bad := {fault.row for fault in judged.faults}:
            places = [place for row, place in enumerate(places) if row not in bad]
        for place, good in divided(kept(judged), places).items():
            self._stage_good(good, judged, stagers.to(place))
        self._high_priorities += judged.high_priorities
        self._rows += judged.rows
        self._size += pc.sum(pc.binary_length(judged.columns["body"])).as_py() or 0

    def _stage_good(self, good: Mapping[str, Sequence[Any]], judged: Judged, stager: Stager) -> None:
        """Stages good rows; names the rows if the store finds an error, such as fields that contradict each other."""
        try:
            stager.stage(len(good["body"]), good)
        except (CallerError, MessageTooBig) as error:
            where = f"among rows {self._rows + 1:,} to {self._rows + judged.rows:,} of partition {self._partition}"
            raise CallerError(f"{where}: {error.args[0]}", reason=error.reason) from error

    def _bad_row(self, faults: Sequence[Fault], chunk: pa.RecordBatch) -> CallerError:
        row = self._rows + faults[0].row + 1
        more = f" (and {len(faults) - 1:,} more beside it)" if len(faults) > 1 else ""
        return CallerError(
            f"row {row:,} of partition {self._partition} is not a message: {faults[0].why}{more}. The row is "
            f"{_shown(chunk, faults[0].row)}. Correct or filter it, or divert such rows with badRows=queue:NAME",
            row=row,
            partition=self._partition,
        )

    def _complaint(self, fault: Fault, chunk: pa.RecordBatch) -> bytes:
        told = {
            "error": fault.why,
            "queue": self._options.queue,
            "query": self._query,
            "batch": self._batch,
            "partition": self._partition,
            "row_number": self._rows + fault.row + 1,
            "row": _as_json({name: value_of(chunk.column(name)[fault.row]) for name in chunk.schema.names}),
        }
        return json.dumps(told, allow_nan=False).encode()


def _by_store(faults: Iterable[Fault], places: Sequence[SinkPlace]) -> dict[str, list[Fault]]:
    found: dict[str, list[Fault]] = {}
    for fault in faults:
        found.setdefault(places[fault.row].url, []).append(fault)
    return found


def _as_json(value: object) -> object:
    """A value of a row for JSON: bytes in base64; times, and numbers that are not finite, as texts."""
    if isinstance(value, dict):
        return {name: _as_json(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [_as_json(one) for one in value]
    if isinstance(value, bytes):
        return {"base64": base64.b64encode(value).decode("ascii")}
    if isinstance(value, datetime.date):
        return value.isoformat()
    if value is None or isinstance(value, str | int) or (isinstance(value, float) and math.isfinite(value)):
        return value
    return str(value)


def _shown(chunk: pa.RecordBatch, row: int) -> str:
    text = repr({name: value_of(chunk.column(name)[row]) for name in chunk.schema.names if name != "body"})
    return text if len(text) <= 300 else f"{text[:297]}..."


class Writer:
    """Shared by batch and stream writers; a copy of it works in each task."""

    def __init__(self, options: SinkOptions, schema: StructType) -> None:
        self._options = options
        self._schema = schema
        check_columns(schema, options)
        self._stores = sink_stores(options)

    def write(self, iterator: Iterator[pa.RecordBatch]) -> TaskMessage:
        """In a task: stages its rows."""
        return SinkTask(self._options, self._stores).run(iterator)

    def _settle(self, messages: Sequence[WriterCommitMessage | None], query: str, batch: str) -> Settled:
        """Puts all messages that the tasks have staged."""
        options = self._options
        told = reported(messages)
        key = LedgerKey(options.application, query, batch)
        settled = BatchCommit(options, self._stores, key).run(in_order(told))
        points.at("settled")
        high = sum(one.high_priorities for one in told)
        bad = sum(each.staged.count for one in told for each in one.diverted)
        if high and not settled.already:
            log.warning("%d messages on %s have a priority above 9, which counts as 9", high, options.queue)
        if bad and not settled.already:
            log.warning("%d rows were not messages, and went to %s", bad, options.bad_rows)
        return settled

    def abort(self, messages: Sequence[WriterCommitMessage | None], batchId: int = 0) -> None:  # noqa: N803 - Spark's
        """Removes the stagings; those of tasks that never reported expire."""
        staged = in_order([one for one in messages if isinstance(one, TaskMessage)])
        for url in dict.fromkeys(one.place.url for one in staged):
            with store_for_task(url, self._options.application) as qm:
                qm.bulk.undo_staging([one.staged.name for one in staged if one.place.url == url])


def reported(messages: Sequence[WriterCommitMessage | None]) -> list[TaskMessage]:
    """The tasks' reports by partition. Raises QueueCondition if a task has not reported its stagings."""
    told = [one for one in messages if isinstance(one, TaskMessage)]
    if len(told) != len(messages):
        raise QueueCondition(
            f"{len(messages) - len(told)} of {len(messages)} tasks did not report their staged rows: nothing was put. "
            "Run the batch again"
        )
    return sorted(told, key=lambda one: one.partition)


def in_order(told: Sequence[TaskMessage]) -> list[StagedAt]:
    """Stagings of messages in the order of their partitions, then those of rows that cannot be messages."""
    return [each for one in told for each in one.staged] + [each for one in told for each in one.diverted]


class BatchWriter(Writer, DataSourceArrowWriter):
    """A batch write: one transaction, with the name from option `transaction`, or without a name."""

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        transaction = self._options.transaction or ""
        if self._settle(messages, "", transaction).already:
            log.warning(
                "transaction %r of application %r was committed on %s before: this write put nothing",
                transaction,
                self._options.application,
                self._options.queue,
            )
            if self._options.report is not None:
                Path(self._options.report).touch()


class StreamBatches(Writer):
    """Puts the batches of a stream under its query's id, each once, even if Spark repeats it."""

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803 - Spark's name
        """Puts a batch. Raises OptionsError if the tasks could not report their query."""
        queries = {one.query for one in reported(messages)}
        if not queries:  # a batch without partitions: nothing was staged, and a repeat will stage nothing
            return
        if "" in queries or len(queries) != 1:
            raise OptionsError(
                "this Spark does not tell its tasks their query, so that a repeated batch could not be recognised: use "
                "PySpark 4.3 or later, or foreachBatch with a batch write and option transaction"
            )
        if self._settle(messages, queries.pop(), str(batchId)).already:
            log.warning("batch %d was committed before; Spark ran it again, and it put nothing", batchId)


class StreamWriter(StreamBatches, DataSourceStreamArrowWriter):
    """A stream."""


class RowStreamWriter(StreamBatches, DataSourceStreamWriter):
    """The same for PySpark 4.0, which has no Arrow writer for streams."""

    def write(self, iterator: Iterator[Any]) -> TaskMessage:
        return super().write(as_batches(iterator, self._schema))


def as_batches(rows: Iterator[Any], schema: StructType) -> Iterator[pa.RecordBatch]:
    """Converts Spark's rows to record batches."""
    arrow = as_arrow(schema)
    while some := list(islice(rows, ROWS_AT_ONCE)):
        yield batch_of(some, arrow)


def refuse_overwrite(overwrite: bool) -> None:
    """Raises OptionsError."""
    if overwrite:
        raise OptionsError(APPEND_ONLY)
