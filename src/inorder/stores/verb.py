"""One verb as a block (`Verb`), the queues in it (`LocalQueue`), and what a process keeps of its store (`OpenStore`)."""

from __future__ import annotations

import itertools
import logging
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from types import TracebackType

from ..attributes import ManagerAttributes, QueueAttributes
from ..clock import Clock
from ..errors import (
    CallInProgress,
    ConnectionBroken,
    InorderError,
    QueueDeleted,
    QueueManagerStopping,
    StoreError,
    UnitTooLarge,
    forked,
)
from ..message import Message, Place, UniqueId
from ..options import OpenOptions
from ..rules.grouping import Members, Numbers, Wanted, has_what_it_needs, is_head
from ..rules.ordering import Cursor, Decision, Kind, Pending, Standing
from ..rules.puts import Program
from . import entering
from .backend import Backend, Host, QueueState, Tally
from .changes import Change, Changes
from .definitions import Definitions
from .queued import NO_PLACE, QueuedMessage, Reader, available, is_in_sight, pending_of
from .tables import ConnectionRow, HandleRow, MarkRow, UnitKind, UnitRow, WaitRow

log = logging.getLogger("inorder.stores")

_tally = tuple.__new__
RESERVE = 1000  # numbers reserved at once: so many may be skipped after the machine has lost power


# --- what a process keeps


@dataclass(slots=True, eq=False)
class OpenConnection:
    """A connection of this process.

    Attributes:
        unit: the number of its unit of work, if it has one (R5.1); `calls`: puts and gets made in it (R5.8).
        waits: a record says that a call of it waits.
        handles: how many it has open.
    """

    id: int
    program: Program
    unit: int | None = None
    calls: int = 0
    waits: bool = False
    handles: int = 0


@dataclass(slots=True, eq=False, kw_only=True)
class OpenHandle:
    """An open queue of this process.

    Attributes:
        name: the queue as opened: itself, or an alias of it; `queue_name` is the local queue's, `queue` its number.
        exclusive: no other handle may be open for input.
        has_locked: it has browsed something with lock since it last let go of all.
    """

    id: int
    connection: OpenConnection
    queue: int
    queue_name: str
    name: str
    options: OpenOptions
    exclusive: bool
    has_locked: bool = False


class VerbLock:
    """Held while a verb runs: one at a time in a process, and only in the process that opened the store.

    Raises: ForkedConnection, in a child made by fork, which has a copy of no use; CallInProgress, a finalizer or
    a signal handler made a call in the middle of a verb of its own thread. It is let in to be told so: a lock that
    kept it out would hang for ever.
    """

    __slots__ = ("_lock", "_path", "_process", "held")

    def __init__(self, path: str) -> None:
        self._path = path
        self._process = os.getpid()
        self._lock = threading.RLock()
        self.held = False

    def __enter__(self) -> None:
        if self._process != os.getpid():
            raise forked(self._path)
        self._lock.acquire()
        if self.held:
            self._lock.release()
            raise CallInProgress("a call was made from inside another one, by a finalizer or a signal handler")
        self.held = True

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.held = False
        self._lock.release()


class OpenStore:
    """A store as this process has it open: the verbs are made of it.

    Args:
        path: the file that it is in, as an absolute path; ":memory:" if it is in none.
        name: of the queue manager; it is part of generated ids.
    """

    def __init__(self, backend: Backend, host: Host, path: str, name: str, clock: Clock) -> None:
        self.backend, self.host, self.path, self.name, self.clock = backend, host, path, name, clock
        self.lock = VerbLock(path)
        self.changes = Changes()
        self.definitions = Definitions()
        self.process = 0
        self.connections: dict[int, OpenConnection] = {}
        self.handles: dict[int, OpenHandle] = {}
        self.is_closed = False

    def verb(self, *, writes: bool = True, though_stopped: bool = False) -> Verb:
        """One verb, as a block."""
        return Verb(self, writes=writes, though_stopped=though_stopped)

    def connection(self, owner: int) -> OpenConnection:
        if owner not in self.connections:
            raise ConnectionBroken("the connection was lost: connect again")
        return self.connections[owner]

    def handle(self, handle: int) -> OpenHandle:
        if handle not in self.handles:
            raise ConnectionBroken("the connection of this handle was lost: connect again")
        return self.handles[handle]

    def session_of(self, unit: int) -> OpenConnection | None:
        """The connection of this process whose unit of work this is."""
        return next((one for one in self.connections.values() if one.unit == unit), None)


