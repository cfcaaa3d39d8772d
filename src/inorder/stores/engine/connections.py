"""Processes that have the store open, with their connections and handles, and the clean-up after they die.

The operating system tells whether a process is alive (`backend.Host`). A process that finds another one dead backs out
its units of work, frees its browse locks and closes its handles (B-32, B-48). Named units stay.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from ...errors import bad_argument
from ...model.message import UniqueId
from ...model.options import OpenOptions
from ...rules.leases import deadline, is_over
from ...rules.lifecycle import Event, Presented
from ...rules.puts import Program
from ..seam.changes import Death
from ..seam.damage import only
from ..seam.definitions import manager_row
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
from . import group_readers, points
from .catalog import Catalog, check_uses
from .operation import Operation, in_operation
from .process import OpenConnection, OpenHandle, OpenStore
from .queue import LocalQueue
from .settling import happen, settle_and_end, settle_lease

T = TypeVar("T")
RESERVED_MAX = 10_000  # unique ids that a connection reserves at once


# --- processes


def begin(store: OpenStore) -> None:
    """Registers this process as having the store open. If no other has, this starts the queue manager."""
    if not _begin(store):
        end_dead_processes(store)


@in_operation(though_stopped=True)
def _begin(store: OpenStore, operation: Operation) -> bool:
    """Returns whether this was a start of the queue manager."""
    manager = Catalog(operation).manager
    store.name = manager.name
    operation.backend.name_after(manager.name, manager.origin)  # recovery reads ids
    is_start, boot, may_have_lost = store.host.run()
    if is_start:
        _note_run(operation, boot, may_have_lost=may_have_lost)
    store.process = operation.number()
    while not store.host.own(store.process):  # a program that opened the store before its restore still has it
        store.process = operation.number()
    operation.backend.save(ProcessRow(store.process))
    operation.owns = store.process
    if is_start:
        start(operation)
    return is_start


@in_operation(though_stopped=True)
def end(store: OpenStore, operation: Operation) -> None:
    """Removes this process from those that have the store open."""
    for owner in list(store.connections):
        abandon(operation, owner)
    operation.backend.remove_records(ProcessRow, id=store.process)


def _note_run(operation: Operation, run: str, *, may_have_lost: bool) -> None:
    """Skips numbers that were used but not synced, if the machine may have lost power (B-2). Dates a new store."""
    manager = manager_row(operation.backend)
    if may_have_lost or not run or run != manager.boot:
        operation.skip_reserved()
        operation.backend.save(manager._replace(boot=run, created_at=manager.created_at or operation.now))


def start(operation: Operation) -> None:
    """Starts the queue manager: ends all earlier connections, and removes non-persistent messages (R1.5, R5.11).

    A message stays if its queue keeps such messages, or if a named unit holds it; an undo of the unit then removes it.
    """
    store = operation.store
    for connection in operation.backend.select(ConnectionRow):
        abandon(operation, connection.id)
    for process in operation.backend.select(ProcessRow):
        if process.id != store.process:
            operation.backend.remove_records(ProcessRow, id=process.id)
    for number in operation.backend.volatile_queues():
        queue = operation.queue(number)
        operation.touch(queue)
        if queue.attributes.nonpersistent_class == "high":
            continue
        for row in operation.backend.rows(queue=queue.id, volatile=True):
            if row.unit is not None or row.lock is not None:
                operation.backend.write(row, row._replace(forgotten=True))
            else:
                operation.backend.remove([row], row.state)
                queue.count(-1)


def end_dead_processes(store: OpenStore) -> bool:
    """Ends the connections of dead processes and backs out leases that are over.

    Returns: whether there were any.
    """
    dead, over = _dead(store)
    for process in dead:
        store.changes.report([Death(Program(one.user, one.program)) for one in _end_process(store, process)])
    for lease in over:
        end_lease(store, lease)
    return bool(dead or over)


@in_operation(writes=False, though_stopped=True)
def _dead(store: OpenStore, operation: Operation) -> tuple[list[int], list[int]]:
    """Returns the dead processes, and the leases that are over."""
    others = [one.id for one in operation.backend.select(ProcessRow) if one.id != store.process]
    return [number for number in others if not store.host.is_alive(number)], leases_over(operation)


def leases_over(operation: Operation) -> list[int]:
    """Returns the leases that are over, or whose remaining time is longer than their duration."""
    leases = operation.backend.select(LeaseRow)
    now = operation.backend.common_time(operation.now) if leases else operation.now
    return [one.unit for one in leases if is_over(one.ends_at, now) or deadline(*one[1:3], now) < one.ends_at]


@in_operation(though_stopped=True)
def end_lease(_: OpenStore, operation: Operation, unit: int) -> None:
    """Backs out a lease that is over, unless it was settled or extended meanwhile."""
    now = operation.backend.common_time(operation.now)
    for one in operation.backend.select(LeaseRow, unit=unit):
        if is_over(one.ends_at, now):
            settle_lease(operation, unit, "back_out")
            if points.reached:
                points.reached("lease-over")
        else:
            operation.backend.save(one._replace(ends_at=deadline(one.ends_at, one.seconds, now)))


@in_operation(though_stopped=True)
def _end_process(_: OpenStore, operation: Operation, process: int) -> list[ConnectionRow]:
    """Ends the connections of a dead process and returns them."""
    connections = operation.backend.select(ConnectionRow, process=process)
    for one in connections:
        abandon(operation, one.id)
        if points.reached:
            points.reached("reaping")
    operation.backend.remove_records(ProcessRow, id=process)
    return connections


# --- connections


def connect(operation: Operation, program: Program) -> int:
    """Creates a connection of this process."""
    store, connection = operation.store, OpenConnection(operation.number(), program)
    operation.backend.save(ConnectionRow(connection.id, store.process, program.user, program.name))
    operation.remember(store.connections, connection.id)
    store.connections[connection.id] = connection
    return connection.id


def reserve_numbers(operation: Operation, connection: OpenConnection, count: int) -> UniqueId:
    """Reserves a block of consecutive unique ids for the connection's puts, in place of an earlier one."""
    if not 1 <= count <= RESERVED_MAX:
        raise bad_argument("count", count, f"a whole number from 1 to {RESERVED_MAX:,}")
    first = operation.numbers(count)[0]
    operation.remember(connection, "reserved")
    connection.reserved = range(first, first + count)
    return UniqueId(operation.manager.origin, first)


