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

FORGOTTEN_BY_A_PUT = 2  # expired keys to delete with a put: more than it adds, so that they do not pile up
TRANSMISSION = Message.FIELDS["transmission"].index


def duplicates(
    operation: Operation, connection: OpenConnection, queue: LocalQueue, request: PutRequest, planned: Planned
) -> list[PutResult] | None:
    """Returns the results of a put whose key is already used; None: it is free.

    Raises: DuplicatePending; InconsistentCall 2241: in logical order only whole groups can have a key.
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
    operation.durable = True  # the earlier messages may not be on disk yet
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
    """Stores the key of a put with its messages; the key is free."""
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
    """Keeps the keys of a committed unit of work; frees those of one that was backed out."""
    if outcome == "back_out":
        operation.backend.remove_records(PutKeyRow, unit=unit)
        return
    for row in operation.backend.select(PutKeyRow, unit=unit):
        put_at, expires_at = settled(row.put_at, row.expires_at, operation.now)
        operation.backend.save(row._replace(unit=None, put_at=put_at, expires_at=expires_at))


def are_over(operation: Operation) -> bool:
    """Whether there are expired keys."""
    return bool(operation.backend.select(PutKeyRow, unit=None, expires_at=UpTo(operation.now, 1)))


def forget(operation: Operation, most: int) -> int:
    """Deletes up to `most` expired keys. Returns the number found."""
    over = operation.backend.select(PutKeyRow, unit=None, expires_at=UpTo(operation.now, most))
    for row in over:  # if it has been used again since, it has another expiry
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
    """Returns when the key becomes free: by the clock of its put or, if that was ahead, by the present clock.

    Either clock may be right. A clock that is behind now will be corrected while the key is still kept.
    """
    if row.met_at is None or not is_ahead(row.put_at, now):
        return row.expires_at
    return row.met_at + (row.expires_at - row.put_at)


def _target(planned: Planned) -> str:
    """The destination of messages on a transmission queue."""
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
