"""What the shared verbs need of a store: a queue to look into, and a transaction to change it in.

`stores.reading`, `stores.putting` and `stores.confirmed` say what a get, a put or a confirmed call means; they are
the same for every store. A store gives them a `Shelf` for the queue and a `Transaction`, and may do the common
cases in fewer statements of its own where it gives the same answers.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from ..attributes import QueueAttributes
from ..message import Message, Place, UniqueId
from ..options import OpenOptions
from ..rules.grouping import Members, Wanted, has_what_it_needs
from ..rules.lifecycle import Event, Lock
from ..rules.ordering import Cursor, Decision, Kind, Pending, Standing
from ..rules.puts import Program
from .base import Change
from .rows import (
    NO_PLACE,
    Entered,
    HeldLock,
    HeldUnit,
    Locker,
    Reader,
    ReaderId,
    Row,
    available,
    is_in_sight,
    pending_entered,
    pending_of,
)

U = TypeVar("U", bound=HeldUnit)


@dataclass(slots=True, eq=False)
class Connection(Generic[U]):
    """A connection of this process: who it is, and its one unit of work (R5.1)."""

    id: int
    program: Program
    unit: U | None = None


@dataclass(slots=True, eq=False)
class Handle(Generic[U]):
    """An open queue.

    Attributes:
        name: the queue as opened: itself, or an alias of it.
        exclusive: no other handle may be open for input.
        made_temporary_queue: closing this handle deletes the queue (R4.3).
        locked: rows that it browsed with lock.
    """

    id: int
    connection: Connection[U]
    name: str
    options: OpenOptions
    exclusive: bool
    made_temporary_queue: bool = False
    locked: list[Row] = field(default_factory=list)


@dataclass(slots=True)
class Told:
    """What observers are told of one queue when a transaction is over."""

    put: list[Message] = field(default_factory=list)
    visible: list[Message] = field(default_factory=list)
    expired: list[Message] = field(default_factory=list)
    duplicates: list[Message] = field(default_factory=list)
    discarded: int = 0

    def copy(self) -> Told:
        """The same as it is now."""
        put, visible, expired, duplicates = map(list, (self.put, self.visible, self.expired, self.duplicates))
        return Told(put, visible, expired, duplicates, self.discarded)

    def change(self, queue: str) -> Change:
        return Change(queue, self.put, self.visible, self.expired, self.duplicates, self.discarded)


class Shelf(ABC):
    """One queue as a transaction sees it."""

    attributes: QueueAttributes

    @property
    @abstractmethod
    def depth(self) -> int:
        """Puts count in every state, gets leave at the get (R4.6)."""

    # --- the search

    @abstractmethod
    def find(self, wanted: Wanted, reader: Reader, after: Place | None) -> Sequence[Row]:
        """The rows of the first message that suits: one, or all pieces of a logical message; or none."""

    @abstractmethod
    def find_all(self, wanted: Wanted, reader: Reader) -> Iterable[Row]:
        """Every single message that suits, in order of place, found as they are asked for."""

    @abstractmethod
    def decide(self, wanted: Wanted, reader: Reader, cursor: Cursor, *, logical: bool) -> Decision[Row]:
        """The strict decision over everything that matches, in order of place (B-11)."""

    @abstractmethod
    def earlier(
        self, before: Row | None, wanted: Wanted, reader: Reader, after: Place | None, *, logical: bool
    ) -> Sequence[Pending]:
        """What would withhold a strict call, for a notify call: before a row on its level, or behind `after` (B-16).

        Inside a group there is nothing: only the next member is a candidate.
        """

    @abstractmethod
    def candidates(self, wanted: Wanted) -> Sequence[Row]:
        """The rows with the numbers that a reader inside a group goes on with, in order of place."""

    @abstractmethod
    def group(self, group_id: bytes) -> Sequence[Row]:
        """All rows of a group that have a place, in order of place."""

    @abstractmethod
    def selects(self, row: Row, wanted: Wanted, reader: Reader) -> bool:
        """Whether the call's selection takes this message, be it available or not (B-13)."""

    @abstractmethod
    def read(self, rows: Sequence[Row], most: int | None = None) -> Sequence[Row]:
        """The same rows with their whole messages: a search may have brought what it needed alone.

        Args:
            most: so many bytes of a body are enough; None: all are wanted.
        """

    @abstractmethod
    def row(self, number: int | None) -> Row | None:
        """The row of this number, if it has a place."""

    @abstractmethod
    def by_uid(self, uid: UniqueId) -> Row | None:
        """The row of this unique id."""

    @abstractmethod
    def held_under(self, confirm_id: int) -> tuple[HeldUnit | None, Sequence[Row]]:
        """The unit of a confirm id, and the rows that it holds or that were locked with it."""

    @abstractmethod
    def locked_under(self, lock_id: int) -> Sequence[Row]:
        """The rows that a lock id locks, and those that were got under it, in order of place."""

    @abstractmethod
    def gets_of_group(self, group_id: bytes) -> int:
        """How many gets take the whole group; a message in no group takes one.

        One for each logical message; where pieces differ in character set or encoding, up to one for each piece.
        """

    # --- what follows from these

    def suits(self, row: Row, wanted: Wanted, reader: Reader) -> bool:
        return self.selects(row, wanted, reader) and self.has_what_it_needs(row, wanted, reader)

    def has_what_it_needs(self, row: Row, wanted: Wanted, reader: Reader) -> bool:
        return has_what_it_needs(row.message, wanted.needs, lambda group: self._members(group, reader))

    def pieces(self, row: Row, wanted: Wanted, reader: Reader) -> Sequence[Row]:
        """The row itself, or with `joins` all rows of its logical message (R3.42)."""
        if not wanted.joins or row.message.segment_status == "no":
            return (row,)
        rows = {id(one.message): one for one in self._available_members(row.message.group_id, reader)}
        members = Members(one.message for one in rows.values())
        return [rows[id(piece)] for piece in members.logical_message(row.message.sequence_number)]

    def _members(self, group_id: bytes, reader: Reader) -> Members:
        return Members(row.message for row in self._available_members(group_id, reader))

    def _available_members(self, group_id: bytes, reader: Reader) -> Iterator[Row]:
        return (row for row in self.group(group_id) if available(row, reader) and is_in_sight(row, reader))

    def judge(self, row: Row, wanted: Wanted, reader: Reader, *, logical: bool) -> Standing[Row] | None:
        """Whether a message takes part in a strict decision, and whether it is pending (B-13, B-44)."""
        if row.expires_at <= reader.now or not self.selects(row, wanted, reader):
            return None  # what can no longer become readable holds nothing back (B-14)
        pending = pending_of(row, reader)
        if self.has_what_it_needs(row, wanted, reader):
            return Standing(row.place, row, pending)
        missing = pending or self._pending_member(row, reader)
        if not logical:  # what will never be complete as it stands matches nothing and blocks nothing
            whole = missing is not None and self._would_have_what_it_needs(row, wanted, reader)
            return Standing(row.place, row, missing) if whole else None
        if pending is None:
            since = row.visible_at if missing is None else missing.since
            holder, by = (None, "") if missing is None else (missing.holder, missing.by)
            pending = Pending(Kind.GROUP_INCOMPLETE, row.place, holder, by, since)
        return Standing(row.place, row, pending)

    @abstractmethod
    def entries(self) -> Iterable[Entered]:
        """The groups that readers have entered, as they came."""

    @abstractmethod
    def takers(self, group_id: bytes, now: float) -> Iterable[HeldUnit]:
        """The units that hold a member of the group which they have got, in the order in which they began.

        A member whose time is over can never come back, and so is held for nobody (B-14).
        """

    def entered_by_others(self, wanted: Wanted, reader: Reader) -> list[Standing[Row]]:
        """Groups that the call would choose were nobody else inside them, in order of place (B-45)."""
        found: list[Standing[Row]] = [
            Standing(entered.place, None, pending)
            for entered in self.entries()
            if wanted.match.accepts(entered.head)
            for pending in pending_entered(entered, self.takers(entered.head.group_id, reader.now), reader)
        ]
        return sorted(found, key=lambda one: one.place)

    def _pending_member(self, row: Row, reader: Reader) -> Pending | None:
        """The first member of the row's group that somebody holds."""
        group = self.group(row.message.group_id)
        holds = (pending_of(one, reader) for one in group if one.expires_at > reader.now)
        return next((hold for hold in holds if hold is not None), None)

    def _would_have_what_it_needs(self, row: Row, wanted: Wanted, reader: Reader) -> bool:
        """Whether it will be complete once everything pending has become readable."""
        there = Members(one.message for one in self.group(row.message.group_id) if one.expires_at > reader.now)
        return has_what_it_needs(row.message, wanted.needs, lambda _: there)

    def decide_member(self, wanted: Wanted, reader: Reader) -> Decision[Row]:
        """Inside a group only the next member is a candidate, and nothing stands before it (B-44 d)."""
        rows = self.candidates(wanted)
        for row in rows:
            if pending_of(row, reader) is None and self.has_what_it_needs(row, wanted, reader):
                return Decision(row)
        holds = (pending_of(row, reader) for row in rows)
        pending = next((hold for hold in holds if hold is not None), None)
        return Decision(pending=pending or Pending(Kind.GROUP_INCOMPLETE, NO_PLACE, since=reader.now))

    # --- when time alone may bring something

    @abstractmethod
    def next_delivery(self, now: float) -> float | None:
        """When the next delayed message can be read."""

    @abstractmethod
    def next_lease_end(self, now: float) -> float | None:
        """When the next lock id ends by itself: what it locks can be read then (A-19)."""

    @abstractmethod
    def next_unmarking(self, reader: Reader) -> float | None:
        """When the next cooperative browse mark ends by itself (R3.74)."""

    @abstractmethod
    def next_outcome(self, now: float) -> float | None:
        """When time alone may unblock a strict call: a delay or the life of a pending message ends (B-28)."""


