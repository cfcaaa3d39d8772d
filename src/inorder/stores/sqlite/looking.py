"""Listings of a queue in the file: pages of rows in any state, merged from the indexes in the order asked for."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from heapq import merge
from itertools import islice, takewhile
from typing import Any

from ...message import NO_ID, Place
from ...rules.gaps import Gaps, Member, gaps
from ...rules.grouping import Wanted
from ...rules.ordering import Moment, draws_number
from ...rules.puts import Program
from ..base_operating import UNPLACED, WITH_HEAD, WITHOUT_HEAD, LookRequest, Position, Sight, Unit
from ..looking import NUMBERED, group_of, onlooker, physical_position, sight_of, unplaced_position
from ..rows import Row
from .codec import stored_columns
from .selection import ALL_HEADS, HEADS, Heads, Selection, filled
from .shelf import NARROW_COLUMNS, PAGES, START, SqliteQueue
from .statements import statement
from .transaction import SqliteTransaction

CONNECTION = statement("connection")
FIRST_MEMBER = statement("first member")
MEMBERS_IN_ORDER = statement("members in order", columns=NARROW_COLUMNS)
UNITS_THAT_PUT = statement("units that put")
UNPLACED_OF_UNIT = statement("unplaced of unit", columns=NARROW_COLUMNS)
PREVIEWS = statement("previews", columns=stored_columns("CASE WHEN m.length <= ?2 THEN c.body END"))
SHAPE_OF_GROUP = statement("shape of group")
UNIT_OF_CONNECTION = statement("unit of connection")
PREPARED_UNIT = statement("prepared unit")

READ_WHOLE_MAX = 2048  # bytes: a body up to this is read at once, of a longer one only its beginning
NO_END = 2**62
THERE = " AND (m.expires_at IS NULL OR m.expires_at > :now OR m.away OR m.claimed IS NOT NULL)"
IS_FIRST = (
    " AND m.id = (SELECT f.id FROM message f INDEXED BY message_member WHERE f.queue = m.queue"
    " AND f.group_id = m.group_id AND f.number IS NOT NULL AND f.flags & 30"
    " AND (f.expires_at IS NULL OR f.expires_at > :now OR f.away OR f.claimed IS NOT NULL)"
    ' ORDER BY f.sequence_number, f."offset", f.rank, f.number, f.ordinal LIMIT 1)'
)

Found = tuple[Position, Row]


class Whose:
    """To whom connections belong, asked once for each."""

    def __init__(self, verb: SqliteTransaction) -> None:
        self._verb = verb
        self._known: dict[int, tuple[Program, int | None]] = {}

    def __call__(self, connection: int) -> tuple[Program, int | None]:
        if connection not in self._known:
            user, program, process = next(self._verb.execute(CONNECTION, (connection,)))
            self._known[connection] = Program(user, program), self._verb.home.database.process_of(process)
        return self._known[connection]


def look(verb: SqliteTransaction, queue: SqliteQueue, request: LookRequest) -> Sequence[Sight]:
    """A page of a listing."""
    listing = Listing(verb, queue, request)
    found = list(islice(listing.rows(), request.most))
    _read(verb, [row for _, row in found], request.preview)
    whose = Whose(verb)
    return [sight_of(row, position, verb.now, whose) for position, row in found]


def _read(verb: SqliteTransaction, rows: Sequence[Row], preview: int) -> None:
    """Gives the rows their descriptors, and the beginnings of their bodies."""
    at_once = max(preview, READ_WHOLE_MAX)
    numbers = json.dumps([row.number for row in rows])
    for row, columns in zip(rows, verb.execute(PREVIEWS, (numbers, at_once)), strict=True):
        message = verb.codec.full(columns)
        long = message.length > at_once
        body = verb.beginning(row.number, preview) if long else message.body[:preview]
        row.message = message.with_values(body=body)


def missing(verb: SqliteTransaction, queue: SqliteQueue, group_id: bytes) -> Gaps:
    """What is missing of a group."""
    return gaps(Member(*columns) for columns in verb.execute(SHAPE_OF_GROUP, (queue.id, group_id, verb.now)))


class Listing:
    """What a request asks for, as a stream of rows with their positions."""

    def __init__(self, verb: SqliteTransaction, queue: SqliteQueue, request: LookRequest) -> None:
        self.verb, self.queue, self.request = verb, queue, request
        self.unit = None if request.unit is None else number_of(verb, queue, request.unit)
        narrowed = queue.selection(Wanted(match=request.match), onlooker(verb.now))
        self.joins = narrowed.joins
        self.values = {**narrowed.values, "now": verb.now}
        self.filter = narrowed.condition
        if request.unit is not None:
            self.filter += " AND (m.unit = :held_by OR (m.lock = :held_by AND m.unit IS NULL))"
            self.values["held_by"] = self.unit
        # Of what a match for one group cannot show anything, nothing is looked at.
        self.of_group = " AND m.group_id IS :group_id" if "group_id" in request.match.fields else ""

    def _chosen(self, condition: str) -> Selection:
        return Selection(self.joins, condition, self.values)

    def rows(self) -> Iterator[Found]:
        """From behind the request's position on."""
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

    def _physical(self, after: Place) -> Iterator[Found]:
        chosen, newer = self._chosen(THERE + self.filter), self.request.numbered_after
        if self.request.unit is not None:
            rows = self._of_unit(after, chosen)
        else:
            rows = self._placed(after, chosen) if newer is None else self._newer(after, chosen, newer)
        return ((physical_position(row), row) for row in rows if newer is None or row.place.number > newer)

    def _placed(self, after: Place, chosen: Selection, heads: Heads = ALL_HEADS) -> Iterator[Row]:
        """All that has a place, in order: what is available and what each holder has."""
        streams = [self.queue.held(holder, after, chosen, heads) for holder in self.queue.holders()]
        return merge(*streams, self.queue.open(after, chosen, heads), key=_place)

    def _of_unit(self, after: Place, chosen: Selection) -> Iterator[Row]:
        """What the unit holds that has a place: gets and locks, and puts."""
        holders = [] if self.unit is None else [2 * self.unit, 2 * self.unit + 1]
        return merge(*(self.queue.held(holder, after, chosen) for holder in holders), key=_place)

    def _newer(self, after: Place, chosen: Selection, number: int) -> Iterator[Row]:
        """What has a higher number, level by level."""
        for rank in self.queue.ranks(self.queue.holders()):
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
        """Groups that have their first message, and what is in none."""
        chosen = self._chosen(f"{THERE}{self.of_group} AND (m.flags & {NUMBERED} OR (1{self.filter}))")
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
        """The stage and the anchor of a group."""
        values = {"queue": self.queue.id, "group": group_id, "now": self.verb.now}
        found = next(self.verb.execute(FIRST_MEMBER, values), None)
        if found is None:
            return None
        return (WITH_HEAD if found[:2] == (1, 0) else WITHOUT_HEAD), Place(*found[2:])

    def _group(self, after: Position) -> Iterator[Found]:
        """The members of a group that stands at the anchor, behind one of them; a page at a time."""
        sql = filled(MEMBERS_IN_ORDER, self._chosen(THERE + self.filter))
        stage, anchor, group_id = after[:3]

        def page(last: Row | None, size: int) -> Iterable[Any]:
            sequence, offset, place = (
                (after.sequence_number, after.offset, after.place)
                if last is None
                else (last.message.sequence_number, last.message.offset, last.place)
            )
            values = {"queue": self.queue.id, "group": group_id, "sequence": sequence, "start": offset, "limit": size}
            return self.verb.execute(sql, self.values | values | place._asdict())  # type: ignore[no-any-return]

        for row in self._paged(page):
            message = row.message
            yield Position(stage, anchor, group_id, message.sequence_number, message.offset, row.place), row

    # --- what has no place yet

    def _unplaced(self, after: int) -> Iterator[Found]:
        order = self.queue.attributes.order
        if draws_number(order, Moment.PUT):
            return
        if self.request.unit is None:
            asked = self.queue.id, not draws_number(order, Moment.PREPARE)
            units = [number for (number,) in self.verb.execute(UNITS_THAT_PUT, asked)]
        else:
            units = [] if self.unit is None else [self.unit]
        streams = [self._unplaced_of(unit, after) for unit in units]
        for row in merge(*streams, key=_number):
            yield unplaced_position(row), row

    def _unplaced_of(self, unit: int, after: int) -> Iterator[Row]:
        sql = filled(UNPLACED_OF_UNIT, self._chosen(THERE + self.filter))

        def page(last: Row | None, size: int) -> Iterable[Any]:
            values = {"queue": self.queue.id, "unit": unit, "after": after if last is None else last.number}
            return self.verb.execute(sql, self.values | values | {"limit": size})  # type: ignore[no-any-return]

        return self._paged(page)

    def _paged(self, page: Callable[[Row | None, int], Iterable[Any]]) -> Iterator[Row]:
        """The rows of a statement, each page behind the last row of the one before: first few, then more."""
        last, count = None, 0
        while True:
            size = PAGES[min(count + 1, len(PAGES) - 1)]
            found = [self.queue.row_of(columns) for columns in page(last, size)]
            yield from found
            if len(found) < size:
                return
            last, count = found[-1], count + 1


def number_of(verb: SqliteTransaction, queue: SqliteQueue, unit: Unit) -> int | None:
    """The number of a unit that an operator has seen; None if it is over, or lives on another queue."""
    if unit.kind == "session":
        row = next(verb.execute(UNIT_OF_CONNECTION, (unit.connection,)), None)
    elif unit.kind == "prepared":
        row = next(verb.execute(PREPARED_UNIT, (unit.name,)), None)
    else:
        named = verb.named_unit(queue.id, unit.kind, unit.name)
        return None if named is None else named.id
    number: int | None = None if row is None else row[0]
    return number


def _place(row: Row) -> Place:
    return row.place


def _number(row: Row) -> int:
    return row.number


def _is_at(rank: int) -> Callable[[Row], bool]:
    return lambda row: row.place.rank == rank
