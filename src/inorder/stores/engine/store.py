"""The operations of a store, for all backends: connections, queues, puts, gets, confirmed calls, units of work.

`protocol.Store` documents the guarantees of each operation; the modules called from here implement them. Operations in
bulk are in `bulk.py`, those for operators in `operator.py`, expiry in `expiring.py`, and clearing of queues in
`clearing.py`.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Literal

from ...errors import (
    CallInProgress,
    ConnectionBroken,
    DuplicateMessage,
    DuplicatePending,
    InorderError,
    LeaseOver,
    LockMismatch,
    ObjectInUse,
    OutcomeUnknown,
    QueueFull,
    Reason,
    StoreError,
    UnitNotFound,
    WrongState,
)
from ...model.attributes import (
    ManagerAttributes,
    QueueAttributes,
    QueueStatus,
    altered,
    altered_manager,
    define_manager,
)
from ...model.message import UniqueId
from ...model.options import OpenOptions
from ...rules.grouping import GroupState
from ...rules.lifecycle import Event
from ...rules.puts import Program
from ...rules.retries import Later
from ...support.clock import Clock
from ...support.locks import AtEnd
from ..seam.backend import Backend, Host
from ..seam.definitions import as_text, manager_row
from ..seam.records import Locked, LockRequest, OneMessage, Opened, Outcome, PutOutcome, PutRequest
from ..seam.tables import HandleRow, UnitRow, WaitRow, handle_reader
from ..seam.telemetry import Telemetry, count, event, first, length, of_request, unit_of
from ..seam.views import NOTHING_PENDING, OrderView
from . import confirming, connections, global_units, group_readers, putkeys, putting, settling, triggering
from .bulk import Shortcuts
from .catalog import Catalog, get_allowed
from .clearing import ClearingVerbs
from .expiring import ExpiringVerbs
from .getting import GettingVerbs
from .global_units import GlobalVerbs
from .history import HistoryVerbs
from .leasing import LeasingVerbs
from .objects import ObjectVerbs
from .operation import Operation, in_operation
from .operator import OperatorVerbs
from .process import OpenStore
from .reading import release
from .receiving import ReceivingVerbs
from .sending import SendingVerbs
from .settling import tidied
from .staging import check_name
from .user_records import PeopleVerbs
from .waiting import WaitingRoom


def new_manager(name: str) -> str:
    """Returns the attributes of a new queue manager as JSON, for storing."""
    return as_text(define_manager(name=name))


# --- the fields of events


def _put(put: PutOutcome | None, request: PutRequest) -> list[int]:
    """The number and total length of the messages put; 0 for a repeat under a key that was already used."""
    if put is not None and put.results and put.results[0].duplicate_of is not None:
        return [0, 0]
    return [len(request.messages), length(request.messages)]


def _name(_: object, name: str, *__: Any, **___: Any) -> Sequence[object]:
    return [name]


def _settled(acted: bool | None, _: object, outcome: Outcome, *__: Any, **___: Any) -> Sequence[object]:
    return ["session", outcome, bool(acted)]


class QueueStore(
    GettingVerbs,
    SendingVerbs,
    ReceivingVerbs,
    OperatorVerbs,
    ObjectVerbs,
    LeasingVerbs,
    GlobalVerbs,
    PeopleVerbs,
    HistoryVerbs,
    ClearingVerbs,
    ExpiringVerbs,
    OpenStore,
):
    """A store of queues over a backend and a host. `protocol.Store` documents its operations.

    Attributes:
        telemetry: its observers.
        waiting: its waiting calls.
        shared: the shared state of this process's connections to it; they set it.
    """

    def __init__(
        self, backend: Backend, host: Host, path: str, name: str, clock: Clock, shortcuts: Shortcuts | None = None
    ) -> None:
        super().__init__(backend, host, path, name, clock)
        about = {"store": self.path}
        self.telemetry = Telemetry(self.changes, self.gathering, lambda: about | {"manager": self.manager().name})
        self.waiting = WaitingRoom(self.changes, host, clock, self.telemetry)
        self.shortcuts = shortcuts
        self.shared: object | None = None

    # --- connections and handles

    def connect(self, program: Program) -> int:
        made: list[int] = []
        try:
            return self._connect(program, made)
        except InorderError:
            raise
        except BaseException:  # from outside: the caller does not get the connection's number
            with AtEnd(_end, made, self._disconnect):
                _end(made, self._disconnect)
            raise

    @event("connect", keys="program", about=lambda _, program, __: [program.name])
    @in_operation()
    def _connect(self, operation: Operation, program: Program, made: list[int]) -> int:
        made.append(connections.connect(operation, program))
        return made[-1]

    @in_operation()
    def reserve_numbers(self, operation: Operation, owner: int, count: int) -> UniqueId:
        return connections.reserve_numbers(operation, self.connection(owner), count)

    @event("disconnect")
    def disconnect(self, owner: int) -> None:
        # In this order: a call that begins to wait after the dismissal fails at its first look.
        was_lost = contextlib.suppress(ConnectionBroken, OutcomeUnknown)  # other processes back out its work
        with AtEnd(self.waiting.dismiss, owner) as again, again, was_lost:
            self._disconnect(owner)

    @in_operation(though_stopped=True)
    def _disconnect(self, operation: Operation, owner: int) -> None:
        if owner in self.connections:
            connections.abandon(operation, owner)

    @event("open", keys="queue", about=lambda opened, _, queue, *__, **___: [opened.queue if opened else queue])
    def open(
        self, owner: int, queue: str, options: OpenOptions, *, manager: str = "", dynamic_name: str = "*"
    ) -> Opened:
        if options.co_op:
            self.end_dead_processes()  # the marks of a cooperating set end with its last member
        return self._open(owner, queue, options, manager, dynamic_name)

    @in_operation(unless_dead=(ObjectInUse,))
    def _open(
        self, operation: Operation, owner: int, queue: str, options: OpenOptions, manager: str, dynamic_name: str
    ) -> Opened:
        return connections.open_handle(operation, self.connection(owner), queue, options, manager, dynamic_name)

    @in_operation()
    def keep_handles(self, operation: Operation, owner: int, handles: Sequence[int]) -> None:
        connections.keep_handles(operation, owner, handles)

    @event("extend", handle=first)
    @in_operation(unless_dead=(ObjectInUse,))
    def extend(self, operation: Operation, handle: int, options: OpenOptions) -> Opened:
        return connections.extend_handle(operation, self.handle(handle), options)

    @event("check_handle", handle=first)
    @in_operation(writes=False)
    def check_handle(self, operation: Operation, handle: int) -> None:
        operation.queue_of(self.handle(handle))

    # --- triggers

    def trigger(self, operation: Operation) -> None:
        triggering.judge(operation)

    def end_dead_processes(self) -> bool:
        return connections.end_dead_processes(self)

    # --- queues

    @event("create_queue", keys="queue", about=lambda _, attributes: [attributes.name])
    @in_operation(feeds=True)
    def create_queue(self, operation: Operation, attributes: QueueAttributes) -> None:
        Catalog(operation).create(attributes)

    @event("alter_queue", keys="queue", about=_name)
    @in_operation(unless_dead=(ObjectInUse,))
    def alter_queue(
        self, operation: Operation, name: str, by: Literal["alter", "set"], changes: dict[str, Any]
    ) -> None:
        catalog = Catalog(operation)
        definition = catalog.made(name)
        changed = altered(definition, by, **changes)
        affected = {catalog.local_queue_of(name)}
        if definition.type == "local":
            catalog.check_alter(definition, changed)
        elif definition.type != "alias" or changed.base_queue != definition.base_queue:
            catalog.check_names(changed)
        catalog.change(changed)
        catalog.make_targets(changed)
        if (changed.base_queue, changed.mode) != (definition.base_queue, definition.mode):
            catalog.check_dead_letters_reach(changed)
        affected.add(catalog.local_queue_of(name))
        for one in affected:
            if one is not None:
                queue = operation.queue(catalog.number(one), one)
                queue.attributes = catalog.definition(one)
                operation.touch(queue)
                if queue.attributes.trigger_control:
                    operation.released.add(queue.id)

    @event("queues")
    @in_operation(writes=False)
    def queues(self, operation: Operation) -> list[QueueAttributes]:
        return Catalog(operation).definitions()

    @event("queue", keys="queue", about=_name)
    @in_operation(writes=False)
    def queue(self, operation: Operation, name: str) -> QueueAttributes:
        return Catalog(operation).definition(name)

    @event("status", "depth", "queue", measured=lambda found, _: [found.current_depth], about=_name)
    @in_operation(ends_dead=True)
    def status(self, operation: Operation, name: str) -> QueueStatus:
        catalog = Catalog(operation)
        if catalog.is_unused(name):
            return QueueStatus(
                current_depth=0,
                open_input_count=0,
                open_output_count=0,
                uncommitted=0,
                created_at=catalog.created_at,
                altered_at=catalog.created_at,
            )
        queue = catalog.local(name)
        settling.discard(operation, queue)
        return catalog.status(queue)

    @event("manager")
    @in_operation(writes=False, though_stopped=True)
    def manager(self, operation: Operation) -> ManagerAttributes:
        return Catalog(operation).manager

    @in_operation(writes=False, though_stopped=True)
    def identifier(self, operation: Operation) -> str:
        return manager_row(operation.backend).identifier

    @event("alter_manager")
    @in_operation()
    def alter_manager(self, operation: Operation, changes: dict[str, Any]) -> None:
        catalog = Catalog(operation)
        altered = altered_manager(catalog.manager, "alter", **changes)
        if altered.dead_letter_queue != catalog.manager.dead_letter_queue:
            catalog.check_dead_letter_queue(altered.dead_letter_queue)
        catalog.change_manager(altered)

    # --- puts

    @event(
        "put",
        "messages bytes",
        "unit",
        handle=of_request,
        measured=_put,
        about=lambda _, request: [unit_of(request, in_unit=request.in_unit)],
    )
    @in_operation(
        feeds=True,
        unless_dead=(QueueFull, DuplicateMessage, DuplicatePending, WrongState, LeaseOver),
        alone=False,
        appends=True,
        together=True,
    )
    def put(self, operation: Operation, request: PutRequest) -> PutOutcome:
        handle = self.handle(request.handle)
        if handle.connection.is_leased and request.in_unit:
            operation.lease_of(handle.connection)
        return putting.put(operation, handle, tidied(operation, handle), request)

    @event("end_group", handle=first)
    @in_operation(alone=False, unless_dead=(LeaseOver,))
    def end_group(self, operation: Operation, handle: int, state: GroupState) -> GroupState:
        return settling.end_group(operation, self.handle(handle), state)

    @event("withdraw", handle=first)
    @in_operation(alone=False, unless_dead=(LeaseOver,))
    def withdraw(self, operation: Operation, handle: int, state: GroupState, *, whole_group: bool) -> None:
        settling.withdraw(operation, self.handle(handle), state, whole_group=whole_group)

    # --- handles

    @event("unlock", keys="acted", handle=first, about=lambda acted, _: [bool(acted)])
    @in_operation(alone=False)
    def unlock(self, operation: Operation, handle: int) -> bool:
        one = self.handle(handle)
        return release(operation, one, operation.queue_of(one))

    @event("leave_group", handle=first)
    @in_operation(alone=False)
    def leave_group(self, operation: Operation, handle: int) -> None:
        one = self.handle(handle)
        queue = operation.queue_of(one)
        if group_readers.leave_all(queue, handle_reader(one.id)):
            operation.touch(queue)

    # --- confirmed calls

    @event(
        "browse_and_lock",
        "messages bytes",
        "unit",
        handle=of_request,
        measured=lambda locked, _: [len(locked.messages), length(locked.messages)],
        about=lambda *_: ["lock"],
    )
    def browse_and_lock(self, request: LockRequest) -> Locked:
        return self._look_and_lock(request)

    @event("one_message", keys="act", handle=of_request, about=lambda _, request: [request.event.name.lower()])
    @in_operation(unless_dead=(WrongState, LockMismatch), alone=False)
    def one_message(self, operation: Operation, request: OneMessage) -> Reason | None:
        handle = self.handle(request.handle)
        queue = tidied(operation, handle)
        if request.event is Event.DELETE:
            get_allowed(operation, handle, queue)
        operation.durable = True
        return confirming.one_message(operation, queue, request)

    @event("undo", "messages", "unit", handle=first, measured=count, about=lambda *_: ["confirm"])
    @in_operation(alone=False)
    def undo(self, operation: Operation, handle: int, confirm_id: int) -> int:
        operation.durable = True
        return confirming.undo(operation, tidied(operation, self.handle(handle)), confirm_id)

    @event("release_lock", "messages", "unit", handle=first, measured=count, about=lambda *_: ["lock"])
    @in_operation(alone=False)
    def release_lock(self, operation: Operation, handle: int, lock_id: int) -> int:
        operation.durable = True
        return confirming.release_lock(operation, tidied(operation, self.handle(handle)), lock_id)

    @event(
        "unique_ids",
        "messages",
        "unit",
        handle=first,
        measured=lambda found, *_: [len(found)],
        about=lambda _, __, confirm_id, ___: ["confirm" if confirm_id else "lock"],
    )
    @in_operation()
    def unique_ids(self, operation: Operation, handle: int, confirm_id: int, lock_id: int) -> list[UniqueId]:
        return confirming.unique_ids(operation, tidied(operation, self.handle(handle)), confirm_id, lock_id)

    # --- strict reading

    @event("order_view", keys="queue", about=_name)
    @in_operation(ends_dead=True)
    def order_view(self, operation: Operation, queue: str) -> OrderView:
        catalog = Catalog(operation)
        if catalog.is_unused(queue):
            return NOTHING_PENDING
        local = catalog.local(queue)
        found = settling.tidy(operation, local) if local.has_work(operation.now) else local
        view = self.backend.order_view(found, operation.now)
        return replace(view, strict_waiters=len(self.backend.select(WaitRow, queue=found.id)))

    # --- units of work

    def has_unit(self, owner: int) -> bool:
        return self.connection(owner).unit is not None

    @event("settle", keys="unit outcome acted", about=_settled)
    def settle(
        self, owner: int, outcome: Outcome, later: Later | None = None, *, moves: bool = False, decides: str = ""
    ) -> bool:
        has_unit = self.has_unit(owner)
        if has_unit or decides:
            self._settle(owner, outcome, later, moves=moves, decides=decides)
        return has_unit

    @in_operation(alone=False, unless_dead=(LeaseOver,))
    def _settle(
        self, operation: Operation, owner: int, outcome: Outcome, later: Later | None, *, moves: bool, decides: str
    ) -> None:
        connection = self.connection(owner)
        if decides:
            global_units.decide(operation, owner, decides, outcome)
        unit = connection.unit
        if unit is None:
            return
        is_leased = connection.is_leased and operation.lease_of(connection) is not None
        if later is not None:
            settling.put_off(operation, unit, later)
        if is_leased:
            settling.settle_lease(operation, unit, outcome)
            operation.leave_unit(connection, connection.record)
            return
        counts = later is None or later.counts
        settling.settle(operation, unit, outcome, was_given=counts, delivers=not moves, arrives=not moves)
        if connection.keyed == connection.ended:
            putkeys.settle(operation, unit, outcome)
        operation.leave_unit(connection, unit)

    @event("prepare", keys="unit name", about=lambda _, __, name: ["prepared", name])
    @in_operation()
    def prepare(self, operation: Operation, owner: int, name: str) -> None:
        check_name("name", name)
        settling.prepare(operation, self.connection(owner), name)

    @event("settle_prepared", keys="unit name outcome", about=lambda _, *given: ["prepared", *given[:2]])
    @in_operation()
    def settle_prepared(self, operation: Operation, name: str, outcome: Outcome, user: str | None = None) -> None:
        found = self.backend.select(UnitRow, kind="prepared", name=name)
        if not found or user not in (None, found[0].user):
            raise UnitNotFound(f"no unit named {name!r} is prepared", unit=name)
        settling.settle_and_end(operation, found[0].id, outcome)
        operation.durable = True

    # --- the end

    @event("stop")
    @in_operation(though_stopped=True)
    def stop(self, operation: Operation) -> None:
        self._wake_all(operation)
        self.host.stopped = True

    def _wake_all(self, operation: Operation) -> None:
        """Makes all calls that wait for an open queue look again."""
        for number in sorted({one.queue for one in self.backend.select(HandleRow)}):
            if self.backend.state(number) is not None:
                operation.touch(operation.queue(number))

    @in_operation(though_stopped=True)
    def restart(self, operation: Operation) -> None:
        """For tests: loses this process's connections as if it had died, and starts the queue manager again."""
        self._wake_all(operation)
        self.host.stopped = False
        connections.start(operation)

    @event("backup", keys="path", about=lambda _, path, **__: [str(path)])
    def backup(
        self, path: str | os.PathLike[str], *, replace: bool, progress: Callable[[int, int], object] | None
    ) -> None:
        self.refuse_wait("back up outside of it")
        self.host.backup(path, replace=replace, progress=progress)

    def close_store(self) -> None:
        """Ends the remaining connections of this process, and releases the medium. Harmless when repeated."""
        if self.host.is_closed:
            return
        try:
            # If the file is gone or full, or the connection lost, the next process to open the store tidies up.
            with contextlib.suppress(StoreError, ConnectionBroken, OutcomeUnknown):
                connections.end(self)
        except CallInProgress:
            raise
        except BaseException:
            self.host.close()
            raise
        self.host.close()


def _end(made: list[int], end: Callable[[int], object]) -> None:
    """Ends connections or handles that were created but cannot be used. Harmless when repeated."""
    while made:
        with contextlib.suppress(ConnectionBroken):  # it has already ended
            end(made[-1])
        made.pop()
