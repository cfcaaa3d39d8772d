"""Predicts from the rules alone what strict logical readers of one queue are given (lifecycle B, C-12).

It models a queue with read order "required" as lists: no search, no rows, no transaction. As a second opinion on the
meaning of the rules it imports nothing of the package: neither the rules nor the stores, which share them.

Its words. A *piece* is a message: alone, or one of a *chain*, which is a group or a segmented message in no group.
A chain has the place of its first piece (B-43). A unit *holds* a piece that was got until the unit is settled: the
unit of work of a connection, a prepared unit, or a confirm id. An *entry* is the record that a reader is inside a
chain (B-45). Each get notes its changes of the entries; they take effect when the get is made final, and are undone
when the get is.

Where the rules leave a choice, the choice is:

* An entry ends when its reader is elsewhere, at a piece of another chain or of none, however it got that piece
  (decision 44), but not while a back out of an open unit would return the reader to the chain (C-12, R3.32).
* An entry made in a unit of work ends when the unit is backed out. One made under a confirm id, or in a unit that
  was prepared, stays with its reader: neither an undo nor the outcome of a prepared unit moves a handle.
* A confirm id is settled as a whole, when nothing is held under it any more; then the changes of its gets take effect.
* Once the last piece is finally removed, an entry remains only with units that hold pieces, and returns to no reader.
  A reader that enters the chain later is inside until its handle closes or is elsewhere.
* Only an earlier place blocks, not the same one (B-11): any reader may get a first piece that has returned, although
  another reader is inside the chain.
* A piece that expires while a unit of work holds it blocks no reader (B-14); it counts as gone when it returns or the
  unit is committed (R6.3).
* Inside a chain, a logical get of the other kind, in a unit or not, is refused only if the next piece is available:
  otherwise none is found (R3.35, R3.36).
* A call would wait for itself if on any withheld level one of the blockers is its own (B-21).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

FOREVER = float("inf")
NONE, PENDING, SELF_BLOCKED, INCONSISTENT = "none", "pending", "self-blocked", "inconsistent"
OK, IGNORED, REFUSED = "ok", "ignored", "refused"


class Place(NamedTuple):
    """A place in the order: smaller is earlier, within one level (B-5, B-34)."""

    level: int
    number: int
    ordinal: int


class Position(NamedTuple):
    """The chain that a handle is inside, its latest piece, and whether that was got in a unit of work (R3.36)."""

    chain: str
    number: int
    in_unit: bool


@dataclass(eq=False)
class Unit:
    """Puts and gets of a connection, or gets under a confirm id, that have no outcome yet."""

    confirms: bool = False  # a confirm id: each of its pieces is settled separately
    put: list[Piece] = field(default_factory=list)
    got: list[Piece] = field(default_factory=list)
    entered: list[tuple[Handle, str]] = field(default_factory=list)
    left: list[tuple[Handle, str]] = field(default_factory=list)
    left_outside: list[tuple[Handle, str]] = field(default_factory=list)  # while a back out may return the reader
    number: int | None = None  # drawn at the prepare, on a queue with order=prepare


@dataclass(eq=False)
class Handle:
    """A reader: its connection's unit of work, and its position."""

    unit: Unit = field(default_factory=Unit)
    position: Position | None = None
    before: list[Position | None] = field(default_factory=list)  # at most one: restored by a back out
    closed: bool = False

    def may_stand_in(self, chain: str) -> bool:
        """Whether it is inside the chain, or would be after a back out."""
        return any(at is not None and at.chain == chain for at in (self.position, *self.before))


@dataclass(eq=False)
class Piece:
    """A message."""

    name: str
    level: int
    chain: str | None
    number: int
    is_last: bool
    expires: float = FOREVER
    place: Place | None = None
    in_put: Unit | None = None
    held_by: Unit | None = None
    expired: bool = False
    gone: bool = False

    @property
    def is_first(self) -> bool:
        return self.number == 1

    @property
    def may_come(self) -> bool:
        """Whether it can be read, now or later (B-14)."""
        return not (self.gone or self.expired)

    @property
    def is_available(self) -> bool:
        return not (self.gone or self.in_put or self.held_by)


