"""Claims and surveys in an SQL database: one statement for the next messages of a level, as many as there are.

The database returns available messages in order, up to the limits. It cannot judge two things alone: on a level that is
read strictly, a pending message ends the level; and groups of an unusual shape must be judged by the rules, one by one
(`stores.claiming`).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from itertools import accumulate, compress, islice, takewhile
from typing import Any, NamedTuple

from ...model.message import IN_GROUP, LAST_IN_GROUP, SEGMENTATION_ALLOWED, Place
from ...rules.grouping import Members, has_what_it_needs
from ...rules.ordering import UNSET, Cursor
from ..seam.backend import SearchedQueue
from ..seam.bulk_page import BulkPage, PageEnd
from ..seam.queued import QueuedMessage, Reader, available, is_in_sight
from ..seam.records import PAGE_BYTES, PAGE_ROWS, Stretch
from ..seam.surveying import Cut, Shown, cut, looked_for, members_from, within
from ..seam.tables import UnitRow
from .attention import GROUPS
from .codec import READ_IN_BULK
from .engine import TAKE_AWAY
from .search import NO_END, SqlSearch

PLACE, GROUP_PLACE = ("rank", "number", "ordinal"), ("group_rank", "group_number", "group_ordinal")
LENGTH = READ_IN_BULK.index("length")
HEAD = READ_IN_BULK.index("delivery")  # in logical order this column has the head of the row's group
ID = READ_IN_BULK.index("id")
MEMBER = [READ_IN_BULK.index(name) for name in ("sequence_number", "offset", *PLACE)]
SEQUENCE, OFFSET, FLAGS = (READ_IN_BULK.index(name) for name in ("sequence_number", "offset", "flags"))
INNER_FLAGS = frozenset({IN_GROUP, IN_GROUP | SEGMENTATION_ALLOWED})
LAST_FLAGS = frozenset(flags | LAST_IN_GROUP for flags in INNER_FLAGS)
HEADS_AT_ONCE = 1024
ROWS_AT_ONCE = 256
_BEFORE_ALL: tuple[int, ...] = (0, 0, 0, 0, 0)


class Range(NamedTuple):
    """A part of one level: after `after` and before `stop`, both (number, ordinal), without the heads in `excluded`."""

    rank: int
    after: tuple[int, int]
    stop: tuple[int, int]
    excluded: Sequence[int] = ()


class Levels:
    """The messages that a reader may get on a queue, level by level, as ranges of places.

    Attributes:
        most: the number of messages of a level to look at, counting those of groups, and the group after them.
        kind: of the next ones: messages, whole groups, or messages on a queue without groups.
        plain: no group so far had a message in segments, or another unusual shape.
        unusual: the heads of groups that are whole, but of a shape that only the rules can take.
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
        self.most = most
        self.plain = True
        self.unusual: set[int] = set()
        self.kind = "singles"
        if backend.noted[queue.id] & GROUPS:
            self.kind = "groups" if logical else "messages"
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
            if self.kind == "groups":
                found = self.without_odd(found)
            yield found

    def values(self, one: Range, most: int) -> dict[str, Any]:
        """Returns the parameters of the statements about a range."""
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
        """Returns the range without incomplete groups that look whole; read strictly, it ends before the first of
        them.
        """
        while True:
            values = self.values(one, self.most + 1)
            doubtful = self.backend.engine.execute(self.backend.sql["doubtful groups"], values).fetchall()
            missing = []
            for head, group_id, number, ordinal, is_odd in doubtful:
                self.plain = False
                if not is_odd:
                    continue
                if self._is_whole(head, group_id):
                    self.unusual.add(head)
                elif self.strict:
                    return one._replace(stop=min(one.stop, (number, ordinal)))
                else:
                    missing.append(head)
            if not missing:
                return one
            one = one._replace(excluded=[*one.excluded, *missing])

    def _is_whole(self, head: int, group_id: bytes) -> bool:
        """Whether the group that begins with this head is whole; if several heads have one group id, each is
        checked.
        """
        there = self._there(group_id)
        members = Members(row.message for row in there)
        return any(row.number == head and has_what_it_needs(row.message, "group", lambda _: members) for row in there)

    def members(self, head: int, group_id: bytes | None) -> Sequence[QueuedMessage]:
        """Returns the readable members of the group that begins with this head, in logical order."""
        if group_id is None:
            return self.backend.rows(queue=self.queue.id, number=head)
        there = self._there(group_id)
        return next((members_from(row, there) for row in there if row.number == head), [])

    def _there(self, group_id: bytes) -> list[QueuedMessage]:
        """Returns the readable messages that have this group id."""
        rows = self.backend.rows(queue=self.queue.id, group_id=group_id)
        return [row for row in rows if available(row, self.reader) and is_in_sight(row, self.reader)]

    def has_more(self, one: Range) -> bool:
        """Whether there are messages in a range."""
        sql = self.backend.sql[f"exists next of {self.kind}"]
        return bool(next(self.backend.engine.execute(sql, self.values(one, 1)))[0])


