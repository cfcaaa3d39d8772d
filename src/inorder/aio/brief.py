"""Brief calls of all tasks: one connection, one hand-over to its thread, one promise.

To wake a thread, and the loop again, costs as much as a put. So calls that are brief share a lane. Those that come in
one turn of the loop, or while the thread is at work, are handed to it together; it makes one after another, brings to
disk what all of them have promised, and only then the loop hears that they are over. A task that is alone waits for its
own call, and sixteen tasks wait for one sync.

Each call stands for itself: it fails alone, and is revoked by a cancel as long as the thread has not begun it (`jobs`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, Final, TypeVar

from ..errors import ConnectionBroken
from ..stores.protocol import Promises
from .jobs import Job
from .lanes import Connection, Lane, closed

T = TypeVar("T")
TOGETHER_MAX: Final = 64  # calls that are handed over together: the first one waits for the last
HELD_UP_SECONDS: Final = 0.01  # a call that takes longer was not brief: others do not join behind it


class Batch:
    """Calls that the thread makes together; for the thread it is one job."""

    __slots__ = ("_jobs", "_lane", "_loop", "_then")

    def __init__(
        self, lane: BriefLane, jobs: Sequence[Job[Any]], then: Callable[[], object], loop: asyncio.AbstractEventLoop
    ) -> None:
        self._lane, self._jobs, self._then, self._loop = lane, jobs, then, loop

    # --- in the thread

    def run(self) -> None:
        """Makes the calls, and keeps what they promise."""
        owing: list[tuple[Promises, list[Job[Any]]]] = []  # more than one after a connection was lost
        connection: Connection | None = None
        for job in self._jobs:
            if self._lane.connection is None:
                job.run()  # it connects
                continue
            if self._lane.connection is not connection:
                connection = self._lane.connection
                owing.append((connection.promises(), []))
            promises, jobs = owing[-1]
            before = promises.count
            with promises:
                job.run()
            if promises.count > before:
                jobs.append(job)
        for promises, jobs in owing:
            try:
                promises.keep()
            except BaseException as error:  # noqa: BLE001 - raised again where the answers are asked for
                for job in jobs:
                    job.fail(error)

    def tell(self) -> None:
        """The thread is done with them."""
        try:
            self._loop.call_soon_threadsafe(self._end)
        except RuntimeError:  # the loop is closed: nobody is there any more
            return

    # --- in the loop

    def _end(self) -> None:
        for job in self._jobs:
            job.end()
        self._then()


class BriefLane(Lane):
    """A lane of no task, for brief calls of all of them."""

    def __init__(self, connect: Callable[[], Connection]) -> None:
        super().__init__(connect, lambda _: None)
        self._waiting: list[Job[Any]] = []
        self._is_called = False  # `_hand_over` will be
        self._is_alone = True  # the last batch was a single call: the next is not kept waiting for others
        self._began: float | None = None  # when the thread was given the batch that is under way

    def submit(self, call: Callable[[Connection], T], *, is_revocable: bool = True) -> Job[T]:
        """Has its thread make a call, together with others. Raises: ConnectionClosed."""
        if self._is_over:
            raise closed()
        job = Job(lambda: self._make(call), _nothing, self._loop, is_revocable=is_revocable)
        self._waiting.append(job)
        if self._is_alone:
            self._hand_over()
        else:
            self._call_later()
        return job

    @property
    def is_held_up(self) -> bool:
        """Whether what the thread makes now takes too long for a brief call."""
        return self._began is not None and self._loop.time() - self._began > HELD_UP_SECONDS

    def _call_later(self) -> None:
        """At the end of this turn of the loop: the thread gets all that comes in it, and the loop then rests."""
        if self._waiting and not self._is_called and self._began is None:
            self._is_called = True
            self._loop.call_soon(self._hand_over)

    def _hand_over(self) -> None:
        self._is_called = False
        if self._waiting and self._began is None:
            self._began, self._is_alone = self._loop.time(), len(self._waiting) == 1
            self._jobs.put(Batch(self, self._waiting[:TOGETHER_MAX], self._over, self._loop))
            del self._waiting[:TOGETHER_MAX]

    def _over(self) -> None:
        self._began = None
        self._call_later()

    def _note(self) -> None:
        """In the thread, after a call: what it has left open is not open for the next one."""
        try:
            if self.connection is not None and self.connection.has_unit:
                self.connection.back_out()
        except ConnectionBroken:  # it was lost, and the next call has another
            self.drop()

    def end(self, *, commits: bool) -> Job[None]:
        """See `Lane.end`."""
        if self._waiting:
            self._jobs.put(Batch(self, self._waiting, _nothing, self._loop))
            self._waiting = []
        return super().end(commits=commits)


def _nothing() -> None:
    """Nothing else is to be done when it is over."""
