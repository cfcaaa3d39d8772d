"""Claims, surveys, stagings and listings in memory: they go through all rows in order."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import Any

from ...model.fields import NONE
from ...model.message import NO_ID, Message, Place, UniqueId
from ...rules.grouping import Wanted, is_head
from ...rules.lifecycle import State
from ...rules.ordering import Cursor, StrictMatch, rank
from ...rules.puts import make_id
from ...rules.selectors import selector_of
from ...rules.staged_columns import KEYS, STAGED_COLUMNS, Batch
from ...rules.staging import StagedMessage, check_numbers, grouped, lined_up
from ..engine.reading import page_end
from ..seam.backend import Counts, Listed, SearchedQueue
from ..seam.bulk_page import BulkPage, PageEnd
from ..seam.looking import group_of, logical_key, logical_position, physical_position, unplaced_position
from ..seam.queued import (
    GOT,
    NEVER,
    QueuedMessage,
    Reader,
    as_got,
    available,
    is_in_sight,
    number_of,
    onlooker,
    place_of,
)
from ..seam.records import BULK_COLUMNS, PAGE_BYTES, PAGE_ROWS, BulkRow, Stretch
from ..seam.surveying import Cut, Shown, cut, looked_for, members_from, within
from ..seam.tables import StagingRow, UnitRow
from ..seam.views import ListingOrder, LookRequest, OrderView, Position


class MemoryBulk(ABC):
    """The part of the memory backend for many rows."""

    _counters: dict[int, Any]
    _messages: dict[int, QueuedMessage]

    def __init__(self, name: str) -> None:
        self._name = name
        self._staged: dict[int, tuple[StagedMessage, ...]] = {}

    def name_after(self, manager_name: str, origin: str) -> None:
        self._name = origin

    @abstractmethod
    def _put(self, table: dict[Any, Any], key: Any, value: Any) -> None: ...
    @abstractmethod
    def _arrive(
        self, queue: int, message: Message, level: int, state: State, place: Place, unit: int | None, now: float
    ) -> None: ...
    @abstractmethod
    def sign(self, number: int, put_by: str) -> None: ...
    @abstractmethod
    def of_queue(self, queue: int) -> list[QueuedMessage]: ...
    @abstractmethod
    def rows(self, most: int | None = None, /, **where: Any) -> Sequence[QueuedMessage]: ...
    @abstractmethod
    def standings(
        self, queue: SearchedQueue, wanted: Wanted, reader: Reader, cursor: Cursor, *, logical: bool
    ) -> Iterator[StrictMatch[QueuedMessage]]: ...

    # --- claims

    def _claimed(self, unit: int) -> list[QueuedMessage]:
        return sorted(self.rows(unit=unit), key=lambda row: row.claimed)

    def spans(self, unit: UnitRow) -> Sequence[tuple[int, int]]:
        found: dict[bytes, list[int]] = {}
        for row in self._claimed(unit.id):
            if row.message.group_id != NO_ID:
                found.setdefault(row.message.group_id, []).append(row.claimed)
        return [(min(positions), max(positions)) for positions in found.values()]

    def claim_page(self, unit: UnitRow, first: int, last: int) -> BulkPage:
        claimed = self._claimed(unit.id)
        rows = claimed[first - 1 : last]
        count = page_end((row.message.length for row in rows), PAGE_ROWS, PAGE_BYTES)
        return BulkPage.of_rows([_bulk(row, claimed, row.claimed, unit.started_at) for row in rows[:count]])

    # --- surveys

    def survey(
        self, queue: SearchedQueue, reader: Reader, cursor: Cursor, most: int, most_bytes: int, slices: int,
        *, logical: bool, strict: bool,
    ) -> list[Cut]:  # fmt: skip
        shown = self._shown(queue, reader, cursor, logical=logical, strict=strict)
        return cut(within(shown, most, most_bytes), slices)

    def _shown(
        self, queue: SearchedQueue, reader: Reader, cursor: Cursor, *, logical: bool, strict: bool
    ) -> Iterator[Shown]:
        """Returns the rows that the browse would show, in order; strictly, each level up to a pending message."""
        blocked: set[int] = set()
        for standing in self.standings(queue, looked_for(logical=logical), reader, cursor, logical=logical):
            level = standing.place.rank
            if level in blocked:
                continue
            if standing.pending is not None or standing.row is None:
                if strict:
                    blocked.add(level)
                continue
            members = self._members(queue, reader, standing.row) if logical else [standing.row]
            yield Shown(standing.place, len(members), sum(one.message.length for one in members))

    def _members(self, queue: SearchedQueue, reader: Reader, head: QueuedMessage) -> Sequence[QueuedMessage]:
        """Returns the readable members of the group that begins here, in logical order."""
        if group_of(head.message) == NO_ID:
            return [head]
        rows = self.rows(queue=queue.id, group_id=head.message.group_id)
        return members_from(head, (row for row in rows if available(row, reader) and is_in_sight(row, reader)))

    def stretch_page(
        self, queue: SearchedQueue, reader: Reader, stretch: Stretch, after: PageEnd
    ) -> tuple[BulkPage, PageEnd | None]:
        delivered, *end = after or (0,)
        placed = [row for row in self.of_queue(queue.id) if row.placed]
        there = (
            (key, row)
            for head in placed
            if self._is_in(queue, head, reader, stretch)
            for row in (self._members(queue, reader, head) if stretch.logical else [head])
            if (key := (head.place, *logical_key(row))) > tuple(end)
        )
        found = list(there)
        count = page_end((row.message.length for _, row in found), PAGE_ROWS, PAGE_BYTES)
        page = [_bulk(row, placed, delivered + nth, reader.now) for nth, (_, row) in enumerate(found[:count], 1)]
        return BulkPage.of_rows(page), (delivered + count, *found[count - 1][0]) if count < len(found) else None

    def _is_in(self, queue: SearchedQueue, row: QueuedMessage, reader: Reader, stretch: Stretch) -> bool:
        """Whether the stretch contains the message, or the group that begins with it."""
        rank_, *where = row.place
        if rank_ != stretch.rank or not stretch.first <= tuple(where) <= stretch.last or not available(row, reader):
            return False
        wanted = looked_for(logical=stretch.logical)
        return not stretch.logical or (is_head(row.message) and queue.has_what_it_needs(row, wanted, reader))

    # --- stagings

    def stage(self, unit: int, first: int, batch: Batch) -> None:
        keys = zip(*(batch.columns[name] for name in KEYS), strict=True)
        rows = [
            StagedMessage(message, first + nth, first + batch.wholes[nth], group_key, order_key)
            for nth, (message, (group_key, order_key)) in enumerate(zip(self._messages_of(batch), keys, strict=True))
        ]
        self._put(self._staged, unit, (*self._staged.get(unit, ()), *rows))

    def _messages_of(self, batch: Batch) -> Iterator[Message]:
        """Converts columns to messages."""
        empty = Message()
        for nth, number in enumerate(batch.numbers):
            values = {name: batch.columns[name][nth] for name in STAGED_COLUMNS if name not in KEYS}
            values |= {name: none for name, none in NONE.items() if values[name] is None}
            if values["message_id"] == NO_ID:
                values["message_id"] = make_id(self._name, number)
            values["length"] = len(values["body"])
            yield empty.with_values(**values, token=number.to_bytes(16, "big"), uid=UniqueId(self._name, number))

    def _all_staged(self, stagings: Sequence[StagingRow]) -> list[StagedMessage]:
        found = enumerate(self._staged.get(one.unit, ()) for one in stagings)
        return [row._replace(staging=nth) for nth, rows in found for row in rows]

    def put_staged(
        self,
        queue: SearchedQueue,
        stagings: Sequence[StagingRow],
        first: int,
        now: float,
        put_by: str | None,
        *,
        own: bool,
        tells: bool,
    ) -> Sequence[Message]:
        def id_of(message: Message) -> bytes:
            return make_id(self._name, number_of(message.token))

        rows = self._all_staged(stagings)
        if any(one.has_numbers for one in stagings):
            check_numbers(row.message for row in rows)
        messages = grouped(lined_up(rows), id_of)
        for nth, message in enumerate(messages):
            level = rank(queue.attributes, message)
            place = Place(level, first + nth, 0) if own else Place(level, first, nth)
            self._arrive(queue.id, message, level, State.UNLOCKED, place, None, now)
            if put_by is not None:
                self.sign(number_of(message.token), put_by)
        return messages if tells else ()

    def end_staging(self, staging: StagingRow, *, drops: bool) -> None:
        if staging.unit in self._staged:
            self._put(self._staged, staging.unit, ())

    # --- for operators

    def listing(self, queue: SearchedQueue, request: LookRequest, unit: int | None, now: float) -> Listed:
        there = [row for row in self.of_queue(queue.id) if row.expires_at > now or row.is_kept]
        selector = selector_of(request.match)
        listed = (one for one in _listed(there, request.order) if _is_shown(*one, unit, request))
        found = [one for one in listed if selector is None or selector.fits(as_got(one[1], now))]
        found.sort(key=_position)
        return Listed(
            [
                (position, row._replace(message=row.message.with_values(body=row.message.body[: request.preview])))
                for position, row in found[: request.most]
            ]
        )

    def volatile_queues(self) -> Sequence[int]:
        return sorted({row.queue for row in self._messages.values() if not row.message.persistent})

    def end_retry_delays(self, queue: int, now: float, numbers: Sequence[int] | None) -> Sequence[int]:
        wanted = set(numbers or ())
        due = [
            row for row in self.of_queue(queue)
            if row.state is State.UNLOCKED and row.due_at > now and (row.backouts or not row.message.delay)
            and (numbers is None or row.number in wanted)
        ]  # fmt: skip
        for row in due:
            self._put(self._messages, row.number, row._replace(due_at=NEVER))
        return [row.number for row in due]

    def timed_queues(self) -> Sequence[int]:
        return sorted(self._counters)

    def overview(self, now: float, queue: int | None = None, *, briefly: bool = False) -> Sequence[Counts]:
        return [self._counts(one, now) for one in self._counters if (one == queue if queue else one)]

    def _counts(self, queue: int, now: float) -> Counts:
        rows = self.of_queue(queue)
        counter, _, depth, arrived, _ = self._counters[queue]
        return Counts(
            queue,
            depth,
            arrived,
            numbered=counter,
            puts=sum(row.state is State.PUT_UNCONFIRMED for row in rows),
            gets=sum(row.state in GOT for row in rows),
            locked=sum(row.state is State.LOCKED for row in rows),
            delayed=sum(row.state is State.UNLOCKED and row.due_at > now for row in rows),
            oldest_put_at=_oldest_put_at(rows),
        )

    def order_view(self, queue: SearchedQueue, now: float) -> OrderView:
        placed = [row for row in self.of_queue(queue.id) if row.placed and row.expires_at > now]
        all_ = [(row, queue.pending_of(row, onlooker(now))) for row in placed]
        puts = [one for row, one in all_ if one is not None and row.state is State.PUT_UNCONFIRMED]
        others = [one for row, one in all_ if one is not None and row.state is not State.PUT_UNCONFIRMED]
        first: dict[int, Place] = {}
        for row, one in all_:
            if one is not None:
                first.setdefault(row.rank, row.place)
        return OrderView(
            unresolved_puts=len(puts),
            oldest_put=min(puts, key=lambda one: one.since, default=None),
            pending_out=len(others),
            oldest_out=min(others, key=lambda one: one.since, default=None),
            withheld=sum(one is None and row.place > first.get(row.rank, row.place) for row, one in all_),
            strict_waiters=0,
        )


# --- rows in bulk


def _bulk(row: QueuedMessage, among: Iterable[QueuedMessage], delivery: int, now: float) -> BulkRow:
    """Converts a message to a row in the order of BULK_COLUMNS, looking for its group's head in `among`."""
    message = as_got(row, now)
    assert message.uid is not None
    values = {name: None if value == NONE.get(name, ...) else value for name, value in message.fields()}
    values |= zip(BULK_COLUMNS, (*row.place, *_head_place(row, among), delivery), strict=False)  # the first of them
    values |= {"persistent": bool(message.persistent), "properties": message.properties.text}
    values |= {"uid_origin": message.uid.origin, "uid_number": message.uid.number}
    return tuple(map(values.__getitem__, BULK_COLUMNS))


