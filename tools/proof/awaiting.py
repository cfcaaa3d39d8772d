"""A process whose tasks do random work on a store through `inorder.aio` until it is killed.

Each task does the work of a worker, and has its own history, so the checker treats it as a process. The worker is
written for connections, and runs in a thread beside its task. The task awaits the worker's calls, which belong to the
task's unit of work. There are more tasks than connections.
"""

from __future__ import annotations

import asyncio
import random
import threading
from collections.abc import AsyncIterable, Awaitable, Callable
from concurrent.futures import Future
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any

from inorder import InorderError, aio

from .history import History, is_loss
from .limits import make_small
from .worker import LOST_STATUS, Worker

TASKS, CONNECTIONS = 4, 3


class Awaited:
    """The calls of `aio.QueueManager` for a thread; one task awaits all of them."""

    def __init__(self, qm: aio.QueueManager) -> None:
        self._qm, self._loop = qm, asyncio.get_running_loop()
        self._calls: asyncio.Queue[tuple[Callable[[], Awaitable[Any]], Future[Any]]] = asyncio.Queue()

    async def serve(self) -> None:
        """Awaits the calls of the thread, one after another, until it is cancelled."""
        while True:
            call, future = await self._calls.get()
            try:
                future.set_result(await call())
            except Exception as error:  # noqa: BLE001 - raised in the thread
                future.set_exception(error)

    def run(self, call: Callable[[], Awaitable[Any]]) -> Any:
        """In the thread: makes a call in the task, and returns its result."""
        future: Future[Any] = Future()
        self._loop.call_soon_threadsafe(self._calls.put_nowait, (call, future))
        return future.result()

    def unit_of_work(self) -> Block:
        return Block(self, self._qm.unit_of_work())

    def group(self, queue: str) -> Block:
        return Block(self, self._qm.group(queue))

    def get_group(self, queue: str) -> list[Any]:
        return list(self.run(lambda: _all(self._qm.get_group(queue))))

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._qm, name)
        return _threaded(self, found) if callable(found) else Part(self, found)


class Part:
    """A namespace of `aio.QueueManager`, or a block, for a thread."""

    def __init__(self, awaited: Awaited, of: Any) -> None:
        self._awaited, self._of = awaited, of

    def __getattr__(self, name: str) -> Callable[..., Any]:
        return _threaded(self._awaited, getattr(self._of, name))


def _threaded(awaited: Awaited, method: Callable[..., Awaitable[Any]]) -> Callable[..., Any]:
    return lambda *given, **named: awaited.run(lambda: method(*given, **named))


class Block(Part):
    """A block of `inorder.aio`, entered and left by a thread."""

    def __enter__(self) -> Block:
        self._awaited.run(self._of.__aenter__)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._awaited.run(lambda: self._of.__aexit__(kind, error, trace))


async def _all(messages: AsyncIterable[Any]) -> list[Any]:
    return [message async for message in messages]


def work(store: str, history: Path, seed: int, steps: int, at_work: Callable[[], object]) -> int:
    """Runs the process of an awaiting program; returns its exit status."""
    make_small()
    try:
        asyncio.run(_work(store, history, random.Random(seed), steps, at_work))
    except InorderError as error:
        if not is_loss(error):
            raise
        return LOST_STATUS
    return 0


async def _work(store: str, history: Path, chance: random.Random, steps: int, at_work: Callable[[], object]) -> None:
    async with aio.connect(store, program=history.stem, connections=CONNECTIONS) as qm:
        tasks = [
            _one_task(qm, history.with_stem(f"{history.stem}-t{number}"), chance.getrandbits(32), steps)
            for number in range(TASKS)
        ]
        at_work()
        await asyncio.gather(*tasks)


async def _one_task(qm: aio.QueueManager, history: Path, seed: int, steps: int) -> None:
    awaited, loop = Awaited(qm), asyncio.get_running_loop()
    ended: asyncio.Future[None] = loop.create_future()

    def act() -> None:
        worker = Worker(awaited, History(history), random.Random(seed), history.stem)  # type: ignore[arg-type]
        try:
            for _ in range(steps):
                worker.step()
        except BaseException as error:  # noqa: BLE001 - raised in the loop
            loop.call_soon_threadsafe(ended.set_exception, error)
        else:
            loop.call_soon_threadsafe(ended.set_result, None)

    threading.Thread(target=act, daemon=True).start()
    serving = asyncio.ensure_future(awaited.serve())
    try:
        await ended
    finally:
        serving.cancel()
        with suppress(asyncio.CancelledError):
            await serving
