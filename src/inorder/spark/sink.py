"""The sink: many tasks stage rows, and the commit puts them in one step.

`write` runs once for each attempt of a task, and Spark may make several: each stages under its own name, beside the
queue, where no reader sees it. Only the winners' reports reach `commit`, which puts their staged messages in one
transaction, and records the batch in the ledger: a repeated batch is dropped. The stagings of losers and dead drivers
expire.
"""

from __future__ import annotations

import base64
import datetime
import json
import logging
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from itertools import islice
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark import TaskContext
from pyspark.sql.datasource import (
    DataSourceArrowWriter,
    DataSourceStreamWriter,
    WriterCommitMessage,
)
from pyspark.sql.types import StructType

from ..arrow.columns import Fault, Judged, chunks, judged_of, kept
from ..client.bulk import LedgerKey, Settled, Staged, Stager
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
from .opening import check_queue, check_same, made_at, store_for_task
from .options import SinkOptions
from .rows import check_columns, judge
from .tally import Tally
from .versions import DataSourceStreamArrowWriter, as_arrow

log = logging.getLogger("inorder.spark.sink")

ROWS_AT_ONCE = 1000  # for a writer that gets rows
QUERY_ID, BATCH_ID = "sql.streaming.queryId", "streaming.sql.batchId"
APPEND_ONLY = (
    "the sink appends: messages on a queue are there for their readers, and cannot be overwritten. Use "
    ".mode('append'), or outputMode('append'); to empty a queue first, read it with mode=drain"
)


class TaskMessage(WriterCommitMessage):
    """The report of a task to the commit.

    Args:
        partition: the partition of the data frame, from 0.
        staged: the staged messages, one staging for each queue.
        diverted: the staged rows that cannot be messages; None: there were none.
        query, batch: for a stream; empty in a batch write.
        high_priorities: how many messages have a priority above 9, which counts as 9.
    """

    def __init__(
        self,
        partition: int,
        *,
        staged: Sequence[Staged],
        diverted: Staged | None,
        query: str,
        batch: str,
        high_priorities: int,
    ) -> None:
        self.partition, self.staged, self.diverted = partition, staged, diverted
        self.query, self.batch, self.high_priorities = query, batch, high_priorities

    @property
    def stagings(self) -> list[Staged]:
        """All its stagings."""
        return [*self.staged, *([] if self.diverted is None else [self.diverted])]


class Stagers:
    """The stagings of one attempt: one for each queue that its rows go to, begun by the first row.

    Attributes:
        by_queue: by the names of their queues, as the options or rows name them.
        diverter: for rows that cannot be messages; None: they fail the batch.
    """

    def __init__(self, qm: QueueManager, handles: ExitStack, options: SinkOptions) -> None:
        self._qm, self._handles, self._options = qm, handles, options
        self.by_queue: dict[str, Stager] = {}
        self.diverter = None if options.bad_rows is None else self._opened(options.bad_rows)
        self.to(options.queue)

    @property
    def names(self) -> list[str]:
        """The names of all stagings."""
        return [one.name for one in (*self.by_queue.values(), self.diverter) if one is not None]

    def to(self, queue: str) -> Stager:
        """The staging for a queue. Raises UnknownQueue, NotOpenFor and others, as `open`."""
        if queue not in self.by_queue:
            self.by_queue[queue] = self._opened(queue)
        return self.by_queue[queue]

    def judged(self, chunk: pa.RecordBatch) -> tuple[Judged, list[str] | str]:
        """Judges rows, and returns the queue of each good one, or of all."""
        options, found = self._options, judge(chunk, self._options)
        if options.queue_column is None:
            return found, options.queue
        names = [name or options.queue for name in chunk.column(options.queue_column).to_pylist()]
        why = {fault.row: fault.why for fault in found.faults}
        for name in dict.fromkeys(names):
            try:
                check_queue(self._qm, name)
                self.to(name)
            except (ArgumentError, UnknownQueue, WrongQueueType) as error:
                for row in (row for row, one in enumerate(names) if one == name):
                    why.setdefault(row, f"{options.queue_column} names no queue to put on: {error.args[0]}")
        return judged_of(found.rows, found.columns, why), [name for row, name in enumerate(names) if row not in why]

    def _opened(self, queue: str) -> Stager:
        handle = self._handles.enter_context(self._qm.open(queue, output=True))
        return Stager(handle, f"spark-{uuid.uuid4()}", lasts=self._options.staging_expiry)


