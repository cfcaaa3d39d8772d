"""A message on a queue with its state, and whether a reader can get it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from heapq import merge
from typing import NamedTuple, TypeVar

from ...model.fields import EXPIRY_SECONDS_MIN
from ...model.message import Got, Message, Place
from ...model.properties import LENGTH_MAX
from ...rules.lifecycle import Presented, State
from ...rules.ordering import Pending, PendingKind, StrictMatch
from ...rules.selectors import Selector
from .tables import ReaderId, UnitRow, application_reader, handle_reader

T = TypeVar("T")

NEVER = -math.inf
ASKS_MAX = 128  # the budget of selector evaluations after which a search is `Far`, in costs of `SeenRow`
STEP = 1_024  # the cost that one step of a search may have
KIBIBYTE = 10  # as a shift
COST_MAX = 1 + (LENGTH_MAX >> KIBIBYTE)
NO_PLACE = Place(0, 0, 0)
HELD = (State.PUT_UNCONFIRMED, State.GET_UNCONFIRMED, State.BROWSE_GET_UNCONFIRMED)
GOT = (State.GET_UNCONFIRMED, State.BROWSE_GET_UNCONFIRMED)
LOCKS = (State.LOCKED, State.BROWSE_GET_UNCONFIRMED)


class QueuedMessage(NamedTuple):
    """A message on a queue, as a backend stores it.

    Args:
        place: its place; NO_PLACE: its number is not drawn yet (B-5).
        unit: the unit that holds it, in one of the unconfirmed states.
        away: a unit of work got it, so the depth does not count it, and it expires when it returns (R4.6, R6.3).
        locked_handle, locked_at: the handle whose browse lock holds it, and since when.
        lock: the unit of the lock id that holds it; `lock_confirm`: the confirm id of that call, 0 if it had none.
        forgotten: a restart has lost it, except for the unit that holds it.
        claimed: its position in the claim that holds it; 0: none does.
    """

    message: Message
    number: int
    queue: int
    rank: int
    state: State
    place: Place = NO_PLACE
    visible_at: float = NEVER
    expires_at: float = math.inf
    due_at: float = NEVER
    backouts: int = 0
    unit: int | None = None
    away: bool = False
    locked_handle: int | None = None
    locked_at: float | None = None
    lock: int | None = None
    lock_confirm: int = 0
    co_op_marked_at: float = NEVER
    forgotten: bool = False
    claimed: int = 0

    @property
    def placed(self) -> bool:
        return self.place.number > 0

    @property
    def is_kept(self) -> bool:
        """Whether it cannot expire now: a unit of work got it (R6.3), or a claim, whose contents are fixed, has it."""
        return self.away or self.claimed > 0


class Far(Exception):
    """A search has used up its budget of selector evaluations and found nothing yet."""


class SeenRow(NamedTuple):
    """A message that a search has looked at.

    Args:
        fits: whether the selector is true for it.
        cost: 1, and 1 more for each KiB of its properties, multiplied by the weight of the selector.
    """

    place: Place
    number: int
    fits: bool
    cost: int


class NotedMessage(NamedTuple):
    """A message that fits a selector; `suits`: whether the call could get it at the last look."""

    place: Place
    number: int
    suits: bool


def number_of(token: bytes) -> int:
    """The number in a message's token."""
    return int.from_bytes(token, "big")


def cost_of(text: str | None, selector: Selector) -> int:
    """The cost of evaluating a selector on a message whose properties have this text."""
    return selector.weight if text is None else selector.weight * (1 + (len(text) >> KIBIBYTE))


def place_of(row: QueuedMessage) -> Place:
    """A sort key."""
    return row.place


class Reader(NamedTuple):
    """The caller of a search, and the time.

    Args:
        unit: the call's unit: gets that it holds are the call's own (B-21).
        earlier_units: units of the application's earlier claims; their gets are the call's own too.
        lock_id: the call sees only messages under this lock id; 0: it presents none. `lock` is its unit; 0: it has
            none.
        unmarked: the call skips messages that are marked for it (R3.73).
        horizon: the call sees no higher numbers; None: no such limit.
        application: the name of the application, if the call claims.
        passed: for each level the place up to which an earlier step has looked, in order; matches up to there are in
            `noted`.
        asked_at: the time at which a selector sees the remaining expiry of messages; None: now.
        asks: the budget of selector evaluations; beyond it the search is `Far`.
        lease: the unit of the lease that the connection has entered; the connection counts as the holder of its
            messages.
    """

    handle: int
    connection: int
    now: float
    co_op: bool = False
    mark_interval: float = 0.0
    unit: int | None = None
    lock_id: int = 0
    lock: int = 0
    unmarked: bool = False
    horizon: int | None = None
    application: str = ""
    earlier_units: tuple[int, ...] = ()
    passed: tuple[Place, ...] = ()
    noted: tuple[NotedMessage, ...] = ()
    asked_at: float | None = None
    asks: float = math.inf
    lease: int | None = None

    def has_got_in(self, unit: int) -> bool:
        """Whether gets in this unit are the call's own."""
        return unit == self.unit or unit in self.earlier_units

    @property
    def id(self) -> ReaderId:
        """Its id in `tables.EnteredRow`."""
        return application_reader(self.application) if self.application else handle_reader(self.handle)


