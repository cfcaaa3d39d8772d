"""Order: the place of a message on its queue, and the choice of the next message for a reader.

Each message has a *place*: `(rank, number, ordinal)`, and smaller is earlier.

* `rank` is its effective priority when it arrived, negated. Effective means: its own priority, capped at 9, if the
  queue delivers by priority at that moment; the queue's default priority if it is FIFO (R3.13). Later changes of the
  attribute do not move the message (seed 001, R4.10).
* `number` comes from one counter per queue that never goes back. The queue's order rule says when the message gets it:
  at the put (PUT), when the unit is prepared (PREPARE), when it is committed (COMMIT). For a message outside a unit
  these moments are the same (B-5).
* `ordinal` is the put order inside one unit, for the two rules that give a unit a single number.

A place never changes: a got message that is backed out returns to it (R3.16), and a message put earlier but committed
later becomes visible before those committed earlier (R3.17).

A relaxed reader gets the first available message that it wants, and skips messages that others hold (R3.14, R3.15). A
browse cursor is a place, not a message: browse next returns the first available message after it, even if the message
at the cursor is gone (R3.62, R3.64).

A strict reader gets that message only if no earlier message that it wants may still become readable. Such an earlier
message is *pending*: an uncommitted put that already has its number (with PUT order every uncommitted put, with PREPARE
order those of prepared units, with COMMIT order none: B-7), or a message that is got under a unit, locked, delayed, or
the head of an incomplete group (B-6, B-26). So a strict reader waits until the earlier messages are settled, and the
sequence that it reads does not depend on when it reads (B-53). Each priority is a separate sequence: a level whose
first message is pending is skipped, and the call gets ORDER_PENDING only if no level has a message for it (B-11, B-34).

Three refinements. Messages that the call's own unit got do not block it: both end together (B-21). For other messages
that its own connection holds it would wait for itself, so it is refused immediately (B-30). Readers that wait for each
other, each holding a message that the other needs, are refused immediately as well (B-31).

The strict browse cursor has a place for each level. So a message that arrives later on an earlier level is still shown,
no message is shown twice, and none is missed (B-38).
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Generic, Literal, NamedTuple, Protocol, TypeVar

from ..errors import OrderUnsupported
from ..model.attributes import QueueAttributes
from ..model.message import IN_GROUP, LAST_IN_GROUP, Message, Place

PRIORITY_MAX = 9
PRIORITY = Message.FIELDS["priority"].index
GROUP_INDEX_RANK_MIN = 2


class Moment(enum.IntEnum):
    """When the messages of a unit can get their numbers on a queue; each moment includes those before it."""

    PUT = 0
    PREPARE = 1
    COMMIT = 2


# The moment for each order rule. A one-phase commit is also the prepare; a put outside a unit is also the commit.
DRAWS: Mapping[str, Moment] = {"put": Moment.PUT, "prepare": Moment.PREPARE, "commit": Moment.COMMIT}


def draws_number(order: str, moment: Moment) -> bool:
    """Whether messages without a number get one at `moment` under this order rule (B-5)."""
    return moment >= DRAWS[order]


def is_head_of_group(message: Message) -> bool:
    """Whether this is the first item of a group, which gives the whole group its place in logical order."""
    in_group = message.flags & (IN_GROUP | LAST_IN_GROUP)
    return bool(in_group) and message.sequence_number == 1 and message.offset == 0


def effective_priority(queue: QueueAttributes, message: Message) -> int:
    """The priority that decides the place of `message` if it arrives at `queue` now (R3.13, R1.4).

    With `index_type="group_id"` and delivery by priority, the first message of a group with priority 0 or 1 gets the
    place of priority 2; the message's own priority is unchanged (R4.13).
    """
    if queue.delivery == "fifo":
        return queue.default_priority
    given: int | None = message.row[PRIORITY]
    priority = queue.default_priority if given is None else min(PRIORITY_MAX, given)
    if queue.index_type == "group_id" and is_head_of_group(message):
        return max(GROUP_INDEX_RANK_MIN, priority)
    return priority


def rank(queue: QueueAttributes, message: Message) -> int:
    """The first part of the message's place: smaller is earlier."""
    return -effective_priority(queue, message)


class Placed(Protocol):
    """Anything with a place."""

    @property
    def place(self) -> Place: ...


P = TypeVar("P", bound=Placed)


def first(candidates: Iterable[P], after: Place | None = None) -> P | None:
    """The relaxed choice: the earliest candidate after `after`, independent of held messages (R3.14, R3.15)."""
    eligible = (one for one in candidates if after is None or one.place > after)
    return min(eligible, key=lambda one: one.place, default=None)


# --- strict reading ----------------------------------------------------------------------------------------

ReadOrder = Literal["strict", "relaxed", "notify"]


def read_order(queue: str, asked: ReadOrder | None) -> ReadOrder:
    """The read order of a call: the queue's, or a stricter one that the call asks for, never a weaker one (B-18, B-19).

    Raises OrderUnsupported for strict reading of a queue that keeps no order.
    """
    if queue == "unordered":
        if asked == "strict":
            raise OrderUnsupported("the queue is unordered: it cannot be read strictly")
        return "relaxed"
    if queue == "required":
        return "strict"
    return asked or ("strict" if queue == "strict" else "relaxed")


