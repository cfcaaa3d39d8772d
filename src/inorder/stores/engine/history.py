"""The operations on the history of queues (`rules.history`).

A sample reads the counters of all queues without a lock, makes its texts outside of operations, and then writes one
row for each ring, without a sync. A power failure may therefore lose the latest samples.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from ...rules.history import RINGS, HistoryPoint, HistoryRing, Period, QueueCounts, counts_in, counts_of, text_of
from ..seam.backend import Counts
from ..seam.damage import decodes
from ..seam.tables import SampleRow
from ..seam.telemetry import count, event
from .catalog import Catalog
from .operation import Operation, in_operation
from .process import OpenStore

sample_in: Final = decodes("table sample")(counts_in)


class HistoryVerbs(OpenStore):
    """The operations on the history of queues; `protocol.LocalStore` documents them."""

    @event("sample", "queues", measured=count)
    def sample(self) -> int:
        counted = self._counted()
        if counted is None:
            return 0
        at, queues, earlier = counted
        found = {ring: sample_in(text) for ring, text in earlier.items()}
        self._keep(
            [SampleRow(one.seconds, one.slot(at), at, text_of(queues, found.get(one, {}))) for one in RINGS.values()]
        )
        return len(queues)

    @in_operation(writes=False)
    def _counted(
        self, operation: Operation
    ) -> tuple[float, Mapping[int, QueueCounts], Mapping[HistoryRing, str]] | None:
        """Returns the time, the counts of each queue, and the samples of the slots of this time.

        None: this minute has a sample. Each minute all processes of a server except one get that.
        """
        at = operation.backend.common_time(operation.now)
        if _rows_at(operation, RINGS["hour"], at):
            return None
        rows = {ring: _rows_at(operation, ring, at) for ring in RINGS.values()}
        queues = {one.queue: _counts(one, at) for one in operation.backend.overview(operation.now)}
        return at, queues, {ring: row.queues for ring, found in rows.items() for row in found}

    @in_operation(feeds=True)
    def _keep(self, operation: Operation, rows: Sequence[SampleRow]) -> None:
        """Writes a sample, unless another server has written a later one."""
        for ring, row in zip(RINGS.values(), rows, strict=True):
            if not any(one.at >= row.at for one in _rows_at(operation, ring, row.at)):
                operation.backend.save(row)

    @event("history", "samples", measured=lambda found, *_: [sum(map(len, found))])
    @in_operation(writes=False)
    def history(self, operation: Operation, queues: Sequence[str], period: Period) -> list[list[HistoryPoint]]:
        ring, now, catalog = RINGS[period], operation.backend.common_time(operation.now), Catalog(operation)
        numbers = [None if catalog.is_unused(queue) else catalog.local(queue).id for queue in queues]
        read = decodes("table sample")(lambda text: counts_of(numbers, text))
        rows = sorted(operation.backend.select(SampleRow, seconds=ring.seconds), key=lambda row: row.at)
        samples = [(row.at, read(row.queues)) for row in rows if 0 <= ring.distance(row.at, now) < ring.slots]
        return [[HistoryPoint(at, *counts[number]) for at, counts in samples if number in counts] for number in numbers]


def _counts(one: Counts, at: float) -> QueueCounts:
    age = 0 if one.oldest_put_at is None else max(0, int(at - one.oldest_put_at))
    return QueueCounts(one.depth, one.depth, one.arrived, age)


def _rows_at(operation: Operation, ring: HistoryRing, at: float) -> list[SampleRow]:
    """The sample in the slot of this time, if any; a row there from an earlier round is not one."""
    rows = operation.backend.select(SampleRow, seconds=ring.seconds, slot=ring.slot(at))
    return [row for row in rows if ring.distance(row.at, at) == 0]
