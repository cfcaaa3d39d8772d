"""The memory store: the specification.

Everything is in ordinary objects under one lock, and each verb does naively what its rule says: it looks at
every row that could matter, asks the rules, and changes rows one at a time through the life-cycle table. Other
stores must give the same answers; this one is to be read.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Literal, NamedTuple

from ...attributes import (
    ManagerAttributes,
    QueueAttributes,
    QueueStatus,
    altered,
    altered_manager,
    define_manager,
)
from ...clock import Clock, SystemClock
from ...errors import (
    GetInhibited,
    InconsistentCall,
    InorderError,
    NoMessageUnderCursor,
    QueueCondition,
    QueueFull,
    QueueManagerStopping,
    Reason,
    UnitExists,
    UnitNotFound,
    UnitTooLarge,
    WrongState,
)
from ...message import LAST_IN_GROUP, Message, stored_flags
from ...options import OpenOptions
from ...rules import gets
from ...rules.gets import Verdict
from ...rules.grouping import GroupState, Wanted, wanted
from ...rules.lifecycle import Event, State
from ...rules.ordering import Cursor, Moment, draws_number, rank
from ...rules.puts import Planned, Program, PutCircumstances, plan_put
from ..base import GetOutcome, GetRequest, Observer, Opened, Outcome, PutOutcome, PutRequest, Unit
from ..lock import VerbLock
from ..telling import Teller
from .handles import Connection, Handle, Handles
from .queue import NEVER, HeldUnit, MemoryQueue, Reader, Row, available
from .transaction import Transaction, as_got, as_seen, number_unit


class Found(NamedTuple):
    """What a get looked for, and the rows that it found: one, or the pieces of a logical message."""

    wanted: Wanted
    rows: Sequence[Row]


class MemoryStore:
    """A store in this process's memory; gone with the process.

    Args:
        name: the queue manager's name; it is part of generated ids.
        clock: where the time comes from.
    """

    def __init__(self, name: str = "INORDER", clock: Clock | None = None) -> None:
        self.clock: Clock = clock or SystemClock()
        self._manager = define_manager(name=name)
        self.shared: object | None = None
        self._lock = VerbLock()
        self._numbers = itertools.count(1)
        self._handles = Handles(self._numbers)
        self._teller = Teller()
        self._prepared: dict[str, HeldUnit] = {}
        self._stopped = False

    @contextmanager
    def _verb(self, *, though_stopped: bool = False) -> Iterator[Transaction]:
        try:
            with self._lock:
                if self._stopped and not though_stopped:
                    raise QueueManagerStopping(f"queue manager {self._manager.name} has been stopped")
                verb = Transaction(self.clock.now())
                try:
                    yield verb
                finally:
                    self._teller.add(verb.changes())
        finally:
            self._teller.tell()

    def observe(self, observer: Observer) -> None:
        self._teller.observe(observer)

    # --- connections and handles

    def connect(self, program: Program) -> int:
        with self._verb():
            return self._handles.connect(program)

    def disconnect(self, owner: int) -> None:
        with self._verb(though_stopped=True) as verb:
            connection = self._handles.connections.get(owner)
            if connection is not None:
                self._abandon(verb, connection)

    def _abandon(self, verb: Transaction, connection: Connection) -> None:
        if connection.unit is not None:
            verb.settle(connection.unit, "back_out")
        for handle in connection.handles():
            self._release(verb, handle)
            self._drop(verb, handle)
        self._handles.disconnect(connection)

    def open(self, owner: int, queue: str, options: OpenOptions, *, dynamic_name: str = "*") -> Opened:
        with self._verb() as verb:
            connection = self._handles.connection(owner)
            return self._handles.open(connection, queue, options, dynamic_name, self._manager.max_handles, verb.now)

    def extend(self, handle: int, options: OpenOptions) -> Opened:
        with self._verb():
            return self._handles.extend(self._handles.handle(handle), options)

    def close(self, handle: int, *, delete: bool = False, purge: bool = False) -> None:
        with self._verb() as verb:
            one = self._handles.handle(handle)
            if delete or purge:
                self._handles.check_delete_at_close(one, purge=purge)
            self._release(verb, one)
            self._drop(verb, one)
            if delete or purge:
                self._vanish(verb, one.queue)

    def _drop(self, verb: Transaction, handle: Handle) -> None:
        """The handle is gone; with it its marks, the last of the cooperating set's, and its temporary queue."""
        self._handles.close(handle)
        others = self._handles.on(handle.queue)
        co_op_is_left = any(other.options.co_op for other in others)
        for row in handle.queue.all_rows():
            row.handle_marks.discard(handle.id)
            if not co_op_is_left:
                row.co_op_marked_at = NEVER
        if handle.made_temporary_queue:
            self._vanish(verb, handle.queue)

    def _vanish(self, verb: Transaction, queue: MemoryQueue) -> None:
        for row in queue.all_rows():
            verb.remove(queue, row)
        queue.deleted = True
        self._handles.queues.pop(queue.attributes.name, None)
        verb.touched[queue.attributes.name] = None

    # --- queues

    def create_queue(self, attributes: QueueAttributes) -> None:
        with self._verb() as verb:
            self._handles.create(attributes, verb.now)

    def alter_queue(self, name: str, by: Literal["alter", "set"], changes: dict[str, Any]) -> None:
        with self._verb() as verb:
            definition = self._handles.definition(name)
            changed = altered(definition, by, **changes)
            if isinstance(queue := self._handles.queues.get(name), MemoryQueue):
                self._handles.check_alter(queue, changed)
                queue.attributes, queue.altered_at = changed, verb.now
            else:
                self._handles.check_alias(changed)
                self._handles.other_definitions[name] = changed
            for affected in self._handles.names_for(name):
                verb.touched[affected] = None

    def delete_queue(self, name: str, *, purge: bool) -> None:
        with self._verb() as verb:
            self._handles.check_delete(name, purge=purge)
            if (queue := self._handles.queues.get(name)) is not None:
                self._vanish(verb, queue)
            self._handles.other_definitions.pop(name, None)

    def queues(self) -> list[QueueAttributes]:
        with self._verb():
            return self._handles.definitions()

    def queue(self, name: str) -> QueueAttributes:
        with self._verb():
            return self._handles.definition(name)

    def status(self, name: str) -> QueueStatus:
        with self._verb() as verb:
            queue = self._handles.resolve(name).queue
            verb.discard(queue)
            return self._handles.status(queue)

    def manager(self) -> ManagerAttributes:
        with self._lock:
            return self._manager

    def alter_manager(self, changes: dict[str, Any]) -> None:
        with self._verb():
            self._manager = altered_manager(self._manager, "alter", **changes)

    # --- puts

    def put(self, request: PutRequest) -> PutOutcome:
        with self._verb() as verb:
            handle = self._handles.handle(request.handle)
            handle.check_alive()
            verb.discard(handle.queue)
            plans = self._plan(verb, handle, request)
            self._check_room(handle.queue, plans)
            unit = None
            if request.in_unit:
                unit = self._enlist(handle.connection, len(plans), verb.now)
            for plan in plans:
                for message in plan.arriving:
                    self._arrive(verb, handle.queue, message, unit)
            state = plans[-1].state if plans else request.state
            return PutOutcome([plan.result for plan in plans], state)

    def _plan(self, verb: Transaction, handle: Handle, request: PutRequest) -> Sequence[Planned]:
        circumstances = PutCircumstances(
            queue=self._handles.resolved(handle),
            manager=self._manager,
            program=handle.connection.program,
            in_unit=request.in_unit,
            unit_open=handle.connection.unit is not None,
            now=verb.now,
            new_number=self._numbers.__next__,
        )
        plans, state = [], request.state
        for message in request.messages:
            plans.append(plan_put(message, request.options, state, circumstances))
            state = plans[-1].state
        return plans

    def _check_room(self, queue: MemoryQueue, plans: Sequence[Planned]) -> None:
        """Each put must find the queue below its limit; the pieces it is split into may pass it (R4.7, R2.27)."""
        depth = queue.depth
        for plan in plans:
            if depth >= queue.attributes.max_depth:
                raise QueueFull(
                    f"{queue.attributes.name} has {depth:,} messages, its limit",
                    queue=queue.attributes.name,
                    depth=depth,
                )
            depth += len(plan.arriving)

    def _arrive(self, verb: Transaction, queue: MemoryQueue, message: Message, unit: HeldUnit | None) -> None:
        assert message.uid is not None
        expiry = float("inf") if message.expiry is None else message.expiry
        row = Row(
            message=message,
            number=message.uid.number,
            rank=rank(queue.attributes, message),
            expires_at=verb.now + expiry,
            due_at=verb.now + message.delay if message.delay else NEVER,
        )
        moment = Moment.COMMIT if unit is None else Moment.PUT
        if draws_number(queue.attributes.order, moment):
            row.place, row.placed = row.place._replace(rank=row.rank, number=queue.draw_number()), True
        queue.add(row)
        verb.step(queue, row, Event.PUT if unit is None else Event.PUT_HELD, unit)
        name = queue.attributes.name
        verb.put.append((name, message))
        verb.touched[name] = None

    def end_group(self, handle: int, state: GroupState) -> GroupState:
        with self._verb() as verb:
            one = self._handles.handle(handle)
            if state.message_open:
                raise InconsistentCall(
                    "the last message of the group lacks its last segment", reason=Reason.INCOMPLETE_MSG
                )
            pieces = self._put_in_unit(one, state)
            if not pieces:
                raise WrongState("the last message of the group is committed already: put the last one with last=True")
            for row in pieces:
                flags = stored_flags(row.message.flags | LAST_IN_GROUP)
                one.queue.change(row, row.message.with_values(flags=flags))
            verb.touched[one.queue.attributes.name] = None
            return state._replace(flags=stored_flags(state.flags | LAST_IN_GROUP))

    def withdraw(self, handle: int, state: GroupState) -> None:
        with self._verb() as verb:
            one = self._handles.handle(handle)
            for row in self._put_in_unit(one, state):
                verb.step(one.queue, row, Event.BACK_OUT)

    def _put_in_unit(self, handle: Handle, state: GroupState) -> list[Row]:
        """The pieces of the logical message in `state` that the connection's unit has put."""
        unit = handle.connection.unit
        wanted_numbers = (state.group_id, state.sequence_number)
        return [
            row
            for queue, row in (unit.rows if unit is not None else ())
            if queue is handle.queue
            and row.state is State.PUT_UNCONFIRMED
            and (row.message.group_id, row.message.sequence_number) == wanted_numbers
        ]

    # --- gets and browses

    def get(self, request: GetRequest) -> GetOutcome:
        with self._verb() as verb:
            handle = self._handles.handle(request.handle)
            handle.check_alive()
            verb.discard(handle.queue)
            if not self._handles.resolved(handle).get_allowed:
                raise GetInhibited(f"gets from {handle.name} are inhibited", queue=handle.name)
            gets.check_browse_mode(request.options, request.cursor)
            outcome = self._get_some(verb, handle, request)
            if outcome.messages or not self._time_may_help(request):
                return outcome
            return outcome._replace(look_again_at=self._look_again_at(handle, verb.now))

    def _get_some(self, verb: Transaction, handle: Handle, request: GetRequest) -> GetOutcome:
        state, cursor = gets.begin(request.options, request.state, request.cursor)
        outcome = GetOutcome([], request.state, request.cursor)
        while len(outcome.messages) < request.count:
            if request.one_group and outcome.messages:
                request = replace(request, options=gets.within_group(request.options, state))
            try:
                found = self._find(verb, handle, request, state, cursor)
                verdict = self._judge(verb, handle, request, state, found)
            except InorderError:
                if outcome.messages:
                    break  # the next call meets it first, and raises it
                raise
            if verdict is None:
                self._release_if_browse_moved(verb, handle, request)
                break
            outcome.messages.append(verdict.message)
            if not verdict.takes:
                break
            state, cursor = verdict.state, self._do(verb, handle, request, cursor, found, verdict)
            outcome = outcome._replace(state=state, cursor=cursor)
            if self._is_enough(request, verdict):
                break
        return outcome

    def _is_enough(self, request: GetRequest, verdict: Verdict) -> bool:
        if request.one_group:
            return not (verdict.state.group_open or verdict.state.message_open)
        return verdict.message.warning is not None

    def _find(self, verb: Transaction, handle: Handle, request: GetRequest, state: GroupState, cursor: Cursor) -> Found:
        options, reader = request.options, self._reader(handle, verb.now)
        if options.by_cursor:
            looked_for = Wanted(joins=options.complete)
            return Found(looked_for, self._under_cursor(handle, cursor, looked_for, reader, request))
        looked_for = wanted(state, options)
        after = cursor.behind(logical=options.logical) if options.browse else None
        rows = handle.queue.find(looked_for, reader, after, unmarked=options.unmarked)
        if not rows:
            self._check_token_is_free(handle, request, reader)
        return Found(looked_for, rows)

    def _judge(
        self, verb: Transaction, handle: Handle, request: GetRequest, state: GroupState, found: Found
    ) -> Verdict | None:
        if not found.rows:
            return None
        if request.one_group and not (state.group_open or state.message_open):
            self._check_group_fits(handle, found.rows[0])
        return gets.judge(
            [as_got(row, verb.now) for row in found.rows],
            request.options,
            state,
            found.wanted,
            syncpoint=request.syncpoint,
            unit_open=handle.connection.unit is not None,
        )

    def _do(
        self,
        verb: Transaction,
        handle: Handle,
        request: GetRequest,
        cursor: Cursor,
        found: Found,
        verdict: Verdict,
    ) -> Cursor:
        rows = found.rows[: verdict.takes]
        if request.options.browse:
            return self._browse(verb, handle, request, rows, cursor, heads=found.wanted.heads)
        self._take(verb, handle, rows, in_unit=verdict.in_unit)
        return cursor

    def _check_group_fits(self, handle: Handle, head: Row) -> None:
        """A group is taken whole or not at all: the unit must have room for all of it (R5.8)."""
        used = handle.connection.unit.calls if handle.connection.unit else 0
        size = handle.queue.group_size(head.message.group_id)
        if used + size > self._manager.max_uncommitted:
            raise UnitTooLarge(
                f"the group has {size:,} messages, a unit of work holds at most "
                f"{self._manager.max_uncommitted:,} and has {used:,}",
                limit=self._manager.max_uncommitted,
            )

    def _under_cursor(
        self, handle: Handle, cursor: Cursor, looked_for: Wanted, reader: Reader, request: GetRequest
    ) -> Sequence[Row]:
        row = handle.queue.row(cursor.number)
        if row is None or not available(row, reader):
            raise NoMessageUnderCursor(f"the browse cursor on {handle.name} stands on no message")
        gets.check_under_cursor(request.options, row.message)
        return handle.queue.pieces(row, looked_for, reader)

    def _check_token_is_free(self, handle: Handle, request: GetRequest, reader: Reader) -> None:
        """A browse for unmarked messages that names a marked one by its token is told so (R3.24)."""
        if not (request.options.unmarked and "token" in request.options.match.fields):
            return
        if handle.queue.find(Wanted(match=request.options.match), reader, None, unmarked=False):
            raise QueueCondition(
                "the message of this token is marked by the cooperating set",
                reason=Reason.MSG_MARKED_BROWSE_CO_OP,
            )

    def _browse(
        self,
        verb: Transaction,
        handle: Handle,
        request: GetRequest,
        rows: Sequence[Row],
        cursor: Cursor,
        *,
        heads: bool,
    ) -> Cursor:
        """The effects of a browse: the old lock goes, the new lock and marks come, the cursor moves."""
        options = request.options
        self._release_if_browse_moved(verb, handle, request)
        for row in rows:
            if options.lock:
                verb.step(handle.queue, row, Event.BROWSE_LOCK, locked_by=handle)
            if options.mark_handle:
                row.handle_marks.add(handle.id)
            if options.unmark_handle:
                row.handle_marks.discard(handle.id)
            if options.mark_co_op:
                row.co_op_marked_at = verb.now
            if options.unmark_co_op:
                row.co_op_marked_at = NEVER
                verb.touched[handle.queue.attributes.name] = None
        if options.browse == "cursor":
            return cursor
        return cursor.moved(rows[0].place, rows[0].number, logical=options.logical, head=heads)

    def _take(self, verb: Transaction, handle: Handle, rows: Sequence[Row], *, in_unit: bool) -> None:
        """A removing get: at once, or held by the connection's unit; browse lock and marks end (R3.70, R3.74)."""
        unit = self._enlist(handle.connection, 1, verb.now) if in_unit else None
        for row in rows:
            if row.state is State.LOCKED:
                verb.step(handle.queue, row, Event.UNLOCK, locked_by=handle)
            row.handle_marks.clear()
            row.co_op_marked_at = NEVER
            verb.step(handle.queue, row, Event.GET if unit is None else Event.GET_HELD, unit)

    def _time_may_help(self, request: GetRequest) -> bool:
        return bool(request.options.wait)

    def _look_again_at(self, handle: Handle, now: float) -> float | None:
        reader = self._reader(handle, now)
        times = (handle.queue.next_delivery(now), handle.queue.next_unmarking(reader))
        return min((time for time in times if time is not None), default=None)

    def _reader(self, handle: Handle, now: float) -> Reader:
        interval = self._manager.mark_interval
        return Reader(handle.id, handle.options.co_op, now, float("inf") if interval is None else interval)

    # --- browse locks

    def unlock(self, handle: int) -> bool:
        with self._verb() as verb:
            one = self._handles.handle(handle)
            one.check_alive()
            return self._release(verb, one)

    def _release_if_browse_moved(self, verb: Transaction, handle: Handle, request: GetRequest) -> None:
        """A browse that moves on, also one that finds nothing, frees the handle's lock (R3.70)."""
        options = request.options
        if options.browse in ("first", "next") or (options.browse == "cursor" and not options.lock):
            self._release(verb, handle)

    def _release(self, verb: Transaction, handle: Handle) -> bool:
        locked = [row for row in handle.queue.all_rows() if row.locked_by == handle.id]
        for row in locked:
            verb.step(handle.queue, row, Event.UNLOCK, locked_by=handle)
        return bool(locked)

    # --- units of work

    def _enlist(self, connection: Connection, calls: int, now: float) -> HeldUnit:
        """The connection's unit, begun if need be, with so many more calls counted (R5.8)."""
        unit = connection.unit or HeldUnit(connection.program, now)
        if unit.calls + calls > self._manager.max_uncommitted:
            raise UnitTooLarge(
                f"a unit of work holds at most {self._manager.max_uncommitted:,} messages; commit or back out",
                limit=self._manager.max_uncommitted,
            )
        unit.calls += calls
        connection.unit = unit
        return unit

    def has_unit(self, owner: int) -> bool:
        with self._verb():
            return self._handles.connection(owner).unit is not None

    def settle(self, owner: int, outcome: Outcome) -> bool:
        with self._verb() as verb:
            connection = self._handles.connection(owner)
            unit, connection.unit = connection.unit, None
            if unit is not None:
                verb.settle(unit, outcome)
            return unit is not None

    def prepare(self, owner: int, name: str) -> None:
        with self._verb():
            connection = self._handles.connection(owner)
            if name in self._prepared:
                raise UnitExists(f"a unit named {name!r} is already prepared", unit=name)
            if connection.unit is None:
                raise UnitNotFound("the connection has no unit of work to prepare", unit=name)
            unit, connection.unit = connection.unit, None
            unit.name, unit.state = name, "prepared"
            number_unit(unit, Moment.PREPARE)
            self._prepared[name] = unit

    def settle_prepared(self, name: str, outcome: Outcome) -> None:
        with self._verb() as verb:
            unit = self._prepared.pop(name, None)
            if unit is None:
                raise UnitNotFound(f"no unit named {name!r} is prepared", unit=name)
            verb.settle(unit, outcome)

    def units(self) -> list[Unit]:
        with self._verb():
            open_units = [c.unit for c in self._handles.connections.values() if c.unit is not None]
            units = sorted([*open_units, *self._prepared.values()], key=lambda unit: unit.started_at)
            return [as_seen(unit) for unit in units]

    # --- time

    def discard_expired(self, limit: int) -> int:
        with self._verb() as verb:
            room = limit
            for queue in list(self._handles.queues.values()):
                room -= verb.discard(queue, room)
            return limit - room

    # --- the end

    def stop(self) -> None:
        with self._verb(though_stopped=True) as verb:
            self._stopped = True
            verb.touched.update(dict.fromkeys(self._handles.queues))

    def restart(self) -> None:
        """What a new start does: connections are lost, their units backed out, prepared units are kept.

        Non-persistent messages go, unless their queue keeps them or a prepared unit holds them (R1.5, R5.11).
        """
        with self._verb(though_stopped=True) as verb:
            self._stopped = False
            for connection in list(self._handles.connections.values()):
                self._abandon(verb, connection)
            for queue in self._handles.queues.values():
                for row in queue.all_rows():
                    if not (row.message.persistent or queue.attributes.nonpersistent_class == "high"):
                        verb.forget(queue, row)
                verb.touched[queue.attributes.name] = None
