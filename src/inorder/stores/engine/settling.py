"""Applies events to messages, one by one or for a whole unit: commit, back out, prepare, expiry.

A row changes its state here, by an event and the life-cycle table; otherwise it is only removed with its queue or at a
restart. Settling a unit moves all rows of each state at once, to the next state in the same table.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ...errors import InconsistentCall, Reason, UnitExists, UnitNotFound, WrongState
from ...model.message import LAST_IN_GROUP, Message, Place, stored_flags
from ...rules.grouping import GroupState
from ...rules.leases import deadline
from ...rules.lifecycle import Event, Presented, State, StepAnswer, adds_backout, becomes_visible, step
from ...rules.ordering import Moment, draws_number
from ...rules.retries import Later, failed, noted
from ..seam.backend import Share
from ..seam.queued import GOT, HELD, LOCKS, QueuedMessage
from ..seam.records import Outcome
from ..seam.tables import LeaseRow, UnitRow, UpTo
from . import group_readers, putkeys
from .operation import Operation
from .process import OpenConnection, OpenHandle
from .queue import LocalQueue
from .reports import report_expired, report_settled, report_step

DISCARD_STEP = 1000  # expired messages discarded at once
ALL = 2**62
PUT = State.PUT_UNCONFIRMED


# --- single steps


def give_number(operation: Operation, queue: LocalQueue, row: QueuedMessage) -> QueuedMessage:
    """Draws the number of a single message that is confirmed, if it has none yet (A-26, B-53b)."""
    if row.placed:
        return row
    placed = row._replace(place=Place(row.rank, queue.draw_number(), 0))
    operation.backend.write(row, placed)
    return placed


def happen(
    operation: Operation,
    queue: LocalQueue,
    row: QueuedMessage,
    event: Event,
    unit: UnitRow | None = None,
    *,
    presents: Presented = Presented.NONE,
    **values: Any,
) -> QueuedMessage | None:
    """Applies one event to one row. Returns the row in its new state, or None if it has been removed.

    The table must allow the event.

    Args:
        unit: the unit that will hold the row, if the event is a held one.
        presents: the lock that the caller presents.
        values: further changes of the event: the lock of a browse.
    """
    before, (answer, after) = row.state, step(row.state, event, presents)
    assert answer is StepAnswer.DONE, (before, event, answer)
    if after is None:
        return row
    if queue.state.has_reports:
        report_step(operation, queue, row, event, after)
    _promise(operation, row, event, unit)
    _note_idle(operation, row, after)
    change = operation.touch(queue)
    shows = becomes_visible(before, after)
    if shows and operation.store.changes.is_watched:
        change.visible.append(operation.backend.read([row])[0].message)
    is_lost = after is State.UNLOCKED and row.forgotten and not shows
    if after is State.ABSENT or is_lost:  # a message that a restart has lost does not return
        queue.count(row.away - 1)
        operation.backend.remove([row], before)
        return None
    changed = _changed(operation, row, before, after, unit)._replace(**values)
    queue.count(row.away - changed.away)
    operation.backend.write(row, changed)
    if queue.attributes.trigger_control and after is State.UNLOCKED:
        if shows:
            operation.note_arrivals(queue, [operation.backend.read([row], 0)[0].message])
        elif row.unit is not None or row.lock is not None:
            operation.note_returns(queue, [row])
    return changed


def _changed(
    operation: Operation, row: QueuedMessage, before: State, after: State, unit: UnitRow | None
) -> QueuedMessage:
    held = row.unit if after in HELD and unit is None else None if unit is None else unit.id
    is_away = row.away if unit is None else unit.kind in ("session", "prepared", "lease")
    shows = becomes_visible(before, after)
    locked = after in LOCKS
    return row._replace(
        state=after,
        unit=held,
        away=is_away and after in GOT,
        claimed=row.claimed if held is not None else 0,
        visible_at=operation.now if shows else row.visible_at,
        forgotten=row.forgotten and not shows,
        backouts=row.backouts + adds_backout(before, after),
        locked_handle=row.locked_handle if locked else None,
        locked_at=row.locked_at if locked else None,
        lock=row.lock if locked else None,
        lock_confirm=row.lock_confirm if locked else 0,
    )


def _note_idle(operation: Operation, row: QueuedMessage, after: State) -> None:
    if after not in HELD and row.unit is not None and operation.unit(row.unit).kind == "confirm":
        operation.idle.add(row.unit)
    if after not in LOCKS and row.lock is not None:
        operation.idle.add(row.lock)


def _promise(operation: Operation, row: QueuedMessage, event: Event, unit: UnitRow | None) -> None:
    """Removals of persistent messages, and all changes of named units, must be on disk when the call returns."""
    if event is Event.GET:
        operation.durable |= bool(row.message.persistent) or row.lock is not None
    elif event is Event.GET_HELD and unit is not None:
        operation.durable |= unit.kind != "session"


# --- time


def tidied(operation: Operation, handle: OpenHandle) -> LocalQueue:
    """Returns the handle's queue after `tidy`."""
    queue = operation.queue(handle.queue, handle.queue_name, handle.name)
    return tidy(operation, queue) if queue.has_work(operation.now) else queue


