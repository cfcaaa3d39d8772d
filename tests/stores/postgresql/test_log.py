"""The server's own log, which somebody watches: it has no errors while nothing is wrong."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
from tests.stores.postgresql.server import Server
from tests.tiers import gate

import inorder
from inorder import QueueManager
from inorder.errors import QueueCondition
from inorder.model.attributes import QueueReadOrder
from inorder.stores.postgresql import pipeline

PROGRAMS = 6
QUEUES: dict[str, QueueReadOrder] = {"ORDERED": "relaxed", "PLAIN": "unordered"}
TURNS = 30


def errors_in(server: Server) -> list[str]:
    """The lines of its log that are errors or warnings."""
    lines = Path(server.folder, "server.log").read_text().splitlines()
    return [line for line in lines if any(f"{word}:" in line for word in ("ERROR", "FATAL", "PANIC", "WARNING"))]


def work(qm: QueueManager, number: int) -> None:
    """Makes the usual calls of a program; those of several programs meet each other."""
    for turn in range(TURNS):
        for queue in ("ORDERED", "PLAIN"):
            qm.put(queue, b"x", deduplicate=f"{number % 2}-{turn}")
            get(qm, queue)
            get(qm, queue, read_order="relaxed", wait=0.001)
        with qm.unit_of_work() as unit:
            qm.put("ORDERED", b"x")
            qm.put("PLAIN", b"x")
            if turn % 3 == 0:
                unit.back_out()
        locked = qm.browse_and_lock("ORDERED", most=1)
        for one in locked.messages:
            qm.unlock("ORDERED", one.uid, lock_id=locked.lock_id)
        own = f"OWN.{number}.{turn}"
        qm.create_queue(own)
        qm.put(own, b"x")
        qm.delete_queue(own, purge=True)


def get(qm: QueueManager, queue: str, **how: object) -> None:
    with suppress(QueueCondition):
        qm.get(queue, **how)  # type: ignore[arg-type]


@gate
def test_programs_at_work_leave_no_error_in_the_log(own_server: Server) -> None:
    failed: list[BaseException] = []

    def run(number: int) -> None:
        try:
            with inorder.connect(own_server.url(), program=f"program {number}") as qm:
                work(qm, number)
        except BaseException as error:  # noqa: BLE001 - the test says so
            failed.append(error)

    with inorder.connect(own_server.url()) as qm:
        qm.create_queue("ORDERED")
        qm.create_queue("PLAIN", read_order="unordered")
        threads = [threading.Thread(target=run, args=(number,)) for number in range(PROGRAMS)]
        for one in threads:
            one.start()
        for one in threads:
            one.join()
        assert qm.admin.check() == []
    assert failed == []
    assert errors_in(own_server) == []


@gate
def test_a_get_that_meets_another_program_leaves_no_error_in_the_log(own_server: Server) -> None:
    with inorder.connect(own_server.url()) as qm, inorder.connect(own_server.url(), program="other") as other:
        qm.create_queue("ORDERED", read_order="relaxed")
        qm.create_queue("PLAIN", read_order="unordered")
        for queue in ("ORDERED", "PLAIN"):
            for number in range(8):
                qm.put(queue, b"%d" % number)
        for number in range(2):
            assert qm.get("ORDERED").body == b"%d" % number
        assert other.get("ORDERED").body == b"2"
        assert qm.get("ORDERED").body == b"3"
        for number in range(2):
            assert qm.get("PLAIN").body == b"%d" % number
        other.alter_queue("PLAIN", max_depth=100)
        assert qm.get("PLAIN").body == b"2"
        for number in range(3, 5):
            assert qm.get_many("PLAIN", 1)[0].body == b"%d" % number
        other.alter_queue("PLAIN", max_depth=200)
        assert [one.body for one in qm.get_many("PLAIN", 2)] == [b"5", b"6"]
        assert qm.admin.check() == []
    assert errors_in(own_server) == []


def put_in_unit(qm: QueueManager, queue: str) -> None:
    with qm.unit_of_work():
        qm.put(queue, b"x")


def put_two_in_unit(qm: QueueManager, queue: str) -> None:
    with qm.unit_of_work():
        qm.put(queue, b"x")
        qm.put(queue, b"x")


def get_in_unit(qm: QueueManager, queue: str) -> None:
    with qm.unit_of_work():
        qm.get(queue)


ACTS: dict[str, tuple[Callable[[QueueManager, str], object], int]] = {
    "put": (lambda qm, queue: qm.put(queue, b"x"), 1),
    "put of many": (lambda qm, queue: qm.put_many(queue, [b"x"] * 3), 3),
    "put in a unit": (put_in_unit, 1),
    "puts in a unit": (put_two_in_unit, 2),
    "put on two queues": (lambda qm, _: [qm.put(queue, b"x") for queue in QUEUES], 1),
    "put with a key": (lambda qm, queue: qm.put(queue, b"x", deduplicate="key"), 0),
    "get of many": (lambda qm, queue: qm.get_many(queue, 3), -3),
    "get in a unit": (get_in_unit, -1),
    "get of a priority": (lambda qm, queue: qm.get(queue, selector="Root.MQMD.Priority >= 0"), -1),
}


@gate
def test_calls_that_find_their_queue_changed_leave_no_error_in_the_log(own_server: Server) -> None:
    depths = itertools.count()
    with inorder.connect(own_server.url()) as qm, inorder.connect(own_server.url(), program="other") as other:
        for queue, order in QUEUES.items():
            other.create_queue(queue, read_order=order)
            other.put_many(queue, [b"x"] * 100)
        for queue in QUEUES:
            for name, (act, more) in ACTS.items():
                for _ in range(2):
                    act(qm, queue)
                depth = other.inspect.status(queue).current_depth
                act(qm, queue)
                other.alter_queue(queue, max_depth=10_000 + next(depths))
                act(qm, queue)
                other.put(queue, b"x")
                act(qm, queue)
                assert other.inspect.status(queue).current_depth == depth + 3 * more + 1, name
        assert qm.admin.check() == []
    assert errors_in(own_server) == []


@gate
@pytest.mark.parametrize("reach", [0, 1])
def test_calls_that_find_their_queue_changed_happen_once_with_few_unanswered_statements(
    own_server: Server, monkeypatch: pytest.MonkeyPatch, reach: int
) -> None:
    """With so few, the call that sends a statement may itself read the answer that the queue has changed."""
    monkeypatch.setattr(pipeline, "ON_THEIR_WAY", reach)
    test_calls_that_find_their_queue_changed_leave_no_error_in_the_log(own_server)
