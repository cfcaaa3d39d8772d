"""THE verbs of a store, once for all backends: connections, queues, puts, gets, confirmed calls, units of work.

What each guarantees stands in `protocol.Store`; what each means, in the files that it calls. The verbs in bulk are in
`bulk.py`, those of operators in `operator.py`.
"""

from __future__ import annotations

import contextlib
import functools
import json
import logging
import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Literal

from ..attributes import ManagerAttributes, QueueAttributes, QueueStatus, altered, altered_manager, define_manager
from ..clock import Clock
from ..errors import (
    DuplicateMessage,
    GetInhibited,
    LockMismatch,
    NoMessageUnderCursor,
    ObjectInUse,
    OrderDeadlock,
    QueueFull,
    QueueNotEmpty,
    Reason,
    StoreError,
    UnitNotFound,
    WrongState,
)
from ..message import Message, UniqueId
from ..options import OpenOptions
from ..rules.grouping import GroupState
from ..rules.lifecycle import Event
from ..rules.ordering import is_deadlocked
from ..rules.puts import Program
from . import confirming, connections, entering, points, settling
from .backend import Backend, Host
from .bulk import BulkVerbs, Shortcuts
from .catalog import Catalog, contents
from .claiming import page_end
from .connections import bury_dead, unless_dead
from .definitions import as_text
from .looking import pending_as_text
from .operator import OperatorVerbs
from .putting import Putting
from .queued import as_got
from .reading import Reading, release
from .records import (
    GetOutcome,
    GetRequest,
    Locked,
    LockRequest,
    OneMessage,
    Opened,
    OrderView,
    Outcome,
    PutOutcome,
    PutRequest,
    Rest,
)
from .settling import tidied
from .tables import UnitRow, WaitRow
from .telemetry import Telemetry, event
from .verb import LocalQueue, OpenConnection, OpenHandle, OpenStore, Verb
from .waiting import WaitingRoom

log = logging.getLogger("inorder.stores")

REST_MESSAGES, REST_BYTES = 256, 1 << 20  # of a large group: so much is read at once


def new_manager(name: str) -> str:
    """The attributes of a new queue manager, as they are kept."""
    return as_text(define_manager(name=name))


def _length(messages: Sequence[Message]) -> int:
    return sum(message.length for message in messages)


def _unit_of(request: Any, *, in_unit: bool) -> str:
    return "confirm" if request.options.confirm_id else "session" if in_unit else ""


def _first(number: int, *_: Any, **__: Any) -> int:
    return number


def _of_request(request: Any, **_: Any) -> int:
    handle: int = request.handle
    return handle


