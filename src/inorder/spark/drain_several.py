"""The source in drain mode for several queues and stores: one query, one account for each queue and application.

An offset has the number of a claim for each queue that the query has drained, so what `drain` says of one queue is true
of each: which claim is given again, planned, confirmed or refused. A micro-batch takes at most one claim of each queue.
No claim is taken ahead.

    {"application": "archive", "size": 93, "queues": {"ORDERS.A@1795912406525603": {"claim": 7, "size": 93}}}

A queue that the offset does not name was never drained under this checkpoint. If claims of the application are over
there, another checkpoint has drained it, which is refused as for one queue.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import suppress
from math import ceil
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition

from ..client.bulk import Claim, ClaimReader
from ..client.queue import Queue
from ..errors import CheckpointLost, InorderError, OptionsError, QueueDeleted, UnknownQueue
from . import points
from .drain import DrainReader, Offset, SlicePartition, new_checkpoint
from .options import NO_LIMIT, SourceOptions
from .planning import BatchLimits, figures, limits
from .source_queues import (
    Seen,
    SourceQueue,
    SourceQueuePartition,
    Stores,
    fair_shares,
    packed,
    slices_of,
    with_store,
    without_store,
)
from .versions import ReadLimit, SupportsTriggerAvailableNow

log = logging.getLogger("inorder.spark.source")

Entries = dict[str, dict[str, Any]]  # by key of the queue: `claim`, `size`, and `empty` for a claim without messages


def entries_of(offset: Mapping[str, Any], application: str) -> Entries:
    """The entries of an offset by key. Raises OptionsError if the checkpoint is that of another kind of query."""
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


class SeveralDrainReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """A stream that drains several queues."""

    def __init__(self, options: SourceOptions, schema: pa.Schema) -> None:
        self._options = options
        self._schema = schema
        self._stores = Stores(options)
        self._epochs: dict[str, int | None] = {}
        self._counters: dict[str, int] | None = None  # of each queue, when an AvailableNow run was prepared
        self._served: dict[str, int] = {}
        self._turn = 0
        self._lengths: dict[str, float] = {}  # bytes of a message on average, in the last claim of each queue
        self._has_ended_empty = False
        self._known: dict[str, SourceQueue] = {}  # since the last call for a micro-batch
        self._confirmed: Entries = {}  # by that call

    def initialOffset(self) -> Offset:  # noqa: N802 - Spark's names, here and below
        """The last claims that are over. Changes nothing."""
        over = {key: _entry(one.settled, 0) for key, one in self._stores.look().items() if one.settled}
        return self._offset(over) | {"initial": True}

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        """The limit from the options, of all queues together."""
        return BatchLimits.default(self._options)

    def latestOffset(self, start: Offset, limit: ReadLimit) -> Offset:  # noqa: N802
        """Confirms claims up to `start`, and takes the next ones within the limit; returns `start` without messages.

        Raises CheckpointLost if another checkpoint has drained one of the queues.
        """
        if points.reached:
            points.reached("next")
        before, is_new = self._entries(start), "initial" in start
        asked = limits(limit, self._options)
        self._end_empty(start)
        seen = self._stores.look()
        if is_new:
            self._check_new({key: one for key, one in seen.items() if one.settled})
        found = self._take(seen, before, asked)
        self._known, self._confirmed = {key: one.source for key, one in seen.items()}, before
        if not found and not is_new:
            return start
        self._turn += 1
        self._served.update(dict.fromkeys(found, self._turn))
        after = {key: one for key, one in before.items() if key in seen}
        for key in before.keys() - after.keys():
            log.warning("%s is no longer read: it was deleted, or its store is no longer named", key)
        after |= {key: _entry(claim.number, claim.size) for key, claim in found.items()}
        if not found:  # Spark runs its first batch even without messages, and a sink remembers its number
            source = self._stores.first()
            after[source.key] = _entry(seen[source.key].settled + 1 if source.key in seen else 1, 0) | {"empty": True}
        if points.reached and found:
            points.reached("claimed")
        return self._offset(after) | {"size": sum(claim.size for claim in found.values())}

    def reportLatestOffset(self) -> Offset:  # noqa: N802
        """For Spark's progress: the `figures` of all queues together, and of how many."""
        seen = [one for one in self._stores.look().values() if one.is_chosen]
        confirmed = sum(one.account.delivered for one in seen if one.account is not None)
        told = figures((one.view for one in seen), sum(one.claimed for one in seen), confirmed)
        return self._offset({}) | told | {"read": len(seen)}

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """Messages and queues that arrive after this moment are not read in this run."""
        self._counters = {key: one.counter for key, one in self._stores.look().items()}

    def partitions(self, start: Offset, end: Offset) -> Sequence[InputPartition]:
        """The slices of the claims that end there, which are planned from now on."""
        before, upto = self._entries(start), self._entries(end)
        self._end_empty(end)
        moved = {
            key: one
            for key, one in upto.items()
            if "empty" not in one and (key not in before or before[key]["claim"] != one["claim"])
        }
        if not moved:
            return []
        if points.reached:
            points.reached("logged")
        sources = self._source_queues(moved.keys())
        slices = slices_of({key: one["size"] for key, one in moved.items()}, self._options.partitions)

        def plan(key: str, source: SourceQueue) -> list[SlicePartition]:
            claim = moved[key]["claim"]
            after = before[key]["claim"] if key in before else claim - 1
            with self._stores.queue(source) as queue:
                reader = self._reader(key, queue)
                parts = reader.plan(after, claim, slices[key])
            assert reader.epoch is not None
            return [SlicePartition(part, reader.epoch, source.made) for part in parts]

        try:
            planned = self._stores.each(sources, plan)
        except InorderError:
            self._known = {}
            self._source_queues(moved.keys())  # a queue that is gone has a clearer error
            raise
        if points.reached:
            points.reached("planned")
        parts = [
            (sources[key], part, moved[key]["size"] // len(planned[key]))
            for key in sorted(moved)
            for part in planned[key]
        ]
        return packed(parts, self._options.partitions)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Reads the rows of its slices, one queue after the other."""
        assert isinstance(partition, SourceQueuePartition)
        for source, part in partition.parts:
            alone = DrainReader(source.options(self._options), without_store(self._schema))
            for batch in alone.read(part):
                yield with_store(batch, self._schema, source.url)

    def commit(self, end: Offset) -> None:
        """Confirms claims up to this offset; harmless when repeated."""
        upto = self._entries(end)
        self._end_empty(end)
        if upto == self._confirmed:  # Spark asks for the next micro-batch before it commits the last one
            return
        done = {
            key: one.source
            for key, one in self._stores.look().items()
            if key in upto and any(number <= upto[key]["claim"] for number in one.held)
        }
        self._stores.each(done, lambda key, source: self._settle(key, source, upto[key]["claim"]))

    def stop(self) -> None:
        """Ends the planner's connections; claims stay as they are. Also called after the driver was killed."""
        self._stores.close()

    # --- taking

    def _take(self, seen: Mapping[str, Seen], before: Entries, asked: BatchLimits) -> dict[str, Claim]:
        """Confirms what is done on each queue, and takes the next claims within the limits."""
        wanted: dict[str, Seen] = {}
        confirmed: dict[str, SourceQueue] = {}
        for key, one in seen.items():
            done = before[key]["claim"] if key in before else None
            if one.held and one.held[0] == done:
                confirmed[key] = one.source
            has_open = any(done is None or number > done for number in one.held)
            is_over = done is not None and done != one.settled and not one.held  # too old or lost: refused below
            if has_open or is_over or (one.is_chosen and one.free and self._counter(key) > 0):
                wanted[key] = one
        self._check_new({key: one for key, one in wanted.items() if key not in before and one.settled})
        shares = fair_shares({key: max(1, one.free) for key, one in wanted.items()}, asked.messages, self._served)
        sizes = self._shares_of_bytes(shares, asked.size)

        def work(key: str, source: SourceQueue) -> Claim | None:
            start = before[key]["claim"] if key in before else seen[key].settled
            if key not in sizes:
                self._settle(key, source, start)
                return None
            with suppress(QueueDeleted, UnknownQueue), self._stores.queue(source) as queue:  # since `look`
                return self._reader(key, queue).claim(
                    start, self._options.wanted, most=shares[key], most_bytes=sizes[key], horizon=self._horizon(key)
                )
            return None

        there = {key: seen[key].source for key in [*sizes, *(key for key in confirmed if key not in sizes)]}
        taken = {key: claim for key, claim in self._stores.each(there, work).items() if claim is not None}
        self._lengths |= {key: claim.size / claim.messages for key, claim in taken.items()}
        return taken

    def _shares_of_bytes(self, messages: Mapping[str, int], most: int) -> Mapping[str, int]:
        """Divides the limit of bytes among queues. Nobody knows the bytes on a queue: its last claim gives an estimate.
        A queue that was not read yet counts as deep.
        """
        if most == NO_LIMIT:
            return dict.fromkeys(messages, NO_LIMIT)
        lengths = self._lengths
        waiting = {key: ceil(count * lengths[key]) if key in lengths else most for key, count in messages.items()}
        return fair_shares({key: max(1, size) for key, size in waiting.items()}, most, self._served)

    def _counter(self, key: str) -> int:
        """The highest number that may be claimed there; 0: none, the queue is newer than this run."""
        return NO_LIMIT if self._counters is None else self._counters.get(key, 0)

    def _horizon(self, key: str) -> int | None:
        return None if self._counters is None else self._counter(key)

    def _settle(self, key: str, source: SourceQueue, upto: int) -> None:
        with suppress(QueueDeleted, UnknownQueue), self._stores.queue(source) as queue:  # since `look`
            self._reader(key, queue).settle(upto)

    def _check_new(self, drained: Mapping[str, Seen]) -> None:
        """Raises CheckpointLost if another checkpoint has drained one of these queues."""
        if drained and not self._options.allow_new_checkpoint:
            one = next(iter(drained.values()))
            raise new_checkpoint(one.source.options(self._options), one.settled)

    def _end_empty(self, logged: Offset) -> None:
        """Ends the claim of a first batch without messages, once Spark shows that it has logged it."""
        if self._has_ended_empty:
            return
        empty = {key: one["claim"] for key, one in self._entries(logged).items() if "empty" in one}
        seen = self._stores.look() if empty else {}
        for key in empty.keys() & seen.keys():  # a queue that is gone lacks no message
            with suppress(QueueDeleted, UnknownQueue), self._stores.queue(seen[key].source) as queue:
                self._reader(key, queue).skip(empty[key])
        self._has_ended_empty = bool(empty)

    def _source_queues(self, keys: AbstractSet[str]) -> dict[str, SourceQueue]:
        """Where the queues of an offset are. Raises CheckpointLost if one is gone whose claim Spark still needs."""
        if not keys <= self._known.keys():
            self._known = {key: one.source for key, one in self._stores.look().items()}
        for key in keys:
            if key not in self._known:
                name = key.rpartition("@")[0]
                raise CheckpointLost(
                    f"Spark has logged a batch with messages of queue {name!r}, which was deleted, or whose store the "
                    "option url no longer names: restore the option. If it was deleted, its messages are gone; release "
                    f"the claims of {self._options.application!r} on the other queues, and begin with a new checkpoint",
                    queue=name,
                )
        return {key: self._known[key] for key in keys}

    def _reader(self, key: str, queue: Queue) -> ClaimReader:
        """The claims of this start there: the first call takes the epoch."""
        reader = ClaimReader(queue, self._options.application, epoch=self._epochs.get(key))
        if reader.epoch is None:
            reader.begin()
            self._epochs[key] = reader.epoch
        return reader

    def _offset(self, entries: Entries) -> Offset:
        return {"application": self._options.application, "size": 0, "queues": entries}

    def _entries(self, offset: Offset) -> Entries:
        return entries_of(offset, self._options.application)


def _entry(claim: int, size: int) -> dict[str, Any]:
    return {"claim": claim, "size": size}


__all__ = ["SeveralDrainReader", "entries_of"]
