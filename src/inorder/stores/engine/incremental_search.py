"""A far search with a selector looks ahead in steps, each a verb of its own, so that nobody waits for it.

Nothing that comes later stands before what was there: numbers of places are drawn in order, so on each level it stands
behind. What a selector does not fit it will not fit later, whatever becomes of it. So a step passes over it for good,
and notes what fits, even what others hold. The call that finds, takes or withholds looks at what was noted, as it is
then, and behind what was passed over, on each level. It finds what a search from the beginning would find, and so does
the next look of a call that waits.

Where what fits may change, and on queues where a lower number may come to be seen after a higher one, that is true for
a moment only. A relaxed call looks ahead there, too: a message that begins to fit meanwhile came too late. A strict
call does so only where nothing but the time left changes, which it reckons from the beginning of the search.
"""

from __future__ import annotations

from time import perf_counter, sleep
from typing import Final, NamedTuple

from ...model.message import Place
from ...model.options import GetOptions
from ...rules.grouping import Wanted
from ...rules.ordering import Cursor
from ...rules.retries import PREFIX
from ...rules.selectors import Selector
from ..seam.queued import ASKS_MAX, COST_MAX, STEP, NotedMessage, QueuedMessage, Reader, available
from .queue import LocalQueue

NOTING: Final = 8  # the additional cost of looking at a message that fits
NOTED_MAX: Final = 256  # messages that fit and are held by others
REST_SECONDS: Final = (0.001, 0.02)  # at least and at most, between two steps
RECKONED: Final = frozenset({"expiry"})  # fields of a message that change with time
CHANGING: Final = frozenset({"backout_count"})  # fields that others change


class Ahead(NamedTuple):
    """How far a call has looked ahead.

    Args:
        passed: of each level the place up to which all was looked at, in order.
        noted: what fits up to there, in order.
        asked_at: the time left of messages is reckoned from then; None: it has not looked ahead yet.
        lasts: it holds for a later look of the same call, too.
        is_over: the next step would not help.
        asks: so much the search itself may ask of the selector.
    """

    passed: tuple[Place, ...] = ()
    noted: tuple[NotedMessage, ...] = ()
    asked_at: float | None = None
    lasts: bool = True
    is_over: bool = False
    asks: float = ASKS_MAX


NOT_YET: Final = Ahead()


def look_ahead(
    queue: LocalQueue,
    wanted: Wanted,
    reader: Reader,
    cursor: Cursor,
    most: float,
    before: Ahead,
    *,
    logical: bool,
    strict: bool,
) -> Ahead:
    """One step on from what was passed already; over when the call finds so many messages as it wants.

    Args:
        reader: as it is now, with `passed` and `asked_at` of `before`.
        most: so many messages are wanted.
    """
    unasked = wanted._replace(selector=None)

    def can_be_given(row: QueuedMessage) -> bool:
        return available(row, reader) and queue.has_what_it_needs(row, wanted, reader)

    rows = [(one, queue.row(one.number)) for one in before.noted]
    noted = [NotedMessage(one.place, one.number, can_be_given(row)) for one, row in rows if row is not None]
    passed = {place.rank: place for place in before.passed}
    shown = dict(cursor.levels) if strict else {}
    behind = None if strict else cursor.behind(logical=logical)
    left, lasts = STEP, before.lasts

    def ahead(*, is_over: bool = False) -> Ahead:
        asks = ASKS_MAX + COST_MAX * len(noted)
        places = tuple(sorted(passed.values()))
        return Ahead(places, tuple(sorted(noted)), reader.asked_at, lasts, is_over, asks)

    for rank in queue.backend.levels(queue):
        start = max(place for place in (Place(rank, 0, -1), behind, shown.get(rank), passed.get(rank)) if place)
        suit = [one.suits for one in noted if one.place.rank == rank or not strict]
        if _is_enough(suit, most, strict=strict):
            return ahead(is_over=True)
        if strict and not all(suit) and any(suit):
            continue
        for seen in queue.backend.level(queue, wanted, reader, rank, start):
            if left <= 0:
                return ahead()
            left -= seen.cost
            row = queue.row(seen.number) if seen.fits else None
            if row is not None and queue.selects(row, unasked, reader):
                left -= NOTING
                suits = can_be_given(row)
                if suits or len(noted) < NOTED_MAX:
                    noted.append(NotedMessage(seen.place, seen.number, suits))
                    suit.append(suits)
                elif strict:
                    return ahead(is_over=True)
                else:
                    lasts = False  # it is passed over, and not noted
            passed[rank] = seen.place
            if row is not None and _is_enough(suit, most, strict=strict):
                return ahead(is_over=True)
            if row is not None and strict and not all(suit) and any(suit):
                break
    return ahead(is_over=True)


def _is_enough(suit: list[bool], most: float, *, strict: bool) -> bool:
    """Whether the call has what it wants; a strict one, on a level on which nothing holds it up."""
    return sum(suit) >= most and (all(suit) or not strict)


def rest(began: float) -> None:
    """Between two steps, for as long as the last one took: threads that wait for the store come in, however busy it is.

    Args:
        began: when that began, by `perf_counter`.
    """
    least, most = REST_SECONDS
    sleep(min(max(perf_counter() - began, least), most))


def changes_by_others(selector: Selector) -> bool:
    """Whether what becomes of a message may decide whether the selector fits it."""
    return bool(selector.fields & CHANGING) or any(name.startswith(PREFIX) for name in selector.names)


def lasts(queue: LocalQueue, options: GetOptions, selector: Selector) -> bool:
    """Whether what was passed over stays so while a call waits."""
    changes = options.unmarked or selector.fields & RECKONED or changes_by_others(selector)
    return not changes and queue.attributes.read_order != "unordered"
