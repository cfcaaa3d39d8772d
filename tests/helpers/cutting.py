"""Cancels a task at a chosen moment of a chosen step.

A step is a point where the task is suspended. Its moments are

    at once     before a thread begins the call that the task waits for, if possible
    begun       during the call: its thread waits until the cancel has arrived, or the loop itself makes the call
    answered    after the call has ended, and before the task continues
"""

from __future__ import annotations

import asyncio
import threading
import types
from collections.abc import Callable, Coroutine, Generator, Iterator
from contextlib import contextmanager
from typing import Any, Final, Literal, TypeVar

import pytest
from tests.helpers.support import LIMIT_SECONDS

from inorder.aio import jobs

T = TypeVar("T")
Moment = Literal["at once", "begun", "answered"]
MOMENTS: Final[tuple[Moment, ...]] = ("at once", "begun", "answered")


class Cut:
    """One cancel of one task.

    Attributes:
        came: the task has reached the step.
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
            task.get_loop().call_soon(cancelled.set)  # when the task has been cancelled

        task.get_loop().call_soon_threadsafe(cancel)
        assert cancelled.wait(LIMIT_SECONDS), "the loop does not go on"

    async def cutting(self, work: Coroutine[Any, Any, T]) -> T:
        """Runs the work, and cancels it at the step."""
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
                waits_for.add_done_callback(lambda _: self.cancel())  # before the task's own callback, which resumes it
            try:
                value, act = (yield waits_for), work.send
            except BaseException as error:  # noqa: BLE001 - raised inside the work
                value, act = error, work.throw


@contextmanager
def cut(monkeypatch: pytest.MonkeyPatch, step: int, moment: Moment) -> Iterator[Cut]:
    """Prepares a cancel at a step; run the work with `Cut.cutting`."""
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
    """Runs the work in a new event loop with a time limit, and returns its result."""

    async def limited() -> T:
        return await asyncio.wait_for(work, LIMIT_SECONDS)

    return asyncio.run(limited())
