"""Histories for `test_logical_schedules`: the queue manager and the oracle do each step, and are compared."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import count
from typing import Any

from tests.helpers.logical_oracle import (
    IGNORED,
    INCONSISTENT,
    NONE,
    OK,
    PENDING,
    REFUSED,
    SELF_BLOCKED,
    Handle,
    Oracle,
    Piece,
    Unit,
)

from inorder import Match, Message, NoMessageAvailable, OrderPending, QueueManager, Reason
from inorder.errors import InconsistentCall, NotFound, OrderSelfBlocked, WrongState
from inorder.model.message import IN_GROUP, LAST_IN_GROUP, LAST_SEGMENT, SEGMENT
from inorder.rules.puts import PutResult
from inorder.testing import ManualClock

Step = tuple[str, int, int]
MANY = 3  # writers, and readers
SIZES = (3, 2, 3, 1)
LEVELS = (0, 5, 0)
EXPIRY_SECONDS = 2
LEASE_SECONDS = 3_600  # longer than any history
WORDS: dict[type[Exception], str] = {
    NoMessageAvailable: NONE,
    OrderPending: PENDING,
    OrderSelfBlocked: SELF_BLOCKED,
    InconsistentCall: INCONSISTENT,
    NotFound: REFUSED,
    WrongState: REFUSED,
}


def word_of(found: object) -> str:
    """The oracle's word for the result of a call."""
    if isinstance(found, Message):
        return found.body.decode()
    if found is Reason.NOT_FOUND:
        return IGNORED
    return OK if found is None else str(found)