def tidy(operation: Operation, queue: LocalQueue) -> LocalQueue:
    """Discards expired messages, ends expired locks, and makes due messages available, in a separate step.

    The step stays if the operation fails.
    """
    discard(operation, queue)
    end_leases(operation, queue)
    operation.keep()
    return operation.queue(queue.id)


def discard(operation: Operation, queue: LocalQueue, limit: int | None = None) -> int:
    """Discards expired messages and returns how many (R6.2). Also makes due messages available."""
    _, _, _, expiry, due, *_ = queue.state
    if min(ALL if expiry is None else expiry, ALL if due is None else due) > operation.now:
        return 0
    assert all(step(state, Event.EXPIRE).to is State.ABSENT for state in State if state), "all expire alike"
    total, room = 0, math.inf if limit is None else limit
    while room > total:
        most = int(min(DISCARD_STEP, room - total))
        messages = _about_to_expire(operation, queue, most)
        gone = operation.backend.expire(queue.id, operation.now, most)
        operation.idle.update(gone.units)
        queue.count(-gone.total)
        total += gone.total
        if messages:
            operation.touch(queue).expired.extend(messages)
        if gone.total < most:
            break
    if total:
        operation.touch(queue).discarded += total
        operation.has_discarded = True
    return total


def _about_to_expire(operation: Operation, queue: LocalQueue, most: int) -> Sequence[Message]:
    """Sends the reports about messages that will be discarded. Returns the messages if there are listeners for them."""
    is_watched, reports = operation.store.changes.is_watched, queue.state.has_reports
    rows = operation.backend.rows(most, queue=queue.id, over=operation.now) if is_watched or reports else ()
    if reports:
        report_expired(operation, queue, rows)
    return [row.message for row in operation.backend.read(rows)] if is_watched else ()


def end_leases(operation: Operation, queue: LocalQueue) -> None:
    """Ends lock ids whose lease is over: their messages are unlocked, and gets made under them continue (A-19)."""
    if queue.state.next_lease_end is None or queue.state.next_lease_end > operation.now:
        return
    for unit in operation.backend.select(UnitRow, queue=queue.id, lease_ends_at=UpTo(operation.now)):
        for row in operation.backend.rows(lock=unit.id):
            happen(operation, queue, row, Event.END_LEASE)


def lease_end(operation: Operation) -> float | None:
    """Returns when the first lease ends, by the clock of this process; its messages may be available then."""
    rows = operation.backend.select(LeaseRow)
    if not rows:
        return None
    now = operation.backend.common_time(operation.now)
    return operation.now + min(deadline(one.ends_at, one.seconds, now) for one in rows) - now


def earliest(one: float | None, other: float | None) -> float | None:
    """Returns the earlier of two times, either of which may be None."""
    return min((time for time in (one, other) if time is not None), default=None)


# --- whole units


