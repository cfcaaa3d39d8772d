"""How much does a worker add to a message, compared with a loop that gets, calls and commits by hand?"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import inorder
from benchmarks.harness import Bar, Contestant, Figures, Question, Ready
from benchmarks.systems import BODY
from benchmarks.systems.ours import QUEUE, open_queue, settings_of
from inorder.work import Tasks

WORKER = "a worker of one thread"
ADDED, BY_HAND, IN_A_WORKER = "added us", "by hand us", "worker us"
MESSAGES = 100  # in each turn


def by_hand(qm: inorder.QueueManager) -> float:
    """Returns the seconds for a turn of messages: each is got, given to a function, and committed."""
    called = 0

    def function(message: inorder.Got) -> None:
        nonlocal called
        called += 1

    qm.put_many(QUEUE, [BODY] * MESSAGES)
    began = time.perf_counter()
    for _ in range(MESSAGES):
        with qm.unit_of_work():
            function(qm.get(QUEUE, wait=60))
    return time.perf_counter() - began


def in_a_worker(qm: inorder.QueueManager) -> float:
    """Returns the seconds for a turn in a worker of one thread, from its first call to its last."""
    times = list[float]()
    done = threading.Event()
    tasks = Tasks()

    @tasks.task(QUEUE)
    def function(message: inorder.Got) -> None:
        times.append(time.perf_counter())
        if len(times) > MESSAGES:
            done.set()

    qm.put_many(QUEUE, [BODY] * (MESSAGES + 1))
    with qm.worker(tasks, log=lambda event: None):
        done.wait()
    return times[-1] - times[0]


def measure(qm: inorder.QueueManager, seconds: float) -> Figures:
    """Runs both in short turns, one after the other, and uses the fastest of each, without the machine's other work."""
    hand, worker, ends = list[float](), list[float](), time.perf_counter() + 4 * seconds
    while not hand or time.perf_counter() < ends:
        hand.append(by_hand(qm))
        worker.append(in_a_worker(qm))
    quickest, quickest_worker = (1e6 * min(one) / MESSAGES for one in (hand, worker))
    return {ADDED: quickest_worker - quickest, BY_HAND: quickest, IN_A_WORKER: quickest_worker}


@contextmanager
def opened(folder: Path) -> Iterator[Ready]:
    """Opens one queue."""
    with open_queue(folder) as qm:
        yield Ready(measure=partial(measure, qm), settings=settings_of(qm))


QUESTION = Question(
    name="work",
    title="what a worker adds to a message, beside get, call, commit",
    unit="us a message",
    rounds_max=3,
    contestants=lambda site: [Contestant(name=WORKER, role="ours", open=opened, place="memory")],
    bars=[Bar(figure=ADDED, of=WORKER, first=150, goal=50)],
)
