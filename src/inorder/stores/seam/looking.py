"""A row as an operator sees it, and its position in a listing."""

from __future__ import annotations

import json
from collections.abc import Callable

from ...model.message import ANY_GROUP, ANY_SEGMENT, NO_ID, Message, Place
from ...rules.grouping import is_head
from ...rules.lifecycle import State
from ...rules.ordering import Pending, PendingKind
from ...rules.puts import Program
from .damage import decodes
from .queued import NEVER, QueuedMessage, as_got
from .tables import UnitRow
from .views import UNPLACED, WITH_HEAD, WITHOUT_HEAD, Holder, MessageView, Position, SightState

NUMBERED = ANY_GROUP | ANY_SEGMENT


def group_of(message: Message) -> bytes:
    """The id under which logical order groups a message with others; NO_ID: it is in no group."""
    return message.group_id if message.flags & NUMBERED else NO_ID


def physical_position(row: QueuedMessage) -> Position:
    """The position in the order of places; messages without a place come last, by their numbers."""
    return Position(WITH_HEAD, row.place, place=row.place) if row.placed else unplaced_position(row)


def unplaced_position(row: QueuedMessage) -> Position:
    """The position of a message without a place: last, by its number, so each process's puts stay in order."""
    return Position(UNPLACED, number=row.number)


def logical_position(row: QueuedMessage, first: QueuedMessage) -> Position:
    """The position in logical order of a row that has a place; `first`: the first remaining member of its group, or the
    row itself.
    """
    message = row.message
    stage = WITH_HEAD if is_head(first.message) else WITHOUT_HEAD
    numbers = message.sequence_number, message.offset
    return Position(stage, first.place, group_of(message), *numbers, row.place)


def logical_key(row: QueuedMessage) -> tuple[int, int, Place]:
    """The order within a group."""
    return row.message.sequence_number, row.message.offset, row.place


def sight_of(row: QueuedMessage, position: Position, now: float, holder: Holder | None) -> MessageView:
    """Returns a row as an operator sees it; its message has been read, and its body cut."""
    message = as_got(row, now)
    return MessageView(
        position=position,
        state=_state_of(row, now, holder),
        holder=holder,
        message=message if row.placed else message.with_values(place=None),
        visible_since=None if row.visible_at == NEVER else row.visible_at,
        due_at=row.due_at if row.due_at > now else None,
    )


def _state_of(row: QueuedMessage, now: float, holder: Holder | None) -> SightState:
    if row.unit is not None:
        if holder is not None and holder.kind == "claim":
            return "claimed"
        return "put" if row.state is State.PUT_UNCONFIRMED else "got"
    if row.state is State.LOCKED:
        return "locked"
    return "delayed" if row.due_at > now else "available"


def holder_of(
    row: QueuedMessage,
    unit_of: Callable[[int], UnitRow],
    whose_handle: Callable[[int], tuple[int, str]],
    owner_of: Callable[[int], tuple[Program, int | None]],
) -> Holder | None:
    """The unit or handle that keeps a message from others; None if it is available or delayed.

    Args:
        owner_of: returns a connection's program and the id of its process.
    """
    if row.unit is not None:
        unit = unit_of(row.unit)
        assert unit.kind != "staging"
        process = None if unit.connection is None else owner_of(unit.connection)[1]
        return Holder(unit.kind, unit.name, unit.by, unit.started_at, unit.connection, process)
    if row.locked_handle is not None:
        connection, _ = whose_handle(row.locked_handle)
        program, process = owner_of(connection)
        return Holder("handle", "", program, row.locked_at or 0.0, connection, process)
    if row.lock is not None:
        unit = unit_of(row.lock)
        return Holder("lock", unit.name, unit.by, unit.started_at)
    return None


def pending_as_text(pending: Pending | None) -> str | None:
    """The message that a call waits for, as JSON for storing."""
    return None if pending is None else json.dumps([pending.kind.value, *pending[1:]])


@decodes("what a call waits for")
def pending_from_text(text: str) -> Pending:
    """The reverse of `pending_as_text`."""
    kind, place, holder, by, since, own = json.loads(text)
    return Pending(PendingKind(kind), Place(*place), holder, by, since, own)