class History:
    """A queue, three writers, three connections that share a lease, three readers, a third party, and the oracle.

    Args:
        mixed: whether a reader may get outside of its unit of work while that holds something.
    """

    def __init__(self, qm: QueueManager, clock: ManualClock, order: Any, *, mixed: bool = True) -> None:
        qm.create_queue("Q", order=order, read_order="required")
        self.qm, self.clock, self.oracle, self.mixed = qm, clock, Oracle(order), mixed
        self.writers = [qm.connect(program=f"W{n}") for n in range(MANY)]
        self.readers = [qm.connect(program=f"R{n}") for n in range(MANY)]
        self.onlooker = qm.open("Q", browse=True)
        self.third = qm.connect(program="third party")
        self.queues = [reader.open("Q", input="shared") for reader in self.readers]
        self.handles = [Handle() for _ in self.readers]
        self.writer_units = [Unit() for _ in self.writers]
        self.third_unit = Unit()
        self.sharers = [qm.connect(program=f"S{n}") for n in range(MANY)]
        self.lease, self.lease_unit = qm.lease(seconds=LEASE_SECONDS), Unit()
        self.prepared_puts: list[tuple[str, Unit]] = []
        self.prepared_gets: list[tuple[str, Unit]] = []
        self.numbers = count()
        self.to_put: list[Piece] = []
        self.results: dict[Piece, PutResult] = {}
        self.got: list[Piece] = []
        self.said: list[str] = []  # the history, shown when a test fails

    def run(self, steps: list[Step]) -> None:
        """Does all steps, after putting two groups and two messages."""
        opening = "put chain that expires" if self.mixed else "put chain"
        for step in ((opening, 0, 2), ("put single", 0, 0), ("put single", 0, 0), ("put chain", 0, 5)):
            self.do(step)
        for step in steps:
            if step[0] != "nothing":
                self.do(step)
                self._look()

    def do(self, step: Step) -> None:
        verb, who, which = step
        first, *words = verb.split()
        getattr(self, f"_{first}")(words, who, which)

    def _same(self, what: str, call: Callable[[], object], expected: str) -> None:
        try:
            outcome = word_of(call())
        except tuple(WORDS) as error:
            outcome = WORDS[type(error)]
        self.said.append(f"{what} -> {outcome}")
        assert outcome == expected, "\n".join(["", *self.said, f"but the rules say: {expected}"])

    # --- writers

    def _put(self, words: list[str], who: int, which: int) -> None:
        unit = self.writer_units[who] if "unit" in words else self.lease_unit if "lease" in words else None
        if words[0] == "single":
            self._put_one(Piece(f"m{next(self.numbers):03}", LEVELS[which % 3], None, 1, is_last=True), who, unit)
            return
        if not self.to_put or (words[0] == "chain" and which % 2):
            self._open_chain(which)
        if words[0] == "piece":
            piece = self.to_put.pop(0 if which % 3 else which % len(self.to_put))
            self._put_one(piece, who, unit, expires="expires" in words)
        else:
            chain = self.to_put[-1].chain
            for piece in [piece for piece in self.to_put if piece.chain == chain]:
                self.to_put.remove(piece)
                self._put_one(piece, who, unit, expires="expires" in words and piece.is_last)

    def _open_chain(self, which: int) -> None:
        n = next(self.numbers)
        size = SIZES[(n + which) % len(SIZES)]
        name = f"{'s' if size > 1 and which % 4 == 3 else 'g'}{n:03}"
        for number in range(1, size + 1):
            level = LEVELS[(number + which) % len(LEVELS)]
            self.to_put.append(Piece(f"{name}.{number}", level, name, number, is_last=number == size))

    def _put_one(self, piece: Piece, who: int, unit: Unit | None, *, expires: bool = False) -> None:
        fields: dict[str, Any] = {"priority": piece.level, "syncpoint": unit is not None}
        if piece.chain is not None and piece.chain.startswith("s"):
            fields |= {"flags": LAST_SEGMENT if piece.is_last else SEGMENT, **self._where(piece)}
        elif piece.chain is not None:
            fields |= {"flags": LAST_IN_GROUP if piece.is_last else IN_GROUP, **self._where(piece)}
        if expires:
            piece.expires = self.oracle.now + EXPIRY_SECONDS
            fields["expiry"] = EXPIRY_SECONDS
        if unit is self.lease_unit:
            sharer = self.sharers[who]
            with sharer.resume_lease(self.lease.token):
                self.results[piece] = sharer.put("Q", piece.name.encode(), **fields)
        else:
            self.results[piece] = self.writers[who].put("Q", piece.name.encode(), **fields)
        self.said.append(f"{'S' if unit is self.lease_unit else 'W'}{who} put {piece.name} {fields}")
        self.oracle.put(piece, unit)

    def _where(self, piece: Piece) -> dict[str, Any]:
        assert piece.chain is not None
        group = {"group_id": piece.chain.encode().ljust(24, b"\0")}
        if piece.chain.startswith("s"):
            return {**group, "offset": (piece.number - 1) * len(piece.name)}
        return {**group, "sequence_number": piece.number}

    def _writer(self, words: list[str], who: int, which: int) -> None:
        unit, writer = self.writer_units[who], self.writers[who]
        if words[0] == "prepares":
            if unit.put:
                name = f"u{next(self.numbers)}"
                self._same(f"W{who} prepare {name}", lambda: writer.prepare(name), OK)
                self.prepared_puts.append((name, self.oracle.prepare(unit)))
        elif words[0] == "commits":
            self._same(f"W{who} commit", writer.commit, OK)
            self.oracle.commit(unit)
        else:
            self._same(f"W{who} backout", writer.back_out, OK)
            self._back_out(unit)

    def _lease(self, words: list[str], who: int, which: int) -> None:
        """A sharer settles the lease, and another lease begins."""
        lease = self.sharers[who].resume_lease(self.lease.token)
        if which % 3:
            self._same(f"S{who} commit", lease.commit, OK)
            self.oracle.commit(self.lease_unit)
        else:
            self._same(f"S{who} backout", lease.back_out, OK)
            self._back_out(self.lease_unit)
        self.lease = self.qm.lease(seconds=LEASE_SECONDS)

    def _back_out(self, unit: Unit, handle: Handle | None = None) -> None:
        """Backs out a unit; the backed-out puts of chains are to be put again later."""
        for piece in unit.put:
            if piece.chain is not None and not piece.gone:
                self.to_put.append(Piece(piece.name, piece.level, piece.chain, piece.number, is_last=piece.is_last))
        self.oracle.back_out(unit, handle)

    def _settle(self, words: list[str], who: int, which: int) -> None:
        prepared = self.prepared_puts if words[0] == "put" else self.prepared_gets
        if not prepared:
            return
        name, unit = prepared.pop(which % len(prepared))
        if which % 3 or "commit" in words:
            self._same(f"qm settle {name} commit", lambda: self.qm.settle(name, "commit"), OK)
            self.oracle.commit(unit)
        else:
            self._same(f"qm settle {name} backout", lambda: self.qm.settle(name, "back_out"), OK)
            self._back_out(unit)

    # --- readers

    def _get(self, words: list[str], who: int, which: int) -> None:
        handle, options = self.handles[who], dict[str, Any]()
        unit: Unit | None = None
        if "on" in words:  # in the same kind of unit as the piece before, if it is inside a group
            in_unit = handle.position is None or handle.position.in_unit
            words = ["unit" if in_unit else "confirmed" if which % 3 == 2 else ""]
        if "unit" in words:
            unit, options = handle.unit, {"syncpoint": True}
        elif handle.unit.got and not self.mixed:
            return
        elif "confirmed" in words:
            confirm_id = 5 + which % 2
            unit, options = self.oracle.confirm_id(confirm_id), {"confirm_id": confirm_id}
        if "single" in words:
            there = [piece for piece in self.oracle.pieces if piece.chain is None and not piece.gone]
            if not there:
                return
            piece = there[which % len(there)]
            match = Match(message_id=self.results[piece].message_id)
            said, options = f"{options} {piece.name}", {**options, "match": match}
            found: Piece | str = piece if piece.is_available else NONE
        else:
            said, options = f"{options} logical", {**options, "logical": True}
            found = self.oracle.find(handle, unit)
        if isinstance(found, str):
            self._same(f"R{who} get {said}", lambda: self.queues[who].get(**options), found)
        elif not self._is_open_question(handle, unit):
            self._same(f"R{who} get {said}", lambda: self.queues[who].get(**options), found.name)
            self.oracle.take(found, handle, unit, logical="logical" in options)
            self.got.append(found)

    def _is_open_question(self, handle: Handle, unit: Unit | None) -> bool:
        """Whether a get would move a reader although the back out of another unit may return it to a group.

        For a get that does not belong to that unit, the rules do not decide which reader is inside after the back out.
        """
        inside = {chain for reader, chain in self.oracle.entries if reader is handle}
        if unit is not handle.unit and handle.position is None and inside:
            return True
        units = [*self.oracle.confirm_ids.values(), *(prepared for _, prepared in self.prepared_gets)]
        return any((handle, chain) in one.left for one in units for chain in inside)

    def _look(self) -> None:
        """After each step a browse from the first message finds what a get by a reader that holds nothing would get."""
        self._same("look", lambda: self.onlooker.browse_first(logical=True), self.oracle.look())

    def _reader(self, words: list[str], who: int, which: int) -> None:
        handle, reader = self.handles[who], self.readers[who]
        if words[0] == "prepares":
            if any(not piece.gone for piece in handle.unit.got):
                name = f"u{next(self.numbers)}"
                self._same(f"R{who} prepare {name}", lambda: reader.prepare(name), OK)
                self.prepared_gets.append((name, self.oracle.prepare(handle.unit, handle)))
        elif words[0] == "commits":
            self._same(f"R{who} commit", reader.commit, OK)
            self.oracle.commit(handle.unit, handle)
        else:
            self._same(f"R{who} backout", reader.back_out, OK)
            self.oracle.back_out(handle.unit, handle)

    def _close(self, words: list[str], who: int, which: int) -> None:
        self.queues[who].close()
        self.queues[who] = self.readers[who].open("Q", input="shared")
        self.said.append(f"R{who} close")
        self.oracle.close(self.handles[who])
        self.handles[who] = Handle(self.handles[who].unit)

    def _crash(self, words: list[str], who: int, which: int) -> None:
        self.readers[who].internals.abandon()
        self.readers[who] = self.qm.connect(program=f"R{who}")
        self.queues[who] = self.readers[who].open("Q", input="shared")
        self.said.append(f"R{who} crash")
        self.oracle.back_out(self.handles[who].unit, self.handles[who])
        self.oracle.close(self.handles[who])
        self.handles[who] = Handle()

    def _confirm(self, words: list[str], who: int, which: int) -> None:
        held = [piece for piece in self.oracle.pieces if piece.held_by and piece.held_by.confirms]
        there = held if which % 6 else self.oracle.pieces
        if there:
            piece = there[which % len(there)]
            uid, expected = self.results[piece].uid, self.oracle.confirm(piece)
            self._same(f"R{who} confirm {piece.name}", lambda: self.readers[who].confirm_get("Q", uid), expected)

    def _undo(self, words: list[str], who: int, which: int) -> None:
        confirm_id = 5 + which % 2
        if which % 6 and not self.oracle.confirm_id(confirm_id).got:
            return
        expected = self.oracle.undo(confirm_id)
        self._same(f"R{who} undo {confirm_id}", lambda: self.readers[who].undo("Q", confirm_id), expected)

    # --- a third party, and time

    def _remove(self, words: list[str], who: int, which: int) -> None:
        there = [piece for piece in self.oracle.pieces if piece.chain is not None and not piece.gone]
        if there:
            piece, unit = there[which % len(there)], self.third_unit if "unit" in words else None
            match, expected = Match(**self._where(piece)), self.oracle.remove(unit, piece)
            call = lambda: self.third.get("Q", match=match, syncpoint=unit is not None)  # noqa: E731
            self._same(f"T get {piece.name}{' syncpoint' * (unit is not None)}", call, expected)

    def _third(self, words: list[str], who: int, which: int) -> None:
        if words[0] == "commits":
            self._same("T commit", self.third.commit, OK)
            self.oracle.commit(self.third_unit)
        else:
            self._same("T backout", self.third.back_out, OK)
            self.oracle.back_out(self.third_unit)

    def _delete(self, words: list[str], who: int, which: int) -> None:
        there = [piece for piece in self.oracle.pieces if not piece.gone]
        if there:
            piece = there[which % len(there)]
            uid, expected = self.results[piece].uid, self.oracle.delete(piece)
            self._same(f"T delete {piece.name}", lambda: self.third.delete("Q", uid), expected)

    def _clock(self, words: list[str], who: int, which: int) -> None:
        seconds = EXPIRY_SECONDS if which % 4 else 1
        self.clock.advance(seconds)
        self.said.append(f"clock +{seconds}")
        self.oracle.pass_time(seconds)

    # --- the end

    def resolve(self) -> None:
        """Commits every unit, confirms every confirm id, and completes every chain."""
        while self.to_put:
            self._put_one(self.to_put.pop(0), 0, None)
        for n in range(MANY):
            self.do(("writer commits", n, 0))
            self.do(("reader commits", n, 0))
        self.do(("third commits", 0, 0))
        self.do(("lease", 0, 1))
        for _ in list(self.prepared_puts):
            self.do(("settle put commit", 0, 0))
        for _ in list(self.prepared_gets):
            self.do(("settle get commit", 0, 0))
        for piece in self.oracle.pieces:
            if piece.held_by is not None and not piece.gone:
                confirm = partial(self.qm.confirm_get, "Q", self.results[piece].uid)
                self._same(f"qm confirm {piece.name}", confirm, self.oracle.confirm(piece))

    def drain(self) -> None:
        """The readers get everything that they are given, inside a group always in the same kind of unit."""
        before = -1
        while before < len(self.got):
            before = len(self.got)
            for who in range(MANY):
                self.do(("get on", who, 0))
                self.do(("reader commits", who, 0))

    def seen(self) -> list[str]:
        """The messages left on the queue, in physical order."""
        assert self.qm.depth("Q") == len(self.oracle.left())
        return [message.body.decode() for message in self.qm.browse("Q")]
