"""Confirmed calls: browse and lock, one message by its unique id, undo (lifecycle A)."""

from __future__ import annotations

import math
from itertools import islice

from ...errors import ConfirmIdMismatch, LockMismatch, NotFound, Reason, WrongState, bad_argument
from ...model.message import Got, UniqueId
from ...rules.grouping import wanted_by
from ...rules.lifecycle import REFUSALS, Event, Presented, State, StepAnswer, step
from ...rules.ordering import UNSET
from ..seam.queued import QueuedMessage, Reader, as_got, up_to
from ..seam.records import Locked, LockRequest, OneMessage
from ..seam.tables import UnitRow
from . import group_readers
from .incremental_search import NOT_YET, Ahead, look_ahead
from .operation import Operation
from .process import OpenHandle
from .queue import LocalQueue
from .settling import give_number, happen, settle

CONFIRMS = (Event.CONFIRM_PUT, Event.CONFIRM_GET)
OF_ONE = (*CONFIRMS, Event.UNLOCK, Event.DELETE)
ERRORS = {Reason.LOCK_MISMATCH: LockMismatch, Reason.NOT_FOUND: NotFound, Reason.WRONG_STATE: WrongState}


def locker(operation: Operation, handle: OpenHandle, ahead: Ahead) -> Reader:
    """Returns a reader that searches for messages to lock.

    Args:
        ahead: how far the call has searched ahead.
    """
    return Reader(
        handle.id, handle.connection.id, operation.now, passed=ahead.passed, noted=ahead.noted, asked_at=ahead.asked_at
    )


def look_ahead_to_lock(
    operation: Operation, handle: OpenHandle, queue: LocalQueue, request: LockRequest, before: Ahead
) -> Ahead:
    """Searches one step ahead for `browse_and_lock`. Notes only new messages."""
    asked_at = operation.now if before.asked_at is None else before.asked_at
    reader = locker(operation, handle, before._replace(asked_at=asked_at))
    most = math.inf if request.most is None else request.most
    wanted = wanted_by(request.match)
    return look_ahead(queue, wanted, reader, UNSET, most, before, logical=False, strict=False)


def browse_and_lock(
    operation: Operation, handle: OpenHandle, queue: LocalQueue, request: LockRequest, ahead: Ahead = NOT_YET
) -> Locked:
    """Locks available matching messages, at most `most`, under one id; later arrivals are not locked (A-13)."""
    reader = locker(operation, handle, ahead)
    lock_id = operation.number()
    ends_at = None if request.lease is None else operation.now + request.lease
    unit = operation.begin_unit(handle.connection.holder, "lock", str(lock_id), queue.id, lease_ends_at=ends_at)
    operation.idle.add(unit.id)  # if nothing matches
    wanted = islice(queue.find_all(wanted_by(request.match), reader), request.most)
    found = list(up_to(request.most_bytes, wanted, lambda row: row.message.length))
    operation.durable |= bool(found)
    messages: list[Got] = []
    for row in operation.backend.read(found):
        taken: QueuedMessage | None = row
        if row.state is State.LOCKED:  # by this handle's own browse lock: the lock id takes over
            taken = happen(operation, queue, row, Event.UNLOCK, presents=Presented.RIGHT)
        assert taken is not None
        happen(operation, queue, taken, Event.BROWSE_LOCK, lock=unit.id, lock_confirm=request.confirm_id)
        messages.append(as_got(row, operation.now))
    return Locked(messages, lock_id)


def one_message(operation: Operation, queue: LocalQueue, request: OneMessage) -> Reason | None:
    """Applies one event to one message, if table A.3 allows it. Returns the warning NOT_FOUND for a confirm of
    nothing. Raises: ArgumentError, for an event that only the queue manager causes.
    """
    if request.event not in OF_ONE:
        raise bad_argument("event", request.event.name, f"one of {', '.join(one.name for one in OF_ONE)}")
    row = queue.by_uid(request.uid)
    state = State.ABSENT if row is None else row.state
    lock = Presented.NONE if row is None else _presented(operation, row, request.lock_id)
    answer, _ = step(state, request.event, lock)
    if answer is StepAnswer.IGNORED_WARNING:
        return Reason.NOT_FOUND
    if answer in REFUSALS:
        raise ERRORS[REFUSALS[answer]](f"{request.uid}: {answer.value} ({state.name.lower()})", uid=request.uid)
    if answer is not StepAnswer.DONE:
        return None
    assert row is not None
    if request.event in CONFIRMS:
        _check_confirm(operation, row, request)
        if request.event is Event.CONFIRM_PUT:
            row = give_number(operation, queue, row)
    happen(operation, queue, row, request.event, presents=lock)
    return None


