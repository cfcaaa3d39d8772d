"""The check of the memory store: each thing that may be wrong with a queue is planted, and found."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from inorder.stores.memory.queue import MemoryQueue, MemoryUnit
from inorder.stores.rows import HeldLock, Locker, Row

from inorder import QueueManager, connect
from inorder.rules.lifecycle import State
from inorder.rules.puts import Program
from inorder.stores.memory import MemoryStore


def queue_with_two(store: MemoryStore) -> tuple[QueueManager, MemoryQueue, Row]:
    qm = connect(store, program="test")
    qm.create_queue("Q")
    qm.put_many("Q", [b"1", b"2"])
    queue = store._handles.queues["Q"]
    return qm, queue, queue.all_rows()[0]


UNIT = MemoryUnit(Program(), 0.0, "lock", "9")


def swap(queue: MemoryQueue) -> None:
    queue._placed.reverse()


FAULTS: dict[str, tuple[Callable[[MemoryQueue, Row], object], str]] = {
    "got": (lambda queue, row: setattr(queue, "away", 1), "1 messages are noted as got in units of work, there are 0"),
    "arrived": (lambda queue, row: setattr(queue, "arrived", 1), "2 messages are there, 1 have arrived"),
    "places": (lambda queue, row: swap(queue), "the places are not in order"),
    "number": (lambda queue, row: setattr(queue, "counter", 1), "number 2 has been drawn, the counter says 1"),
    "gone": (lambda queue, row: setattr(row, "state", State.ABSENT), "it is gone, and is there"),
    "unplaced": (lambda queue, row: setattr(row, "placed", False), "it is in state 2 and has no place"),
    "held": (lambda queue, row: setattr(row, "unit", UNIT), "it is in state 2, and is held by a unit"),
    "not held": (lambda queue, row: setattr(row, "state", State.GET_UNCONFIRMED), "in state 4, and is not held by a"),
    "locked": (lambda queue, row: setattr(row, "locked_by", Locker(1, 1, "", 0.0)), "it is in state 2, and is locked"),
    "not locked": (lambda queue, row: setattr(row, "state", State.LOCKED), "it is in state 3, and is not locked"),
    "lock id": (lambda queue, row: setattr(row, "lock", HeldLock(UNIT, 9, 0)), "lock id 9 locks it, and is not known"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_found(fault: str) -> None:
    plant, told = FAULTS[fault]
    qm, queue, row = queue_with_two(MemoryStore())
    assert qm.check() == []
    plant(queue, row)
    assert any(told in problem and problem.startswith("queue Q") for problem in qm.check())


def test_a_message_is_locked_by_one() -> None:
    qm, _, row = queue_with_two(MemoryStore())
    row.lock, row.locked_by = HeldLock(UNIT, 9, 0), Locker(1, 1, "", 0.0)
    assert any("it is locked twice" in problem for problem in qm.check())
