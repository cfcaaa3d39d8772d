"""A search with a selector that goes far looks ahead in steps, each a verb of its own, so that nobody waits for it.

Nothing that comes later stands before what was there: numbers of places are drawn in order, so on each level it stands
behind. What a selector does not fit it will not fit later, whatever becomes of it. So a step may pass over it for good,
and the call that finds, takes or withholds begins behind what was passed over, on each level.

A relaxed call passes also over what it cannot have now: a message that comes back meanwhile, before what the call then
takes, has come back too late for it. To a strict call each message counts that fits, whoever holds it (B-11), so it
passes over none. Where what fits may change it does not look ahead.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from ..message import Place
from ..rules.grouping import Wanted
from ..rules.ordering import Cursor
from .queue import LocalQueue
from .queued import ASKS_MAX, Reader, available

STEP: Final = 1 + 64 + 1_024  # messages that one step looks at: three pages of a search in a database
PAUSE: Final = 0.0002  # seconds between two steps, for threads that wait for the store
CHANGING: Final = frozenset({"expiry", "backout_count"})  # fields of a message that are not always the same


class Ahead(NamedTuple):
    """How far a call has looked ahead.

    Args:
        passed: of each level the place up to which all was passed over, in order.
        is_over: the next step would find no more to pass over.
        asks: so often the search itself may ask the selector.
    """

    passed: tuple[Place, ...] = ()
    is_over: bool = False
    asks: float = ASKS_MAX


NOT_YET: Final = Ahead()


def look_ahead(
    queue: LocalQueue, wanted: Wanted, reader: Reader, cursor: Cursor, *, logical: bool, strict: bool
) -> Ahead:
    """One step on from where the reader has passed already."""
    passed = {place.rank: place for place in reader.passed}
    shown = dict(cursor.levels) if strict else {}
    behind = None if strict else cursor.behind(logical=logical)
    left = STEP
    for rank in queue.backend.levels(queue):
        start = max(place for place in (Place(rank, 0, -1), behind, shown.get(rank), passed.get(rank)) if place)
        for row in queue.backend.level(queue, wanted, reader, rank, start):
            if not left:
                return Ahead(tuple(sorted(passed.values())))
            left -= 1
            if queue.selects(row, wanted, reader):
                if available(row, reader):
                    return Ahead(tuple(sorted(passed.values())), is_over=True)
                if strict:
                    break
            passed[rank] = row.place
    return Ahead(tuple(sorted(passed.values())), is_over=True)