# --- a queue


class LocalQueue:
    """A queue as one verb sees it: its counters, and the search, with the rules about what is found.

    Attributes:
        state: as it was when the verb came to it; `counter`, `added` and `arrived` say what the verb did since.
        has_entries: readers are inside groups.
    """

    __slots__ = (
        "added",
        "arrived",
        "attributes",
        "backend",
        "changed",
        "counter",
        "has_entries",
        "id",
        "state",
        "verb",
    )

    def __init__(self, verb: Verb, number: int, attributes: QueueAttributes, state: QueueState) -> None:
        self.verb, self.backend, self.id, self.attributes, self.state = verb, verb.backend, number, attributes, state
        self.counter = state.counter
        self.has_entries = bool(state.has_entered)
        self.added = self.arrived = 0
        self.changed = False

    @property
    def depth(self) -> int:
        """Puts count in every state, gets leave at the get (R4.6)."""
        return self.state.depth + self.added

    def has_work(self, now: float) -> bool:
        """Whether something must be done before anybody looks: messages have expired or are due, leases are over."""
        _, _, _, expiry, due, lease_end, *_ = self.state
        return (
            (expiry is not None and expiry <= now)
            or (due is not None and due <= now)
            or (lease_end is not None and lease_end <= now)
        )

    def draw_number(self, count: int = 1) -> int:
        """The next number of the queue, or the first of the next so many (B-2)."""
        first = self.counter + 1
        self.counter += count
        self.changed = True
        return first

    def count(self, difference: int) -> None:
        """The depth changes."""
        self.added += difference
        self.changed |= difference != 0

    def unit(self, number: int) -> UnitRow:
        return self.verb.unit(number)

    def has_locked(self, handle: int) -> bool:
        one = self.verb.store.handles.get(handle)
        return one is not None and one.has_locked

    # --- finding

    def find(self, wanted: Wanted, reader: Reader, after: Place | None) -> Sequence[QueuedMessage]:
        """The first message that suits: one, or all pieces of a logical message; or none."""
        row = next(self.find_all(wanted, reader, after), None)
        return () if row is None else self.pieces(row, wanted, reader)

    def find_all(self, wanted: Wanted, reader: Reader, after: Place | None = None) -> Iterator[QueuedMessage]:
        """Every single message that suits, in order of place, found as they are asked for."""
        for row in self.backend.candidates(self, wanted, reader, after):
            if available(row, reader) and self.selects(row, wanted, reader):
                if self.has_what_it_needs(row, wanted, reader):
                    yield row

    def decide(self, wanted: Wanted, reader: Reader, cursor: Cursor, *, logical: bool) -> Decision[QueuedMessage]:
        """The strict decision over everything that matches (B-11)."""
        if wanted.member is not None:
            return self._decide_member(wanted, reader)
        return self.backend.decide(self, wanted, reader, cursor, logical=logical)

    def earlier(
        self, before: QueuedMessage | None, wanted: Wanted, reader: Reader, after: Place | None, *, logical: bool
    ) -> Sequence[Pending]:
        """What would withhold a strict call, for a notify call (B-16); inside a group only the next member counts."""
        if wanted.member is not None:
            return ()
        return self.backend.earlier(self, before, wanted, reader, after, logical=logical)

    def members(self, group_id: bytes) -> Sequence[QueuedMessage]:
        """Everything of a group that has a place, in order of place."""
        return self.backend.rows(queue=self.id, group_id=group_id)

    def row(self, number: int | None) -> QueuedMessage | None:
        """The message of this number, if it has a place."""
        if number is None:
            return None
        row = next(iter(self.backend.rows(queue=self.id, number=number)), None)
        return row if row is not None and row.placed else None

    def by_uid(self, uid: UniqueId) -> QueuedMessage | None:
        """The message with this unique id."""
        return next(iter(self.backend.rows(queue=self.id, uid=uid)), None)

    def named_unit(self, kind: UnitKind, name: str) -> UnitRow | None:
        """What a confirm id, lock id or claim holds here, if anything (A-15)."""
        found = self.backend.select(UnitRow, queue=self.id, kind=kind, name=name)
        return found[0] if found else None

    # --- what the rules say of a row

    def selects(self, row: QueuedMessage, wanted: Wanted, reader: Reader) -> bool:
        if wanted.heads and not is_head(row.message):
            return False
        if wanted.joins and row.message.offset:
            return False
        if not is_in_sight(row, reader):
            return False
        return not reader.lock_id or row.lock == reader.lock

    def has_what_it_needs(self, row: QueuedMessage, wanted: Wanted, reader: Reader) -> bool:
        return has_what_it_needs(row.message, wanted.needs, lambda group: self._available_members(group, reader))

    def pieces(self, row: QueuedMessage, wanted: Wanted, reader: Reader) -> Sequence[QueuedMessage]:
        """The row itself, or with `joins` everything of its logical message (R3.42)."""
        if not wanted.joins or row.message.segment_status == "no":
            return (row,)
        rows = {id(one.message): one for one in self._readable(row.message.group_id, reader)}
        pieces = Members(one.message for one in rows.values()).logical_message(row.message.sequence_number)
        return [rows[id(piece)] for piece in pieces]

    def _available_members(self, group_id: bytes, reader: Reader) -> Members:
        return Members(row.message for row in self._readable(group_id, reader))

    def _readable(self, group_id: bytes, reader: Reader) -> list[QueuedMessage]:
        return [row for row in self.members(group_id) if available(row, reader) and is_in_sight(row, reader)]

    def pending_of(self, row: QueuedMessage, reader: Reader) -> Pending | None:
        """Why this reader cannot be given the row yet; None if it can."""
        return pending_of(row, reader, self.verb.unit, self.verb.whose_handle)

    def judge(
        self, row: QueuedMessage, wanted: Wanted, reader: Reader, *, logical: bool
    ) -> Standing[QueuedMessage] | None:
        if row.expires_at <= reader.now or not self.selects(row, wanted, reader):
            return None  # what can no longer become readable holds nothing back (B-14)
        pending = self.pending_of(row, reader)
        if self.has_what_it_needs(row, wanted, reader):
            return Standing(row.place, row, pending)
        missing = pending or self._pending_member(row, reader)
        if not logical:  # what will never be complete as it stands matches nothing and blocks nothing
            whole = missing is not None and self._would_have_what_it_needs(row, wanted, reader)
            return Standing(row.place, row, missing) if whole else None
        if pending is None:
            since = row.visible_at if missing is None else missing.since
            holder, by = (None, "") if missing is None else (missing.holder, missing.by)
            pending = Pending(Kind.GROUP_INCOMPLETE, row.place, holder, by, since)
        return Standing(row.place, row, pending)

    def entered_by_others(self, wanted: Wanted, reader: Reader) -> list[Standing[QueuedMessage]]:
        return entering.held_back(self.verb, self, wanted, reader)

    def _pending_member(self, row: QueuedMessage, reader: Reader) -> Pending | None:
        """The first member of the row's group that somebody holds."""
        there = (one for one in self.members(row.message.group_id) if one.expires_at > reader.now)
        holds = (self.pending_of(one, reader) for one in there)
        return next((hold for hold in holds if hold is not None), None)

    def _would_have_what_it_needs(self, row: QueuedMessage, wanted: Wanted, reader: Reader) -> bool:
        """Whether it will be complete once everything pending has become readable."""
        there = Members(one.message for one in self.members(row.message.group_id) if one.expires_at > reader.now)
        return has_what_it_needs(row.message, wanted.needs, lambda _: there)

    def _decide_member(self, wanted: Wanted, reader: Reader) -> Decision[QueuedMessage]:
        """Inside a group only the next member is a candidate, and nothing stands before it (B-44 d)."""
        assert isinstance(wanted.member, Numbers)
        rows = self.backend.rows(queue=self.id, member=wanted.member)
        for row in rows:
            if self.pending_of(row, reader) is None and self.has_what_it_needs(row, wanted, reader):
                return Decision(row)
        holds = (self.pending_of(row, reader) for row in rows)
        pending = next((hold for hold in holds if hold is not None), None)
        return Decision(pending=pending or Pending(Kind.GROUP_INCOMPLETE, NO_PLACE, since=reader.now))


