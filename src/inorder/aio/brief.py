"""Brief calls of all tasks: one connection, in the loop's own thread where nobody is in the way, and one sync for many.

To wake a thread, and the loop again, costs more than a put. So a brief call is made at once, in the thread of the loop,
if it will wait for nobody: no other thread or process is writing now, and the store is on this machine. A call that
promises nothing has its answer then. What others promise is brought to disk by the lane's thread, for all of them that
come in one turn of the loop, or while it is at it; meanwhile the loop goes on.

Where somebody is in the way, or the store is far, the thread makes the calls, in the same batches.

Each call stands for itself: it fails alone, and is revoked by a cancel as long as it has not begun (`jobs`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, Final, TypeVar

from ..errors import ConnectionBroken
from ..stores.protocol import Promises
from .jobs import Job, finished
from .lanes import Connection, Lane, closed

T = TypeVar("T")
TOGETHER_MAX: Final = 64  # calls that are handed over together: the first one waits for the last
HELD_UP_SECONDS: Final = 0.01  # a call that takes longer was not brief: others do not join behind it


class Owing:
    """What calls have promised, and whose calls those are."""

    def __init__(self) -> None:
        self._all: list[tuple[Connection, Promises, list[Job[Any]]]] = []  # more than one after a connection was lost

    def of(self, connection: Connection) -> tuple[Promises, list[Job[Any]]]:
        """What is promised on a connection."""
        if not self._all or self._all[-1][0] is not connection:
            self._all.append((connection, connection.promises(), []))
        return self._all[-1][1:]

    @property
    def jobs(self) -> list[Job[Any]]:
        """Calls that have promised something."""
        return [job for _, _, jobs in self._all for job in jobs]

    @property
    def is_empty(self) -> bool:
        """Whether `keep` has nothing to do."""
        return all(promises.is_empty for _, promises, _ in self._all)

    def keep(self) -> None:
        """Brings it to disk. The calls of which that fails have failed."""
        for _, promises, jobs in self._all:
            try:
                promises.keep()
            except BaseException as error:  # noqa: BLE001 - raised again where the answers are asked for
                for job in jobs:
                    job.fail(error)


class Batch:
    """Calls that the thread makes together, and promises that it keeps; for the thread it is one job."""

    __slots__ = ("_jobs", "_lane", "_loop", "_made", "_owing", "_then")

    def __init__(
        self,
        lane: BriefLane,
        owing: Owing,
        jobs: Sequence[Job[Any]],
        then: Callable[[], object],
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        self._lane, self._owing, self._made, self._jobs = lane, owing, owing.jobs, jobs
        self._then, self._loop = then, loop

    # --- in the thread

    def run(self) -> None:
        """Makes the calls, and keeps what they, and those before them, promise."""
        for job in self._jobs:
            connection = self._lane.connection
            if connection is None:
                job.run()  # it connects
                continue
            promises, jobs = self._owing.of(connection)
            before = promises.count
            with promises:
                job.run()
            if promises.count > before:
                jobs.append(job)
        self._owing.keep()

    def tell(self) -> None:
        """The thread is done with them."""
        try:
            self._loop.call_soon_threadsafe(self._end)
        except RuntimeError:  # the loop is closed: nobody is there any more
            return

    # --- in the loop

    def _end(self) -> None:
        for job in (*self._made, *self._jobs):
            job.end()
        self._then()


class BriefLane(Lane):
    """A lane of no task, for brief calls of all of them."""

    def __init__(self, connect: Callable[[], Connection]) -> None:
        super().__init__(connect, lambda _: None)
        self._owing = Owing()  # of calls that were made in the loop
        self._waiting: list[Job[Any]] = []  # for the thread
        self._is_called = False  # `_hand_over` will be
        self._is_alone = True  # one call came in the last turn of the loop: the next is not kept waiting for others
        self._has_kept = False  # in this turn of the loop, without the thread
        self._began: float | None = None  # when the thread was given the batch that is under way
        self._is_calling = False  # it makes calls: the connection is its own meanwhile

    async def make(self, call: Callable[[Connection], T]) -> T:
        """What a call answers, at once if nobody is in its way. Raises: what it raises; ConnectionClosed."""
        connection = self.connection
        if connection is not None and not (self._is_over or self._is_calling or self._waiting):
            promises, jobs = self._owing.of(connection)
            before = promises.count
            try:
                found = promises.at_once(lambda: self._make(call))
            finally:
                if not promises.is_empty:
                    self._call_later()
            if found is not None:
                (answer,) = found
                return answer if promises.count == before else await self._kept(answer, promises, jobs)
        return await finished(self.submit(call))

    async def _kept(self, answer: T, promises: Promises, jobs: list[Job[Any]]) -> T:
        """The answer of a call that has been made, when what it has promised is on disk. Raises: StoreError."""
        if self._is_alone and not (jobs or self._has_kept or self._began is not None) and promises.is_quick:
            self._has_kept = True
            promises.keep()
            return answer
        job = Job(lambda: answer, _nothing, self._loop)
        job.run()
        jobs.append(job)
        return await finished(job)

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
        return self._is_calling and self._began is not None and self._loop.time() - self._began > HELD_UP_SECONDS

    def _call_later(self) -> None:
        """At the end of this turn of the loop: the thread gets all that comes in it, and the loop then rests."""
        if not self._is_called and self._began is None:
            self._is_called = True
            self._loop.call_soon(self._hand_over)

    def _hand_over(self) -> None:
        self._is_called = self._has_kept = False
        if self._began is not None:
            return
        while self._waiting and self._is_made(self._waiting[0]):  # who was in the way may have gone
            del self._waiting[0]
        if self._waiting or not self._owing.is_empty:
            batch = self._batch(self._waiting[:TOGETHER_MAX], self._over)
            del self._waiting[:TOGETHER_MAX]
            self._began = self._loop.time()
            self._jobs.put(batch)

    def _is_made(self, job: Job[Any]) -> bool:
        """Whether a call that waits could be made at once."""
        if self.connection is None:
            return False
        promises, jobs = self._owing.of(self.connection)
        before = promises.count
        if promises.at_once(job.run) is None:
            return False
        if promises.count > before:
            jobs.append(job)
        else:
            job.end()
        return True

    def _batch(self, jobs: Sequence[Job[Any]], then: Callable[[], object]) -> Batch:
        owing, self._owing = self._owing, Owing()
        self._is_alone, self._is_calling = len(jobs) + len(owing.jobs) == 1, bool(jobs)
        return Batch(self, owing, jobs, then, self._loop)

    def _over(self) -> None:
        self._began, self._is_calling = None, False
        if self._waiting or not self._owing.is_empty:
            self._call_later()

    def _note(self) -> None:
        """After a call: what it has left open is not open for the next one."""
        try:
            if self.connection is not None and self.connection.has_unit:
                self.connection.back_out()
        except ConnectionBroken:  # it was lost, and the next call has another
            self.drop()

    def end(self, *, commits: bool) -> Job[None]:
        """See `Lane.end`."""
        if self._waiting or not self._owing.is_empty:
            self._jobs.put(self._batch(self._waiting, _nothing))
            self._waiting = []
        return super().end(commits=commits)


def _nothing() -> None:
    """Nothing else is to be done when it is over."""
