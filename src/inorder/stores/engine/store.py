"""The verbs of a store, once for all backends: connections, queues, puts, gets, confirmed calls, units of work.

`protocol.Store` documents the guarantees of each verb, and the files called from here its meaning. Bulk verbs are in
`bulk.py`, verbs for operators in `operator.py`, expiry in `expiring.py`, and clearing of queues in `clearing.py`.
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
from ..seam.definitions import as_text
from ..seam.records import (
    Locked,
    LockRequest,
    OneMessage,
    Opened,
    Outcome,
    PutOutcome,
    PutRequest,
)
from ..seam.tables import HandleRow, UnitRow, WaitRow, handle_reader
from ..seam.telemetry import Telemetry, count, event, first, length, of_request, unit_of
from ..seam.views import NOTHING_PENDING, OrderView
from . import confirming, connections, group_readers, putkeys, putting, settling, triggering
from .bulk import Shortcuts
from .catalog import Catalog, get_allowed
from .clearing import ClearingVerbs
from .expiring import ExpiringVerbs
from .getting import GettingVerbs
from .leasing import LeasingVerbs
from .objects import ObjectVerbs
from .operation import Verb, in_verb
from .operator import OperatorVerbs
from .process import OpenStore
from .reading import release
from .receiving import ReceivingVerbs
from .sending import SendingVerbs
from .settling import tidied
from .user_records import PeopleVerbs
from .waiting import WaitingRoom


def new_manager(name: str) -> str:
    """The attributes of a new queue manager, as they are kept."""
    return as_text(define_manager(name=name))


# --- what events say


def _put(put: PutOutcome | None, request: PutRequest) -> list[int]:
    """How many messages were put, and how long they are; under a key that was taken already none."""
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
    PeopleVerbs,
    ClearingVerbs,
    ExpiringVerbs,
    OpenStore,
):
    """A store of queues over a backend and a host; `protocol.Store` says what its verbs guarantee.

    Attributes:
        telemetry: who observes its verbs.
        waiting: where calls wait.
        shared: what all connections of this process to it share, for them to set.
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
        except BaseException:  # from outside: nobody has its number
            with AtEnd(_end, made, self._disconnect):
                _end(made, self._disconnect)
            raise

    @event("connect", keys="program", about=lambda _, program, __: [program.name])
    @in_verb()
    def _connect(self, verb: Verb, program: Program, made: list[int]) -> int:
        made.append(connections.connect(verb, program))
        return made[-1]

    @event("disconnect")
    def disconnect(self, owner: int) -> None:
        # In this order: a call that comes to wait after the dismissal finds at its first look that all is over.
        was_lost = contextlib.suppress(ConnectionBroken, OutcomeUnknown)  # others back out what it held
        with AtEnd(self.waiting.dismiss, owner) as again, again, was_lost:
            self._disconnect(owner)

    @in_verb(though_stopped=True)
    def _disconnect(self, verb: Verb, owner: int) -> None:
        if owner in self.connections:
            connections.abandon(verb, owner)

    @event("open", keys="queue", about=lambda opened, _, queue, *__, **___: [opened.queue if opened else queue])
    def open(
        self, owner: int, queue: str, options: OpenOptions, *, manager: str = "", dynamic_name: str = "*"
    ) -> Opened:
        if options.co_op:
            self.bury_dead()  # the marks of a cooperating set end with the last of it
        return self._open(owner, queue, options, manager, dynamic_name)

    @in_verb(unless_dead=(ObjectInUse,))
    def _open(
        self, verb: Verb, owner: int, queue: str, options: OpenOptions, manager: str, dynamic_name: str
    ) -> Opened:
        return connections.open_handle(verb, self.connection(owner), queue, options, manager, dynamic_name)

    @in_verb()
    def keep_handles(self, verb: Verb, owner: int, handles: Sequence[int]) -> None:
        connections.keep_handles(verb, owner, handles)

    @event("extend", handle=first)
    @in_verb(unless_dead=(ObjectInUse,))
    def extend(self, verb: Verb, handle: int, options: OpenOptions) -> Opened:
        return connections.extend_handle(verb, self.handle(handle), options)

    @event("check_handle", handle=first)
    @in_verb(writes=False)
    def check_handle(self, verb: Verb, handle: int) -> None:
        verb.queue_of(self.handle(handle))

    # --- triggers

    def trigger(self, verb: Verb) -> None:
        triggering.judge(verb)

    def bury_dead(self) -> bool:
        return connections.bury_dead(self)

    # --- queues

    @event("create_queue", keys="queue", about=lambda _, attributes: [attributes.name])
    @in_verb(feeds=True)
    def create_queue(self, verb: Verb, attributes: QueueAttributes) -> None:
        Catalog(verb).create(attributes)

    @event("alter_queue", keys="queue", about=_name)
    @in_verb(unless_dead=(ObjectInUse,))
    def alter_queue(self, verb: Verb, name: str, by: Literal["alter", "set"], changes: dict[str, Any]) -> None:
        catalog = Catalog(verb)
        definition = catalog.made(name)
        changed = altered(definition, by, **changes)
        affected = {catalog.local_queue_of(name)}
        if definition.type == "local":
            catalog.check_alter(definition, changed)
        else:
            catalog.check_names(changed)
        catalog.change(changed)
        affected.add(catalog.local_queue_of(name))
        for one in affected:
            if one is not None:
                queue = verb.queue(catalog.number(one), one)
                queue.attributes = catalog.definition(one)
                verb.touch(queue)
                if queue.attributes.trigger_control:
                    verb.released.add(queue.id)

    @event("queues")
    @in_verb(writes=False)
    def queues(self, verb: Verb) -> list[QueueAttributes]:
        return Catalog(verb).definitions()

    @event("queue", keys="queue", about=_name)
    @in_verb(writes=False)
    def queue(self, verb: Verb, name: str) -> QueueAttributes:
        return Catalog(verb).definition(name)

    @event("status", "depth", "queue", measured=lambda found, _: [found.current_depth], about=_name)
    @in_verb(buries=True)
    def status(self, verb: Verb, name: str) -> QueueStatus:
        catalog = Catalog(verb)
        if catalog.is_unused(name):
            return QueueStatus(
                current_depth=0,
                open_input_count=0,
                open_output_count=0,
                uncommitted=0,
                created_at=verb.now,
                altered_at=verb.now,
            )
        queue = catalog.local(name)
        settling.discard(verb, queue)
        return catalog.status(queue)

    @event("manager")
    @in_verb(writes=False, though_stopped=True)
    def manager(self, verb: Verb) -> ManagerAttributes:
        return Catalog(verb).manager

    @event("alter_manager")
    @in_verb()
    def alter_manager(self, verb: Verb, changes: dict[str, Any]) -> None:
        catalog = Catalog(verb)
        catalog.change_manager(altered_manager(catalog.manager, "alter", **changes))

    # --- puts

    @event(
        "put",
        "messages bytes",
        "unit",
        handle=of_request,
        measured=_put,
        about=lambda _, request: [unit_of(request, in_unit=request.in_unit)],
    )
    @in_verb(
        feeds=True,
        unless_dead=(QueueFull, DuplicateMessage, DuplicatePending, WrongState, LeaseOver),
        alone=False,
        appends=True,
        together=True,
    )
    def put(self, verb: Verb, request: PutRequest) -> PutOutcome:
        handle = self.handle(request.handle)
        if handle.connection.is_leased and request.in_unit:
            verb.lease_of(handle.connection)
        return putting.put(verb, handle, tidied(verb, handle), request)

    @event("end_group", handle=first)
    @in_verb(alone=False, unless_dead=(LeaseOver,))
    def end_group(self, verb: Verb, handle: int, state: GroupState) -> GroupState:
        return settling.end_group(verb, self.handle(handle), state)

    @event("withdraw", handle=first)
    @in_verb(alone=False, unless_dead=(LeaseOver,))
    def withdraw(self, verb: Verb, handle: int, state: GroupState, *, whole_group: bool) -> None:
        settling.withdraw(verb, self.handle(handle), state, whole_group=whole_group)

    # --- handles

    @event("unlock", keys="acted", handle=first, about=lambda acted, _: [bool(acted)])
    @in_verb(alone=False)
    def unlock(self, verb: Verb, handle: int) -> bool:
        one = self.handle(handle)
        return release(verb, one, verb.queue_of(one))

    @event("leave_group", handle=first)
    @in_verb(alone=False)
    def leave_group(self, verb: Verb, handle: int) -> None:
        one = self.handle(handle)
        queue = verb.queue_of(one)
        if group_readers.leave_all(queue, handle_reader(one.id)):
            verb.touch(queue)

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
    @in_verb(unless_dead=(WrongState, LockMismatch), alone=False)
    def one_message(self, verb: Verb, request: OneMessage) -> Reason | None:
        handle = self.handle(request.handle)
        queue = tidied(verb, handle)
        if request.event is Event.DELETE:
            get_allowed(verb, handle, queue)
        verb.durable = True
        return confirming.one_message(verb, queue, request)

    @event("undo", "messages", "unit", handle=first, measured=count, about=lambda *_: ["confirm"])
    @in_verb(alone=False)
    def undo(self, verb: Verb, handle: int, confirm_id: int) -> int:
        verb.durable = True
        return confirming.undo(verb, tidied(verb, self.handle(handle)), confirm_id)

    @event("release_lock", "messages", "unit", handle=first, measured=count, about=lambda *_: ["lock"])
    @in_verb(alone=False)
    def release_lock(self, verb: Verb, handle: int, lock_id: int) -> int:
        verb.durable = True
        return confirming.release_lock(verb, tidied(verb, self.handle(handle)), lock_id)

    @event(
        "unique_ids",
        "messages",
        "unit",
        handle=first,
        measured=lambda found, *_: [len(found)],
        about=lambda _, __, confirm_id, ___: ["confirm" if confirm_id else "lock"],
    )
    @in_verb()
    def unique_ids(self, verb: Verb, handle: int, confirm_id: int, lock_id: int) -> list[UniqueId]:
        return confirming.unique_ids(verb, tidied(verb, self.handle(handle)), confirm_id, lock_id)

    # --- strict reading

    @event("order_view", keys="queue", about=_name)
    @in_verb(buries=True)
    def order_view(self, verb: Verb, queue: str) -> OrderView:
        catalog = Catalog(verb)
        if catalog.is_unused(queue):
            return NOTHING_PENDING
        local = catalog.local(queue)
        found = settling.tidy(verb, local) if local.has_work(verb.now) else local
        view = self.backend.order_view(found, verb.now)
        return replace(view, strict_waiters=len(self.backend.select(WaitRow, queue=found.id)))

    # --- units of work

    def has_unit(self, owner: int) -> bool:
        return self.connection(owner).unit is not None

    @event("settle", keys="unit outcome acted", about=_settled)
    def settle(self, owner: int, outcome: Outcome, later: Later | None = None, *, moves: bool = False) -> bool:
        if not self.has_unit(owner):
            return False
        self._settle(owner, outcome, later, moves=moves)
        return True

    @in_verb(alone=False, unless_dead=(LeaseOver,))
    def _settle(self, verb: Verb, owner: int, outcome: Outcome, later: Later | None, *, moves: bool) -> None:
        connection = self.connection(owner)
        unit = connection.unit
        assert unit is not None
        is_leased = connection.is_leased and verb.lease_of(connection) is not None
        if later is not None:
            settling.put_off(verb, unit, later)
        if is_leased:
            settling.settle_lease(verb, unit, outcome)
            verb.leave_unit(connection, connection.record)
            return
        counts = later is None or later.counts
        settling.settle(verb, unit, outcome, was_given=counts, delivers=not moves, arrives=not moves)
        if connection.keyed == connection.ended:
            putkeys.settle(verb, unit, outcome)
        verb.leave_unit(connection, unit)

    @event("prepare", keys="unit name", about=lambda _, __, name: ["prepared", name])
    @in_verb()
    def prepare(self, verb: Verb, owner: int, name: str) -> None:
        settling.prepare(verb, self.connection(owner), name)

    @event("settle_prepared", keys="unit name outcome", about=lambda _, *given: ["prepared", *given])
    @in_verb()
    def settle_prepared(self, verb: Verb, name: str, outcome: Outcome) -> None:
        found = self.backend.select(UnitRow, kind="prepared", name=name)
        if not found:
            raise UnitNotFound(f"no unit named {name!r} is prepared", unit=name)
        settling.settle(verb, found[0].id, outcome)
        putkeys.settle(verb, found[0].id, outcome)
        verb.end_unit(found[0].id)
        verb.durable = True

    # --- the end

    @event("stop")
    @in_verb(though_stopped=True)
    def stop(self, verb: Verb) -> None:
        self._wake_all(verb)
        self.host.stopped = True

    def _wake_all(self, verb: Verb) -> None:
        """Whoever waits for a queue that is open looks again."""
        for number in sorted({one.queue for one in self.backend.select(HandleRow)}):
            if self.backend.state(number) is not None:
                verb.touch(verb.queue(number))

    @in_verb(though_stopped=True)
    def restart(self, verb: Verb) -> None:
        """For tests: loses the connections of this process, as if it had died, and starts the queue manager again."""
        self._wake_all(verb)
        self.host.stopped = False
        connections.start(verb)

    @event("backup", keys="path", about=lambda _, path, **__: [str(path)])
    def backup(
        self, path: str | os.PathLike[str], *, replace: bool, progress: Callable[[int, int], object] | None
    ) -> None:
        self.refuse_wait("back up outside of it")
        self.host.backup(path, replace=replace, progress=progress)

    def close_store(self) -> None:
        """Ends what is left of the connections of this process, and lets go of the medium. Harmless when repeated."""
        if self.host.is_closed:
            return
        try:
            # The file may be gone or full, the connection lost: then the next to open it tidies up.
            with contextlib.suppress(StoreError, ConnectionBroken, OutcomeUnknown):
                connections.end(self)
        except CallInProgress:
            raise
        except BaseException:
            self.host.close()
            raise
        self.host.close()


def _end(made: list[int], end: Callable[[int], object]) -> None:
    """Ends connections or handles that were made and cannot be used. Harmless when repeated."""
    while made:
        with contextlib.suppress(ConnectionBroken):  # it has been done
            end(made[-1])
        made.pop()