def settle(
    operation: Operation,
    unit: int,
    outcome: Outcome,
    *,
    was_given: bool = True,
    delivers: bool = True,
    arrives: bool = True,
) -> None:
    """Confirms or backs out everything that a unit holds (R5.2, R5.3).

    Args:
        was_given: a reader got the messages, which cost an attempt, so a return counts as a back out (A-40).
        delivers: the messages got have reached their reader, so COD is reported; False: they went to another queue.
        arrives: the messages put are new, so COA is reported; False: they were on another queue before.

    Raises: StoreDamaged, as `draw_numbers`.
    """
    shares = operation.backend.shares(unit)
    if outcome == "commit":
        draw_numbers(operation, unit, shares, Moment.COMMIT)
    discarded = 0
    for share in shares:
        if share.expires and share.state is PUT:
            discarded += discard(operation, operation.queue(share.queue))
    if discarded:  # messages that expired before they were visible
        shares = operation.backend.shares(unit)
        if outcome == "commit":  # the unit may now hold expiration reports
            draw_numbers(operation, unit, shares, Moment.COMMIT)
    for share in shares:
        queue = operation.queue(share.queue)
        if queue.has_entries:
            group_readers.settle(queue, unit, outcome)
    event = Event.CONFIRM if outcome == "commit" else Event.BACK_OUT
    for share in shares:
        queue = operation.queue(share.queue)
        operation.touch(queue)
        if share.persistent and outcome == "commit":
            operation.durable = True
        answer, after = step(share.state, event)
        assert answer is StepAnswer.DONE, (share.state, event, answer)
        assert after is not None, (share.state, event)
        if outcome == "commit" and queue.state.has_reports and (arrives if share.state is PUT else delivers):
            report_settled(operation, unit, queue, share.state)
        if after is State.UNLOCKED:
            _show(operation, unit, queue, share.state)
        backouts = int(was_given and adds_backout(share.state, after))
        operation.idle.update(operation.backend.move(unit, share, after, operation.now, backouts))
        queue.count(share.away * share.messages - (share.messages if after is State.ABSENT else 0))
        if share.forgotten and after is State.UNLOCKED and not becomes_visible(share.state, after):
            _remove_forgotten(operation, queue)


def put_off(operation: Operation, unit: int, later: Later) -> None:
    """Hides the messages that a unit got for a while after its back out.

    The error is stored with the first message of each queue, or with the one that is given up.

    On disk when the call returns, so that an attempt counts even if the machine fails.
    """
    for share in operation.backend.shares(unit):
        if share.state not in GOT:
            continue
        operation.durable |= share.persistent > 0
        operation.queue(share.queue)
        if later.delay:
            operation.backend.delay_gets(unit, share, operation.now + later.delay)
    if later.error:
        for row in _failed(operation, unit, later):
            (whole,) = operation.backend.read([row])
            failure = failed(whole.message, later, operation.now, row.backouts + later.counts)
            operation.backend.describe(row, whole.message.with_values(properties=noted(whole.message, failure)))


def _failed(operation: Operation, unit: int, later: Later) -> Sequence[QueuedMessage]:
    """Returns the message that is given up, and the first that the unit got on each other queue; for a group its first
    message.
    """
    uid = None if later.given_up is None else later.given_up.uid

    def turn(row: QueuedMessage) -> tuple[bool, int, int, Place]:
        return row.message.uid != uid, row.message.sequence_number, row.message.offset, row.place

    first: dict[int, QueuedMessage] = {}
    for row in operation.backend.rows(unit=unit):
        if row.state in GOT and (row.queue not in first or turn(row) < turn(first[row.queue])):
            first[row.queue] = row
    return list(first.values())


def settle_and_end(operation: Operation, unit: int, outcome: Outcome) -> None:
    """Commits or backs out a unit with its keys, and removes its record."""
    settle(operation, unit, outcome)
    putkeys.settle(operation, unit, outcome)
    operation.end_unit(unit)


def settle_lease(operation: Operation, unit: int, outcome: Outcome) -> None:
    """Commits or backs out a lease, and ends it."""
    operation.backend.remove_records(LeaseRow, unit=unit)
    settle_and_end(operation, unit, outcome)
    operation.durable = True


def draw_numbers(operation: Operation, unit: int, shares: Sequence[Share], moment: Moment) -> None:
    """Draws one number for the unit on each queue whose order rule draws it at this moment; within the number the order
    of puts counts (B-5).

    Raises: StoreDamaged, the store does not know the unit, because it was restored.
    """
    if not shares:
        operation.unit(unit)
    for one in shares:
        if one.unplaced:
            queue = operation.queue(one.queue)
            if draws_number(queue.attributes.order, moment):
                operation.backend.number_unit(unit, queue.id, queue.draw_number())