def _head_place(row: QueuedMessage, among: Iterable[QueuedMessage]) -> tuple[int | None, int | None, int | None]:
    """Returns the place of a group's head, the first if there are several."""
    if row.message.group_id == NO_ID:
        return row.place
    group_id = row.message.group_id
    heads = (one.place for one in among if one.message.group_id == group_id and is_head(one.message))
    return min(heads, default=(None, None, None))


# --- listings


def _listed(rows: Sequence[QueuedMessage], order: ListingOrder) -> Iterator[tuple[Position, QueuedMessage]]:
    """Returns rows with their positions; in logical order by the place of the group's first member, then within the
    group.
    """
    firsts: dict[bytes, QueuedMessage] = {}
    for row in sorted((row for row in rows if row.placed), key=logical_key):
        firsts.setdefault(group_of(row.message), row)
    for row in rows:
        if not row.placed:
            yield unplaced_position(row), row
        elif order == "physical":
            yield physical_position(row), row
        else:
            group_id = group_of(row.message)
            yield logical_position(row, row if group_id == NO_ID else firsts[group_id]), row


def _is_shown(position: Position, row: QueuedMessage, unit: int | None, request: LookRequest) -> bool:
    if request.after is not None and position <= request.after:
        return False
    if request.numbered_after is not None and not (row.placed and row.place.number > request.numbered_after):
        return False
    return (unit is None or (row.unit or row.lock or -1) == unit) and request.match.accepts(row.message)


def _position(found: tuple[Position, QueuedMessage]) -> Position:
    return found[0]


def _oldest_put_at(rows: Sequence[QueuedMessage]) -> float | None:
    """Compares the lowest number of each holder, and the first place of each level among messages without a holder."""
    held: dict[tuple[object, ...], QueuedMessage] = {}
    for row in sorted(rows, key=lambda row: row.number):
        if row.state is not State.UNLOCKED:
            held.setdefault((row.state, row.unit or (row.locked_handle, row.lock)), row)
    free = sorted((row for row in rows if row.state is State.UNLOCKED), key=place_of)
    oldest = [next(level) for _, level in groupby(free, key=lambda row: row.place.rank)]
    return min((row.message.put_at for row in (*oldest, *held.values())), default=None)
