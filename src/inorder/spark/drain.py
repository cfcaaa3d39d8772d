"""The source in drain mode: a stream that removes messages from queues, each exactly once.

Spark tells a source that a batch is done only when it plans the next one, and never for the last batch of a run. So the
queue manager keeps numbered *claims*, each with a fixed list of messages, and the offset has the number of a claim for
each queue.

    latestOffset     confirms the claims that are done in the checkpoint, and takes the next ones
    partitions       Spark's log knows the claims now: they are planned, and cut into slices
    read             reads a slice; Spark may repeat this
    commit           confirms

A query on one queue is a query on a list of one. Only its offset has a different form, from 0.1.0:

    {"queue": "ORDERS", "application": "archive", "claim": 7, "made": 1795912406525603, "size": 93}
    {"application": "archive", "size": 93, "queues": {"ORDERS.A@1795912406525603": {"claim": 7, "size": 93}}}

A micro-batch takes at most one claim of each queue. A queue that the offset does not name was never drained under this
checkpoint.

While Spark's tasks read the claim of a query on one queue, a thread of the planner takes the next one ahead, if the
limits left messages on the queue. When Spark asks for it, it gets it without delay: the previous claim is only marked
as done, and its messages are removed while the tasks read again.

Spark asks for the initial offset only if the checkpoint has no batch yet, and then numbers its batches from 0. A sink
that knows batches by their numbers skips them if an earlier checkpoint has written to it. So if claims are over, a new
checkpoint is refused unless an option allows it. Spark runs its first batch even without messages: that batch gets the
number of an empty claim, so that another new checkpoint finds a claim that is over.

A reader that starts takes a higher epoch, which every slice contains: a second query on the same queue and application
ends the first, and the remaining tasks of a killed driver can do no harm. The rules are in `rules.claims`.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import suppress
from math import ceil
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import InputPartition

from ..arrow.pages import Origin, batches
from ..client.bulk import Claim, ClaimReader, Slice
from ..client.manager import QueueManager
from ..errors import CheckpointLost, Fenced, InorderError, OptionsError
from . import points
from .options import NO_LIMIT, SourceOptions
from .planning import (
    BatchLimits,
    QueueStream,
    figures,
    limits,
    redelivered,
    stop_though_terminated,
    stop_when_terminated,
)
from .source_queues import Seen, SourceQueue, Stores, fair_shares, name_in, packed, rows_of, slices_of
from .versions import ReadLimit

log = logging.getLogger("inorder.spark.source")

Offset = dict[str, Any]
Entries = dict[str, dict[str, Any]]  # by key of the queue: `claim`, `size`, and `empty` for a claim without messages


class SlicePartition(InputPartition):
    """A slice of a claim, and the epoch under which it was planned."""

    def __init__(self, part: Slice, epoch: int) -> None:
        super().__init__(None)
        self.part, self.epoch = part, epoch


def claim_of(offset: Mapping[str, Any], options: SourceOptions, made: int) -> int:
    """The claim in an offset of one queue.

    Args:
        made: `made_at` of the queue.

    Raises:
        OptionsError: if the checkpoint is for another queue, application or kind of source.
        CheckpointLost: if it is for an earlier queue of this name that was deleted.
    """
    number = offset.get("claim")
    if not isinstance(number, int):
        raise OptionsError(
            f"the checkpoint's offset {dict(offset)!r} is not from a stream that drains one queue: it was written by a "
            "query on several queues, with mode=browse, or by another source. Give this query its own checkpoint",
        )
    written = offset.get("queue"), offset.get("application")
    if written != (options.queue, options.application):
        raise OptionsError(
            f"the checkpoint belongs to queue {written[0]!r} and application {written[1]!r}, but this query drains "
            f"{options.queue!r} as {options.application!r}: restore its options, or give it its own checkpoint",
        )
    if offset.get("made") != made:
        raise CheckpointLost(
            f"the checkpoint belongs to an earlier queue {options.queue!r}, which was deleted, or to one in another "
            "store: restore option url, or begin with a new checkpoint and a new output",
            queue=options.queue,
        )
    return number


def entries_of(offset: Mapping[str, Any], application: str) -> Entries:
    """The entries of an offset of several queues by key. Raises OptionsError if the checkpoint is from another kind
    of query.
    """
    entries = offset.get("queues")
    if not isinstance(entries, dict) or any("claim" not in one for one in entries.values()):
        raise OptionsError(
            f"the checkpoint's offset {dict(offset)!r} is not from a stream that drains several queues: it was written "
            "by a query on one queue, with mode=browse, or by another source. Give this query its own checkpoint"
        )
    if offset.get("application") != application:
        raise OptionsError(
            f"the checkpoint belongs to application {offset.get('application')!r}, but this query drains as "
            f"{application!r}: restore the option, or give the query its own checkpoint"
        )
    return entries


class DrainReader(QueueStream):
    """A stream that drains."""

    def __init__(self, options: SourceOptions, schema: pa.Schema) -> None:
        super().__init__(options, schema)
        self._stores_beside = Stores(options)  # for the thread: a connection runs one call at a time
        self._epochs: dict[str, int] = {}
        self._has_started = False
        self._lengths: dict[str, float] = {}  # bytes of a message on average, in the last claim of each queue
        self._known: dict[str, SourceQueue] = {}  # since the last call for a micro-batch
        self._confirmed: Entries = {}  # by that call
        self._given: dict[str, Claim] = {}  # the claim that Spark got last from each queue
        self._within = BatchLimits()  # the limits of the last micro-batch
        self._ahead_within: BatchLimits | None = None  # the limits of the claim that was taken ahead, if any
        self._going: int | None = None  # the claim that is done but may still hold its messages
        self._beside: Future[None] | None = None
        self._has_ended_empty = False
        self._redelivered = 0  # messages that this run was given, though the run before it may have read them

    def initialOffset(self) -> Offset:  # noqa: N802 - Spark's names, here and below
        """The last claims that are over. Changes nothing and takes no epoch, because Spark asks more than once."""
        seen, several = self._stores.look(), self._options.is_several
        over = {key: _entry(one.settled, 0) for key, one in seen.items() if one.settled or not several}
        return self._offset(over) | {"initial": True}

    def latestOffset(self, start: Offset, limit: ReadLimit) -> Offset:  # noqa: N802
        """Confirms claims up to `start`, and takes the next ones within the limit; returns `start` without messages.

        Raises CheckpointLost if another checkpoint has drained one of the queues.
        """
        points.at("next")
        before, is_new = self._entries(start), "initial" in start
        if is_new:
            self._check_new({key: one["claim"] for key, one in before.items() if one["claim"]})
        asked = limits(limit, self._options)
        self._start()
        self._wait_for_thread()
        if self._ahead_within not in (None, asked):
            only = self._stores.only()
            self._reader(only.key, only).return_ahead()
            self._ahead_within = None
        self._end_empty(start)
        there, found = self._take(before, asked)
        self._stores.close_unused(found.keys())
        self._known, self._confirmed = there, before
        self._given, self._within = self._given | found, asked
        if not found and not is_new:
            return start
        after = {key: one for key, one in before.items() if key in there}
        for key in before.keys() - after.keys():
            log.warning("%s is no longer read: it was deleted, or its store was replaced or is no longer named", key)
        after |= {key: _entry(claim.number, claim.size) for key, claim in found.items()}
        if not found:  # Spark runs its first batch even without messages, and a sink remembers its number
            key = self._stores.first().key
            after[key] = _entry(before[key]["claim"] + 1 if key in before else 1, 0) | {"empty": True}
        if found:
            points.at("claimed")
        return self._offset(after, sum(claim.size for claim in found.values()))

    def reportLatestOffset(self) -> Offset:  # noqa: N802
        """For Spark's progress: the `figures` of all queues together; `lag` is how many messages Spark has not got yet.

        The lag counts all messages on the queues except those in claims that Spark has; it includes those in open units
        of work. The offset of one queue has the claim taken last; that of several has the number of queues as `read`.
        """
        seen = {key: one for key, one in self._stores.look().items() if one.is_chosen}
        given = {key: self._given[key].number if key in self._given else 0 for key in seen}
        accounts = {key: one.account for key, one in seen.items() if one.account is not None}
        at_work = sum(
            claim.messages for key, one in accounts.items() for claim in one.held if claim.number <= given[key]
        )
        views = (one.view for one in seen.values() if one.view is not None)
        told = figures(views, at_work, sum(one.delivered for one in accounts.values()))
        told["redelivered"] = self._redelivered
        if self._options.is_several:
            return self._offset({}) | told | {"read": len(seen)}
        return self._offset({key: _entry(max([given[key], *one.held]), 0) for key, one in seen.items()}) | told

    def partitions(self, start: Offset, end: Offset) -> Sequence[InputPartition]:
        """The slices of the claims that end there, which are planned from now on."""
        before, upto = self._entries(start), self._entries(end)
        self._start()
        self._end_empty(end)
        moved = {
            key: one
            for key, one in upto.items()
            if "empty" not in one and (key not in before or before[key]["claim"] != one["claim"])
        }
        if not moved:
            return []
        points.at("logged")
        sources = self._source_queues(moved.keys())
        slices = slices_of({key: one["size"] for key, one in moved.items()}, self._options.partitions)

        def plan(key: str, source: SourceQueue) -> list[SlicePartition]:
            claim, reader = moved[key]["claim"], self._reader(key, source)
            parts = reader.plan(before[key]["claim"] if key in before else claim - 1, claim, slices[key])
            assert reader.epoch is not None
            return [SlicePartition(part, reader.epoch) for part in parts]

        try:
            planned = self._stores.each(sources, plan)
        except InorderError:
            self._known = {}
            self._source_queues(moved.keys())  # a queue that is gone has a clearer error
            raise
        points.at("planned")
        self._work_beside(moved)
        parts = [
            (sources[key], part, moved[key]["size"] // len(planned[key]))
            for key in sorted(moved, key=lambda key: (sources[key].url, key))
            for part in planned[key]
        ]
        return packed(parts, self._options.partitions)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Reads the rows of a task's slices."""
        return rows_of(partition, self._schema, self._read_slice, self._options.application)

    def _read_slice(self, qm: QueueManager, source: SourceQueue, planned: SlicePartition) -> Iterator[pa.RecordBatch]:
        options, part = self._options, planned.part
        with qm.open(source.queue, input="shared") as queue:
            reader = ClaimReader(queue, options.application, epoch=planned.epoch)
            origin = Origin(source.queue, part.claim, part.delivered)
            for batch in batches(reader.read(part), origin, body=options.body, join=options.join_segments):
                points.at("reading")
                yield batch

    def commit(self, end: Offset) -> None:
        """Confirms claims up to this offset; harmless when repeated."""
        upto = self._entries(end)
        if upto == self._confirmed:  # Spark asks for the next micro-batch before it commits the last one
            return
        self._start()
        self._wait_for_thread()  # it takes ahead a claim after an open one
        self._end_empty(end)
        done = {
            key: one.source
            for key, one in self._stores.look().items()
            if key in upto and any(number <= upto[key]["claim"] for number in one.held)
        }
        self._stores.each(done, lambda key, source: self._settle(key, source, upto[key]["claim"]))
        self._stores.close_unused(frozenset())

    def stop(self) -> None:
        """Ends the planner's connections. Also called after the driver was killed. Harmless when repeated.

        Removes the messages of claims that are done, and returns those of a claim taken ahead, unless a reader that has
        started since has already done so. Claims that Spark works on are not changed.
        """
        stop_though_terminated()
        epochs, self._epochs, self._has_started = self._epochs, {}, False
        try:
            if epochs and not self._options.is_several:
                with suppress(Fenced):
                    self._wait_for_thread()
                    only = self._stores.only()
                    reader = self._as_of(epochs[only.key], self._stores, only)
                    if self._going is not None:
                        reader.settle(self._going)
                    reader.return_ahead()
        finally:
            self._stores_beside.close()
            self._stores.close()

    # --- taking

    def _take(self, before: Entries, asked: BatchLimits) -> tuple[dict[str, SourceQueue], dict[str, Claim]]:
        """Confirms the finished claims on each queue, and takes the next claims within the limits. Returns the queues
        that exist, and the claims.
        """
        starts = {key: one["claim"] for key, one in before.items()}
        if self._options.is_several:
            seen = self._stores.look()
            there = {key: one.source for key, one in seen.items()}
            shares, confirmed = self._shares(seen, starts, asked)
            starts = {key: one.settled for key, one in seen.items()} | starts
        else:
            only = self._stores.only()
            there, shares, confirmed = {only.key: only}, {only.key: asked}, []

        def work(key: str, source: SourceQueue) -> Claim | None:
            if key in shares:
                with suppress(*self._stores.gone):
                    return self._claim(key, self._reader(key, source), starts[key], shares[key])
            else:
                self._settle(key, source, starts[key])
            return None

        claims = self._stores.each({key: there[key] for key in dict.fromkeys([*shares, *confirmed])}, work)
        taken = {key: claim for key, claim in claims.items() if claim is not None}
        self._turn += 1
        self._served.update(dict.fromkeys(taken, self._turn))
        self._lengths |= {key: claim.size / claim.messages for key, claim in taken.items()}
        self._going = next(iter(starts.values())) if self._ahead_within else None
        self._ahead_within = None
        return there, taken

    def _shares(
        self, seen: Mapping[str, Seen], starts: Mapping[str, int], asked: BatchLimits
    ) -> tuple[dict[str, BatchLimits], list[str]]:
        """The limits of the queues to claim from, and the queues with a claim that is done."""
        wanted: dict[str, Seen] = {}
        confirmed: list[str] = []
        for key, one in seen.items():
            done = starts.get(key)
            if one.held and one.held[0] == done:
                confirmed.append(key)
            has_open = any(done is None or number > done for number in one.held)
            is_over = done is not None and done != one.settled and not one.held  # too old or lost: the claim refuses it
            if has_open or is_over or (one.is_chosen and one.free and self._counter(key) > 0):
                wanted[key] = one
        self._check_new({key: one.settled for key, one in wanted.items() if key not in starts and one.settled})
        messages = fair_shares({key: max(1, one.free) for key, one in wanted.items()}, asked.messages, self._served)
        sizes = self._shares_of_bytes(messages, asked.size)
        return {key: BatchLimits(messages[key], size) for key, size in sizes.items()}, confirmed

    def _shares_of_bytes(self, messages: Mapping[str, int], most: int) -> Mapping[str, int]:
        """Divides the limit of bytes among queues. The bytes on a queue are unknown, so its last claim gives an
        estimate. A queue that was not read yet counts as deep.
        """
        if most == NO_LIMIT:
            return dict.fromkeys(messages, NO_LIMIT)
        lengths = self._lengths
        waiting = {key: ceil(count * lengths[key]) if key in lengths else most for key, count in messages.items()}
        return fair_shares({key: max(1, size) for key, size in waiting.items()}, most, self._served)

    def _claim(
        self, key: str, reader: ClaimReader, start: int, within: BatchLimits, *, ahead: bool = False
    ) -> Claim | None:
        horizon = None if self._counters is None else self._counter(key)
        most, most_bytes = within
        return reader.claim(start, self._options.wanted, most=most, most_bytes=most_bytes, horizon=horizon, ahead=ahead)

    def _counter(self, key: str) -> int:
        """The highest number that may be claimed there; 0: none, the queue is newer than this run."""
        return NO_LIMIT if self._counters is None else self._counters.get(key, 0)

    def _settle(self, key: str, source: SourceQueue, upto: int) -> None:
        with suppress(*self._stores.gone):
            self._reader(key, source).settle(upto)

    # --- work while the tasks read

    def _work_beside(self, planned: Entries) -> None:
        """Starts the work that is done while the tasks read a claim of one queue. Spark plans a claim again for each
        place that reads the stream.
        """
        if self._options.is_several or self._beside is not None:
            return
        only = self._stores.only()
        pool = ThreadPoolExecutor(1, thread_name_prefix="inorder-claims")
        self._beside = pool.submit(self._work, only, self._epochs[only.key], planned[only.key]["claim"])
        pool.shutdown(wait=False)

    def _work(self, only: SourceQueue, epoch: int, planned: int) -> None:
        """Removes the messages of claims that are done, and takes the next claim if the limits left messages on the
        queue.
        """
        reader = self._as_of(epoch, self._stores_beside, only)
        points.at("confirming")
        if self._going is not None:
            reader.settle(self._going)
            self._going = None
        points.at("confirmed")
        given = self._given.get(only.key)
        if self._options.prefetch and given is not None and given.number == planned and given.more:
            if self._claim(only.key, reader, planned, self._within, ahead=True) is not None:
                self._ahead_within = self._within
            points.at("ahead")

    def _wait_for_thread(self) -> None:
        """Raises the errors of the work done while the tasks read."""
        if (work := self._beside) is not None:
            wait([work])
            self._beside = None  # set now: a reader that stops while this waits must wait, too
            work.result()

    # --- the planner's start

    def _start(self) -> None:
        """Before the first call that changes something."""
        if not self._has_started:
            stop_when_terminated(self.stop)
            self._redelivered = sum(redelivered(one.account) for one in self._stores.look().values())
            self._has_started = True

    def _reader(self, key: str, source: SourceQueue) -> ClaimReader:
        """The claims of this start on a queue: the first call takes the epoch."""
        reader = self._as_of(self._epochs.get(key), self._stores, source)
        if reader.epoch is None:
            self._epochs[key] = reader.begin().epoch
        return reader

    def _as_of(self, epoch: int | None, stores: Stores, source: SourceQueue) -> ClaimReader:
        return ClaimReader(stores.queue(source), self._options.application, epoch=epoch)

    def _check_new(self, drained: Mapping[str, int]) -> None:
        """Raises CheckpointLost if another checkpoint has drained one of these queues, up to these claims."""
        if drained and not self._options.allow_new_checkpoint:
            key, settled = next(iter(drained.items()))
            raise CheckpointLost(
                f"application {self._options.application!r} has drained queue {name_in(key)!r} before (claims up to "
                f"{settled} are over), and this query's checkpoint is new. Spark numbers the batches of a new "
                "checkpoint from 0 again, and a sink that an earlier checkpoint has written to passes over them "
                "without an error: their messages would be lost. Continue with the earlier checkpoint. If it is gone, "
                "write to a new output, and set option allowNewCheckpoint=true",
                application=self._options.application,
                settled=settled,
            )

    def _end_empty(self, logged: Offset) -> None:
        """Ends the claim of a first batch without messages.

        Not every sink reads a batch, so this is called wherever Spark shows that it has logged the offset.
        """
        empty = {key: one["claim"] for key, one in self._entries(logged).items() if "empty" in one}
        if not empty or self._has_ended_empty:
            return
        seen = self._stores.look()
        for key in empty.keys() & seen.keys():  # a queue that is gone lacks no message
            with suppress(*self._stores.gone):
                self._reader(key, seen[key].source).skip(empty[key])
        self._has_ended_empty = True

    def _source_queues(self, keys: AbstractSet[str]) -> dict[str, SourceQueue]:
        """Finds the queues of an offset. Raises CheckpointLost if one is gone whose claim Spark still needs."""
        if not keys <= self._known.keys():
            self._known = {key: one.source for key, one in self._stores.look().items()}
        for key in keys:
            if key not in self._known:
                name = name_in(key)
                raise CheckpointLost(
                    f"Spark has logged a batch with messages of queue {name!r}, which was deleted, or whose store the "
                    "option url no longer names: restore the option. If it was deleted, its messages are gone; release "
                    f"the claims of {self._options.application!r} on the other queues, and begin with a new checkpoint",
                    queue=name,
                )
        return {key: self._known[key] for key in keys}

    # --- offsets: texts and integers only

    def _offset(self, entries: Entries, size: int = 0) -> Offset:
        """The offset in the form that Spark stores. The bytes are for readers of Spark's progress."""
        application = self._options.application
        if self._options.is_several:
            return {"application": application, "size": size, "queues": entries}
        only = self._stores.only()
        return {"queue": only.queue, "application": application, "claim": 0, "made": only.made} | entries[only.key]

    def _entries(self, offset: Offset) -> Entries:
        """Raises OptionsError, CheckpointLost: the offset is from another query, or of an earlier queue."""
        if self._options.is_several:
            return entries_of(offset, self._options.application)
        only = self._stores.only()
        one = _entry(claim_of(offset, self._options, only.made), offset.get("size", 0))
        return {only.key: one | ({"empty": True} if "empty" in offset else {})}

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_epochs": {}, "_has_started": False, "_beside": None}


def _entry(claim: int, size: int) -> dict[str, Any]:
    return {"claim": claim, "size": size}
