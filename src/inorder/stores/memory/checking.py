"""Whether a queue in memory is sound: what must be true of its rows, in the words of `stores/sqlite/checks.sql`."""

from __future__ import annotations

from collections.abc import Iterator

from ...rules.lifecycle import State
from ..rows import HELD, LOCKS, Row, is_away
from .queue import MemoryQueue


def problems(queue: MemoryQueue) -> list[str]:
    """Everything that is wrong, in words; empty if the queue is sound."""
    name, rows = queue.attributes.name, queue.all_rows()
    found = [f"queue {name}: {text}" for text in _of_counts(queue, rows)]
    return found + [f"queue {name}, message {row.number}: {text}" for row in rows for text in _of_row(queue, row)]


def _of_counts(queue: MemoryQueue, rows: list[Row]) -> Iterator[str]:
    away = sum(is_away(row) for row in rows)
    if queue.away != away:
        yield f"{queue.away} messages are noted as got in units of work, there are {away}"
    if queue.arrived < len(rows):
        yield f"{len(rows)} messages are there, {queue.arrived} have arrived"
    places = [row.place for row in queue.placed_rows()]
    if places != sorted(set(places)):
        yield "the places are not in order, or one is taken twice"
    highest = max((place.number for place in places), default=0)
    if highest > queue.counter:
        yield f"number {highest} has been drawn, the counter says {queue.counter}"


def _of_row(queue: MemoryQueue, row: Row) -> Iterator[str]:
    if row.state is State.ABSENT:
        yield "it is gone, and is there"
    if not row.placed and row.state is not State.PUT_UNCONFIRMED:
        yield f"it is in state {row.state.value} and has no place"
    if (row.unit is not None) != (row.state in HELD):
        yield f"it is in state {row.state.value}, and is {'' if row.unit else 'not '}held by a unit"
    if (row.lock is not None or row.locked_by is not None) != (row.state in LOCKS):
        yield f"it is in state {row.state.value}, and is {'' if row.lock or row.locked_by else 'not '}locked"
    if row.lock is not None and row.locked_by is not None:
        yield "it is locked twice"
    if row.lock is not None and queue.locks.get(row.lock.lock_id) is not row.lock.unit:
        yield f"lock id {row.lock.lock_id} locks it, and is not known"
