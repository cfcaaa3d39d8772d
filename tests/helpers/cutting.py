"""Cancels a task at a chosen moment of a chosen step.

A step is a point where the task is suspended. Its moments are

    at once     before a thread has begun what the task waits for, as far as it can be
    begun       a thread is amid the call: it is held up until the cancel has come; or the loop is
    answered    the call is over, and the task has not gone on yet
"""

from __future__ import annotations

import asyncio
import threading
import types
from collections.abc import Callable, Coroutine, Generator, Iterator
from contextlib import contextmanager
from typing import Any, Final, Literal, TypeVar

import pytest

from inorder.aio import jobs

T = TypeVar("T")
Moment = Literal["at once", "begun", "answered"]
MOMENTS: Final[tuple[Moment, ...]] = ("at once", "begun", "answered")
LIMIT_SECONDS = 50.0  # as in tests/helpers/support.py


class Cut:
    """One cancel of one task.

    Attributes:
        came: the task has come to that step.
    """

    def __init__(self, step: int, moment: Moment) -> None:
        self.step, self.moment = step, moment
        self.came = False
        self.task: asyncio.Task[Any] | None = None
        self._steps = self._loop_runs_in = 0

    def cancel(self) -> None:
        assert self.task is not None
        self.came = True
        self.task.cancel()

    def begins(self) -> None:
        """Notes that a thread or the loop begins a call."""
        cancelled, task = threading.Event(), self.task
        if task is None or task.done():
            return
        self._steps += 1
        if self._steps != self.step:
            return
        if threading.get_ident() == self._loop_runs_in:
            self.cancel()
            return

        def cancel() -> None:
            self.cancel()
            task.get_loop().call_soon(cancelled.set)  # when the task has been told

        task.get_loop().call_soon_threadsafe(cancel)
        assert cancelled.wait(LIMIT_SECONDS), "the loop does not go on"

    async def cutting(self, work: Coroutine[Any, Any, T]) -> T:
        """Does the work, with the cancel at its step."""
        return await self._step_by_step(work)

    @types.coroutine
    def _step_by_step(self, work: Coroutine[Any, Any, T]) -> Generator[Any, Any, T]:
        self.task, steps, act, value = asyncio.current_task(), 0, work.send, None
        self._loop_runs_in = threading.get_ident()
        assert self.task is not None
        while True:
            try:
                waits_for = act(value)
            except StopIteration as end:
                return end.value  # type: ignore[no-any-return]
            steps += 1
            is_now, is_answered = steps == self.step, self.moment == "answered"
            if is_now and (self.moment == "at once" or (is_answered and waits_for is None)):
                self.task.get_loop().call_soon(self.cancel)
            elif is_now and is_answered:
                waits_for.add_done_callback(lambda _: self.cancel())  # before the task's own, which lets it go on
            try:
                value, act = (yield waits_for), work.send
            except BaseException as error:  # noqa: BLE001 - the work's to handle
                value, act = error, work.throw


@contextmanager
def cut(monkeypatch: pytest.MonkeyPatch, step: int, moment: Moment) -> Iterator[Cut]:
    """Prepares a cancel at a step; do the work in `Cut.cutting`."""
    one, run = Cut(step, moment), jobs.LaneJob.run

    def held_up(job: jobs.LaneJob[Any]) -> None:
        make: Callable[[], Any] = job._call

        def begun() -> Any:
            one.begins()
            return make()

        job._call = begun
        run(job)

    with monkeypatch.context() as patched:
        if moment == "begun":
            patched.setattr(jobs.LaneJob, "run", held_up)
        yield one


def ended(work: Coroutine[Any, Any, T]) -> T:
    """Runs the work in its own loop within a time limit; returns its result."""

    async def limited() -> T:
        return await asyncio.wait_for(work, LIMIT_SECONDS)

    return asyncio.run(limited())
