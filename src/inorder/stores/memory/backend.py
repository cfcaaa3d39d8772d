"""Rows and transactions in this process's memory, and the naive search that is the specification.

Everything is in dictionaries of immutable values. Each change of a dictionary is recorded, so that it can be undone.
The search goes through the messages of a queue in the order of their places and applies the rules to each. `_Index`
caches the results of full scans, and is rebuilt after a failure.
"""

from __future__ import annotations

import itertools
import math
import operator
import os
from bisect import bisect_left, bisect_right, insort
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import Any, NamedTuple, TypeVar

from ...model.message import NO_ID, REPORT_GENERATED, Message, Place, Row
from ...rules.grouping import Wanted, is_end
from ...rules.lifecycle import State, becomes_visible
from ...rules.ordering import UNSET, Cursor, Decision, Pending, StrictMatch, decide, rank
from ..seam.backend import Expired, OperationKind, QueueCounters, QueueState, SearchedQueue, Share
from ..seam.queued import (
    GOT,
    LOCKS,
    NEVER,
    NO_PLACE,
    QueuedMessage,
    Reader,
    SeenRow,
    cost_of,
    first_of_places,
    fits,
    in_order,
    is_marked,
    number_of,
    numbers,
)
from ..seam.records import Act
from ..seam.tables import KEY_LENGTHS, DefinitionRow, EnteredRow, ManagerRow, MarkRow, UnitRow, UpTo, WaitRow
from .bulk import MemoryBulk

T = TypeVar("T")
_NOTHING: Any = object()


class _Counters(NamedTuple):
    """The counters of a queue; see `backend.QueueCounters`."""

    counter: int = 0
    reserved: int = 0
    depth: int = 0
    arrived: int = 0
    revision: int = 0


class _Index:
    """Indexes: places in order, and the other keys of messages."""

    def __init__(self, rows: Iterable[QueuedMessage]) -> None:
        self.placed: dict[int, list[tuple[Place, int]]] = defaultdict(list)
        self.by: dict[tuple[Any, ...], dict[int, None]] = defaultdict(dict)
        for row in rows:
            self.add(row)

    @staticmethod
    def _keys(row: QueuedMessage) -> Iterator[tuple[Any, ...]]:
        yield "queue", row.queue
        yield "uid", row.queue, row.message.uid
        if row.message.group_id != NO_ID:
            yield "group_id", row.queue, row.message.group_id
        if row.unit is not None:
            yield "unit", row.unit
        if row.lock is not None:
            yield "lock", row.lock
        if row.locked_handle is not None:
            yield "locked_handle", row.locked_handle
        if row.expires_at < math.inf:
            yield "expiring", row.queue
        if row.message.report & REPORT_GENERATED:
            yield "reporting", row.queue

    def add(self, row: QueuedMessage) -> None:
        if row.placed:
            insort(self.placed[row.queue], (row.place, row.number))
        for key in self._keys(row):
            self.by[key][row.number] = None

    def discard(self, row: QueuedMessage) -> None:
        if row.placed:
            places = self.placed[row.queue]
            del places[bisect_left(places, (row.place, row.number))]
        for key in self._keys(row):
            del self.by[key][row.number]

    def numbers(self, *key: Any) -> list[int]:
        return list(self.by.get(key, ()))


