"""One queue in memory: its rows in order, and the naive search that is the specification.

A row is a message with what the queue manager knows of it. Rows with a place stand in one list sorted by it;
those that have none yet (put in a unit on a queue whose order rule draws the number later) stand beside it.
The search walks the list from the front and asks the rules about each row.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from ...attributes import QueueAttributes
from ...message import NO_ID, Message, Place
from ...rules.grouping import Members, Wanted, has_what_it_needs, is_head
from ...rules.lifecycle import Lock, State
from ...rules.ordering import first
from ...rules.puts import Program
from ..base import UnitState

NEVER = -math.inf
NO_PLACE = Place(0, 0, 0)
GOT = (State.GET_UNCONFIRMED, State.BROWSE_GET_UNCONFIRMED)


@dataclass(slots=True, eq=False)
class HeldUnit:
    """A unit that is not settled, and the rows that it holds, in the order in which it came to hold them."""

    program: Program
    started_at: float
    name: str | None = None
    state: UnitState = "open"
    calls: int = 0
    rows: list[tuple[MemoryQueue, Row]] = field(default_factory=list)


@dataclass(slots=True, eq=False)
class Row:
    """A message on a queue.

    Attributes:
        place: where it sits; not to be read before it has one (`placed` tells).
        unit: what holds it, if its state is one of the unconfirmed ones.
        locked_by: the handle whose browse lock holds it.
        handle_marks, co_op_marked_at: browse marks (3.11).
        forgotten: a restart has lost it, but for the prepared unit that got it.
    """

    message: Message
    number: int
    rank: int
    state: State = State.ABSENT
    place: Place = NO_PLACE
    placed: bool = False
    expires_at: float = math.inf
    due_at: float = NEVER
    backouts: int = 0
    unit: HeldUnit | None = None
    locked_by: int | None = None
    handle_marks: set[int] = field(default_factory=set)
    co_op_marked_at: float = NEVER
    forgotten: bool = False


class Reader(NamedTuple):
    """Who looks, and when."""

    handle: int
    co_op: bool
    now: float
    mark_interval: float


def _place(row: Row) -> Place:
    return row.place


class MemoryQueue:
    """A local queue: its attributes, its counter, its rows."""

    def __init__(self, attributes: QueueAttributes, now: float) -> None:
        self.attributes = attributes
        self.created_at = self.altered_at = now
        self.deleted = False
        self.counter = 0  # the number given last; it never goes back (B-2)
        self.away = 0  # rows got under a unit: they left the depth at the get (R4.6)
        self._placed: list[Row] = []
        self._unplaced: list[Row] = []
        self._groups: dict[bytes, list[Row]] = {}
        self._expiring = 0

    # --- rows in and out

    def draw_number(self) -> int:
        self.counter += 1
        return self.counter

    def add(self, row: Row) -> None:
        """A new row, in its place if it has one."""
        if row.placed:
            insort(self._placed, row, key=_place)
        else:
            self._unplaced.append(row)
        if row.message.group_id != NO_ID:
            self._groups.setdefault(row.message.group_id, []).append(row)
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
        if (group := self._groups.get(row.message.group_id)) is not None:
            group.remove(row)
            if not group:
                del self._groups[row.message.group_id]
        self._expiring -= row.expires_at < math.inf

    def all_rows(self) -> list[Row]:
        return [*self._placed, *self._unplaced]

    # --- what is where

    @property
    def depth(self) -> int:
        """Puts count in every state, gets leave at the get (R4.6)."""
        return len(self._placed) + len(self._unplaced) - self.away

    def expired(self, now: float) -> list[Row]:
        """Rows whose time is over; one that a unit got is judged when it comes back (R6.3)."""
        if not self._expiring:
            return []
        return [row for row in self.all_rows() if row.expires_at <= now and row.state not in GOT]

    def next_delivery(self, now: float) -> float | None:
        """When the next delayed message can be read."""
        later = (row.due_at for row in self._placed if row.state is State.UNLOCKED and row.due_at > now)
        return min(later, default=None)

    def next_unmarking(self, reader: Reader) -> float | None:
        """When the next cooperative browse mark ends by itself (R3.74)."""
        ends = (row.co_op_marked_at + reader.mark_interval for row in self._placed)
        return min((end for end in ends if reader.now < end < math.inf), default=None)

    def group_size(self, group_id: bytes) -> int:
        """How many logical messages of the group are here; a message in no group counts as one."""
        return len({row.message.sequence_number for row in self._groups.get(group_id, ())}) or 1

    def row(self, number: int | None) -> Row | None:
        return next((row for row in self._placed if row.number == number), None)

    # --- the search

    def find(self, wanted: Wanted, reader: Reader, after: Place | None, *, unmarked: bool) -> Sequence[Row]:
        """The rows of the first message that suits: one, or all pieces of a logical message; or none."""
        if not wanted.possible:
            return ()
        suiting = (
            row
            for row in self._candidates(wanted, after)
            if available(row, reader) and self._suits(row, wanted, reader) and not (unmarked and is_marked(row, reader))
        )
        # Candidates come in order of place: the first is `rules.ordering.first` of them all.
        row = next(suiting, None) if wanted.member is None else first(suiting)
        return () if row is None else self.pieces(row, wanted, reader)

    def _candidates(self, wanted: Wanted, after: Place | None) -> Iterable[Row]:
        if wanted.member is not None:
            group = self._groups.get(wanted.member.group_id, ())
            return (row for row in group if row.placed and numbers(row.message) == wanted.member)
        start = 0 if after is None else bisect_right(self._placed, after, key=_place)
        return (self._placed[n] for n in range(start, len(self._placed)))

    def _suits(self, row: Row, wanted: Wanted, reader: Reader) -> bool:
        message = row.message
        if wanted.heads and not is_head(message):
            return False
        if wanted.joins and message.offset:
            return False
        if not wanted.match.accepts(message):
            return False
        return has_what_it_needs(message, wanted.needs, lambda group: self._members(group, reader))

    def pieces(self, row: Row, wanted: Wanted, reader: Reader) -> Sequence[Row]:
        """The row itself, or with `joins` all rows of its logical message (R3.42)."""
        if not wanted.joins or row.message.segment_status == "no":
            return (row,)
        rows = {id(row.message): row for row in self._available_members(row.message.group_id, reader)}
        members = Members(one.message for one in rows.values())
        return [rows[id(piece)] for piece in members.logical_message(row.message.sequence_number)]

    def _members(self, group_id: bytes, reader: Reader) -> Members:
        return Members(row.message for row in self._available_members(group_id, reader))

    def _available_members(self, group_id: bytes, reader: Reader) -> Iterator[Row]:
        group = sorted((row for row in self._groups.get(group_id, ()) if row.placed), key=_place)
        return (row for row in group if available(row, reader))


def numbers(message: Message) -> tuple[bytes, int, int]:
    """What identifies a message within its group."""
    return message.group_id, message.sequence_number, message.offset


def available(row: Row, reader: Reader) -> bool:
    """Whether this reader can be given the row: on the queue, not held by others, due (R3.14, B-6)."""
    if row.due_at > reader.now or row.expires_at <= reader.now:
        return False
    return row.state is State.UNLOCKED or lock_presented(row, reader.handle) is Lock.RIGHT


def lock_presented(row: Row, handle: int) -> Lock:
    """A handle presents its own browse lock by being what it is (R3.69)."""
    return Lock.RIGHT if row.state is State.LOCKED and row.locked_by == handle else Lock.NONE


def is_marked(row: Row, reader: Reader) -> bool:
    """Whether an unmarked browse of this reader skips the row (R3.73, R3.74)."""
    if reader.handle in row.handle_marks:
        return True
    return reader.co_op and reader.now < row.co_op_marked_at + reader.mark_interval
