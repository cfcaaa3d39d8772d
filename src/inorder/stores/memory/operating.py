"""What an operator sees of the memory store: every row is looked at, put in order, and shown."""

from __future__ import annotations

import os
from abc import ABC
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from itertools import groupby

from ...message import NO_ID
from ...rules.gaps import Gaps, gaps, member_of
from ...rules.lifecycle import State
from ...rules.puts import Program
from ..base_operating import CheckProgress, Lock, LookRequest, Position, QueueView, Sight, Unit, Wait
from ..looking import (
    group_of,
    logical_key,
    logical_position,
    physical_position,
    sight_of,
    unplaced_position,
)
from ..rows import GOT, HeldUnit, Row, is_kept
from . import checking
from .handles import Handles
from .queue import MemoryQueue, MemoryUnit
from .transaction import MemoryTransaction

NOBODY = HeldUnit(Program(), 0.0)  # a unit that is over holds nothing


class MemoryOperating(ABC):
    """The verbs of `stores.base_operating`, for the memory store."""

    _handles: Handles
    _prepared: dict[str, MemoryUnit]
    _verb: Callable[..., AbstractContextManager[MemoryTransaction]]

    def _local(self, name: str) -> MemoryQueue:
        """The queue that has the name, or for which it stands."""
        return self._handles.queues[self._handles.resolve(name).name]

    # --- listings

    def look(self, request: LookRequest) -> Sequence[Sight]:
        with self._verb() as verb:
            queue = self._local(request.queue)
            there = _there(queue, verb.now)
            found = (
                _logically(there) if request.order == "logical" else [(physical_position(row), row) for row in there]
            )
            unit = None if request.unit is None else self._unit(request.unit, queue) or NOBODY
            shown = sorted((one for one in found if _is_shown(*one, unit, request)), key=_position)
            return [self._sight(row, position, request, verb.now) for position, row in shown[: request.most]]

    def _unit(self, unit: Unit, queue: MemoryQueue) -> MemoryUnit | None:
        """A unit that an operator has seen; None if it is over, or lives on another queue."""
        if unit.kind == "session":
            connection = self._handles.connections.get(unit.connection or 0)
            return None if connection is None else connection.unit
        if unit.kind == "prepared":
            return self._prepared.get(unit.name)
        named = (one for one in queue.named_units() if (one.kind, one.name) == (unit.kind, unit.name))
        return next(named, None)

    def _sight(self, row: Row, position: Position, request: LookRequest, now: float) -> Sight:
        sight = sight_of(row, position, now, self._whose)
        return replace(sight, message=sight.message.with_values(body=sight.message.body[: request.preview]))

    def _whose(self, connection: int) -> tuple[Program, int | None]:
        return self._handles.connections[connection].program, os.getpid()

    def gaps(self, queue: str, group_id: bytes) -> Gaps:
        with self._verb() as verb:
            members = [row for row in _there(self._local(queue), verb.now) if group_of(row.message) == group_id]
            members.sort(key=lambda row: (*logical_key(row)[:2], not row.placed, row.place, row.number))
            return gaps(member_of(row.message) for row in members if group_id != NO_ID)

    # --- who waits, what is locked

    def waits(self) -> list[Wait]:
        with self._verb():
            return [
                Wait(
                    queue=one.waits.queue,
                    connection=one.id,
                    program=one.program,
                    process=os.getpid(),
                    pending=one.waits.pending,
                    withheld=one.waits.withheld,
                )
                for one in sorted(self._handles.connections.values(), key=lambda one: one.id)
                if one.waits is not None
            ]

    def locks(self) -> list[Lock]:
        with self._verb():
            found = [
                lock
                for queue in self._handles.queues.values()
                for lock in (*self._handle_locks(queue), *_lock_ids(queue))
            ]
        return sorted(found, key=lambda one: (one.since, one.queue))

    def _handle_locks(self, queue: MemoryQueue) -> Iterator[Lock]:
        locked = sorted((one for row in queue.all_rows() if (one := row.locked_by)), key=lambda one: one.handle)
        for _, same in groupby(locked, key=lambda one: one.handle):
            lockers = list(same)
            program, process = self._whose(lockers[0].connection)
            yield Lock(
                kind="handle",
                queue=queue.attributes.name,
                lock_id=None,
                program=program,
                connection=lockers[0].connection,
                process=process,
                since=min(one.since for one in lockers),
                messages=len(lockers),
            )

    # --- all queues at one moment

    def overview(self) -> list[QueueView]:
        with self._verb() as verb:
            return [self._view(queue, verb.now) for _, queue in sorted(self._handles.queues.items())]

    def _view(self, queue: MemoryQueue, now: float) -> QueueView:
        name, rows = queue.attributes.name, queue.all_rows()
        opens = self._handles.opens(name)
        return QueueView(
            name=name,
            created_at=queue.created_at,
            depth=queue.depth,
            arrived=queue.arrived,
            numbered=queue.counter,
            puts=sum(row.state is State.PUT_UNCONFIRMED for row in rows),
            gets=sum(row.state in GOT for row in rows),
            locked=sum(row.state is State.LOCKED for row in rows),
            delayed=sum(row.state is State.UNLOCKED and row.due_at > now for row in rows),
            oldest_put_at=_oldest_put_at(queue),
            open_input_count=sum(one.input for one in opens),
            open_output_count=sum(one.output for one in opens),
            waiters=sum(
                one.waits is not None and one.waits.queue == name for one in self._handles.connections.values()
            ),
        )

    def check(self, progress: CheckProgress | None) -> list[str]:
        with self._verb(though_stopped=True):
            queues = list(self._handles.queues.values())
            found: list[str] = []
            for number, queue in enumerate(queues):
                if progress is not None:
                    progress(number, len(queues))
                found += checking.problems(queue)
        if progress is not None:
            progress(len(queues), len(queues))
        return found