class QueueStore(BulkVerbs, OperatorVerbs, OpenStore):
    """A store of queues over a backend and a host; `protocol.Store` says what its verbs guarantee.

    Attributes:
        shortcuts: what the backend does for plain requests; None: all goes the long way.
        changes: the stream of what happens at it, in this process.
        telemetry: who observes its verbs.
        waiting: where calls wait.
    """

    def __init__(self, backend: Backend, host: Host, path: str, name: str, clock: Clock) -> None:
        super().__init__(backend, host, path, name, clock)
        self.telemetry = Telemetry(self.changes, lambda: {"store": self.path, "manager": self.manager().name})
        self.waiting = WaitingRoom(self.changes, host, clock, self.telemetry)
        self.shortcuts: Shortcuts | None = None
        self.shared: object | None = None

    # --- connections and handles

    @event("connect", keys=["program"], about=lambda _, program: [program.name])
    def connect(self, program: Program) -> int:
        with self.verb() as verb:
            return connections.connect(verb, program)

    @event("disconnect")
    def disconnect(self, owner: int) -> None:
        # In this order: a call that comes to wait after the dismissal finds at its first look that all is over.
        try:
            with self.verb(though_stopped=True) as verb:
                if owner in self.connections:
                    connections.abandon(verb, owner)
            self._sweep()
        finally:
            self.waiting.dismiss(owner)

    @event("open", keys=["queue"], about=lambda opened, _, queue, *__, **___: [opened.queue if opened else queue])
    def open(self, owner: int, queue: str, options: OpenOptions, *, dynamic_name: str = "*") -> Opened:
        def once() -> Opened:
            with self.verb() as verb:
                return connections.open_handle(verb, self.connection(owner), queue, options, dynamic_name)

        if options.co_op:
            bury_dead(self)  # the marks of a cooperating set end with the last of it
        return unless_dead(self, once, ObjectInUse)

    @event("extend", handle=_first)
    def extend(self, handle: int, options: OpenOptions) -> Opened:
        def once() -> Opened:
            with self.verb() as verb:
                return connections.extend_handle(verb, self.handle(handle), options)

        return unless_dead(self, once, ObjectInUse)

    @event("close", handle=_first)
    def close(self, handle: int, *, delete: bool = False, purge: bool = False) -> None:
        if self.host.is_closed:
            return  # the handle is closed with it

        def once() -> None:
            with self.verb() as verb:
                one = self.handle(handle)
                queue = tidied(verb, one) if delete or purge else None
                if queue is not None:
                    Catalog(verb).check_delete_at_close(one.name, queue.attributes, purge=purge)
                connections.close_handle(verb, one)
                if queue is not None and self.backend.state(queue.id) is not None:
                    connections.vanish(verb, verb.queue(queue.id))

        unless_dead(self, once, ObjectInUse, QueueNotEmpty)
        self._sweep()

    @event("check_handle", handle=_first)
    def check_handle(self, handle: int) -> None:
        with self.verb(writes=False) as verb:
            verb.queue_of(self.handle(handle))

    # --- queues

    @event("create_queue", keys=["queue"], about=lambda _, attributes: [attributes.name])
    def create_queue(self, attributes: QueueAttributes) -> None:
        with self.verb() as verb:
            Catalog(verb).create(attributes)

    @event("alter_queue", keys=["queue"], about=lambda _, name, *__: [name])
    def alter_queue(self, name: str, by: Literal["alter", "set"], changes: dict[str, Any]) -> None:
        def once() -> None:
            with self.verb() as verb:
                catalog = Catalog(verb)
                definition = catalog.definition(name)
                changed = altered(definition, by, **changes)
                affected = {catalog.local_queue_of(name)}
                if definition.type == "local":
                    catalog.check_alter(definition, changed)
                else:
                    catalog.check_alias(changed)
                catalog.change(changed)
                affected.add(catalog.local_queue_of(name))
                for one in affected - {None}:
                    assert one is not None
                    verb.touch(verb.queue(catalog.number(one), one))

        unless_dead(self, once, ObjectInUse)

    @event("delete_queue", keys=["queue"], about=lambda _, name, **__: [name])
    def delete_queue(self, name: str, *, purge: bool) -> None:
        def once() -> None:
            with self.verb() as verb:
                catalog = Catalog(verb)
                queue = self._without_expired(verb, catalog, name)
                catalog.check_delete(name, purge=purge)
                if queue is not None:
                    connections.vanish(verb, queue)
                else:
                    catalog.remove(name)

        unless_dead(self, once, ObjectInUse, QueueNotEmpty)
        self._sweep()

    @event("clear_queue", ["messages"], ["queue"], measured=lambda count, _: [count], about=lambda _, name: [name])
    def clear_queue(self, name: str) -> int:
        def once() -> int:
            with self.verb() as verb:
                catalog = Catalog(verb)
                queue = self._without_expired(verb, catalog, name)
                catalog.check_clear(name)
                assert queue is not None
                return connections.clear(verb, queue)

        removed = unless_dead(self, once, ObjectInUse, QueueNotEmpty)
        self._sweep()
        return removed

    def _without_expired(self, verb: Verb, catalog: Catalog, name: str) -> LocalQueue | None:
        """A local queue, what has expired discarded; None: an alias or a model. Raises: UnknownQueue."""
        if catalog.definition(name).type != "local":
            return None
        queue = verb.queue(catalog.number(name), name)
        settling.discard(verb, queue)
        return queue

    @event("queues")
    def queues(self) -> list[QueueAttributes]:
        with self.verb(writes=False) as verb:
            return Catalog(verb).definitions()

    @event("queue", keys=["queue"], about=lambda _, name: [name])
    def queue(self, name: str) -> QueueAttributes:
        with self.verb(writes=False) as verb:
            return Catalog(verb).definition(name)

    @event(
        "status", ["depth"], ["queue"], measured=lambda found, _: [found.current_depth], about=lambda _, name: [name]
    )
    def status(self, name: str) -> QueueStatus:
        bury_dead(self)
        with self.verb() as verb:
            catalog = Catalog(verb)
            queue = catalog.local(name)
            settling.discard(verb, queue)
            opens = catalog.opens(queue.attributes.name)
            row = verb.store.definitions.rows[queue.attributes.name]
            return QueueStatus(
                current_depth=queue.depth,
                open_input_count=sum(one.input for one in opens),
                open_output_count=sum(one.output for one in opens),
                uncommitted=contents(verb, queue).unsettled,
                created_at=row.created_at,
                altered_at=row.altered_at,
            )

    @event("manager")
    def manager(self) -> ManagerAttributes:
        with self.verb(writes=False, though_stopped=True) as verb:
            return Catalog(verb).manager

    @event("alter_manager")
    def alter_manager(self, changes: dict[str, Any]) -> None:
        with self.verb() as verb:
            catalog = Catalog(verb)
            catalog.change_manager(altered_manager(catalog.manager, "alter", **changes))

    # --- puts

    @event(
        "put",
        ["messages", "bytes"],
        ["unit"],
        handle=_of_request,
        measured=lambda _, request: [len(request.messages), _length(request.messages)],
        about=lambda _, request: [_unit_of(request, in_unit=request.in_unit)],
    )
    def put(self, request: PutRequest) -> PutOutcome:
        while True:
            try:
                with Verb(self) as verb:
                    handle = self.handle(request.handle)
                    queue = tidied(verb, handle)
                    attributes = queue.attributes
                    if handle.name != attributes.name:
                        attributes = self._attributes(verb, handle, queue)
                    return Putting(verb, handle, queue, request, attributes, self.definitions.manager).run()
            except (QueueFull, DuplicateMessage, WrongState):
                if not bury_dead(self):
                    raise

    @event("end_group", handle=_first)
    def end_group(self, handle: int, state: GroupState) -> GroupState:
        with self.verb() as verb:
            return settling.end_group(verb, self.handle(handle), state)

    @event("withdraw", handle=_first)
    def withdraw(self, handle: int, state: GroupState, *, whole_group: bool) -> None:
        with self.verb() as verb:
            settling.withdraw(verb, self.handle(handle), state, whole_group=whole_group)
        self._sweep()

    def _attributes(self, verb: Verb, handle: OpenHandle, queue: LocalQueue) -> QueueAttributes:
        """The attributes that a call through this handle goes by."""
        if handle.name == queue.attributes.name:
            return queue.attributes
        return Catalog(verb).resolved(handle.name, queue.attributes)

    # --- gets and browses

    def get(self, request: GetRequest) -> GetOutcome:
        return self._look(request, waits=False)[0]

    def wait(self, request: GetRequest) -> GetOutcome:
        handle = self.handle(request.handle)
        look = _Looks(functools.partial(self._look, request, waits=True))
        try:
            self.waiting.wait(handle.connection.id, handle.queue_name, request.options, look)
        finally:
            if look.outcome is None or not look.outcome.messages:
                self._end_wait_of(handle.connection.id)
        assert look.outcome is not None
        return look.outcome

    @event(
        "get",
        ["messages", "bytes"],
        ["unit", "browse", "withheld"],
        handle=_of_request,
        measured=lambda found, *_, **__: [len(found[0].messages), _length(found[0].messages)],
        about=lambda found, request, **_: [
            _unit_of(request, in_unit=request.syncpoint),
            request.options.browse is not None,
            found is not None and found[0].withheld is not None,
        ],
    )
    def _look(self, request: GetRequest, *, waits: bool) -> tuple[GetOutcome, float | None]:
        """One look, and when to look again though nothing has changed."""
        try:
            found = self._get(request, waits=waits)
        except (NoMessageUnderCursor, OrderDeadlock):
            if not bury_dead(self):
                raise
            return self._get(request, waits=waits)
        if not found[0].messages and bury_dead(self):
            return self._get(request, waits=waits)
        return found

    def _get(self, request: GetRequest, *, waits: bool) -> tuple[GetOutcome, float | None]:
        if not waits and self._only_looks(request):
            with self.verb(writes=False) as verb:
                handle = self.handle(request.handle)
                queue = verb.queue_of(handle)
                if not queue.has_work(verb.now):
                    resolved = self._check_get_allowed(verb, handle, queue)
                    return Reading(verb, handle, queue, request, resolved, verb.manager).run(), None
        with Verb(self) as verb:
            handle = self.handle(request.handle)
            queue = tidied(verb, handle)
            if handle.connection.waits:
                self._end_wait(verb, handle.connection)
            resolved = self._check_get_allowed(verb, handle, queue)
            if self.shortcuts is not None:
                taken = self.shortcuts.get(verb, handle, queue, request, resolved)
                if taken is not None:
                    return taken, None
            reading = Reading(verb, handle, queue, request, resolved, verb.manager, waits=waits)
            outcome = reading.run()
            if outcome.messages or not waits:
                return outcome, None
            self._begin_wait(verb, handle, outcome, reading.in_its_way)
            return outcome, reading.look_again_at()

    def _only_looks(self, request: GetRequest) -> bool:
        """Whether the call is a browse that changes nothing: it then waits for no writer."""
        options, handle = request.options, self.handles.get(request.handle)
        if not options.browse or handle is None or handle.has_locked:
            return False
        marks = options.mark_handle or options.mark_co_op or options.unmark_handle or options.unmark_co_op
        connection = self.connections.get(handle.connection.id)  # another thread may be ending it
        return not (options.lock or marks or connection is None or connection.waits)

    def _begin_wait(
        self, verb: Verb, handle: OpenHandle, outcome: GetOutcome, in_its_way: Sequence[frozenset[int]] | None
    ) -> None:
        """The connection is about to wait. Raises: OrderDeadlock, everyone in its way waits for it (B-31)."""
        connection, verb.waiter = handle.connection, handle.connection.id
        connection.waits = True
        self.host.looked(handle.queue, handle.queue_name)
        pending, withheld = pending_as_text(outcome.pending), int(outcome.withheld is not None)
        levels = json.dumps([sorted(level) for level in in_its_way]) if in_its_way else None
        self.backend.save(WaitRow(connection.id, handle.queue, pending, withheld, levels))
        if in_its_way:
            waits = {
                one.connection: [frozenset(level) for level in json.loads(one.levels)]
                for one in self.backend.select(WaitRow)
                if one.levels is not None
            }
            if is_deadlocked(connection.id, waits):
                self._end_wait(verb, connection)
                raise OrderDeadlock("readers that hold what the others need wait for each other: back out or commit")

    def _end_wait(self, verb: Verb, connection: OpenConnection) -> None:
        if connection.waits:
            connection.waits = False
            verb.restore.append(lambda: setattr(connection, "waits", True))
            self.backend.remove_records(WaitRow, connection=connection.id)

    def _end_wait_of(self, owner: int) -> None:
        with self.verb(though_stopped=True) as verb:
            if (connection := self.connections.get(owner)) is not None:
                self._end_wait(verb, connection)

    @event(
        "read_rest",
        ["messages", "bytes"],
        handle=_first,
        measured=lambda found, *_: [len(found[0]), _length(found[0])],
    )
    def read_rest(self, handle: int, rest: Rest) -> tuple[list[Message], Rest | None]:
        with self.verb(writes=False) as verb:
            one = self.handle(handle)
            if one.connection.unit != rest.unit:
                raise UnitNotFound(
                    "the unit of work that took this group has ended: read the whole group before you settle the unit"
                )
            first = rest.sequence_number + 1
            rows = self.backend.rows(
                REST_MESSAGES, queue=one.queue, group_id=rest.group_id, unit=rest.unit, first=first
            )
            rows = rows[: page_end((row.message.length for row in rows), REST_MESSAGES, REST_BYTES)]
            messages = [as_got(row, rest.got_at) for row in self.backend.read(rows)]
        if len(messages) >= rest.messages:
            return messages, None
        last = messages[-1]
        left = rest.messages - len(messages)
        return messages, rest._replace(messages=left, sequence_number=last.sequence_number, offset=last.offset)

    def _check_get_allowed(self, verb: Verb, handle: OpenHandle, queue: LocalQueue) -> QueueAttributes:
        resolved = self._attributes(verb, handle, queue)
        if not resolved.get_allowed:
            raise GetInhibited(f"gets from {handle.name} are inhibited", queue=handle.name)
        return resolved

    @event("unlock", keys=["acted"], handle=_first, about=lambda acted, _: [bool(acted)])
    def unlock(self, handle: int) -> bool:
        with self.verb() as verb:
            one = self.handle(handle)
            return release(verb, one, verb.queue_of(one))

    @event("leave_group", handle=_first)
    def leave_group(self, handle: int) -> None:
        with self.verb() as verb:
            one = self.handle(handle)
            entering.leave_all(verb, verb.queue_of(one), one.id)

    # --- confirmed calls

    @event(
        "browse_and_lock",
        ["messages", "bytes"],
        ["unit"],
        handle=_of_request,
        measured=lambda locked, _: [len(locked.messages), _length(locked.messages)],
        about=lambda *_: ["lock"],
    )
    def browse_and_lock(self, request: LockRequest) -> Locked:
        bury_dead(self)
        with self.verb() as verb:
            handle = self.handle(request.handle)
            queue = tidied(verb, handle)
            self._check_get_allowed(verb, handle, queue)
            return confirming.browse_and_lock(verb, handle, queue, request)

    @event("one_message", keys=["act"], handle=_of_request, about=lambda _, request: [request.event.name.lower()])
    def one_message(self, request: OneMessage) -> Reason | None:
        def once() -> Reason | None:
            with self.verb() as verb:
                handle = self.handle(request.handle)
                queue = tidied(verb, handle)
                if request.event is Event.DELETE:
                    self._check_get_allowed(verb, handle, queue)
                verb.durable = True
                return confirming.one_message(verb, queue, request)

        return unless_dead(self, once, WrongState, LockMismatch)

    @event(
        "undo", ["messages"], ["unit"], handle=_first, measured=lambda count, *_: [count], about=lambda *_: ["confirm"]
    )
    def undo(self, handle: int, confirm_id: int) -> int:
        with self.verb() as verb:
            verb.durable = True
            undone = confirming.undo(verb, tidied(verb, self.handle(handle)), confirm_id)
        self._sweep()
        return undone

    @event(
        "release_lock",
        ["messages"],
        ["unit"],
        handle=_first,
        measured=lambda count, *_: [count],
        about=lambda *_: ["lock"],
    )
    def release_lock(self, handle: int, lock_id: int) -> int:
        with self.verb() as verb:
            verb.durable = True
            return confirming.release_lock(verb, tidied(verb, self.handle(handle)), lock_id)

    @event(
        "unique_ids",
        ["messages"],
        ["unit"],
        handle=_first,
        measured=lambda found, *_: [len(found)],
        about=lambda _, __, confirm_id, ___: ["confirm" if confirm_id else "lock"],
    )
    def unique_ids(self, handle: int, confirm_id: int, lock_id: int) -> list[UniqueId]:
        with self.verb() as verb:
            return confirming.unique_ids(verb, tidied(verb, self.handle(handle)), confirm_id, lock_id)

    # --- strict reading

    @event("order_view", keys=["queue"], about=lambda _, queue: [queue])
    def order_view(self, queue: str) -> OrderView:
        bury_dead(self)
        with self.verb() as verb:
            local = Catalog(verb).local(queue)
            found = settling.tidy(verb, local) if local.has_work(verb.now) else local
            view = self.backend.order_view(found, verb.now)
            return replace(view, strict_waiters=len(self.backend.select(WaitRow, queue=found.id)))

    # --- units of work

    def has_unit(self, owner: int) -> bool:
        with self.lock:
            return self.connection(owner).unit is not None

    @event(
        "settle",
        keys=["unit", "outcome", "acted"],
        about=lambda acted, _, outcome: ["session", outcome, bool(acted)],
    )
    def settle(self, owner: int, outcome: Outcome) -> bool:
        if not self.has_unit(owner):
            return False
        with self.verb() as verb:
            connection = self.connection(owner)
            assert connection.unit is not None
            settling.settle(verb, verb.unit(connection.unit), outcome)
            verb.leave_unit(connection)
        self._sweep()
        return True

    @event("prepare", keys=["unit", "name"], about=lambda _, __, name: ["prepared", name])
    def prepare(self, owner: int, name: str) -> None:
        with self.verb() as verb:
            settling.prepare(verb, self.connection(owner), name)

    @event(
        "settle_prepared",
        keys=["unit", "name", "outcome"],
        about=lambda _, name, outcome: ["prepared", name, outcome],
    )
    def settle_prepared(self, name: str, outcome: Outcome) -> None:
        with self.verb() as verb:
            found = self.backend.select(UnitRow, kind="prepared", name=name)
            if not found:
                raise UnitNotFound(f"no unit named {name!r} is prepared", unit=name)
            settling.settle(verb, found[0], outcome)
            verb.durable = True
        self._sweep()

    # --- time

    @event("discard_expired", ["messages"], measured=lambda count, _: [count])
    def discard_expired(self, limit: int) -> int:
        room = limit
        with self.verb() as verb:
            for queue in connections.local_queues(verb):
                room -= settling.discard(verb, queue, room)
                settling.end_leases(verb, queue)
        self._undo_expired_stagings()
        self._sweep()
        return limit - room

    # --- the end

    @event("stop")
    def stop(self) -> None:
        with self.verb(though_stopped=True) as verb:
            for queue in connections.local_queues(verb):
                verb.touch(queue)
            self.host.stopped = True

    def restart(self) -> None:
        """For tests: loses the connections of this process, as if it had died, and starts the queue manager again."""
        with self.verb(though_stopped=True) as verb:
            self.host.stopped = False
            connections.start(verb)

    @event("backup", keys=["path"], about=lambda _, path, **__: [str(path)])
    def backup(
        self, path: str | os.PathLike[str], *, replace: bool, progress: Callable[[int, int], object] | None
    ) -> None:
        self.host.backup(path, replace=replace, progress=progress)

    def close_store(self) -> None:
        """Ends what is left of the connections of this process, and lets go of the medium. Harmless when repeated."""
        if self.host.is_closed:
            return
        with contextlib.suppress(StoreError):  # the file may be gone, or full: then the next to open it tidies up
            connections.end(self)
        self._sweep()
        self.host.close()

    def _sweep(self) -> None:
        """The contents of a large unit that was settled go a step at a time, so that others come between."""
        try:
            while self.backend.has_leftovers:
                if points.reached:
                    points.reached("settled")
                with self.verb(though_stopped=True):
                    self.backend.sweep()
        except StoreError:  # the call has happened, and says so: the caller would do it once more
            log.exception("contents of messages that are gone could not be removed; a later call will")


class _Looks:
    """The looks of a call that waits, and what the last of them brought."""

    def __init__(self, look: Callable[[], tuple[GetOutcome, float | None]]) -> None:
        self._look = look
        self.outcome: GetOutcome | None = None

    def __call__(self) -> tuple[bool, float | None]:
        """One look: whether it found something, and when to look again though nothing has changed."""
        self.outcome = None
        self.outcome, again_at = self._look()
        return bool(self.outcome.messages), again_at