def abandon(operation: Operation, owner: int) -> None:
    """Ends a connection of this process or of a dead one: backs out its unit and closes its handles."""
    for unit in operation.backend.select(UnitRow, connection=owner, kind="session"):
        settle_and_end(operation, unit.id, "back_out")
    for handle in operation.backend.select(HandleRow, connection=owner):
        _end_handle(operation, handle)
    operation.backend.remove_records(WaitRow, connection=owner)
    operation.backend.remove_records(ConnectionRow, id=owner)
    _forget(operation, operation.store.connections, owner)


def _forget(operation: Operation, kept: dict[int, T], number: int) -> None:
    """Removes an entry from this process's state; `undo` restores it."""
    if number in kept:
        operation.remember(kept, number)
        del kept[number]


# --- handles


def open_handle(
    operation: Operation, connection: OpenConnection, name: str, options: OpenOptions, manager: str, dynamic_name: str
) -> Opened:
    """Opens a queue (R4.1 to R4.4)."""
    store, catalog = operation.store, Catalog(operation)
    limit = catalog.manager.max_handles
    found = catalog.to_open(name, options, manager, dynamic_name, open_already=connection.handles, handles_max=limit)
    route = found.route
    handle = OpenHandle(
        id=operation.number(),
        connection=connection,
        queue=catalog.number(route.queue.name),
        queue_name=route.queue.name,
        name=found.name,
        manager="" if manager == catalog.manager.name else manager,
        transmission=route.transmission,
        is_direct=not route.over and route.transmission is None,
        options=options,
        exclusive=found.exclusive,
    )
    operation.backend.save(_row(handle, options, made_temporary=found.made_temporary))
    operation.remember(store.handles, handle.id)
    store.handles[handle.id] = handle
    _count(operation, connection, 1)
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


