"""One queue in memory: its rows in order, and the naive search that is the specification.

A row is a message with what the queue manager knows of it. Rows with a place stand in one list sorted by it;
those that have none yet (put in a unit on a queue whose order rule draws the number later) stand beside it.
The search walks the list from the front and asks the rules about each row.
"""

from __future__ import annotations

import itertools
import math
from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from ...attributes import QueueAttributes
from ...message import NO_ID, Message, Place, UniqueId
from ...rules.grouping import Wanted, is_end, is_head
from ...rules.lifecycle import State
from ...rules.ordering import UNSET, Cursor, Decision, Pending, Standing, decide, first
from ..base import Outcome
from ..claiming import Account
from ..rows import (
    GOT,
    Entered,
    HeldUnit,
    Reader,
    ReaderId,
    Row,
    available,
    first_of_places,
    in_order,
    is_in_sight,
    is_kept,
    is_marked,
    numbers,
)
from ..shelf import Shelf
from .undo import Undoable, UndoDict, UndoIndex, UndoList


class MemoryRow(Undoable, Row):
    """A row of the memory store."""

    __slots__ = ()


@dataclass(slots=True, eq=False)
class MemoryUnit(Undoable, HeldUnit):
    """A unit, and the rows that it holds now, in the order in which it came to hold them.

    Attributes:
        born: units that began earlier have smaller ones.
        lease_ends_at: of a lock id with a lease: when it is over (A-19).
    """

    rows: dict[int, tuple[MemoryQueue, Row]] = field(default_factory=UndoDict)
    born: int = field(default_factory=itertools.count().__next__)
    lease_ends_at: float | None = None

    def hold(self, queue: MemoryQueue, row: Row) -> None:
        self.rows[id(row)] = queue, row

    def let_go(self, row: Row) -> bool:
        """The row is not held any more; whether the unit holds nothing now."""
        self.rows.pop(id(row), None)
        return not self.rows


def _place(row: Row) -> Place:
    return row.place


