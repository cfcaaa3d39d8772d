"""The source in drain mode: a stream that removes messages from a queue, each exactly once.

Spark tells a source that a batch is done only when it plans the next one, and never for the last batch of a run. So the
queue manager keeps numbered *claims*, each with a fixed list of messages, and the offset is the number of a claim.

    latestOffset     confirms the claims that are done in the checkpoint, and takes the next one
    partitions       Spark's log knows the claim now: it is planned, and cut into slices
    read             reads a slice, as often as Spark likes
    commit           confirms

While Spark's tasks read a claim, a thread of the planner takes the next one ahead, if the limits left messages on the
queue. When Spark asks for it, it gets it without delay: the claim before is only marked as done, and its messages are
removed while the tasks read again.

Spark asks for the initial offset only if the checkpoint has no batch yet, and then numbers its batches from 0. A sink
that knows batches by their numbers skips them if an earlier checkpoint has written to it. So if claims are over, a new
checkpoint is refused unless an option allows it. Spark runs its first batch even without messages: that batch gets the
number of an empty claim, so that another new checkpoint finds a claim that is over.

A reader that starts takes a higher epoch, which every slice contains: a second query on the same queue and application
ends the first, and the remaining tasks of a killed driver can do no harm. The rules are in `rules.claims`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import suppress
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition

from ..arrow.pages import Origin, batches
from ..client.bulk import Claim, ClaimReader, Claims, Slice
from ..client.manager import QueueManager
from ..client.queue import Queue
from ..errors import CheckpointLost, Fenced, OptionsError
from . import points
from .opening import check_queue, check_same, made_at, store_for_task
from .options import SourceOptions
from .planning import (
    BatchLimits,
    Planner,
    figures,
    limits,
    redelivered,
    stop_though_terminated,
    stop_when_terminated,
)
from .versions import ReadLimit, SupportsTriggerAvailableNow

Offset = dict[str, Any]


class SlicePartition(InputPartition):
    """A slice of a claim, with its queue, and the epoch under which it was planned."""

    def __init__(self, part: Slice, epoch: int, made: int) -> None:
        super().__init__(None)
        self.part, self.epoch, self.made = part, epoch, made


def claim_of(offset: Mapping[str, Any], options: SourceOptions, made: int) -> int:
    """The claim of an offset.

    Args:
        made: `made_at` of the queue.

    Raises:
        OptionsError: if the checkpoint is for another queue, application or kind of source.
        CheckpointLost: if it is for an earlier queue of this name that was deleted.
    """
    number = offset.get("claim")
    if not isinstance(number, int):
        raise OptionsError(
            f"the checkpoint's offset {dict(offset)!r} is not from a stream that drains a queue: it was written with "
            "mode=browse, or by another source. Give this query its own checkpoint",
        )
    written = offset.get("queue"), offset.get("application")
    if written != (options.queue, options.application):
        raise OptionsError(
            f"the checkpoint belongs to queue {written[0]!r} and application {written[1]!r}, but this query drains "
            f"{options.queue!r} as {options.application!r}: restore its options, or give it its own checkpoint",
        )
    if offset.get("made") != made:
        raise CheckpointLost(
            f"the checkpoint belongs to an earlier queue {options.queue!r}, which was deleted, or in another store: "
            "begin with a new checkpoint",
            queue=options.queue,
        )
    return number


def new_checkpoint(options: SourceOptions, settled: int) -> CheckpointLost:
    """The error of a new checkpoint for a queue that was drained under another one."""
    return CheckpointLost(
        f"application {options.application!r} has drained queue {options.queue!r} before (claims up to {settled} are "
        "over), and this query's checkpoint is new. Spark numbers the batches of a new checkpoint from 0 again, and a "
        "sink that an earlier checkpoint has written to passes over them without an error: their messages would be "
        "lost. Continue with the earlier checkpoint. If it is gone, write to a new output, and set option "
        "allowNewCheckpoint=true",
        application=options.application,
        settled=settled,
    )


class DrainReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """A stream that drains.

    Spark creates it twice for a query: in the planner, which claims, and again for the tasks, which read.
    """

    def __init__(self, options: SourceOptions, schema: pa.Schema) -> None:
        self._options = options
        self._schema = schema
        self._planner = Planner(options)
        self._planner_beside = Planner(options)  # for the thread: a connection runs one call at a time
        self._claims: ClaimReader | None = None
        self._made: int | None = None
        self._horizon: int | None = None
        self._given: Claim | None = None  # the claim that Spark got last, under these limits
        self._within = BatchLimits()
        self._ahead_within: BatchLimits | None = None  # the limits of the claim that was taken ahead, if any
        self._going: int | None = None  # the claim that is done but may still hold its messages
        self._beside: Future[None] | None = None
        self._has_ended_empty = False
        self._redelivered = 0  # messages that this run was given, though the run before it may have read them

    def initialOffset(self) -> Offset:  # noqa: N802 - Spark's names, here and below
        """The last claim that is over. Changes nothing and takes no epoch, because Spark asks more than once."""
        account = self._account()[1]
        return self._offset(0 if account is None else account.settled, 0) | {"initial": True}

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        """The limit from the options."""
        return BatchLimits.default(self._options)

    def latestOffset(self, start: Offset, limit: ReadLimit) -> Offset:  # noqa: N802
        """Confirms claims up to `start`, and takes the next one within the limit; returns `start` without messages.

        Raises CheckpointLost if claims are over and the checkpoint is new.
        """
        if points.reached:
            points.reached("next")
        done, is_new = self._claim_of(start), "initial" in start
        if is_new and done and not self._options.allow_new_checkpoint:
            raise new_checkpoint(self._options, done)
        asked, reader = limits(limit, self._options), self._reader()
        self._wait_for_thread()
        if self._ahead_within not in (None, asked):
            reader.return_ahead()
            self._ahead_within = None
        self._end_empty(start)
        claim = self._claim(reader, done, asked)
        self._going = done if self._ahead_within else None
        self._given, self._within, self._ahead_within = claim, asked, None
        if claim is None:
            return self._offset(done + 1, 0) | {"empty": True} if is_new else start
        if points.reached:
            points.reached("claimed")
        return self._offset(claim.number, claim.size)

    def reportLatestOffset(self) -> Offset:  # noqa: N802
        """For Spark's progress: the last claim that was taken, and the `figures`; `lag` is how many messages Spark has
        not got yet.

        The lag counts all messages on the queue except those in claims that Spark has; it includes those in open units
        of work.
        """
        local, account = self._account()
        held = () if account is None else account.held
        given = self._given.number if self._given is not None else 0
        at_work = sum(one.messages for one in held if one.number <= given)
        views = self._planner.manager().inspect.overview(local)
        told = figures(views, at_work, 0 if account is None else account.delivered)
        told["redelivered"] = self._redelivered
        return self._offset(max([given, *(one.number for one in held)]), 0) | told

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """Messages that arrive after this moment are not claimed in this run."""
        self._horizon = self._begin()

    def partitions(self, start: Offset, end: Offset) -> Sequence[InputPartition]:
        """The slices of the claim that ends there, which is planned from now on."""
        reader = self._reader()
        after, upto = self._claim_of(start), self._claim_of(end)
        if self._end_empty(end) or after == upto:
            return []
        assert reader.epoch is not None
        if points.reached:
            points.reached("logged")
        parts = reader.plan(after, upto, self._options.partitions)
        if points.reached:
            points.reached("planned")
        self._work_beside(upto)
        return [SlicePartition(part, reader.epoch, self._made_at()) for part in parts]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Reads the rows of a slice."""
        assert isinstance(partition, SlicePartition)
        options, part = self._options, partition.part
        with store_for_task(options.url, options.application) as qm, qm.open(options.queue, input="shared") as queue:
            check_same(qm, options.queue, partition.made)
            reader = ClaimReader(queue, options.application, epoch=partition.epoch)
            origin = Origin(options.queue, part.claim, part.delivered)
            for batch in batches(reader.read(part), origin, body=options.body, join=options.join_segments):
                if points.reached:
                    points.reached("reading")
                yield batch.select(self._schema.names).cast(self._schema) if batch.schema != self._schema else batch

    def commit(self, end: Offset) -> None:
        """Confirms claims up to this offset; harmless when repeated."""
        self._wait_for_thread()  # it takes ahead a claim after an open one
        self._end_empty(end)
        if (upto := self._claim_of(end)) != self._going:  # that one is removed while the next one's tasks read
            self._reader().settle(upto)

    def stop(self) -> None:
        """Ends the planner's connection. Also called after the driver was killed. Harmless when repeated.

        Removes the messages of claims that are done, and returns those of a claim taken ahead, unless another reader
        has started since, which has done so. The claim that Spark works on is not changed.
        """
        stop_though_terminated()
        reader, self._claims = self._claims, None
        try:
            if reader is not None:
                with suppress(Fenced):
                    self._wait_for_thread()
                    if self._going is not None:
                        reader.settle(self._going)
                    reader.return_ahead()
        finally:
            self._planner_beside.close()
            self._planner.close()

    # --- work while the tasks read

    def _work_beside(self, planned: int) -> None:
        """Starts the work that is done while the tasks read. Spark plans a claim again for each place that reads the
        stream.
        """
        if self._beside is not None:
            return
        pool = ThreadPoolExecutor(1, thread_name_prefix="inorder-claims")
        self._beside = pool.submit(self._work, self._reader().epoch, planned)
        pool.shutdown(wait=False)

    def _work(self, epoch: int | None, planned: int) -> None:
        """Removes the messages of claims that are done, and takes the next claim if the limits left messages on the
        queue.
        """
        reader = ClaimReader(self._planner_beside.queue(open_for_input), self._options.application, epoch=epoch)
        if points.reached:
            points.reached("confirming")
        if self._going is not None:
            reader.settle(self._going)
            self._going = None
        if points.reached:
            points.reached("confirmed")
        given = self._given
        if self._options.prefetch and given is not None and given.number == planned and given.more:
            if self._claim(reader, planned, self._within, ahead=True) is not None:
                self._ahead_within = self._within
            if points.reached:
                points.reached("ahead")

    def _wait_for_thread(self) -> None:
        """Raises the errors of the work done while the tasks read."""
        if (work := self._beside) is not None:
            wait([work])
            self._beside = None  # set now: a reader that stops while this waits must wait, too
            work.result()

    # --- the planner's start

    def _claim(self, reader: ClaimReader, start: int, within: BatchLimits, *, ahead: bool = False) -> Claim | None:
        most, most_bytes = within
        return reader.claim(
            start, self._options.wanted, most=most, most_bytes=most_bytes, horizon=self._horizon, ahead=ahead
        )

    def _end_empty(self, logged: Offset) -> bool:
        """Whether an offset in Spark's log is that of a first batch without messages; then its claim is over.

        Not every sink reads a batch, so this is checked wherever Spark shows that it has logged the offset.
        """
        if "empty" in logged and not self._has_ended_empty:
            self._reader().skip(self._claim_of(logged))
            self._has_ended_empty = True
        return "empty" in logged

    def _reader(self) -> ClaimReader:
        """The claims of this start: the planner's first call takes the epoch."""
        if self._claims is None:
            self._begin()
        assert self._claims is not None
        return self._claims

    def _begin(self) -> int:
        """The highest number on the queue when this query started or last asked."""
        stop_when_terminated(self.stop)
        self._redelivered = redelivered(self._account()[1])
        reader = ClaimReader(self._planner.queue(open_for_input), self._options.application)
        start = reader.begin()
        self._claims = reader
        return start.horizon

    def _account(self) -> tuple[str, Claims | None]:
        """The local queue, and the application's claims on it."""
        options, qm = self._options, self._planner.manager()
        local = check_queue(qm, options.queue).name
        known = (one for one in qm.bulk.claims() if (one.queue, one.application) == (local, options.application))
        return local, next(known, None)

    def _offset(self, claim: int, size: int) -> Offset:
        """The offset in the form that Spark stores: texts and integers only. The bytes are for readers of Spark's
        progress.
        """
        options, made = self._options, self._made_at()
        return {"queue": options.queue, "application": options.application, "claim": claim, "made": made, "size": size}

    def _claim_of(self, offset: Offset) -> int:
        return claim_of(offset, self._options, self._made_at())

    def _made_at(self) -> int:
        """When the queue of this query was created."""
        if self._made is None:
            qm = self._planner.manager()
            self._made = made_at(qm, check_queue(qm, self._options.queue).name)
        return self._made

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_claims": None, "_beside": None}


def open_for_input(qm: QueueManager, name: str) -> Queue:
    return qm.open(name, input="shared")


__all__ = ["DrainReader", "SlicePartition", "claim_of", "new_checkpoint"]
