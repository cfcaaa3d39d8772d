"""Order: where a message sits on its queue, and which one a reader is given.

Each message has a *place*: `(rank, number, ordinal)`, and smaller is earlier.

* `rank` is its effective priority when it arrived, negated. Effective means: its own priority, capped at 9, if
  the queue delivers by priority at that moment; the queue's default priority if it is FIFO (R3.13). Whatever the
  attribute says later, the message stays where it is (seed 001, R4.10).
* `number` comes from one counter per queue that never goes back. The queue's order rule says when it is drawn:
  at the put (PUT), when the unit is prepared (PREPARE), when it is committed (COMMIT). A message outside a unit
  has all three moments at once (B-5).
* `ordinal` is the put order inside one unit, for the two rules where a unit draws a single number.

A place is fixed once and never changes: a got message that is backed out returns to it (R3.16), and a message
put earlier but committed later becomes visible in front of those committed earlier (R3.17).

A relaxed reader is given the first available message of its choice; what others hold is passed over (R3.14,
R3.15). A browse cursor is a place, not a message: browse next is given the first available message behind it,
whatever has become of the message it was on (R3.62, R3.64).
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping
from typing import NamedTuple, Protocol, TypeVar

from ..attributes import QueueAttributes
from ..message import IN_GROUP, LAST_IN_GROUP, Message, Place

PRIORITY_MAX = 9
GROUP_INDEX_RANK_MIN = 2


class Moment(enum.Enum):
    """When a unit's messages on a queue can be given their number."""

    PUT = "put"
    PREPARE = "prepare"
    COMMIT = "commit"


# Which moment draws the number. A one-phase commit is also the prepare; a put outside a unit is also the commit.
DRAWS: Mapping[str, Moment] = {"put": Moment.PUT, "prepare": Moment.PREPARE, "commit": Moment.COMMIT}
_REACHED = {Moment.PUT: 0, Moment.PREPARE: 1, Moment.COMMIT: 2}


def draws_number(order: str, moment: Moment) -> bool:
    """Whether messages that have no number yet are given one at `moment` under this order rule (B-5)."""
    return _REACHED[moment] >= _REACHED[DRAWS[order]]


def is_head_of_group(message: Message) -> bool:
    """Whether it is the first item of a group: where the whole group stands in logical order."""
    in_group = message.flags & (IN_GROUP | LAST_IN_GROUP)
    return bool(in_group) and message.sequence_number == 1 and message.offset == 0


def effective_priority(queue: QueueAttributes, message: Message) -> int:
    """The priority that places `message` if it arrives at `queue` now (R3.13, R1.4).

    With `index_type="group_id"` and delivery by priority a group's first message of priority 0 or 1 is placed as
    2; the message's own priority is unchanged (R4.13).
    """
    if queue.delivery == "fifo":
        return queue.default_priority
    priority = min(PRIORITY_MAX, queue.default_priority if message.priority is None else message.priority)
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
    """The relaxed choice: the earliest candidate behind `after`, whatever others hold (R3.14, R3.15)."""
    eligible = (one for one in candidates if after is None or one.place > after)
    return min(eligible, key=lambda one: one.place, default=None)


class Cursor(NamedTuple):
    """Where a handle browses: a place, not a message (3.9).

    Args:
        place: of the message browsed last; None before the first browse.
        number: which message that was; the one "under the cursor".
        anchor: in logical order, the place of the head of the group browsed last: the search for the next head
            goes on behind it, though the group's other members may lie anywhere (R3.66).
        logical: whether the last browse first or next used logical order (R3.40); None before the first.
    """

    place: Place | None = None
    number: int | None = None
    anchor: Place | None = None
    logical: bool | None = None

    def behind(self, *, logical: bool) -> Place | None:
        """The place behind which browse next looks."""
        return self.anchor if logical else self.place

    def moved(self, place: Place, number: int, *, logical: bool, head: bool) -> Cursor:
        """The cursor on this message; `head` says that a search for heads found it."""
        return Cursor(place, number, place if head or not logical else self.anchor, logical)


UNSET = Cursor()