class _Head(NamedTuple):
    """The head of a group, or a message in no group; `messages`: how many seem to belong to it."""

    id: int
    group_id: bytes | None
    number: int
    ordinal: int
    messages: int


class _Columns:
    """Columns being read, up to the rows and bytes of one page.

    Rows are converted in batches that are too small for the garbage collector to notice them.

    Attributes:
        columns: in the order of READ_IN_BULK.
        messages: the number of rows.
    """

    def __init__(self) -> None:
        self.columns: list[list[Any]] = [[] for _ in READ_IN_BULK]
        self.messages = 0
        self._room = PAGE_BYTES
        self._is_full = False

    @property
    def left(self) -> int:
        """How many more rows the page can take."""
        return PAGE_ROWS - self.messages

    def fill(self, found: Any) -> bool:
        """Adds rows from a statement. Returns whether all of them fitted."""
        while rows := self._with_room(islice(found, min(ROWS_AT_ONCE, self.left))):
            self.messages += len(rows)
            for column, values in zip(self.columns, zip(*rows, strict=True), strict=True):
                column.extend(values)
        if next(found, None) is None and not self._is_full:
            return True
        found.close()
        return False

    def doubtful(self, heads: Sequence[_Head], begun: int) -> list[_Head]:
        """Returns the groups, in rows from `begun` on, that are not just messages 1 to n without segments, the last one
        marked.
        """
        ids, sequences, offsets, flags = (self.columns[at] for at in (HEAD, SEQUENCE, OFFSET, FLAGS))
        doubtful, end = [], begun
        for head in heads:
            start, end = end, end + head.messages
            if start >= self.messages:
                break
            if head.group_id is not None and not (
                ids[start] == head.id
                and ids[start : end + 1].count(head.id) == head.messages
                and sequences[start:end] == list(range(1, head.messages + 1))
                and not any(offsets[start:end])
                and INNER_FLAGS.issuperset(flags[start : end - 1])
                and flags[end - 1] in LAST_FLAGS
            ):
                doubtful.append(head)
        return doubtful

    def keep(self, begun: int, members: Mapping[int, Set[int]]) -> None:
        """Removes the rows from `begun` on that are not members of their groups, for groups with heads in `members`."""
        if members:
            rows = zip(self.columns[HEAD][begun:], self.columns[ID][begun:], strict=True)
            kept = [head not in members or number in members[head] for head, number in rows]
            for column in self.columns:
                column[begun:] = compress(column[begun:], kept)
            self.messages = len(self.columns[HEAD])

    def _with_room(self, found: Iterator[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
        rows: list[tuple[Any, ...]] = []
        room = self._room
        for row in found:
            if type(row[LENGTH]) is int:  # otherwise the codec refuses it
                room -= row[LENGTH]
            if room < 0 and (rows or self.messages):
                self._is_full = True
                break
            rows.append(row)
        self._room = room
        return rows


class SqlBulk(SqlSearch):
    """The part of a backend for claims and surveys, and for plain gets."""

    def take_away(self, queue: int, count: int) -> Sequence[tuple[Any, ...]]:
        """Reads, deletes and counts the first messages of a queue by one statement."""
        found: Sequence[tuple[Any, ...]] = self.engine.run(self.sql[TAKE_AWAY], (queue, count)).fetchall()
        return found

    def spans(self, unit: UnitRow) -> Sequence[tuple[int, int]]:
        spans: list[tuple[int, int]] = self.engine.execute(
            self.sql["group bounds in claim"], (unit.id, unit.queue)
        ).fetchall()
        return spans

    def claim_page(self, unit: UnitRow, first: int, last: int) -> BulkPage:
        found = _Columns()
        values = {"unit": unit.id, "queue": unit.queue, "first": first, "last": min(last, first + PAGE_ROWS - 1)}
        found.fill(self.engine.scan(self.sql["messages of claim"], values))
        return self._page(found, unit.started_at, unit.queue, unit.id)

    def _page(self, found: _Columns, now: float, queue: int | None, claim: int | None) -> BulkPage:
        """Makes a page of the columns. Each group has its head's place; in a claim only heads in the claim count."""
        if not found.messages:
            return BulkPage.of_rows(())
        page = self.codec.bulk(found.columns, now)
        group_ids = page.column("group_id")
        groups = set(group_ids)
        places: Iterable[Sequence[int | None]] = map(page.column, PLACE)
        if wanted := tuple(groups - {None}):
            values = {"groups": self.engine.array(wanted), "queue": queue, "claim": claim}
            found_ids, *found_places = zip(*self.engine.execute(self.sql["places of groups"], values), strict=True)
            heads = [dict(zip(found_ids, values, strict=True)) for values in found_places]
            if None in groups:
                places = [
                    [own if group is None else of[group] for group, own in zip(group_ids, owns, strict=True)]
                    for of, owns in zip(heads, places, strict=True)
                ]
            else:
                places = [list(map(of.__getitem__, group_ids)) for of in heads]
        return page.with_columns(dict(zip(GROUP_PLACE, places, strict=True)))

    def survey(
        self, queue: SearchedQueue, reader: Reader, cursor: Cursor, most: int, most_bytes: int, slices: int,
        *, logical: bool, strict: bool,
    ) -> list[Cut]:  # fmt: skip
        levels = Levels(self, queue, reader, cursor, logical=logical, strict=strict, most=most)
        chunk = -(-min(most, max(1, queue.depth)) // max(1, slices))
        cuts: list[Cut] = []
        messages = size = 0
        for one in levels:
            if levels.unusual:
                everything = Levels(self, queue, reader, cursor, logical=logical, strict=strict, most=NO_END)
                return cut(within(self._shown(everything, weighs=most_bytes < NO_END), most, most_bytes), slices)
            rest = one
            if messages < most:
                values = levels.values(one, most - messages) | {
                    "most_bytes": most_bytes - size,
                    "weighs": most_bytes < NO_END,
                    "first": not messages,
                    "chunk": chunk,
                }
                found, bytes_ = (self._cut_groups if levels.kind == "groups" else self._cut)(levels, one, values)
                if found:
                    cuts += found
                    messages, size = messages + sum(cut.messages for cut in found), size + bytes_
                    rest = _rest_after(one, found[-1])
            if messages and levels.has_more(rest):
                break
        return cuts

    def _shown(self, levels: Levels, *, weighs: bool) -> Iterator[Shown]:
        """Yields the groups of all levels by the rules; their sizes only if `weighs`."""
        horizon = NO_END if levels.reader.horizon is None else levels.reader.horizon
        for one in levels:
            last = one.stop[0], one.stop[1] - 1
            following: tuple[int, int] | None = one.after[0], one.after[1] + 1
            while following:
                stretch = Stretch(True, one.rank, following, last, 0)
                heads, following = self._heads_of(levels.queue, stretch, following, NO_END)
                for head in heads:
                    if head.id in one.excluded or head.number > horizon:
                        continue
                    messages, size = head.messages, 0
                    if weighs or head.id in levels.unusual:
                        members = levels.members(head.id, head.group_id)
                        messages, size = len(members), sum(row.message.length for row in members)
                    yield Shown(Place(one.rank, head.number, head.ordinal), messages, size)

    def _cut(self, levels: Levels, one: Range, values: dict[str, Any]) -> tuple[list[Cut], int]:
        """Cuts a level of single messages up to the limits. Also returns the size if bytes are limited."""
        counted = (
            f"count next messages by bytes of {levels.kind}"
            if values["weighs"]
            else f"count next messages of {levels.kind}"
        )
        left, size = next(self.engine.execute(self.sql[counted], values))
        cuts: list[Cut] = []
        while left:
            messages = min(values["chunk"], left)
            first, last = (self._nth(levels, one, nth) for nth in (1, messages))
            cuts.append(Cut(first, last, messages))
            left, one = left - messages, _rest_after(one, cuts[-1])
        return cuts, size

    def _nth(self, levels: Levels, one: Range, nth: int) -> Place:
        values = levels.values(one, nth) | {"before": nth - 1}
        return Place(one.rank, *next(self.engine.execute(self.sql[f"place of nth message of {levels.kind}"], values)))

    def _cut_groups(self, levels: Levels, one: Range, values: dict[str, Any]) -> tuple[list[Cut], int]:
        """As `_cut`, for whole groups; no cut divides one."""
        cuts: list[Cut] = []
        first, before, size = None, 0, 0
        found = self.engine.execute(self.sql["stretches of groups"], values)
        for number, ordinal, begun, upto, size, begins, ends in found:  # noqa: B007 - the last size is that of all
            place = Place(one.rank, number, ordinal)
            if begins:
                first, before = place, begun
            if ends:
                assert first is not None
                cuts.append(Cut(first, place, upto - before))
        return cuts, size

    # --- stretches; a position: rows delivered, number and ordinal to continue from, head and member of a group

    def stretch_page(
        self, queue: SearchedQueue, reader: Reader, stretch: Stretch, after: PageEnd
    ) -> tuple[BulkPage, PageEnd | None]:
        delivered, first, *inside = after or (0, stretch.first)
        if stretch.logical and self.noted[queue.id] & GROUPS:
            found, end = self._read_groups(queue, reader, stretch, first, *inside)
            page = self._page(found, reader.now, queue.id, None)
        else:
            page, end = self._message_page(queue, reader, stretch, first)
        if page:
            page = page.with_columns({"delivery": range(delivered + 1, delivered + len(page) + 1)})
        return page, None if end is None else (delivered + len(page), *end)

    def _message_page(
        self, queue: SearchedQueue, reader: Reader, stretch: Stretch, first: tuple[int, int]
    ) -> tuple[BulkPage, PageEnd | None]:
        found = _Columns()
        values = _bounds(queue, stretch, first) | {"limit": PAGE_ROWS}
        found.fill(self.engine.scan(self.sql["messages of stretch"], values))
        page = self._page(found, reader.now, queue.id, None)
        if not page:
            return page, None
        end = page.column("number")[-1], page.column("ordinal")[-1] + 1
        return page, (end,) if end <= stretch.last else None

    def _read_groups(
        self,
        queue: SearchedQueue,
        reader: Reader,
        stretch: Stretch,
        first: tuple[int, int],
        within: int = 0,
        end: tuple[int, ...] = _BEFORE_ALL,
    ) -> tuple[_Columns, PageEnd | None]:
        """Reads group after group; a full page may end inside one.

        Args:
            within, end: the head of the group in which the last page ended, and its last row.
        """
        read = _Columns()
        following: tuple[int, int] | None = first
        while following and read.left:
            heads, following = self._heads_of(queue, stretch, following, read.left)
            while heads and read.left:
                begun = read.messages
                start = end if heads[0].id == within else _BEFORE_ALL
                count = _fitting(heads, read.left) if start is _BEFORE_ALL else 0
                members = {} if count else self._members_of_odd(queue, reader, stretch, heads[:1])
                if count:
                    found = self._members(queue, heads[:count], read.left)
                elif not members.get(heads[0].id, True):
                    heads = heads[1:]
                    continue
                else:
                    found = self._members_after(queue, heads[0], start)
                has_room = read.fill(found)
                ended = None if has_room else _where_it_ended(heads, read, begun)
                if count:
                    members = self._members_of_odd(queue, reader, stretch, read.doubtful(heads[:count], begun))
                read.keep(begun, members)
                if ended:
                    return read, ended
                heads = heads[max(count, 1) :]
            if heads:
                following = heads[0].number, heads[0].ordinal
        return read, (following,) if following else None

    def _heads_of(
        self, queue: SearchedQueue, stretch: Stretch, first: tuple[int, int], most: int
    ) -> tuple[list[_Head], tuple[int, int] | None]:
        """Returns the next groups of a stretch, with at least `most` messages, and where the following ones begin."""
        heads: list[_Head] = []
        found = self.engine.scan(self.sql["heads of stretch"], _bounds(queue, stretch, first))
        for head in map(_Head._make, found):
            if most <= 0 or len(heads) == HEADS_AT_ONCE:
                found.close()
                return heads, (head.number, head.ordinal)
            heads.append(head)
            most -= head.messages
        return heads, None

    def _members_of_odd(
        self, queue: SearchedQueue, reader: Reader, stretch: Stretch, heads: Sequence[_Head]
    ) -> Mapping[int, Set[int]]:
        """Returns, by their heads, the members of those groups where other messages have the group's id.

        A group that is not whole has none.
        """
        if not heads:
            return {}
        levels = Levels(self, queue, reader, UNSET, logical=True, strict=False, most=NO_END)
        first, last = heads[0], heads[-1]
        between = Range(stretch.rank, (first.number, first.ordinal - 1), (last.number, last.ordinal + 1))
        missing = levels.without_odd(between).excluded
        ids = {head.id: head.group_id for head in heads}
        unusual = {
            head: {row.number for row in levels.members(head, ids[head])} for head in levels.unusual & ids.keys()
        }
        return dict.fromkeys(missing, frozenset()) | unusual

    def _members(self, queue: SearchedQueue, heads: Sequence[_Head], most: int) -> Any:
        """Yields the members of some groups: one more than there is room for if they are more than expected."""
        values = {"heads": self.engine.array([head.id for head in heads]), "queue": queue.id, "most": most + 1}
        return self.engine.scan(self.sql["messages of groups"], values)

    def _members_after(self, queue: SearchedQueue, head: _Head, end: tuple[int, ...]) -> Any:
        where = dict(zip(("sequence", "start", "rank", "number", "ordinal"), end, strict=True))
        values = {"head": head.id, "queue": queue.id, "group": head.group_id, **where}
        return self.engine.scan(self.sql["messages of group"], values)


def _fitting(heads: Sequence[_Head], most: int) -> int:
    """Returns the number of groups for which there is room."""
    return sum(1 for _ in takewhile(most.__ge__, accumulate(head.messages for head in heads)))


def _where_it_ended(heads: Sequence[_Head], read: _Columns, begun: int) -> PageEnd:
    """The position after the last row of a full page; `heads`: the groups read last, from row `begun` on."""
    if read.messages == begun:
        return ((heads[0].number, heads[0].ordinal),)
    last = [column[-1] for column in read.columns]
    return _inside(next(head for head in heads if head.id == last[HEAD]), last)


def _inside(head: _Head, last: Sequence[Any]) -> PageEnd:
    """The position after a row of a group, or after a message in no group."""
    if head.group_id is None:
        return ((head.number, head.ordinal + 1),)
    return (head.number, head.ordinal), head.id, tuple(last[at] for at in MEMBER)


def _rest_after(one: Range, cut: Cut) -> Range:
    return one._replace(after=(cut.last.number, cut.last.ordinal))


def _bounds(queue: SearchedQueue, stretch: Stretch, first: tuple[int, int]) -> dict[str, Any]:
    return {
        "queue": queue.id,
        "rank": stretch.rank,
        "number": first[0],
        "ordinal": first[1],
        "last_number": stretch.last[0],
        "last_ordinal": stretch.last[1],
    }
