"""Claims and surveys in an SQL database: what is next on each level, in one statement for as many as there are.

The database brings what looks available, in order, up to the limits. Two things it cannot judge alone: what is pending
on a level that is read strictly, so the level ends before its first pending message; and groups of an unusual shape,
which the rules look at one by one (`stores.claiming`).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from ...message import Place
from ...rules.grouping import Members, has_what_it_needs
from ...rules.ordering import UNSET, Cursor
from ..backend import SearchedQueue
from ..queued import Reader, available, is_in_sight
from ..records import BULK_COLUMNS, PAGE_BYTES, PAGE_ROWS, BulkRow, Stretch
from ..surveying import Cut, looked_for
from ..tables import UnitRow
from .search import SqlSearch

NO_END = 2**62
DELIVERY, GROUP, SEQUENCE, OFFSET, LENGTH = map(
    BULK_COLUMNS.index, ("delivery", "group_id", "sequence_number", "offset", "length")
)
DELIVERY_PLACE = 3  # the first columns: the place
HEADS_AT_ONCE = 1024
_BEFORE_ALL: tuple[int, ...] = (0, 0, 0, 0, 0)
Behind = tuple[Any, ...]


class Range(NamedTuple):
    """A part of one level: behind `after`, before `stop`, both (number, ordinal); without some heads."""

    rank: int
    after: tuple[int, int]
    stop: tuple[int, int]
    excluded: Sequence[int] = ()


class Levels:
    """What a reader may be given on a queue, level by level, as ranges of places.

    Attributes:
        most: so many messages or heads of a level are looked at.
        reach: so many messages of it, counting those of groups, are enough.
        unusual: a group was met that is whole, but of a shape that only the rules know how to take.
    """

    def __init__(
        self,
        backend: SqlBulk,
        queue: SearchedQueue,
        reader: Reader,
        cursor: Cursor,
        *,
        logical: bool,
        strict: bool,
        most: int,
    ) -> None:
        self.backend, self.queue, self.reader, self.cursor = backend, queue, reader, cursor
        self.logical, self.strict = logical, strict
        self.most = self.reach = most
        self.unusual = False
        self._wanted = looked_for(logical=logical)

    def __iter__(self) -> Iterator[Range]:
        for rank in self.backend.ranks(self.queue.id):
            shown = next((place for level, place in self.cursor.levels if level == rank), None)
            after = (0, -1) if shown is None else (shown.number, shown.ordinal)
            stop: Place | None = None
            if self.strict:
                stop = self.backend.first_pending(
                    self.queue, rank, self._wanted, self.reader, self.cursor, logical=self.logical
                )
            found = Range(rank, after, (NO_END, 0) if stop is None else (stop.number, stop.ordinal))
            if self.logical:
                found = self.without_odd(found)
            yield found

    def values(self, one: Range, most: int) -> dict[str, Any]:
        """What the statements about a range ask for."""
        horizon = self.reader.horizon
        return {
            "queue": self.queue.id,
            "rank": one.rank,
            "number": one.after[0],
            "ordinal": one.after[1],
            "stop_number": one.stop[0],
            "stop_ordinal": one.stop[1],
            "horizon": NO_END if horizon is None else horizon,
            "excluded": json.dumps(one.excluded),
            "most": most,
        }

    def without_odd(self, one: Range) -> Range:
        """The range without groups that only look whole; read strictly, it ends before the first of them."""
        while True:
            values = self.values(one, self.most) | {"reach": self.reach}
            odd = self.backend.engine.execute(self.backend.sql["odd groups"], values).fetchall()
            missing = []
            for head, group_id, number, ordinal in odd:
                if self._is_whole(head, group_id):
                    self.unusual = True
                elif self.strict:
                    return one._replace(stop=min(one.stop, (number, ordinal)))
                else:
                    missing.append(head)
            if not missing:
                return one
            one = one._replace(excluded=[*one.excluded, *missing])

    def _is_whole(self, head: int, group_id: bytes) -> bool:
        """Whether what begins with this head is whole; of several heads with one group id each is looked at."""
        rows = self.backend.rows(queue=self.queue.id, group_id=group_id)
        there = [row for row in rows if available(row, self.reader) and is_in_sight(row, self.reader)]
        members = Members(row.message for row in there)
        return any(row.number == head and has_what_it_needs(row.message, "group", lambda _: members) for row in there)

    def has_more(self, one: Range) -> bool:
        """Whether there is anything in a range."""
        sql = self.backend.sql[f"anything next of {'groups' if self.logical else 'messages'}"]
        return bool(next(self.backend.engine.execute(sql, self.values(one, 1)))[0])


class _Page:
    """Rows as they are read, until there are as many, or bodies as large, as one page may have."""

    def __init__(self, judged: Callable[[tuple[Any, ...]], BulkRow]) -> None:
        self.rows: list[BulkRow] = []
        self._room = PAGE_BYTES
        self._judged = judged

    def fill(self, found: Any) -> bool:
        """Adds rows from a statement; whether all of them had room."""
        rows, room = self.rows, self._room
        left = PAGE_ROWS - len(rows)
        judged = self._judged
        for columns in found:
            row = judged(columns)
            room -= row[LENGTH]
            if rows and (room < 0 or left <= 0):
                found.close()
                return False
            rows.append(row)
            left -= 1
        self._room = room
        return True


class SqlBulk(SqlSearch):
    """The part of a backend for claims and surveys."""

    def spans(self, unit: int) -> Sequence[tuple[int, int]]:
        spans: list[tuple[int, int]] = self.engine.execute(self.sql["spans"], (unit,)).fetchall()
        return spans

    def claim_page(self, unit: UnitRow, first: int, last: int) -> list[BulkRow]:
        values = {"unit": unit.id, "first": first, "last": last, **self._names(unit.started_at)}
        return self._page(self.engine.execute(self.sql["read claimed"], values))

    def _page(self, found: Any) -> list[BulkRow]:
        """As many rows from a statement as make a page."""
        page = _Page(self.codec.bulk)
        page.fill(found)
        return page.rows

    def _names(self, now: float) -> dict[str, Any]:
        """What rows are completed with: it is not stored."""
        return {"now": now, "prefix": self.codec.prefix, "name": self.codec.name}

    def survey(
        self, queue: SearchedQueue, reader: Reader, cursor: Cursor, most: int, most_bytes: int, slices: int,
        *, logical: bool, strict: bool,
    ) -> list[Cut]:  # fmt: skip
        levels = Levels(self, queue, reader, cursor, logical=logical, strict=strict, most=most)
        sql = self.sql[f"stretches of {'groups' if logical else 'messages'}"]
        chunk = -(-min(most, max(1, queue.depth)) // max(1, slices))
        cuts: list[Cut] = []
        messages = size = 0
        for one in levels:
            values = levels.values(one, most - messages) | {
                "most_bytes": most_bytes - size,
                "weighs": most_bytes < NO_END,
                "first": not messages,
                "chunk": chunk,
            }
            found = self.engine.execute(sql, values).fetchall() if values["most"] > 0 else []
            begun: tuple[Place, int] | None = None
            for number, ordinal, before, upto, size_sum, begins, ends in found:
                place = Place(one.rank, number, ordinal)
                if begins:
                    begun = place, before
                if ends:
                    assert begun is not None
                    cuts.append(Cut(begun[0], place, upto - begun[1]))
                    last_messages, last_size = upto, size_sum
            if found:
                messages, size = messages + last_messages, size + last_size
                rest = one._replace(after=(cuts[-1].last.number, cuts[-1].last.ordinal))
            else:
                rest = one
            if messages and levels.has_more(rest):
                break
        return cuts

    # --- stretches; a place behind: rows delivered, number and ordinal to go on from, head and member of a group

    def stretch_page(
        self, queue: SearchedQueue, reader: Reader, stretch: Stretch, after: Behind
    ) -> tuple[list[BulkRow], Behind | None]:
        delivered, first, *inside = after or (0, stretch.first)
        if stretch.logical:
            page, behind = self._group_page(queue, reader, stretch, first, *inside)
        else:
            page, behind = self._message_page(queue, reader, stretch, first)
        rows = [(*row[:DELIVERY], delivered + nth, *row[DELIVERY + 1 :]) for nth, row in enumerate(page, 1)]
        return rows, None if behind is None else (delivered + len(page), *behind)

    def _message_page(
        self, queue: SearchedQueue, reader: Reader, stretch: Stretch, first: tuple[int, int]
    ) -> tuple[list[BulkRow], Behind | None]:
        values = _bounds(queue, stretch, first) | self._names(reader.now) | {"limit": PAGE_ROWS}
        page = self._page(self.engine.execute(self.sql["read messages"], values))
        behind = (page[-1][1], page[-1][2] + 1) if page else stretch.last
        return page, (behind,) if page and behind <= stretch.last else None

    def _group_page(
        self,
        queue: SearchedQueue,
        reader: Reader,
        stretch: Stretch,
        first: tuple[int, int],
        within: int = 0,
        behind: tuple[int, ...] = _BEFORE_ALL,
    ) -> tuple[list[BulkRow], Behind | None]:
        """Group after group; a page ends where it is full, also inside one.

        Args:
            within, behind: the head of the group in which the page before ended, and its last row.
        """
        page = _Page(self.codec.bulk)
        heads, excluded = self._heads_of(queue, reader, stretch, first)
        for head, group_id, number, ordinal in heads:
            start = behind if head == within else _BEFORE_ALL
            if head not in excluded and not page.fill(self._members(queue, reader.now, head, group_id, start)):
                last = page.rows[-1]
                if last[GROUP] == group_id:
                    start = last[SEQUENCE], last[OFFSET], *last[:DELIVERY_PLACE]
                return page.rows, ((number, ordinal), head, start)
            first = number, ordinal + 1
        return page.rows, None if len(heads) < HEADS_AT_ONCE else (first,)

    def _heads_of(
        self, queue: SearchedQueue, reader: Reader, stretch: Stretch, first: tuple[int, int]
    ) -> tuple[list[Any], Sequence[int]]:
        """The next groups of a stretch, and which of them only look whole."""
        levels = Levels(self, queue, reader, UNSET, logical=True, strict=False, most=HEADS_AT_ONCE)
        levels.reach = NO_END
        ends = stretch.last[0], stretch.last[1] + 1
        looked_at = levels.without_odd(Range(stretch.rank, (first[0], first[1] - 1), ends))
        bounds = _bounds(queue, stretch, first) | {"limit": HEADS_AT_ONCE}
        return self.engine.execute(self.sql["heads of stretch"], bounds).fetchall(), looked_at.excluded

    def _members(
        self, queue: SearchedQueue, now: float, head: int, group_id: bytes | None, behind: tuple[int, ...]
    ) -> Any:
        """The rest of a group, or the one message that stands alone."""
        names = self._names(now)
        if group_id is None:
            return self.engine.execute(self.sql["read single"], {"id": head, **names})
        where = dict(zip(("sequence", "start", "rank", "number", "ordinal"), behind, strict=True))
        return self.engine.execute(self.sql["read group"], {"queue": queue.id, "group": group_id, **where, **names})


def _bounds(queue: SearchedQueue, stretch: Stretch, first: tuple[int, int]) -> dict[str, Any]:
    return {
        "queue": queue.id,
        "rank": stretch.rank,
        "number": first[0],
        "ordinal": first[1],
        "last_number": stretch.last[0],
        "last_ordinal": stretch.last[1],
    }