Q = TypeVar("Q", bound=Shelf)


class Transaction(ABC, Generic[Q, U]):
    """What one verb does: all of it, or nothing if it fails.

    A row's state changes by an event and the life-cycle table, or because the row goes with its queue or at a restart;
    nothing else changes it.
    """

    now: float

    @abstractmethod
    def touch(self, queue: Q) -> Told:
        """Those who wait on the queue, and observers, are told when the transaction is over; of what, is added."""

    @abstractmethod
    def refuse(self, queue: Q, message: Message) -> None:
        """The verb is about to fail for a message whose unique id is on the queue: observers are told all the same."""

    @abstractmethod
    def arrive(self, queue: Q, messages: Sequence[Message], unit: U | None) -> None:
        """Messages that were planned come to the queue, held by the unit if there is one."""

    @abstractmethod
    def step(self, queue: Q, row: Row, event: Event, unit: U | None = None, *, lock: Lock = Lock.NONE) -> None:
        """One event, which the table must allow, happens to one row.

        Args:
            unit: what comes to hold the row, if the event is a held one.
            lock: which lock the caller presents.
        """

    @abstractmethod
    def lock(self, queue: Q, row: Row, by: Locker | HeldLock) -> None:
        """A browse locks the row, for its handle or under a lock id."""

    def lock_for(self, handle: Handle[U], queue: Q, row: Row) -> None:
        """A browse of the handle locks the row (R3.69)."""
        connection = handle.connection
        self.lock(queue, row, Locker(handle.id, connection.id, connection.program.name, self.now))
        handle.locked.append(row)

    @abstractmethod
    def lock_unit(self, handle: Handle[U], queue: Q, lease: float | None) -> tuple[U, int]:
        """A new lock id on the queue, for so many seconds, and what holds the rows under it (A-12, A-19)."""

    @abstractmethod
    def end_leases(self, queue: Q) -> int:
        """Lock ids whose lease is over end; how many (A-19)."""

    @abstractmethod
    def release(self, handle: Handle[U], queue: Q) -> bool:
        """Frees the handle's browse lock; whether there was one."""

    @abstractmethod
    def mark(self, queue: Q, row: Row, *, handle: int | None = None, co_op: bool = False) -> None:
        """Marks a browsed row for a handle, or for the cooperating set (R3.72)."""

    @abstractmethod
    def unmark(self, queue: Q, row: Row, *, handle: int | None = None, co_op: bool = False) -> None:
        """Takes such a mark off."""

    @abstractmethod
    def unmark_for_all(self, queue: Q, row: Row) -> None:
        """A message that is got loses all its marks (R3.74)."""

    @abstractmethod
    def enlist(self, connection: Connection[U], calls: int, limit: int) -> U:
        """The connection's unit, begun if need be, with so many more calls counted. Raises: UnitTooLarge (R5.8)."""

    @abstractmethod
    def confirm_unit(self, handle: Handle[U], queue: Q, confirm_id: int) -> U:
        """What a confirm id holds on the queue, begun if need be (A-9, A-15)."""

    @abstractmethod
    def held_by(self, queue: Q, confirm_id: int) -> U | None:
        """What a confirm id holds on the queue, if it holds anything."""

    @abstractmethod
    def give_number(self, queue: Q, row: Row) -> None:
        """A single message is confirmed: if it has no number yet it is drawn now (A-26, B-53b)."""

    @abstractmethod
    def discard(self, queue: Q, limit: int | None = None) -> int:
        """Discards what has expired; how many (R6.2)."""

    # --- groups that readers are inside (B-45)

    @abstractmethod
    def enter(self, queue: Q, entered: Entered, unit: U | None) -> None:
        """A reader enters a group; the entry is taken back if the unit is backed out."""

    @abstractmethod
    def leave(
        self, queue: Q, reader: ReaderId, unit: U | None, open_unit: U | None, *, but: bytes | None = None
    ) -> None:
        """The reader is inside no group any more, or none but one; in a unit, when that is committed.

        Args:
            open_unit: its connection's unit of work. A group of which that holds a member is left when it is committed,
                however the reader went: a back out puts its handle back inside (C-12).
        """

    @abstractmethod
    def leave_all(self, queue: Q, reader: ReaderId) -> None:
        """The reader is inside no group any more, whatever becomes of units in which it entered or left some."""

    @abstractmethod
    def back_out_of_groups(self, queue: Q, unit: HeldUnit) -> None:
        """What the unit has done to the groups that readers are inside is taken back."""
