"""Rows and transactions in an SQL database: all changes, by statements for one message or for many at once."""

from __future__ import annotations

import contextlib
import json
import math
from collections.abc import Callable, Collection, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from ...model.message import Message, Row
from ...rules.lifecycle import State, becomes_visible
from ...support.locks import LockTaken, TryLock
from ..engine import points
from ..seam.backend import Expired, OperationKind, QueueCounters, QueueState, SearchedQueue, Share
from ..seam.damage import damaged
from ..seam.queued import HELD, LOCKS, NEVER, NO_PLACE, QueuedMessage
from ..seam.tables import DefinitionRow, EnteredRow, MarkRow, ProcessRow, UnitRow, WaitRow
from .attention import (
    DUE,
    EDGES,
    ENTERED,
    EXPIRES,
    FRONTS,
    GROUPS,
    IN_VAIN_MAX,
    LEASES,
    LOOKED_FOR,
    MARKS,
    QUIET,
    REPORTS,
    SELDOM,
)
from .attention import found as attention_of
from .bulk import SqlBulk
from .codec import STATES, Codec, descriptor_of
from .engine import MANY, Engine
from .leftovers import STEP_CONTENTS, fits_one_step
from .listing import SqlListings
from .records import ShapesOfKinds
from .shapes import COUNTED_MAX, INTEGER, NULL, REAL, Shapes
from .shortcuts import SqlShortcuts
from .staged import SqlStagings

_HERE = [(name, INTEGER) for name in ("counter", "reserved", "depth", "attention", "revision")]
_TIMES = [(name, REAL | NULL) for name in ("next_expiry", "next_due", "next_lease_end")]
_THERE = [
    (name, INTEGER) for name in ("has_edges", "has_marks", "has_entered", "has_reports", "has_groups", "is_heard")
]
_STATES = Shapes([*_HERE, *_TIMES, *_THERE])
_QUIET = Shapes(_HERE)
_COUNTED = {int}
DRAWN_MAX = 100  # identifying numbers that a process draws at once, though it needs only one
_tuple = tuple.__new__  # makes a named tuple without an extra call: each operation makes some