def _there(queue: MemoryQueue, now: float) -> list[Row]:
    """What is on a queue and has not expired."""
    return [row for row in queue.all_rows() if row.expires_at > now or is_kept(row)]


def _logically(rows: Sequence[Row]) -> list[tuple[Position, Row]]:
    """Each with its position in logical order: that of the first member of its group, then its own in the group."""
    placed = sorted((row for row in rows if row.placed), key=logical_key)
    firsts: dict[bytes, Row] = {}
    for row in placed:
        firsts.setdefault(group_of(row.message), row)
    found = [(logical_position(row, _first(row, firsts)), row) for row in placed]
    return found + [(unplaced_position(row), row) for row in rows if not row.placed]


def _first(row: Row, firsts: dict[bytes, Row]) -> Row:
    group_id = group_of(row.message)
    return row if group_id == NO_ID else firsts[group_id]


def _is_shown(position: Position, row: Row, unit: HeldUnit | None, request: LookRequest) -> bool:
    if request.after is not None and position <= request.after:
        return False
    if request.numbered_after is not None and not (row.placed and row.place.number > request.numbered_after):
        return False
    return (unit is None or _holder(row) is unit) and request.match.accepts(row.message)


def _position(found: tuple[Position, Row]) -> Position:
    return found[0]


def _holder(row: Row) -> object:
    """The unit that put, got or locked the row."""
    return row.unit or (row.lock.unit if row.lock is not None else None)


def _lock_ids(queue: MemoryQueue) -> Iterator[Lock]:
    for lock_id, unit in queue.locks.items():
        yield Lock(
            kind="lock",
            queue=queue.attributes.name,
            lock_id=lock_id,
            program=unit.program,
            connection=None,
            process=None,
            since=unit.started_at,
            messages=len(unit.rows),
            lease_ends_at=unit.lease_ends_at,
        )


def _oldest_put_at(queue: MemoryQueue) -> float | None:
    """By the number the oldest of what is held, by the place the first of each level of what is not."""
    rows = queue.all_rows()
    held = [row for row in rows if row.state is not State.UNLOCKED]
    free = sorted((row for row in rows if row.state is State.UNLOCKED), key=lambda row: row.place)
    oldest = [next(level) for _, level in groupby(free, key=lambda row: row.place.rank)]
    if held:
        oldest.append(min(held, key=lambda row: row.number))
    return min((row.message.put_at for row in oldest), default=None)
