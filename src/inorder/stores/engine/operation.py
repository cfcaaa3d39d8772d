"""Runs an operation: lock, transaction, commit, report and sync, in this order."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from itertools import chain, islice
from types import MappingProxyType
from typing import Any, Concatenate, Final, ParamSpec, TypeVar

from ...errors import (
    InorderError,
    LeaseOver,
    OutcomeUnknown,
    QueueDeleted,
    QueueManagerStopping,
    StoreError,
    StoreFull,
    UnitTooLarge,
)
from ...model.attributes import ManagerAttributes
from ...model.message import Message, Row
from ...rules.leases import is_over
from ...rules.lifecycle import Event, State, becomes_visible, step
from ...rules.ordering import DRAWS, Moment
from ...rules.puts import Program
from ..seam.backend import Alone, OperationKind, Passing, QueueCounters
from ..seam.changes import Change
from ..seam.queued import QueuedMessage, number_of
from ..seam.records import PutOutcome
from ..seam.tables import LeaseRow, UnitKind, UnitRow
from . import group_readers
from .process import NO_NUMBERS, OpenConnection, OpenHandle, OpenStore
from .queue import LocalQueue
from .unit_owners import UnitOwners

P = ParamSpec("P")
S = TypeVar("S", bound=OpenStore)
T = TypeVar("T")
NOTHING: Final[Mapping[Any, Any]] = MappingProxyType({})
_tuple = tuple.__new__  # makes a named tuple without an extra call: each operation makes some
UNITS_A_RECORD = 64  # units of work of a connection that share a number: too many rows must not have one number
SAME_START_SECONDS = 0.1  # units of work that share a number and begin within this time also share their time
RESERVE = 1000  # numbers reserved at once, and possibly skipped after a loss of power
PERSISTENT, TOKEN = Message.FIELDS["persistent"].index, Message.FIELDS["token"].index
OF_UNIT = "unit", "record", "calls", "ended", "is_leased"  # fields of a connection
AFTER_PUT, AFTER_HELD_PUT = step(State.ABSENT, Event.PUT).to, step(State.ABSENT, Event.PUT_HELD).to

WRITING = OperationKind()


class _Left(Exception):
    """The operation was left unfinished, because more exceptions came from outside than it can handle."""


class Operation:
    """The state of one operation, which happens completely or, if it fails, not at all. `run` runs it.

    Expired messages are discarded first, in a separate step (`settling.tidy`), which stays even if a mistake of the
    caller or the queue's condition ends the operation. Other operations may run as soon as the transaction is over.
    Only then are the changes synced to disk, together with those of others.

    Attributes:
        durable: the changes must be on disk before the call returns.
        defines: it changes definitions, and may have read new versions of some.
        waiter: the connection that is about to wait; the record of its blockers stays.
        idle: confirm ids and lock ids that may hold nothing any more.
        newcomers: messages that have become visible on queues with trigger control, by queue number.
        returned: how many messages of sufficient priority were got or locked and are visible again on such queues.
        released: the numbers of such queues whose last reader has closed, or whose definitions have changed.
        owns: the owner number of this process, if the operation has taken it.
    """

    now = 0.0
    durable = defines = has_discarded = False
    waiter = owns = 0
    _names = _draws = _reserves = _has_begun = False
    _may_keep, _ticket = True, 0
    _refused: Sequence[Change] = ()  # reported even if the operation fails
    _kept: Mapping[int, Change] = NOTHING  # reported if the operation fails after a separate step

    def __init__(self, store: OpenStore, kind: OperationKind) -> None:
        self.store, self.backend, self.kind = store, store.backend, kind
        self.idle: set[int] = set()
        self.newcomers: dict[int, list[Message]] = {}
        self.returned: dict[int, int] = {}
        self.released: set[int] = set()
        self._before: list[tuple[Any, Sequence[Any], Sequence[Any]]] = []
        self._queues: dict[int, LocalQueue] = {}
        self._changes: dict[int, Change] = {}
        self.unit_owners = _tuple(UnitOwners, (store.backend, store.handles, {}))

    def begin(self) -> None:
        """Begins the transaction, under the store's lock. `undo` must follow any exception."""
        store = self.store
        if store.unfinished is not None:
            store.unfinished.undo(_Left())
        store.unfinished = self
        if not self.kind.though_stopped and store.host.stopped:
            raise QueueManagerStopping(f"queue manager {store.name} has been stopped")
        store.backend.begin(self.kind)
        self._has_begun = True
        if self.kind.in_room:
            store.host.make_room(feeds=self.kind.feeds)
        self.now = store.clock.now()

    def commit(self) -> None:
        """Commits the transaction and queues the changes for listeners."""
        if self.kind.writes:
            counts = self._finish()
            self._ticket = self.backend.commit(counts, self._changes, reserves=self._reserves, durable=self.durable)
            if self.store.changes.is_heard or self.has_discarded or self._refused:
                self._report()
        else:
            self.backend.commit((), (), reserves=False, durable=False)
        self.store.unfinished = None

    def undo(self, error: BaseException) -> None:
        """Undoes a failed operation, except for an earlier separate step.

        Harmless when repeated, and if the transaction was committed after all: exceptions from outside can come at any
        point.

        Raises: StoreError and its kinds, if `error` is the database's.
        """
        backend = self.backend
        is_ours = isinstance(error, InorderError) and not isinstance(error, StoreError | OutcomeUnknown)
        is_kept, keeps, self._may_keep = False, self._may_keep and is_ours, False
        failure: StoreError | None = None
        if backend.is_inside:
            try:
                is_kept = backend.abort(error, keeps=keeps)
            except StoreError as told:
                failure = told
            except Passing:  # it runs again, and is refused again
                self._refused = ()
                raise
        if not (self._has_begun and backend.has_happened):
            self._take_back()
        if is_kept:
            self._changes, self._queues = dict(self._kept), {}
            try:
                backend.commit((), self._changes, reserves=self._reserves, durable=False)
            except Exception as another:
                self._changes = {}
                backend.abort(another)
                raise
        self._report()
        self.store.unfinished = None
        if failure is not None:
            raise failure

    def emit(self, answer: object) -> None:
        """Runs after the store's lock is free: reports the changes and syncs them to disk."""
        store = self.store
        promises = store.gathering.promises
        if store.changes.waiting:
            store.report()
        if self.durable:
            if promises is None:
                store.host.sync(self._ticket)
            else:
                promises.add(self._ticket, answer)
        if self.kind.writes and store.host.has_more_to_do:
            if promises is None:
                store.host.after(functools.partial(_step, store))
            else:
                promises.put_off(functools.partial(_step, store))

    def _take_back(self) -> None:
        self._changes, self.durable, self.waiter = {}, False, 0
        if self._draws:
            self.store.numbers = NO_NUMBERS
        while self._before:
            kept, names, values = self._before[-1]
            for name, one in zip(names, values, strict=True):
                if not isinstance(kept, dict):
                    setattr(kept, name, one)
                elif one is None:
                    kept.pop(name, None)
                else:
                    kept[name] = one
            self._before.pop()
        if self.owns:
            self.store.host.disown(self.owns)
            self.owns = 0
        if self.defines:
            self.store.definitions.forget()

    def _report(self) -> None:
        """Queues the changes for listeners in this process. Other processes notice them by themselves."""
        store = self.store
        if store.changes.is_heard or self.has_discarded or self._refused:
            changes: list[Change] = [*self._changes.values(), *self._refused]
            changes.sort(key=lambda change: change.queue)
            store.changes.add(changes)
        self._changes, self._refused = {}, ()

    def remember(self, kept: Any, *names: Any) -> None:
        """Saves these attributes, or entries of a dictionary, so that `undo` can restore them."""
        look = kept.get if isinstance(kept, dict) else functools.partial(getattr, kept)
        self._before.append((kept, names, [*map(look, names)]))

    # --- queues and numbers

    def queue(self, number: int, name: str = "", opened_as: str = "") -> LocalQueue:
        """Returns the present state of a queue. Raises: QueueDeleted 2052."""
        queue = self._queues.get(number)
        if queue is None:
            state = self.backend.state(number)
            if state is None:
                raise QueueDeleted(f"{name} has been deleted", queue=opened_as or name)
            definitions = self.store.definitions
            if definitions.revision < state.revision:
                definitions.current(self.backend)
            attributes = definitions.by_number.get(number) or definitions.queue(number)
            queue = self._queues[number] = LocalQueue(self.backend, self.unit_owners, number, attributes, state)
        return queue

    def queue_of(self, handle: OpenHandle) -> LocalQueue:
        """Returns the present state of a handle's queue. Raises: QueueDeleted 2052."""
        return self.queue(handle.queue, handle.queue_name, handle.name)

    @property
    def manager(self) -> ManagerAttributes:
        """The queue manager's attributes, as of the last look at the definitions."""
        return self.store.definitions.manager

    def number(self) -> int:
        """Returns a new identifying number; it is never used again."""
        self._names = True
        return next(self.store.numbers, 0) or self._draw(1)

    def pass_others(self) -> None:
        """Makes this operation draw numbers above all that any connection has drawn before.

        For puts in a unit that several connections may use: messages there are in the order of their numbers (B-5).
        """
        if not self._draws:
            self.store.numbers = NO_NUMBERS

    def number_after(self, other: int) -> int:
        """Returns a new number larger than `other`, which another process may have drawn."""
        found = self.number()
        return found if found > other else self._draw(1)

    def numbers(self, count: int) -> list[int]:
        """Returns `count` new numbers, in sequence."""
        self._names = True
        found = list(islice(self.store.numbers, count))
        if len(found) < count:
            found = [self._draw(count), *islice(self.store.numbers, count - 1)]
        return found

    def source(self, count: int) -> Callable[[], int]:
        """Returns a source of new numbers: `count` are drawn at once, and more if messages are split."""
        return chain(self.numbers(count), iter(self.number, 0)).__next__

    def _draw(self, least: int) -> int:
        """Draws more numbers for this process and returns the first; it skips the unused ones when it ends."""
        self._draws = True
        drawn, reserves = self.backend.draw(least, RESERVE)
        self._reserves |= reserves
        numbers = iter(drawn)
        first, self.store.numbers = next(numbers), numbers
        return first

    def skip_reserved(self) -> None:
        """Makes all counters continue after the numbers that are reserved, or may have been."""
        self.backend.skip_reserved()
        for row in self.store.definitions.current(self.backend).rows():
            if row.type == "local":
                queue = self.queue(row.id)
                queue.counter, queue.changed = queue.state.reserved + self.backend.reserved_unseen, True

    def touch(self, queue: LocalQueue) -> Change:
        """Marks the queue as changed: calls that wait on it and listeners are notified at the end. The caller adds
        details.
        """
        change = self._changes.get(queue.id)
        if change is None:
            change = self._changes[queue.id] = Change(queue.attributes.name)
        return change

    def arrive(self, queue: LocalQueue, rows: Sequence[Row], unit: UnitRow | None, put_by: str | None = None) -> bool:
        """Adds messages to the queue, held by the unit if there is one. Returns whether any of them asks for reports.

        Args:
            put_by: their mark (`authority`).
        """
        state = AFTER_PUT if unit is None else AFTER_HELD_PUT
        assert state is not None
        first, total = None, len(rows)
        if DRAWS[queue.attributes.order] <= (Moment.COMMIT if unit is None else Moment.PUT):
            first = queue.draw_number(total)
        asks = self.backend.arrive(queue, rows, state, first, None if unit is None else unit.id, self.now)
        if put_by is not None:
            for row in rows:
                self.backend.sign(number_of(row[TOKEN]), put_by)
        queue.added += total
        queue.arrived += total
        queue.changed = True
        change = self.touch(queue)
        if unit is not None:
            self.durable |= unit.kind == "confirm"
        elif not self.durable:
            for row in rows:
                if row[PERSISTENT]:
                    self.durable = True
                    break
        triggers = queue.attributes.trigger_control
        if triggers or self.store.changes.is_watched:
            messages = list(map(Message.from_row, rows))
            change.put.extend(messages)
            if becomes_visible(State.ABSENT, state):
                change.visible.extend(messages)
                if triggers:
                    self.note_arrivals(queue, messages)
        return asks

    def note_arrivals(self, queue: LocalQueue, messages: Sequence[Message]) -> None:
        """Notes messages that have become visible on a queue with trigger control."""
        self.newcomers.setdefault(queue.id, []).extend(messages)

    def note_returns(self, queue: LocalQueue, rows: Sequence[QueuedMessage]) -> None:
        """Notes messages that were got or locked and return, on a queue with trigger control."""
        back = [row for row in rows if not row.forgotten and row.due_at <= self.now]
        if least := queue.attributes.trigger_priority:  # otherwise there is nothing to read
            back = [row for row in self.backend.read(back, 0) if (row.message.priority or 0) >= least]
        if back:
            self.returned[queue.id] = self.returned.get(queue.id, 0) + len(back)

    def refuse(self, queue: LocalQueue, message: Message) -> None:
        """Reports a duplicate unique id to listeners, although the operation is about to fail.

        They get the message with its new ids, so the numbers drawn for these are used up.
        """
        if self._draws:
            self.keep()
        change = Change(queue.attributes.name)
        change.duplicates.append(message)
        self._refused = [*self._refused, change]

    def keep(self) -> None:
        """Makes everything so far a separate step, which stays if the operation fails."""
        self.backend.keep(self._finish())
        self._kept = {number: change.copy() for number, change in self._changes.items()}
        self._queues = {}

    def _finish(self) -> Sequence[QueueCounters]:
        """Makes the last writes of the operation. Returns the counters after them."""
        if self.newcomers or self.returned or self.released:
            self.store.trigger(self)
        if self.idle:
            self.forget_idle()
        for number in self._changes:
            queue = self._queues.get(number)
            if queue is None:
                continue  # it was deleted
            if queue.state.has_edges:  # the blockers of waiting calls may be gone: the calls look again
                self.backend.forget_edges(number, self.waiter)
            if queue.has_entries:
                group_readers.forget(queue)
        counts = []
        for queue in self._queues.values():
            if queue.changed:
                reserved = queue.state.reserved
                if queue.counter > reserved:  # its numbers must never be used again (B-2)
                    reserved, self._reserves = queue.counter + RESERVE, True
                counts.append(_tuple(QueueCounters, (queue.id, queue.counter, reserved, queue.added, queue.arrived)))
        # A reservation must be on disk before its numbers are used; its maker may have died before the sync.
        if not self.durable and (counts or self._names):
            self.durable = self._reserves or self.store.host.is_reservation_open()
        return counts

    def forget_queue(self, queue: LocalQueue) -> None:
        """Drops a deleted queue, so that its counters are not written at the end."""
        self._queues.pop(queue.id, None)

    # --- units

    def unit(self, number: int) -> UnitRow:
        return self.unit_owners.unit(number)

    def begin_unit(
        self,
        program: Program,
        kind: UnitKind,
        name: str,
        queue: int | None = None,
        connection: int | None = None,
        lease_ends_at: float | None = None,
    ) -> UnitRow:
        """Creates a unit. Call it at the first message: an empty unit has no record."""
        number = self.number()
        unit = UnitRow(number, kind, name, queue, connection, program.user, program.name, self.now, lease_ends_at)
        self.backend.save(unit)
        self.unit_owners.units[number] = unit
        return unit

    def end_unit(self, number: int) -> None:
        """Removes the record of a unit that holds nothing."""
        self.backend.remove_records(UnitRow, id=number)

    def enlist(self, connection: OpenConnection, calls: int, limit: int) -> UnitRow:
        """Returns the connection's unit, begun if necessary, and counts these calls in it. Raises: UnitTooLarge
        (R5.8).
        """
        lease = self.lease_of(connection) if connection.is_leased else None
        number, record, used = connection.unit, connection.record, connection.calls
        if used + calls > limit:
            raise UnitTooLarge(f"a unit of work holds at most {limit:,} messages; commit or back out", limit=limit)
        if lease is not None:
            unit = self.unit(lease.unit)
        elif record is None or (number is None and not connection.ended % UNITS_A_RECORD):
            if record is not None:
                self.end_unit(record)
            unit = self.begin_unit(connection.program, "session", "", None, connection.id)
            self._set_start(connection)
        else:
            if number is None and not 0 <= self.now - connection.started_at < SAME_START_SECONDS:
                self.backend.restart_unit(record, self.now)
                self._set_start(connection)
            user, program = connection.program
            unit = UnitRow(record, "session", "", None, connection.id, user, program, connection.started_at, None)
            self.unit_owners.units[record] = unit
        if lease is not None:
            self.backend.save(lease._replace(calls=used + calls))
            self.durable = True  # another process may commit it after a crash
        self._set_unit(connection, (unit.id, record if lease else unit.id, used + calls, connection.ended))
        return unit

    def _set_start(self, connection: OpenConnection) -> None:
        self.remember(connection, "started_at")
        connection.started_at = self.now

    def lease_of(self, connection: OpenConnection) -> LeaseRow | None:
        """Returns the lease that is the connection's unit of work, if it is one. No other can use it until the end.

        Raises: LeaseOver; Alone, if others could use it now.
        """
        if not connection.is_leased or connection.unit is None:
            return None
        if not self.kind.alone:
            raise Alone
        found = self.backend.select(LeaseRow, unit=connection.unit)
        if not found or is_over(found[0].ends_at, self.backend.common_time(self.now)):
            raise LeaseOver("the lease is over: it was committed or backed out, or its time has passed")
        self._set_unit(connection, (connection.unit, connection.record, found[0].calls, connection.ended))
        return found[0]

    def enter_lease(self, connection: OpenConnection, lease: LeaseRow) -> None:
        """Makes the lease the connection's unit of work, until the connection leaves it."""
        self._set_unit(connection, (lease.unit, connection.record, lease.calls, connection.ended))
        connection.is_leased = True

    def leave_unit(self, connection: OpenConnection, record: int | None) -> None:
        """Detaches the connection from its unit. Its record stays, or already belongs to another unit."""
        self._set_unit(connection, (None, record, 0, connection.ended + 1))
        connection.is_leased = False

    def _set_unit(self, connection: OpenConnection, after: tuple[int | None, int | None, int, int]) -> None:
        """Sets the connection's fields about its unit of work; `undo` restores the old ones."""
        before = connection.unit, connection.record, connection.calls, connection.ended, connection.is_leased
        self._before.append((connection, OF_UNIT, before))
        connection.unit, connection.record, connection.calls, connection.ended = after

    def confirm_unit(self, program: Program, queue: LocalQueue, confirm_id: int) -> UnitRow:
        """Returns the unit of a confirm id on the queue, begun if necessary (A-9, A-15)."""
        return self.held_by(queue, confirm_id) or self.begin_unit(program, "confirm", str(confirm_id), queue.id)

    def held_by(self, queue: LocalQueue, confirm_id: int) -> UnitRow | None:
        """Returns the unit of a confirm id on the queue, or None if the id holds nothing."""
        if not confirm_id:
            return None
        self.forget_idle()
        return queue.named_unit("confirm", str(confirm_id))

    def forget_idle(self) -> None:
        """Removes confirm ids and lock ids that hold nothing. If such an id is used again, it is a new one."""
        for number in self.idle:
            if self.backend.is_idle(number):
                for unit in self.backend.select(UnitRow, id=number):
                    if unit.kind in ("confirm", "lock"):
                        self.end_unit(number)
                        group_readers.commit_idle(self.backend, number)
        self.idle.clear()