class SqlBackend(SqlBulk, SqlListings, SqlStagings):
    """All rows of a store in a database.

    Args:
        name: of the queue manager, for `codec`; it is part of ids.
        shortcuts: whether plain requests take fewer statements, and undisputed choices are made at once.
    Attributes:
        arrivals: statements that insert a message with its content, by the name of the statement for the message alone.
        asked: the answer to the statement that reads the operation's next queue, if it has already run.
    """

    arrivals: Mapping[str, str] = MappingProxyType({})
    reserved_unseen = 0
    asked: Any = None

    def __init__(self, engine: Engine, name: str, *, shortcuts: bool = True) -> None:
        self.engine, self.sql, self.shapes = engine, engine.sql, ShapesOfKinds(engine.tables)
        self.codec = Codec(name, engine.tables, self._queue_of)
        self.shortcuts = SqlShortcuts(self) if shortcuts else None
        self.undisputed = None if self.shortcuts is None else self.shortcuts.undisputed
        self.has_leftovers, self._sweeping = False, TryLock()
        self.here = "queue state"  # the statement that reads a queue at the beginning of an operation
        self._kept = self._writes = False
        # The attention of each queue that this transaction has read; and counts of fruitless checks.
        self.noted: dict[int, int] = {}
        self._in_vain: dict[int, int] = {}
        self._looks = 0  # at queues with attention bits
        self._drawn, self._draws = 0, DRAWN_MAX  # the number drawn last, and how many to draw next
        self._removed = self._removed_bytes = 0  # contents in this transaction

    def name_after(self, manager_name: str, origin: str) -> None:
        self.codec.name_after(manager_name, origin)

    # --- transactions

    def common_time(self, now: float) -> float:
        return now

    @property
    def is_inside(self) -> bool:
        return self.engine.is_inside

    @property
    def has_happened(self) -> bool:
        return self.engine.has_happened

    def begin(self, kind: OperationKind) -> None:
        self._kept, self._writes, self.noted = False, kind.writes and not kind.beside, {}
        self.engine.begin(kind)
        self._removed = self._removed_bytes = 0

    def keep(self, counts: Sequence[QueueCounters]) -> None:
        for each in counts:
            self.engine.run(self.sql["update queue counters"], each)
        self.engine.run("SAVEPOINT kept")
        self._kept = True

    def commit(
        self, counts: Sequence[QueueCounters], changed: Collection[int], *, reserves: bool, durable: bool
    ) -> int:
        for each in counts:
            self.engine.run(self.sql["update queue counters"], each)
        return self.engine.commit(changed, reserves=reserves, durable=durable)

    def abort(self, error: BaseException, *, keeps: bool = False) -> bool:
        if keeps and self._kept:
            try:
                self.engine.execute("ROLLBACK TO kept")
            except Exception as another:
                self.engine.abort(another)
                raise
            return True
        self.engine.abort(error)
        return False

    def draw(self, count: int, reserve: int) -> tuple[range, bool]:
        # Rows are stored by these numbers. While several processes put, rows with numbers drawn ahead come between
        # those of others, where SQLite divides a page for every few rows: a put then writes a third more.
        drawing = max(count, self._draws)
        found = self.engine.execute(self.sql["draw numbers"], (drawing, reserve, COUNTED_MAX)).fetchall()
        if not found:
            raise damaged("table tally, queue 0", "the counter of identifying numbers is missing or too large",
                          table="tally")  # fmt: skip
        ((last, reserved),) = found
        first = last - drawing + 1
        if self._drawn in (0, first - 1):
            self._draws = min(2 * self._draws, DRAWN_MAX)
        else:  # another process has drawn
            self._draws, drawing = 1, count  # the rest is skipped
        self._drawn = last
        return range(first, first + drawing), reserved == last + reserve

    def skip_reserved(self) -> None:
        self.engine.execute(self.sql["skip reserved numbers"])

    def check_certain(self, queue: int) -> None:
        """Does nothing: no other process changes anything during this transaction."""

    def state(self, queue: int) -> QueueState | None:
        run, is_quiet = self.engine.run, queue not in self._in_vain
        rows = (self.asked or run(self.sql[self.here if is_quiet else "queue state and due work"], (queue,))).fetchall()
        if not rows:
            return None
        (row,) = rows
        if is_quiet and row[3] & ~FRONTS:
            self._looks += 1
            if row[3] & ~(FRONTS | SELDOM) or not self._looks % LOOKED_FOR:
                (row,), is_quiet = run(self.sql["queue state and due work"], (queue,)).fetchall(), False
        shapes = _QUIET if is_quiet else _STATES
        if tuple(map(type, row)) not in shapes.known and (wrong := shapes.wrong(row)):
            raise damaged(f"table tally, queue {queue}", wrong, table="tally")
        counter, reserved, depth, attention, revision, *found = row
        if not 0 <= counter <= reserved <= COUNTED_MAX:
            raise damaged(f"table tally, queue {queue}", f"counter {counter}, reserved {reserved}", table="tally")
        self.noted[queue] = attention
        if attention & GROUPS and not self.engine.has_triggers:
            self.engine.follow_groups()
        if is_quiet:
            return _tuple(QueueState, (counter, reserved, depth, None, None, None, 0, 0, 0, 0, revision))
        self._heed(queue, attention & ~FRONTS, attention_of(found))
        return _tuple(QueueState, (counter, reserved, depth, *found[:-2], revision))

    def _heed(self, queue: int, attention: int, there: int) -> None:
        """Compares the attention bits of a queue with the rows found, and clears them after enough fruitless checks."""
        if attention == there:
            self._in_vain[queue] = 0
            if attention in QUIET:
                del self._in_vain[queue]
            return
        self._in_vain[queue] = in_vain = self._in_vain.get(queue, 0) + 1
        if in_vain >= IN_VAIN_MAX and self._writes:
            self.engine.execute(self.sql["clear attention bits"], (queue, there))
            self.noted[queue] = there | self.noted[queue] & FRONTS
            self._in_vain[queue] = 0

    def attend(self, queue: int, what: int) -> None:
        """Sets attention bits of a queue."""
        noted = self.noted.get(queue, 0)
        if what & ~noted:
            self.noted[queue] = noted | what
            self.engine.execute(self.sql["set attention bits"], (queue, what))
        if what & GROUPS and not self.engine.has_triggers:
            self.engine.follow_groups()

    def _queue_of(self, number: int) -> str | None:
        """Returns the name of the queue that has a message."""
        name: str | None = self.value(self.sql["queue of message"], number)
        return name

    def remove_contents(self, numbers: Sequence[int], size: int) -> None:
        """Deletes the contents of deleted messages: at once, or later if they are too many for one transaction."""
        self._removed += len(numbers)
        self._removed_bytes += size
        at_once = fits_one_step(self._removed, self._removed_bytes)
        self.execute_each("delete content" if at_once else "leave content for sweep", numbers)
        self.has_leftovers |= not at_once

    # --- messages

    def arrive(
        self,
        queue: SearchedQueue,
        rows: Sequence[Row],
        state: State,
        first_number: int | None,
        unit: int | None,
        now: float,
    ) -> bool:
        arriving = self.codec.arriving(rows, queue.id, queue.attributes, state, first_number, unit, now)
        if arriving.attention:
            self.attend(queue.id, arriving.attention)
        if len(rows) == 1:
            name, row = ("insert message", arriving.rows) if arriving.rows else ("insert plain message", arriving.plain)
            if name in self.arrivals:
                self.arrive_whole(name, (*row, *arriving.contents))
            else:
                self.engine.run(self.sql[name], row)
                self.engine.run(self.sql["insert content"], arriving.contents)
        else:
            self.insert("insert plain message", arriving.plain)
            self.insert("insert message", arriving.rows)
            self.insert("insert content", arriving.contents)
        return arriving.attention >= REPORTS

    def arrive_whole(self, name: str, values: Sequence[Any]) -> None:
        """Inserts a message with its content by one of the `arrivals`."""
        self.engine.run(self.arrivals[name], values)

    def sign(self, number: int, put_by: str) -> None:
        self.engine.run(self.sql["set user of message"], (number, put_by))

    def signed(self, number: int) -> Sequence[str | None]:
        return [put_by for (put_by,) in self.engine.execute(self.sql["user of message"], (number,))]

    def write(self, before: QueuedMessage, after: QueuedMessage) -> None:
        assert after.queue in self.noted, after
        columns: dict[str, Any] = {}
        for name, old, new in zip(before._fields, before, after, strict=True):
            if old is not new and old != new:
                columns |= _kept_as(name, new)
        if columns:
            setting = ", ".join(f"{name} = ?" for name in columns)
            values = (*columns.values(), before.number, before.state)
            self.change(f"UPDATE message SET {setting} WHERE id = ? AND state = ?", values)
        if after.expires_at < math.inf:  # a message that was got or claimed can expire again when it returns
            self.attend(after.queue, EXPIRES)

    def remove(self, rows: Sequence[QueuedMessage], before: State) -> None:
        assert all(row.queue in self.noted for row in rows), rows
        numbers = [row.number for row in rows]
        self.change_each("delete messages", numbers, before)
        self.remove_contents(numbers, sum(row.message.length for row in rows))

    def clear(self, queue: int) -> None:
        assert queue in self.noted, queue
        self.engine.execute(self.sql["leave contents of queue for sweep"], (queue,))
        self.engine.execute(self.sql["delete messages of queue"], (queue,))
        self.has_leftovers = True

    def clear_some(self, queue: int, upto: int, most: int) -> Expired:
        gone = self.engine.execute(self.sql["first messages not in units"], (queue, upto, most)).fetchall()
        numbers = [number for number, _, _ in gone]
        self.execute_each("delete messages in any state", numbers)
        self.remove_contents(numbers, sum(length for _, length, _ in gone))
        return Expired(len(gone), [lock for *_, lock in gone if lock is not None])

    def expire(self, queue: int, now: float, most: int) -> Expired:
        execute = self.engine.execute
        gone = execute(self.sql["delete expired messages"], (queue, now, most)).fetchall()
        self.remove_contents([number for number, *_ in gone], sum(length for _, length, *_ in gone))
        for *_, group_id in gone:
            if group_id is not None:
                execute(self.sql["end reader's group"], (queue, group_id))
        execute(self.sql["end delays"], (queue, now))
        return Expired(len(gone), [held for _, _, *by, _ in gone for held in by if held is not None])

    # --- units

    def is_idle(self, unit: int) -> bool:
        return bool(self.value(self.sql["is idle"], unit))

    def shares(self, unit: int, *, locked: bool = False) -> Sequence[Share]:
        shares, possible = [], LOCKS if locked else HELD
        found = self.engine.run(self.sql["shares of lock" if locked else "shares of unit"], (unit,)).fetchall()
        for queue, state, *counts in found:
            if state not in possible or set(map(type, (queue, *counts))) != _COUNTED:
                raise damaged(f"messages of unit {unit}", f"queue {queue!r:.30}, state {state!r:.30}: {counts!r:.90}")
            shares.append(_tuple(Share, (queue, STATES[state], *counts)))
        return shares

    def move(self, unit: int, share: Share, after: State, now: float, backouts: int) -> Sequence[int]:
        assert share.queue in self.noted, share
        run, held = self.engine.run, (unit, share.queue, share.state)
        idle: list[int] = []
        if after is State.ABSENT:
            if share.state in LOCKS:
                idle = [lock for (lock,) in run(self.sql["locks of unit"], held)]
            self._removed += share.messages
            self._removed_bytes += share.size
            at_once = fits_one_step(self._removed, self._removed_bytes)
            run(self.sql["delete contents of unit" if at_once else "leave contents of unit for sweep"], held)
            self.has_leftovers |= not at_once
            if share.messages < MANY or self.noted[share.queue] & ENTERED:
                self.change(self.sql["delete messages of unit"], held, share.messages)
            else:  # messages of a unit are not available, so no group counts them; and no reader is inside a group
                with self.engine.ignore_groups():
                    self.change(self.sql["delete messages of unit"], held, share.messages)
        elif becomes_visible(share.state, after):
            self.change(self.sql["show puts"], (unit, share.queue, after, now), share.messages)
        else:
            if share.expires:
                self.attend(share.queue, EXPIRES)
            self.change(self.sql["return gets"], (*held, after, backouts), share.messages)
        return idle

    def delay_gets(self, unit: int, share: Share, due_at: float) -> None:
        assert share.queue in self.noted, share
        self.attend(share.queue, DUE)
        self.change(self.sql["delay gets"], (unit, share.queue, share.state, due_at), share.messages)

    def end_retry_delays(self, queue: int, now: float, numbers: Sequence[int] | None) -> Sequence[int]:
        assert queue in self.noted, queue
        if numbers is None:
            ended = self.engine.execute(self.sql["end retry delays"], (queue, now))
        else:
            ended = self.engine.execute(self.sql["end retry delays of messages"], (json.dumps(numbers), now))
        return [one for (one,) in ended.fetchall()]

    def describe(self, row: QueuedMessage, message: Message) -> None:
        self.change(self.sql["update descriptor"], (row.number, descriptor_of(message)))

    def restart_unit(self, unit: int, now: float) -> None:
        self.engine.run(self.sql["restart unit"], (now, unit))
        if self.engine.changes() != 1:
            raise damaged(f"table unit, id {unit}", "a connection's unit of work has no record", table="unit")

    def number_unit(self, unit: int, queue: int, number: int) -> None:
        self.engine.execute(self.sql["number puts of unit"], (unit, queue, number))

    # --- small records that set attention bits

    def save(self, record: Any) -> None:
        super().save(record)
        match record:
            case UnitRow(queue=int(queue)) if record.lease_ends_at is not None:
                self.attend(queue, LEASES)
            case WaitRow(queue=queue) if record.levels is not None:
                self.attend(queue, EDGES)
            case MarkRow(message=number):
                self.attend(self.value(self.sql["queue of marked message"], number), MARKS)
            case EnteredRow(queue=queue):
                self.attend(queue, ENTERED)
            case DefinitionRow(id=queue, type=kind):
                self.engine.execute(self.sql["insert queue counters"], (queue, kind))

    def remove_records(self, kind: type[Any], /, **where: Any) -> int:
        if kind is DefinitionRow:
            self.engine.execute(self.sql["delete queue counters"], (where["id"],))
            self._in_vain.pop(where["id"], None)
        self.has_leftovers |= kind is ProcessRow  # an ended process may have left some
        return super().remove_records(kind, **where)

    def revise(self, queues: Collection[int] | None) -> None:
        if queues is None:
            self.engine.execute(self.sql["set revision of all queues"])
        for queue in queues or ():
            self.engine.execute(self.sql["set revision of queue"], (queue,))

    def forget_edges(self, queue: int, but: int) -> None:
        self.engine.execute(self.sql["clear edges of waits"], (queue, but))

    # --- leftover contents of deleted messages

    def look_for_leftovers(self) -> None:
        """Inside a transaction: records whether there are leftover contents."""
        self.has_leftovers |= bool(self.value(self.sql["any leftovers"]))

    def sweep_all(self, step: Callable[[Callable[[], object]], None]) -> None:
        """Deletes the leftover contents in steps (`Host.after`), so that others can work in between."""
        with contextlib.suppress(LockTaken), self._sweeping:  # one thread does it
            while self.has_leftovers:
                if points.reached:
                    points.reached("settled")
                step(self.sweep)

    def sweep(self) -> None:
        """Deletes some leftover contents."""
        step: list[int] = []
        removed = 0
        some = self.engine.execute(self.sql["first leftovers"], (STEP_CONTENTS,)).fetchall()
        for number, size in some:
            removed += size
            if not fits_one_step(len(step) + 1, removed):
                break
            step.append(number)
        if step:
            between = step[0], step[-1]
            if step[-1] - step[0] == len(step) - 1:
                self.engine.execute(self.sql["delete contents between"], between)
            else:
                self.execute_each("delete content", step)
            self.change_each("delete leftovers", step)
        self.has_leftovers = len(step) == STEP_CONTENTS or len(step) < len(some)


def _kept_as(name: str, value: Any) -> dict[str, Any]:
    """Converts a field of a message on a queue to columns of `message`."""
    if name == "place":
        assert value != NO_PLACE, name
        return {"number": value.number, "ordinal": value.ordinal}
    if name == "message":
        return {"flags": value.flags}
    if name in ("visible_at", "co_op_marked_at"):
        return {name: None if value == NEVER else value}
    if name == "lock_confirm":
        return {name: str(value) if value else None}
    return {name: value or None if name == "claimed" else value}
