"""The state of a message on a queue besides the message itself, and the judgement of the rules about it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from heapq import merge
from typing import NamedTuple

from ...model.message import Got, Message, Place
from ...model.properties import LENGTH_MAX
from ...rules.lifecycle import Presented, State
from ...rules.ordering import Pending, PendingKind, StrictMatch
from ...rules.selectors import Selector
from .tables import ReaderId, UnitRow, application_reader, handle_reader

NEVER = -math.inf
ASKS_MAX = 128  # a search that has asked so much of a selector has gone far; the cost is that of `SeenRow`
STEP = 1_024  # what one step of a search may cost
KIBIBYTE = 10  # as a shift
COST_MAX = 1 + (LENGTH_MAX >> KIBIBYTE)
NO_PLACE = Place(0, 0, 0)
HELD = (State.PUT_UNCONFIRMED, State.GET_UNCONFIRMED, State.BROWSE_GET_UNCONFIRMED)
GOT = (State.GET_UNCONFIRMED, State.BROWSE_GET_UNCONFIRMED)
LOCKS = (State.LOCKED, State.BROWSE_GET_UNCONFIRMED)


class QueuedMessage(NamedTuple):
    """A message on a queue, as a backend keeps it.

    Args:
        place: where it sits; NO_PLACE: its number is not drawn yet (B-5).
        unit: the unit that holds it, if its state is one of the unconfirmed ones.
        away: a unit of work got it: it has left the depth, and expires when it comes back (R4.6, R6.3).
        locked_handle, locked_at: the handle whose browse lock holds it, and since when.
        lock: the unit of the lock id that holds it; `lock_confirm`: the confirm id of that call, 0 if it had none.
        forgotten: a restart has lost it, but for the unit that holds it.
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
        """Whether it has a place."""
        return self.place.number > 0

    @property
    def is_kept(self) -> bool:
        """Whether it cannot expire now: a unit of work got it (R6.3), or a claim, which stays as it was given."""
        return self.away or self.claimed > 0


class Far(Exception):
    """A search has asked its selector as much as it may, and found nothing yet."""


class SeenRow(NamedTuple):
    """A message that a search has looked at.

    Args:
        fits: the selector is true of it.
        cost: 1, and 1 more for each KiB of its properties.
    """

    place: Place
    number: int
    fits: bool
    cost: int


class NotedMessage(NamedTuple):
    """A message that fits a selector; `suits`: the call could be given it when that was looked at last."""

    place: Place
    number: int
    suits: bool


def number_of(token: bytes) -> int:
    """The number of a message on its queue."""
    return int.from_bytes(token, "big")


def cost_of(text: str | None) -> int:
    """The cost of asking a selector about a message with properties of this text."""
    return 1 if text is None else 1 + (len(text) >> KIBIBYTE)


def place_of(row: QueuedMessage) -> Place:
    """For sorting."""
    return row.place


class Reader(NamedTuple):
    """Who looks, and when.

    Args:
        unit: what the call names: gets that it holds are the call's own (B-21).
        earlier_units: of the claims that the application took before: what they hold is the call's own, too.
        lock_id: the call sees only what this lock holds; 0: it presents none. `lock` is its unit, 0: it has none.
        unmarked: the call passes over what is marked for it (R3.73).
        horizon: the call sees nothing with a higher number than this; None: there is no such bound.
        application: who claims, if the call does.
        passed: of each level the place up to which was looked before, in order; what the call looks for and stands
            there is `noted`.
        asked_at: to a selector the time left of messages is reckoned from then; None: from now.
        asks: so much the search may ask of the selector; then it is `Far`.
        lease: the unit of the lease that the connection has entered: what it holds the connection holds.
    """

    handle: int
    connection: int
    co_op: bool
    now: float
    mark_interval: float
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
        """Who it is in `tables.EnteredRow`."""
        return application_reader(self.application) if self.application else handle_reader(self.handle)


def onlooker(now: float) -> Reader:
    """A reader without a handle: whatever anyone holds is held by others."""
    return Reader(0, 0, co_op=False, now=now, mark_interval=0.0)


def fits(selector: Selector, row: QueuedMessage, reader: Reader) -> bool:
    """Whether a selector is true of a message as the reader would get it."""
    if not selector.fields:
        return selector.fits(row.message)
    return selector.fits(as_got(row, reader.now if reader.asked_at is None else reader.asked_at))


def numbers(message: Message) -> tuple[bytes, int, int]:
    """What identifies a message within its group."""
    return message.group_id, message.sequence_number, message.offset


def is_in_sight(row: QueuedMessage, reader: Reader) -> bool:
    """Whether the row is not beyond the call's horizon."""
    return reader.horizon is None or row.place.number <= reader.horizon


def available(row: QueuedMessage, reader: Reader) -> bool:
    """Whether this reader can be given the row: on the queue, not held by others, due (R3.14, B-6)."""
    if row.due_at > reader.now or row.expires_at <= reader.now:
        return False
    if reader.lock_id:
        return presented(row, reader) is Presented.RIGHT
    return row.state is State.UNLOCKED or presented(row, reader) is Presented.RIGHT


def presented(row: QueuedMessage, reader: Reader) -> Presented:
    """The lock that a call presents: a lock id, or, of some calls, its handle's browse lock (A-12, R3.69)."""
    if not reader.lock_id:
        own = row.locked_handle is not None and row.locked_handle == reader.handle
        return Presented.RIGHT if own and row.state is State.LOCKED else Presented.NONE
    return Presented.RIGHT if row.state is State.LOCKED and row.lock == reader.lock else Presented.OTHER


def is_marked(row: QueuedMessage, reader: Reader) -> bool:
    """Whether the row is marked for the cooperating set of this reader (R3.74)."""
    return reader.co_op and reader.now < row.co_op_marked_at + reader.mark_interval


def as_got(row: QueuedMessage, now: float) -> Got:
    """The message as a get returns it: what is left of its time, its back outs, its place."""
    left = math.inf if row.expires_at == math.inf else max(0.1, row.expires_at - now)
    got: Got = row.message.with_values(expiry=left, delay=0.0, backout_count=row.backouts, place=row.place)  # type: ignore[assignment]
    return got


# --- why a strict reader must wait (B-6, B-7, B-26)


def pending_of(
    row: QueuedMessage, reader: Reader, unit_of: Callable[[int], UnitRow], whose: Callable[[int], tuple[int, str]]
) -> Pending | None:
    """Why this reader cannot be given the row yet; None if it can.

    Args:
        unit_of: a unit by its number.
        whose: the connection and the program of a handle.
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
    """A message at this place that a unit holds."""
    kind = PendingKind.IN_DOUBT if unit.kind == "prepared" else kind
    holder = reader.connection if unit.id == reader.lease else unit.connection
    return Pending(kind, place, holder, unit.name or unit.program, unit.started_at, own)


def in_order(*standings: Iterable[StrictMatch[QueuedMessage]]) -> Iterator[StrictMatch[QueuedMessage]]:
    """Merges what takes part in a strict decision by place: a group that was entered stands where its first message
    stands, and blocks nobody there once that message has come back and can be taken."""
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
