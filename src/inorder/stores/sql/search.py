"""The search in an SQL database, by indexes.

The database narrows the rows and returns them in order; the rules decide about each, as in the memory backend. Rows are
read in small pages, so that no statement stays open while the transaction continues.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from heapq import merge
from itertools import islice, takewhile
from operator import attrgetter
from typing import Any, NamedTuple

from ...model.fields import NONE
from ...model.message import NO_ID, Message, Place, UniqueId
from ...model.options import Match
from ...rules.grouping import Wanted
from ...rules.ordering import PRIORITY_MAX, UNSET, Cursor, Decision, Pending, StrictMatch, decide_levels
from ..seam.backend import SearchedQueue
from ..seam.queued import QueuedMessage, Reader, SeenRow, first_of_places, in_order, number_of, place_of
from .asking import Asking
from .attention import GROUPS
from .codec import IN_CONTENT, Codec
from .descriptors import KEPT, column, compared
from .records import SqlRecords
from .selection import (
    ALL_HEADS,
    CONTENT_JOIN,
    EVERYTHING,
    HEADS,
    HELD_BY,
    OPEN,
    UID_CONDITION,
    UNFINISHED,
    WHOLE,
    Heads,
    Selection,
    ordered,
)

PAGES = (1, 64, 1024)  # rows in a page: first few, then more
SEEN_PAGES = (16, 128)  # the same for rows that a selector is evaluated on, until a step is over
START = Place(-PRIORITY_MAX - 1, 0, 0)  # before every place
NO_END = 2**62  # above every number
UNFINISHED_MAX = 100  # unfinished groups before a withheld one whose holders are looked up


class StrictSearch(NamedTuple):
    """A strict decision: its request, its reader, and the other holders of the queue's messages."""

    queue: SearchedQueue
    wanted: Wanted
    reader: Reader
    holders: Sequence[int]
    chosen: Selection