def run(
    store: S,
    kind: OperationKind,
    act: Callable[..., T],
    given: Sequence[Any] = (),
    by_name: Mapping[str, Any] = NOTHING,
) -> T:
    """Runs one operation: calls `act` with the store, the operation, and the arguments.

    An exception from outside may come anywhere (see `locks`). After one in the operation, and one in each of two
    attempts to undo it, nothing is held that others wait for. After more of them, this thread's next operation undoes
    this one.
    """
    operation = Operation(store, kind)
    answer: T = None  # type: ignore[assignment]
    try:
        with store.lock:
            try:
                operation.begin()
                answer = act(store, operation, *given, **by_name)
                operation.commit()
            except BaseException as error:
                try:
                    operation.undo(error)
                finally:
                    try:
                        if store.unfinished is operation:
                            operation.undo(error)
                    finally:
                        if store.unfinished is operation:
                            operation.undo(error)
                raise
        operation.emit(answer)
    except BaseException as error:
        if isinstance(error, OutcomeUnknown) and isinstance(answer, PutOutcome):
            error.data["uids"] = tuple(one.uid for one in answer.results)
        store.report()
        raise
    return answer


def in_operation(
    *,
    writes: bool = True,
    though_stopped: bool = False,
    feeds: bool = False,
    alone: bool = True,
    appends: bool = False,
    beside: bool = False,
    together: bool = False,
    ends_dead: bool = False,
    unless_dead: tuple[type[InorderError], ...] = (),
) -> Callable[[Callable[Concatenate[S, Operation, P], T]], Callable[Concatenate[S, P], T]]:
    """Decorates a method of a store whose body is one operation. If the medium is full, the operation is retried once.

    Args:
        feeds: it adds data to the store.
        alone, appends, beside, together: see `backend.OperationKind`.
        ends_dead: first end dead processes, and back out leases that are over.
        unless_dead: errors that mean that another caller blocks this one. Before one is raised, dead processes are
            ended; if there are any, the operation is retried.
    """

    kind = OperationKind(writes, though_stopped, feeds, alone=alone, appends=appends, beside=beside, together=together)

    def decorated(act: Callable[Concatenate[S, Operation, P], T]) -> Callable[Concatenate[S, P], T]:
        @functools.wraps(act)
        def call(store: S, /, *given: P.args, **by_name: P.kwargs) -> T:
            if ends_dead:
                store.end_dead_processes()
            now = kind
            while True:
                try:
                    return run(store, now, act, given, by_name)
                except StoreFull:
                    if now.in_room or not writes:
                        raise
                    now = kind._replace(in_room=True)
                except Alone:
                    now = now._replace(alone=True, together=False)
                except Passing:
                    continue
                except unless_dead:
                    if not store.end_dead_processes():
                        raise

        return call

    return decorated


@in_operation(though_stopped=True, alone=False)
def _step(_store: OpenStore, _operation: Operation, act: Callable[[], object]) -> None:
    """Runs an operation's remaining work for the medium as a separate operation; the first one is not repeated."""
    act()
