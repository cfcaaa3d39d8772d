"""The memory store: the specification.

Everything is in ordinary objects under one lock, and each verb does naively what its rule says: it looks at
every row that could matter, asks the rules, and changes rows one at a time through the life-cycle table. Other
stores must give the same answers; this one is to be read.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Literal

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
    IN_MEMORY,
    CallerError,
    GetInhibited,
    InconsistentCall,
    OrderDeadlock,
    QueueManagerStopping,
    Reason,
    UnitExists,
    UnitNotFound,
    WrongState,
)
from ...message import LAST_IN_GROUP, UniqueId, stored_flags
from ...options import OpenOptions
from ...rules.grouping import GroupState
from ...rules.lifecycle import Event, State
from ...rules.ordering import Moment, is_deadlocked
from ...rules.puts import Program
from .. import confirmed
from ..base import (
    GetOutcome,
    GetRequest,
    LedgerKey,
    Locked,
    LockRequest,
    Observer,
    OneMessage,
    Opened,
    OrderView,
    Outcome,
    Progress,
    PutOutcome,
    PutRequest,
    Settled,
    Staged,
    StageRequest,
    Unit,
)
from ..lock import VerbLock
from ..putting import Putting
from ..reading import Reading
from ..rows import NEVER, Row
from ..telling import Teller
from .claims import MemoryClaims
from .handles import Handles, MemoryConnection, MemoryHandle, Waits
from .operating import MemoryOperating
from .queue import MemoryQueue, MemoryUnit
from .staging import MemoryStagings, group_id_maker
from .transaction import MemoryTransaction, as_seen, as_viewed, number_unit
from .undo import Changes, Counter, Undoable, UndoDict


class MemoryStore(Undoable, MemoryOperating, MemoryClaims):
    """A store in this process's memory; gone with the process.

    Args:
        name: the queue manager's name; it is part of generated ids.
        clock: where the time comes from.
    """

    def __init__(self, name: str = "INORDER", clock: Clock | None = None) -> None:
        self.clock: Clock = clock or SystemClock()
        self._manager = define_manager(name=name)
        self.path = IN_MEMORY
        self.shared: object | None = None
        self.lock = VerbLock(self.path)
        self._numbers = Counter()
        self._handles = Handles(self._numbers, self.clock.now)
        self.teller = Teller()
        self._prepared: dict[str, MemoryUnit] = UndoDict()
        self._stagings = MemoryStagings()
        self._stopped = False

    @contextmanager
    def _verb(self, *, though_stopped: bool = False) -> Iterator[MemoryTransaction]:
        try:
            with self.lock:
                if self._stopped and not though_stopped:
                    raise QueueManagerStopping(f"queue manager {self._manager.name} has been stopped")
                verb = MemoryTransaction(self.clock.now(), self._numbers, Changes())
                try:
                    with verb.undo:
                        yield verb
                except BaseException:
                    verb.fail()
                    raise
                finally:
                    self._forget_entries(verb)
                    self._forget_edges(verb)
                    self.teller.add(verb.changes())
        finally:
            self.teller.tell()

    def observe(
        self,
        observer: Observer,
        wants: Callable[[], bool] | None = None,
        heeds: Callable[[], bool] | None = None,
    ) -> None:
        self.teller.observe(observer, wants, heeds)

    def observe_deaths(self, observer: Callable[[Program], object]) -> None:
        self.teller.observe_deaths(observer)  # told of none: whoever is connected dies with this memory

    # --- connections and handles

    def connect(self, program: Program) -> int:
        with self._verb():
            return self._handles.connect(program)

    def disconnect(self, owner: int) -> None:
        with self._verb(though_stopped=True) as verb:
            connection = self._handles.connections.get(owner)
            if connection is not None:
                self._abandon(verb, connection)

    def _abandon(self, verb: MemoryTransaction, connection: MemoryConnection) -> None:
        if connection.unit is not None:
            verb.settle(connection.unit, "back_out")
        for handle in connection.handles():
            verb.release(handle, handle.queue)
            self._drop(verb, handle)
        self._handles.disconnect(connection)

    def open(self, owner: int, queue: str, options: OpenOptions, *, dynamic_name: str = "*") -> Opened:
        with self._verb():
            connection = self._handles.connection(owner)
            return self._handles.open(connection, queue, options, dynamic_name, self._manager.max_handles)

    def extend(self, handle: int, options: OpenOptions) -> Opened:
        with self._verb():
            return self._handles.extend(self._handles.handle(handle), options)

    def close(self, handle: int, *, delete: bool = False, purge: bool = False) -> None:
        with self._verb() as verb:
            one = self._handles.handle(handle)
            if delete or purge:
                one.check_alive()
                verb.discard(one.queue)
                self._handles.check_delete_at_close(one.name, one.queue.attributes, purge=purge)
            verb.release(one, one.queue)
            self._drop(verb, one)
            if delete or purge:
                self._vanish(verb, one.queue)

    def _drop(self, verb: MemoryTransaction, handle: MemoryHandle) -> None:
        """The handle is gone; with it its marks, the last of the cooperating set's, and its temporary queue."""
        self._handles.close(handle)
        others = self._handles.on(handle.queue)
        co_op_is_left = any(other.options.co_op for other in others)
        verb.leave_all(handle.queue, handle.id)
        for row in handle.queue.all_rows():
            row.handle_marks.discard(handle.id)
            if not co_op_is_left:
                row.co_op_marked_at = NEVER
        if handle.made_temporary_queue:
            self._vanish(verb, handle.queue)

    def _forget_entries(self, verb: MemoryTransaction) -> None:
        for queue in self._handles.queues.values():
            if queue.attributes.name in verb.touched:
                queue.forget_entries()

    def _clear(self, verb: MemoryTransaction, queue: MemoryQueue) -> int:
        rows = queue.all_rows()
        for row in rows:
            verb.remove(queue, row)
        return len(rows)

    def _vanish(self, verb: MemoryTransaction, queue: MemoryQueue) -> None:
        self._clear(verb, queue)
        self._stagings.forget_queue(queue)
        queue.deleted = True
        self._handles.queues.pop(queue.attributes.name, None)
        verb.touch(queue)

    def check_handle(self, handle: int) -> None:
        with self._verb():
            self._handles.handle(handle).check_alive()

    # --- queues

    def create_queue(self, attributes: QueueAttributes) -> None:
        with self._verb():
            self._handles.create(attributes)

    def alter_queue(self, name: str, by: Literal["alter", "set"], changes: dict[str, Any]) -> None:
        with self._verb() as verb:
            definition = self._handles.definition(name)
            changed = altered(definition, by, **changes)
            before = self._handles.local_queue_of(name)
            if isinstance(queue := self._handles.queues.get(name), MemoryQueue):
                self._handles.check_alter(definition, changed)
                queue.attributes, queue.altered_at = changed, verb.now
            else:
                self._handles.check_alias(changed)
                self._handles.other_definitions[name] = changed
            for affected in (before, self._handles.local_queue_of(name)):
                if affected is not None:
                    verb.touch(self._handles.queues[affected])

    def delete_queue(self, name: str, *, purge: bool) -> None:
        with self._verb() as verb:
            if isinstance(name, str) and name in self._handles.queues:
                verb.discard(self._handles.queues[name])
            self._handles.check_delete(name, purge=purge)
            if (queue := self._handles.queues.get(name)) is not None:
                self._vanish(verb, queue)
            self._handles.other_definitions.pop(name, None)

    def clear_queue(self, name: str) -> int:
        with self._verb() as verb:
            if isinstance(name, str) and name in self._handles.queues:
                verb.discard(self._handles.queues[name])
            self._handles.check_clear(name)
            return self._clear(verb, self._handles.queues[name])

    def queues(self) -> list[QueueAttributes]:
        with self._verb():
            return self._handles.definitions()

    def queue(self, name: str) -> QueueAttributes:
        with self._verb():
            return self._handles.definition(name)

    def status(self, name: str) -> QueueStatus:
        with self._verb() as verb:
            queue = self._handles.queues[self._handles.resolve(name).name]
            verb.discard(queue)
            return self._handles.status(queue)

    def manager(self) -> ManagerAttributes:
        with self.lock:
            return self._manager

    def alter_manager(self, changes: dict[str, Any]) -> None:
        with self._verb():
            self._manager = altered_manager(self._manager, "alter", **changes)

    # --- puts

    def put(self, request: PutRequest) -> PutOutcome:
        with self._verb() as verb:
            handle = self._tidied(verb, request.handle)
            resolved = self._handles.resolved(handle.name, handle.queue.attributes)
            return Putting(verb, handle, handle.queue, request, resolved, self._manager, self._numbers).run()

    def end_group(self, handle: int, state: GroupState) -> GroupState:
        with self._verb() as verb:
            one = self._handles.handle(handle)
            if state.message_open:
                raise InconsistentCall(
                    "the last message of the group lacks its last segment", reason=Reason.INCOMPLETE_MSG
                )
            if not state.group_open:
                raise WrongState("the handle has no group open")
            pieces = self._put_in_unit(one, state)
            if sum(row.message.length for row in pieces) != state.offset + state.length or not pieces:
                raise WrongState("the last message of the group is committed already: put the last one with last=True")
            for row in pieces:
                flags = stored_flags(row.message.flags | LAST_IN_GROUP)
                one.queue.change(row, row.message.with_values(flags=flags))
            verb.touch(one.queue)
            return state._replace(flags=stored_flags(state.flags | LAST_IN_GROUP))

    def withdraw(self, handle: int, state: GroupState, *, whole_group: bool) -> None:
        with self._verb() as verb:
            one = self._handles.handle(handle)
            if not (state.group_open if whole_group else state.message_open):
                raise WrongState("the handle has nothing open that could be withdrawn")
            for row in self._put_in_unit(one, state, whole_group=whole_group):
                verb.step(one.queue, row, Event.BACK_OUT)

    def _put_in_unit(self, handle: MemoryHandle, state: GroupState, *, whole_group: bool = False) -> list[Row]:
        """The pieces of the logical message in `state`, or of the group up to it, that the unit has put."""
        unit = handle.connection.unit
        first = 1 if whole_group else state.sequence_number
        return [
            row
            for queue, row in (unit.rows.values() if unit is not None else ())
            if queue is handle.queue
            and row.state is State.PUT_UNCONFIRMED
            and row.message.group_id == state.group_id
            and first <= row.message.sequence_number <= state.sequence_number
        ]

    # --- gets and browses

    def get(self, request: GetRequest) -> GetOutcome:
        with self._verb() as verb:
            handle = self._tidied(verb, request.handle)
            self._handles.connection_of(handle).waits = None
            resolved = self._check_get_allowed(handle)
            reading = Reading(verb, handle, handle.queue, request, resolved, self._manager)
            outcome = reading.run()
            if not outcome.messages and request.waits:
                verb.waiter = handle.connection.id
                self._wait(handle, outcome, reading.in_its_way)
            return outcome

    def _wait(self, handle: MemoryHandle, outcome: GetOutcome, in_its_way: Sequence[frozenset[int]] | None) -> None:
        """The connection is about to wait. Raises: OrderDeadlock, everyone in its way waits for it (B-31)."""
        connection = self._handles.connection_of(handle)
        name, withheld = handle.queue.attributes.name, outcome.withheld is not None
        connection.waits = Waits(name, in_its_way, outcome.pending, withheld)
        known = ((one.id, one.waits) for one in self._handles.connections.values() if one.waits)
        edges = {number: waits.in_its_way for number, waits in known if waits.in_its_way}
        if is_deadlocked(connection.id, edges):
            connection.waits = None
            raise OrderDeadlock("readers that hold what the others need wait for each other: back out or commit")

    def _forget_edges(self, verb: MemoryTransaction) -> None:
        """What a verb has touched may let waiting readers go on: what was in their way is found anew when they look."""
        for connection in self._handles.connections.values():
            if connection.waits and connection.waits.queue in verb.touched and connection.id != verb.waiter:
                connection.waits = connection.waits._replace(in_its_way=None)

    def end_wait(self, owner: int) -> None:
        with self._verb(though_stopped=True):
            if (connection := self._handles.connections.get(owner)) is not None:
                connection.waits = None

    # --- confirmed calls

    def browse_and_lock(self, request: LockRequest) -> Locked:
        with self._verb() as verb:
            handle = self._tidied(verb, request.handle)
            self._check_get_allowed(handle)
            return confirmed.browse_and_lock(verb, handle, handle.queue, request)

    def one_message(self, request: OneMessage) -> Reason | None:
        with self._verb() as verb:
            handle = self._tidied(verb, request.handle)
            if request.event is Event.DELETE:
                self._check_get_allowed(handle)
            return confirmed.one_message(verb, handle.queue, request)

    def undo(self, handle: int, confirm_id: int) -> int:
        with self._verb() as verb:
            return confirmed.undo(verb, self._tidied(verb, handle).queue, confirm_id)

    def release_lock(self, handle: int, lock_id: int) -> int:
        with self._verb() as verb:
            return confirmed.release_lock(verb, self._tidied(verb, handle).queue, lock_id)

    def unique_ids(self, handle: int, confirm_id: int, lock_id: int) -> list[UniqueId]:
        with self._verb() as verb:
            return confirmed.unique_ids(self._tidied(verb, handle).queue, confirm_id, lock_id)

    def _check_get_allowed(self, handle: MemoryHandle) -> QueueAttributes:
        resolved = self._handles.resolved(handle.name, handle.queue.attributes)
        if not resolved.get_allowed:
            raise GetInhibited(f"gets from {handle.name} are inhibited", queue=handle.name)
        return resolved

    def _tidied(self, verb: MemoryTransaction, handle: int) -> MemoryHandle:
        """The handle, with what has expired on its queue discarded and leases ended, which is a step of its own."""
        one = self._handles.handle(handle)
        one.check_alive()
        if verb.discard(one.queue) + verb.end_leases(one.queue):
            self._forget_entries(verb)
            verb.keep()
        return one

    # --- strict reading

    def order_view(self, queue: str) -> OrderView:
        with self._verb() as verb:
            found = self._handles.queues[self._handles.resolve(queue).name]
            verb.discard(found)
            verb.end_leases(found)
            name = found.attributes.name
            waiting = sum(
                one.waits is not None and one.waits.queue == name for one in self._handles.connections.values()
            )
            return as_viewed(found, verb.now, waiting)

    # --- browse locks

    def unlock(self, handle: int) -> bool:
        with self._verb() as verb:
            one = self._handles.handle(handle)
            one.check_alive()
            return verb.release(one, one.queue)

    def leave_group(self, handle: int) -> None:
        with self._verb() as verb:
            one = self._handles.handle(handle)
            verb.leave_all(one.queue, one.id)

    # --- units of work

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
        with self._verb() as verb:
            connection = self._handles.connection(owner)
            if name in self._prepared:
                raise UnitExists(f"a unit named {name!r} is already prepared", unit=name)
            if connection.unit is None:
                raise UnitNotFound("the connection has no unit of work to prepare", unit=name)
            unit, connection.unit = connection.unit, None
            unit.name, unit.kind, unit.connection = name, "prepared", None
            number_unit(unit, Moment.PREPARE)
            for queue, _ in unit.rows.values():
                queue.settle_entries(unit, "prepare")
                verb.touch(queue)
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
            named = [unit for queue in self._handles.queues.values() for unit in queue.named_units()]
            units = sorted([*open_units, *self._prepared.values(), *named], key=lambda unit: unit.started_at)
            seen = [*(as_seen(unit) for unit in units), *self._stagings.as_seen()]
            return sorted(seen, key=lambda unit: unit.started_at)

    # --- time

    def discard_expired(self, limit: int) -> int:
        with self._verb() as verb:
            room = limit
            for queue in list(self._handles.queues.values()):
                room -= verb.discard(queue, room)
                verb.end_leases(queue)
            self._stagings.undo_expired(verb.now)
            return limit - room

    # --- stagings

    def stage(self, request: StageRequest) -> None:
        with self._verb() as verb:
            handle = self._handles.handle(request.handle)
            handle.check_alive()
            resolved = self._handles.resolved(handle.name, handle.queue.attributes)
            self._stagings.stage(verb, handle, resolved, self._manager, request)

    def settle_staging(self, key: LedgerKey, stagings: Sequence[Staged]) -> Settled:
        with self._verb() as verb:
            return self._stagings.settle(verb, key, stagings, group_id_maker(self._manager.name))

    def undo_staging(self, names: Sequence[str]) -> int:
        with self._verb():
            return self._stagings.undo(names)

    def in_ledger(self, queue: str, key: LedgerKey) -> float | None:
        with self._verb():
            found = self._handles.queues[self._handles.resolve(queue).name]
            return self._stagings.noted_at(found, key)

    # --- the end

    def attend(self, *, waits: bool) -> None:
        """Nobody else is there to change anything."""

    def backup(self, path: str | os.PathLike[str], *, replace: bool, progress: Progress | None) -> None:
        raise CallerError(
            "a queue manager in memory cannot be backed up: connect to a file for one that can",
            reason=Reason.FUNCTION_NOT_SUPPORTED,
        )

    def close_store(self) -> None:
        """What is in memory goes with the object."""

    def stop(self) -> None:
        with self._verb(though_stopped=True) as verb:
            self._stopped = True
            for queue in self._handles.queues.values():
                verb.touch(queue)

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
                verb.touch(queue)
