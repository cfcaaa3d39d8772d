"""One transaction of the memory store: its time, the steps it makes in the lives of rows, what it will tell."""

from __future__ import annotations

import itertools
import math
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from ...errors import UnitTooLarge
from ...message import Message, Place
from ...rules.lifecycle import Answer, Event, Lock, State, adds_backout, becomes_visible, step
from ...rules.ordering import Moment, draws_number, rank
from ..base import Change, OrderView, Outcome, Unit
from ..rows import (
    GOT,
    HELD,
    LOCKS,
    NEVER,
    Entered,
    HeldLock,
    HeldUnit,
    Locker,
    Reader,
    ReaderId,
    Row,
    is_away,
    pending_of,
)
from ..shelf import Connection, Handle, Told, Transaction
from .queue import MemoryQueue, MemoryRow, MemoryUnit
from .undo import Changes, UndoSet


@dataclass(slots=True)
class MemoryTransaction(Transaction[MemoryQueue, MemoryUnit]):
    """What one verb does. A row's state changes here and nowhere else."""

    now: float
    numbers: Iterator[int]
    undo: Changes
    touched: dict[str, Told] = field(default_factory=dict)
    waiter: int = 0  # the connection that is about to wait
    _kept: dict[str, Told] = field(default_factory=dict)  # what is told also if the verb fails

    def touch(self, queue: MemoryQueue) -> Told:
        return self.touched.setdefault(queue.attributes.name, Told())

    def changes(self) -> list[Change]:
        """What observers are told when it is over, by the names of the queues."""
        return [self.touched[queue].change(queue) for queue in sorted(self.touched)]

    def keep(self) -> None:
        """What was done so far is a step of its own: it stays if the verb fails."""
        self._kept = {queue: told.copy() for queue, told in self.touched.items()}
        self.undo.keep()

    def fail(self) -> None:
        """The verb has failed, and what it did is taken back."""
        self.touched, self.waiter = self._kept, 0

    def refuse(self, queue: MemoryQueue, message: Message) -> None:
        self._kept.setdefault(queue.attributes.name, Told()).duplicates.append(message)

    def arrive(self, queue: MemoryQueue, messages: Sequence[Message], unit: MemoryUnit | None) -> None:
        for message in messages:
            self._arrive(queue, message, unit)

    def _arrive(self, queue: MemoryQueue, message: Message, unit: MemoryUnit | None) -> None:
        row = arriving(queue, message, self.now)
        moment = Moment.COMMIT if unit is None else Moment.PUT
        if draws_number(queue.attributes.order, moment):
            row.place, row.placed = row.place._replace(rank=row.rank, number=queue.draw_number()), True
        queue.add(row)
        self.step(queue, row, Event.PUT if unit is None else Event.PUT_HELD, unit)
        self.touch(queue).put.append(message)

    def step(
        self,
        queue: MemoryQueue,
        row: Row,
        event: Event,
        unit: MemoryUnit | None = None,
        *,
        lock: Lock = Lock.NONE,
    ) -> None:
        """One event, which the table must allow, happens to one row.

        Args:
            unit: what comes to hold the row, if the event is a held one.
            lock: which lock the caller presents.
        """
        before, (answer, after) = row.state, step(row.state, event, lock)
        assert answer is Answer.DONE, (before, event, answer)
        if after is None:
            return
        count_away(queue, row, -1)
        row.state = after
        row.backouts += adds_backout(before, after)
        if after not in HELD:
            queue.let_go(row)
        if after not in LOCKS:
            queue.unlock(row)
        if unit is not None:
            queue.hold(row, unit)
        count_away(queue, row, +1)
        self._follow(queue, row, before, after, event)
        self.touch(queue)

    def _follow(self, queue: MemoryQueue, row: Row, before: State, after: State, event: Event) -> None:
        """What a step means beyond the new state."""
        if becomes_visible(before, after):
            row.visible_at, row.forgotten = self.now, False
            self.touch(queue).visible.append(row.message)
        if after is State.ABSENT:
            if before is not State.PUT_UNCONFIRMED or event is Event.EXPIRE:  # a put that is undone is still to come
                queue.end_group(row.message)
            queue.remove(row)
        elif after is State.UNLOCKED and row.forgotten:
            self.remove(queue, row)  # what a restart had lost does not return

    def lock(self, queue: MemoryQueue, row: Row, by: Locker | HeldLock) -> None:
        """A browse locks the row, for its handle or under a lock id."""
        self.step(queue, row, Event.BROWSE_LOCK)
        if isinstance(by, Locker):
            row.locked_by = by
        else:
            row.lock = by
            assert isinstance(by.unit, MemoryUnit)
            by.unit.hold(queue, row)
            queue.locks[by.lock_id] = by.unit

    def lock_unit(self, handle: Handle[MemoryUnit], queue: MemoryQueue, lease: float | None) -> tuple[MemoryUnit, int]:
        lock_id = next(self.numbers)
        ends_at = None if lease is None else self.now + lease
        unit = MemoryUnit(handle.connection.program, self.now, "lock", str(lock_id), lease_ends_at=ends_at)
        return unit, lock_id

    def end_leases(self, queue: MemoryQueue) -> int:
        """Lock ids whose lease is over end: what they lock is unlocked, and gets that were made go on (A-19)."""
        ends = ((lock_id, unit.lease_ends_at) for lock_id, unit in queue.locks.items())
        over = [lock_id for lock_id, end in ends if end is not None and end <= self.now]
        for lock_id in over:
            for row in queue.locked_under(lock_id):
                self.step(queue, row, Event.END_LEASE)
        return len(over)

    def settle(self, unit: MemoryUnit, outcome: Outcome) -> None:
        """Confirms or backs out everything that the unit holds (R5.2, R5.3)."""
        if outcome == "commit":
            number_unit(unit, Moment.COMMIT)
        event = Event.CONFIRM if outcome == "commit" else Event.BACK_OUT
        for queue in {id(queue): queue for queue, _ in unit.rows.values()}.values():
            queue.settle_entries(unit, outcome)
        for queue, row in list(unit.rows.values()):
            self.touch(queue)
            if row.unit is not unit:  # it expired, or its queue was deleted
                continue
            if row.expires_at <= self.now and row.state is State.PUT_UNCONFIRMED:
                self.discard(queue)  # its time was over before anybody could see it
            else:
                self.step(queue, row, event)

    def enlist(self, connection: Connection[MemoryUnit], calls: int, limit: int) -> MemoryUnit:
        """The connection's unit, begun if need be, with so many more calls counted (R5.8)."""
        unit = connection.unit or MemoryUnit(connection.program, self.now, connection=connection.id)
        if unit.calls + calls > limit:
            raise UnitTooLarge(f"a unit of work holds at most {limit:,} messages; commit or back out", limit=limit)
        unit.calls += calls
        connection.unit = unit
        return unit

    def confirm_unit(self, handle: Handle[MemoryUnit], queue: MemoryQueue, confirm_id: int) -> MemoryUnit:
        """What a confirm id holds on the handle's queue (A-9, A-15)."""
        known = queue.confirms.get(confirm_id)
        return known or MemoryUnit(handle.connection.program, self.now, "confirm", str(confirm_id))

    def held_by(self, queue: MemoryQueue, confirm_id: int) -> MemoryUnit | None:
        return queue.confirms.get(confirm_id)

    def give_number(self, queue: MemoryQueue, row: Row) -> None:
        """A single message is confirmed: if it has no number yet it is drawn now (A-26, B-53b)."""
        if not row.placed:
            queue.give_place(row, queue.draw_number(), 0)

    def release(self, handle: Handle[MemoryUnit], queue: MemoryQueue) -> bool:
        """Frees the handle's browse lock; whether there was one."""
        mine = (row for row in handle.locked if row.locked_by and row.locked_by.handle == handle.id)
        locked = [row for row in mine if row.state is State.LOCKED]
        handle.locked.clear()
        for row in locked:
            self.step(queue, row, Event.UNLOCK, lock=Lock.RIGHT)
        return bool(locked)

    def mark(self, queue: MemoryQueue, row: Row, *, handle: int | None = None, co_op: bool = False) -> None:
        if handle is not None:
            row.handle_marks.add(handle)
        if co_op:
            row.co_op_marked_at = self.now

    def unmark(self, queue: MemoryQueue, row: Row, *, handle: int | None = None, co_op: bool = False) -> None:
        if handle is not None:
            row.handle_marks.discard(handle)
        if co_op:
            row.co_op_marked_at = NEVER
            self.touch(queue)

    def unmark_for_all(self, queue: MemoryQueue, row: Row) -> None:
        row.handle_marks.clear()
        row.co_op_marked_at = NEVER

    def enter(self, queue: MemoryQueue, entered: Entered, unit: MemoryUnit | None) -> None:
        queue.entered = [*queue.entered, replace(entered, entered_in=unit)]

    def leave(
        self,
        queue: MemoryQueue,
        reader: ReaderId,
        unit: MemoryUnit | None,
        open_unit: MemoryUnit | None,
        *,
        but: bytes | None = None,
    ) -> None:
        queue.leave(reader, unit, open_unit, but=but)

    def leave_all(self, queue: MemoryQueue, reader: ReaderId) -> None:
        if queue.leave_all(reader):
            self.touch(queue)

    def back_out_of_groups(self, queue: MemoryQueue, unit: HeldUnit) -> None:
        queue.settle_entries(unit, "back_out")

    def discard(self, queue: MemoryQueue, limit: int | None = None) -> int:
        """Discards what has expired; how many (R6.2)."""
        expired = queue.expired(self.now)[:limit]
        for row in expired:
            self.step(queue, row, Event.EXPIRE)
            told = self.touch(queue)
            told.expired.append(row.message)
            told.discarded += 1
        return len(expired)

    def remove(self, queue: MemoryQueue, row: Row) -> None:
        """The row goes without an event of its own: with its queue, or at a restart."""
        count_away(queue, row, -1)
        if row.state is not State.PUT_UNCONFIRMED:
            queue.end_group(row.message)
        queue.remove(row)
        row.state = State.ABSENT
        queue.let_go(row)
        queue.unlock(row)
        self.touch(queue)

    def forget(self, queue: MemoryQueue, row: Row) -> None:
        """A restart takes a non-persistent row; one that a prepared unit got goes when that is undone."""
        if row.unit is None and row.lock is None:
            self.remove(queue, row)
        else:
            row.forgotten = True


