"""How many empty tasks do two threads call in a second, compared with functions of messages, and with Celery on Redis?

Each stock of tasks waits before the worker starts, and the time runs from the first call to the last. Celery has its
defaults, except that it keeps no results, and acknowledges a task after its call: otherwise a killed worker would lose
it.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import inorder
from benchmarks.harness import RATE, Bar, Cannot, Contestant, Figures, Question, Ready, Site
from benchmarks.systems.ours import QUEUE, open_queue, settings_of
from inorder.work import Tasks

TASK, PLAIN, CELERY = "tasks with arguments", "functions of messages", "Celery on Redis"
REDIS = "Redis Streams"  # the server of Celery
THREADS, STOCK = 2, 500


class Calls:
    """Counts calls, and measures the time from the first to the last."""

    def __init__(self) -> None:
        self._lock, self._over = threading.Lock(), threading.Event()
        self._count, self._first, self._last = 0, 0.0, 0.0

    def __call__(self, *_: object) -> None:
        with self._lock:
            self._last = time.perf_counter()
            self._first = self._first or self._last
            self._count += 1
            if self._count == STOCK:
                self._over.set()

    def seconds(self) -> float:
        """Waits for the last call. Returns the seconds."""
        self._over.wait()
        return self._last - self._first


def rate(turn: Callable[[Calls], float], seconds: float) -> Figures:
    """Returns the calls in a second, for as many stocks as the time allows."""
    took, stocks = 0.0, 0
    while took < seconds:
        took += turn(Calls())
        stocks += 1
    return {RATE: stocks * (STOCK - 1) / took}


def with_ours(qm: inorder.QueueManager, calls: Calls, *, has_arguments: bool) -> float:
    """Runs one stock with a worker of inorder."""
    tasks = Tasks()
    if has_arguments:

        @tasks.task(QUEUE, name="empty")
        def empty(number: int) -> None:
            calls(number)

        qm.put_many(QUEUE, [empty.message(number) for number in range(STOCK)])
    else:

        @tasks.task(QUEUE, name="plain")
        def plain(message: inorder.Got) -> None:
            calls(message)

        qm.put_many(QUEUE, [b"%d" % number for number in range(STOCK)])
    with qm.worker(tasks, threads=THREADS, log=lambda event: None):
        return calls.seconds()


@contextmanager
def ours(folder: Path, *, has_arguments: bool) -> Iterator[Ready]:
    """Opens one queue."""
    with open_queue(folder) as qm:
        turn = partial(with_ours, qm, has_arguments=has_arguments)
        yield Ready(measure=partial(rate, turn), settings=settings_of(qm))


@contextmanager
def celery(folder: Path, *, port: int) -> Iterator[Ready]:
    """Runs a worker of Celery in this process, as those of inorder are."""
    try:
        library, testing = import_module("celery"), import_module("celery.contrib.testing.worker")
    except ImportError as error:
        raise Cannot(f"{error}: pip install -r benchmarks/peers.txt") from error
    app = library.Celery("bench", broker=f"redis://127.0.0.1:{port}/1")
    app.conf.update(task_ignore_result=True, task_acks_late=True, worker_hijack_root_logger=False)
    now: list[Calls] = []

    @app.task(name="empty")  # type: ignore[untyped-decorator]
    def empty(number: int) -> None:
        now[0](number)

    def turn(calls: Calls) -> float:
        now[:] = [calls]
        for number in range(STOCK):
            empty.delay(number)
        working: AbstractContextManager[Any] = testing.start_worker(
            app, pool="threads", concurrency=THREADS, perform_ping_check=False, loglevel="error"
        )
        with working:
            return calls.seconds()

    yield Ready(measure=partial(rate, turn), settings=f"Celery {library.__version__}, threads, acks_late, no results")


def contestants(site: Site) -> list[Contestant]:
    """Returns our two contestants, and Celery if its server runs."""
    found = [
        Contestant(name=TASK, role="ours", open=partial(ours, has_arguments=True)),
        Contestant(name=PLAIN, role="ours", open=partial(ours, has_arguments=False)),
    ]
    if REDIS in site.ports:
        found.append(Contestant(name=CELERY, role="peer", open=partial(celery, port=site.ports[REDIS])))
    return found


QUESTION = Question(
    name="empty_tasks",
    title="empty tasks, two threads",
    unit="tasks/s",
    contestants=contestants,
    bars=[
        Bar(figure=RATE, of=TASK, against=PLAIN, first=1 / 1.2, goal=1 / 1.1),
        Bar(figure=RATE, of=TASK, against=CELERY, first=1.5, goal=3),
    ],
    rounds_max=3,
)
