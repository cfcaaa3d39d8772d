"""What a row looks like to an operator, and where it stands in a listing: for every store alike."""

from __future__ import annotations

from collections.abc import Callable

from ..message import ANY_GROUP, ANY_SEGMENT, NO_ID, Message, Place
from ..rules.grouping import is_head
from ..rules.lifecycle import State
from ..rules.puts import Program
from .base_operating import UNPLACED, WITH_HEAD, WITHOUT_HEAD, Holder, Position, Sight, SightState
from .rows import NEVER, Reader, Row, as_got

NUMBERED = ANY_GROUP | ANY_SEGMENT
Whose = Callable[[int], tuple[Program, int | None]]  # of a connection: its program, and the id of its process


def onlooker(now: float) -> Reader:
    """Who looks at a queue without a handle: whatever anyone holds is held by others."""
    return Reader(0, 0, co_op=False, now=now, mark_interval=0.0)


def group_of(message: Message) -> bytes:
    """The id under which it stands with others in logical order; NO_ID: it stands by itself."""
    return message.group_id if message.flags & NUMBERED else NO_ID


def physical_position(row: Row) -> Position:
    """In the order of places, and what has none as it came."""
    return Position(WITH_HEAD, row.place, place=row.place) if row.placed else unplaced_position(row)


def unplaced_position(row: Row) -> Position:
    """Of what has no place yet: it comes last, as it came."""
    return Position(UNPLACED, number=row.number)


def logical_position(row: Row, first: Row) -> Position:
    """In logical order, of a row that has a place; `first`: the first of its group that is there, or itself."""
    message = row.message
    stage = WITH_HEAD if is_head(first.message) else WITHOUT_HEAD
    numbers = message.sequence_number, message.offset
    return Position(stage, first.place, group_of(message), *numbers, row.place)


def logical_key(row: Row) -> tuple[int, int, Place]:
    """The order within a group."""
    return row.message.sequence_number, row.message.offset, row.place


def sight_of(row: Row, position: Position, now: float, whose: Whose) -> Sight:
    """A row as an operator sees it; its message has been read, and its body cut."""
    message = as_got(row, now)
    return Sight(
        position=position,
        state=_state_of(row, now),
        holder=_holder_of(row, whose),
        message=message if row.placed else message.with_values(place=None),
        visible_since=None if row.visible_at == NEVER else row.visible_at,
        due_at=row.due_at if row.due_at > now else None,
    )


def _state_of(row: Row, now: float) -> SightState:
    if row.unit is not None:
        if row.unit.kind == "claim":
            return "claimed"
        return "put" if row.state is State.PUT_UNCONFIRMED else "got"
    if row.state is State.LOCKED:
        return "locked"
    return "delayed" if row.due_at > now else "available"


def _holder_of(row: Row, whose: Whose) -> Holder | None:
    if row.unit is not None:
        unit = row.unit
        assert unit.kind != "staging"
        process = None if unit.connection is None else whose(unit.connection)[1]
        return Holder(unit.kind, unit.name, unit.program, unit.started_at, unit.connection, process)
    if row.locked_by is not None:
        program, process = whose(row.locked_by.connection)
        return Holder("handle", "", program, row.locked_by.since, row.locked_by.connection, process)
    if row.lock is not None:
        unit = row.lock.unit
        return Holder("lock", unit.name, unit.program, unit.started_at)
    return None
