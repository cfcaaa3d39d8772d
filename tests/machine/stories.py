"""Short stories inside a history: a few calls in a row that reach states which single random steps seldom reach.

Each is random in the important choices, is mixed with all other steps, and continues whatever its calls return.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from hypothesis import strategies as st
from hypothesis.stateful import rule
from tests.machine import choices
from tests.machine.history import History
from tests.machine.pairs import Outcome, Returned
from tests.machine.side import Side, listing

from inorder import Flags, Match, Message, Queue

T = TypeVar("T")

CCSID, ENCODING = 819, 273
HOLDS = (
    *("put in unit", "put under id", "free", "locked", "locked under id", "got in unit", "got under id"),
    *("locked, got in unit", "locked, got under id", "locked under id, got under id"),
)
FATES = (
    *("again", "again, held", "resend", "resend, held", "confirm put", "confirm put, other", "confirm get"),
    *("confirm get, other", "unlock", "unlock, no lock", "delete", "delete, no lock", "other lock", "undo"),
    *("get", "commit", "back out", "prepare", "expire", "release lock", "lease over", "abandon", "restart", "nothing"),
)
ODDITIES: tuple[Mapping[str, Any], ...] = (
    *({}, {"delay": 5.0}, {"expiry": 5.0}, {"syncpoint": True}, {"coded_character_set_id": CCSID}),
    *({"encoding": ENCODING}, {"persistent": False}, {"priority": 9}, {"confirm_id": 1}),
)
READINGS: tuple[Mapping[str, Any], ...] = (
    {"logical": True},
    {"logical": True, "read_order": "strict"},
    {"logical": True, "read_order": "strict", "syncpoint": True},
    {"logical": True, "all_messages": True, "read_order": "strict", "syncpoint": True},
    {"logical": True, "complete": True, "syncpoint": True},
    {"complete": True, "read_order": "strict"},
    {"all_segments": True},
)
MEMBER_HOLDS = ("unit", "prepared", "locked", "delayed", "got")


class Stories(History):
    """Lives of one message, groups with a flaw, and readers that block each other."""

    def _by_id(self, outcome: Outcome | None) -> dict[str, Any]:
        return {"match": {"message_id": outcome.value.message_id}} if isinstance(outcome, Returned) else {}

    def _on(self, handle: int, **options: Any) -> Outcome:
        return self.both(lambda side: side.handles[handle].get(**side.options(options)))

    # --- one message

    @rule(choice=choices.handles, hold=st.sampled_from(HOLDS), fate=st.sampled_from(FATES))
    def live(self, choice: int, hold: str, fate: str) -> None:
        """Brings a message into a state, then makes one call on it (lifecycle A.3)."""
        handle = self.handle(choice)
        if handle is None:
            return
        body, expiry = self.body(4), 5.0 if fate == "expire" else 60.0
        ways: dict[str, dict[str, Any]] = {"put in unit": {"syncpoint": True}, "put under id": {"confirm_id": 1}}
        given = ways.get(hold, {"syncpoint": False})
        put = self.both(lambda side: side.handles[handle].put(body, expiry=expiry, **given))
        if not isinstance(put, Returned):
            return
        match, lock = self._by_id(put), 0
        if "locked" in hold:
            confirm_id, lease = int("locked under id" in hold), 5.0 if fate == "lease over" else None
            lock = self._lock(handle, match["match"], confirm_id, lease)
        if "got" in hold:
            held: dict[str, Any] = {"confirm_id": 1} if "got under id" in hold else {"syncpoint": True}
            self._on(handle, **match, lock_id=lock, **held)
        self._meet(handle, put.value.uid, lock, fate)

    def _lock(self, handle: int, match: Mapping[str, Any], confirm_id: int, lease: float | None = None) -> int:
        how: dict[str, Any] = {"confirm_id": confirm_id, "lease": lease}
        locked = self.both(lambda side: side.handles[handle].browse_and_lock(side.match(match), **how))
        return int(locked.value.lock_id) if isinstance(locked, Returned) else 0

    def _meet(self, handle: int, uid: Any, lock: int, fate: str) -> None:
        number = self.owners[handle]
        other = self._lock(handle, {"group_id": b"nobody's"}, 0) if fate == "other lock" else 0

        def step(side: Side) -> Any:
            queue, qm = side.handles[handle], side.connections[number]
            own, right, wrong = side.translate("uid", uid), side.translate("lock", lock), side.translate("lock", other)
            done: Mapping[str, Any] = {
                "again": lambda: queue.put(b"", uid=own),
                "again, held": lambda: queue.put(b"", uid=own, confirm_id=1),
                "resend": lambda: queue.put(b"", uid=own, resend=True),
                "resend, held": lambda: queue.put(b"", uid=own, resend=True, confirm_id=1),
                "confirm put": lambda: queue.confirm_put(own),
                "confirm put, other": lambda: queue.confirm_put(own, confirm_id=2),
                "confirm get": lambda: queue.confirm_get(own),
                "confirm get, other": lambda: queue.confirm_get(own, confirm_id=2),
                "unlock": lambda: queue.unlock(own, lock_id=right),
                "unlock, no lock": lambda: queue.unlock(own),
                "delete": lambda: queue.delete(own, lock_id=right),
                "delete, no lock": lambda: queue.delete(own),
                "other lock": lambda: queue.delete(own, lock_id=wrong),
                "get": lambda: queue.get(lock_id=right),
                "undo": lambda: queue.undo(1),
                "commit": qm.commit,
                "back out": qm.back_out,
                "prepare": lambda: qm.prepare("u1"),
                "expire": lambda: self._after(side, 5.0, queue.status),
                "release lock": lambda: queue.internals.release_lock(right or 1),
                "lease over": lambda: self._after(side, 5.0, lambda: queue.unique_ids(confirm_id=1)),
                "nothing": queue.status,
            }
            return done[fate]()

        if fate == "abandon":
            self.replace_connection(number)
        elif fate == "restart":
            self.restart_store()
        else:
            self.both(step)

    def _after(self, side: Side, seconds: float, call: Callable[[], T]) -> T:
        side.advance(seconds)
        return call()

    # --- groups and logical messages with a flaw

    @rule(
        choice=choices.handles,
        reader=choices.handles,
        sizes=st.lists(st.integers(1, 3), min_size=1, max_size=3),
        grouped=st.booleans(),
        flaw=st.integers(0, 8),
        oddity=st.sampled_from(ODDITIES),
        omit=st.booleans(),
        reading=st.sampled_from(READINGS),
        reads=st.integers(0, 4),
    )
    def flawed_group(
        self,
        *,
        choice: int,
        reader: int,
        sizes: list[int],
        grouped: bool,
        flaw: int,
        oddity: Mapping[str, Any],
        omit: bool,
        reading: Mapping[str, Any],
        reads: int,
    ) -> None:
        """Puts and reads a group or a logical message, one piece of which is missing or differs from the others."""
        self._bodies += 1
        pieces = self._pieces(f"g{self._bodies}".encode(), sizes if grouped else sizes[:1], grouped=grouped)
        for n, piece in enumerate(pieces):
            if n != flaw:
                self.on_handle(choice, lambda _, queue, piece=piece: queue.put(piece))  # type: ignore[misc]
            elif not omit:
                self.on_handle(choice, lambda _, queue, piece=piece: queue.put(piece, **oddity))  # type: ignore[misc]
        for _ in range(reads):
            self.on_handle(reader, lambda side, queue: queue.get(**reading))

    def _pieces(self, group_id: bytes, sizes: list[int], *, grouped: bool) -> list[Message]:
        pieces = []
        for n, segments in enumerate(sizes, 1):
            for m in range(segments):
                flags = 0 if not grouped else Flags.IN_GROUP if n < len(sizes) else Flags.LAST_IN_GROUP
                if segments > 1:
                    flags |= Flags.SEGMENT if m < segments - 1 else Flags.LAST_SEGMENT
                own_id = {"group_id": group_id} if flags else {}
                body = self.body(4)
                pieces.append(Message(body, sequence_number=n, offset=m * 4, flags=flags, **own_id))  # type: ignore[arg-type]
        return pieces

    @rule(choice=choices.handles, kind=st.sampled_from(MEMBER_HOLDS))
    def next_member_pending(self, choice: int, kind: str) -> None:
        """A strict reader gets the first member of a group, while the second is held."""
        handle = self.handle(choice)
        if handle is None:
            return
        first, second = self._pieces(f"n{self._bodies}".encode(), [1, 1], grouped=True)
        in_unit = {"syncpoint": True}
        given: dict[str, Any] = {"unit": in_unit, "prepared": in_unit, "delayed": {"delay": 5.0}}
        holder = self.free(0)
        self.both(lambda side: side.connections[holder].put("A", first, priority=9, syncpoint=False))
        put = self.both(lambda side: side.connections[holder].put("A", second, priority=9, **given.get(kind, {})))
        match = {"group_id": first.group_id, "sequence_number": 2}
        if kind == "prepared":
            self.both(lambda side: side.connections[holder].prepare("u2"))
        elif kind == "locked":
            self.both(lambda side: side.connections[holder].browse_and_lock("A", side.match(match)))
        elif kind == "got" and isinstance(put, Returned):
            self.both(lambda side: side.connections[holder].get("A", syncpoint=True, match=side.match(match)))
        for _ in range(2):
            self._on(handle, logical=True, read_order="strict")

    # --- readers

    @rule(
        choice=choices.handles,
        other=choices.handles,
        members=st.integers(1, 3),
        then=st.sampled_from(["back_out", "back_out", "commit", "nothing"]),
    )
    def enter(self, choice: int, other: int, members: int, then: str) -> None:
        """A reader gets some members of a group in a unit of work, which ends; another reader gets strictly (B-45)."""
        handle = self.handle(choice)
        if handle is None:
            return
        number = self.owners[handle]
        for piece in self._pieces(f"e{self._bodies}".encode(), [1, 1, 1], grouped=True):
            self.both(lambda side, piece=piece: side.operator.put("A", piece, priority=9))  # type: ignore[misc]
        for _ in range(members):
            self._on(handle, logical=True, syncpoint=True)
        if then != "nothing":
            self.both(lambda side: getattr(side.connections[number], then)())
        self.on_handle(other, lambda _, queue: queue.get(logical=True, read_order="strict"))

    @rule(number=st.integers(0, 1), order=st.booleans())
    def cross(self, number: int, order: bool) -> None:
        """Two strict readers each hold a message before the other's next one, and both wait (B-31)."""
        if self.left.calls:
            return
        readers = [number, number + 1]
        for correlation_id in (b"x1", b"x2", b"x3"):
            self.both(lambda side, own=correlation_id: side.operator.put("A", b"", correlation_id=own, priority=9))  # type: ignore[misc]
        for reader, own in zip(readers, (b"x1", b"x2"), strict=True):
            self._get_by_name(reader, {"match": {"correlation_id": own}, "syncpoint": True, "read_order": "strict"})
        for reader in readers if order else reversed(readers):
            self._wait_by_name(reader, {"wait": 100.0, "syncpoint": True, "read_order": "strict"})

    def _get_by_name(self, number: int, options: Mapping[str, Any]) -> None:
        self.both(lambda side: side.connections[number].get("A", **side.options(options)))

    def _wait_by_name(self, number: int, options: Mapping[str, Any]) -> None:
        self.begin_wait(number, "A", lambda side: side.connections[number].get("A", **side.options(options)))

    @rule(seconds=st.sampled_from([0.0, 5.0]), how=st.sampled_from([{"mark_co_op": True}, {"mark_handle": True}]))
    def browse_together(self, seconds: float, how: Mapping[str, Any]) -> None:
        """Two cooperating browsers; the second asks by its token for the message that the first has marked."""
        numbers = [self.free(0), self.free(1)]

        def step(side: Side) -> Any:
            one, other = (side.connections[number].open("A", browse=True, co_op=True) for number in numbers)
            try:
                return self._browsed(side, one, other, seconds, how)
            finally:
                one.close()
                other.close()

        self.both(step)

    def _browsed(self, side: Side, one: Queue, other: Queue, seconds: float, how: Mapping[str, Any]) -> Any:
        side.operator.put("A", b"", priority=9)
        marked = one.browse_first(unmarked=True, **how, read_order="relaxed")
        side.advance(seconds)
        again = listing(iter(lambda: one.browse_first(unmarked=True, read_order="relaxed"), None), 1)
        named = other.browse_first(unmarked=True, match=side.match({"priority": 9}), read_order="relaxed")
        token = Match(token=marked.token)
        return marked, again, named, other.browse_first(unmarked=True, match=token, read_order="relaxed")
