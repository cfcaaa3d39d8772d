"""The operations for operators, for all backends: they list messages, holders and waiting calls, and check the
store.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from time import perf_counter
from typing import Literal

from ...errors import bad_argument
from ...rules.gaps import Gaps, gaps, member_of
from ...rules.puts import Program
from ..seam.backend import Peer, Share
from ..seam.channel_records import ChannelNow
from ..seam.damage import damaged, only
from ..seam.definitions import Definitions, channel_of
from ..seam.looking import group_of, holder_of, logical_key, pending_from_text, sight_of
from ..seam.queued import GOT
from ..seam.tables import (
    ConnectionRow,
    DroppedRow,
    HandleRow,
    LeaseRow,
    ObjectRow,
    StagingRow,
    UnitKind,
    UnitRow,
    WaitRow,
)
from ..seam.telemetry import event
from ..seam.views import (
    ConnectionView,
    Dropped,
    LockView,
    LookRequest,
    MessageView,
    Opening,
    Position,
    QueueView,
    Unit,
    Wait,
)
from .carriers import channel_now
from .catalog import Catalog
from .global_units import global_units
from .incremental_search import rest
from .operation import Operation, in_operation
from .process import OpenStore
from .queue import LocalQueue


class OperatorVerbs(OpenStore):
    """The operations for operators; `protocol.Store` documents them."""

    # --- messages on a queue

    @event(
        "look",
        "messages",
        "queue order",
        measured=lambda found, _: [len(found)],
        about=lambda _, request: [request.queue, request.order],
    )
    def look(self, request: LookRequest) -> Sequence[MessageView]:
        self.end_dead_processes()
        began = perf_counter()
        found, reached = self._look_on(request)
        while reached is not None and len(found) < request.most:  # the selector's budget for a step was used up
            rest(began)
            began = perf_counter()
            more, reached = self._look_on(replace(request, after=reached, most=request.most - len(found)))
            found += more
        return found

    @in_operation(writes=False)
    def _look_on(self, operation: Operation, request: LookRequest) -> tuple[list[MessageView], Position | None]:
        catalog = Catalog(operation)
        if catalog.is_unused(request.queue):
            return [], None
        queue = catalog.local(request.queue)
        unit = None if request.unit is None else _number_of(operation, queue, request.unit)
        listed = operation.backend.listing(queue, request, unit, operation.now)
        owners = _Owners(operation)
        found = [
            sight_of(
                row, position, operation.now, holder_of(row, operation.unit, operation.unit_owners.whose_handle, owners)
            )
            for position, row in listed.found
        ]
        return found, listed.reached

    @event("gaps", keys="queue", about=lambda _, queue, __: [queue])
    @in_operation(writes=False)
    def gaps(self, operation: Operation, queue: str, group_id: bytes) -> Gaps:
        catalog = Catalog(operation)
        if catalog.is_unused(queue):
            return gaps(())
        rows = operation.backend.rows(queue=catalog.local(queue).id, everything_of=group_id)
        there = [row for row in rows if group_of(row.message) == group_id]
        there = [row for row in there if row.expires_at > operation.now or row.is_kept]
        there.sort(key=lambda row: (*logical_key(row)[:2], not row.placed, row.place, row.number))
        return gaps(member_of(row.message) for row in there)

    @event("overview", "queues", measured=lambda found, *_: [len(found)])
    @in_operation(writes=False, ends_dead=True)
    def overview(self, operation: Operation, name: str | None = None) -> list[QueueView]:
        defined = {row.id: row for row in Catalog(operation).rows(name) if row.type == "local"}
        if not defined:
            return []
        of_queue = {} if name is None else {"queue": next(iter(defined))}
        opens: dict[int, list[HandleRow]] = {}
        for handle in operation.backend.select(HandleRow, **of_queue):
            opens.setdefault(handle.queue, []).append(handle)
        waits = Counter(wait.queue for wait in operation.backend.select(WaitRow, **of_queue))
        dropped = {row.queue: row.messages for row in operation.backend.select(DroppedRow, **of_queue)}
        counts = operation.backend.overview(operation.now, of_queue.get("queue"))
        carried = _carried(operation, {one.queue: one.oldest_put_at for one in counts}, name)
        views = []
        for one in counts:
            row, handles, counted = defined[one.queue], opens.get(one.queue, ()), one._asdict()
            del counted["queue"]
            views.append(
                QueueView(
                    name=row.name,
                    created_at=row.created_at,
                    **counted,
                    open_input_count=sum(handle.input for handle in handles),
                    open_output_count=sum(handle.output for handle in handles),
                    waiters=waits[one.queue],
                    dropped=dropped.get(one.queue, 0),
                    channels=tuple(carried.get(row.name, ())),
                )
            )
        return sorted(views, key=lambda view: view.name)

    @event("dropped", "messages", measured=lambda found: [sum(one.messages for one in found)])
    @in_operation(writes=False)
    def dropped(self, operation: Operation) -> list[Dropped]:
        rows, found = operation.backend.select(DroppedRow), dict[str, Dropped]()
        names = _names(operation) if rows else {}
        for row in sorted(rows, key=lambda row: row.last_at):
            name = names.get(row.queue, "")
            before = found[name].messages if name in found else 0
            found[name] = Dropped(name, before + row.messages, row.last_at, row.reason)
        return [found[name] for name in sorted(found)]

    # --- holders and waiting calls

    @event("units")
    @in_operation(writes=False, ends_dead=True)
    def units(self, operation: Operation) -> list[Unit]:
        owners, known = _Owners(operation), operation.store.definitions.current(operation.backend)
        units = sorted(operation.backend.select(UnitRow), key=lambda unit: (unit.started_at, unit.id))
        now = operation.backend.common_time(operation.now)
        found = [_unit(operation, unit, owners, known, now) for unit in units]
        # The record of a session outlives its last unit of work.
        found = [one for one in found if one.kind != "session" or one.puts or one.gets]
        spanning = global_units(operation, now)
        return sorted([*found, *spanning], key=lambda one: one.started_at) if spanning else found

    @in_operation(writes=False)
    def users_of(self, operation: Operation, kind: UnitKind, name: str, handle: int | None = None) -> frozenset[str]:
        if handle is None:
            select = operation.backend.select
            if kind == "lease":
                units = select(UnitRow, kind="lease", name=name)
            elif kind == "prepared":
                units = select(UnitRow, kind="prepared", name=name)
            else:
                units = select(UnitRow, kind="staging", name=name)
            return frozenset(one.user for one in units)
        queue = self.handle(handle).queue
        users = {one.user for one in operation.backend.select(UnitRow, queue=queue, kind=kind, name=name)}
        if kind == "confirm":
            locks = {row.lock for row in operation.backend.rows(queue=queue, lock_confirm=int(name))}
            users.update(operation.unit(lock).user for lock in locks if lock is not None)
        return frozenset(users)

    @event("waits", "waits", measured=lambda found: [len(found)])
    @in_operation(writes=False, ends_dead=True)
    def waits(self, operation: Operation) -> list[Wait]:
        owners, rows = _Owners(operation), operation.backend.select(WaitRow)
        names = _names(operation) if rows else {}
        return [
            Wait(
                queue=names[one.queue],
                connection=one.connection,
                program=owners(one.connection)[0],
                process=owners(one.connection)[1],
                pending=None if one.pending is None else pending_from_text(one.pending),
                withheld=bool(one.withheld),
            )
            for one in rows
            if one.queue in names
        ]

    @event("locks", "locks", measured=lambda found: [len(found)])
    @in_operation(writes=False, ends_dead=True)
    def locks(self, operation: Operation) -> list[LockView]:
        known = operation.store.definitions.current(operation.backend)
        now = operation.backend.common_time(operation.now)
        found = [*_handle_locks(operation, known, now), *_lock_ids(operation, known, now)]
        return sorted(found, key=lambda one: (one.since, one.queue))

    @event("list_connections", "connections", measured=lambda found: [len(found)])
    @in_operation(writes=False, ends_dead=True)
    def list_connections(self, operation: Operation) -> list[ConnectionView]:
        names, peers = _names(operation), dict[int, Peer]()
        opened: dict[int, list[Opening]] = {}
        for handle in sorted(operation.backend.select(HandleRow), key=lambda row: row.id):
            opened.setdefault(handle.connection, []).append(_opening(handle, names.get(handle.queue, "")))
        found = sorted(operation.backend.select(ConnectionRow), key=lambda row: row.id)
        for one in found:
            if one.process not in peers:
                peers[one.process] = operation.store.host.peer(one.process)
        return [
            ConnectionView(
                connection=one.id,
                program=Program(one.user, one.program),
                opened=tuple(opened.get(one.id, ())),
                **peers[one.process]._asdict(),
            )
            for one in found
        ]

    # --- the check

    @event("check", "problems", measured=lambda found, _: [len(found[0])])
    def check(self, part: int | None) -> tuple[list[str], int]:
        self.refuse_wait("check outside of it")
        _, parts = self.host.check(None)
        if part is not None and not 0 <= part < parts:
            raise bad_argument("part", part, f"a number from 0 to {parts - 1}")
        return self.host.check(part)


class _Owners:
    """The programs and process ids of connections, each looked up once."""

    def __init__(self, operation: Operation) -> None:
        self._operation = operation
        self._known: dict[int, tuple[Program, int | None]] = {}

    def __call__(self, connection: int) -> tuple[Program, int | None]:
        if connection not in self._known:
            one = only(self._operation.backend.select(ConnectionRow, id=connection), f"connection {connection}")
            process = self._operation.store.host.process_of(one.process)
            self._known[connection] = Program(one.user, one.program), process
        return self._known[connection]


def _opening(handle: HandleRow, queue: str) -> Opening:
    shared_or_not: Literal["shared", "exclusive"] = "exclusive" if handle.exclusive else "shared"
    return Opening(
        queue=queue,
        name=handle.name,
        input=shared_or_not if handle.input else None,
        output=bool(handle.output),
        co_op=bool(handle.co_op),
    )


def _names(operation: Operation) -> Mapping[int, str]:
    """Returns the names of all queues, by number."""
    return {row.id: row.name for row in Catalog(operation).rows()}


def _carried(
    operation: Operation, oldest: Mapping[int, float | None], only_from: str | None
) -> Mapping[str, list[ChannelNow]]:
    """Returns the state of the channels that send from each queue, or from one, by queue name."""
    defined = [channel_of(one.attributes) for one in operation.backend.select(ObjectRow) if one.type == "channel"]
    senders = sorted((one.name, one.transmission_queue) for one in defined if one.type == "sender")
    found: dict[str, list[ChannelNow]] = {}
    for name, queue in senders:
        if only_from in (None, queue):
            found.setdefault(queue, []).append(channel_now(operation, name, queue, oldest))
    return found


def _number_of(operation: Operation, queue: LocalQueue, unit: Unit) -> int:
    """Returns the number of a unit that an operator has listed; 0 if it is over, or belongs to another queue."""
    if unit.kind == "session":
        found = operation.backend.select(UnitRow, kind="session", connection=unit.connection)
    elif unit.kind == "prepared":
        found = operation.backend.select(UnitRow, kind="prepared", name=unit.name)
    elif unit.kind == "lease":
        found = operation.backend.select(UnitRow, kind="lease", name=unit.name)
    else:
        found = operation.backend.select(UnitRow, queue=queue.id, kind=unit.kind, name=unit.name)
    return found[0].id if found else 0


def _unit(operation: Operation, unit: UnitRow, owners: _Owners, known: Definitions, now: float) -> Unit:
    """Returns a unit as an operator sees it."""
    shares = operation.backend.shares(unit.id)
    queues = {known.queue(number).name for number in _queues_of(unit, shares)}
    staged = sum(one.messages for one in _stagings(operation, unit))
    return Unit(
        kind=unit.kind,
        name=unit.name,
        queue="" if unit.queue is None else known.queue(unit.queue).name,
        program=unit.by,
        started_at=unit.started_at,
        puts=staged + sum(share.messages for share in shares if share.state not in GOT),
        gets=sum(share.messages for share in shares if share.state in GOT),
        locks=_locked(operation, unit) if unit.kind == "lock" else 0,
        connection=unit.connection,
        process=None if unit.connection is None else owners(unit.connection)[1],
        queues=tuple(sorted(queues)),
        ends_at=_end_of(operation, unit),
        age=max(0.0, now - unit.started_at),
    )


def _queues_of(unit: UnitRow, shares: Sequence[Share]) -> set[int]:
    return {share.queue for share in shares} if unit.queue is None else {unit.queue}


def _locked(operation: Operation, unit: UnitRow) -> int:
    """Returns the number of messages that a lock id locks, including those got under it."""
    return sum(share.messages for share in operation.backend.shares(unit.id, locked=True))


def _stagings(operation: Operation, unit: UnitRow) -> Sequence[StagingRow]:
    return operation.backend.select(StagingRow, unit=unit.id) if unit.kind == "staging" else ()


def _end_of(operation: Operation, unit: UnitRow) -> float | None:
    """Returns when a unit ends by itself, or None."""
    if unit.kind == "lease":
        return only(operation.backend.select(LeaseRow, unit=unit.id), f"lease {unit.name}").ends_at
    return next((one.expires_at for one in _stagings(operation, unit)), None)


def _handle_locks(operation: Operation, known: Definitions, now: float) -> Iterator[LockView]:
    owners = _Owners(operation)
    for handle in operation.backend.select(HandleRow):
        rows = operation.backend.rows(locked_handle=handle.id)
        if rows:
            program, process = owners(handle.connection)
            since = min(row.locked_at or 0.0 for row in rows)
            yield LockView(
                kind="handle",
                queue=known.queue(handle.queue).name,
                lock_id=None,
                program=program,
                connection=handle.connection,
                process=process,
                since=since,
                messages=len(rows),
                age=max(0.0, now - since),
            )


def _lock_ids(operation: Operation, known: Definitions, now: float) -> Iterator[LockView]:
    for unit in operation.backend.select(UnitRow, kind="lock"):
        if unit.queue is None or not unit.name.isdecimal():
            raise damaged(f"unit {unit.id}", f"a lock id cannot be {unit.name!r} on queue {unit.queue}")
        yield LockView(
            kind="lock",
            queue=known.queue(unit.queue).name,
            lock_id=int(unit.name),
            program=unit.by,
            connection=None,
            process=None,
            since=unit.started_at,
            messages=_locked(operation, unit),
            lease_ends_at=unit.lease_ends_at,
            age=max(0.0, now - unit.started_at),
        )
