"""Checks a store in memory: the conditions of its rows, in the words of `stores/sql/checks.sql`."""

from __future__ import annotations

from collections.abc import Iterator

from ...rules.lifecycle import State
from ..seam.queued import HELD, LOCKS, QueuedMessage
from ..seam.tables import DefinitionRow, UnitRow
from .backend import MemoryBackend


def problems(backend: MemoryBackend) -> list[str]:
    """Returns all findings in words; empty if there are none."""
    names = {row.id: row.name for row in backend.select(DefinitionRow) if row.type == "local"}
    units = {unit.id for unit in backend.select(UnitRow)}
    found: list[str] = []
    for queue, name in names.items():
        rows = backend.of_queue(queue)
        found += [f"queue {name}: {text}" for text in _of_counts(backend, queue, rows)]
        found += [f"queue {name}, message {row.number}: {text}" for row in rows for text in _of_row(row, units)]
    return found


def _of_counts(backend: MemoryBackend, queue: int, rows: list[QueuedMessage]) -> Iterator[str]:
    (counts,) = backend.overview(0.0, queue)
    there = sum(not row.away for row in rows)
    if counts.depth != there:
        yield f"its depth is {counts.depth}, but it has {there} messages"
    if counts.arrived < len(rows):
        yield f"it has {len(rows)} messages, but only {counts.arrived} have arrived"
    places = [row.place for row in rows if row.placed]
    if places != sorted(set(places)):
        yield "the places are not in order, or two messages have the same place"
    highest = max((place.number for place in places), default=0)
    if highest > counts.numbered:
        yield f"number {highest} has been drawn, but the counter is {counts.numbered}"


def _of_row(row: QueuedMessage, units: set[int]) -> Iterator[str]:
    if row.state is State.ABSENT:
        yield "it is in the state of a removed message"
    if not row.placed and row.state is not State.PUT_UNCONFIRMED:
        yield f"it is in state {row.state.value} and has no place"
    if (row.unit is not None) != (row.state in HELD):
        yield f"it is in state {row.state.value}, and is {'' if row.unit else 'not '}held by a unit"
    if (row.lock is not None or row.locked_handle is not None) != (row.state in LOCKS):
        yield f"it is in state {row.state.value}, and is {'' if row.lock or row.locked_handle else 'not '}locked"
    if row.lock is not None and row.locked_handle is not None:
        yield "it is locked twice"
    for holder in {row.unit, row.lock} - {None} - units:
        yield f"unit {holder} holds it, but does not exist"