# --- a verb


class Verb:
    """A block in which one verb does its work: all of it, or with an error nothing.

    What has expired is discarded in a step of its own before (`settling.tidy`), which an error of the caller's or a
    condition of the queue leaves as it is. Others come as soon as the block is over. Only then what was promised is
    brought to disk, together with what others have promised meanwhile.

    Attributes:
        durable: the answer is a promise: it must be on disk first.
        waiter: the connection that is about to wait; what it knows of who is in its way stays.
        idle: confirm ids and lock ids that may hold nothing any more.
        restore: takes back what this process keeps, should all be taken back.
    """

    def __init__(self, store: OpenStore, *, writes: bool = True, though_stopped: bool = False) -> None:
        self.store, self.backend = store, store.backend
        self._writes, self._though_stopped = writes, though_stopped
        self.now = 0.0
        self.durable = self.has_discarded = False
        self.waiter = 0
        self.idle: set[int] = set()
        self.restore: list[Callable[[], object]] = []
        self._queues: dict[int, LocalQueue] = {}
        self._changes: dict[int, Change] = {}
        self._refused: list[Change] = []  # reported also if the verb fails
        self._kept: dict[int, Change] = {}  # what is reported if the verb fails after a step of its own
        self._units: dict[int, UnitRow] = {}
        self._numbers: Iterator[int] | None = None
        self._reserved = 0
        self._reserves = False

    def __enter__(self) -> Verb:
        store = self.store
        store.lock.__enter__()
        try:
            if not self._though_stopped and store.host.stopped:
                raise QueueManagerStopping(f"queue manager {store.name} has been stopped")
            store.backend.begin(writes=self._writes)
            try:
                self.now = store.clock.now()
            except BaseException as error:
                store.backend.abort(error)
                raise
        except BaseException:
            store.lock.__exit__(None, None, None)
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        store, ticket = self.store, 0
        try:
            if error is None:
                ticket = self._commit()
            elif self._goes_on(error):
                ticket = self.backend.commit((), self._changes, reserves=self._reserves)
            self._report()
        finally:
            store.lock.__exit__(None, None, None)
        store.changes.hand_out()
        if self.durable:
            store.host.sync(ticket)
        if error is None and self._writes:
            store.host.after()

    def _commit(self) -> int:
        if not self._writes:
            return self.backend.commit((), (), reserves=False)
        try:
            tallies = self._finish()
        except BaseException as error:
            self._take_back()
            self.backend.abort(error)
            raise
        try:
            return self.backend.commit(tallies, self._changes, reserves=self._reserves)
        except BaseException:
            if not self.backend.has_happened:
                self._take_back()
            raise

    def _goes_on(self, error: BaseException) -> bool:
        """The verb has failed and is taken back. Whether there is a step of its own before it, to be committed."""
        self._take_back()
        is_ours = isinstance(error, InorderError) and not isinstance(error, StoreError)
        if not self.backend.abort(error, keeps=is_ours):
            return False
        self._changes, self._queues = self._kept, {}
        return True

    def _take_back(self) -> None:
        self._changes, self._numbers, self.durable, self.waiter = {}, None, False, 0
        for restore in reversed(self.restore):
            restore()
        self.store.definitions.forget()

    def _report(self) -> None:
        """What was changed is reported in this process; others see it by themselves."""
        if self._changes or self._refused:
            store = self.store
            if store.changes.is_heard or self.has_discarded or self._refused:
                changes: list[Change] = [*self._changes.values(), *self._refused]
                changes.sort(key=lambda change: change.queue)
                store.changes.add(changes)

    # --- queues and numbers

    def queue(self, number: int, name: str = "", opened_as: str = "") -> LocalQueue:
        """A queue as it is now. Raises: QueueDeleted 2052."""
        queue = self._queues.get(number)
        if queue is None:
            state = self.backend.state(number)
            if state is None:
                raise QueueDeleted(f"{name} has been deleted", queue=opened_as or name)
            definitions = self.store.definitions
            if definitions.revision != state.revision:
                definitions.load(self.backend)
            queue = self._queues[number] = LocalQueue(self, number, definitions.by_number[number], state)
        return queue

    def queue_of(self, handle: OpenHandle) -> LocalQueue:
        """The queue of a handle, as it lies there. Raises: QueueDeleted 2052."""
        return self.queue(handle.queue, handle.queue_name, handle.name)

    @property
    def manager(self) -> ManagerAttributes:
        """The queue manager's attributes, as they were when the definitions were looked at last."""
        return self.store.definitions.manager

    @property
    def numbers(self) -> Iterator[int]:
        """Numbers that never return."""
        if self._numbers is None:
            state = self.backend.state(0)
            assert state is not None
            self._reserved = state.reserved
            self._numbers = itertools.count(state.counter + 1)
        return self._numbers

    def skip_reserved(self) -> None:
        """All counters go on behind what is reserved."""
        for row in self.store.definitions.current(self.backend).rows.values():
            if row.type == "local":
                queue = self.queue(row.id)
                queue.counter, queue.changed = queue.state.reserved, True
        assert self._numbers is None
        state = self.backend.state(0)
        assert state is not None
        self._numbers, self._reserved = itertools.count(state.reserved + 1), state.reserved

    def touch(self, queue: LocalQueue) -> Change:
        """Those who wait on the queue, and listeners, are told when the verb is over; of what, is added."""
        change = self._changes.get(queue.id)
        if change is None:
            change = self._changes[queue.id] = Change(queue.attributes.name)
        return change

    def refuse(self, queue: LocalQueue, message: Message) -> None:
        """The verb is about to fail for a message whose unique id is on the queue: listeners hear of it all the same."""
        self._refused.append(Change(queue.attributes.name, duplicates=[message]))

    def keep(self) -> None:
        """What was done so far is a step of its own: it stays if the verb fails."""
        self.backend.keep(self._finish())
        self._kept = {number: change.copy() for number, change in self._changes.items()}
        self._numbers, self._queues = None, {}

    def _finish(self) -> Sequence[Tally]:
        """The last writes of the verb; the counters as they are then."""
        if self.idle:
            self.forget_idle()
        for number in self._changes:
            queue = self._queues.get(number)
            if queue is None:
                continue  # it was deleted
            if queue.state.has_edges:
                self._forget_edges(number)
            if queue.has_entries:
                entering.forget(self, queue)
        tallies = []
        if self._numbers is not None:
            tallies.append((0, next(self._numbers) - 1, self._reserved, 0, 0))
        for one in self._queues.values():
            if one.changed:
                tallies.append((one.id, one.counter, one.state.reserved, one.added, one.arrived))
        return self._reserve(tallies) if tallies else ()

    def forget_queue(self, queue: LocalQueue) -> None:
        """The queue is gone: nothing of it is written at the end."""
        self._queues.pop(queue.id, None)

    def _forget_edges(self, queue: int) -> None:
        """What was in the way of those who wait may be gone: they find out when they look."""
        for one in self.backend.select(WaitRow, queue=queue):
            if one.levels is not None and one.connection != self.waiter:
                self.backend.save(one._replace(levels=None))

    def _reserve(self, tallies: Sequence[tuple[int, int, int, int, int]]) -> list[Tally]:
        """Numbers are promised not to return before they are given away (B-2)."""
        found, reserves = [], False
        for queue, counter, reserved, added, arrived in tallies:
            if counter > reserved:
                reserved, reserves = counter + RESERVE, True  # noqa: PLW2901 - more of them now
            found.append(_tally(Tally, (queue, counter, reserved, added, arrived)))
        self._reserves |= reserves
        # Who made a reservation may have died before its sync.
        self.durable = self.durable or reserves or self.store.host.is_reservation_open()
        return found

    # --- units, and who holds

    def unit(self, number: int) -> UnitRow:
        """A unit by its number."""
        unit = self._units.get(number)
        if unit is None:
            (unit,) = self.backend.select(UnitRow, id=number)
            self._units[number] = unit
        return unit

    def begin_unit(
        self,
        program: Program,
        kind: UnitKind,
        name: str,
        queue: int | None = None,
        connection: int | None = None,
        lease_ends_at: float | None = None,
    ) -> UnitRow:
        """A new unit. At the first message: an empty unit of work has no record."""
        number = next(self.numbers)
        unit = UnitRow(number, kind, name, queue, connection, program.user, program.name, self.now, lease_ends_at)
        self.backend.save(unit)
        self._units[number] = unit
        return unit

    def end_unit(self, number: int) -> None:
        """A unit that holds nothing is over."""
        self.backend.remove_records(UnitRow, id=number)

    def enlist(self, connection: OpenConnection, calls: int, limit: int) -> UnitRow:
        """The connection's unit, begun if need be, with so many more calls counted. Raises: UnitTooLarge (R5.8)."""
        number, used = connection.unit, connection.calls
        if used + calls > limit:
            raise UnitTooLarge(f"a unit of work holds at most {limit:,} messages; commit or back out", limit=limit)
        self.restore.append(lambda: self.set_unit(connection, number, used))
        if number is None:
            unit = self.begin_unit(connection.program, "session", "", None, connection.id)
        else:
            unit = self.unit(number)
        self.set_unit(connection, unit.id, used + calls)
        return unit

    def leave_unit(self, connection: OpenConnection) -> None:
        """The connection has no unit any more."""
        number, calls = connection.unit, connection.calls
        self.restore.append(lambda: self.set_unit(connection, number, calls))
        self.set_unit(connection, None, 0)

    @staticmethod
    def set_unit(connection: OpenConnection, unit: int | None, calls: int) -> None:
        connection.unit, connection.calls = unit, calls

    def confirm_unit(self, program: Program, queue: LocalQueue, confirm_id: int) -> UnitRow:
        """What a confirm id holds on the queue, begun if need be (A-9, A-15)."""
        return self.held_by(queue, confirm_id) or self.begin_unit(program, "confirm", str(confirm_id), queue.id)

    def held_by(self, queue: LocalQueue, confirm_id: int) -> UnitRow | None:
        """What a confirm id holds on the queue, if it holds anything."""
        if not confirm_id:
            return None
        self.forget_idle()
        return queue.named_unit("confirm", str(confirm_id))

    def forget_idle(self) -> None:
        """A confirm id or lock id that holds nothing is forgotten: used again it begins anew."""
        for number in self.idle:
            if self.backend.is_idle(number):
                for unit in self.backend.select(UnitRow, id=number):
                    if unit.kind in ("confirm", "lock"):
                        self.end_unit(number)
                        entering.commit_idle(self, number)
        self.idle.clear()

    def whose_handle(self, handle: int) -> tuple[int, str]:
        """The connection and the program of a handle, of any process."""
        (found,) = self.backend.select(HandleRow, id=handle)
        (connection,) = self.backend.select(ConnectionRow, id=found.connection)
        return connection.id, connection.program

    def unmark(self, queue: LocalQueue, row: QueuedMessage) -> None:
        """A message that is got loses its handles' marks (R3.74)."""
        if queue.state.has_marks:
            self.backend.remove_records(MarkRow, message=row.number)
