"""Processes that have the store open, with their connections and handles, and the clean-up after they die.

The operating system tells whether a process is alive (`backend.Host`). A process that finds another one dead backs out
its units of work, frees its browse locks and closes its handles (B-32, B-48). Named units stay.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from ...model.options import OpenOptions
from ...rules.leases import deadline, is_over
from ...rules.lifecycle import Event, Presented
from ...rules.puts import Program
from ..seam.changes import Death
from ..seam.damage import only
from ..seam.queued import NEVER
from ..seam.records import Opened
from ..seam.tables import (
    AccountRow,
    ClaimRow,
    ConnectionRow,
    EnteredRow,
    HandleRow,
    LeaseRow,
    LedgerRow,
    ManagerRow,
    MarkRow,
    ProcessRow,
    PutKeyRow,
    SentRow,
    StagingRow,
    TriggeredRow,
    UnitRow,
    WaitRow,
    handle_reader,
)
from . import group_readers, points, putkeys
from .catalog import Catalog, check_uses
from .operation import Verb, in_verb
from .process import OpenConnection, OpenHandle, OpenStore
from .queue import LocalQueue
from .settling import happen, settle, settle_lease

T = TypeVar("T")


# --- processes


def begin(store: OpenStore) -> None:
    """This process has the store open from now on; if nobody else has, that is a start of the queue manager."""
    if not _begin(store):
        bury_dead(store)


@in_verb(though_stopped=True)
def _begin(store: OpenStore, verb: Verb) -> bool:
    """Whether it is a start."""
    manager = Catalog(verb).manager
    store.name = manager.name
    verb.backend.name_after(manager.name, manager.origin)  # before recovery reads ids
    is_start, boot, may_have_lost = store.host.run()
    if is_start:
        _note_run(verb, boot, may_have_lost=may_have_lost)
    store.process = verb.number()
    while not store.host.own(store.process):  # a program still lives that drew it from the store that was here before
        store.process = verb.number()
    verb.backend.save(ProcessRow(store.process))
    verb.owns = store.process
    if is_start:
        start(verb)
    return is_start


@in_verb(though_stopped=True)
def end(store: OpenStore, verb: Verb) -> None:
    """This process has the store open no more."""
    for owner in list(store.connections):
        abandon(verb, owner)
    verb.backend.remove_records(ProcessRow, id=store.process)


def _note_run(verb: Verb, run: str, *, may_have_lost: bool) -> None:
    """If the machine has lost power, numbers that were given away and not synced are passed over (B-2)."""
    manager = only(verb.backend.select(ManagerRow), "the queue manager")
    if may_have_lost or not run or run != manager.boot:
        verb.skip_reserved()
        verb.backend.save(manager._replace(boot=run))


def start(verb: Verb) -> None:
    """What a start of the queue manager does: all earlier connections end, non-persistent messages go (R1.5, R5.11).

    Unless their queue keeps them or a named unit holds them: then they go if it is undone.
    """
    store = verb.store
    for connection in verb.backend.select(ConnectionRow):
        abandon(verb, connection.id)
    for process in verb.backend.select(ProcessRow):
        if process.id != store.process:
            verb.backend.remove_records(ProcessRow, id=process.id)
    for number in verb.backend.volatile_queues():
        queue = verb.queue(number)
        verb.touch(queue)
        if queue.attributes.nonpersistent_class == "high":
            continue
        for row in verb.backend.rows(queue=queue.id, volatile=True):
            if row.unit is not None or row.lock is not None:
                verb.backend.write(row, row._replace(forgotten=True))
            else:
                verb.backend.remove([row], row.state)
                queue.count(-1)


def bury_dead(store: OpenStore) -> bool:
    """Ends the connections of dead processes, and leases that are over; this process then removes what they left.

    Returns: whether there were any.
    """
    dead, over = _dead(store)
    for process in dead:
        store.changes.report([Death(Program(one.user, one.program)) for one in _bury(store, process)])
    for lease in over:
        end_lease(store, lease)
    return bool(dead or over)


@in_verb(writes=False, though_stopped=True)
def _dead(store: OpenStore, verb: Verb) -> tuple[list[int], list[int]]:
    """Processes, and leases."""
    others = [one.id for one in verb.backend.select(ProcessRow) if one.id != store.process]
    return [number for number in others if not store.host.is_alive(number)], leases_over(verb)


def leases_over(verb: Verb) -> list[int]:
    """The leases that are over, or have more left than they were given."""
    leases = verb.backend.select(LeaseRow)
    now = verb.backend.common_time(verb.now) if leases else verb.now
    return [one.unit for one in leases if is_over(one.ends_at, now) or deadline(*one[1:3], now) < one.ends_at]


@in_verb(though_stopped=True)
def end_lease(_: OpenStore, verb: Verb, unit: int) -> None:
    """A lease that is over is backed out; unless it was settled or extended meanwhile."""
    now = verb.backend.common_time(verb.now)
    for one in verb.backend.select(LeaseRow, unit=unit):
        if is_over(one.ends_at, now):
            settle_lease(verb, unit, "back_out")
            if points.reached:
                points.reached("lease-over")
        else:
            verb.backend.save(one._replace(ends_at=deadline(one.ends_at, one.seconds, now)))


@in_verb(though_stopped=True)
def _bury(_: OpenStore, verb: Verb, process: int) -> list[ConnectionRow]:
    """The connections of a dead process end; those that it had."""
    connections = verb.backend.select(ConnectionRow, process=process)
    for one in connections:
        abandon(verb, one.id)
        if points.reached:
            points.reached("reaping")
    verb.backend.remove_records(ProcessRow, id=process)
    return connections


# --- connections


def connect(verb: Verb, program: Program) -> int:
    """A new connection of this process."""
    store, connection = verb.store, OpenConnection(verb.number(), program)
    verb.backend.save(ConnectionRow(connection.id, store.process, program.user, program.name))
    verb.remember(store.connections, connection.id)
    store.connections[connection.id] = connection
    return connection.id


def abandon(verb: Verb, owner: int) -> None:
    """A connection ends, of this process or of a dead one: its unit is backed out, its handles are closed."""
    for unit in verb.backend.select(UnitRow, connection=owner, kind="session"):
        settle(verb, unit.id, "back_out")
        putkeys.settle(verb, unit.id, "back_out")
        verb.end_unit(unit.id)
    for handle in verb.backend.select(HandleRow, connection=owner):
        _end_handle(verb, handle)
    verb.backend.remove_records(WaitRow, connection=owner)
    verb.backend.remove_records(ConnectionRow, id=owner)
    _forget(verb, verb.store.connections, owner)


def _forget(verb: Verb, kept: dict[int, T], number: int) -> None:
    """This process keeps it no more, if the verb succeeds."""
    if number in kept:
        verb.remember(kept, number)
        del kept[number]


# --- handles


def open_handle(
    verb: Verb, connection: OpenConnection, name: str, options: OpenOptions, manager: str, dynamic_name: str
) -> Opened:
    """Opens a queue (R4.1 to R4.4)."""
    store, catalog = verb.store, Catalog(verb)
    limit = catalog.manager.max_handles
    found = catalog.to_open(name, options, manager, dynamic_name, open_already=connection.handles, handles_max=limit)
    route = found.route
    handle = OpenHandle(
        id=verb.number(),
        connection=connection,
        queue=catalog.number(route.queue.name),
        queue_name=route.queue.name,
        name=found.name,
        manager=manager,
        transmission=route.transmission,
        is_direct=not route.over and route.transmission is None,
        options=options,
        exclusive=found.exclusive,
    )
    verb.backend.save(_row(handle, options, made_temporary=found.made_temporary))
    verb.remember(store.handles, handle.id)
    store.handles[handle.id] = handle
    _count(verb, connection, 1)
    return Opened(handle.id, found.name, route.queue.name, options, handle.queue)


def _row(handle: OpenHandle, options: OpenOptions, *, made_temporary: bool) -> HandleRow:
    return HandleRow(
        handle.id,
        handle.connection.id,
        handle.queue,
        f"{handle.name}@{handle.manager}" if handle.manager else handle.name,
        options.input is not None,
        options.output,
        options.co_op,
        handle.exclusive,
        made_temporary,
    )


def _count(verb: Verb, connection: OpenConnection, more: int) -> None:
    verb.remember(connection, "handles")
    connection.handles += more


def extend_handle(verb: Verb, handle: OpenHandle, options: OpenOptions) -> Opened:
    """Opens a handle for more than before."""
    queue = verb.queue_of(handle)
    check_uses(handle.name, handle.transmission, options)
    verb.remember(handle, "options", "exclusive")
    if options.input and not handle.options.input:
        handle.exclusive = Catalog(verb).is_exclusive(queue.attributes, options, handle.id)
    handle.options = options
    row = only(verb.backend.select(HandleRow, id=handle.id), f"handle {handle.id}")
    verb.backend.save(_row(handle, options, made_temporary=bool(row.made_temporary)))
    return Opened(handle.id, handle.name, handle.queue_name, options, handle.queue)


def close_handle(verb: Verb, handle: OpenHandle) -> None:
    """Closes a handle of this process."""
    for row in verb.backend.select(HandleRow, id=handle.id):
        _end_handle(verb, row)


def keep_handles(verb: Verb, owner: int, handles: Sequence[int]) -> None:
    """Closes all handles of a connection but these."""
    for row in verb.backend.select(HandleRow, connection=owner):
        if row.id not in handles:
            _end_handle(verb, row)


def _end_handle(verb: Verb, handle: HandleRow) -> None:
    """With a handle go its locks and marks, the last of the cooperating set's, and its temporary queue."""
    if (connection := verb.store.connections.get(handle.connection)) is not None:
        _count(verb, connection, -1)
    _forget(verb, verb.store.handles, handle.id)
    queue = verb.queue(handle.queue) if verb.backend.state(handle.queue) is not None else None
    if queue is not None:
        _end_holds(verb, handle, queue)
        if handle.made_temporary:
            vanish(verb, queue)
    verb.backend.remove_records(MarkRow, handle=handle.id)  # also on a queue that was deleted under the handle
    verb.backend.remove_records(HandleRow, id=handle.id)
    if queue is not None and queue.attributes.trigger_control and handle.input and not handle.made_temporary:
        verb.released.add(queue.id)


