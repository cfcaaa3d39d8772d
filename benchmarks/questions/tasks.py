"""What do calls of tasks cost compared with calls of threads, and how soon is one of a thousand waiting tasks woken?"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import inorder
from benchmarks.harness import Bar, Contestant, Figures, Question, Ready
from benchmarks.questions.wake_up import P50, figures
from benchmarks.systems import BODY
from benchmarks.systems.ours import QUEUE, open_queue, settings_of
from inorder import aio

THREAD, TASK, TASKS = "calls of a thread", "calls of one task", "calls of 20 tasks"
SIDE_BY_SIDE = 20
PUT, GET, COMMIT = "put", "get", "get, commit"
OPERATIONS = (PUT, GET, COMMIT)
STOCK, WAITING, PUTS_MIN = 500, 1000, 20


# ---- calls


def calls_of(qm: inorder.QueueManager) -> dict[str, Callable[[], object]]:
    """Returns the calls of a thread."""

    def commit() -> None:
        with qm.unit_of_work():
            qm.get(QUEUE)

    return {PUT: lambda: qm.put(QUEUE, BODY), GET: lambda: qm.get(QUEUE), COMMIT: commit}


def awaited_of(qm: aio.QueueManager) -> dict[str, Callable[[], Awaitable[object]]]:
    """Returns the calls that a task awaits."""

    async def commit() -> None:
        async with qm.unit_of_work():
            await qm.get(QUEUE)

    return {PUT: lambda: qm.put(QUEUE, BODY), GET: lambda: qm.get(QUEUE), COMMIT: commit}


@contextmanager
def by_a_thread(folder: Path) -> Iterator[Ready]:
    """Measures a connection with one call after another."""
    with open_queue(folder) as qm:
        calls = calls_of(qm)

        def measure(seconds: float) -> Figures:
            found = {}
            for name in OPERATIONS:
                done, took = 0, 0.0
                while took < seconds / len(OPERATIONS):
                    _stock(qm)
                    began = time.perf_counter()
                    for _ in range(STOCK):
                        calls[name]()
                    took += time.perf_counter() - began
                    done += STOCK
                found[name] = done / took
            return found

        yield Ready(measure=measure, settings=settings_of(qm))


@contextmanager
def by_tasks(folder: Path, *, side_by_side: int) -> Iterator[Ready]:
    """Measures tasks that share a few connections, each awaiting one call after another."""
    with open_queue(folder) as qm:

        async def measured(seconds: float) -> Figures:
            async with aio.connect(qm.inspect.path) as own:
                awaited, found = awaited_of(own), {}
                for name in OPERATIONS:
                    done, took = 0, 0.0
                    while took < seconds / len(OPERATIONS):
                        _stock(qm)
                        began = time.perf_counter()
                        share = STOCK // side_by_side
                        await asyncio.gather(*(_repeat(awaited[name], share) for _ in range(side_by_side)))
                        took += time.perf_counter() - began
                        done += share * side_by_side
                    found[name] = done / took
                return found

        yield Ready(measure=partial(_run, measured), settings=settings_of(qm))


async def _repeat(call: Callable[[], Awaitable[object]], times: int) -> None:
    for _ in range(times):
        await call()


def _stock(qm: inorder.QueueManager) -> None:
    """Puts or removes messages until the next gets have enough of them, and not many more."""
    if (depth := qm.depth(QUEUE)) < STOCK:
        qm.put_many(QUEUE, [BODY] * (STOCK - depth))
    elif depth > 2 * STOCK:
        qm.get_many(QUEUE, depth - STOCK)


def _run(measured: Callable[[float], Coroutine[Any, Any, Figures]], seconds: float) -> Figures:
    return asyncio.run(measured(seconds))


CALLS = Question(
    name="tasks",
    title="calls one after another: of a thread, of one task, of 20 tasks",
    unit="calls/s",
    contestants=lambda site: [
        Contestant(name=THREAD, role="ours", open=by_a_thread),
        Contestant(name=TASK, role="ours", open=partial(by_tasks, side_by_side=1)),
        Contestant(name=TASKS, role="ours", open=partial(by_tasks, side_by_side=SIDE_BY_SIDE)),
    ],
    bars=[Bar(figure=name, of=TASKS, against=THREAD, first=0.3, goal=0.6) for name in OPERATIONS],
)


# ---- waits


@contextmanager
def waiting(folder: Path, *, tasks: int) -> Iterator[Ready]:
    """Opens many tasks that wait on one queue; a thread's connection puts, and one of the tasks gets the message."""
    with open_queue(folder) as qm:

        async def measured(seconds: float) -> Figures:
            came: asyncio.Queue[float] = asyncio.Queue()

            async def wait(own: aio.QueueManager) -> None:
                while True:
                    message = await own.get(QUEUE, wait=inorder.FOREVER)
                    came.put_nowait((time.monotonic_ns() - int(message.body)) / 1e9)

            async with aio.connect(qm.inspect.path) as own:
                each = [asyncio.ensure_future(wait(own)) for _ in range(tasks)]
                qm.put(QUEUE, b"%d" % time.monotonic_ns())
                await came.get()
                ends_at, took = time.monotonic() + seconds, list[float]()
                while len(took) < PUTS_MIN or time.monotonic() < ends_at:
                    await asyncio.to_thread(lambda: qm.put(QUEUE, b"%d" % time.monotonic_ns()))
                    took.append(await came.get())
                for one in each:
                    one.cancel()
                await asyncio.gather(*each, return_exceptions=True)
            return figures(took)

        yield Ready(measure=partial(_run, measured), settings=settings_of(qm))


ONE_WAITS, MANY_WAIT = "one task waits", f"{WAITING:,} tasks wait"
WAITS = Question(
    name="tasks_waiting",
    title="from a put to the task that has waited for it, alone and among a thousand",
    unit="ms",
    contestants=lambda site: [
        Contestant(name=ONE_WAITS, role="ours", open=partial(waiting, tasks=1)),
        Contestant(name=MANY_WAIT, role="ours", open=partial(waiting, tasks=site.scaled(WAITING))),
    ],
    bars=[Bar(figure=P50, of=MANY_WAIT, against=ONE_WAITS, first=3, goal=1.5, most=True)],
)
QUESTIONS = (CALLS, WAITS)