def onlooker(now: float) -> Reader:
    """A reader without a handle: everything that is held is held by others."""
    return Reader(0, 0, now)


def fits(selector: Selector, row: QueuedMessage, reader: Reader) -> bool:
    """Whether a selector is true for a message as the reader would get it."""
    if not selector.fields:
        return selector.fits(row.message)
    return selector.fits(as_got(row, reader.now if reader.asked_at is None else reader.asked_at))


def numbers(message: Message) -> tuple[bytes, int, int]:
    """The id and numbers that identify a message within its group."""
    return message.group_id, message.sequence_number, message.offset


def is_in_sight(row: QueuedMessage, reader: Reader) -> bool:
    """Whether the row is not beyond the call's horizon."""
    return reader.horizon is None or row.place.number <= reader.horizon


def available(row: QueuedMessage, reader: Reader) -> bool:
    """Whether this reader can get the row: it is on the queue, not held by others, and due (R3.14, B-6)."""
    if row.due_at > reader.now or row.expires_at <= reader.now:
        return False
    if reader.lock_id:
        return presented(row, reader) is Presented.RIGHT
    return row.state is State.UNLOCKED or presented(row, reader) is Presented.RIGHT


def presented(row: QueuedMessage, reader: Reader) -> Presented:
    """The lock that a call presents: a lock id or, for some calls, its handle's browse lock (A-12, R3.69)."""
    if not reader.lock_id:
        own = row.locked_handle is not None and row.locked_handle == reader.handle
        return Presented.RIGHT if own and row.state is State.LOCKED else Presented.NONE
    return Presented.RIGHT if row.state is State.LOCKED and row.lock == reader.lock else Presented.OTHER


def is_marked(row: QueuedMessage, reader: Reader) -> bool:
    """Whether the row is marked for the cooperating set of this reader (R3.74)."""
    return reader.co_op and reader.now < row.co_op_marked_at + reader.mark_interval


def as_got(row: QueuedMessage, now: float) -> Got:
    """The message as a get returns it, with its remaining expiry, back outs and place."""
    left = math.inf if row.expires_at == math.inf else max(EXPIRY_SECONDS_MIN, row.expires_at - now)
    got: Got = row.message.with_values(expiry=left, delay=0.0, backout_count=row.backouts, place=row.place)  # type: ignore[assignment]
    return got


# --- why a strict reader must wait (B-6, B-7, B-26)


def pending_of(
    row: QueuedMessage, reader: Reader, unit_of: Callable[[int], UnitRow], whose: Callable[[int], tuple[int, str]]
) -> Pending | None:
    """Why this reader cannot get the row yet; None if it can.

    Args:
        unit_of: returns a unit by its number.
        whose: returns the connection and the program of a handle.
    """
    if available(row, reader):
        return None
    if row.unit is not None:
        put = row.state is State.PUT_UNCONFIRMED
        own = not put and reader.has_got_in(row.unit)
        return pending_under(unit_of(row.unit), PendingKind.IN if put else PendingKind.OUT, row.place, reader, own=own)
    if row.locked_handle is not None:
        connection, program = whose(row.locked_handle)
        return Pending(PendingKind.LOCKED, row.place, connection, program, row.locked_at or 0.0)
    if row.lock is not None:
        unit = unit_of(row.lock)
        return Pending(
            PendingKind.LOCKED, row.place, None, unit.name, unit.started_at, unit.name == str(reader.lock_id)
        )
    return Pending(PendingKind.DELAYED, row.place, since=row.visible_at)


def pending_under(unit: UnitRow, kind: PendingKind, place: Place, reader: Reader, *, own: bool = False) -> Pending:
    """The entry for a message at this place that a unit holds."""
    kind = PendingKind.IN_DOUBT if unit.kind == "prepared" else kind
    holder = reader.connection if unit.id == reader.lease else unit.connection
    return Pending(kind, place, holder, unit.name or unit.program, unit.started_at, own)


def in_order(*standings: Iterable[StrictMatch[QueuedMessage]]) -> Iterator[StrictMatch[QueuedMessage]]:
    """Merges the candidates of a strict decision by place. An entered group keeps the place of its first message. It
    blocks nobody there once that message is back and available.
    """
    stands: Place | None = None
    for one in merge(*standings, key=lambda one: one.place):
        if one.row is not None and one.pending is None:
            stands = one.place
        if one.row is not None or one.place != stands:
            yield one


def first_of_places(found: Iterable[Pending | None]) -> list[Pending]:
    """Returns the first one of each place, without those that the call itself holds."""
    first: dict[Place, Pending] = {}
    for one in found:
        if one is not None and not one.own:
            first.setdefault(one.place, one)
    return list(first.values())


def up_to(most_bytes: int | None, rows: Iterable[T], length: Callable[[T], int]) -> Iterator[T]:
    """Yields rows until their bodies have this many bytes; None: all rows."""
    left = math.inf if most_bytes is None else most_bytes
    for row in rows:
        yield row
        left -= length(row)
        if left <= 0:
            return
