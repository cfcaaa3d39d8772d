"""What a store knows of a message besides the message, and what the rules say of it: for every store alike.

A `Row` is a message on a queue with its state, its place and who holds it. A store makes rows from what it keeps
and asks the functions below about them; `stores.reading`, `stores.putting` and `stores.confirmed` work on rows.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from heapq import merge
from typing import NamedTuple

from ..message import Message, Place
from ..rules.lifecycle import Lock, State
from ..rules.ordering import Kind, Pending, Standing
from ..rules.puts import Program
from .base import UnitKind

NEVER = -math.inf
NO_PLACE = Place(0, 0, 0)
HELD = (State.PUT_UNCONFIRMED, State.GET_UNCONFIRMED, State.BROWSE_GET_UNCONFIRMED)
GOT = (State.GET_UNCONFIRMED, State.BROWSE_GET_UNCONFIRMED)
LOCKS = (State.LOCKED, State.BROWSE_GET_UNCONFIRMED)


@dataclass(slots=True, eq=False)
class HeldUnit:
    """A unit that is not settled. A store has one object for each in a transaction: it is compared by identity.

    Attributes:
        connection: whose unit of work it is; None for a named unit, which anyone may settle.
        calls: puts and gets that were made in it (R5.8).
    """

    program: Program
    started_at: float
    kind: UnitKind = "session"
    name: str = ""
    connection: int | None = None
    calls: int = 0


ReaderId = int | str  # a handle by its number, an application that claims by its name


@dataclass(frozen=True, slots=True, eq=False)
class Entered:
    """A group, or a message in segments, that a reader has entered and not finished (B-45).

    It goes with its reader, unless a unit that is not settled holds a member: then it stays for that unit.

    Attributes:
        place: where its first message stood; the group still stands there.
        head: that message, without its body.
        reader: who is inside; None: nobody any more.
        connection: the reader's; None for an application.
        by: the name of the reader's program, or of the application.
        entered_in: the unit whose back out takes the entry back.
        left_in: the unit in which the reader went elsewhere: it has left when that is committed.
    """

    place: Place
    head: Message
    reader: ReaderId | None
    connection: int | None
    by: str
    since: float
    entered_in: HeldUnit | None = None
    left_in: HeldUnit | None = None


class Locker(NamedTuple):
    """The handle whose browse lock holds a row (R3.69)."""

    handle: int
    connection: int
    program: str
    since: float


class HeldLock(NamedTuple):
    """A lock id on a row, and the confirm id of the call that locked it, 0 if it had none (A-12)."""

    unit: HeldUnit
    lock_id: int
    confirm_id: int


@dataclass(slots=True, eq=False)
class Row:
    """A message on a queue.

    Attributes:
        place: where it sits; not to be read before it has one (`placed` tells).
        unit: what holds it, if its state is one of the unconfirmed ones.
        locked_by: the handle whose browse lock holds it.
        lock: the lock id that holds it, with the confirm id given at the lock.
        handle_marks, co_op_marked_at: browse marks (3.11).
        forgotten: a restart has lost it, but for the prepared unit that got it.
        claimed: its position in the claim that holds it; 0: none does.
    """

    message: Message
    number: int
    rank: int
    state: State = State.ABSENT
    place: Place = NO_PLACE
    placed: bool = False
    visible_at: float = NEVER
    expires_at: float = math.inf
    due_at: float = NEVER
    backouts: int = 0
    unit: HeldUnit | None = None
    locked_by: Locker | None = None
    lock: HeldLock | None = None
    handle_marks: set[int] = field(default_factory=set)
    co_op_marked_at: float = NEVER
    forgotten: bool = False
    claimed: int = 0


class Reader(NamedTuple):
    """Who looks, and when.

    Args:
        unit: what the call names: gets that it holds are the call's own (B-21).
        lock_id: the call sees only what this lock holds; 0: it presents none.
        unmarked: the call passes over what is marked for it (R3.73).
        horizon: the call sees nothing with a higher number than this; None: there is no such bound.
        application: who claims, if the call does.
    """

    handle: int
    connection: int
    co_op: bool
    now: float
    mark_interval: float
    unit: HeldUnit | None = None
    lock_id: int = 0
    unmarked: bool = False
    horizon: int | None = None
    application: str = ""

    @property
    def id(self) -> ReaderId:
        """Who it is in `Entered`."""
        return self.application or self.handle


def numbers(message: Message) -> tuple[bytes, int, int]:
    """What identifies a message within its group."""
    return message.group_id, message.sequence_number, message.offset


def is_away(row: Row) -> bool:
    """Whether a unit of work got it: it has left the depth, and expires when it comes back (R4.6, R6.3)."""
    return row.state in GOT and row.unit is not None and row.unit.kind in ("session", "prepared")


def is_kept(row: Row) -> bool:
    """Whether it cannot expire now: a unit of work got it (R6.3), or a claim, which stays as it was given."""
    return is_away(row) or row.claimed > 0


def is_in_sight(row: Row, reader: Reader) -> bool:
    """Whether the row is not beyond the call's horizon."""
    return reader.horizon is None or row.place.number <= reader.horizon