class Oracle:
    """The queue.

    Args:
        order: put, prepare or commit.
    """

    def __init__(self, order: str) -> None:
        self.order = order
        self.now = 0.0
        self.pieces: list[Piece] = []
        self.confirm_ids: dict[int, Unit] = {}
        self.entries: dict[tuple[Handle, str], Place] = {}
        # Entries whose reader is no longer inside: kept by units that hold pieces of the chain.
        self.orphans: dict[tuple[Handle, str], Place] = {}
        self._numbers = 0

    # --- puts

    def put(self, piece: Piece, unit: Unit | None) -> None:
        self.pieces.append(piece)
        if unit is not None:
            piece.in_put = unit
            unit.put.append(piece)
        if unit is None or self.order == "put":
            piece.place = Place(piece.level, self._next(), 0)

    def _next(self) -> int:
        self._numbers += 1
        return self._numbers

    def _placed(self, unit: Unit) -> None:
        """Gives the puts of a unit that have no place yet one number, then places in put order (B-5)."""
        number = self._next()
        for ordinal, piece in enumerate(unit.put):
            if piece.place is None:
                piece.place = Place(piece.level, number, ordinal)

    # --- outcomes

    def prepare(self, unit: Unit, handle: Handle | None = None) -> Unit:
        """Returns the prepared unit; for the handle it acts as commit (R5.10)."""
        prepared = Unit(put=unit.put, got=unit.got, left=unit.left)
        for piece in prepared.put:
            piece.in_put = prepared
        for piece in prepared.got:
            if piece.held_by is unit:
                piece.held_by = prepared
        if self.order == "prepare":
            self._placed(prepared)
        self._forget(unit, handle)
        return prepared

    def commit(self, unit: Unit, handle: Handle | None = None) -> None:
        """Commits a unit of work or a prepared unit: its puts become visible, its gets final."""
        self._placed(unit)
        for piece in unit.put:
            piece.in_put = None
        got = [piece for piece in unit.got if piece.held_by is unit]
        left = Unit(left=unit.left)
        self._forget(unit, handle)
        self._final(got)
        self._count(left)
        self._drop_orphans()

    def back_out(self, unit: Unit, handle: Handle | None = None) -> None:
        """Backs out a unit of work or a prepared unit: removes its puts, and returns its gets to their places."""
        self.pieces = [piece for piece in self.pieces if piece not in unit.put]
        got = [piece for piece in unit.got if piece.held_by is unit]
        if handle is not None and handle.before:
            handle.position = handle.before[0]
        for entry in unit.entered:
            self.entries.pop(entry, None)
            self.orphans.pop(entry, None)
        unit.left_outside = []
        self._forget(unit, handle)
        self._return(got)

    def _forget(self, unit: Unit, handle: Handle | None) -> None:
        """Detaches the unit from its connection; no back out can move the handle afterwards."""
        unit.put, unit.got, unit.entered, unit.left = [], [], [], []
        left, unit.left_outside = unit.left_outside, []
        if handle is not None:
            handle.before = []
        for reader, chain in left:
            self._leave(reader, chain)

    def _final(self, got: Iterable[Piece]) -> None:
        got = list(got)
        going = [piece for piece in got if not piece.gone]
        for piece in got:
            piece.gone, piece.held_by = True, None
        self._end_chains(going)
        self._drop_orphans()

    def _end_chains(self, going: Iterable[Piece]) -> None:
        for piece in going:
            for reader, chain in list(self.entries):
                if piece.is_last and chain == piece.chain:
                    self._end_entry(reader, chain)

    def _return(self, got: list[Piece]) -> None:
        for piece in got:
            piece.held_by = None
            piece.gone |= piece.expired
        self._end_chains(piece for piece in got if piece.gone)
        self._drop_orphans()

    def _confirmed(self) -> None:
        """Settles each confirm id that holds nothing any more (A-10)."""
        for unit in self.confirm_ids.values():
            if not any(piece.held_by is unit and not piece.gone for piece in unit.got):
                unit.got = []
                self._count(unit)

    def _count(self, unit: Unit) -> None:
        """Applies a committed unit's changes: readers leave the chains that they left in it."""
        left, unit.left = unit.left, []
        for reader, chain in left:
            self._leave(reader, chain)

    # --- who is inside

    def _leave(self, reader: Handle, chain: str) -> None:
        if reader.position is not None and reader.position.chain == chain:
            return
        if reader.may_stand_in(chain):
            reader.unit.left_outside.append((reader, chain))
        else:
            self._end_entry(reader, chain)

    def _end_entry(self, reader: Handle, chain: str) -> None:
        """Ends the entry, or passes it to the units that hold a piece of the chain (B-45)."""
        place = self.entries.pop((reader, chain), None)
        if place is not None and self._held_of(chain):
            self.orphans[reader, chain] = place

    def _holders(self, chain: str) -> Iterable[Unit]:
        return (piece.held_by for piece in self._held_of(chain) if piece.held_by is not None and piece.may_come)

    def _held_of(self, chain: str) -> list[Piece]:
        return [piece for piece in self.pieces if piece.chain == chain and piece.held_by is not None and not piece.gone]

    def _drop_orphans(self) -> None:
        self.orphans = {one: place for one, place in self.orphans.items() if self._held_of(one[1])}

    def close(self, handle: Handle) -> None:
        """Closes the handle; its connection's unit remains (R5.7)."""
        handle.closed, handle.position, handle.before = True, None, []
        for reader, chain in list(self.entries):
            if reader is handle:
                self._end_entry(reader, chain)

    def pass_time(self, seconds: float) -> None:
        """Removes expired pieces; one that a unit of work holds blocks no more, and is removed on its return (B-14)."""
        self.now += seconds
        expired = [piece for piece in self.pieces if piece.may_come and piece.expires <= self.now]
        for piece in expired:
            piece.expired = True
            piece.gone = piece.held_by is None or piece.held_by.confirms
        self._confirmed()
        self._end_chains(piece for piece in expired if piece.gone)
        self._drop_orphans()

    # --- gets

    def find(self, handle: Handle, unit: Unit | None) -> Piece | str:
        """The piece that a logical get returns: in its connection's unit of work, under a confirm id, or in no unit."""
        at = handle.position
        if at is None:
            return self._first(handle, unit)
        wanted = (p for p in self.pieces if p.is_available and (p.chain, p.number) == (at.chain, at.number + 1))
        found = next(wanted, None)
        if found is None:  # inside only the next piece is a candidate (B-44)
            return NONE
        return found if at.in_unit == (unit is handle.unit) else INCONSISTENT

    def look(self) -> str:
        """The piece that a strict logical browse returns first to a reader that holds nothing."""
        found = self._first(Handle(), None)
        return found if isinstance(found, str) else found.name

    def _first(self, handle: Handle, unit: Unit | None) -> Piece | str:
        """The first piece of the next chain, level by level (B-11, B-34), or the reason why none is found."""
        withheld = own = False
        for level in sorted({piece.level for piece in self.pieces}, reverse=True):
            heads = [p for p in self.pieces if p.is_first and p.level == level and p.is_available]
            if not heads:
                continue
            first = min(heads, key=_place)
            blockers = list(self._blockers(_place(first), handle, unit))
            if not blockers:
                return first
            withheld = True
            own |= any(one is handle.unit for one in blockers)
        return SELF_BLOCKED if own else PENDING if withheld else NONE

    def _blockers(self, before: Place, handle: Handle, named: Unit | None) -> Iterable[Unit | Handle]:
        """Yields the blockers of a chain: units that put or hold pieces before it, and handles inside a chain there."""
        for piece in self.pieces:
            if piece.is_first and piece.may_come and piece.place is not None and _is_before(piece.place, before):
                if piece.in_put is not None:
                    yield piece.in_put
                if piece.held_by is not None and piece.held_by is not named:
                    yield piece.held_by
        recorded = {chain: place for (_, chain), place in [*self.entries.items(), *self.orphans.items()]}
        for (reader, _), place in self.entries.items():
            if reader is not handle and _is_before(place, before):
                yield reader
        for chain, place in recorded.items():
            if _is_before(place, before):
                yield from (unit for unit in self._holders(chain) if unit is not named)

    def take(self, piece: Piece, handle: Handle, unit: Unit | None, *, logical: bool) -> None:
        """Records a get of the piece: the new position of the handle, and the changes of entries."""
        left = [(one, chain) for one, chain in self.entries if one is handle and chain != piece.chain]
        if logical and handle.position is None and piece.chain is not None and not piece.is_last:
            if (handle, piece.chain) not in self.entries and unit is handle.unit:
                unit.entered.append((handle, piece.chain))
            self.entries[handle, piece.chain] = _place(piece)
        if unit is handle.unit and not handle.before:
            handle.before.append(handle.position)
        goes_on = piece.chain is not None and not piece.is_last
        handle.position = Position(piece.chain or "", piece.number, unit is handle.unit) if goes_on else None
        self._held(piece, unit)
        if handle.before and unit is not handle.unit:  # a back out returns the handle to the chain (C-12)
            handle.unit.left += left
        elif unit is None:
            self._count(Unit(left=left))
            self._drop_orphans()
        else:
            unit.left += left

    def _held(self, piece: Piece, unit: Unit | None) -> None:
        if unit is None:
            self._final([piece])
        else:
            piece.held_by = unit
            unit.got.append(piece)

    def remove(self, unit: Unit | None, piece: Piece) -> str:
        """A get in physical order that names the message, by a reader that is never inside a chain.

        Only that message could block it (B-13).
        """
        if not piece.is_available:
            return NONE
        self._held(piece, unit)
        return piece.name

    # --- one message by its unique id, and confirm ids

    def delete(self, piece: Piece) -> str:
        if not piece.is_available:
            return REFUSED
        self._final([piece])
        return OK

    def confirm(self, piece: Piece) -> str:
        if piece.gone:
            return IGNORED
        if piece.held_by is None or not piece.held_by.confirms:
            return REFUSED
        self._final([piece])
        self._confirmed()
        self._drop_orphans()
        return OK

    def undo(self, confirm_id: int) -> str:
        """Undoes the gets under a confirm id; no handle moves."""
        unit = self.confirm_id(confirm_id)
        got = [piece for piece in unit.got if piece.held_by is unit and not piece.gone]
        unit.got, unit.left = [], []
        self._return(got)
        return str(len(got)) if got else REFUSED

    def confirm_id(self, number: int) -> Unit:
        return self.confirm_ids.setdefault(number, Unit(confirms=True))

    # --- what can be seen at the end

    def left(self) -> list[str]:
        """The messages that a browse shows, in physical order, from the highest level."""
        there = [piece for piece in self.pieces if piece.is_available]
        return [piece.name for piece in sorted(there, key=lambda p: (-p.level, _place(p)))]

    def logical_sequences(self) -> dict[int, list[str]]:
        """The messages that a relaxed logical reader reads at each level, once everything is visible (B-43, B-53)."""
        there = sorted((piece for piece in self.pieces if piece.place is not None and not piece.in_put), key=_place)
        found: dict[int, list[str]] = {}
        for head in there:
            if head.is_first and head.expires == FOREVER:
                chain = [head] if head.chain is None else [piece for piece in there if piece.chain == head.chain]
                found.setdefault(head.level, []).extend(p.name for p in sorted(chain, key=lambda p: p.number))
        return found


def _place(piece: Piece) -> Place:
    assert piece.place is not None, piece
    return piece.place


def _is_before(one: Place, other: Place) -> bool:
    return one.level == other.level and one < other