class MemoryBackend(MemoryBulk):
    """All rows of a store in memory.

    Args:
        manager: the attributes of the queue manager; `name` is its name, which is part of ids.
    """

    def __init__(self, manager: str, name: str) -> None:
        super().__init__(name)
        self.is_inside = self.has_happened = False
        self._records: dict[type[Any], dict[tuple[Any, ...], Any]] = {kind: {} for kind in KEY_LENGTHS}
        self._messages: dict[int, QueuedMessage] = {}
        self._put_by: dict[int, str] = {}  # by message number
        self._counters: dict[int, _Counters] = {}
        self._numbers: dict[str, int] = {}  # of definitions, by name
        self._drawn = 0  # never undone: these numbers are not used again
        self._steps: list[tuple[dict[Any, Any], Any, Any]] = []  # dictionary, key, and the old value
        self._kept = 0
        self._index: _Index | None = None
        self._put(self._records[ManagerRow], (1,), ManagerRow(1, manager, 1, "", os.urandom(16).hex(), 0.0))

    # --- transactions

    def begin(self, kind: OperationKind) -> None:
        self.has_happened, self.is_inside = False, True
        self._steps.clear()
        self._kept = 0

    def keep(self, counts: Sequence[QueueCounters]) -> None:
        self._count(counts)
        self._kept = len(self._steps)

    def commit(
        self, counts: Sequence[QueueCounters], changed: Collection[int], *, reserves: bool, durable: bool
    ) -> int:
        self._count(counts)
        self.has_happened, self.is_inside = True, False
        return 0

    def abort(self, error: BaseException, *, keeps: bool = False) -> bool:
        kept = self._kept if keeps else 0
        while len(self._steps) > kept and not self.has_happened:
            table, key, before = self._steps[-1]
            if table is self._messages:
                self._index = None  # rebuilt when needed
            if before is _NOTHING:
                table.pop(key, None)
            else:
                table[key] = before
            self._steps.pop()
        self.is_inside = kept > 0
        return kept > 0

    def _put(self, table: dict[Any, Any], key: Any, value: Any) -> None:
        """Makes every change; no other method changes anything."""
        before = table.get(key, _NOTHING)
        self._steps.append((table, key, before))
        if table is self._messages and self._index is not None:
            if before is not _NOTHING:
                self._index.discard(before)
            if value is not _NOTHING:
                self._index.add(value)
        if value is _NOTHING:
            del table[key]
        else:
            table[key] = value

    def _count(self, counts: Sequence[QueueCounters]) -> None:
        for queue, counter, reserved, added, arrived in counts:
            if (known := self._counters.get(queue)) is not None:
                counted = _Counters(counter, reserved, known.depth + added, known.arrived + arrived, known.revision)
                self._put(self._counters, queue, counted)

    def common_time(self, now: float) -> float:
        return now

    # --- small records

    def select(self, kind: type[T], /, **where: Any) -> list[T]:
        table = self._records[kind]
        keys = kind._fields[: KEY_LENGTHS[kind]]  # type: ignore[attr-defined]
        if kind is DefinitionRow and "name" in where:
            number = self._numbers.get(where["name"])
            return [] if number is None else [table[number,]]
        if where.keys() == set(keys) and not any(isinstance(value, UpTo) for value in where.values()):
            found = table.get(tuple(where[name] for name in keys))
            return [] if found is None else [found]
        found = [record for _, record in sorted((key, one) for key, one in table.items() if _has(one, where))]
        for name, value in where.items():
            if isinstance(value, UpTo) and value.most is not None:
                found.sort(key=operator.attrgetter(name))
                return sorted(found[: value.most])
        return found

    def save(self, record: Any) -> None:
        kind = type(record)
        key = record[: KEY_LENGTHS[kind]]
        if kind is DefinitionRow and record.type == "local" and record.id not in self._counters:
            (manager,) = self._records[ManagerRow].values()
            self._put(self._counters, record.id, _Counters(revision=manager.revision))
        if kind is DefinitionRow:
            self._put(self._numbers, record.name, record.id)
        self._put(self._records[kind], key, record)

    def remove_records(self, kind: type[Any], /, **where: Any) -> int:
        table = self._records[kind]
        gone = {key: record for key, record in table.items() if _has(record, where)}
        for key, record in gone.items():
            self._put(table, key, _NOTHING)
            if kind is DefinitionRow:
                self._put(self._numbers, record.name, _NOTHING)
                if key[0] in self._counters:
                    self._put(self._counters, key[0], _NOTHING)
        return len(gone)

    def revise(self, queues: Collection[int] | None) -> None:
        (manager,) = self._records[ManagerRow].values()
        for queue in list(self._counters) if queues is None else queues:
            self._put(self._counters, queue, self._counters[queue]._replace(revision=manager.revision))

    def newest_acts(self, before: tuple[float, int] | None, most: int, skip: int = 0) -> Sequence[Act]:
        rows = [row for row in self._records[Act].values() if before is None or (row.at, row.id) < before]
        return sorted(rows, key=lambda row: (row.at, row.id), reverse=True)[skip : skip + most]

    def forget_edges(self, queue: int, but: int) -> None:
        for one in self.select(WaitRow, queue=queue):
            if one.connection != but:
                self.save(one._replace(levels=None))

    def draw(self, count: int, reserve: int) -> tuple[range, bool]:
        first, self._drawn = self._drawn + 1, self._drawn + count
        return range(first, first + count), False

    reserved_unseen = 0

    def skip_reserved(self) -> None:
        """Nothing to do: numbers are lost only together with the store."""

    def state(self, queue: int) -> QueueState | None:
        if queue not in self._counters:
            return None
        counter, reserved, depth, _, revision = self._counters[queue]
        expiring = [self._messages[number] for number in self.index.numbers("expiring", queue)]
        units = self._records[UnitRow].values()
        leases = [one.lease_ends_at for one in units if one.queue == queue and one.lease_ends_at is not None]
        return QueueState(
            counter,
            reserved,
            depth,
            next_expiry=min((row.expires_at for row in expiring if not row.is_kept), default=None),
            next_due=None,  # due messages become available without a change
            next_lease_end=min(leases, default=None),
            has_edges=any(one.queue == queue and one.levels is not None for one in self._records[WaitRow].values()),
            has_marks=bool(self._records[MarkRow]),
            has_entered=any(one.queue == queue for one in self._records[EnteredRow].values()),
            has_reports=bool(self.index.numbers("reporting", queue)),
            revision=revision,
        )

    def check_certain(self, queue: int) -> None:
        """Always correct."""

    # --- finding messages

    @property
    def index(self) -> _Index:
        if self._index is None:
            self._index = _Index(self._messages.values())
        return self._index

    def of_queue(self, queue: int) -> list[QueuedMessage]:
        """Returns all messages on a queue, in order of place, then those without a place in order of arrival."""
        rows = [self._messages[number] for number in sorted(self.index.numbers("queue", queue))]
        return sorted(rows, key=lambda row: (not row.placed, row.place))

    def rows(self, most: int | None = None, /, **where: Any) -> Sequence[QueuedMessage]:
        queue = where.get("queue")
        group_id = where.get("group_id") or where.get("everything_of") or where.get("member", (None,))[0]
        if "number" in where:
            numbers_ = [where["number"]] if where["number"] in self._messages else []
        elif "uid" in where:
            numbers_ = self.index.numbers("uid", queue, where["uid"])
        elif "uids" in where:
            numbers_ = [number for uid in where["uids"] for number in self.index.numbers("uid", queue, uid)]
        elif "over" in where or "reporting_from" in where:
            numbers_ = self.index.numbers("expiring" if "over" in where else "reporting", queue)
        elif group_id is not None:
            numbers_ = self.index.numbers("group_id", queue, group_id)
        else:
            by = next(name for name in ("unit", "lock", "locked_handle", "queue") if name in where)
            numbers_ = self.index.numbers(by, where[by])
        found = (self._messages[number] for number in sorted(numbers_))
        rows = [row for row in found if _is(row, where)]
        if "first" in where:
            rows.sort(key=lambda row: (row.message.sequence_number, row.message.offset))
        elif "over" in where:
            rows.sort(key=lambda row: (row.expires_at, row.number))
        elif "unit" not in where:
            rows.sort(key=lambda row: (not row.placed, row.place))
        if "group_id" in where and "unit" not in where:
            rows = [row for row in rows if row.placed]
        return rows[:most]

    def read(self, rows: Sequence[QueuedMessage], most: int | None = None) -> Sequence[QueuedMessage]:
        return rows

    def candidates(
        self, queue: SearchedQueue, wanted: Wanted, reader: Reader, after: Place | None
    ) -> Iterable[QueuedMessage]:
        if wanted.member is not None:
            rows: Iterable[QueuedMessage] = self.rows(queue=queue.id, member=wanted.member)
        else:
            rows = self._with_noted(queue.id, reader, after)
        return (row for row in rows if self._chosen(row, wanted, reader))

    def levels(self, queue: SearchedQueue) -> Sequence[int]:
        return sorted({place.rank for place, _ in self.index.placed[queue.id]})

    def rows_at(
        self, queue: SearchedQueue, wanted: Wanted, reader: Reader, rank: int, after: Place
    ) -> Iterable[QueuedMessage]:
        rows = itertools.takewhile(lambda row: row.place.rank == rank, self._after(queue.id, after))
        return (row for row in rows if self._chosen(row, wanted, reader))

    def level(self, queue: SearchedQueue, wanted: Wanted, reader: Reader, rank: int, after: Place) -> Iterable[SeenRow]:
        assert wanted.selector is not None
        for row in self.rows_at(queue, wanted, reader, rank, after):
            is_fitting = fits(wanted.selector, row, reader)
            yield SeenRow(row.place, row.number, is_fitting, cost_of(row.message.properties.text, wanted.selector))

    def _with_noted(self, queue: int, reader: Reader, after: Place | None) -> Iterator[QueuedMessage]:
        """Yields rows after a place; on levels searched before, the noted messages and those after that."""
        for place in reader.passed:
            level = itertools.takewhile(lambda row, rank=place.rank: row.place.rank < rank, self._after(queue, after))  # type: ignore[misc]
            yield from level
            of_level = [one.number for one in reader.noted if one.place.rank == place.rank]
            yield from (self._messages[number] for number in of_level if number in self._messages)
            after = place if after is None else max(after, place)
        yield from self._after(queue, after)

    def _after(self, queue: int, after: Place | None) -> Iterator[QueuedMessage]:
        places = self.index.placed[queue]
        start = 0 if after is None else bisect_right(places, (after, math.inf))
        return (self._messages[number] for _, number in itertools.islice(places, start, None))

    def _chosen(self, row: QueuedMessage, wanted: Wanted, reader: Reader) -> bool:
        """Whether a row passes the match and the marks."""
        if not wanted.match.accepts(row.message):
            return False
        return not reader.unmarked or not (
            (row.number, reader.handle) in self._records[MarkRow] or is_marked(row, reader)
        )

    def decide(
        self, queue: SearchedQueue, wanted: Wanted, reader: Reader, cursor: Cursor, *, logical: bool
    ) -> Decision[QueuedMessage]:
        return decide(self.standings(queue, wanted, reader, cursor, logical=logical))

    def standings(
        self, queue: SearchedQueue, wanted: Wanted, reader: Reader, cursor: Cursor, *, logical: bool
    ) -> Iterator[StrictMatch[QueuedMessage]]:
        """Returns the candidates of a strict decision, in order of place."""
        rows = (row for row in self._with_noted(queue.id, reader, None) if not cursor.has_shown(row.place))
        judged = (
            queue.judge(row, wanted, reader, logical=logical) for row in rows if self._chosen(row, wanted, reader)
        )
        standings = (standing for standing in judged if standing is not None)
        others = queue.entered_by_others(wanted, reader) if logical else []
        return in_order(standings, (one for one in others if not cursor.has_shown(one.place)))

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
        return first_of_places(
            one.pending
            for one in self.standings(queue, wanted, reader._replace(passed=()), UNSET, logical=logical)
            if (after is None or one.place > after)
            and (before is None or (one.place.rank == before.place.rank and one.place < before.place))
        )

    def look_again_at(self, queue: SearchedQueue, reader: Reader, *, strict: bool) -> float | None:
        now, placed = reader.now, list(self._after(queue.id, None))
        times = [row.due_at for row in placed if strict or row.state is State.UNLOCKED]
        times += [row.co_op_marked_at + reader.mark_interval for row in placed]
        times += [row.expires_at for row in placed if strict]
        times += [one.lease_ends_at for one in self.select(UnitRow, queue=queue.id) if one.lease_ends_at is not None]
        return min((time for time in times if now < time < math.inf), default=None)

    def takers(self, queue: int, group_id: bytes, now: float | None) -> Sequence[int]:
        got = [row for row in self.rows(queue=queue, everything_of=group_id) if row.state in GOT]
        return sorted({row.unit for row in got if row.unit and (now is None or row.expires_at > now or row.claimed)})

    def gets_of_group(self, queue: int, group_id: bytes) -> int:
        if group_id == NO_ID:
            return 1
        messages = [row.message for row in self.rows(queue=queue, everything_of=group_id)]
        alike = len({(one.coded_character_set_id, one.encoding) for one in messages}) <= 1
        return len({one.sequence_number for one in messages} if alike else messages) or 1

    # --- changing messages

    def hold_stagings(self, names: Collection[str], *, begins: bool) -> None:
        """Nothing to do: one operation runs at a time."""

    def arrive(
        self,
        queue: SearchedQueue,
        rows: Sequence[Row],
        state: State,
        first_number: int | None,
        unit: int | None,
        now: float,
    ) -> bool:
        asks = 0
        for number, message in enumerate(map(Message.from_row, rows), first_number or 0):
            level = rank(queue.attributes, message)
            place = NO_PLACE if first_number is None else Place(level, number, 0)
            self._arrive(queue.id, message, level, state, place, unit, now)
            asks |= message.report & REPORT_GENERATED
        return asks != 0

    def _arrive(
        self, queue: int, message: Message, level: int, state: State, place: Place, unit: int | None, now: float
    ) -> None:
        number = number_of(message.token)
        row = QueuedMessage(
            message,
            number,
            queue,
            level,
            state,
            place,
            visible_at=NEVER if unit else now,
            expires_at=now + (math.inf if message.expiry is None else message.expiry),
            due_at=now + message.delay if message.delay else NEVER,
            unit=unit,
        )
        self._put(self._messages, number, row)

    def sign(self, number: int, put_by: str) -> None:
        self._put(self._put_by, number, put_by)

    def signed(self, number: int) -> Sequence[str | None]:
        return [self._put_by.get(number)] if number in self._messages else []

    def write(self, before: QueuedMessage, after: QueuedMessage) -> None:
        now = self._messages[before.number]
        assert now.state is before.state, (now, before)
        fields = zip(now._fields, before, after, strict=True)
        changed: dict[str, Any] = {name: new for name, old, new in fields if new is not old and new != old}
        self._put(self._messages, before.number, now._replace(**changed))

    def remove(self, rows: Sequence[QueuedMessage], before: State) -> None:
        for row in rows:
            assert self._messages[row.number].state is before, (self._messages[row.number], before)
            self._remove(row)

    def _remove(self, row: QueuedMessage, *, expires: bool = False) -> None:
        self._put(self._messages, row.number, _NOTHING)
        if row.number in self._put_by:
            self._put(self._put_by, row.number, _NOTHING)
        if is_end(row.message) and (expires or row.state is not State.PUT_UNCONFIRMED):  # else it has not arrived yet
            for one in self.select(EnteredRow, queue=row.queue, group_id=row.message.group_id):
                self.save(one._replace(reader=None))

    def clear(self, queue: int) -> None:
        for row in self.of_queue(queue):
            self._remove(row)

    def clear_some(self, queue: int, upto: int, most: int) -> Expired:
        free = (
            row for row in self.of_queue(queue)
            if row.placed and row.place.number <= upto and row.unit is None and row.locked_handle is None
        )  # fmt: skip
        gone = list(itertools.islice(free, most))
        for row in gone:
            self._remove(row)
        return Expired(len(gone), [row.lock for row in gone if row.lock is not None])

    def expire(self, queue: int, now: float, most: int) -> Expired:
        gone = self.rows(most, queue=queue, over=now)
        for row in gone:
            self._remove(row, expires=True)
        units = [unit for row in gone for unit in (row.unit, row.lock) if unit is not None]
        return Expired(len(gone), units)

    def is_idle(self, unit: int) -> bool:
        return not self.index.numbers("unit", unit) and not self.index.numbers("lock", unit)

    def shares(self, unit: int, *, locked: bool = False) -> Sequence[Share]:
        def share(row: QueuedMessage) -> tuple[int, State, bool]:
            return row.queue, row.state, row.away

        rows = sorted(self.rows(**{"lock" if locked else "unit": unit}), key=share)
        return [
            Share(
                *key,
                messages=len(same),
                size=sum(row.message.length for row in same),
                expires=any(row.expires_at < math.inf for row in same),
                forgotten=any(row.forgotten for row in same),
                persistent=any(row.message.persistent for row in same),
                unplaced=sum(not row.placed for row in same),
            )
            for key, group in itertools.groupby(rows, key=share)
            for same in [list(group)]
        ]

    def move(self, unit: int, share: Share, after: State, now: float, backouts: int) -> Sequence[int]:
        idle = []
        for row in self.rows(unit=unit):
            if (row.queue, row.state, row.away) != share[:3]:
                continue
            if after is State.ABSENT:
                self._remove(row)
                if row.state in LOCKS and row.lock is not None:
                    idle.append(row.lock)
                continue
            shows = becomes_visible(row.state, after)
            changed = row._replace(
                state=after,
                unit=None,
                away=False,
                claimed=0,
                backouts=row.backouts + backouts,
                visible_at=now if shows else row.visible_at,
                forgotten=row.forgotten and not shows,
            )
            self._put(self._messages, row.number, changed)
        return idle

    def delay_gets(self, unit: int, share: Share, due_at: float) -> None:
        for row in self.rows(unit=unit):
            if (row.queue, row.state, row.away) == share[:3]:
                self._put(self._messages, row.number, row._replace(due_at=due_at))

    def describe(self, row: QueuedMessage, message: Message) -> None:
        now = self._messages[row.number]
        changed = now.message.with_values(properties=message.properties)
        self._put(self._messages, row.number, now._replace(message=changed))

    def restart_unit(self, unit: int, now: float) -> None:
        (before,) = self.select(UnitRow, id=unit)
        self.save(before._replace(started_at=now))

    def number_unit(self, unit: int, queue: int, number: int) -> None:
        rows = [row for row in self.rows(unit=unit) if row.queue == queue and not row.placed]
        for ordinal, row in enumerate(rows):
            self._put(self._messages, row.number, row._replace(place=Place(row.rank, number, ordinal)))