def _presented(operation: Operation, row: QueuedMessage, lock_id: int) -> Presented:
    if not lock_id:
        return Presented.NONE
    is_right = row.lock is not None and operation.unit(row.lock).name == str(lock_id)
    return Presented.RIGHT if is_right else Presented.OTHER


def _check_confirm(operation: Operation, row: QueuedMessage, request: OneMessage) -> None:
    """Only messages under a confirm id are confirmed one by one; an id that is given must be the right one (A-11)."""
    assert row.unit is not None
    unit = operation.unit(row.unit)
    if unit.kind != "confirm":
        raise WrongState(f"{request.uid} is held by a unit of work, not by a confirm id", uid=request.uid)
    if request.confirm_id and unit.name != str(request.confirm_id):
        raise ConfirmIdMismatch(f"{request.uid} is held under another confirm id", uid=request.uid)


def undo(operation: Operation, queue: LocalQueue, confirm_id: int) -> int:
    """Undoes the puts, gets and locks under the id (A-15 to A-17)."""
    unit = operation.held_by(queue, confirm_id)
    if unit is not None and not operation.backend.rows(1, queue=queue.id, lock_confirm=confirm_id):
        held = sum(share.messages for share in operation.backend.shares(unit.id))
        if not held:
            raise _nothing_held(queue, confirm_id)
        settle(operation, unit.id, "back_out")  # without locks an undo is the back out of a unit, in one step
        operation.end_unit(unit.id)
        return held
    if unit is not None:
        group_readers.settle(queue, unit.id, "back_out")
    rows = _undone(operation, queue, unit, confirm_id)
    for row, event in rows:
        happen(operation, queue, row, event)
    if not rows:
        raise _nothing_held(queue, confirm_id)
    return len(rows)


def _undone(
    operation: Operation, queue: LocalQueue, unit: UnitRow | None, confirm_id: int
) -> list[tuple[QueuedMessage, Event]]:
    """Returns the messages under a confirm id with their undo events, in queue order, those without a place last."""
    held = () if unit is None else operation.backend.rows(unit=unit.id)
    locked = operation.backend.rows(queue=queue.id, lock_confirm=confirm_id)
    rows = {row.number: row for row in (*held, *locked)}
    ordered = sorted(rows.values(), key=lambda row: (not row.placed, row.place))
    events = ((row, _undoing(row, unit, confirm_id)) for row in ordered)
    return [(row, event) for row, event in events if event is not None]


def _undoing(row: QueuedMessage, unit: UnitRow | None, confirm_id: int) -> Event | None:
    held = unit is not None and row.unit == unit.id
    locked = row.lock is not None and 0 != row.lock_confirm == confirm_id
    if held:
        return Event.UNDO_BOTH if locked else Event.BACK_OUT
    return Event.UNDO_LOCK if locked and row.state is State.LOCKED else None


def release_lock(operation: Operation, queue: LocalQueue, lock_id: int) -> int:
    """Unlocks all messages that the lock id still locks (A-19)."""
    rows = [row for row in _locked_under(operation, queue, lock_id) if row.state is State.LOCKED]
    for row in rows:
        happen(operation, queue, row, Event.UNDO_LOCK)
    if not rows:
        raise _nothing_locked(queue, lock_id)
    return len(rows)


def _locked_under(operation: Operation, queue: LocalQueue, lock_id: int) -> list[QueuedMessage]:
    """Returns the messages that a lock id locks, and those got under it, in queue order."""
    unit = queue.named_unit("lock", str(lock_id))
    return [] if unit is None else list(operation.backend.rows(lock=unit.id))


def unique_ids(operation: Operation, queue: LocalQueue, confirm_id: int, lock_id: int) -> list[UniqueId]:
    """Returns the ids of the messages that an undo of the confirm id would change, or under a lock id, in queue
    order.
    """
    if confirm_id:
        rows = [row for row, _ in _undone(operation, queue, operation.held_by(queue, confirm_id), confirm_id)]
        if not rows:
            raise _nothing_held(queue, confirm_id)
    else:
        rows = _locked_under(operation, queue, lock_id)
        if not rows:
            raise _nothing_locked(queue, lock_id)
    return [row.message.uid for row in rows if row.message.uid is not None]


def _nothing_held(queue: LocalQueue, confirm_id: int) -> NotFound:
    return NotFound(
        f"no message on {queue.attributes.name} is held under confirm id {confirm_id}", confirm_id=confirm_id
    )


def _nothing_locked(queue: LocalQueue, lock_id: int) -> NotFound:
    return NotFound(f"nothing on {queue.attributes.name} is locked under {lock_id}", lock_id=lock_id)
