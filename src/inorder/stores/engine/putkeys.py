"""Keys under which messages were put. A put checks and takes its key, which is settled with its unit of work."""

from __future__ import annotations

from ...errors import DuplicatePending, Reason
from ...model.message import Message, UniqueId
from ...rules.duplicates import Kept, Verdict, check_whole, judge, settled
from ...rules.puts import Planned, PutResult
from ..seam.clocks import is_ahead
from ..seam.records import Outcome, PutRequest
from ..seam.tables import PutKeyRow, UnitRow, UpTo
from .operation import Verb
from .process import OpenConnection
from .queue import LocalQueue

FORGOTTEN_BY_A_PUT = 2  # keys whose time is over: more than it adds, so that they do not pile up
TRANSMISSION = Message.FIELDS["transmission"].index


def duplicates(
    verb: Verb, connection: OpenConnection, queue: LocalQueue, request: PutRequest, planned: Planned
) -> list[PutResult] | None:
    """The results of a put whose key is taken; None: it is not.

    Raises: DuplicatePending; InconsistentCall 2241, in logical order only whole groups have a key.
    """
    if request.options.logical:
        check_whole(request.state, planned.state)
    row = _known(verb, queue, request, planned)
    kept = None if row is None else Kept(row.unit, _free_at(row, verb.now))
    verdict = judge(kept, connection.unit if request.in_unit else None, verb.now)
    if row is None or verdict is Verdict.PUT:
        return None
    if verdict is Verdict.REFUSED:
        raise _pending(verb, queue, row)
    verb.durable = True  # what was put before may be on its way to the disk still
    if row.unit is None and row.met_at is None and is_ahead(row.put_at, verb.now):
        verb.backend.save(row._replace(met_at=verb.now))
    uid = UniqueId(row.uid_origin, row.uid_number)
    return [
        result._replace(message_id=row.message_id, uid=uid, warning=Reason.DUPLICATE_PUT, duplicate_of=uid)
        for result in planned.results
    ]


def take(
    verb: Verb,
    connection: OpenConnection,
    queue: LocalQueue,
    request: PutRequest,
    planned: Planned,
    unit: UnitRow | None,
) -> None:
    """The messages of a put have its key, which nobody has."""
    options, first, now = request.options, planned.results[0], verb.now
    assert options.deduplicate is not None
    if unit is not None:
        connection.keyed = connection.ended
    verb.backend.save(
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
    forget(verb, FORGOTTEN_BY_A_PUT)


def settle(verb: Verb, unit: int, outcome: Outcome) -> None:
    """The keys of a unit of work are kept from now on, or free again."""
    for row in verb.backend.select(PutKeyRow, unit=unit):
        if outcome == "commit":
            put_at, expires_at = settled(row.put_at, row.expires_at, verb.now)
            verb.backend.save(row._replace(unit=None, put_at=put_at, expires_at=expires_at))
    if outcome == "back_out":
        verb.backend.remove_records(PutKeyRow, unit=unit)


def are_over(verb: Verb) -> bool:
    """Whether there are keys whose time is over."""
    return bool(verb.backend.select(PutKeyRow, unit=None, expires_at=UpTo(verb.now, 1)))


def forget(verb: Verb, most: int) -> int:
    """Forgets keys whose time is over, so many at most; how many."""
    over = verb.backend.select(PutKeyRow, unit=None, expires_at=UpTo(verb.now, most))
    for row in over:  # somebody may have taken it since: then its time is another
        verb.backend.remove_records(
            PutKeyRow, queue=row.queue, target=row.target, key=row.key, unit=None, expires_at=row.expires_at
        )
    return len(over)


def _known(verb: Verb, queue: LocalQueue, request: PutRequest, planned: Planned) -> PutKeyRow | None:
    known = verb.backend.select(PutKeyRow, queue=queue.id, target=_target(planned), key=request.options.deduplicate)
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


def _pending(verb: Verb, queue: LocalQueue, row: PutKeyRow) -> DuplicatePending:
    assert row.unit is not None
    by, age = verb.unit(row.unit), max(0.0, verb.now - row.put_at)
    name = f"the prepared unit {by.name!r}" if by.kind == "prepared" else f"a unit of work of {by.program or by.user}"
    return DuplicatePending(
        f"{name}, which is not settled yet, put under the key {row.key!r} on {queue.attributes.name} {age:,.1f} s ago; "
        "try again when it is settled",
        queue=queue.attributes.name,
        key=row.key,
        by=by.name if by.kind == "prepared" else by.program,
        age=age,
    )
