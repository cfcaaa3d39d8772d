"""A long search with a selector looks ahead in steps, each a separate operation, so that others need not wait for it.

Numbers of places are drawn in order, so on each level later arrivals come after everything that a step has seen. A
message that does not fit the selector will never fit it. So a step skips such a message for good, and notes the
messages that fit, even if others hold them. The operation that finally gets, or withholds, looks at the noted messages
in their present state, and at each level after the skipped ones. It finds what a search from the beginning would find,
and so does the next look of a waiting call.

If a message may begin to fit, or if a lower number may become visible after a higher one on this queue, that holds only
for a moment. A relaxed call looks ahead even then: a message that begins to fit meanwhile came too late. A strict call
does so only if nothing but the remaining expiry changes; it uses the expiry at the start of the search.
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
NOTED_MAX: Final = 256  # messages noted that fit but are held by others
REST_SECONDS: Final = (0.001, 0.02)  # the shortest and the longest pause between two steps
RECKONED: Final = frozenset({"expiry"})  # fields of a message that change with time
CHANGING: Final = frozenset({"backout_count"})  # fields that others change


class Ahead(NamedTuple):
    """How far a call has searched ahead.

    Args:
        passed: for each level the place up to which every message was examined, in order.
        noted: the messages up to there that fit, in order.
        asked_at: the time at which remaining expiries are computed; None: it has not looked ahead yet.
        lasts: whether it also holds for a later look of the same call.
        is_over: another step would not help.
        asks: the budget of selector evaluations for the search itself.
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
    """Searches one step further. The search is over when it has as many messages as the call wants.

    Args:
        reader: the present reader, with `passed` and `asked_at` of `before`.
        most: the number of messages that the call wants.
    """
    assert wanted.selector is not None
    weight, unasked = wanted.selector.weight, wanted._replace(selector=None)

    def can_be_given(row: QueuedMessage) -> bool:
        return available(row, reader) and queue.has_what_it_needs(row, wanted, reader)

    rows = [(one, queue.row(one.number)) for one in before.noted]
    noted = [NotedMessage(one.place, one.number, can_be_given(row)) for one, row in rows if row is not None]
    passed = {place.rank: place for place in before.passed}
    shown = dict(cursor.levels) if strict else {}
    after = None if strict else cursor.after(logical=logical)
    left, lasts = STEP, before.lasts

    def ahead(*, is_over: bool = False) -> Ahead:
        asks = ASKS_MAX + COST_MAX * weight * len(noted)
        places = tuple(sorted(passed.values()))
        return Ahead(places, tuple(sorted(noted)), reader.asked_at, lasts, is_over, asks)

    for rank in queue.backend.levels(queue):
        start = max(place for place in (Place(rank, 0, -1), after, shown.get(rank), passed.get(rank)) if place)
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
                    lasts = False  # it is skipped without a note
            passed[rank] = seen.place
            if row is not None and _is_enough(suit, most, strict=strict):
                return ahead(is_over=True)
            if row is not None and strict and not all(suit) and any(suit):
                break
    return ahead(is_over=True)


def _is_enough(suit: list[bool], most: float, *, strict: bool) -> bool:
    """Whether the call has all messages that it wants; for a strict call, on a level where nothing blocks it."""
    return sum(suit) >= most and (all(suit) or not strict)


def rest(began: float) -> None:
    """Sleeps between two steps for as long as the last one took, so that other threads get the store even if it is
    busy.

    Args:
        began: when that step began, by `perf_counter`.
    """
    least, most = REST_SECONDS
    sleep(min(max(perf_counter() - began, least), most))


def changes_by_others(selector: Selector) -> bool:
    """Whether other calls on a message may change the selector's result for it."""
    return bool(selector.fields & CHANGING) or any(name.startswith(PREFIX) for name in selector.names)


def lasts(queue: LocalQueue, options: GetOptions, selector: Selector) -> bool:
    """Whether skipped messages stay unfit while a call waits."""
    changes = options.unmarked or selector.fields & RECKONED or changes_by_others(selector)
    return not changes and queue.attributes.read_order != "unordered"
