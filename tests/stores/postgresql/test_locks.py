"""Calls never wait for each other in a circle: they lock queues in order, whichever they need first.

Before a call commits, it learns from the server whether each queue that it uses has changed.
"""

from __future__ import annotations

import multiprocessing
import os
import random
from collections import defaultdict
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from typing import Any, cast

import psycopg
import pytest
from tests.helpers.support import LIMIT_SECONDS, Call, bodies, until
from tests.stores.postgresql.conftest import Connect
from tests.stores.postgresql.server import Server, waits_for_a_lock
from tests.tiers import nightly

import inorder
from inorder import Match, NoMessageAvailable, OrderPending, QueueManager
from inorder.errors import OrderDeadlock, OrderSelfBlocked, QueueFull, QueueManagerStopping
from inorder.stores.engine import settling, store
from inorder.stores.engine.operation import Operation
from inorder.stores.engine.process import OpenHandle, OpenStore
from inorder.stores.engine.queue import LocalQueue

QUEUES = "SELECT queue FROM inorder.tally ORDER BY queue"
LOCK = "SELECT queue FROM inorder.tally WHERE queue = %s FOR NO KEY UPDATE"


@pytest.fixture(scope="module")
def server(postgresql: str) -> Iterator[Server]:
    with Server() as one:
        yield one


@pytest.fixture
def other(server: Server) -> Iterator[QueueManager]:
    with inorder.connect(server.url(), program="other") as qm:
        qm.create_queue("A")
        qm.create_queue("B")
        yield qm
        for queue in ("A", "B"):
            qm.close_queue(queue)
            qm.delete_queue(queue, purge=True)


def crosses(server: Server, call: Callable[[], object]) -> None:
    """The call needs B, then A, while another session has locked A and then needs B."""
    with psycopg.connect(server.url()) as session:
        first, second = (queue for (queue,) in session.execute(QUEUES))
        session.execute(LOCK, [first])
        waiting = Call(call)
        until(lambda: waits_for_a_lock(server.url(), "other"), "it waits for A")
        session.execute(LOCK, [second])
        session.commit()
    waiting.result()
    assert "deadlock" not in server.log()


def test_the_end_of_a_connection_locks_queues_in_order(server: Server, other: QueueManager) -> None:
    ending = other.connect(program="other")
    ending.open("A", input="shared")
    ending.put("B", b"never seen", syncpoint=True)
    crosses(server, ending.internals.abandon)
    assert other.depth("B") == 0
    assert list(other.admin.check()) == []


def test_a_change_of_the_queue_manager_locks_all_queues_in_order(server: Server, other: QueueManager) -> None:
    other.put("B", b"stays")
    crosses(server, lambda: other.admin.alter_manager(description="changed"))
    assert (other.admin.manager_attributes().description, other.depth("B")) == ("changed", 1)
    assert list(other.admin.check()) == []