def arriving(queue: MemoryQueue, message: Message, now: float) -> MemoryRow:
    """The row of a message that comes to a queue, before it has a place."""
    return MemoryRow(
        message=message,
        number=int.from_bytes(message.token, "big"),
        rank=rank(queue.attributes, message),
        expires_at=now + (math.inf if message.expiry is None else message.expiry),
        due_at=now + message.delay if message.delay else NEVER,
        handle_marks=UndoSet(),
    )


def count_away(queue: MemoryQueue, row: Row, by: int) -> None:
    """A get in a unit of work leaves the depth at the get; one under a confirm id when confirmed (R4.6)."""
    if is_away(row):
        queue.away += by


def number_unit(unit: MemoryUnit, moment: Moment) -> None:
    """Draws one number for the unit on each queue whose rule says now; put order within (B-5)."""
    drawn: dict[int, tuple[int, Iterator[int]]] = {}
    for queue, row in unit.rows.values():
        if row.placed or row.state is State.ABSENT or not draws_number(queue.attributes.order, moment):
            continue
        if id(queue) not in drawn:
            drawn[id(queue)] = queue.draw_number(), itertools.count()
        number, ordinals = drawn[id(queue)]
        queue.give_place(row, number, next(ordinals))


def as_viewed(queue: MemoryQueue, now: float, strict_waiters: int) -> OrderView:
    """What is pending on a queue, for its operator (B-33)."""
    nobody = Reader(0, 0, co_op=False, now=now, mark_interval=0.0)
    placed = [(row, pending_of(row, nobody)) for row in queue.placed_rows() if row.expires_at > now]
    puts = [one for row, one in placed if one is not None and row.state is State.PUT_UNCONFIRMED]
    others = [one for row, one in placed if one is not None and row.state is not State.PUT_UNCONFIRMED]
    first: dict[int, Place] = {}
    for row, one in placed:
        if one is not None:
            first.setdefault(row.rank, row.place)
    return OrderView(
        unresolved_puts=len(puts),
        oldest_put=min(puts, key=lambda one: one.since, default=None),
        pending_out=len(others),
        oldest_out=min(others, key=lambda one: one.since, default=None),
        withheld=sum(one is None and row.place > first.get(row.rank, row.place) for row, one in placed),
        strict_waiters=strict_waiters,
    )


def as_seen(unit: MemoryUnit) -> Unit:
    """A unit as an operator sees it."""
    held = [row for _, row in unit.rows.values()]
    queues = tuple(sorted({queue.attributes.name for queue, _ in unit.rows.values()}))
    queue = queues[0] if unit.kind in ("confirm", "lock", "claim") and queues else ""
    return Unit(
        kind=unit.kind,
        name=unit.name,
        queue=queue,
        program=unit.program,
        started_at=unit.started_at,
        puts=sum(row.state is State.PUT_UNCONFIRMED for row in held),
        gets=sum(row.state in GOT for row in held) if unit.kind != "lock" else 0,
        locks=len(held) if unit.kind == "lock" else 0,
        connection=unit.connection,
        process=None if unit.connection is None else os.getpid(),
        queues=queues,
    )
