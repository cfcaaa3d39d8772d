"""The operations on stagings: rows wait outside of their queue and are put together, once for each key.

Staged rows belong to a unit of kind "staging", with their counts in a `StagingRow`. They are not on any queue, so
several stagings can run in parallel with each other and with puts; only the requests of one staging run one after
another. The put checks everything, then the backend moves the rows, and the ledger records the batch (spark 3).
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Sequence

from ...errors import (
    Fenced,
    NotOpenFor,
    PutInhibited,
    QueueDeleted,
    QueueFull,
    Reason,
    StagingGone,
    UnitExists,
    bad_argument,
    written,
)
from ...model.parameters import Seconds, Text, is_storable
from ...rules.ordering import Moment, draws_number
from ...rules.staged_columns import Columns, addressed, check_columns, complete
from ...rules.staging import check_room
from ..seam.damage import damaged, only
from ..seam.records import (
    BATCH_LENGTH_MAX,
    LEDGER_BATCHES_MAX,
    UNIT_NAME_LENGTH_MAX,
    LedgerKey,
    Noted,
    Settled,
    Staged,
    StageRequest,
)
from ..seam.tables import LedgerRow, StagingRow, UnitRow, UpTo
from . import authority, points
from .catalog import Catalog
from .operation import Operation
from .process import OpenHandle
from .queue import LocalQueue
from .reports import report_placed
from .settling import discard

LASTS = Seconds(0, 1e9, above=True)
NAME = Text(UNIT_NAME_LENGTH_MAX, least=1)


# --- checks


def check_name(argument: str, name: object) -> None:
    """Raises: ArgumentError, if it cannot be the name of a staging."""
    NAME.check(argument, name)


def check_request(request: StageRequest) -> Columns:
    """Returns the columns of a request in stored form. Raises: ArgumentError; CallerError 2027, 2253."""
    check_name("name", request.name)
    count, lasts = request.count, request.lasts
    if not isinstance(count, int) or isinstance(count, bool) or count < 0:
        raise bad_argument("count", count, "the number of rows, 0 or more")
    LASTS.check("lasts", lasts)
    return check_columns(request.columns, count)


def check_settle(key: LedgerKey, stagings: Sequence[Staged], after: str | None) -> None:
    """Raises: ArgumentError, if a part of the key or a staging is not valid, or a staging is given twice."""
    check_key(key)
    if after is not None and not (isinstance(after, str) and is_storable(after) and key.query and key.batch):
        raise bad_argument("after", after, "a batch of the key's query, from last_settled")
    for name, count in stagings:
        check_name("stagings", name)
        if not isinstance(count, int) or isinstance(count, bool) or count < 0:
            raise bad_argument("stagings", count, f"a number of rows for {name!r}, 0 or more")
    names = [name for name, _ in stagings]
    if len(set(names)) < len(names):
        raise bad_argument("stagings", names, "different names")


def check_key(key: LedgerKey) -> None:
    """Raises: ArgumentError, if a part is not a text."""
    for part, value in zip(LedgerKey._fields, key, strict=True):
        most = BATCH_LENGTH_MAX if part == "batch" else UNIT_NAME_LENGTH_MAX
        if not isinstance(value, str) or len(value) > most or not is_storable(value):
            raise bad_argument(part, value, f"a text of at most {most:,} characters")


# --- staging


def that_are_over(operation: Operation) -> list[int]:
    """Returns the units of expired stagings."""
    return [one.unit for one in operation.backend.select(StagingRow, expires_at=UpTo(operation.now))]


def found(operation: Operation, name: str) -> tuple[UnitRow, StagingRow] | None:
    """Returns the staging of this name, which may have expired, or None."""
    units = operation.backend.select(UnitRow, kind="staging", name=name)
    return (units[0], _staging_of(operation, units[0])) if units else None


def found_all(operation: Operation, names: Iterable[str]) -> dict[str, tuple[UnitRow, StagingRow]]:
    """Returns the stagings of these names, some of which may have expired.

    The operation has read the queue of each and holds the stagings, so they do not change until its end.
    """
    names, come_to = list(names), set[int]()
    while True:
        units = [unit for name in names for unit in operation.backend.select(UnitRow, kind="staging", name=name)]
        queues = {_queue(unit) for unit in units}
        if queues <= come_to:
            return {unit.name: (unit, _staging_of(operation, unit)) for unit in units}
        for number in sorted(queues - come_to):
            with contextlib.suppress(QueueDeleted):  # its stagings were deleted with it
                operation.queue(number)
        come_to |= queues
        operation.backend.hold_stagings(sorted(unit.name for unit in units), begins=False)


def _staging_of(operation: Operation, unit: UnitRow) -> StagingRow:
    return only(operation.backend.select(StagingRow, unit=unit.id), f"staging {unit.name!r}")


def stage(operation: Operation, handle: OpenHandle, queue: LocalQueue, request: StageRequest, columns: Columns) -> None:
    """Adds rows to a staging, beginning it if necessary, and sets when it expires.

    Whether the queue itself allows puts is checked when they are put.
    """
    if not handle.options.output:
        raise NotOpenFor(f"this handle of {handle.name} is not open for output", reason=Reason.NOT_OPEN_FOR_OUTPUT)
    resolved = queue.attributes if handle.is_direct else Catalog(operation).resolved_for_put(handle, queue.attributes)
    operation.backend.hold_stagings([request.name], begins=True)
    known = found(operation, request.name)
    if known is not None and known[1].expires_at <= operation.now:
        drop(operation, known[1])
        known = None
    if known is not None and known[0].queue != queue.id:
        raise UnitExists(f"{request.name!r} stages rows for another queue", unit=request.name)
    if request.is_bounded:
        _check_bound(operation, handle, queue, request.count)
    program = handle.connection.program
    columns = addressed(
        columns, request.count, resolved, handle.transmission, operation.store.definitions.names.reply_to
    )
    batch = complete(columns, request.count, resolved, operation.manager, program, operation.now, operation.numbers)
    user = handle.connection.user
    if user is not None:
        asked = (batch.columns[name] for name in ("report", "reply_to_queue", "reply_to_queue_manager"))
        authority.check(operation, user, zip(*asked, strict=True))
    if known is None:
        unit = operation.begin_unit(handle.connection.holder, "staging", request.name, queue.id)
        before = StagingRow(unit.id, operation.now, 0, 0, 0, 0, 0, 0, 0)
    else:
        before = known[1]
    operation.backend.stage(before.unit, before.messages, batch)
    operation.backend.save(
        StagingRow(
            before.unit,
            operation.now + request.lasts,
            before.given + batch.given,
            before.messages + len(batch.numbers),
            before.size + batch.size,
            before.has_keys or batch.has_keys,
            before.has_order or batch.has_order,
            before.has_numbers or (batch.has_numbers and request.checks_numbers),
            before.has_reports or (batch.has_reports and request.arrives),
        )
    )
    operation.durable = True


def _check_bound(operation: Operation, handle: OpenHandle, queue: LocalQueue, rows: int) -> None:
    """Checks the rows of all stagings of the handle's user for the queue. Raises: QueueFull 2053."""
    user, most = handle.connection.holder.user, queue.attributes.max_depth
    units = operation.backend.select(UnitRow, kind="staging", queue=queue.id)
    before = sum(_staging_of(operation, one).given for one in units if one.user == user)
    if before + rows > most:
        raise QueueFull(
            f"user {user} has staged {before:,} rows for {queue.attributes.name}; {rows:,} more would exceed its limit "
            f"of {most:,}. Put or undo the stagings that are not needed, or wait until they expire",
            queue=queue.attributes.name,
            depth=before,
        )


