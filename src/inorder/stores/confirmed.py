"""Confirmed calls: browse and lock, one message by its unique id, undo (lifecycle A); for every store."""

from __future__ import annotations

from itertools import islice

from ..errors import ConfirmIdMismatch, LockMismatch, NotFound, Reason, WrongState
from ..message import Message, UniqueId
from ..rules.grouping import Wanted
from ..rules.lifecycle import REFUSALS, Answer, Event, Lock, State, step
from .base import Locked, LockRequest, OneMessage
from .rows import HeldLock, HeldUnit, Reader, Row, as_got
from .shelf import Handle, Q, Shelf, Transaction, U

CONFIRMS = (Event.CONFIRM_PUT, Event.CONFIRM_GET)
ERRORS = {Reason.LOCK_MISMATCH: LockMismatch, Reason.NOT_FOUND: NotFound, Reason.WRONG_STATE: WrongState}


def browse_and_lock(verb: Transaction[Q, U], handle: Handle[U], queue: Q, request: LockRequest) -> Locked:
    """What is available and matches, or the first so many, is locked under one id; nothing that comes later (A-13)."""
    messages: list[Message] = []
    reader = Reader(handle.id, handle.connection.id, co_op=False, now=verb.now, mark_interval=0.0)
    unit, lock_id = verb.lock_unit(handle, queue, request.lease)
    found = islice(queue.find_all(Wanted(match=request.match), reader), request.most)
    for row in queue.read(list(found)):
        if row.state is State.LOCKED:  # by this handle's own browse lock: the lock id takes over
            verb.step(queue, row, Event.UNLOCK, lock=Lock.RIGHT)
        verb.lock(queue, row, HeldLock(unit, lock_id, request.confirm_id))
        messages.append(as_got(row, verb.now))
    return Locked(messages, lock_id)


def one_message(verb: Transaction[Q, U], queue: Q, request: OneMessage) -> Reason | None:
    """One event happens to one message, if table A.3 lets it; the warning NOT_FOUND of a confirm of nothing."""
    row = queue.by_uid(request.uid)
    state = State.ABSENT if row is None else row.state
    lock = Lock.NONE if row is None else _presented(row, request.lock_id)
    answer, _ = step(state, request.event, lock)
    if answer is Answer.IGNORED_WARNING:
        return Reason.NOT_FOUND
    if answer in REFUSALS:
        raise ERRORS[REFUSALS[answer]](f"{request.uid}: {answer.value} ({state.name.lower()})", uid=request.uid)
    if answer is not Answer.DONE:
        return None
    assert row is not None
    if request.event in CONFIRMS:
        _check_confirm(row, request)
        if request.event is Event.CONFIRM_PUT:
            verb.give_number(queue, row)
    verb.step(queue, row, request.event, lock=lock)
    return None


def _presented(row: Row, lock_id: int) -> Lock:
    if not lock_id:
        return Lock.NONE
    return Lock.RIGHT if row.lock is not None and row.lock.lock_id == lock_id else Lock.OTHER


def _check_confirm(row: Row, request: OneMessage) -> None:
    """Only a confirm id is confirmed message by message; if it is named it must be the right one (A-11)."""
    assert row.unit is not None
    if row.unit.kind != "confirm":
        raise WrongState(f"{request.uid} is held by a unit of work, not by a confirm id", uid=request.uid)
    if request.confirm_id and row.unit.name != str(request.confirm_id):
        raise ConfirmIdMismatch(f"{request.uid} is held under another confirm id", uid=request.uid)


def undo(verb: Transaction[Q, U], queue: Q, confirm_id: int) -> int:
    """What was put, got and locked under the id goes back to before (A-15 to A-17)."""
    unit, rows = queue.held_under(confirm_id)
    if unit is not None:
        verb.back_out_of_groups(queue, unit)
    undone = 0
    for row in rows:
        event = _undoing(row, unit, confirm_id)
        if event is not None:
            verb.step(queue, row, event)
            undone += 1
    if not undone:
        raise _nothing_held(queue, confirm_id)
    return undone


def _undoing(row: Row, unit: HeldUnit | None, confirm_id: int) -> Event | None:
    held = unit is not None and row.unit is unit
    locked = row.lock is not None and 0 != row.lock.confirm_id == confirm_id
    if held:
        return Event.UNDO_BOTH if locked else Event.BACK_OUT
    return Event.UNDO_LOCK if locked and row.state is State.LOCKED else None


def release_lock(verb: Transaction[Q, U], queue: Q, lock_id: int) -> int:
    """Everything that the lock id still locks is unlocked (A-19)."""
    rows = [row for row in queue.locked_under(lock_id) if row.state is State.LOCKED]
    for row in rows:
        verb.step(queue, row, Event.UNDO_LOCK)
    if not rows:
        raise _nothing_locked(queue, lock_id)
    return len(rows)


def unique_ids(queue: Shelf, confirm_id: int, lock_id: int) -> list[UniqueId]:
    """What stands under a confirm id, as far as its undo would act on it, or under a lock id; in queue order."""
    if confirm_id:
        unit, held = queue.held_under(confirm_id)
        rows = [row for row in held if _undoing(row, unit, confirm_id) is not None]
        if not rows:
            raise _nothing_held(queue, confirm_id)
    else:
        rows = list(queue.locked_under(lock_id))
        if not rows:
            raise _nothing_locked(queue, lock_id)
    return [row.message.uid for row in rows if row.message.uid is not None]


def _nothing_held(queue: Shelf, confirm_id: int) -> NotFound:
    return NotFound(f"nothing on {queue.attributes.name} is held under confirm id {confirm_id}", confirm_id=confirm_id)


def _nothing_locked(queue: Shelf, lock_id: int) -> NotFound:
    return NotFound(f"nothing on {queue.attributes.name} is locked under {lock_id}", lock_id=lock_id)