def divided(good: Mapping[str, Sequence[Any]], queues: list[str] | str) -> dict[str, Mapping[str, Sequence[Any]]]:
    """Good rows by their queues, in the same order."""
    if not good:
        return {}
    if isinstance(queues, str):
        return {queues: good}
    rows: dict[str, list[int]] = {}
    for row, queue in enumerate(queues):
        rows.setdefault(queue, []).append(row)
    return {
        queue: {name: [values[row] for row in some] for name, values in good.items()} for queue, some in rows.items()
    }


class SinkTask:
    """One attempt of one task: stages its rows; if it fails, it removes its own stagings."""

    def __init__(self, options: SinkOptions, made: int) -> None:
        self._options, self._made = options, made
        context = TaskContext.get()
        self._partition = 0 if context is None else context.partitionId()
        self._query = (context and context.getLocalProperty(QUERY_ID)) or ""
        self._batch = (context and context.getLocalProperty(BATCH_ID)) or ""
        self._rows = self._size = self._high_priorities = 0

    def run(self, given: Iterable[pa.RecordBatch]) -> TaskMessage:
        options = self._options
        with store_for_task(options.url, options.application) as qm, ExitStack() as handles:
            check_same(qm, options.queue, self._made)
            tally = Tally()
            stagers = Stagers(qm, handles, options)
            try:
                for batch in given:
                    for chunk in chunks(batch):
                        self._stage(chunk, stagers)
                        tally.note(self._rows, self._size)
            except BaseException:
                qm.bulk.undo_staging(stagers.names)
                raise
        if points.reached:
            points.reached("staged")
        return TaskMessage(
            self._partition,
            staged=[one.staged for one in stagers.by_queue.values() if one.count],
            diverted=None if stagers.diverter is None or not stagers.diverter.count else stagers.diverter.staged,
            query=self._query,
            batch=self._batch,
            high_priorities=self._high_priorities,
        )

    def _stage(self, chunk: pa.RecordBatch, stagers: Stagers) -> None:
        judged, queues = stagers.judged(chunk)
        if judged.faults and stagers.diverter is None:
            raise self._bad_row(judged.faults, chunk)
        if judged.faults and stagers.diverter is not None:
            bodies = [self._complaint(fault, chunk) for fault in judged.faults]
            stagers.diverter.stage(len(bodies), {"body": bodies, "format": ["MQSTR"] * len(bodies)})
        for queue, good in divided(kept(judged), queues).items():
            self._stage_good(good, judged, stagers.to(queue))
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
            "row": chunk.slice(fault.row, 1).to_pylist()[0],
        }
        return json.dumps(told, default=_as_json).encode()


def _as_json(value: object) -> object:
    if isinstance(value, bytes):
        return {"base64": base64.b64encode(value).decode("ascii")}
    if isinstance(value, datetime.datetime | datetime.date):
        return value.isoformat()
    return str(value)


def _shown(chunk: pa.RecordBatch, row: int) -> str:
    text = repr({name: chunk.column(name)[row].as_py() for name in chunk.schema.names if name != "body"})
    return text if len(text) <= 300 else f"{text[:297]}..."