def _has(record: Any, where: dict[str, Any]) -> bool:
    for name, wanted in where.items():
        value = getattr(record, name)
        if isinstance(wanted, UpTo):
            if value is None or value > wanted.value:
                return False
        elif value != wanted or isinstance(value, str) is not isinstance(wanted, str):
            return False
    return True


def _is(row: QueuedMessage, where: dict[str, Any]) -> bool:
    """Whether a message meets these conditions; see `backend.Backend.rows`."""
    return all(_LOOKED_FOR[name](row, wanted) for name, wanted in where.items())


def _reports(row: QueuedMessage) -> bool:
    return row.message.report & REPORT_GENERATED != 0


_LOOKED_FOR: dict[str, Callable[[QueuedMessage, Any], bool]] = {
    "number": lambda row, wanted: row.number == wanted,
    "numbers": lambda row, wanted: row.number in wanted,
    "queue": lambda row, wanted: row.queue == wanted,
    "uid": lambda row, wanted: row.message.uid == wanted,
    "uids": lambda row, wanted: row.message.uid in wanted,
    "unit": lambda row, wanted: row.unit == wanted,
    "state": lambda row, wanted: row.state is wanted,
    "first": lambda row, wanted: row.message.sequence_number >= wanted,
    "group_id": lambda row, wanted: row.message.group_id == wanted,
    "everything_of": lambda row, wanted: row.message.group_id == wanted,
    "member": lambda row, wanted: row.placed and numbers(row.message) == wanted,
    "lock": lambda row, wanted: row.lock == wanted,
    "lock_confirm": lambda row, wanted: row.lock_confirm == wanted,
    "locked_handle": lambda row, wanted: row.locked_handle == wanted,
    "forgotten": lambda row, _: row.forgotten and row.state is State.UNLOCKED,
    "volatile": lambda row, _: not row.message.persistent,
    "co_op_marked": lambda row, _: row.co_op_marked_at > NEVER,
    "over": lambda row, wanted: row.expires_at <= wanted and not row.is_kept,
    "reporting_from": lambda row, wanted: _reports(row) and row.placed and row.place.number >= wanted,
    "reporting_on": lambda row, wanted: _reports(row) and row.queue == wanted,
}