class PendingKind(enum.Enum):
    """Why a message is pending (B-26); the value tells the operator where to look (B-29)."""

    IN = "in"
    IN_DOUBT = "in-doubt"
    OUT = "out"
    LOCKED = "locked"
    DELAYED = "delayed"
    GROUP_INCOMPLETE = "group-incomplete"


class Pending(NamedTuple):
    """A message that may still become readable, and its holder.

    Args:
        holder: the connection whose unit or browse lock holds it; None if any connection may settle it, or only time
            can.
        by: that connection's program, or the unit's name.
        since: when the hold began, seconds since 1970.
        own: whether the call names the unit that got or locked it; then it does not block (B-21).
    """

    kind: PendingKind
    place: Place
    holder: int | None = None
    by: str = ""
    since: float = 0.0
    own: bool = False


PENDING_TEXTS = {
    PendingKind.IN: "a put that is not committed",
    PendingKind.IN_DOUBT: "a prepared unit that is not settled",
    PendingKind.OUT: "a message or group that a reader holds",
    PendingKind.LOCKED: "a browsed and locked message",
    PendingKind.DELAYED: "a delayed message",
    PendingKind.GROUP_INCOMPLETE: "an incomplete group",
}


def pending_text(pending: Pending) -> str:
    """A description of the message that holds up a strict reader (B-29)."""
    return f"{PENDING_TEXTS[pending.kind]}{f', by {pending.by}' if pending.by else ''}"


@dataclass(frozen=True, slots=True)
class StrictMatch(Generic[P]):
    """One message that matches a strict call: its place, its row, and whether it is pending."""

    place: Place
    row: P | None
    pending: Pending | None


@dataclass(frozen=True, slots=True)
class Decision(Generic[P]):
    """The answer to a strict call.

    Args:
        row: the row for the call; None if there is none.
        withheld: the first message before the candidate of the highest level that has one (B-34).
        pending: the first pending message, even if it withholds nothing (B-26).
        blockers: for each level with a withheld candidate, all pending messages before it.
    """

    row: P | None = None
    withheld: Pending | None = None
    pending: Pending | None = None
    blockers: Sequence[Sequence[Pending]] = ()


def decide(standings: Iterable[StrictMatch[P]]) -> Decision[P]:
    """Decides a strict call from the matching messages, in order of place and after the call's cursor (B-11, B-34).

    For each level a database reads the first available and the first pending message after the cursor:
    two steps in the index (queue, rank, number, ordinal), one over available and one over pending rows.
    """
    return decide_levels(level for _, level in groupby(standings, key=lambda one: one.place.rank))


def decide_levels(levels: Iterable[Iterable[StrictMatch[P]]]) -> Decision[P]:
    """Decides a strict call level by level, and reads no more of each level than it needs."""
    first_pending = None
    blockers: list[list[Pending]] = []
    for level in levels:
        before: list[Pending] = []
        for standing in level:
            row, pending = standing.row, standing.pending
            if pending is None and not before:
                return Decision(row, pending=first_pending)
            if pending is None:
                blockers.append(before)
                break
            if not pending.own:
                first_pending = first_pending or pending
                before.append(pending)
    return Decision(None, blockers[0][0] if blockers else None, first_pending, blockers)


def blocks_itself(blockers: Sequence[Sequence[Pending]], connection: int) -> bool:
    """Whether a withheld call waits for its own connection (B-21, B-30)."""
    return any(pending.holder == connection for level in blockers for pending in level)


Waits = Mapping[int, Sequence[frozenset[int]]]


def is_deadlocked(connection: int, waits: Waits) -> bool:
    """Whether a waiting connection can never continue unless another wait ends (B-31).

    Args:
        waits: for each waiting connection, and each level at which it waits, the connections that block it.

    A connection can continue if it does not wait, or if all that block it at one of its levels can continue.
    """
    stuck = set(waits)
    while freed := {one for one in stuck if any(not level & stuck for level in waits[one])}:
        stuck -= freed
    return connection in stuck


# --- the browse cursor -------------------------------------------------------------------------------------


class Cursor(NamedTuple):
    """The browse position of a handle: a place, not a message (3.9).

    Args:
        place: the place of the last browsed message; None before the first browse.
        number: the number of that message, the one "under the cursor".
        anchor: in logical order, the place of the head of the last browsed group: the search for the next head
            continues after it, wherever the group's other members are (R3.66).
        logical: whether the last browse first or next used logical order (R3.40); None before the first.
        strict: whether it was strict (B-42).
        levels: for a strict browse, the place on each level of the last shown message, in logical order of its head
            (B-38, B-41).
    """

    place: Place | None = None
    number: int | None = None
    anchor: Place | None = None
    logical: bool | None = None
    strict: bool = False
    levels: tuple[tuple[int, Place], ...] = ()

    def after(self, *, logical: bool) -> Place | None:
        """The place after which a relaxed browse next looks."""
        return self.anchor if logical else self.place

    def has_shown(self, place: Place) -> bool:
        """Whether a strict browse has passed this place: it is not after the last shown place of its level."""
        return any(rank == place.rank and place <= shown for rank, shown in self.levels)

    def moved(self, place: Place, number: int, *, logical: bool, head: bool, strict: bool = False) -> Cursor:
        """The cursor moved to this message; `head` says that a search for heads found it."""
        stands = head or not logical
        levels = self.levels
        if strict and stands:
            levels = (*((rank, shown) for rank, shown in levels if rank != place.rank), (place.rank, place))
        return Cursor(place, number, place if stands else self.anchor, logical, strict, levels)


UNSET = Cursor()