def _show(operation: Operation, unit: int, queue: LocalQueue, before: State) -> None:
    """Notes that the unit's messages on a queue in one state are about to become visible."""
    triggers = queue.attributes.trigger_control
    if not becomes_visible(before, State.UNLOCKED):
        if triggers:
            operation.note_returns(queue, _held(operation, unit, queue, before))
    elif triggers or operation.store.changes.is_watched:
        messages = [row.message for row in operation.backend.read(_held(operation, unit, queue, PUT), 0)]
        operation.touch(queue).visible.extend(messages)
        if triggers:
            operation.note_arrivals(queue, messages)


def _held(operation: Operation, unit: int, queue: LocalQueue, state: State) -> list[QueuedMessage]:
    return [row for row in operation.backend.rows(unit=unit) if row.queue == queue.id and row.state is state]


def _remove_forgotten(operation: Operation, queue: LocalQueue) -> None:
    """Removes messages that a restart has lost, instead of returning them."""
    rows = operation.backend.rows(queue=queue.id, forgotten=True)
    operation.backend.remove(rows, State.UNLOCKED)
    queue.count(-len(rows))


def prepare(operation: Operation, connection: OpenConnection, name: str) -> None:
    """Gives the connection's unit a name; it then outlives the connection (R5.10)."""
    if operation.backend.select(UnitRow, kind="prepared", name=name):
        raise UnitExists(f"a unit named {name!r} is already prepared", unit=name)
    if connection.unit is None:
        raise UnitNotFound("the connection has no unit of work to prepare", unit=name)
    if connection.is_leased:
        raise WrongState("a lease cannot be prepared: commit it, or extend it")
    unit = operation.unit(connection.unit)
    shares = operation.backend.shares(unit.id)
    draw_numbers(operation, unit.id, shares, Moment.PREPARE)
    operation.backend.save(unit._replace(kind="prepared", name=name, connection=None, user=connection.holder.user))
    for share in shares:
        queue = operation.queue(share.queue)
        operation.touch(queue)
        group_readers.settle(queue, unit.id, "prepare")
    operation.leave_unit(connection, None)
    operation.durable = True


# --- groups that a handle is putting


def end_group(operation: Operation, handle: OpenHandle, state: GroupState) -> GroupState:
    """Marks the message that the handle put last, with all its segments, as the last of its group."""
    if state.message_open:
        raise InconsistentCall("the last message of the group has no last segment", reason=Reason.INCOMPLETE_MSG)
    if not state.group_open:
        raise WrongState("the handle has no group open")
    queue = operation.queue_of(handle)
    pieces = _put_in_unit(operation, handle, queue, state, first=state.sequence_number)
    if sum(row.message.length for row in pieces) != state.offset + state.length or not pieces:
        raise WrongState("the last message of the group is already committed: put the last one with last=True")
    for row in pieces:
        flags = stored_flags(row.message.flags | LAST_IN_GROUP)
        operation.backend.write(row, row._replace(message=row.message.with_values(flags=flags)))
    operation.touch(queue)
    return state._replace(flags=stored_flags(state.flags | LAST_IN_GROUP))


def withdraw(operation: Operation, handle: OpenHandle, state: GroupState, *, whole_group: bool) -> None:
    """Removes the handle's puts in its unit that belong to the logical message or group (R2.26)."""
    if not (state.group_open if whole_group else state.message_open):
        raise WrongState("the handle has no group or message open to withdraw")
    queue = operation.queue_of(handle)
    for row in _put_in_unit(operation, handle, queue, state, first=1 if whole_group else state.sequence_number):
        happen(operation, queue, row, Event.BACK_OUT)


def _put_in_unit(
    operation: Operation, handle: OpenHandle, queue: LocalQueue, state: GroupState, *, first: int
) -> Sequence[QueuedMessage]:
    """Returns the messages of the group in `state` that the handle's unit has put, between this sequence number and
    that of `state`.
    """
    if handle.connection.is_leased:
        operation.lease_of(handle.connection)
    if handle.connection.unit is None:
        return ()
    rows = operation.backend.rows(
        queue=queue.id, group_id=state.group_id, unit=handle.connection.unit, first=first, state=PUT
    )
    return [row for row in rows if row.message.sequence_number <= state.sequence_number]
