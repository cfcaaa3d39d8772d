"""A queue during one operation: its counters, and the search with the judgement of the rules."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ...errors import QueueFull
from ...model.attributes import QueueAttributes
from ...model.message import Place, UniqueId
from ...rules.grouping import Members, Numbers, Wanted, has_what_it_needs, is_head
from ...rules.ordering import Cursor, Decision, Pending, PendingKind, StrictMatch
from ..seam.backend import Backend, QueueState
from ..seam.queued import (
    NO_PLACE,
    Far,
    QueuedMessage,
    Reader,
    available,
    cost_of,
    fits,
    is_in_sight,
    pending_of,
    pending_under,
)
from ..seam.tables import EnteredRow, UnitKind, UnitRow
from .group_records import Entry, entry_of
from .unit_owners import UnitOwners


class LocalQueue:
    """A queue as one operation sees it: its counters, and the search, which applies the rules.

    Attributes:
        state: the state at the beginning of the operation; `counter`, `added` and `arrived` contain its changes.
        has_entries: readers are inside groups.
        asked: the cost of selector evaluations so far.
    """

    __slots__ = (
        "added",
        "arrived",
        "asked",
        "attributes",
        "backend",
        "changed",
        "counter",
        "has_entries",
        "id",
        "state",
        "unit_owners",
    )

    def __init__(
        self, backend: Backend, unit_owners: UnitOwners, number: int, attributes: QueueAttributes, state: QueueState
    ) -> None:
        self.backend, self.unit_owners = backend, unit_owners
        self.id, self.attributes, self.state = number, attributes, state
        self.counter = state.counter
        self.has_entries = bool(state.has_entered)
        self.added = self.arrived = self.asked = 0
        self.changed = False

    @property
    def depth(self) -> int:
        """Counts puts in every state; a get leaves the depth at once (R4.6)."""
        return self.state.depth + self.added

    def has_work(self, now: float) -> bool:
        """Whether something must be done first: messages have expired or are due, or leases are over."""
        _, _, _, expiry, due, lease_end, *_ = self.state
        return (
            (expiry is not None and expiry <= now)
            or (due is not None and due <= now)
            or (lease_end is not None and lease_end <= now)
        )

    def full(self, depth: int) -> QueueFull:
        """Returns the error for a put that finds the queue at its limit."""
        name, limit = self.attributes.name, self.attributes.max_depth
        return QueueFull(f"{name} is full: its limit is {limit:,}, and it has {depth:,}", queue=name, depth=depth)

    def draw_number(self, count: int = 1) -> int:
        """Draws the next number of the queue, or the first of the next `count` (B-2)."""
        first = self.counter + 1
        self.counter += count
        self.changed = True
        return first

    def count(self, difference: int) -> None:
        """Changes the depth."""
        self.added += difference
        self.changed |= difference != 0

    def has_locked(self, handle: int) -> bool:
        return self.unit_owners.has_locked(handle)

    # --- finding

    def find(self, wanted: Wanted, reader: Reader, after: Place | None) -> Sequence[QueuedMessage]:
        """Returns the first suitable message: one row, all segments of a logical message, or none."""
        row = next(self.find_all(wanted, reader, after), None)
        return () if row is None else self.pieces(row, wanted, reader)

    def find_all(self, wanted: Wanted, reader: Reader, after: Place | None = None) -> Iterator[QueuedMessage]:
        """Yields every suitable message in order of place."""
        for row in self.backend.candidates(self, wanted, reader, after):
            suits = available(row, reader) and self.selects(row, wanted, reader)
            if suits and self.has_what_it_needs(row, wanted, reader):
                yield row

    def decide(self, wanted: Wanted, reader: Reader, cursor: Cursor, *, logical: bool) -> Decision[QueuedMessage]:
        """Returns the strict decision over everything that matches (B-11)."""
        if wanted.member is not None:
            return self._decide_member(wanted, reader)
        return self.backend.decide(self, wanted, reader, cursor, logical=logical)

    def earlier(
        self, before: QueuedMessage | None, wanted: Wanted, reader: Reader, after: Place | None, *, logical: bool
    ) -> Sequence[Pending]:
        """Returns the pending messages that would withhold a strict call, for a notify call (B-16). Inside a group only
        the next member counts.
        """
        if wanted.member is not None:
            return ()
        return self.backend.earlier(self, before, wanted, reader, after, logical=logical)

    def members(self, group_id: bytes) -> Sequence[QueuedMessage]:
        """Returns the members of a group that have a place, in order of place."""
        return self.backend.rows(queue=self.id, group_id=group_id)

    def row(self, number: int | None) -> QueuedMessage | None:
        """Returns the message of this number, if it has a place."""
        if number is None:
            return None
        row = next(iter(self.backend.rows(queue=self.id, number=number)), None)
        return row if row is not None and row.placed else None

    def by_uid(self, uid: UniqueId) -> QueuedMessage | None:
        return next(iter(self.backend.rows(queue=self.id, uid=uid)), None)

    def named_unit(self, kind: UnitKind, name: str) -> UnitRow | None:
        """Returns the unit of a confirm id, lock id or claim on this queue, or None (A-15)."""
        found = self.backend.select(UnitRow, queue=self.id, kind=kind, name=name)
        return found[0] if found else None

    # --- the rules about a row

    def selects(self, row: QueuedMessage, wanted: Wanted, reader: Reader) -> bool:
        if wanted.heads and not is_head(row.message):
            return False
        if wanted.joins and row.message.offset:
            return False
        if not is_in_sight(row, reader):
            return False
        if reader.lock_id and row.lock != reader.lock:
            return False
        if wanted.selector is None:
            return True
        self.asked += cost_of(row.message.properties.text, wanted.selector)
        if self.asked > reader.asks:
            raise Far
        return fits(wanted.selector, row, reader)

    def has_what_it_needs(self, row: QueuedMessage, wanted: Wanted, reader: Reader) -> bool:
        return has_what_it_needs(row.message, wanted.needs, lambda group: self._available_members(group, reader))

    def pieces(self, row: QueuedMessage, wanted: Wanted, reader: Reader) -> Sequence[QueuedMessage]:
        """Returns the row itself, or with `joins` all segments of its logical message (R3.42)."""
        if not wanted.joins or row.message.segment_status == "no":
            return (row,)
        rows = {id(one.message): one for one in self._readable(row.message.group_id, reader)}
        pieces = Members(one.message for one in rows.values()).logical_message(row.message.sequence_number)
        return [rows[id(piece)] for piece in pieces]

    def _available_members(self, group_id: bytes, reader: Reader) -> Members:
        return Members(row.message for row in self._readable(group_id, reader))

    def _readable(self, group_id: bytes, reader: Reader) -> list[QueuedMessage]:
        return [row for row in self.members(group_id) if available(row, reader) and is_in_sight(row, reader)]

    def pending_of(self, row: QueuedMessage, reader: Reader) -> Pending | None:
        """Why this reader cannot get the row yet; None if it can."""
        return pending_of(row, reader, self.unit_owners.unit, self.unit_owners.whose_handle)

    def judge(
        self, row: QueuedMessage, wanted: Wanted, reader: Reader, *, logical: bool
    ) -> StrictMatch[QueuedMessage] | None:
        if row.expires_at <= reader.now or not self.selects(row, wanted, reader):
            return None  # a message that can never become readable blocks nothing (B-14)
        pending = self.pending_of(row, reader)
        if self.has_what_it_needs(row, wanted, reader):
            return StrictMatch(row.place, row, pending)
        missing = pending or self._pending_member(row, reader)
        if not logical:  # a group that can never be complete matches nothing and blocks nothing
            whole = missing is not None and self._would_have_what_it_needs(row, wanted, reader)
            return StrictMatch(row.place, row, missing) if whole else None
        if pending is None:
            since = row.visible_at if missing is None else missing.since
            holder, by = (None, "") if missing is None else (missing.holder, missing.by)
            pending = Pending(PendingKind.GROUP_INCOMPLETE, row.place, holder, by, since)
        return StrictMatch(row.place, row, pending)

    def entered_by_others(self, wanted: Wanted, reader: Reader) -> list[StrictMatch[QueuedMessage]]:
        if not self.has_entries:
            return []
        found: list[StrictMatch[QueuedMessage]] = []
        for one in self.backend.select(EnteredRow, queue=self.id):
            if reader.lock_id and not self.backend.rows(1, queue=self.id, group_id=one.group_id, lock=reader.lock):
                continue  # locks never grow: the call can get nothing of this group
            entry = entry_of(one.entry)
            if wanted.match.accepts(entry.head) and (wanted.selector is None or wanted.selector.fits(entry.head)):
                found += [StrictMatch(entry.place, None, pending) for pending in self._held_by(one, entry, reader)]
        return sorted(found, key=lambda one: one.place)

    def _held_by(self, one: EnteredRow, entry: Entry, reader: Reader) -> list[Pending]:
        """Returns the blockers of this reader at the place of an entered group."""
        takers = self.backend.takers(self.id, one.group_id, reader.now)
        found = [
            pending_under(self.unit_owners.unit(unit), PendingKind.OUT, entry.place, reader)
            for unit in takers
            if not reader.has_got_in(unit)
        ]
        if one.reader is not None and one.reader != reader.id:
            found.append(Pending(PendingKind.OUT, entry.place, entry.connection, entry.by, entry.since))
        return found

    def _pending_member(self, row: QueuedMessage, reader: Reader) -> Pending | None:
        """Returns the pending entry of the first member of the row's group that is held, or None."""
        there = (one for one in self.members(row.message.group_id) if one.expires_at > reader.now)
        holds = (self.pending_of(one, reader) for one in there)
        return next((hold for hold in holds if hold is not None), None)

    def _would_have_what_it_needs(self, row: QueuedMessage, wanted: Wanted, reader: Reader) -> bool:
        """Whether the group or message will be complete once everything pending is readable."""
        there = Members(one.message for one in self.members(row.message.group_id) if one.expires_at > reader.now)
        return has_what_it_needs(row.message, wanted.needs, lambda _: there)

    def _decide_member(self, wanted: Wanted, reader: Reader) -> Decision[QueuedMessage]:
        """Inside a group only the next member is a candidate, and nothing can come before it (B-44 d)."""
        assert isinstance(wanted.member, Numbers)
        rows = self.backend.rows(queue=self.id, member=wanted.member)
        for row in rows:
            if self.pending_of(row, reader) is None and self.has_what_it_needs(row, wanted, reader):
                return Decision(row)
        holds = (self.pending_of(row, reader) for row in rows)
        pending = next((hold for hold in holds if hold is not None), None)
        return Decision(pending=pending or Pending(PendingKind.GROUP_INCOMPLETE, NO_PLACE, since=reader.now))
