"""The check of the memory store finds each fault that is planted in a queue."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from inorder import QueueManager, connect
from inorder.rules.lifecycle import State
from inorder.stores.memory import MemoryStore
from inorder.stores.memory.backend import MemoryBackend
from inorder.stores.seam.queued import NO_PLACE, QueuedMessage

NOBODY = 99  # no unit has this number


class Two:
    """A queue with two messages, and ways to corrupt it."""

    def __init__(self) -> None:
        store = MemoryStore()
        self.qm: QueueManager = connect(store, program="test")
        self.qm.create_queue("Q")
        self.qm.put_many("Q", [b"1", b"2"])
        assert isinstance(store.backend, MemoryBackend)
        self.backend = store.backend

    def rows(self) -> list[QueuedMessage]:
        rows = self.backend._messages.values()
        return sorted(rows, key=lambda row: row.place)

    def count(self, **counters: int) -> None:
        (queue,) = {row.queue for row in self.rows()}
        self.backend._counters[queue] = self.backend._counters[queue]._replace(**counters)

    def change(self, **values: Any) -> None:
        row = self.rows()[0]
        self.backend._messages[row.number] = row._replace(**values)


FAULTS: dict[str, tuple[Callable[[Two], object], str]] = {
    "depth": (lambda two: two.count(depth=1), "its depth is 1, but it has 2 messages"),
    "got": (lambda two: two.change(away=True), "its depth is 2, but it has 1 messages"),
    "arrived": (lambda two: two.count(arrived=1), "it has 2 messages, but only 1 have arrived"),
    "places": (
        lambda two: two.change(place=two.rows()[1].place),
        "the places are not in order, or two messages have the same place",
    ),
    "number": (lambda two: two.count(counter=1), "number 2 has been drawn, but the counter is 1"),
    "gone": (lambda two: two.change(state=State.ABSENT), "it is in the state of a removed message"),
    "unplaced": (lambda two: two.change(place=NO_PLACE), "it is in state 2 and has no place"),
    "held": (lambda two: two.change(unit=NOBODY), "it is in state 2, and is held by a unit"),
    "holder": (lambda two: two.change(unit=NOBODY), "unit 99 holds it, but does not exist"),
    "not held": (lambda two: two.change(state=State.GET_UNCONFIRMED), "in state 4, and is not held by a"),
    "locked": (lambda two: two.change(locked_handle=1), "it is in state 2, and is locked"),
    "not locked": (lambda two: two.change(state=State.LOCKED), "it is in state 3, and is not locked"),
    "lock id": (lambda two: two.change(state=State.LOCKED, lock=NOBODY), "unit 99 holds it, but does not exist"),
    "locked twice": (lambda two: two.change(lock=NOBODY, locked_handle=1), "it is locked twice"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_found(fault: str) -> None:
    plant, told = FAULTS[fault]
    two = Two()
    assert two.qm.admin.check() == []
    plant(two)
    assert any(told in problem and problem.startswith("queue Q") for problem in two.qm.admin.check())