class Writer:
    """Shared by batch and stream writers; a copy of it works in each task."""

    def __init__(self, options: SinkOptions, schema: StructType) -> None:
        self._options = options
        self._schema = schema
        check_columns(schema, options)
        with store_for_task(options.url, options.application, is_check=True) as qm:
            self._made = made_at(qm, check_queue(qm, options.queue).name)
            if options.bad_rows is not None:
                check_queue(qm, options.bad_rows)

    def _run(self, given: Iterable[pa.RecordBatch]) -> TaskMessage:
        return SinkTask(self._options, self._made).run(given)

    def _settle(self, messages: Sequence[WriterCommitMessage | None], query: str, batch: str) -> Settled:
        """Puts all messages that the tasks have staged."""
        options = self._options
        told = reported(messages)
        key = LedgerKey(options.application, query, batch)
        with store_for_task(options.url, options.application) as qm:
            stagings = in_order(told)
            if options.queue_column is not None and batch and self._is_settled(qm, key):
                qm.bulk.undo_staging([one.name for one in stagings])
                return Settled(True, 0)
            if batch and (not stagings or options.queue_column is not None):  # the ledger must record the batch
                with qm.open(options.queue, output=True) as queue:
                    empty = Stager(queue, f"spark-{uuid.uuid4()}", lasts=options.staging_expiry)
                    empty.stage(0, {"body": []})
                    stagings = [*stagings, empty.staged]
            settled = qm.bulk.settle_staging(key, stagings) if stagings else Settled(False, 0)
        if points.reached:
            points.reached("settled")
        high = sum(one.high_priorities for one in told)
        bad = sum(one.diverted.count for one in told if one.diverted is not None)
        if high and not settled.already:
            log.warning("%d messages on %s have a priority above 9, which counts as 9", high, options.queue)
        if bad and not settled.already:
            log.warning("%d rows were not messages, and went to %s", bad, options.bad_rows)
        return settled

    def _is_settled(self, qm: QueueManager, key: LedgerKey) -> bool:
        """Whether the ledger of the option's queue has a batch whose rows name their queues: it records all of them,
        because a repeat could name others.
        """
        return qm.bulk.in_ledger(check_queue(qm, self._options.queue).name, key) is not None

    def _undo(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Removes the stagings; those of tasks that never reported expire."""
        names = [one.name for each in messages if isinstance(each, TaskMessage) for one in each.stagings]
        if names:
            with store_for_task(self._options.url, self._options.application) as qm:
                qm.bulk.undo_staging(names)


def reported(messages: Sequence[WriterCommitMessage | None]) -> list[TaskMessage]:
    """The tasks' reports by partition. Raises QueueCondition if a task has not reported its stagings."""
    told = [one for one in messages if isinstance(one, TaskMessage)]
    if len(told) != len(messages):
        raise QueueCondition(
            f"{len(messages) - len(told)} of {len(messages)} tasks did not report their staged rows: nothing was put. "
            "Run the batch again",
        )
    return sorted(told, key=lambda one: one.partition)


def in_order(told: Sequence[TaskMessage]) -> list[Staged]:
    """Stagings of messages in the order of their partitions, then those of rows that cannot be messages."""
    messages = [staged for one in told for staged in one.staged]
    return messages + [one.diverted for one in told if one.diverted is not None]


class BatchWriter(Writer, DataSourceArrowWriter):
    """A batch write: one transaction, with the name from option `transaction`, or without a name."""

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        return self._run(iterator)

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        transaction = self._options.transaction or ""
        if self._settle(messages, "", transaction).already:
            log.warning(
                "transaction %r of application %r was committed on %s before: this write put nothing",
                transaction,
                self._options.application,
                self._options.queue,
            )

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        self._undo(messages)


class StreamWriter(Writer, DataSourceStreamArrowWriter):
    """The batches of a stream, each put once, even if Spark repeats it."""

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        return self._run(iterator)

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803 - Spark's name
        settle_batch(self, messages, batchId)

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        self._undo(messages)


class RowStreamWriter(Writer, DataSourceStreamWriter):
    """The same for PySpark 4.0, which has no Arrow writer for streams."""

    def write(self, iterator: Iterator[Any]) -> WriterCommitMessage:
        return self._run(as_batches(iterator, self._schema))

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        settle_batch(self, messages, batchId)

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        self._undo(messages)


def settle_batch(writer: Writer, messages: Sequence[WriterCommitMessage | None], batch: int) -> None:
    """Puts a stream's batch under its query's id, which its tasks have reported.

    Raises OptionsError if the tasks could not report it.
    """
    queries = {one.query for one in reported(messages)}
    if not queries:  # a batch without partitions: nothing was staged, and a repeat will stage nothing
        return
    if "" in queries or len(queries) != 1:
        raise OptionsError(
            "this Spark does not tell its tasks their query, so that a repeated batch could not be recognised: use "
            "PySpark 4.3 or later, or foreachBatch with a batch write and option transaction",
        )
    if writer._settle(messages, queries.pop(), str(batch)).already:
        log.warning("batch %d was committed before; Spark ran it again, and it put nothing", batch)


def as_batches(rows: Iterator[Any], schema: StructType) -> Iterator[pa.RecordBatch]:
    """Converts Spark's rows to record batches."""
    arrow = as_arrow(schema)
    while some := list(islice(rows, ROWS_AT_ONCE)):
        yield batch_of(some, arrow)


def refuse_overwrite(overwrite: bool) -> None:
    """Raises OptionsError."""
    if overwrite:
        raise OptionsError(APPEND_ONLY)


__all__ = [
    "APPEND_ONLY",
    "BatchWriter",
    "RowStreamWriter",
    "StreamWriter",
    "TaskMessage",
    "refuse_overwrite",
]
