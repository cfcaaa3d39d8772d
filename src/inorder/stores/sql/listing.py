"""The views of operators in an SQL database: counts, and pages of listings, merged from the indexes in order."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from heapq import merge
from itertools import islice, takewhile
from typing import Any

from ...model.message import NO_ID, Place
from ...rules.grouping import wanted_by
from ...rules.lifecycle import State
from ...rules.ordering import Moment, draws_number
from ..seam.backend import Counts, Listed, SearchedQueue
from ..seam.looking import NUMBERED, group_of, unplaced_position
from ..seam.queued import STEP, QueuedMessage, SeenRow, as_got, cost_of, onlooker, place_of
from ..seam.views import UNPLACED, WITH_HEAD, WITHOUT_HEAD, LookRequest, OrderView, Position
from .asking import Asking
from .attention import DUE, EXPIRES, LEASES
from .search import NO_END, PAGES, START, SqlSearch
from .selection import ALL_HEADS, HEADS, Heads, Selection, filled

READ_WHOLE_MAX = 2048  # bytes: a longer body is not read with its row, and only its beginning
MADE = 3  # evaluating a selector costs this many times more if a message is made from the row
THERE = " AND (m.expires_at IS NULL OR m.expires_at > :now OR m.away = 1 OR m.claimed IS NOT NULL)"
IS_FIRST = (
    " AND m.id = (SELECT f.id FROM message f WHERE f.queue = m.queue"
    " AND f.group_id = m.group_id AND f.number IS NOT NULL AND f.flags & 30 <> 0"
    " AND (f.expires_at IS NULL OR f.expires_at > :now OR f.away = 1 OR f.claimed IS NOT NULL)"
    ' ORDER BY f.sequence_number, f."offset", f.rank, f.number, f.ordinal LIMIT 1)'
)

Found = tuple[Position, QueuedMessage]


class SqlListings(SqlSearch):
    """The part of a backend for operators."""

    def listing(self, queue: SearchedQueue, request: LookRequest, unit: int | None, now: float) -> Listed:
        listing = Listing(self, queue, request, unit, now)
        found = list(islice(listing.rows(), request.most))
        at_once = max(request.preview, READ_WHOLE_MAX)
        numbers = json.dumps([row.number for _, row in found])
        shown = []
        contents = {one[0]: [one] for one in self.engine.execute(self.sql["message previews"], (numbers, at_once))}
        for position, row in found:
            message = self.full(row.number, contents.get(row.number, ()), partly=True)
            long = message.length > at_once
            body = self.engine.beginning(row.number, request.preview) if long else message.body
            if body is None:
                raise self.codec.damaged(row.number, "its content is missing")
            shown.append((position, row._replace(message=message.with_values(body=body[: request.preview]))))
        return Listed(shown, listing.reached)

    # --- all queues at one moment

    def volatile_queues(self) -> Sequence[int]:
        found, queue = [], 0
        while (queue := self.value(self.sql["next volatile queue"], queue)) is not None:
            found.append(queue)
        return found

    def timed_queues(self) -> Sequence[int]:
        return [
            queue for (queue,) in self.engine.execute(self.sql["queues with timed work"], (EXPIRES | DUE | LEASES,))
        ]

    def overview(self, now: float, queue: int | None = None, *, briefly: bool = False) -> Sequence[Counts]:
        held: dict[int, _Held] = {}
        for number, state, count, oldest in self.engine.execute(self.sql["held by units"], (queue,)):
            held.setdefault(number, _Held()).add("puts" if state == State.PUT_UNCONFIRMED else "gets", count, oldest)
        for name in () if briefly else ("locked by handles", "locked by ids"):
            for number, count, oldest in self.engine.execute(self.sql[name]):
                held.setdefault(number, _Held()).add("locked", count, oldest)
        found = self.engine.execute(self.sql["queue counters"], (queue,)).fetchall()
        delayed: dict[int, int] = {}
        put_at: dict[int, float] = {}
        filled = [] if briefly else [number for number, depth, *_ in found if depth or number in held]
        if filled:
            delayed = dict(self.engine.execute(self.sql["count delayed messages"], (queue, now)))
            put_at = self._put_at(filled, held)
        return [
            Counts(
                queue,
                depth,
                arrived,
                numbered,
                *held.get(queue, NOBODY).counts(),
                delayed=delayed.get(queue, 0),
                oldest_put_at=put_at.get(queue),
            )
            for queue, depth, arrived, numbered in found
        ]

    def _put_at(self, queues: Sequence[int], held: Mapping[int, _Held]) -> dict[int, float]:
        """When the oldest message of each queue was put: compares the lowest number of each holder, and the first place
        of each level among messages without a holder.
        """
        named = json.dumps(queues)
        firsts = [
            one
            for name in ("firsts of levels", "delayed firsts of levels")
            for one in self.engine.execute(self.sql[name], (named,))
        ]
        holding = [(queue, number) for queue, one in held.items() for number in one.oldest]
        numbers = json.dumps([number for _, number in (*firsts, *holding)])
        known = {
            number: (place, put_at)
            for number, *place, put_at in self.engine.execute(self.sql["places and put times"], (numbers,))
        }
        levels: dict[tuple[int, int], tuple[list[int], float]] = {}
        for queue, number in firsts:
            if one := known.get(number):  # in a damaged store it may have no content
                level = queue, one[0][0]
                levels[level] = min(levels.get(level, one), one)
        found = [(queue, known[number][1]) for queue, number in holding if number in known]
        found += [(queue, put_at) for (queue, _), (_, put_at) in levels.items()]
        return dict(sorted(found, reverse=True))  # the oldest of a queue comes last, and counts

    def order_view(self, queue: SearchedQueue, now: float) -> OrderView:
        rows = [self.codec.row(columns) for columns in self.engine.execute(self.sql["pending messages"], (queue.id,))]
        held = [(row, queue.pending_of(row, onlooker(now))) for row in rows if row.expires_at > now]
        puts = [one for row, one in held if one is not None and row.state is State.PUT_UNCONFIRMED]
        others = [one for row, one in held if one is not None and row.state is not State.PUT_UNCONFIRMED]
        first: dict[int, Place] = {}
        for one in sorted([*puts, *others], key=lambda one: one.place):
            first.setdefault(one.place.rank, one.place)
        withheld = (
            self.value(self.sql["count withheld messages"], queue.id, head, *place)
            for place in first.values()
            for head in ALL_HEADS
        )
        return OrderView(
            unresolved_puts=len(puts),
            oldest_put=min(puts, key=lambda one: (one.since, one.place), default=None),
            pending_out=len(others),
            oldest_out=min(others, key=lambda one: (one.since, one.place), default=None),
            withheld=sum(withheld),
            strict_waiters=0,
        )


@dataclass(slots=True)
class _Held:
    """The messages that units and locks hold on one queue."""

    puts: int = 0
    gets: int = 0
    locked: int = 0
    oldest: list[int] = field(default_factory=list)

    def add(self, kind: str, count: int, oldest: int) -> None:
        setattr(self, kind, getattr(self, kind) + count)
        self.oldest.append(oldest)

    def counts(self) -> tuple[int, int, int]:
        return self.puts, self.gets, self.locked


NOBODY = _Held()


class Listing:
    """The rows of a request, in order, with their positions.

    Attributes:
        reached: where the listing stopped because a step's budget was used up.
    """

    reached: Position | None = None

    def __init__(
        self, backend: SqlListings, queue: SearchedQueue, request: LookRequest, unit: int | None, now: float
    ) -> None:
        self.backend, self.queue, self.request, self.unit = backend, queue, request, unit
        wanted = wanted_by(request.match)
        self.selector, self.now = wanted.selector, now
        narrowed = backend.selection(wanted, onlooker(now))
        self.joins, self.described = narrowed.joins, narrowed.described
        self.row = backend.row_of(narrowed)
        self.values = {**narrowed.values, "now": now}
        self.filter = narrowed.condition
        if unit is not None:
            self.filter += " AND (m.unit = :held_by OR (m.lock = :held_by AND m.unit IS NULL))"
            self.values["held_by"] = self.unit
        # Skips the rows that a match for one group excludes.
        self.of_group = " AND m.group_id = :group_id" if "group_id" in request.match.fields else ""

    def _chosen(self, condition: str) -> Selection:
        return Selection(self.joins, condition, self.values, described=self.described)

    def rows(self) -> Iterator[Found]:
        """Yields rows after the request's position."""
        if self.selector is None:
            yield from self._rows()
            return
        left = STEP
        for position, one in self._rows():
            if isinstance(one, SeenRow):
                rows = self.backend.rows(queue=self.queue.id, number=one.number) if one.fits else ()
                left -= one.cost
            else:
                rows = [one] if self.selector.fits(as_got(one, self.now)) else ()
                left -= MADE * cost_of(one.message.properties.text, self.selector)
            yield from ((position, row) for row in rows)
            if left <= 0:
                self.reached = position
                return

    def _rows(self) -> Iterator[tuple[Position, Any]]:
        after = self.request.after
        stage = WITH_HEAD if after is None else after.stage
        if self.request.order == "physical":
            if stage == WITH_HEAD:
                yield from self._physical(START if after is None else after.place)
        elif stage <= WITHOUT_HEAD:
            yield from self._logical(after or Position(WITH_HEAD, START))
        if self.request.numbered_after is None:
            yield from self._unplaced(0 if after is None or stage < UNPLACED else after.number)

    # --- physical order

    def _physical(self, after: Place) -> Iterator[tuple[Position, Any]]:
        """Yields rows; with a selector, the `SeenRow`s."""
        chosen, newer = self._chosen(THERE + self.filter), self.request.numbered_after
        if self.selector is not None:
            chosen = chosen._replace(asking=Asking(self.backend.codec, self.selector, self.now))
        if self.unit is not None:
            rows = self._of_unit(after, chosen)
        else:
            rows = self._placed(after, chosen) if newer is None else self._newer(after, chosen, newer)
        return ((_at(one.place), one) for one in rows if newer is None or one.place.number > newer)

    def _placed(self, after: Place, chosen: Selection, heads: Heads = ALL_HEADS) -> Iterator[QueuedMessage]:
        """Yields all rows that have a place, in order, merged from available messages and those of each holder."""
        streams = [
            self.backend.held(self.queue.id, holder, after, chosen, heads)
            for holder in self.backend.holders(self.queue.id)
        ]
        return merge(*streams, self.backend.open(self.queue.id, after, chosen, heads), key=place_of)

    def _of_unit(self, after: Place, chosen: Selection) -> Iterator[QueuedMessage]:
        """Yields the messages of the unit that have a place: gets and locks, and puts."""
        assert self.unit is not None
        holders = [2 * self.unit, 2 * self.unit + 1]
        return merge(*(self.backend.held(self.queue.id, holder, after, chosen) for holder in holders), key=place_of)

    def _newer(self, after: Place, chosen: Selection, number: int) -> Iterator[QueuedMessage]:
        """Yields messages with higher numbers, level by level."""
        for rank in self.backend.ranks(self.queue.id, self.backend.holders(self.queue.id)):
            start = max(after, Place(rank, number, NO_END))
            if start.rank == rank:
                yield from takewhile(_is_at(rank), self._placed(start, chosen))

    # --- logical order

    def _logical(self, after: Position) -> Iterator[Found]:
        if after.group_id != NO_ID and self._stands(after.group_id) == (after.stage, after.anchor):
            yield from self._group(after)
        if after.stage == WITH_HEAD:
            yield from self._with_heads(after.anchor)
        yield from self._without_heads(after.anchor if after.stage == WITHOUT_HEAD else START)

    def _with_heads(self, after: Place) -> Iterator[Found]:
        """Yields groups that have their first message, and messages in no group."""
        chosen = self._chosen(f"{THERE}{self.of_group} AND (m.flags & {NUMBERED} <> 0 OR (true{self.filter}))")
        for row in self._placed(after, chosen, HEADS):
            group_id = group_of(row.message)
            if group_id == NO_ID:
                yield Position(WITH_HEAD, row.place, NO_ID, 1, 0, row.place), row
            elif self._stands(group_id) == (WITH_HEAD, row.place):
                yield from self._group(Position(WITH_HEAD, row.place, group_id))

    def _without_heads(self, after: Place) -> Iterator[Found]:
        chosen = self._chosen(f"{THERE}{self.of_group}{IS_FIRST}")
        for row in self._placed(after, chosen, (0,)):
            yield from self._group(Position(WITHOUT_HEAD, row.place, row.message.group_id))

    def _stands(self, group_id: bytes) -> tuple[int, Place] | None:
        """Returns the stage and the anchor of a group."""
        values = {"queue": self.queue.id, "group": group_id, "now": self.values["now"]}
        found = next(self.backend.engine.execute(self.backend.sql["place of first group member"], values), None)
        if found is None:
            return None
        return (WITH_HEAD if found[:2] == (1, 0) else WITHOUT_HEAD), Place(*found[2:])

    def _group(self, after: Position) -> Iterator[Found]:
        """Yields the members of the group at this anchor, after one of them, a page at a time."""
        sql = filled(self.backend.sql["group members by logical place"], self._chosen(THERE + self.filter))
        stage, anchor, group_id = after[:3]

        def page(last: QueuedMessage | None, size: int) -> Iterable[Any]:
            sequence, offset, place = (
                (after.sequence_number, after.offset, after.place)
                if last is None
                else (last.message.sequence_number, last.message.offset, last.place)
            )
            values = {"queue": self.queue.id, "group": group_id, "sequence": sequence, "start": offset, "limit": size}
            return self.backend.engine.execute(sql, self.values | values | place._asdict())  # type: ignore[no-any-return]

        for row in self._paged(page):
            message = row.message
            yield Position(stage, anchor, group_id, message.sequence_number, message.offset, row.place), row

    # --- messages without a place

    def _unplaced(self, after: int) -> Iterator[Found]:
        order = self.queue.attributes.order
        if draws_number(order, Moment.PUT):
            return
        if self.unit is None:
            asked = self.queue.id, not draws_number(order, Moment.PREPARE)
            units = [
                number for (number,) in self.backend.engine.execute(self.backend.sql["units with unplaced puts"], asked)
            ]
        else:
            units = [self.unit]
        streams = [self._unplaced_of(unit, after) for unit in units]
        for row in merge(*streams, key=_number):
            yield unplaced_position(row), row

    def _unplaced_of(self, unit: int, after: int) -> Iterator[QueuedMessage]:
        sql = filled(self.backend.sql["unplaced puts of unit"], self._chosen(THERE + self.filter))

        def page(last: QueuedMessage | None, size: int) -> Iterable[Any]:
            values = {"queue": self.queue.id, "unit": unit, "after": after if last is None else last.number}
            return self.backend.engine.execute(sql, self.values | values | {"limit": size})  # type: ignore[no-any-return]

        return self._paged(page)

    def _paged(self, page: Callable[[QueuedMessage | None, int], Iterable[Any]]) -> Iterator[QueuedMessage]:
        """Yields the rows of a statement in pages that begin small and grow, each after the last row of the one
        before.
        """
        last, count = None, 0
        while True:
            size = PAGES[min(count + 1, len(PAGES) - 1)]
            found = [self.row(columns) for columns in page(last, size)]
            yield from found
            if len(found) < size:
                return
            last, count = found[-1], count + 1


def _at(place: Place) -> Position:
    """The position of a message that has a place, in physical order."""
    return Position(WITH_HEAD, place, place=place)


def _number(row: QueuedMessage) -> int:
    return row.number


def _is_at(rank: int) -> Callable[[QueuedMessage], bool]:
    return lambda row: row.place.rank == rank
