"""Calls that a thread makes for a task, and what becomes of them when the task is cancelled.

A thread cannot be stopped in the middle of a call. So a cancel finds a call in one of three states:

    it has not begun    it is revoked, and never begins; the task is cancelled at once
    it is under way     it is finished first; the caller of `ended` then decides what becomes of it
    it is over          the same: the task had not taken the answer yet

`finished` lets such a call stand: the task has its answer, and the cancel comes when the task awaits something next.
So a call that is cancelled has not happened, and one that has happened returns its answer.
"""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections.abc import Callable
from typing import Any, Generic, TypeVar

T = TypeVar("T")
HURRY_SECONDS = 0.01


class Job(Generic[T]):
    """A call that a thread makes for the task that makes this.

    Attributes:
        is_over: the thread is done with it, as the loop knows.

    Args:
        then: called in the loop when it is over, before the task goes on.
        is_revocable: a cancel that comes before it has begun revokes it; else it is made whatever comes.
    """

    __slots__ = (
        "_begun",
        "_call",
        "_context",
        "_error",
        "_is_revocable",
        "_loop",
        "_result",
        "_then",
        "_waiter",
        "is_over",
    )

    def __init__(
        self,
        call: Callable[[], T],
        then: Callable[[], object],
        loop: asyncio.AbstractEventLoop,
        *,
        is_revocable: bool = True,
    ) -> None:
        self._call, self._then, self._loop, self._is_revocable = call, then, loop, is_revocable
        self._context: contextvars.Context | None = None
        self._begun: threading.Lock | None = None  # taken by the thread to begin the call, or by the task to revoke it
        self._waiter: asyncio.Future[None] | None = None
        self._result: T | None = None
        self._error: BaseException | None = None
        self.is_over = False

    def hand_over(self) -> Job[T]:
        """In the task: another thread, or another turn of the loop, will make the call, in the task's context."""
        self._context, self._begun = contextvars.copy_context(), threading.Lock()
        return self

    def make(self) -> None:
        """Makes the call, here and now."""
        try:
            self._result = self._call()
        except BaseException as error:  # noqa: BLE001 - raised again where the answer is asked for
            self._error = error

    # --- in the thread

    def run(self) -> None:
        """Makes the call, unless it was revoked."""
        assert self._context is not None
        assert self._begun is not None, "it was handed over"
        if self._begun.acquire(blocking=False):
            self._context.run(self.make)

    def serve(self) -> None:
        """Makes the call, and tells the loop."""
        self.run()
        tell(self._loop, self.end)

    def fail(self, error: BaseException) -> None:
        """It was made, and what it has promised could not be kept."""
        self._error, self._result = error, None

    # --- in the loop

    def end(self) -> None:
        """It is over, and its task goes on."""
        self.is_over = True
        self._then()
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def _revoke(self) -> bool:
        """Whether it has not begun; then it never will."""
        return self._is_revocable and self._begun is not None and self._begun.acquire(blocking=False)

    async def ended(self, hurry: Callable[[], object] | None = None) -> asyncio.CancelledError | None:
        """Returns when it is over; the cancel that came meanwhile, if one did.

        Args:
            hurry: called again and again, once there was a cancel, until it is over.

        Raises: CancelledError, it had not begun.
        """
        cancel: asyncio.CancelledError | None = None
        while not self.is_over:
            self._waiter = self._loop.create_future()
            try:
                if cancel is None or hurry is None:
                    await self._waiter
                else:
                    hurry()
                    await asyncio.wait([self._waiter], timeout=HURRY_SECONDS)
            except asyncio.CancelledError as error:
                if cancel is None and self._revoke():
                    raise
                cancel = cancel or error
        return cancel

    @property
    def has_failed(self) -> bool:
        """When it is over: whether it has raised something."""
        return self._error is not None

    def answer(self) -> T:
        """What the call returned; raises what it raised."""
        error, self._error = self._error, None
        try:
            if error is not None:
                raise error
            return self._result  # type: ignore[return-value]
        finally:
            del error  # its traceback holds this frame


async def finished(job: Job[T], hurry: Callable[[], object] | None = None) -> T:
    """The answer of a call that stands once it has begun.

    Args:
        hurry: ends the call early, after a cancel, so that it fails and has not happened; it may come too late.

    Raises: what the call raises; CancelledError, it has not happened.
    """
    cancel = await job.ended(hurry)
    if cancel is not None:
        if hurry is not None and job.has_failed:
            raise cancel
        _cancel_later(cancel)
    return job.answer()


def _cancel_later(cancel: asyncio.CancelledError) -> None:
    """The task goes on as if it had not been cancelled; the cancel comes when it awaits something next.

    Unless the code that asked for it has dealt with that by then, as `asyncio.timeout` does at the end of its block.
    """
    task = asyncio.current_task()
    if task is not None:
        asyncio.get_running_loop().call_soon(_cancel, task, cancel.args)


def _cancel(task: asyncio.Task[Any], why: tuple[Any, ...]) -> None:
    if task.done():
        return
    counted: Any = task  # from Python 3.11 on it is counted how often it was asked for
    if hasattr(counted, "uncancel"):
        if not counted.cancelling():
            return
        counted.uncancel()
    task.cancel(*why)


def tell(loop: asyncio.AbstractEventLoop, call: Callable[..., object], *given: object) -> bool:
    """From any thread: the loop makes a call soon; False if it is closed, and nobody is there any more."""
    try:
        loop.call_soon_threadsafe(call, *given)
    except RuntimeError:
        return False
    return True
