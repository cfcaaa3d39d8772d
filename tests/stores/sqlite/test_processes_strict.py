"""Strict readers of several processes that wait for each other: circles are found at once, and only those."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from tests.stores.sqlite.programs import Program, programs
from tests.tiers import gate

import inorder
from inorder import QueueManager

pytestmark = gate


@pytest.fixture
def ring(qm: QueueManager, path: Path) -> Iterator[list[Program]]:
    """Three processes; each has got the first message of a queue of its own: A, B or C."""
    with programs(path, 3) as each:
        for one, queue in zip(each, "ABC", strict=True):
            qm.create_queue(queue)
            qm.put_many(queue, [b"%s1" % queue.encode(), b"%s2" % queue.encode()])
            one.run(f"watch.DEAD_CHECK_SECONDS = 0.05; apart(lambda: qm.get({queue!r}, syncpoint=True))")
        yield each


def wait_on(one: Program, queue: str) -> None:
    """A strict get that comes to wait."""
    one.run(f"wait = Waiting(qm, lambda: qm.get({queue!r}, syncpoint=True, read_order='strict', wait=60))")


def is_refused(one: Program, queue: str) -> None:
    """A strict get that closes a circle."""
    said = one.ask(f"error_of(lambda: qm.get({queue!r}, syncpoint=True, read_order='strict', wait=60))")
    assert said == "OrderDeadlock"


def test_a_circle_of_two_is_refused_and_its_victim_has_lost_nothing(ring: Sequence[Program], path: Path) -> None:
    one, other, third = ring
    wait_on(one, "B")
    is_refused(other, "A")
    assert other.ask("[(unit.gets, unit.program.name) for unit in qm.inspect.units()]") == [
        (1, "child 0"),
        (1, "child 1"),
        (1, "child 2"),
    ]
    third.run("qm.back_out()")
    other.run("qm.commit()")
    assert one.ask("wait.end()") == b"B2"
    with inorder.connect(path) as manager:
        assert [manager.depth(queue) for queue in "ABC"] == [1, 0, 2]


def test_a_killed_side_makes_no_circle(ring: Sequence[Program]) -> None:
    one, other, _ = ring
    wait_on(one, "B")
    one.kill()
    assert other.ask("qm.get('A', syncpoint=True, read_order='strict', wait=60).body") == b"A1"


def test_a_killed_holder_lets_the_waiter_go_on(ring: Sequence[Program]) -> None:
    one, other, _ = ring
    wait_on(one, "B")
    other.kill()
    assert one.ask("wait.end()") == b"B1"
