"""Keys under which messages were put. A put checks and takes its key, which is settled with its unit of work."""

from __future__ import annotations

from ...errors import DuplicatePending, Reason
from ...model.message import Message, UniqueId
from ...rules.duplicates import DuplicateVerdict, Kept, check_whole, judge, settled
from ...rules.puts import Planned, PutResult
from ..seam.clocks import is_ahead
from ..seam.records import Outcome, PutRequest
from ..seam.tables import PutKeyRow, UnitRow, UpTo
from .operation import Operation
from .process import OpenConnection
from .queue import LocalQueue

FORGOTTEN_BY_A_PUT = 2  # keys whose time is over: more than it adds, so that they do not pile up
TRANSMISSION = Message.FIELDS["transmission"].index


def duplicates(
    operation: Operation, connection: OpenConnection, queue: LocalQueue, request: PutRequest, planned: Planned
) -> list[PutResult] | None:
    """The results of a put whose key is taken; None: it is not.

    Raises: DuplicatePending; InconsistentCall 2241, in logical order only whole groups have a key.
    """
    if request.options.logical:
        check_whole(request.state, planned.state)
    row = _known(operation, queue, request, planned)
    kept = None if row is None else Kept(row.unit, _free_at(row, operation.now))
    verdict = judge(kept, connection.unit if request.in_unit else None, operation.now)
    if row is None or verdict is DuplicateVerdict.PUT:
        return None
    if verdict is DuplicateVerdict.REFUSED:
        raise _pending(operation, queue, row)
    operation.durable = True  # what was put before may be on its way to the disk still
    if row.unit is None and row.met_at is None and is_ahead(row.put_at, operation.now):
        operation.backend.save(row._replace(met_at=operation.now))
    uid = UniqueId(row.uid_origin, row.uid_number)
    return [
        result._replace(message_id=row.message_id, uid=uid, warning=Reason.DUPLICATE_PUT, duplicate_of=uid)
        for result in planned.results
    ]


def take(
    operation: Operation,
    connection: OpenConnection,
    queue: LocalQueue,
    request: PutRequest,
    planned: Planned,
    unit: UnitRow | None,
) -> None:
    """The messages of a put have its key, which nobody has."""
    options, first, now = request.options, planned.results[0], operation.now
    assert options.deduplicate is not None
    if unit is not None:
        connection.keyed = connection.ended
    operation.backend.save(
        PutKeyRow(
            queue.id,
            _target(planned),
            options.deduplicate,
            None if unit is None else unit.id,
            now,
            now + options.deduplicate_for,
            first.message_id,
            *first.uid,
        )
    )
    forget(operation, FORGOTTEN_BY_A_PUT)


def settle(operation: Operation, unit: int, outcome: Outcome) -> None:
    """The keys of a unit of work are kept from now on, or free again."""
    for row in operation.backend.select(PutKeyRow, unit=unit):
        if outcome == "commit":
            put_at, expires_at = settled(row.put_at, row.expires_at, operation.now)
            operation.backend.save(row._replace(unit=None, put_at=put_at, expires_at=expires_at))
    if outcome == "back_out":
        operation.backend.remove_records(PutKeyRow, unit=unit)


def are_over(operation: Operation) -> bool:
    """Whether there are keys whose time is over."""
    return bool(operation.backend.select(PutKeyRow, unit=None, expires_at=UpTo(operation.now, 1)))


def forget(operation: Operation, most: int) -> int:
    """Forgets keys whose time is over, so many at most; how many."""
    over = operation.backend.select(PutKeyRow, unit=None, expires_at=UpTo(operation.now, most))
    for row in over:  # somebody may have taken it since: then its time is another
        operation.backend.remove_records(
            PutKeyRow, queue=row.queue, target=row.target, key=row.key, unit=None, expires_at=row.expires_at
        )
    return len(over)


def _known(operation: Operation, queue: LocalQueue, request: PutRequest, planned: Planned) -> PutKeyRow | None:
    known = operation.backend.select(
        PutKeyRow, queue=queue.id, target=_target(planned), key=request.options.deduplicate
    )
    return known[0] if known else None


def _free_at(row: PutKeyRow, now: float) -> float:
    """When the key is free again: by the clock that it was put with, or by one that is behind that.

    Either may be the right one, and a clock that was behind comes back to where the key is still kept.
    """
    if row.met_at is None or not is_ahead(row.put_at, now):
        return row.expires_at
    return row.met_at + (row.expires_at - row.put_at)


def _target(planned: Planned) -> str:
    """Where the messages go from a transmission queue."""
    sent = planned.arriving[0][TRANSMISSION]
    return "" if sent is None else f"{sent.queue}@{sent.manager}"


def _pending(operation: Operation, queue: LocalQueue, row: PutKeyRow) -> DuplicatePending:
    assert row.unit is not None
    by, age = operation.unit(row.unit), max(0.0, operation.now - row.put_at)
    name = f"the prepared unit {by.name!r}" if by.kind == "prepared" else f"a unit of work of {by.program or by.user}"
    return DuplicatePending(
        f"{name}, which is not settled yet, put under the key {row.key!r} on {queue.attributes.name} {age:,.1f} s ago; "
        "try again when it is settled",
        queue=queue.attributes.name,
        key=row.key,
        by=by.name if by.kind == "prepared" else by.program,
        age=age,
    )