class SqlSearch(SqlRecords):
    """The part of a backend that finds messages."""

    codec: Codec
    undisputed: Callable[[StrictSearch, Iterable[QueuedMessage], Heads], QueuedMessage | None] | None
    """Tried before a strict decision: a shortcut if nothing blocks the first message."""

    # --- selections for the database

    def selection(self, wanted: Wanted, reader: Reader) -> Selection:
        if not (wanted.match or wanted.joins or reader.unmarked):
            return EVERYTHING
        return self._narrowed(wanted, reader)

    def _narrowed(self, wanted: Wanted, reader: Reader) -> Selection:
        joins, conditions, values = "", [], dict[str, Any]()
        for name, value in wanted.match.fields.items():
            values[name] = value
            if name == "message_id":
                conditions.append("(m.message_id = :message_id OR (m.message_id IS NULL AND m.id = :own_id))")
                values["own_id"] = self.codec.number_in(value)
            elif name == "token":
                conditions.append("m.id = :token")
                values[name] = _as_number(value)
            elif name == "uid":
                conditions.append(UID_CONDITION)
                values |= self._uid_values(values.pop("uid"))
            elif name in KEPT:
                joins = CONTENT_JOIN
                conditions.append(f"{column(name)} = :{name}")
                values[name] = compared(name, value)
            else:
                table = "c" if name in IN_CONTENT else "m"
                joins = joins or (CONTENT_JOIN if name in IN_CONTENT else "")
                if value == NONE.get(name):
                    conditions.append(f'{table}."{name}" IS NULL')
                else:
                    conditions.append(f'{table}."{name}" = :{name}')
                    values[name] = value
        if wanted.joins:
            conditions.append('m."offset" = 0')
        if reader.unmarked:
            conditions.append("NOT EXISTS (SELECT 1 FROM mark WHERE message = m.id AND handle = :reader)")
            values["reader"] = reader.handle
            if reader.co_op:
                conditions.append("(m.co_op_marked_at IS NULL OR :now >= m.co_op_marked_at + :interval)")
                values |= {"now": reader.now, "interval": reader.mark_interval}
        described = wanted.selector is not None
        return Selection(
            CONTENT_JOIN if described else joins,
            "".join(f" AND {one}" for one in conditions),
            values,
            one="uid" in wanted.match.fields,
            described=described,
        )

    def _uid_values(self, uid: UniqueId) -> dict[str, Any]:
        """Returns the parameters for a unique id; one made here may be the number of its message."""
        own = uid.number if uid.origin == self.codec.origin else 0
        return {"own_uid": own, "uid_number": uid.number, "uid_origin": uid.origin}

    # --- rows

    def rows(self, most: int | None = None, /, **where: Any) -> Sequence[QueuedMessage]:
        sql = self.sql[f"rows by {', '.join(where)}"]
        values = {**where, "most": -1 if most is None else most}
        if "uid" in where:
            uid: UniqueId = values.pop("uid")
            number = uid.number if 0 < uid.number < 2**63 else 0
            values |= {"own": number if uid.origin == self.codec.origin else 0, "number": number, "origin": uid.origin}
        elif "numbers" in where:
            values["numbers"] = json.dumps(list(where["numbers"]))
        elif "uids" in where:
            uids: Sequence[UniqueId] = values.pop("uids")
            values |= {"origin": uids[0].origin, "first": uids[0].number, "last": uids[-1].number}
        elif "member" in where:
            values["group"], values["sequence"], values["start"] = values.pop("member")
        elif "lock_confirm" in where:
            values["lock_confirm"] = str(where["lock_confirm"])
        row = self.codec.row
        return [row(columns) for columns in self.engine.execute(sql, values)]

    def read(self, rows: Sequence[QueuedMessage], most: int | None = None) -> Sequence[QueuedMessage]:
        found = []
        for row in rows:
            if most is None or row.message.length <= most:
                message = self.whole(row.number)
            else:
                message = self._beginning_of(row.number, most)
            found.append(row._replace(message=message))
        return found

    def whole(self, number: int) -> Message:
        """Reads a message with its body. Raises: StoreDamaged."""
        return self.full(number, self.engine.execute(self.sql["message by number"], (number,)))

    def full(self, number: int, found: Iterable[tuple[Any, ...]], *, partly: bool = False) -> Message:
        """Makes the message of a statement's only row: see `Codec.full`. Raises: StoreDamaged, also without a row."""
        for columns in found:
            return self.codec.full(columns, partly=partly)
        raise self.codec.damaged(number, "its content is missing")

    def _beginning_of(self, number: int, most: int) -> Message:
        """The same with the beginning of the body, which cannot be verified."""
        beginning = self.engine.beginning(number, most)
        sql = self.sql["message by number without body"]
        found = () if beginning is None else self.engine.execute(sql, (number, beginning))
        return self.full(number, found, partly=True)

    def row_of(self, chosen: Selection) -> Callable[[tuple[Any, ...]], Any]:
        """Returns the function that converts the columns of a statement with this selection."""
        if chosen.asking is not None:
            return chosen.asking.seen
        return self.codec.described if chosen.described else self.codec.row

    def paged(self, queue: int, sql: str, chosen: Selection, after: Place, wanted: object = None) -> Iterator[Any]:
        """Yields the rows of a statement about places, in order, after a place, a page at a time."""
        page, row, sizes = 0, self.row_of(chosen), SEEN_PAGES if chosen.described else PAGES
        values = {**chosen.values, "queue": queue}
        if wanted is not None:
            values["wanted"] = wanted
        while True:
            values["limit"] = size = sizes[min(page, len(sizes) - 1)]
            values["rank"], values["number"], values["ordinal"] = after
            found = self.engine.execute(sql, values).fetchall()
            last = None
            for columns in found:
                last = row(columns)
                yield last
            if last is None or len(found) < size:
                return
            after, page = last.place, page + 1

    # --- streams: rows in order of place, from the database

    def _available(
        self, queue: SearchedQueue, wanted: Wanted, reader: Reader, after: Place | None, heads: Heads
    ) -> Iterator[QueuedMessage]:
        """Yields rows that this reader can get, in order, as far as the database can tell."""
        chosen = self.selection(wanted, reader)

        def rows_after(place: Place) -> Iterator[QueuedMessage]:
            streams = self._available_streams(queue, wanted, reader, place, heads, chosen)
            return streams[0] if len(streams) == 1 else merge(*streams, key=place_of)

        start = after or START
        return self._with_noted(queue.id, reader, chosen, start, rows_after) if reader.passed else rows_after(start)

    def _with_noted(
        self,
        queue: int,
        reader: Reader,
        chosen: Selection,
        after: Place,
        rows_after: Callable[[Place], Iterator[QueuedMessage]],
    ) -> Iterator[QueuedMessage]:
        """Yields rows after a place; on levels searched before, the noted messages and those after the last one
        searched.
        """
        for place in reader.passed:
            yield from takewhile(lambda row, rank=place.rank: row.place.rank < rank, rows_after(after))  # type: ignore[misc]
            yield from self._noted(queue, reader, chosen, place.rank)
            after = max(after, place)
        yield from rows_after(after)

    def _noted(self, queue: int, reader: Reader, chosen: Selection, rank: int) -> Iterator[QueuedMessage]:
        """Yields the noted messages of a level in their present state."""
        for one in reader.noted:
            if one.place.rank == rank:
                yield from self._by_number(queue, one.number, chosen)

    def _available_streams(
        self, queue: SearchedQueue, wanted: Wanted, reader: Reader, after: Place, heads: Heads, chosen: Selection
    ) -> list[Iterator[QueuedMessage]]:
        if reader.lock_id:
            return [self.held(queue.id, 2 * reader.lock, after, chosen, heads)] if reader.lock else []
        streams = self._open_streams(queue.id, wanted.match, after, heads, chosen)
        if queue.has_locked(reader.handle):
            streams.append(self.held(queue.id, -reader.handle, after, chosen, heads))
        return streams

    def _open_streams(
        self, queue: int, match: Match, after: Place, heads: Heads, chosen: Selection
    ) -> list[Iterator[QueuedMessage]]:
        """Returns streams of available messages, from the best index for the match."""
        fields = match.fields

        def by(name: str, wanted: object) -> Iterator[QueuedMessage]:
            return self.paged(queue, ordered(self.sql[f"available by {name}"], chosen), chosen, after, wanted)

        if chosen.one:
            return [self.open(queue, after, chosen, heads)]
        if "token" in fields:
            return [by("number", _as_number(fields["token"]))]
        if "message_id" in fields:
            own = self.codec.number_in(fields["message_id"])
            streams = [by("message id", fields["message_id"])]
            return streams if own is None else [*streams, by("number", own)]
        if "correlation_id" in fields:
            return [by("correlation id", fields["correlation_id"])]
        if "priority" in fields:  # messages at their own priority are consecutive in the order
            priority = fields["priority"]
            at_level = chosen.such(" AND m.rank <= :level", level=-priority)
            start = max(after, Place(-priority, 0, -1))
            return [self.open(queue, start, at_level, heads), by("own priority", priority)]
        return [self.open(queue, after, chosen, heads)]

    def held(
        self, queue: int, holder: int, after: Place, chosen: Selection, heads: Heads = ALL_HEADS
    ) -> Iterator[QueuedMessage]:
        """Yields the messages of one holder, in order."""
        heads = self._there(queue, heads)
        if chosen.one:
            one = chosen.such(HELD_BY)
            return self.paged(queue, ordered(self.sql["messages by unique id"], one), chosen, after, holder)
        return self.paged(queue, ordered(self.sql["messages of holder by place"], chosen, heads), chosen, after, holder)

    def open(self, queue: int, after: Place, chosen: Selection, heads: Heads) -> Iterator[QueuedMessage]:
        """Yields the messages without a holder, which any reader can get, in order."""
        heads = self._there(queue, heads)
        if chosen.one:
            return self.paged(queue, ordered(self.sql["messages by unique id"], chosen.such(OPEN)), chosen, after)
        return self.paged(queue, ordered(self.sql["available by place"], chosen, heads), chosen, after)

    def _there(self, queue: int, heads: Heads) -> Heads:
        """Returns the kinds of heads that can occur: on a queue without groups everything is whole."""
        return heads if self.noted.get(queue, GROUPS) & GROUPS or 2 not in heads else WHOLE

    def holders(self, queue: int) -> list[int]:
        """Returns all holders of messages: one step in the index for each."""
        return list(self._steps("next holder", queue, start=-(2**62)))

    def _steps(self, name: str, *where: Any, start: int) -> Iterator[int]:
        sql, found = self.sql[name], self.value(self.sql[name], *where, start)
        while found is not None:
            yield found
            found = self.value(sql, *where, found)

    # --- the relaxed search

    def candidates(
        self, queue: SearchedQueue, wanted: Wanted, reader: Reader, after: Place | None
    ) -> Iterable[QueuedMessage]:
        if wanted.member is None:
            return self._available(queue, wanted, reader, after, _heads(queue, wanted, reader))
        rows = self.rows(queue=queue.id, member=wanted.member)
        if not (wanted.match or reader.unmarked):
            return rows
        chosen = self.selection(wanted, reader)
        numbers = {row.number for row in self._chosen_of(queue.id, rows, chosen)}
        return [row for row in rows if row.number in numbers]

    def _chosen_of(self, queue: int, rows: Sequence[QueuedMessage], chosen: Selection) -> Iterator[QueuedMessage]:
        """Yields those rows that a call may choose."""
        for row in rows:
            yield from self._by_number(queue, row.number, chosen)

    def _by_number(self, queue: int, number: int, chosen: Selection) -> Iterator[QueuedMessage]:
        """Yields the message of this number, held or not, if the call may choose it."""
        sql = ordered(self.sql["available by number"].replace(" AND m.available", ""), chosen)
        return self.paged(queue, sql, chosen, START, number)

    # --- a search that looks ahead

    def levels(self, queue: SearchedQueue) -> Sequence[int]:
        return self.ranks(queue.id, self.holders(queue.id))

    def level(self, queue: SearchedQueue, wanted: Wanted, reader: Reader, rank: int, after: Place) -> Iterable[SeenRow]:
        assert wanted.selector is not None
        at = reader.now if reader.asked_at is None else reader.asked_at
        chosen = self.selection(wanted, reader)._replace(asking=Asking(self.codec, wanted.selector, at))
        return self._at(queue, wanted, reader, rank, after, chosen)

    def rows_at(
        self, queue: SearchedQueue, wanted: Wanted, reader: Reader, rank: int, after: Place
    ) -> Iterable[QueuedMessage]:
        return self._at(queue, wanted, reader, rank, after, self.selection(wanted, reader))

    def _at(
        self, queue: SearchedQueue, wanted: Wanted, reader: Reader, rank: int, after: Place, chosen: Selection
    ) -> Iterable[Any]:
        heads = HEADS if wanted.heads else ALL_HEADS
        streams: list[Iterator[Any]] = []
        streams += [self.held(queue.id, holder, after, chosen, heads) for holder in self.holders(queue.id)]
        if not reader.lock_id:
            streams += self._open_streams(queue.id, wanted.match, after, heads, chosen)
        rows = streams[0] if len(streams) == 1 else merge(*streams, key=attrgetter("place"))
        return takewhile(lambda row: row.place.rank == rank, rows)

    # --- the strict decision

    def decide(
        self, queue: SearchedQueue, wanted: Wanted, reader: Reader, cursor: Cursor, *, logical: bool
    ) -> Decision[QueuedMessage]:
        holders = self.holders(queue.id)
        others = queue.entered_by_others(wanted, reader) if logical else []
        chosen = self.selection(wanted, reader)
        asked = StrictSearch(queue, wanted, reader, holders, chosen)
        # With a selector it might search everything in vain, and the decision would repeat the search.
        if self.undisputed is not None and cursor == UNSET and not others and wanted.selector is None:
            heads = HEADS if wanted.heads else ALL_HEADS
            rows = self._available(queue, wanted, reader, None, heads)
            row = self.undisputed(asked, rows, heads)
            if row is not None:
                return Decision(row)
        levels = (
            self._level(asked, rank, cursor, others, logical=logical) for rank in self.ranks(queue.id, holders, others)
        )
        return decide_levels(levels)

    def first_pending(
        self, queue: SearchedQueue, rank: int, wanted: Wanted, reader: Reader, cursor: Cursor, *, logical: bool
    ) -> Place | None:
        """Returns the place of the first pending message or unfinished group of a level, which no strict reader can
        pass.
        """
        after = next((shown for level, shown in cursor.levels if level == rank), Place(rank, 0, -1))
        heads = HEADS if wanted.heads else ALL_HEADS
        holders = [holder for holder in self.holders(queue.id) if not is_own(holder, reader)]
        streams = [self.held(queue.id, holder, after, EVERYTHING, heads) for holder in holders]
        if _heads(queue, wanted, reader) == WHOLE:
            streams += self._available_streams(queue, wanted, reader, after, UNFINISHED, EVERYTHING)
        places = []
        if logical:  # a first message that has returned can be taken: the group is blocked after it
            others = (one.place for one in queue.entered_by_others(wanted, reader) if one.place.rank == rank)
            places = [place._replace(ordinal=place.ordinal + 1) for place in others if not cursor.has_shown(place)]
        for stream in streams:
            for row in takewhile(lambda row: row.place.rank == rank, stream):
                standing = queue.judge(row, wanted, reader, logical=logical)
                if standing is not None and standing.pending is not None and not standing.pending.own:
                    if not cursor.has_shown(row.place):
                        places.append(row.place)
                    break
        return min(places, default=None)

    def ranks(
        self, queue: int, holders: Sequence[int] = (), others: Sequence[StrictMatch[QueuedMessage]] = ()
    ) -> list[int]:
        """Returns the levels that have available messages, or messages of these holders."""
        found = {one.place.rank for one in others}
        for head in ALL_HEADS:
            found.update(self._steps("next available rank", queue, head, start=-PRIORITY_MAX - 1))
            for holder in holders:
                found.update(self._steps("next held rank", queue, holder, head, start=-PRIORITY_MAX - 1))
        return sorted(found)

    def _level(
        self,
        asked: StrictSearch,
        rank: int,
        cursor: Cursor,
        others: Sequence[StrictMatch[QueuedMessage]],
        *,
        logical: bool,
    ) -> Iterator[StrictMatch[QueuedMessage]]:
        """Yields the candidates of the decision on one level, in order; of each holder only the first."""
        queue, wanted, reader, holders, chosen = asked
        starts = [place for place in (*reader.passed, *dict(cursor.levels).values()) if place.rank == rank]
        after = max(starts, default=Place(rank, 0, -1))

        def judged(rows: Iterable[QueuedMessage]) -> Iterator[StrictMatch[QueuedMessage]]:
            for row in rows:
                if row.place.rank != rank:
                    return
                standing = queue.judge(row, wanted, reader, logical=logical)
                if standing is not None:
                    yield standing

        heads = HEADS if wanted.heads else ALL_HEADS
        streams: list[Iterable[StrictMatch[QueuedMessage]]] = []
        heads_available = _heads(queue, wanted, reader)
        if heads_available == WHOLE:
            unfinished = self._available_streams(queue, wanted, reader, after, UNFINISHED, chosen)
            streams += [islice(judged(stream), UNFINISHED_MAX) for stream in unfinished]
        streams += [
            judged(one) for one in self._available_streams(queue, wanted, reader, after, heads_available, chosen)
        ]
        for holder in holders:
            if not is_own(holder, reader):
                streams.append(islice(judged(self.held(queue.id, holder, after, chosen, heads)), 1))
        entered = [one for one in others if one.place.rank == rank and not cursor.has_shown(one.place)]
        if reader.noted:  # noted messages come before those of the streams, which are read only when needed
            noted = judged(self._noted(queue.id, reader, chosen, rank))
            yield from in_order(noted, (one for one in entered if one.place <= after))
            entered = [one for one in entered if one.place > after]
        streams.append(entered)
        yield from in_order(*streams)

    def earlier(
        self,
        queue: SearchedQueue,
        before: QueuedMessage | None,
        wanted: Wanted,
        reader: Reader,
        after: Place | None,
        *,
        logical: bool,
    ) -> Sequence[Pending]:
        start = after or START
        if before is not None:
            start = max(start, Place(before.place.rank, 0, -1))
        chosen = self.selection(wanted, reader)
        heads = HEADS if wanted.heads else ALL_HEADS
        streams = [self.held(queue.id, holder, start, chosen, heads) for holder in self.holders(queue.id)]
        if wanted.needs != "nothing":  # incomplete groups and messages
            streams += self._available_streams(queue, wanted, reader, start, heads, chosen)
        others = queue.entered_by_others(wanted, reader) if logical else []
        judged = (queue.judge(row, wanted, reader, logical=logical) for row in merge(*streams, key=place_of))
        standings = in_order((one for one in judged if one is not None), others)
        reached = takewhile(lambda one: before is None or one.place < before.place, standings)
        return first_of_places(one.pending for one in reached if one.place > start)

    # --- groups, and time

    def takers(self, queue: int, group_id: bytes, now: float | None) -> Sequence[int]:
        claims = [unit for (unit,) in self.engine.execute(self.sql["claims inside group"], (queue, group_id))]
        return sorted([*claims, *self._steps("next unit inside group", queue, group_id, now, start=0)])

    def gets_of_group(self, queue: int, group_id: bytes) -> int:
        if group_id == NO_ID:
            return 1
        logical, every, alike = next(self.engine.execute(self.sql["count gets for group"], (queue, group_id)))
        return (logical if alike <= 1 else every) or 1

    def look_again_at(self, queue: SearchedQueue, reader: Reader, *, strict: bool) -> float | None:
        names = ["next delivery", "next lease end", *(["next expiry", "next due"] if strict else [])]
        times = [self.value(self.sql[name], queue.id, reader.now) for name in names]
        if reader.mark_interval < math.inf:
            marked = self.value(self.sql["next unmarking"], queue.id, reader.now - reader.mark_interval)
            times.append(None if marked is None else marked + reader.mark_interval)
        return min((time for time in times if time is not None), default=None)


def _heads(queue: SearchedQueue, wanted: Wanted, reader: Reader) -> Heads:
    """The possible values of `head`. A group of which the reader's own lock holds members is whole only for the
    reader.
    """
    if not wanted.heads:
        return ALL_HEADS
    holds_locks = reader.lock_id or queue.has_locked(reader.handle)
    return WHOLE if wanted.needs == "group" and not holds_locks else HEADS


def is_own(holder: int, reader: Reader) -> bool:
    """Whether this holder's messages never block the call, because the call itself got or locked them (B-21)."""
    if holder == -reader.handle:
        return not reader.lock_id
    if reader.lock_id:
        return holder > 0 and holder == 2 * reader.lock
    return not holder & 1 and reader.has_got_in(holder >> 1)


def _as_number(token: bytes) -> int:
    """Returns the number in a token; if it is too large for any message, one that no message has."""
    number = number_of(token)
    return number if number < 2**63 else 0