class MemoryQueue(Undoable, Shelf):
    """A local queue: its attributes, its counter, its rows."""

    def __init__(self, attributes: QueueAttributes, now: float, incarnation: int) -> None:
        self.attributes = attributes
        self.incarnation = incarnation  # another one of the same name is another queue (B-41)
        self.created_at = self.altered_at = now
        self.deleted = False
        self.counter = 0  # the number given last; it never goes back (B-2)
        self.arrived = 0  # messages ever put here
        self.away = 0  # rows got under a unit: they left the depth at the get (R4.6)
        self.confirms: dict[int, MemoryUnit] = UndoDict()
        self.locks: dict[int, MemoryUnit] = UndoDict()
        self.accounts: dict[str, Account[MemoryUnit]] = UndoDict()
        self.entered: list[Entered] = []
        self._by_uid: dict[UniqueId, Row] = UndoIndex()
        self._by_number: dict[int, Row] = UndoIndex()
        self._placed: list[Row] = UndoList()
        self._unplaced: list[Row] = UndoList()
        self._groups: dict[bytes, list[Row]] = UndoIndex()
        self._expiring = 0

    # --- rows in and out

    def draw_number(self) -> int:
        self.counter += 1
        return self.counter

    def add(self, row: Row) -> None:
        """A new row, in its place if it has one."""
        self.arrived += 1
        if row.placed:
            insort(self._placed, row, key=_place)
        else:
            self._unplaced.append(row)
        if row.message.group_id != NO_ID:
            self._groups.setdefault(row.message.group_id, UndoList()).append(row)
        if row.message.uid is not None:
            self._by_uid[row.message.uid] = row
        self._by_number[row.number] = row
        self._expiring += row.expires_at < math.inf

    def give_place(self, row: Row, number: int, ordinal: int) -> None:
        """The row's number is drawn: it moves to its place, for good."""
        self._unplaced.remove(row)
        row.place, row.placed = Place(row.rank, number, ordinal), True
        insort(self._placed, row, key=_place)

    def change(self, row: Row, message: Message) -> None:
        """Another descriptor for the row, with the same group and the same place."""
        row.message = message

    def remove(self, row: Row) -> None:
        if row.placed:
            del self._placed[bisect_left(self._placed, row.place, key=_place)]
        else:
            self._unplaced.remove(row)
        if row.message.uid is not None and self._by_uid.get(row.message.uid) is row:
            del self._by_uid[row.message.uid]
        if (group := self._groups.get(row.message.group_id)) is not None:
            group.remove(row)
            if not group:
                del self._groups[row.message.group_id]
        del self._by_number[row.number]
        self._expiring -= row.expires_at < math.inf

    def placed_rows(self) -> Sequence[Row]:
        """In order of place."""
        return self._placed

    def all_rows(self) -> list[Row]:
        return [*self._placed, *self._unplaced]

    # --- what is where

    @property
    def depth(self) -> int:
        """Puts count in every state, gets leave at the get (R4.6)."""
        return len(self._placed) + len(self._unplaced) - self.away

    def expired(self, now: float) -> list[Row]:
        """Rows whose time is over, the earliest first; one that a unit or a claim got comes back first (R6.3)."""
        if not self._expiring:
            return []
        over = (row for row in self.all_rows() if row.expires_at <= now and not is_kept(row))
        return sorted(over, key=lambda row: (row.expires_at, row.number))

    def next_delivery(self, now: float) -> float | None:
        """When the next delayed message can be read."""
        later = (row.due_at for row in self._placed if row.state is State.UNLOCKED and row.due_at > now)
        return min(later, default=None)

    def next_lease_end(self, now: float) -> float | None:
        """When the next lock id ends by itself: what it locks can be read then (A-19)."""
        ends = (unit.lease_ends_at for unit in self.locks.values() if unit.lease_ends_at is not None)
        return min((end for end in ends if end > now), default=None)

    def next_unmarking(self, reader: Reader) -> float | None:
        """When the next cooperative browse mark ends by itself (R3.74)."""
        ends = (row.co_op_marked_at + reader.mark_interval for row in self._placed)
        return min((end for end in ends if reader.now < end < math.inf), default=None)

    def gets_of_group(self, group_id: bytes) -> int:
        """How many gets take the whole group; a message in no group takes one.

        One for each logical message; where pieces differ in character set or encoding, up to one for each piece.
        """
        messages = [row.message for row in self._groups.get(group_id, ())]
        alike = len({(one.coded_character_set_id, one.encoding) for one in messages}) <= 1
        return len({one.sequence_number for one in messages} if alike else messages) or 1

    # --- groups that readers are inside (B-45)

    def entries(self) -> Sequence[Entered]:
        return self.entered

    def takers(self, group_id: bytes, now: float) -> Sequence[HeldUnit]:
        got = [row for row in self._groups.get(group_id, ()) if row.state in GOT]
        units = {row.unit for row in got if row.expires_at > now or row.claimed}
        return sorted((one for one in units if isinstance(one, MemoryUnit)), key=lambda one: one.born)

    def end_group(self, message: Message) -> None:
        """The message has gone for good: if it is the last of its group nobody is inside that any more."""
        if is_end(message):
            ended = message.group_id
            self.entered = [replace(one, reader=None) if one.head.group_id == ended else one for one in self.entered]

    def leave(self, reader: ReaderId, unit: HeldUnit | None, open_unit: HeldUnit | None, *, but: bytes | None) -> None:
        """The reader is inside no group but one; in a unit, when that is committed."""
        self.entered = [
            self._left(one, unit, open_unit)
            if one.reader == reader and one.left_in is None and one.head.group_id != but
            else one
            for one in self.entered
        ]

    def _left(self, entered: Entered, unit: HeldUnit | None, open_unit: HeldUnit | None) -> Entered:
        left_in = open_unit if open_unit is not None and self._is_held(entered, open_unit) else unit
        return replace(entered, left_in=left_in, reader=None if left_in is None else entered.reader)

    def leave_all(self, reader: ReaderId) -> bool:
        """The reader is inside no group any more; whether it was."""
        was_inside = any(one.reader == reader for one in self.entered)
        self.entered = [replace(one, reader=None) if one.reader == reader else one for one in self.entered]
        return was_inside

    def settle_entries(self, unit: HeldUnit, outcome: Outcome | Literal["prepare"]) -> None:
        """What the unit has done to the groups that readers are inside counts, or is taken back.

        To prepare it is a commit for handles: who has entered in it is inside, and who has left stays away if it is
        backed out; but the groups stay theirs until then (R5.10, B-19).
        """
        if outcome == "back_out":
            self.entered = [one for one in self.entered if one.entered_in is not unit]
        settled = []
        for one in self.entered:
            entered_in = None if one.entered_in is unit else one.entered_in
            if one.left_in is not unit or outcome == "prepare":
                settled.append(replace(one, entered_in=entered_in))
            else:
                reader = None if outcome == "commit" else one.reader
                settled.append(replace(one, entered_in=entered_in, left_in=None, reader=reader))
        self.entered = settled

    def forget_entries(self) -> None:
        """Where nobody is inside and no unit holds a member the group holds nobody back."""
        self.entered = [one for one in self.entered if one.reader is not None or self._is_held(one)]

    def _is_held(self, entered: Entered, by: HeldUnit | None = None) -> bool:
        """Whether a unit, or this one, holds a member."""
        members = self._groups.get(entered.head.group_id, ())
        return any(row.state in GOT and (by is None or row.unit is by) for row in members)

    def named_units(self) -> list[MemoryUnit]:
        """Confirm ids, lock ids and claims that hold something."""
        claims = [account.open.unit for account in self.accounts.values() if account.open is not None]
        return [*self.confirms.values(), *self.locks.values(), *claims]

    def hold(self, row: Row, unit: MemoryUnit) -> None:
        """The unit comes to hold the row; a confirm id is known from its first one on."""
        row.unit = unit
        unit.hold(self, row)
        if unit.kind == "confirm":
            self.confirms[int(unit.name)] = unit

    def let_go(self, row: Row) -> None:
        """Nothing holds the row under its unit any more; a confirm id that holds nothing is forgotten."""
        unit, row.unit, row.claimed = row.unit, None, 0
        if isinstance(unit, MemoryUnit) and unit.let_go(row) and unit.kind == "confirm":
            del self.confirms[int(unit.name)]
            self.settle_entries(unit, "commit")

    def unlock(self, row: Row) -> None:
        """Nothing locks the row any more; a lock id that locks nothing is forgotten."""
        lock, row.lock, row.locked_by = row.lock, None, None
        if lock is not None and isinstance(lock.unit, MemoryUnit) and lock.unit.let_go(row):
            self.locks.pop(lock.lock_id, None)

    def by_uid(self, uid: UniqueId) -> Row | None:
        return self._by_uid.get(uid)

    def held_under(self, confirm_id: int) -> tuple[HeldUnit | None, Sequence[Row]]:
        unit = self.confirms.get(confirm_id)
        rows = [
            row
            for row in self.all_rows()
            if (unit is not None and row.unit is unit) or (row.lock is not None and row.lock.confirm_id == confirm_id)
        ]
        return unit, rows

    def locked_under(self, lock_id: int) -> Sequence[Row]:
        return [row for row in self._placed if row.lock is not None and row.lock.lock_id == lock_id]

    def read(self, rows: Sequence[Row], most: int | None = None) -> Sequence[Row]:
        return rows

    def row(self, number: int | None) -> Row | None:
        row = None if number is None else self._by_number.get(number)
        return row if row is not None and row.placed else None

    # --- the search

    def find(self, wanted: Wanted, reader: Reader, after: Place | None) -> Sequence[Row]:
        """The rows of the first message that suits: one, or all pieces of a logical message; or none."""
        suiting = (
            row for row in self._candidates(wanted, after) if available(row, reader) and self.suits(row, wanted, reader)
        )
        # Candidates come in order of place: the first is `rules.ordering.first` of them all.
        row = next(suiting, None) if wanted.member is None else first(suiting)
        return () if row is None else self.pieces(row, wanted, reader)

    def find_all(self, wanted: Wanted, reader: Reader) -> Iterator[Row]:
        """Every single message that suits, in order of place, found as they are asked for."""
        return (row for row in self._placed if available(row, reader) and self.suits(row, wanted, reader))

    def decide(self, wanted: Wanted, reader: Reader, cursor: Cursor, *, logical: bool) -> Decision[Row]:
        """The strict decision over everything that matches, in order of place (B-11)."""
        if wanted.member is not None:
            return self.decide_member(wanted, reader)
        return decide(self.standings(wanted, reader, cursor, logical=logical))

    def standings(self, wanted: Wanted, reader: Reader, cursor: Cursor, *, logical: bool) -> Iterator[Standing[Row]]:
        """What takes part in a strict decision, in order of place."""
        unseen = (row for row in self._placed if not cursor.has_shown(row.place))
        judged = (self.judge(row, wanted, reader, logical=logical) for row in unseen)
        rows: Iterable[Standing[Row]] = (standing for standing in judged if standing is not None)
        others = self.entered_by_others(wanted, reader) if logical else []
        return in_order(rows, (one for one in others if not cursor.has_shown(one.place)))

    def earlier(
        self, before: Row | None, wanted: Wanted, reader: Reader, after: Place | None, *, logical: bool
    ) -> list[Pending]:
        if wanted.member is not None:
            return []
        return first_of_places(
            one.pending
            for one in self.standings(wanted, reader, UNSET, logical=logical)
            if (after is None or one.place > after)
            and (before is None or (one.place.rank == before.place.rank and one.place < before.place))
        )

    def next_outcome(self, now: float) -> float | None:
        """When time alone may unblock a strict call: a delay or the life of a pending message ends (B-28)."""
        times = (time for row in self._placed for time in (row.due_at, row.expires_at) if now < time < math.inf)
        return min(times, default=None)

    def group(self, group_id: bytes) -> Sequence[Row]:
        return sorted((row for row in self._groups.get(group_id, ()) if row.placed), key=_place)

    def candidates(self, wanted: Wanted) -> Sequence[Row]:
        assert wanted.member is not None
        return [row for row in self.group(wanted.member.group_id) if numbers(row.message) == wanted.member]

    def _candidates(self, wanted: Wanted, after: Place | None) -> Iterable[Row]:
        if wanted.member is not None:
            return self.candidates(wanted)
        start = 0 if after is None else bisect_right(self._placed, after, key=_place)
        return (self._placed[n] for n in range(start, len(self._placed)))

    def selects(self, row: Row, wanted: Wanted, reader: Reader) -> bool:
        """Whether the call's selection takes this message, be it available or not (B-13)."""
        message = row.message
        if wanted.heads and not is_head(message):
            return False
        if wanted.joins and message.offset:
            return False
        if reader.lock_id and (row.lock is None or row.lock.lock_id != reader.lock_id):
            return False
        if not is_in_sight(row, reader):
            return False
        return wanted.match.accepts(message) and not (reader.unmarked and is_marked(row, reader))