def _end_holds(verb: Verb, handle: HandleRow, queue: LocalQueue) -> None:
    """What a handle keeps from others on its queue."""
    for row in verb.backend.rows(locked_handle=handle.id):
        happen(verb, queue, row, Event.UNLOCK, presents=Presented.RIGHT)
    if group_readers.leave_all(queue, handle_reader(handle.id)):
        verb.touch(queue)
    if handle.co_op and not any(one.id != handle.id for one in verb.backend.select(HandleRow, queue=queue.id, co_op=1)):
        for row in verb.backend.rows(queue=queue.id, co_op_marked=True):
            verb.backend.write(row, row._replace(co_op_marked_at=NEVER))


# --- queues that go


def vanish(verb: Verb, queue: LocalQueue) -> None:
    """A queue goes, with all that is on it."""
    verb.touch(queue)
    verb.backend.clear(queue.id)
    verb.backend.remove_records(UnitRow, queue=queue.id, kind="lock")
    queue.count(-queue.depth)
    for kind in (ClaimRow, AccountRow, SentRow, LedgerRow, PutKeyRow, EnteredRow, TriggeredRow):
        verb.backend.remove_records(kind, queue=queue.id)
    for unit in verb.backend.select(UnitRow, queue=queue.id):
        for staging in verb.backend.select(StagingRow, unit=unit.id):
            verb.backend.end_staging(staging, drops=True)
            verb.backend.remove_records(StagingRow, unit=unit.id)
        verb.end_unit(unit.id)
    Catalog(verb).remove(queue.attributes.name)
    verb.forget_queue(queue)
