"""One queue in the file: the search, by index.

The database narrows what is looked at and brings it in order; the rules decide about each row that comes, as they do
in the memory store. Rows come in small pages, so that no statement stays open while the transaction goes on.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from heapq import merge
from itertools import islice, takewhile
from typing import Any, NamedTuple

from ...attributes import QueueAttributes
from ...message import NO_ID, Place, UniqueId
from ...options import Match
from ...rules.grouping import Wanted, is_head
from ...rules.lifecycle import State
from ...rules.ordering import PRIORITY_MAX, UNSET, Cursor, Decision, Pending, Standing, decide_levels
from ..rows import (
    NEVER,
    NO_PLACE,
    Entered,
    HeldLock,
    HeldUnit,
    Locker,
    Reader,
    Row,
    available,
    first_of_places,
    in_order,
    is_in_sight,
)
from ..shelf import Shelf
from .codec import NARROW, NULLS, entry_of, stored_columns
from .reach import Reach
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
    filled,
    ordered,
)
from .statements import statement

PAGES = (1, 64, 1024)  # rows asked for at once: first few, then more
START = Place(-PRIORITY_MAX - 1, 0, 0)  # before every place
UNFINISHED_MAX = 100  # so many unfinished groups before a withheld one are looked at for who holds them

NARROW_COLUMNS = (
    'm.id, m.flags, m.group_id, m.sequence_number, m."offset", m.length, m.original_length, m.persistent, '
    "m.message_id, m.correlation_id, m.uid_origin, m.uid_number, m.state, m.rank, m.number, m.ordinal, m.expires_at, "
    "m.due_at, m.visible_at, m.backouts, m.unit, m.locked_handle, m.locked_at, m.lock, m.lock_confirm, "
    "m.co_op_marked_at, m.forgotten"
)
NARROW_MESSAGE = 12  # so many of them make the message

AVAILABLE = statement("available", columns=NARROW_COLUMNS)
BY_MESSAGE_ID = statement("available by message id", columns=NARROW_COLUMNS)
BY_CORRELATION_ID = statement("available by correlation id", columns=NARROW_COLUMNS)
BY_NUMBER = statement("available by number", columns=NARROW_COLUMNS)
BY_OWN_PRIORITY = statement("available by own priority", columns=NARROW_COLUMNS)
BY_UID = statement("by unique id", columns=NARROW_COLUMNS)
HELD = statement("held", columns=NARROW_COLUMNS)
MEMBERS = statement("members", columns=NARROW_COLUMNS)
MEMBER = statement("member", columns=NARROW_COLUMNS)
ROW = statement("row", columns=NARROW_COLUMNS)
ROW_BY_UID = statement("row by unique id", columns=NARROW_COLUMNS)
HELD_BY_UNIT = statement("held by unit", columns=NARROW_COLUMNS)
LOCKED_WITH = statement("locked with", columns=NARROW_COLUMNS)
LOCKED_UNDER = statement("locked under", columns=NARROW_COLUMNS)
NEXT_HOLDER = statement("next holder")
NEXT_AVAILABLE_RANK = statement("next available rank")
NEXT_HELD_RANK = statement("next held rank")
ENTERED = statement("entered")
NEXT_TAKER = statement("next taker")
NEXT_DELIVERY = statement("next delivery")
NEXT_LEASE_END = statement("next lease end")
NEXT_UNMARKING = statement("next unmarking")
NEXT_EXPIRY = statement("next expiry")
NEXT_DUE = statement("next due")
SHAPES = statement("shapes of group")
READ = statement("read", columns=stored_columns())
READ_APART = statement("read", columns=stored_columns("?2"))


class Here(NamedTuple):
    """A queue as it is at the beginning of a transaction: `queries.sql`, "here"."""

    counter: int
    reserved: int
    depth: int
    next_expiry: float | None
    next_due: float | None
    next_lease_end: float | None
    has_edges: int
    has_marks: int
    has_entered: int
    revision: int


class SqliteQueue(Shelf):
    """A queue as one transaction sees it."""

    def __init__(self, verb: Reach, number: int, attributes: QueueAttributes, here: Here) -> None:
        self.verb, self.id, self.attributes, self.here = verb, number, attributes, here
        self.counter, self.reserved = here.counter, here.reserved
        self.has_entries = bool(here.has_entered)  # groups that readers have entered
        self.added = self.arrived = 0  # to the depth, and to what has arrived, by this transaction
        self.changed = False  # the counter or the depth

    @property
    def depth(self) -> int:
        return self.here.depth + self.added

    def has_work(self, now: float) -> bool:
        """Whether something must be done before anybody looks: messages have expired or are due, leases are over."""
        times = (self.here.next_expiry, self.here.next_due, self.here.next_lease_end)
        return any(time is not None and time <= now for time in times)

    def draw_number(self) -> int:
        self.counter += 1
        self.changed = True
        return self.counter

    def count(self, difference: int) -> None:
        """The depth changes."""
        self.added += difference
        self.changed |= difference != 0

    # --- what the database selects

    def selection(self, wanted: Wanted, reader: Reader) -> Selection:
        if not (wanted.match or wanted.joins or reader.unmarked):
            return EVERYTHING
        return self._narrowed(wanted, reader)

    def _narrowed(self, wanted: Wanted, reader: Reader) -> Selection:
        joins, conditions, values = "", [], dict[str, Any]()
        for name, value in wanted.match.fields.items():
            values[name] = value
            if name == "message_id":
                conditions.append("(m.message_id = :message_id OR (m.message_id IS NULL AND m.id IS :own_id))")
                values["own_id"] = self.verb.codec.number_in(value)
            elif name == "token":
                conditions.append("m.id = :token")
                values[name] = _as_number(value)
            elif name == "uid":
                conditions.append(UID_CONDITION)
                values |= self._uid_values(values.pop("uid"))
            else:
                table = "m" if name in NARROW else "c"
                joins = joins or ("" if name in NARROW else CONTENT_JOIN)
                conditions.append(f'{table}."{name}" IS :{name}')
                values[name] = None if value == NULLS.get(name) else value
        if wanted.joins:
            conditions.append('m."offset" = 0')
        if reader.unmarked:
            conditions.append("NOT EXISTS (SELECT 1 FROM mark WHERE message = m.id AND handle = :reader)")
            values["reader"] = reader.handle
            if reader.co_op:
                conditions.append("(m.co_op_marked_at IS NULL OR :now >= m.co_op_marked_at + :interval)")
                values |= {"now": reader.now, "interval": reader.mark_interval}
        return Selection(joins, "".join(f" AND {one}" for one in conditions), values, "uid" in wanted.match.fields)

    def _uid_values(self, uid: UniqueId) -> dict[str, Any]:
        """A unique id for statements; one made here may be the number of its message."""
        own = uid.number if uid.origin == self.verb.codec.name else 0
        return {"own_uid": own, "uid_number": uid.number, "uid_origin": uid.origin}

    # --- rows

    def row_of(self, columns: Sequence[Any]) -> Row:
        """A row from its narrow columns."""
        (state, rank, number, ordinal, expires_at, due_at, visible_at, backouts, unit, locked_handle, locked_at, lock,
         lock_confirm, co_op_marked_at, forgotten) = columns[NARROW_MESSAGE:]  # fmt: skip
        message = self.verb.codec.narrow(tuple(columns[:NARROW_MESSAGE]))
        return Row(
            message=message,
            number=columns[0],
            rank=rank,
            state=State(state),
            place=NO_PLACE if number is None else Place(rank, number, ordinal),
            placed=number is not None,
            visible_at=NEVER if visible_at is None else visible_at,
            expires_at=math.inf if expires_at is None else expires_at,
            due_at=NEVER if due_at is None else due_at,
            backouts=backouts,
            unit=None if unit is None else self.verb.unit(unit),
            locked_by=None if locked_handle is None else self._locker(locked_handle, locked_at),
            lock=None if lock is None else self._held_lock(lock, lock_confirm),
            co_op_marked_at=NEVER if co_op_marked_at is None else co_op_marked_at,
            forgotten=bool(forgotten),
        )

    def _locker(self, handle: int, since: float) -> Locker:
        connection, program = self.verb.locker(handle)
        return Locker(handle, connection, program, since)

    def _held_lock(self, lock: int, confirm_id: str | None) -> HeldLock:
        unit = self.verb.unit(lock)
        return HeldLock(unit, int(unit.name), int(confirm_id or 0))

    def _rows(self, sql: str, *values: Any) -> list[Row]:
        return [self.row_of(columns) for columns in self.verb.execute(sql, values)]

    def _paged(self, sql: str, chosen: Selection, after: Place, wanted: object = None) -> Iterator[Row]:
        """The rows of a statement about places, in order, behind a place; a page at a time."""
        page, values = 0, {**chosen.values, "queue": self.id}
        if wanted is not None:
            values["wanted"] = wanted
        while True:
            values["limit"] = size = PAGES[min(page, len(PAGES) - 1)]
            values["rank"], values["number"], values["ordinal"] = after
            found = [self.row_of(columns) for columns in self.verb.execute(sql, values)]
            yield from found
            if len(found) < size:
                return
            after, page = found[-1].place, page + 1

    # --- streams: rows in order of place, from the database

    def _available(self, wanted: Wanted, reader: Reader, after: Place | None, heads: Heads) -> Iterator[Row]:
        """What this reader can be given, in order, as far as the database can tell."""
        chosen = self.selection(wanted, reader)
        streams = self._available_streams(wanted, reader, after or START, heads, chosen)
        return streams[0] if len(streams) == 1 else merge(*streams, key=_place)

    def _available_streams(
        self, wanted: Wanted, reader: Reader, after: Place, heads: Heads, chosen: Selection
    ) -> list[Iterator[Row]]:
        if reader.lock_id:
            lock = self.verb.named_unit(self.id, "lock", str(reader.lock_id))
            return [] if lock is None else [self.held(2 * lock.id, after, chosen, heads)]
        streams = self._open_streams(wanted.match, after, heads, chosen)
        if self.verb.has_locked(reader.handle):
            streams.append(self.held(-reader.handle, after, chosen, heads))
        return streams

    def _open_streams(self, match: Match, after: Place, heads: Heads, chosen: Selection) -> list[Iterator[Row]]:
        """Unlocked messages, by the index that knows most of what is looked for."""
        fields = match.fields
        if chosen.one:
            return [self.open(after, chosen, heads)]
        if "token" in fields:
            return [self._paged(ordered(BY_NUMBER, chosen), chosen, after, _as_number(fields["token"]))]
        if "message_id" in fields:
            wanted = fields["message_id"]
            streams = [self._paged(ordered(BY_MESSAGE_ID, chosen), chosen, after, wanted)]
            own = self.verb.codec.number_in(wanted)
            return streams if own is None else [*streams, self._paged(ordered(BY_NUMBER, chosen), chosen, after, own)]
        if "correlation_id" in fields:
            wanted = fields["correlation_id"]
            return [self._paged(ordered(BY_CORRELATION_ID, chosen), chosen, after, wanted)]
        if "priority" in fields:
            return self._of_priority(fields["priority"], after, heads, chosen)
        return [self.open(after, chosen, heads)]

    def _of_priority(self, priority: int, after: Place, heads: Heads, chosen: Selection) -> list[Iterator[Row]]:
        """What stands at its own priority is one stretch of the order; what does not has an index."""
        at_level = chosen.such(" AND m.rank <= :level", level=-priority)
        return [
            self.open(max(after, Place(-priority, 0, -1)), at_level, heads),
            self._paged(ordered(BY_OWN_PRIORITY, chosen), chosen, after, priority),
        ]

    def held(self, holder: int, after: Place, chosen: Selection, heads: Heads = ALL_HEADS) -> Iterator[Row]:
        """What one holder keeps from others, in order."""
        if chosen.one:
            return self._paged(ordered(BY_UID, chosen.such(HELD_BY)), chosen, after, holder)
        return self._paged(ordered(HELD, chosen, heads), chosen, after, holder)

    def open(self, after: Place, chosen: Selection, heads: Heads) -> Iterator[Row]:
        """What nobody holds and everybody can read, in order."""
        if chosen.one:
            return self._paged(ordered(BY_UID, chosen.such(OPEN)), chosen, after)
        return self._paged(ordered(AVAILABLE, chosen, heads), chosen, after)

    def holders(self) -> list[int]:
        """Everyone who keeps messages from others: a step in the index for each."""
        holders: list[int] = []
        holder = self.verb.value(NEXT_HOLDER, self.id, -(2**62))
        while holder is not None:
            holders.append(holder)
            holder = self.verb.value(NEXT_HOLDER, self.id, holder)
        return holders

    # --- the relaxed search

    def first_whole(self, *, strict: bool) -> Row | None:
        """The first head of which nothing seems to be missing; strictly, only if no unfinished one is before it."""
        whole = self._first_head((2,))
        if whole is None or not strict:
            return whole
        first = self._first_head((1, 2))
        return whole if first is not None and first.number == whole.number else None

    def _first_head(self, heads: Heads) -> Row | None:
        return next(self._paged(ordered(AVAILABLE, EVERYTHING, heads), EVERYTHING, START), None)

    def find(self, wanted: Wanted, reader: Reader, after: Place | None) -> Sequence[Row]:
        if wanted.member is not None:
            rows: Iterable[Row] = self._members_at(wanted, self.selection(wanted, reader))
        else:
            rows = self._available(wanted, reader, after, self._heads(wanted, reader))
        for row in rows:
            if available(row, reader) and self.suits(row, wanted, reader):
                return self.pieces(row, wanted, reader)
        return ()

    def _heads(self, wanted: Wanted, reader: Reader) -> Heads:
        """Where it can stand. A group of which the reader's own lock holds something is whole for it alone."""
        if not wanted.heads:
            return ALL_HEADS
        holds_locks = reader.lock_id or self.verb.has_locked(reader.handle)
        return WHOLE if wanted.needs == "group" and not holds_locks else HEADS

    def find_all(self, wanted: Wanted, reader: Reader) -> Iterable[Row]:
        return (row for row in self._available(wanted, reader, None, ALL_HEADS) if available(row, reader))

    def candidates(self, wanted: Wanted) -> Sequence[Row]:
        return self._members_at(wanted, EVERYTHING)

    def _members_at(self, wanted: Wanted, chosen: Selection) -> Sequence[Row]:
        assert wanted.member is not None
        group_id, sequence_number, offset = wanted.member
        values = {**chosen.values, "queue": self.id, "group": group_id, "sequence": sequence_number, "start": offset}
        return [self.row_of(columns) for columns in self.verb.execute(filled(MEMBER, chosen), values)]

    def selects(self, row: Row, wanted: Wanted, reader: Reader) -> bool:
        """What the database has not asked already (B-13)."""
        if wanted.heads and not is_head(row.message):
            return False
        if wanted.joins and row.message.offset:
            return False
        if not is_in_sight(row, reader):
            return False
        return not reader.lock_id or (row.lock is not None and row.lock.lock_id == reader.lock_id)

    def group(self, group_id: bytes) -> Sequence[Row]:
        return sorted(self._rows(MEMBERS, self.id, group_id), key=_place)

    # --- the strict decision

    def decide(self, wanted: Wanted, reader: Reader, cursor: Cursor, *, logical: bool) -> Decision[Row]:
        if wanted.member is not None:
            return self.decide_member(wanted, reader)
        holders = self.holders()
        others = self.entered_by_others(wanted, reader) if logical else []
        chosen = self.selection(wanted, reader)
        if cursor == UNSET and not others:
            row = self._undisputed(wanted, reader, holders, chosen)
            if row is not None:
                return Decision(row)
        levels = (
            self._level(rank, wanted, reader, cursor, holders, others, chosen, logical=logical)
            for rank in self.ranks(holders, others)
        )
        return decide_levels(levels)

    def _undisputed(self, wanted: Wanted, reader: Reader, holders: Sequence[int], chosen: Selection) -> Row | None:
        """The first message of all, if nothing before it on its level is pending: then it is the answer."""
        heads = HEADS if wanted.heads else ALL_HEADS
        rows = (row for row in self._available(wanted, reader, None, heads) if self.selects(row, wanted, reader))
        row = next(rows, None)
        if row is None or row.expires_at <= reader.now or not self.has_what_it_needs(row, wanted, reader):
            return None
        level = Place(row.place.rank, 0, -1)
        for holder in holders:
            if self._is_own(holder, reader):
                continue
            first = next(self.held(holder, level, chosen, heads), None)
            if first is not None and first.place < row.place:
                return None
        return row

    def _is_own(self, holder: int, reader: Reader) -> bool:
        """Whether what this holder keeps never blocks the call: it got or locked it itself (B-21)."""
        if holder == -reader.handle:
            return not reader.lock_id
        if reader.lock_id:
            return holder > 0 and holder % 2 == 0 and self.verb.is_lock(holder // 2, str(reader.lock_id))
        return reader.unit is not None and holder == 2 * self.verb.number_of(reader.unit)

    def first_pending(
        self, rank: int, wanted: Wanted, reader: Reader, cursor: Cursor, *, logical: bool
    ) -> Place | None:
        """Where the first pending message of a level stands, or unfinished group: no strict reader gets past it."""
        after = next((shown for level, shown in cursor.levels if level == rank), Place(rank, 0, -1))
        heads = HEADS if wanted.heads else ALL_HEADS
        streams = [self.held(holder, after, EVERYTHING, heads) for holder in self.holders()]
        if self._heads(wanted, reader) == WHOLE:
            streams += self._available_streams(wanted, reader, after, UNFINISHED, EVERYTHING)
        places = []
        if logical:  # where a first message has come back it can be taken: the group is blocked behind it
            others = (one.place for one in self.entered_by_others(wanted, reader) if one.place.rank == rank)
            places = [place._replace(ordinal=place.ordinal + 1) for place in others if not cursor.has_shown(place)]
        for stream in streams:
            for row in takewhile(lambda row: row.place.rank == rank, stream):
                standing = self.judge(row, wanted, reader, logical=logical)
                if standing is not None and standing.pending is not None and not standing.pending.own:
                    if not cursor.has_shown(row.place):
                        places.append(row.place)
                    break
        return min(places, default=None)

    def ranks(self, holders: Sequence[int] = (), others: Sequence[Standing[Row]] = ()) -> list[int]:
        """The levels on which something is available, or with one of these."""
        found = {one.place.rank for one in others}
        for head in ALL_HEADS:
            found.update(self._steps(NEXT_AVAILABLE_RANK, self.id, head))
            for holder in holders:
                found.update(self._steps(NEXT_HELD_RANK, self.id, holder, head))
        return sorted(found)

    def _steps(self, sql: str, *start: int) -> Iterator[int]:
        rank = self.verb.value(sql, *start, -PRIORITY_MAX - 1)
        while rank is not None:
            yield rank
            rank = self.verb.value(sql, *start, rank)

    def _level(
        self,
        rank: int,
        wanted: Wanted,
        reader: Reader,
        cursor: Cursor,
        holders: Sequence[int],
        others: Sequence[Standing[Row]],
        chosen: Selection,
        *,
        logical: bool,
    ) -> Iterator[Standing[Row]]:
        """What takes part in the decision on one level, in order; of each holder only the first."""
        after = next((shown for level, shown in cursor.levels if level == rank), Place(rank, 0, -1))

        def judged(rows: Iterable[Row]) -> Iterator[Standing[Row]]:
            for row in rows:
                if row.place.rank != rank:
                    return
                standing = self.judge(row, wanted, reader, logical=logical)
                if standing is not None:
                    yield standing

        heads = HEADS if wanted.heads else ALL_HEADS
        streams: list[Iterable[Standing[Row]]] = []
        heads_available = self._heads(wanted, reader)
        if heads_available == WHOLE:
            unfinished = self._available_streams(wanted, reader, after, UNFINISHED, chosen)
            streams += [islice(judged(stream), UNFINISHED_MAX) for stream in unfinished]
        streams += [judged(one) for one in self._available_streams(wanted, reader, after, heads_available, chosen)]
        for holder in holders:
            if not self._is_own(holder, reader):
                streams.append(islice(judged(self.held(holder, after, chosen, heads)), 1))
        streams.append([one for one in others if one.place.rank == rank and not cursor.has_shown(one.place)])
        return in_order(*streams)

    def entries(self) -> list[Entered]:
        if not self.has_entries:
            return []
        return [entry_of(reader, text) for reader, text in self.verb.execute(ENTERED, (self.id,))]

    def takers(self, group_id: bytes, now: float) -> Iterator[HeldUnit]:
        number = self.verb.value(NEXT_TAKER, self.id, group_id, 0, now)
        while number is not None:
            yield self.verb.unit(number)
            number = self.verb.value(NEXT_TAKER, self.id, group_id, number, now)

    def earlier(
        self, before: Row | None, wanted: Wanted, reader: Reader, after: Place | None, *, logical: bool
    ) -> list[Pending]:
        if wanted.member is not None:
            return []
        start = after or START
        if before is not None:
            start = max(start, Place(before.place.rank, 0, -1))
        chosen = self.selection(wanted, reader)
        heads = HEADS if wanted.heads else ALL_HEADS
        streams = [self.held(holder, start, chosen, heads) for holder in self.holders()]
        if wanted.needs != "nothing":  # what is incomplete
            streams += self._available_streams(wanted, reader, start, heads, chosen)
        others = self.entered_by_others(wanted, reader) if logical else []
        judged = (self.judge(row, wanted, reader, logical=logical) for row in merge(*streams, key=_place))
        standings = in_order((one for one in judged if one is not None), others)
        reached = takewhile(lambda one: before is None or one.place < before.place, standings)
        return first_of_places(one.pending for one in reached if one.place > start)

    # --- single rows

    def read(self, rows: Sequence[Row], most: int | None = None) -> Sequence[Row]:
        full, execute = self.verb.codec.full, self.verb.execute
        for row in rows:
            if most is None or row.message.length <= most:
                columns = next(execute(READ, (row.number,)))
            else:
                columns = next(execute(READ_APART, (row.number, self.verb.beginning(row.number, most))))
            row.message = full(columns)
        return rows

    def row(self, number: int | None) -> Row | None:
        if number is None:
            return None
        row = next(iter(self._rows(ROW, number, self.id)), None)
        return row if row is not None and row.placed else None

    def by_uid(self, uid: UniqueId) -> Row | None:
        number = uid.number if 0 < uid.number < 2**63 else 0
        own = number if uid.origin == self.verb.codec.name else 0
        return next(iter(self._rows(ROW_BY_UID, own, self.id, self.id, number, uid.origin)), None)

    def held_under(self, confirm_id: int) -> tuple[HeldUnit | None, Sequence[Row]]:
        unit = self.verb.named_unit(self.id, "confirm", str(confirm_id))
        rows = {} if unit is None else {row.number: row for row in self._rows(HELD_BY_UNIT, unit.id)}
        rows |= {row.number: row for row in self._rows(LOCKED_WITH, self.id, str(confirm_id))}
        return unit, sorted(rows.values(), key=lambda row: (not row.placed, row.place))

    def locked_under(self, lock_id: int) -> Sequence[Row]:
        unit = self.verb.named_unit(self.id, "lock", str(lock_id))
        return [] if unit is None else self.rows_locked_by(unit.id)

    def rows_locked_by(self, unit: int) -> Sequence[Row]:
        """What the unit of a lock id locks, and what was got under it, in order of place."""
        return sorted(self._rows(LOCKED_UNDER, unit), key=_place)

    def gets_of_group(self, group_id: bytes) -> int:
        if group_id == NO_ID:
            return 1
        logical, every, alike = next(self.verb.execute(SHAPES, (self.id, group_id)))
        return (logical if alike <= 1 else every) or 1

    # --- time

    def next_delivery(self, now: float) -> float | None:
        found: float | None = self.verb.value(NEXT_DELIVERY, self.id, now)
        return found

    def next_lease_end(self, now: float) -> float | None:
        if self.here.next_lease_end is None:
            return None
        found: float | None = self.verb.value(NEXT_LEASE_END, self.id, now)
        return found

    def next_unmarking(self, reader: Reader) -> float | None:
        if reader.mark_interval == math.inf:
            return None
        marked: float | None = self.verb.value(NEXT_UNMARKING, self.id, reader.now - reader.mark_interval)
        return None if marked is None else marked + reader.mark_interval

    def next_outcome(self, now: float) -> float | None:
        due = self.verb.value(NEXT_DUE, self.id, now)
        over = self.verb.value(NEXT_EXPIRY, self.id, now)
        return min((time for time in (due, over) if time is not None), default=None)


def _place(row: Row) -> Place:
    return row.place


def _as_number(token: bytes) -> int:
    """The number in a token; one that no message has if it is too large for any."""
    number = int.from_bytes(token, "big")
    return number if number < 2**63 else 0
