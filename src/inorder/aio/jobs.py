"""Calls that a thread makes for a task, and how they end when the task is cancelled.

A thread cannot be stopped in the middle of a call. So a cancel finds a call in one of three states:

    not begun     it is revoked, and never begins; the task is cancelled at once
    running       it finishes first; the caller of `ended` then keeps or undoes it
    over          the same, because the task has not taken the result yet

`finished` keeps such a call: the task gets the result, and its next await raises CancelledError. So a cancelled call
has not happened, and a call that has happened returns its result.
"""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections.abc import Callable
from functools import partial
from typing import Any, Generic, TypeVar

T = TypeVar("T")
CancelArguments = tuple[Any, ...]  # without the exception, whose traceback would keep the program's objects alive
HURRY_SECONDS = 0.01


class LaneJob(Generic[T]):
    """A call that a thread makes for the task that creates this object.

    Attributes:
        is_over: whether the call is over, as seen by the loop.

    Args:
        then: called in the loop when it is over, before the task resumes.
        is_revocable: whether a cancel before its beginning revokes it; otherwise it is always made.
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

    def hand_over(self) -> LaneJob[T]:
        """In the task: prepares the call for another thread or turn of the loop, with the task's context."""
        self._context, self._begun = contextvars.copy_context(), threading.Lock()
        return self

    def make(self) -> None:
        """Makes the call now."""
        try:
            self._result = self._call()
        except BaseException as error:  # noqa: BLE001 - `answer` raises it
            self._error = error

    # --- in the thread

    def run(self) -> None:
        """Makes the call, unless it was revoked."""
        assert self._context is not None
        assert self._begun is not None, "it was handed over"
        if self._begun.acquire(blocking=False):
            self._context.run(self.make)

    def serve(self) -> None:
        """Makes the call, and then wakes its task in the loop."""
        self.run()
        tell(self._loop, self.end)

    def fail(self, error: BaseException) -> None:
        """Replaces the result with an error, because the sync after the call failed."""
        self._error, self._result = error, None

    # --- in the loop

    def end(self) -> None:
        """Marks the call as over and resumes its task."""
        self.is_over = True
        self._then()
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def when_over(self, then: Callable[[LaneJob[T]], object]) -> None:
        """Calls a function, which must not raise, when the call is over: at once if it is."""
        if self.is_over:
            then(self)
        else:
            self._then = partial(then, self)

    def _revoke(self) -> bool:
        """Keeps the call from beginning; returns whether it could."""
        return self._is_revocable and self._begun is not None and self._begun.acquire(blocking=False)

    async def ended(self, hurry: Callable[[], object] | None = None) -> CancelArguments | None:
        """Waits for the end of the call; returns the arguments of the first cancel that came meanwhile, or None.

        Args:
            hurry: called repeatedly after a cancel, until the call is over.

        Raises: CancelledError, the call had not begun.
        """
        cancel: CancelArguments | None = None
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
                cancel = error.args if cancel is None else cancel
        return cancel

    def drop_error(self) -> bool:
        """Returns whether the call, which is over, raised an error, which nobody else asks for."""
        error, self._error = self._error, None
        if error is not None:
            error.__traceback__ = None  # the caller of a wait that was ended may still have the error
        return error is not None

    def answer(self) -> T:
        """Returns the result of the call, or raises its error."""
        error, self._error = self._error, None
        try:
            if error is not None:
                raise error
            return self._result  # type: ignore[return-value]
        finally:
            del error  # its traceback refers to this frame


async def finished(job: LaneJob[T], hurry: Callable[[], object] | None = None) -> T:
    """Waits for a call and returns its result; a cancel does not undo a call that has begun.

    Args:
        hurry: makes the call fail early after a cancel, without an effect; it may come too late.

    Raises: as the call; CancelledError, the call has not happened.
    """
    cancel = await job.ended(hurry)
    if cancel is not None:
        if hurry is not None and job.drop_error():
            raise asyncio.CancelledError(*cancel)
        _cancel_later(cancel)
    return job.answer()


def _cancel_later(cancel: CancelArguments) -> None:
    """Makes the task's next await raise the cancel.

    It does not if the code that cancelled has withdrawn the cancel by then, as `asyncio.timeout` does at the end of its
    block.
    """
    task = asyncio.current_task()
    if task is not None:
        asyncio.get_running_loop().call_soon(_cancel, task, cancel)


def _cancel(task: asyncio.Task[Any], why: CancelArguments) -> None:
    if task.done():
        return
    counted: Any = task  # Python 3.11 and later count the cancels
    if hasattr(counted, "uncancel"):
        if not counted.cancelling():
            return
        counted.uncancel()
    task.cancel(*why)


def tell(loop: asyncio.AbstractEventLoop, call: Callable[..., object], *given: object) -> bool:
    """From any thread: makes the loop call a function soon; returns False if the loop is closed."""
    try:
        loop.call_soon_threadsafe(call, *given)
    except RuntimeError:
        return False
    return True