def _count(operation: Operation, connection: OpenConnection, more: int) -> None:
    operation.remember(connection, "handles")
    connection.handles += more


def extend_handle(operation: Operation, handle: OpenHandle, options: OpenOptions) -> Opened:
    """Adds options to an open handle."""
    queue = operation.queue_of(handle)
    check_uses(handle.name, handle.transmission, options)
    operation.remember(handle, "options", "exclusive")
    if options.input and not handle.options.input:
        handle.exclusive = Catalog(operation).is_exclusive(queue.attributes, options, handle.id)
    handle.options = options
    row = only(operation.backend.select(HandleRow, id=handle.id), f"handle {handle.id}")
    operation.backend.save(_row(handle, options, made_temporary=bool(row.made_temporary)))
    return Opened(handle.id, handle.name, handle.queue_name, options, handle.queue)


def close_handle(operation: Operation, handle: OpenHandle) -> None:
    """Closes a handle of this process."""
    for row in operation.backend.select(HandleRow, id=handle.id):
        _end_handle(operation, row)


def keep_handles(operation: Operation, owner: int, handles: Sequence[int]) -> None:
    """Closes all other handles of a connection."""
    for row in operation.backend.select(HandleRow, connection=owner):
        if row.id not in handles:
            _end_handle(operation, row)


def _end_handle(operation: Operation, handle: HandleRow) -> None:
    """Ends a handle with its locks and marks and its temporary queue; the last of a cooperating set ends the set's
    marks.
    """
    if (connection := operation.store.connections.get(handle.connection)) is not None:
        _count(operation, connection, -1)
    _forget(operation, operation.store.handles, handle.id)
    queue = operation.queue(handle.queue) if operation.backend.state(handle.queue) is not None else None
    if queue is not None:
        _end_holds(operation, handle, queue)
        if handle.made_temporary:
            vanish(operation, queue)
    operation.backend.remove_records(MarkRow, handle=handle.id)  # also on a queue that was deleted after the open
    operation.backend.remove_records(HandleRow, id=handle.id)
    if queue is not None and queue.attributes.trigger_control and handle.input and not handle.made_temporary:
        operation.released.add(queue.id)


def _end_holds(operation: Operation, handle: HandleRow, queue: LocalQueue) -> None:
    """Frees the messages and groups that a handle keeps from others."""
    for row in operation.backend.rows(locked_handle=handle.id):
        happen(operation, queue, row, Event.UNLOCK, presents=Presented.RIGHT)
    if group_readers.leave_all(queue, handle_reader(handle.id)):
        operation.touch(queue)
    if handle.co_op and not any(
        one.id != handle.id for one in operation.backend.select(HandleRow, queue=queue.id, co_op=1)
    ):
        for row in operation.backend.rows(queue=queue.id, co_op_marked=True):
            operation.backend.write(row, row._replace(co_op_marked_at=NEVER))


# --- deletion of queues


def vanish(operation: Operation, queue: LocalQueue) -> None:
    """Deletes a queue with everything on it."""
    operation.touch(queue)
    operation.backend.clear(queue.id)
    operation.backend.remove_records(UnitRow, queue=queue.id, kind="lock")
    queue.count(-queue.depth)
    for kind in (ClaimRow, AccountRow, SentRow, LedgerRow, PutKeyRow, EnteredRow, TriggeredRow):
        operation.backend.remove_records(kind, queue=queue.id)
    for unit in operation.backend.select(UnitRow, queue=queue.id):
        for staging in operation.backend.select(StagingRow, unit=unit.id):
            operation.backend.end_staging(staging, drops=True)
            operation.backend.remove_records(StagingRow, unit=unit.id)
        operation.end_unit(unit.id)
    Catalog(operation).remove(queue.attributes.name)
    operation.forget_queue(queue)
