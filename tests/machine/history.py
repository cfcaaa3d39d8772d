"""A history on two stores: each step is done on the left one, then on the right one, and the answers must agree."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from hypothesis.stateful import RuleBasedStateMachine
from tests.machine.pairs import GENERATED_NAME, Differs, Failed, Outcome, Pairs, Returned
from tests.machine.side import OPERATOR, SENTINEL, Action, MakeStore, Side, listing, opened

from inorder import Message, PutResult, UniqueId
from inorder.client.confirming import Locked
from inorder.client.queue import Queue
from inorder.stores.seam.views import ListingOrder
from inorder.testing.stores import STORES

ORDERS: tuple[ListingOrder, ...] = ("physical", "logical")
LOOKS: tuple[Mapping[str, Any], ...] = (
    {"read_order": "relaxed"},
    {"read_order": "relaxed", "logical": True},
    {"read_order": "strict"},
    {"read_order": "strict", "logical": True, "all_messages": True},
    {"read_order": "notify"},
)


class History(RuleBasedStateMachine):
    """A history: the two sides, the owners of handles, and the ids that were seen.

    Attributes:
        make: makes the left store, which is the specification, and the right one, which must agree with it.
        skips_numbers: the right store numbers places with gaps on queues that keep no order. As numbers are compared,
            all queues keep their order here; `test_scenarios` compares the others.
        owners: the connection of each open handle.
        waits: of each connection: the queue of its last call that may wait.
        seen: unique ids of the left store by the role in which they were seen, the latest last.
    """

    make: ClassVar[tuple[MakeStore, MakeStore]] = (STORES["memory"], STORES["memory"])
    skips_numbers: ClassVar[bool] = False

    def __init__(self) -> None:
        super().__init__()
        self.pairs = Pairs()
        self.left = Side(self.make[0], lambda kind, left: left)
        self.right = Side(self.make[1], self.pairs.right_of)
        self.owners: dict[int, int] = {}
        self.seen: dict[str, list[Any]] = {}
        self.waits: dict[int, str] = {}
        self._bodies = self._handles = 0

    def teardown(self) -> None:
        try:
            self.look_around()
        finally:
            self.left.close()
            self.right.close()

    # --- one step on both sides

    def both(self, action: Action) -> Outcome:
        """Does the action on both sides, and compares the outcomes. Raises: Differs."""
        left = self.left.attempt(action)
        right = self.right.attempt(action)
        self._agree(left, right, "answer")
        self.compare_waits()
        return left

    def _agree(self, left: Outcome, right: Outcome, where: str) -> None:
        if isinstance(left, Failed) != isinstance(right, Failed):
            raise Differs(f"{where}: {left} or {right}")
        self.pairs.check(left, right, where)
        self._remember(left.value if isinstance(left, Returned) else None)

    def compare_waits(self) -> None:
        """Checks that the same calls wait, and that the others ended alike."""
        left, right = self.left.ended(), self.right.ended()
        if left.keys() != right.keys():
            raise Differs(f"waits that ended: {left} or {right}")
        for number, outcome in left.items():
            self._agree(outcome, right[number], f"wait of {number}")

    def _remember(self, value: Any) -> None:
        if isinstance(value, Locked):
            self._recall("lock", value.lock_id)
            for message in value.messages:
                self._recall("locked", message.uid)
        elif isinstance(value, list | tuple) and not isinstance(value, PutResult):
            for one in value:
                self._remember(one)
        elif isinstance(value, Message | PutResult):
            self._recall("any", value.uid)
            self._recall("id", value.group_id)
            if isinstance(value, Message):
                self._recall("token", value.token)

    def _recall(self, role: str, value: Any) -> None:
        values = [one for one in self.seen.get(role, []) if one != value]
        self.seen[role] = [*values[-20:], value]

    # --- values for steps

    def body(self, length: int) -> bytes:
        """A body that differs from all others, unless it is shorter than four bytes."""
        self._bodies += 1
        return f"{self._bodies:04}".encode().ljust(length, b".")[:length]

    def uid(self, role: str, back: int) -> UniqueId:
        """A unique id seen in this role, this far before the latest; an unknown one if none was seen."""
        known = self.seen.get(role) or self.seen.get("any") or [UniqueId("NOBODY", 0)]
        return known[-1 - back % len(known)]  # type: ignore[no-any-return]

    def lock_id(self, back: int = 0) -> int:
        known = self.seen.get("lock") or [999]
        return known[-1 - back % len(known)]  # type: ignore[no-any-return]

    def resolved(self, options: Mapping[str, Any]) -> dict[str, Any]:
        """The options, with references replaced by the left store's ids."""
        chosen = dict(options)
        if chosen.get("lock_id") == "last":
            chosen["lock_id"] = self.lock_id()
        if "match" in chosen:
            chosen["match"] = {name: self._match_value(name, value) for name, value in chosen["match"].items()}
        return chosen

    def _match_value(self, name: str, value: Any) -> Any:
        if value == "last":
            known = self.seen.get("id") or [b"g1"]
            return known[-1]
        if name == "token":
            known = self.seen.get("token") or [bytes(16)]
            return known[-1 - value % len(known)]
        if name == "uid":
            return self.uid("locked" if value == 2 else "any", value)
        return value

    def free(self, number: int) -> int:
        """This connection if no call of it waits, else the first such one; the operator's is last."""
        return next(one for one in (number, 0, 1, 2, OPERATOR) if one not in self.left.calls)

    def handle(self, choice: int) -> int | None:
        """An open handle of a free connection, if necessary a new one of queue A; None if that is refused."""
        usable = [one for one, owner in self.owners.items() if owner not in self.left.calls]
        if not usable:
            self.open(self.free(0), "A", {})
            usable = [one for one, owner in self.owners.items() if owner not in self.left.calls]
        return usable[choice % len(usable)] if usable else None

    def open(self, number: int, name: str, options: Mapping[str, Any], dynamic_name: str = "*") -> int | None:
        """Opens a queue; returns the number of the handle, or None if the open is refused."""
        self._handles += 1
        handle = self._handles

        def step(side: Side) -> Any:
            own = side.translate("queue", name)
            side.handles[handle] = side.connections[number].open(own, dynamic_name=dynamic_name, **options)
            return side.handles[handle].name

        if not isinstance(opened := self.both(step), Returned):
            return None
        self.owners[handle] = number
        if GENERATED_NAME.match(opened.value):
            self._recall("queue", opened.value)
        return handle

    def close_handle(self, handle: int, *, delete: bool, purge: bool) -> None:
        """Closes a handle, which stays open if the close is refused."""
        outcome = self.both(lambda side: side.handles[handle].close(delete=delete, purge=purge))
        if isinstance(outcome, Returned):
            del self.owners[handle]

    def on_handle(self, choice: int, action: Callable[[Side, Queue], Any]) -> Outcome | None:
        """Makes a call on one of the open handles, if there is one."""
        handle = self.handle(choice)
        return None if handle is None else self.both(lambda side: action(side, side.handles[handle]))

    # --- waits and ends

    def begin_wait(self, number: int, name: str, action: Action) -> None:
        """Begins a call on a queue that may wait; a later step may end it."""
        self.waits[number] = name
        self.left.begin(number, action)
        self.right.begin(number, action)
        self.compare_waits()

    def replace_connection(self, number: int) -> None:
        """Ends a connection as the death of its program would, and connects again."""
        self.both(lambda side: side.replace(number))
        self.owners = {handle: owner for handle, owner in self.owners.items() if owner != number}
        self.open(number, "A", {})

    def restart_store(self, *, told: bool = True) -> None:
        """Restarts the store, after comparing what hooks were told, unless the store has been stopped."""
        if told:
            self.compare_told()
        self.both(lambda side: side.restart())
        self.owners.clear()
        for number in (0, 1, 2):
            self.open(number, "A", {})

    # --- looking around

    def look_around(self) -> None:
        """Compares everything that an operator can see, and what hooks were told."""
        self.compare_told()
        self.both(lambda side: side.operator.queues())
        self.both(lambda side: side.operator.admin.manager_attributes())
        self.both(lambda side: side.operator.inspect.units())
        self.both(lambda side: side.operator.inspect.locks())
        self.both(lambda side: side.operator.inspect.waits())
        self.both(lambda side: opened(side.operator))
        for side in (self.left, self.right):
            assert not (problems := side.operator.admin.check()), problems
        for queue in self.left.operator.queues():
            if queue.type == "local" and queue.name != SENTINEL:
                self._look_at(queue.name)
        self.both(lambda side: side.overview())

    def compare_told(self) -> None:
        self.pairs.check(self.left.hear(), self.right.hear(), "told")

    def _look_at(self, name: str) -> None:
        def own(side: Side) -> str:
            return side.translate("queue", name)  # type: ignore[no-any-return]

        self.both(lambda side: side.operator.inspect.status(own(side)))
        self.both(lambda side: side.operator.inspect.order_view(own(side)))
        for order in ORDERS:
            self.both(lambda side, order=order: list(side.operator.inspect.look(own(side), order=order)))  # type: ignore[misc]
        for options in LOOKS:
            self.both(lambda side, options=options: listing(side.operator.browse(own(side), **options)))  # type: ignore[misc]