def test_a_put_checks_whether_any_queue_that_its_call_used_has_changed(
    connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, other = connect("one"), connect("other")
    for queue in ("A", "B"):
        one.create_queue(queue)
    for queue in ("A", "B") * 3:
        one.put(queue, b"x")
    other.alter_queue("A", max_depth=7)
    (number,) = (handle.queue for handle in cast("OpenStore", one._store).handles.values() if handle.name == "A")
    came, seen = settling.tidied, list[int]()

    def come(verb: Operation, handle: OpenHandle) -> LocalQueue:
        seen.append(verb.queue(number).attributes.max_depth)
        return came(verb, handle)

    monkeypatch.setattr(store, "tidied", come)
    one.put("B", b"y")
    assert seen[-1] == 7, "A is not as it was taken to be, so the call runs again"
    assert bodies(other, "B") == [b"x", b"x", b"x", b"y"]


@pytest.mark.parametrize("values", [{}, {"expiry": 3600.0}], ids=["a plain queue", "a queue with messages that expire"])
def test_a_queue_manager_that_another_program_has_stopped_refuses_puts_and_gets(
    qm: QueueManager, connect: Connect, values: dict[str, float]
) -> None:
    queue = qm.open("Q", input="shared", output=True)
    for _ in range(2):
        queue.put(b"", **values)  # type: ignore[arg-type]
    connect("operator").admin.stop()
    with pytest.raises(QueueManagerStopping):
        queue.put(b"")
    with pytest.raises(QueueManagerStopping):
        queue.get()


PROCESSES = 16
FEW = ("Q1", "Q2", "Q3", "Q4")
CHANGING = "Q4"  # it usually keeps no order
TOKENS = 40
TOKEN = b"token".ljust(24)
ACTS = 3_000 if os.environ.get("INORDER_LONG") else 200
REFUSALS = (NoMessageAvailable, OrderPending, OrderSelfBlocked, OrderDeadlock, QueueFull)


class Worker:
    """Moves tokens between queues, and sends numbered messages that it and others read in order."""

    def __init__(self, qm: QueueManager, name: str) -> None:
        self.qm, self.name, self.chance = qm, name, random.Random(name)
        self.sent = self.read = 0
        self.last: dict[str, int] = defaultdict(int)

    def move(self) -> None:
        """Gets tokens and puts as many elsewhere, in a unit of work; some units are backed out."""
        order = self.chance.choice(("strict", "relaxed"))
        with self.qm.unit_of_work() as unit:
            for queue in self.chance.sample(FEW, self.chance.randint(1, 3)):
                how: Any = "relaxed" if queue == CHANGING else order
                token = self.qm.get(queue, read_order=how, match=Match(correlation_id=TOKEN))
                self.qm.put(self.chance.choice(FEW), token.body, correlation_id=TOKEN)
            if self.chance.random() < 0.3:
                unit.back_out()

    def send(self) -> None:
        """Sends numbered messages in one unit; the numbers of a unit that is backed out are used again."""
        before = self.sent
        with self.qm.unit_of_work() as unit:
            for _ in range(self.chance.randint(1, 3)):
                self.send_one()
            if self.chance.random() < 0.3:
                unit.back_out()
                self.sent = before

    def send_one(self) -> None:
        self.qm.put("NUMBERED", f"{self.name} {self.sent + 1}".encode())
        self.sent += 1

    def receive(self) -> None:
        message = self.qm.get("NUMBERED", read_order="strict", wait=self.chance.choice((0, 0, 0.01)))
        self.read += 1
        sender, number = message.body.decode().split()
        assert self.last[sender] < int(number), f"{self.name} read {sender} {number} late"
        self.last[sender] = int(number)


def work(url: str, name: str) -> tuple[int, int]:
    """Works as a process of its own. Returns how many messages it has sent and read."""
    with inorder.connect(url, program=name) as qm:
        worker = Worker(qm, name)
        acts = [worker.move] * 4 + [worker.send, worker.send_one] + [worker.receive] * 3
        for _ in range(ACTS):
            with suppress(*REFUSALS):
                worker.chance.choice(acts)()
    return worker.sent, worker.read


@nightly
def test_no_message_is_lost_duplicated_or_out_of_order_among_many_processes(url: str) -> None:
    with inorder.connect(url, program="test") as qm:
        for queue in (*FEW, "NUMBERED"):
            qm.create_queue(queue, read_order="unordered" if queue == CHANGING else "relaxed")
        for token in range(TOKENS):
            qm.put(FEW[token % 4], str(token).encode(), correlation_id=TOKEN)
        with ProcessPoolExecutor(PROCESSES, multiprocessing.get_context("fork")) as pool:
            workers = [pool.submit(work, url, f"w{nth}") for nth in range(PROCESSES)]
            while not all(worker.done() for worker in workers):
                for order in ("relaxed", "unordered"):
                    qm.alter_queue(CHANGING, read_order=order)
            counts = [worker.result(LIMIT_SECONDS) for worker in workers]
        sent, read = map(sum, zip(*counts, strict=True))
        assert min(sent, read) > 0
        left = [message.body.decode().split() for message in qm.browse("NUMBERED")]
        assert len(left) == sent - read == qm.depth("NUMBERED")
        for name in {name for name, _ in left}:
            numbers = [int(number) for sender, number in left if sender == name]
            assert numbers == sorted(numbers)
        tokens = sorted(int(message.body) for queue in FEW for message in qm.browse(queue))
        assert tokens == list(range(TOKENS))
        assert qm.inspect.units() == []
        assert list(qm.admin.check()) == []
