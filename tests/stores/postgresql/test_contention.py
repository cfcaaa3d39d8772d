"""Many processes on a few queues, with units of work that cross them: sums balance, and each reader's order holds."""

from __future__ import annotations

import multiprocessing
import os
import random
from collections import defaultdict
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from typing import Any

from tests.tiers import nightly

import inorder
from inorder import Match, NoMessageAvailable, OrderPending, QueueManager
from inorder.errors import OrderDeadlock, OrderSelfBlocked, QueueFull

PROCESSES = 16
QUEUES = ("Q1", "Q2", "Q3", "Q4")
CHANGING = "Q4"  # it keeps no order, and sometimes it does
TOKENS = 40
TOKEN = b"token".ljust(24)
ACTS = 3_000 if os.environ.get("INORDER_LONG") else 200
REFUSALS = (NoMessageAvailable, OrderPending, OrderSelfBlocked, OrderDeadlock, QueueFull)
LIMIT_SECONDS = 240.0


class Worker:
    """Moves tokens from queue to queue, and sends numbered messages of its own that it and others read in order."""

    def __init__(self, qm: QueueManager, name: str) -> None:
        self.qm, self.name, self.chance = qm, name, random.Random(name)
        self.sent = self.read = 0
        self.last: dict[str, int] = defaultdict(int)

    def move(self) -> None:
        """A unit of work that gets tokens and puts as many elsewhere; some are backed out."""
        order = self.chance.choice(("strict", "relaxed"))
        with self.qm.unit_of_work() as unit:
            for queue in self.chance.sample(QUEUES, self.chance.randint(1, 3)):
                how: Any = "relaxed" if queue == CHANGING else order
                token = self.qm.get(queue, read_order=how, match=Match(correlation_id=TOKEN))
                self.qm.put(self.chance.choice(QUEUES), token.body, correlation_id=TOKEN)
            if self.chance.random() < 0.3:
                unit.back_out()

    def send(self) -> None:
        """Numbered messages in one unit; a number that was backed out is used again."""
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
        """Whoever reads strictly sees each sender's numbers ascend."""
        message = self.qm.get("NUMBERED", read_order="strict", wait=self.chance.choice((0, 0, 0.01)))
        self.read += 1
        sender, number = message.body.decode().split()
        assert self.last[sender] < int(number), f"{self.name} read {sender} {number} late"
        self.last[sender] = int(number)


def work(url: str, name: str) -> tuple[int, int]:
    """How much a process has sent and read."""
    with inorder.connect(url, program=name) as qm:
        worker = Worker(qm, name)
        acts = [worker.move] * 4 + [worker.send, worker.send_one] + [worker.receive] * 3
        for _ in range(ACTS):
            with suppress(*REFUSALS):
                worker.chance.choice(acts)()
    return worker.sent, worker.read


@nightly
def test_nothing_is_lost_doubled_or_out_of_order_among_many(url: str) -> None:
    with inorder.connect(url, program="test") as qm:
        for queue in (*QUEUES, "NUMBERED"):
            qm.create_queue(queue, read_order="unordered" if queue == CHANGING else "relaxed")
        for token in range(TOKENS):
            qm.put(QUEUES[token % 4], str(token).encode(), correlation_id=TOKEN)
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
        tokens = sorted(int(message.body) for queue in QUEUES for message in qm.browse(queue))
        assert tokens == list(range(TOKENS))
        assert qm.inspect.units() == []
        assert list(qm.admin.check()) == []
