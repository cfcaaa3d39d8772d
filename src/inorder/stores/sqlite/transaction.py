"""One transaction of the SQLite store: its time, what it changes, and what it must promise.

Single steps write one row, as an event and the life-cycle table say. What happens to many rows at once (messages that
arrive, a unit that is settled) is one statement for each state, with the states that the same table names.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from functools import partial

import apsw

from ...errors import QueueDeleted, UnitTooLarge
from ...message import Message, Place
from ...rules.lifecycle import Answer, Event, Lock, State, adds_backout, becomes_visible, step
from ...rules.ordering import Moment, draws_number
from ...rules.puts import Program
from ..base import Change, Outcome, UnitKind
from ..rows import (
    HELD,
    LOCKS,
    NEVER,
    HeldLock,
    Locker,
    Row,
    is_away,
)
from ..shelf import Connection, Handle, Told, Transaction
from .codec import content_columns, stored_columns
from .entering import Entering
from .home import Home
from .leftovers import LEAVE_CONTENT, fits_one_step
from .shelf import NARROW_COLUMNS, Here, SqliteQueue
from .statements import by_id, statement
from .units import SqliteUnit

RESERVE = 1000  # numbers reserved at once: so many may be skipped after the machine has lost power
DISCARD_STEP = 1000  # expired messages discarded in one statement

HERE = statement("here")
EXISTS = statement("exists")
DRAW = statement("draw")
DRAWN = statement("drawn")
COUNTED = statement("counted")
ARRIVE = statement("arrive")
ARRIVE_CONTENT = statement("arrive content")
EXPIRED = statement("expired")
REMOVE_EXPIRED = statement("remove expired")
READ = statement("read", columns=stored_columns())
RIPEN = statement("ripen")
STEP = statement("step")
REMOVE = by_id("remove")
REMOVE_CONTENT = by_id("remove content")
GIVE_PLACE = statement("give place")
MARK = statement("mark")
UNMARK = statement("unmark")
MARK_FOR_ALL = statement("mark for all")
UNMARK_FOR_ALL = statement("unmark for all")
BEGIN_UNIT = statement("begin unit")
END_UNIT = statement("end unit")
END_IDLE = statement("end idle")
ANY_LOCKED_WITH = statement("any locked with")
SHARES = statement("shares")
UNNUMBERED = statement("unnumbered")
NUMBER_UNIT = statement("number unit")
SHOW_PUTS = statement("show puts")
RETURN_GETS = statement("return gets")
REMOVE_CONTENTS_OF_UNIT = statement("remove contents of unit")
LEAVE_CONTENTS_OF_UNIT = statement("leave contents of unit")
REMOVE_OF_UNIT = statement("remove of unit")
EXPIRED_PUTS_OF_UNIT = statement("expired puts of unit")
LOCKS_OF_UNIT = statement("locks of unit")
VISIBLE_OF_UNIT = statement("visible of unit", columns=stored_columns("X''"))
FORGOTTEN_OF_QUEUE = statement("forgotten of queue")
LEASES_OVER = statement("leases over")
LOCKED_BY_HANDLE = statement("locked by handle", columns=NARROW_COLUMNS)
FORGET_EDGES = statement("forget edges")
END_GROUP = statement("end group")
COMMIT_ENTRIES_OF_IDLE = statement("commit entries of idle")
FORGET_ENTRIES = statement("forget entries")


class SqliteTransaction(Entering, Transaction[SqliteQueue, SqliteUnit]):
    """What one verb does."""

    def __init__(self, home: Home, connection: apsw.Connection, now: float) -> None:
        super().__init__(connection, home.codec, home.session_units, home.handles)
        self.home, self.now = home, now
        self.durable = False  # the answer is a promise: it must be on disk first
        self.waiter = 0  # the connection that is about to wait
        self.has_discarded = False
        self._queues: dict[int, SqliteQueue] = {}
        self._told: dict[int, Told] = {}
        self._idle: set[int] = set()  # confirm ids and lock ids that may hold nothing any more
        self._numbers: Iterator[int] | None = None
        self._reserved = 0
        self._removed = self._removed_bytes = 0  # contents, one by one
        self._kept: dict[int, Told] | None = None  # what is told if the verb fails after a step of its own
        self.refused: dict[str, Told] = {}  # messages refused because their unique ids are there
        self._before: list[tuple[Connection[SqliteUnit], SqliteUnit | None, int]] = []
        self.restore: list[Callable[[], object]] = []  # takes back what this process keeps, should all be rolled back

    # --- queues and numbers

    def queue(self, number: int, name: str = "", opened_as: str = "") -> SqliteQueue:
        """A queue as it is now. Raises: QueueDeleted 2052."""
        if number not in self._queues:
            row = next(self.execute(HERE, (number,)), None)
            if row is None:
                raise QueueDeleted(f"{name} has been deleted", queue=opened_as or name)
            here = Here(*row)
            self.home.definitions.check(self, here.revision)
            self._queues[number] = SqliteQueue(self, number, self.home.definitions.attributes(number), here)
        return self._queues[number]

    def exists(self, number: int) -> bool:
        """Whether the queue of this number has not been deleted."""
        return self.value(EXISTS, number) is not None

    @property
    def numbers(self) -> Iterator[int]:
        """Numbers that never return."""
        if self._numbers is None:
            counter, self._reserved = next(self.execute(DRAW))
            self._numbers = itertools.count(counter + 1)
        return self._numbers

    def touch(self, queue: SqliteQueue) -> Told:
        told = self._told.get(queue.id)
        if told is None:
            told = self._told[queue.id] = Told()
        return told

    def touched(self) -> list[int]:
        return list(self._told)

    def changes(self) -> list[Change]:
        """What observers are told when it is over, by the names of the queues."""
        told = [told.change(self._queues[number].attributes.name) for number, told in self._told.items()]
        told += [told.change(name) for name, told in self.refused.items()]
        return sorted(told, key=lambda change: change.queue)

    def refuse(self, queue: SqliteQueue, message: Message) -> None:
        self.refused.setdefault(queue.attributes.name, Told()).duplicates.append(message)

    def tidy(self, number: int, name: str, opened_as: str) -> SqliteQueue:
        """A queue without what has expired and locks that are over, and with what is due: a step of its own.

        It stays if the verb fails.

        Raises: QueueDeleted 2052.
        """
        queue = self.queue(number, name, opened_as)
        if not queue.has_work(self.now):
            return queue
        self.discard(queue)
        self.end_leases(queue)
        self.ripen(queue)
        self.finish()
        self.execute("SAVEPOINT tidied")
        self._kept = {number: told.copy() for number, told in self._told.items()}
        self._numbers = None
        del self._queues[number]
        return self.queue(number)

    def return_to_tidied(self) -> bool:
        """The verb has failed. Whether there is a step of its own before it; that is what stands then."""
        if self._kept is None:
            return False
        self.execute("ROLLBACK TO tidied")
        self._told, self._queues, self._idle = self._kept, {}, set()
        for number in self._told:
            self.queue(number)
        return True

    def finish(self) -> None:
        """The last writes of the transaction."""
        self._forget_idle()
        for number in self._told:
            queue = self._queues[number]
            if queue.here.has_edges:
                self.execute(FORGET_EDGES, (number, self.waiter))
            if queue.has_entries:
                self.execute(FORGET_ENTRIES, (number,))
        for queue in self._queues.values():
            if queue.changed:
                reserved = self._reserve(queue.counter, queue.reserved)
                self.execute(COUNTED, (queue.id, queue.counter, reserved, queue.added, queue.arrived))
        if self._numbers is not None:
            used = next(self._numbers) - 1
            self.execute(DRAWN, (0, used, self._reserve(used, self._reserved)))

    def _reserve(self, counter: int, reserved: int) -> int:
        """Numbers are promised not to return before they are told (B-2)."""
        if counter <= reserved:
            self.durable |= self.home.database.is_reservation_open  # who made it may have died before its sync
            return reserved
        self.durable = True
        self.home.database.note_reservation()
        return counter + RESERVE

    def undo(self) -> None:
        """The transaction is rolled back: what this process keeps of it goes too, and what was to be told of it."""
        self._told, self._numbers, self.durable, self.waiter = {}, None, False, 0
        for connection, unit, calls in reversed(self._before):
            connection.unit = unit
            if unit is not None:
                unit.calls = calls
                self.home.session_units[unit.id] = unit
        for restore in reversed(self.restore):
            restore()
        self.home.definitions.forget()

    # --- messages arrive

    def arrive(self, queue: SqliteQueue, messages: Sequence[Message], unit: SqliteUnit | None) -> None:
        _, state = step(State.ABSENT, Event.PUT if unit is None else Event.PUT_HELD)
        assert state is not None
        attributes, now, number = queue.attributes, self.now, queue.id
        unit_number = None if unit is None else unit.id
        arrival = self.codec.arrival
        if draws_number(attributes.order, Moment.COMMIT if unit is None else Moment.PUT):
            places: Iterator[int | None] = iter(range(queue.counter + 1, queue.counter + 1 + len(messages)))
            queue.counter += len(messages)
        else:
            places = itertools.repeat(None)
        rows = [
            arrival(message, number, attributes, state, place, unit_number, now)
            for message, place in zip(messages, places, strict=False)
        ]
        contents = [content_columns(message.row, row[0]) for message, row in zip(messages, rows, strict=True)]
        if len(rows) == 1:
            self.execute(ARRIVE, rows[0])
            self.execute(ARRIVE_CONTENT, contents[0])
        else:
            self.execute_many(ARRIVE, rows)
            self.execute_many(ARRIVE_CONTENT, contents)
        queue.count(len(messages))
        queue.arrived += len(messages)
        queue.changed = True
        told = self.touch(queue)
        if unit is None:
            self.durable |= any(message.persistent for message in messages)
        else:
            self.durable |= unit.kind == "confirm"
        if self.home.is_watched:
            told.put.extend(messages)
            if becomes_visible(State.ABSENT, state):
                told.visible.extend(messages)

    # --- single steps

    def step(
        self, queue: SqliteQueue, row: Row, event: Event, unit: SqliteUnit | None = None, *, lock: Lock = Lock.NONE
    ) -> None:
        before, (answer, after) = row.state, step(row.state, event, lock)
        assert answer is Answer.DONE, (before, event, answer)
        if after is None:
            return
        was_away = is_away(row)
        row.state = after
        row.backouts += adds_backout(before, after)
        self._promise(row, event, unit)
        self._let_go(row, after)
        if unit is not None:
            row.unit = unit
        told = self.touch(queue)
        if becomes_visible(before, after):
            row.visible_at, row.forgotten = self.now, False
            if self.home.is_watched:
                told.visible.append(queue.read([row])[0].message)
        if after is State.ABSENT or (after is State.UNLOCKED and row.forgotten):  # what a restart lost does not return
            queue.count(was_away - 1)
            self.change_each(REMOVE, [row.number], before)
            self._remove_contents([(row.number, row.message.length)])
        else:
            queue.count(was_away - is_away(row))
            self._write(row, before)

    def _remove_contents(self, gone: Sequence[tuple[int, int]]) -> None:
        """Of messages given by number and length: at once, or later if that would be too much for one transaction."""
        self._removed += len(gone)
        self._removed_bytes += sum(length for _, length in gone)
        at_once = fits_one_step(self._removed, self._removed_bytes)
        self.execute_each(REMOVE_CONTENT if at_once else LEAVE_CONTENT, [number for number, _ in gone])
        self.home.has_leftovers |= not at_once

    def _let_go(self, row: Row, after: State) -> None:
        if after not in HELD and isinstance(row.unit, SqliteUnit):
            if row.unit.kind == "confirm":
                self._idle.add(row.unit.id)
            row.unit = None
        if after not in LOCKS:
            if row.lock is not None:
                self._idle.add(self.number_of(row.lock.unit))
            row.lock = row.locked_by = None

    def _promise(self, row: Row, event: Event, unit: SqliteUnit | None) -> None:
        """Removals of persistent messages, and all that named units do, are on disk when the call returns."""
        if event is Event.GET:
            self.durable |= bool(row.message.persistent) or row.lock is not None
        elif event is Event.GET_HELD and unit is not None:
            self.durable |= unit.kind != "session"

    def _write(self, row: Row, before: State) -> None:
        self.change(
            STEP,
            (
                row.state,
                None if row.unit is None else self.number_of(row.unit),
                is_away(row),
                row.locked_by and row.locked_by.handle,
                row.locked_by and row.locked_by.since,
                None if row.lock is None else self.number_of(row.lock.unit),
                str(row.lock.confirm_id) if row.lock is not None and row.lock.confirm_id else None,
                None if row.visible_at == NEVER else row.visible_at,
                row.backouts,
                row.number,
                before,
            ),
        )

    def lock(self, queue: SqliteQueue, row: Row, by: Locker | HeldLock) -> None:
        if isinstance(by, Locker):
            row.locked_by = by
        else:
            row.lock = by
            self.durable = True
        self.step(queue, row, Event.BROWSE_LOCK)

    def lock_unit(self, handle: Handle[SqliteUnit], queue: SqliteQueue, lease: float | None) -> tuple[SqliteUnit, int]:
        lock_id = next(self.numbers)
        ends_at = None if lease is None else self.now + lease
        unit = self._begin(handle.connection.program, "lock", str(lock_id), queue.id, lease_ends_at=ends_at)
        self._idle.add(unit.id)  # if nothing matches
        return unit, lock_id

    def end_leases(self, queue: SqliteQueue) -> int:
        if queue.here.next_lease_end is None or queue.here.next_lease_end > self.now:
            return 0
        over = [unit for (unit,) in self.execute(LEASES_OVER, (queue.id, self.now))]
        for unit in over:
            for row in queue.rows_locked_by(unit):
                self.step(queue, row, Event.END_LEASE)
        return len(over)

    def release(self, handle: Handle[SqliteUnit], queue: SqliteQueue) -> bool:
        if not handle.locked:
            return False
        self.restore.append(partial(handle.locked.extend, list(handle.locked)))
        handle.locked.clear()
        locked = [queue.row_of(columns) for columns in self.execute(LOCKED_BY_HANDLE, (handle.id,))]
        for row in locked:
            self.step(queue, row, Event.UNLOCK, lock=Lock.RIGHT)
        return bool(locked)

    def mark(self, queue: SqliteQueue, row: Row, *, handle: int | None = None, co_op: bool = False) -> None:
        if handle is not None:
            self.execute(MARK, (row.number, handle))
        if co_op:
            row.co_op_marked_at = self.now
            self.execute(MARK_FOR_ALL, (self.now, row.number))

    def unmark(self, queue: SqliteQueue, row: Row, *, handle: int | None = None, co_op: bool = False) -> None:
        if handle is not None:
            self.execute(UNMARK, (row.number, handle))
        if co_op:
            self.execute(MARK_FOR_ALL, (None, row.number))
            self.touch(queue)

    def unmark_for_all(self, queue: SqliteQueue, row: Row) -> None:
        if queue.here.has_marks:
            self.execute(UNMARK_FOR_ALL, (row.number,))
        if row.co_op_marked_at != NEVER:
            row.co_op_marked_at = NEVER
            self.execute(MARK_FOR_ALL, (None, row.number))

    def give_number(self, queue: SqliteQueue, row: Row) -> None:
        if not row.placed:
            row.place, row.placed = Place(row.rank, queue.draw_number(), 0), True
            self.change(GIVE_PLACE, (row.place.number, 0, row.number))

    def discard(self, queue: SqliteQueue, limit: int | None = None) -> int:
        if queue.here.next_expiry is None or queue.here.next_expiry > self.now:
            return 0
        assert all(step(state, Event.EXPIRE).to is State.ABSENT for state in State if state), "all expire alike"
        total, room = 0, math.inf if limit is None else limit
        while room > total:
            some = queue.id, self.now, int(min(DISCARD_STEP, room - total))
            if self.home.is_watched:
                ids = self.execute(EXPIRED, some).fetchall()
                read = (next(self.execute(READ, one)) for one in ids)
                self.touch(queue).expired.extend(self.codec.full(columns) for columns in read)
            gone = self.execute(REMOVE_EXPIRED, some).fetchall()
            self._remove_contents([(number, length) for number, length, *_ in gone])
            self._idle.update(held for _, _, *by, _ in gone for held in by if held is not None)
            if queue.has_entries:
                self.execute_many(END_GROUP, [(queue.id, ended) for *_, ended in gone if ended is not None])
            queue.count(-len(gone))
            total += len(gone)
            if len(gone) < DISCARD_STEP:
                break
        if total:
            self.touch(queue).discarded += total
            self.has_discarded = True
        return total

    def ripen(self, queue: SqliteQueue) -> None:
        """Delayed messages whose time has come can be read."""
        if queue.here.next_due is not None and queue.here.next_due <= self.now:
            self.execute(RIPEN, (queue.id, self.now))

    # --- units

    def enlist(self, connection: Connection[SqliteUnit], calls: int, limit: int) -> SqliteUnit:
        unit = connection.unit
        used = unit.calls if unit is not None else 0
        if used + calls > limit:
            raise UnitTooLarge(f"a unit of work holds at most {limit:,} messages; commit or back out", limit=limit)
        self._before.append((connection, unit, used))
        if unit is None:
            unit = self._begin(connection.program, "session", "", None, connection.id)
            connection.unit = self.home.session_units[unit.id] = unit
            self.restore.append(partial(self.home.session_units.pop, unit.id, None))
        unit.calls += calls
        return unit

    def confirm_unit(self, handle: Handle[SqliteUnit], queue: SqliteQueue, confirm_id: int) -> SqliteUnit:
        known = self.held_by(queue, confirm_id)
        return known or self._begin(handle.connection.program, "confirm", str(confirm_id), queue.id)

    def held_by(self, queue: SqliteQueue, confirm_id: int) -> SqliteUnit | None:
        if confirm_id:
            self._forget_idle()
        return self.named_unit(queue.id, "confirm", str(confirm_id)) if confirm_id else None

    def _forget_idle(self) -> None:
        """A confirm id or lock id that holds nothing is forgotten: used again it begins anew."""
        for unit in self._idle:
            self.execute(END_IDLE, (unit,))
            self.execute(COMMIT_ENTRIES_OF_IDLE, (unit,))
        self._idle.clear()

    def begin_claim(self, program: Program, name: str, queue: int) -> SqliteUnit:
        """What holds the messages of a new claim."""
        return self._begin(program, "claim", name, queue)

    def end_unit(self, unit: SqliteUnit) -> None:
        """A unit that holds nothing is over."""
        self.execute(END_UNIT, (unit.id,))

    def _begin(
        self,
        program: Program,
        kind: UnitKind,
        name: str,
        queue: int | None,
        owner: int | None = None,
        lease_ends_at: float | None = None,
    ) -> SqliteUnit:
        number = next(self.numbers)
        by = program.user, program.name
        self.execute(BEGIN_UNIT, (number, kind, name, queue, owner, *by, self.now, lease_ends_at))
        unit = self._units[number] = SqliteUnit(program, self.now, kind, name, owner, 0, number)
        return unit

    def end_session_unit(self, connection: Connection[SqliteUnit]) -> None:
        """The connection has no unit any more."""
        unit = connection.unit
        assert unit is not None
        self._before.append((connection, unit, unit.calls))
        connection.unit = None
        self.home.session_units.pop(unit.id, None)

    def number_unit(self, unit: SqliteUnit, moment: Moment) -> None:
        """Draws one number for the unit on each queue whose rule says now; put order within (B-5)."""
        for (number,) in self.execute(UNNUMBERED, (unit.id,)).fetchall():
            queue = self.queue(number)
            if draws_number(queue.attributes.order, moment):
                self.execute(NUMBER_UNIT, (unit.id, number, queue.draw_number()))

    def settle(self, unit: SqliteUnit, outcome: Outcome) -> None:
        """Confirms or backs out everything that the unit holds, and ends it (R5.2, R5.3)."""
        if outcome == "commit":
            self.number_unit(unit, Moment.COMMIT)
        shares = self.execute(SHARES, (unit.id,)).fetchall()
        if any(state == State.PUT_UNCONFIRMED and expires for _, state, _, _, _, expires, *_ in shares):
            self._discard_puts(unit, {queue for queue, *_ in shares})
            shares = self.execute(SHARES, (unit.id,)).fetchall()
        for number in {number for number, *_ in shares}:
            self._settle_entries(self.queue(number), unit, outcome)
        event = Event.CONFIRM if outcome == "commit" else Event.BACK_OUT
        at_once = fits_one_step(sum(share[3] for share in shares), sum(share[4] for share in shares))
        for number, state, away, total, _, _, forgotten, persistent in shares:
            queue = self.queue(number)
            self.touch(queue)
            self.durable |= bool(outcome == "commit" and persistent)
            before, (answer, after) = State(state), step(State(state), event)
            assert answer is Answer.DONE, (before, event, answer)
            assert after is not None
            self._settle(unit, queue, before, after, total, at_once=at_once)
            if after is State.ABSENT:
                queue.count(away * total - total)
            else:
                queue.count(away * total)
            if forgotten:
                self._remove_forgotten(queue)
        self.end_unit(unit)

    def undo_unit(self, queue: SqliteQueue, confirm_id: int) -> int:
        """Undoes all that a confirm id holds at once, if that is all there is to undo (A-15); of how many messages."""
        unit = self.held_by(queue, confirm_id)
        if unit is None or self.value(ANY_LOCKED_WITH, queue.id, str(confirm_id)) is not None:
            return 0
        total: int = sum(count for _, _, _, count, *_ in self.execute(SHARES, (unit.id,)))
        self.settle(unit, "back_out")
        return total

    def _settle(
        self, unit: SqliteUnit, queue: SqliteQueue, before: State, after: State, total: int, *, at_once: bool
    ) -> None:
        """All that the unit holds on one queue in one state, so many messages, goes to another."""
        share = unit.id, queue.id, before
        if after is State.ABSENT:
            if before in LOCKS:
                self._idle.update(lock for (lock,) in self.execute(LOCKS_OF_UNIT, share))
            self.execute(REMOVE_CONTENTS_OF_UNIT if at_once else LEAVE_CONTENTS_OF_UNIT, share)
            self.home.has_leftovers |= not at_once
            self.change(REMOVE_OF_UNIT, share, total)
        elif becomes_visible(before, after):
            if self.home.is_watched:
                shown = self.execute(VISIBLE_OF_UNIT, (unit.id, queue.id))
                self.touch(queue).visible.extend(self.codec.full(columns) for columns in shown)
            self.change(SHOW_PUTS, (unit.id, queue.id, after, self.now), total)
        else:
            self.change(RETURN_GETS, (*share, after, adds_backout(before, after)), total)

    def _discard_puts(self, unit: SqliteUnit, queues: set[int]) -> None:
        """Puts whose time was over before anybody could see them."""
        for number in queues:
            if self.value(EXPIRED_PUTS_OF_UNIT, unit.id, number, self.now):
                self.discard(self.queue(number))

    def _remove_forgotten(self, queue: SqliteQueue) -> None:
        """What a restart had lost does not return."""
        for (number,) in self.execute(FORGOTTEN_OF_QUEUE, (queue.id,)).fetchall():
            self.change_each(REMOVE, [number], State.UNLOCKED)
            self.execute_each(REMOVE_CONTENT, [number])
            queue.count(-1)