def available(row: Row, reader: Reader) -> bool:
    """Whether this reader can be given the row: on the queue, not held by others, due (R3.14, B-6)."""
    if row.due_at > reader.now or row.expires_at <= reader.now:
        return False
    if reader.lock_id:
        return lock_presented(row, reader) is Lock.RIGHT
    return row.state is State.UNLOCKED or lock_presented(row, reader) is Lock.RIGHT


def lock_presented(row: Row, reader: Reader) -> Lock:
    """A call presents a lock id, or by being what it is its handle's browse lock (A-12, R3.69)."""
    if not reader.lock_id:
        own = row.locked_by is not None and row.locked_by.handle == reader.handle
        return Lock.RIGHT if own and row.state is State.LOCKED else Lock.NONE
    right = row.state is State.LOCKED and row.lock is not None and row.lock.lock_id == reader.lock_id
    return Lock.RIGHT if right else Lock.OTHER


def pending_of(row: Row, reader: Reader) -> Pending | None:
    """Why this reader cannot be given the row yet; None if it can (B-6, B-7, B-26)."""
    if available(row, reader):
        return None
    if row.unit is not None:
        put = row.state is State.PUT_UNCONFIRMED
        own = not put and row.unit is reader.unit
        return _pending_under(row.unit, Kind.IN if put else Kind.OUT, row.place, own=own)
    if row.locked_by is not None:
        by = row.locked_by
        return Pending(Kind.LOCKED, row.place, by.connection, by.program, by.since)
    if row.lock is not None:
        unit = row.lock.unit
        return Pending(Kind.LOCKED, row.place, None, unit.name, unit.started_at, row.lock.lock_id == reader.lock_id)
    return Pending(Kind.DELAYED, row.place, since=row.visible_at)


def _pending_under(unit: HeldUnit, kind: Kind, place: Place, *, own: bool = False) -> Pending:
    kind = Kind.IN_DOUBT if unit.kind == "prepared" else kind
    return Pending(kind, place, unit.connection, unit.name or unit.program.name, unit.started_at, own)


def pending_entered(entered: Entered, units: Iterable[HeldUnit], reader: Reader) -> list[Pending]:
    """Who holds this reader back at the place of a group that was entered (B-45).

    Args:
        units: those that hold a member which they have got, in the order in which they began.
    """
    found = [_pending_under(unit, Kind.OUT, entered.place) for unit in units if unit is not reader.unit]
    if entered.reader is not None and entered.reader != reader.id:
        found.append(Pending(Kind.OUT, entered.place, entered.connection, entered.by, entered.since))
    return found


def in_order(*standings: Iterable[Standing[Row]]) -> Iterator[Standing[Row]]:
    """Merges what takes part in a strict decision by place: a group that was entered stands where its first message
    does, and is in nobody's way there once that has come back and can be taken."""
    stands: Place | None = None
    for one in merge(*standings, key=lambda one: one.place):
        if one.row is not None and one.pending is None:
            stands = one.place
        if one.row is not None or one.place != stands:
            yield one


def first_of_places(found: Iterable[Pending | None]) -> list[Pending]:
    """Of those that stand at one place the first; without what the call holds itself."""
    first: dict[Place, Pending] = {}
    for one in found:
        if one is not None and not one.own:
            first.setdefault(one.place, one)
    return list(first.values())


def is_marked(row: Row, reader: Reader) -> bool:
    """Whether an unmarked browse of this reader skips the row (R3.73, R3.74)."""
    if reader.handle in row.handle_marks:
        return True
    return reader.co_op and reader.now < row.co_op_marked_at + reader.mark_interval


def as_got(row: Row, now: float) -> Message:
    """The message as a get returns it: what is left of its time, its back outs, its place."""
    left = math.inf if row.expires_at == math.inf else max(0.1, row.expires_at - now)
    return row.message.with_values(expiry=left, delay=0.0, backout_count=row.backouts, place=row.place)
