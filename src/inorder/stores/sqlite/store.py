"""The SQLite store: each verb is one transaction on the file, and what it promises is on disk when it returns."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Callable
from dataclasses import asdict
from typing import Any, Literal

from ...attributes import ManagerAttributes, QueueAttributes, altered, altered_manager, define_manager
from ...clock import Clock, SystemClock
from ...errors import (
    DuplicateMessage,
    GetInhibited,
    InconsistentCall,
    LockMismatch,
    NoMessageUnderCursor,
    ObjectInUse,
    OrderDeadlock,
    QueueFull,
    QueueNotEmpty,
    Reason,
    StoreError,
    UnitExists,
    UnitNotFound,
    WrongState,
)
from ...message import LAST_IN_GROUP, UniqueId, stored_flags
from ...options import OpenOptions
from ...rules.grouping import GroupState
from ...rules.lifecycle import Event
from ...rules.ordering import Moment, is_deadlocked
from ...rules.puts import Program
from .. import confirmed
from ..base import (
    GetOutcome,
    GetRequest,
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
)
from ..putting import Putting
from ..reading import Reading
from ..rows import Row
from . import owners, views
from .backup import back_up
from .catalog import SqliteCatalog
from .claims import SqliteClaims
from .database import Database
from .handles import SqliteHandle
from .operating import OperatorVerbs, pending_as_text
from .shelf import NARROW_COLUMNS, SqliteQueue
from .staging import StagingVerbs
from .statements import SCHEMA, VERSION, statement
from .taking import take
from .transaction import SqliteTransaction
from .watch import Watch

PUT_IN_UNIT = statement("put in unit", columns=NARROW_COLUMNS)
MARK_LAST = statement("mark last")
PREPARED_UNIT = statement("prepared unit")
PREPARE_UNIT = statement("prepare unit")
QUEUES_OF_UNIT = statement("queues of unit")
KEEP_ENTRIES = statement("keep entries")
SET_MANAGER = statement("set manager")
WAIT = statement("wait")
END_WAIT = statement("end wait")
ADD_EDGE = statement("add edge")
END_EDGES = statement("end edges")
EDGES = statement("edges")
QUEUES_WITH_EXPIRED = statement("queues with expired")
QUEUES_WITH_LEASES_OVER = statement("queues with leases over")
LOCAL_QUEUES = statement("local queues")


class SqliteStore(StagingVerbs, OperatorVerbs, SqliteClaims):
    """A store in a file, as this process has it open. All connections of the process share it.

    Args:
        path: the file; it is made if it is missing.
        name: of the queue manager, if the store is made; it is part of generated ids.
        clock: where the time comes from.
        keeps_log: the log is never copied into the file; for tests of what a loss of power leaves.

    Raises: what `Database` raises: StoreForeign, StoreNewer, StoreError.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        name: str = "INORDER",
        clock: Clock | None = None,
        *,
        keeps_log: bool = False,
    ) -> None:
        manager = json.dumps(asdict(define_manager(name=name))).replace("'", "''")
        schema = f"{SCHEMA}\nINSERT INTO manager (id, attributes) VALUES (1, '{manager}');\n"
        database = Database(path, schema=schema, version=VERSION)
        super().__init__(database, name, clock or SystemClock(), keeps_log=keeps_log)
        self.path = str(database.path)
        self.shared: object | None = None
        self._watch = Watch(self)
        try:
            owners.begin(self)
        except BaseException:
            self.database.close()
            raise

    # --- telling

    def attend(self, *, waits: bool) -> None:
        self._watch.attend(self.seen, waits=waits)

    def observe(
        self,
        observer: Observer,
        wants: Callable[[], bool] | None = None,
        heeds: Callable[[], bool] | None = None,
    ) -> None:
        self.teller.observe(observer, wants, heeds)

    def observe_deaths(self, observer: Callable[[Program], object]) -> None:
        self.teller.observe_deaths(observer)

    # --- connections and handles

    def connect(self, program: Program) -> int:
        with self.verb() as verb:
            return owners.connect(self, verb, program)

    def disconnect(self, owner: int) -> None:
        with self.verb(though_stopped=True) as verb:
            if owner in self.connections:
                owners.abandon(self, verb, owner)
        self._remove_leftovers()

    def open(self, owner: int, queue: str, options: OpenOptions, *, dynamic_name: str = "*") -> Opened:
        def once() -> Opened:
            with self.verb() as verb:
                return owners.open_handle(self, verb, self.connection(owner), queue, options, dynamic_name)

        if options.co_op:
            owners.bury_dead(self)  # the marks of a cooperating set end with the last of it
        return self._unless_dead(once, ObjectInUse)

    def extend(self, handle: int, options: OpenOptions) -> Opened:
        def once() -> Opened:
            with self.verb() as verb:
                return owners.extend_handle(verb, self.handle(handle), options)

        return self._unless_dead(once, ObjectInUse)

    def close(self, handle: int, *, delete: bool = False, purge: bool = False) -> None:
        if self.database.is_closed:
            return  # the handle is closed with it

        def once() -> None:
            with self.verb() as verb:
                one = self.handle(handle)
                if delete or purge:
                    queue = self._queue(verb, one)
                    SqliteCatalog(verb).check_delete_at_close(one.name, queue.attributes, purge=purge)
                owners.close_handle(self, verb, one)
                if delete or purge:
                    owners.vanish(self, verb, one.queue)

        self._unless_dead(once, ObjectInUse, QueueNotEmpty)
        self._remove_leftovers()

    def check_handle(self, handle: int) -> None:
        with self.verb(writes=False) as verb:
            one = self.handle(handle)
            verb.queue(one.queue, one.queue_name, one.name)

    # --- queues

    def create_queue(self, attributes: QueueAttributes) -> None:
        with self.verb() as verb:
            SqliteCatalog(verb).create(attributes)

    def alter_queue(self, name: str, by: Literal["alter", "set"], changes: dict[str, Any]) -> None:
        def once() -> None:
            with self.verb() as verb:
                catalog = SqliteCatalog(verb)
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

        self._unless_dead(once, ObjectInUse)

    def delete_queue(self, name: str, *, purge: bool) -> None:
        def once() -> None:
            with self.verb() as verb:
                catalog = SqliteCatalog(verb)
                is_local = catalog.definition(name).type == "local"
                if is_local:
                    verb.discard(verb.queue(catalog.number(name), name))
                catalog.check_delete(name, purge=purge)
                if is_local:
                    owners.vanish(self, verb, catalog.number(name))
                else:
                    owners.undefine(verb, catalog, catalog.number(name))

        self._unless_dead(once, ObjectInUse, QueueNotEmpty)
        self._remove_leftovers()

    def clear_queue(self, name: str) -> int:
        def once() -> int:
            with self.verb() as verb:
                catalog = SqliteCatalog(verb)
                if catalog.definition(name).type == "local":
                    verb.discard(verb.queue(catalog.number(name), name))
                catalog.check_clear(name)
                return owners.clear(self, verb, verb.queue(catalog.number(name), name))

        removed = self._unless_dead(once, ObjectInUse, QueueNotEmpty)
        self._remove_leftovers()
        return removed

    def queues(self) -> list[QueueAttributes]:
        with self.verb(writes=False) as verb:
            return SqliteCatalog(verb).definitions()

    def queue(self, name: str) -> QueueAttributes:
        with self.verb(writes=False) as verb:
            return SqliteCatalog(verb).definition(name)

    def manager(self) -> ManagerAttributes:
        with self.verb(writes=False, though_stopped=True) as verb:
            return SqliteCatalog(verb).manager

    def alter_manager(self, changes: dict[str, Any]) -> None:
        with self.verb() as verb:
            changed = altered_manager(SqliteCatalog(verb).manager, "alter", **changes)
            verb.execute(SET_MANAGER, (json.dumps(asdict(changed)),))
            verb.durable = True

    # --- puts

    def put(self, request: PutRequest) -> PutOutcome:
        def once() -> PutOutcome:
            with self.verb() as verb:
                handle = self.handle(request.handle)
                queue = self._queue(verb, handle)
                resolved = self._attributes(verb, handle, queue)
                manager = self.definitions.manager
                return Putting(verb, handle, queue, request, resolved, manager, verb.numbers).run()

        return self._unless_dead(once, QueueFull, DuplicateMessage, WrongState)

    def end_group(self, handle: int, state: GroupState) -> GroupState:
        with self.verb() as verb:
            one = self.handle(handle)
            if state.message_open:
                raise InconsistentCall(
                    "the last message of the group lacks its last segment", reason=Reason.INCOMPLETE_MSG
                )
            if not state.group_open:
                raise WrongState("the handle has no group open")
            queue = verb.queue(one.queue, one.queue_name, one.name)
            pieces = self._put_in_unit(verb, one, queue, state)
            if sum(row.message.length for row in pieces) != state.offset + state.length or not pieces:
                raise WrongState("the last message of the group is committed already: put the last one with last=True")
            for row in pieces:
                verb.change(MARK_LAST, (stored_flags(row.message.flags | LAST_IN_GROUP), row.number))
            verb.touch(queue)
            return state._replace(flags=stored_flags(state.flags | LAST_IN_GROUP))

    def withdraw(self, handle: int, state: GroupState, *, whole_group: bool) -> None:
        with self.verb() as verb:
            one = self.handle(handle)
            if not (state.group_open if whole_group else state.message_open):
                raise WrongState("the handle has nothing open that could be withdrawn")
            queue = verb.queue(one.queue, one.queue_name, one.name)
            for row in self._put_in_unit(verb, one, queue, state, first=1 if whole_group else None):
                verb.step(queue, row, Event.BACK_OUT)
        self._remove_leftovers()

    def _put_in_unit(
        self,
        verb: SqliteTransaction,
        handle: SqliteHandle,
        queue: SqliteQueue,
        state: GroupState,
        first: int | None = None,
    ) -> list[Row]:
        """The pieces of the logical message in `state`, or from the `first` one of its group, that the unit has put."""
        unit, last = handle.connection.unit, state.sequence_number
        if unit is None:
            return []
        found = verb.execute(PUT_IN_UNIT, (queue.id, state.group_id, first or last, last, unit.id))
        return [queue.row_of(columns) for columns in found]

    # --- gets and browses

    def get(self, request: GetRequest) -> GetOutcome:
        outcome = self._unless_dead(lambda: self._get(request), NoMessageUnderCursor, OrderDeadlock)
        if not outcome.messages and owners.bury_dead(self):
            outcome = self._get(request)
        return outcome

    def _get(self, request: GetRequest) -> GetOutcome:
        if self._only_looks(request):
            with self.verb(writes=False) as verb:
                handle = self.handle(request.handle)
                queue = verb.queue(handle.queue, handle.queue_name, handle.name)
                if not queue.has_work(verb.now):
                    resolved = self._check_get_allowed(verb, handle, queue)
                    return Reading(verb, handle, queue, request, resolved, self.definitions.manager).run()
        with self.verb() as verb:
            handle = self.handle(request.handle)
            queue = self._queue(verb, handle)
            self._end_wait(verb, handle.connection.id)
            resolved = self._check_get_allowed(verb, handle, queue)
            manager = self.definitions.manager
            taken = take(verb, handle, queue, request, resolved, manager)
            if taken is not None:
                return taken
            reading = Reading(verb, handle, queue, request, resolved, manager)
            outcome = reading.run()
            if not outcome.messages and request.waits:
                verb.waiter = handle.connection.id
                self._wait(verb, handle, outcome, reading.in_its_way)
            return outcome

    def _only_looks(self, request: GetRequest) -> bool:
        """Whether the call is a browse that changes nothing: it then waits for no writer."""
        options, handle = request.options, self.handles.get(request.handle)
        if not options.browse or request.waits or handle is None or handle.locked:
            return False
        marks = options.mark_handle or options.mark_co_op or options.unmark_handle or options.unmark_co_op
        connection = self.connections.get(handle.connection.id)  # another thread may be ending it
        return not (options.lock or marks or connection is None or connection.waits)

    def _wait(self, verb: SqliteTransaction, handle: SqliteHandle, outcome: GetOutcome, in_its_way: Any) -> None:
        """The connection is about to wait. Raises: OrderDeadlock, everyone in its way waits for it (B-31)."""
        connection = self.connections[handle.connection.id]
        connection.waits = True
        self.seen.looked(handle.queue, handle.queue_name, self.database.seen(handle.queue))
        pending, withheld = pending_as_text(outcome.pending), outcome.withheld is not None
        verb.execute(WAIT, (connection.id, handle.queue, pending, withheld))
        for number, level in enumerate(in_its_way or ()):
            for holder in level or {0}:
                verb.execute(ADD_EDGE, (connection.id, handle.queue, number, holder))
        if in_its_way and is_deadlocked(connection.id, self._edges(verb)):
            self._end_wait(verb, connection.id)
            raise OrderDeadlock("readers that hold what the others need wait for each other: back out or commit")

    def _edges(self, verb: SqliteTransaction) -> dict[int, list[frozenset[int]]]:
        edges: dict[int, dict[int, set[int]]] = {}
        for connection, level, holder in verb.execute(EDGES):
            edges.setdefault(connection, {}).setdefault(level, set()).update({holder} - {0})
        return {one: [frozenset(level) for level in levels.values()] for one, levels in edges.items()}

    def _end_wait(self, verb: SqliteTransaction, owner: int) -> None:
        connection = self.connections[owner]
        if connection.waits:
            connection.waits = False
            verb.restore.append(lambda: setattr(connection, "waits", True))
            verb.execute(END_WAIT, (owner,))
            verb.execute(END_EDGES, (owner,))

    def end_wait(self, owner: int) -> None:
        with self.verb(though_stopped=True) as verb:
            if owner in self.connections:
                self._end_wait(verb, owner)

    def _check_get_allowed(self, verb: SqliteTransaction, handle: SqliteHandle, queue: SqliteQueue) -> QueueAttributes:
        resolved = self._attributes(verb, handle, queue)
        if not resolved.get_allowed:
            raise GetInhibited(f"gets from {handle.name} are inhibited", queue=handle.name)
        return resolved

    # --- confirmed calls

    def browse_and_lock(self, request: LockRequest) -> Locked:
        owners.bury_dead(self)
        with self.verb() as verb:
            handle = self.handle(request.handle)
            queue = self._queue(verb, handle)
            self._check_get_allowed(verb, handle, queue)
            return confirmed.browse_and_lock(verb, handle, queue, request)

    def one_message(self, request: OneMessage) -> Reason | None:
        def once() -> Reason | None:
            with self.verb() as verb:
                handle = self.handle(request.handle)
                queue = self._queue(verb, handle)
                if request.event is Event.DELETE:
                    self._check_get_allowed(verb, handle, queue)
                verb.durable = True
                return confirmed.one_message(verb, queue, request)

        return self._unless_dead(once, WrongState, LockMismatch)

    def undo(self, handle: int, confirm_id: int) -> int:
        with self.verb() as verb:
            verb.durable = True
            queue = self._queue(verb, self.handle(handle))
            undone = verb.undo_unit(queue, confirm_id) or confirmed.undo(verb, queue, confirm_id)
        self._remove_leftovers()
        return undone

    def release_lock(self, handle: int, lock_id: int) -> int:
        with self.verb() as verb:
            verb.durable = True
            return confirmed.release_lock(verb, self._queue(verb, self.handle(handle)), lock_id)

    def unique_ids(self, handle: int, confirm_id: int, lock_id: int) -> list[UniqueId]:
        with self.verb() as verb:
            return confirmed.unique_ids(self._queue(verb, self.handle(handle)), confirm_id, lock_id)

    # --- strict reading

    def order_view(self, queue: str) -> OrderView:
        owners.bury_dead(self)
        with self.verb() as verb:
            catalog = SqliteCatalog(verb)
            local = catalog.resolve(queue).name
            return views.order_view(verb, verb.tidy(catalog.number(local), local, queue))

    # --- browse locks

    def unlock(self, handle: int) -> bool:
        with self.verb() as verb:
            one = self.handle(handle)
            return verb.release(one, verb.queue(one.queue, one.queue_name, one.name))

    def leave_group(self, handle: int) -> None:
        with self.verb() as verb:
            one = self.handle(handle)
            verb.leave_all(verb.queue(one.queue, one.queue_name, one.name), one.id)

    # --- units of work

    def has_unit(self, owner: int) -> bool:
        with self.lock:
            return self.connection(owner).unit is not None

    def settle(self, owner: int, outcome: Outcome) -> bool:
        if not self.has_unit(owner):
            return False
        with self.verb() as verb:
            connection = self.connection(owner)
            unit = connection.unit
            assert unit is not None
            verb.settle(unit, outcome)
            verb.end_session_unit(connection)
        self._remove_leftovers()
        return True

    def prepare(self, owner: int, name: str) -> None:
        with self.verb() as verb:
            connection = self.connection(owner)
            if next(verb.execute(PREPARED_UNIT, (name,)), None) is not None:
                raise UnitExists(f"a unit named {name!r} is already prepared", unit=name)
            unit = connection.unit
            if unit is None:
                raise UnitNotFound("the connection has no unit of work to prepare", unit=name)
            verb.number_unit(unit, Moment.PREPARE)
            verb.execute(PREPARE_UNIT, (name, unit.id))
            for (queue,) in verb.execute(QUEUES_OF_UNIT, (unit.id,)).fetchall():
                verb.touch(verb.queue(queue))
                verb.execute(KEEP_ENTRIES, (queue, unit.id))
            verb.end_session_unit(connection)
            verb.durable = True

    def settle_prepared(self, name: str, outcome: Outcome) -> None:
        with self.verb() as verb:
            row = next(verb.execute(PREPARED_UNIT, (name,)), None)
            if row is None:
                raise UnitNotFound(f"no unit named {name!r} is prepared", unit=name)
            verb.settle(verb.unit(row[0]), outcome)
            verb.durable = True
        self._remove_leftovers()

    # --- time

    def discard_expired(self, limit: int) -> int:
        room = limit
        with self.verb() as verb:
            for (number,) in verb.execute(QUEUES_WITH_EXPIRED, (verb.now,)).fetchall():
                room -= verb.discard(verb.queue(number), room)
            for (number,) in verb.execute(QUEUES_WITH_LEASES_OVER, (verb.now,)).fetchall():
                verb.end_leases(verb.queue(number))
        self.undo_expired()
        self._remove_leftovers()
        return limit - room

    # --- the end

    def stop(self) -> None:
        with self.verb(though_stopped=True) as verb:
            for (number,) in verb.execute(LOCAL_QUEUES).fetchall():
                verb.touch(verb.queue(number))
            self.database.stopped = True

    def restart(self) -> None:
        """For tests: loses the connections of this process, as if it had died, and starts the queue manager again."""
        with self.verb(though_stopped=True) as verb:
            self.database.stopped = False
            owners.start(self, verb)

    def backup(self, path: str | os.PathLike[str], *, replace: bool, progress: Progress | None) -> None:
        back_up(self.database, path, replace=replace, progress=progress)

    def close_store(self) -> None:
        """Ends what is left of the connections of this process, and closes the files. Harmless when repeated."""
        if self.database.is_closed:
            return
        self._watch.end()
        with contextlib.suppress(StoreError):  # the file may be gone, or full: then the next to open it tidies up
            owners.end(self)
        self._remove_leftovers()
        self.database.close()