def drop(operation: Operation, staging: StagingRow) -> None:
    """Deletes a staging with its rows."""
    _end(operation, staging, drops=True)
    operation.durable = True


def _end(operation: Operation, staging: StagingRow, *, drops: bool) -> None:
    operation.backend.end_staging(staging, drops=drops)
    operation.backend.remove_records(StagingRow, unit=staging.unit)
    operation.end_unit(staging.unit)


# --- settling


def noted(operation: Operation, queue: LocalQueue, key: LedgerKey) -> Noted | None:
    """Returns the ledger's entry for a key on a queue; None: none, or it was forgotten."""
    found = operation.backend.select(LedgerRow, queue=queue.id, **key._asdict()) if key.batch else []
    return Noted(found[0].committed_at, found[0].messages) if found else None


def last_noted(operation: Operation, queue: LocalQueue, application: str, query: str) -> str:
    """Returns the last settled batch of a query on a queue; empty: none."""
    found = operation.backend.select(LedgerRow, queue=queue.id, application=application, query=query)
    return found[-1].batch if found else ""


class Settling:
    """One settle in one operation: checks everything, then writes."""

    def __init__(
        self,
        operation: Operation,
        key: LedgerKey,
        stagings: Sequence[Staged],
        after: str | None = None,
        user: str | None = None,
    ) -> None:
        self._operation, self._key, self._stagings, self._after = operation, key, stagings, after
        self._put_by = authority.mark_of(operation, user)
        self._found = found_all(operation, [one.name for one in stagings])

    def run(self) -> Settled:
        """Settles. Raises: Fenced, StagingGone, PutInhibited, QueueFull, InconsistentCall; nothing has changed then."""
        operation = self._operation
        queues = {_queue(unit): operation.queue(_queue(unit)) for unit, _ in self._chosen()}
        done = {number for number, queue in queues.items() if noted(operation, queue, self._key) is not None}
        if not self._found or done != queues.keys():
            self._check_there(done)
        for number in queues.keys() - done:
            self._check_turn(queues[number])
        put = {
            number: [staging for unit, staging in self._chosen() if unit.queue == number]
            for number in queues
            if number not in done
        }
        for number, stagings in put.items():
            self._check(queues[number], stagings)
        messages = sum(self._put(queues[number], stagings) for number, stagings in put.items())
        if points.reached:
            points.reached("settled-staging")
        for unit, staging in self._found.values():
            _end(operation, staging, drops=_queue(unit) in done)
        for number, stagings in put.items():
            self._note(number, sum(one.messages for one in stagings))
        operation.durable = True
        return Settled(bool(queues) and done == queues.keys(), messages)

    def _chosen(self) -> Iterator[tuple[UnitRow, StagingRow]]:
        """Yields the existing stagings, in the order of the call."""
        return (self._found[one.name] for one in self._stagings if one.name in self._found)

    def _check_there(self, done: set[int]) -> None:
        """Checks that each staging exists with all its rows. Raises: StagingGone."""
        for one in self._stagings:
            known = self._found.get(one.name)
            if known is not None and _queue(known[0]) in done:
                continue
            if known is None or known[1].expires_at <= self._operation.now:
                raise StagingGone(
                    f"staging {one.name!r} does not exist: it was undone, settled or has expired, or its queue was "
                    "deleted; write the batch again",
                    staging=one.name,
                )
            if (given := known[1].given) != one.count:
                raise StagingGone(
                    f"staging {one.name!r} has {given:,} rows, not {one.count:,}; write the batch again",
                    staging=one.name,
                    found=given,
                    count=one.count,
                )

    def _check_turn(self, queue: LocalQueue) -> None:
        """Checks that no other writer has settled a batch of the query meanwhile. Raises: Fenced."""
        if self._after is None:
            return
        last = last_noted(self._operation, queue, self._key.application, self._key.query)
        if last != self._after:
            raise Fenced(
                f"{written(self._key.application)} has another writer on {queue.attributes.name}: the last batch in "
                f"the ledger is {written(last)}, but this writer continues after {written(self._after)}. Only one "
                "writer may run under a name; the rows that this one staged were not put",
                application=self._key.application,
                last=last,
                after=self._after,
            )

    def _check(self, queue: LocalQueue, stagings: Sequence[StagingRow]) -> None:
        if not queue.attributes.put_allowed:
            raise PutInhibited(f"puts to {queue.attributes.name} are inhibited", queue=queue.attributes.name)
        discard(self._operation, queue)
        check_room(queue.attributes, queue.depth, sum(one.given for one in stagings))

    def _put(self, queue: LocalQueue, stagings: Sequence[StagingRow]) -> int:
        """Puts all rows staged for one queue. Returns the number of messages."""
        operation, total = self._operation, sum(one.messages for one in stagings)
        if not total:
            return 0
        own = draws_number(queue.attributes.order, Moment.PUT)
        first = queue.draw_number(total if own else 1)
        tells = operation.store.changes.is_watched or queue.attributes.trigger_control
        put = operation.backend.put_staged(queue, stagings, first, operation.now, self._put_by, own=own, tells=tells)
        queue.count(total)
        queue.arrived += total
        change = operation.touch(queue)
        change.put.extend(put)
        change.visible.extend(put)
        if any(one.has_reports for one in stagings):
            report_placed(operation, queue, first)
        if queue.attributes.trigger_control:
            operation.note_arrivals(queue, put)
        return total

    def _note(self, queue: int, messages: int) -> None:
        if not self._key.batch:
            return
        backend, key, last = self._operation.backend, self._key, 0
        if key.query:  # a streaming query repeats only its latest batches
            alike = backend.select(LedgerRow, queue=queue, application=key.application, query=key.query)
            last = alike[-1].id if alike else 0
            for old in alike[: max(0, len(alike) + 1 - LEDGER_BATCHES_MAX)]:
                backend.remove_records(LedgerRow, id=old.id)
        number = self._operation.number_after(last)  # the latest has the highest id, whichever process drew it
        backend.save(LedgerRow(number, queue, *key, messages, self._operation.now))


def _queue(unit: UnitRow) -> int:
    if unit.queue is None:
        raise damaged(f"staging {unit.name!r}", "it is for no queue")
    return unit.queue
