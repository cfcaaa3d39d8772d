"""Brief calls of all tasks: one connection, in the loop's own thread where nobody is in the way, and one sync for many.

To wake a thread, and the loop again, costs more than a put. So a brief call is made at once, in the thread of the loop,
if it will wait for nobody: no other thread or process is writing now, and the store is on this machine. What becomes
of a call:

    nobody is in its way     the loop makes it, at once (`_is_made`)
        it promises nothing      it is over
        it is the only one,      the loop waits for the sync, and it is over
        and syncs are short
        else                     it joins `_owing`, and the loop goes on: the thread syncs for all in there at once
    somebody is              it joins `_waiting`, and so do those behind it. The loop tries once more at the end of its
                             turn; then the thread makes them, and syncs for all at once

The thread is given one `Batch` at a time, of what has come in one turn of the loop, or while it was at the last one.
Each call stands for itself: it fails alone, and is revoked by a cancel as long as it has not begun (`jobs`). It raises
as it answers: when what it has promised is on disk.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from copy import copy
from typing import Any, Final, NamedTuple, TypeVar

from ..errors import ConnectionBroken, InorderError, OutcomeUnknown
from ..stores.seam.protocol import Promises
from ..stores.seam.records import PutOutcome
from .jobs import Job, finished, tell
from .lanes import Connection, Lane, closed

T = TypeVar("T")
TOGETHER_MAX: Final = 64  # calls that are handed over together: the first one waits for the last
HELD_UP_SECONDS: Final = 0.01  # a call that takes longer was not brief: others do not join behind it


class Owed(NamedTuple):
    """A call that has promised something, and what it has put."""

    job: Job[Any]
    puts: Sequence[PutOutcome]

    def fail(self, error: BaseException) -> None:
        """It could not be kept: each call raises an error of its own, with the unique ids of its puts."""
        own = error
        if isinstance(error, InorderError):
            own = copy(error)
            own.__cause__ = error
        if isinstance(own, OutcomeUnknown):
            own.data = {**own.data, "uids": tuple(one.uid for put in self.puts for one in put.results)}
        self.job.fail(own)


class Owing:
    """What calls have promised, and whose calls those are."""

    def __init__(self) -> None:
        self._all: list[tuple[Connection, Promises, list[Owed]]] = []  # more than one after a connection was lost

    def of(self, connection: Connection) -> tuple[Promises, list[Owed]]:
        """What is promised on a connection."""
        if not self._all or self._all[-1][0] is not connection:
            self._all.append((connection, connection.promises(), []))
        return self._all[-1][1:]

    @property
    def jobs(self) -> list[Job[Any]]:
        """Calls that have promised something."""
        return [one.job for _, _, calls in self._all for one in calls]

    @property
    def is_empty(self) -> bool:
        """Whether `keep` has nothing to do."""
        return all(promises.is_empty for _, promises, _ in self._all)

    def keep(self) -> None:
        """Brings it to disk. The calls of which that fails have failed."""
        for _, promises, calls in self._all:
            try:
                promises.keep()
            except BaseException as error:  # noqa: BLE001 - raised again where the answers are asked for
                for one in calls:
                    one.fail(error)


class Batch:
    """Calls that the thread makes together, and promises that it keeps; to the thread it is one job.

    Attributes:
        began: when the thread was given it, by the loop's clock.
        has_calls: the connection is the thread's meanwhile; else the loop makes calls on it, while the thread syncs.

    Args:
        owing: of calls that were made in the loop.
        then: called in the loop when all of it is over.
    """

    __slots__ = ("_jobs", "_lane", "_loop", "_made", "_owing", "_then", "began", "has_calls")

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
        self.began, self.has_calls = loop.time(), bool(jobs)

    @property
    def is_one_call(self) -> bool:
        """Whether there is nobody to share its sync."""
        return len(self._made) + len(self._jobs) == 1

    # --- in the thread

    def serve(self) -> None:
        """Makes the calls, keeps what they, and those before them, promise, and tells the loop."""
        for job in self._jobs:
            try:
                promises, owed = self._owing.of(self._lane.connected())
            except BaseException as error:  # noqa: BLE001 - raised again where the answer is asked for
                job.fail(error)
                continue
            before = promises.count
            try:
                with promises:
                    job.run()
            except BaseException as error:  # noqa: BLE001 - an observer's: raised again where the answer is asked for
                job.fail(error)
            if promises.count > before:
                owed.append(Owed(job, promises.take_puts()))
        self._owing.keep()
        tell(self._loop, self._end)

    # --- in the loop

    def _end(self) -> None:
        for job in (*self._made, *self._jobs):
            job.end()
        self._then()


class BriefLane(Lane):
    """A lane of no task, for brief calls of all of them."""

    def __init__(self, connect: Callable[[], Connection]) -> None:
        super().__init__(connect)
        self._calls = 0
        self._waiting: list[Job[Any]] = []  # calls that the loop could not make: for the thread
        self._owing = Owing()  # of calls that the loop has made: for the thread
        self._hands_over_soon = False  # `_hand_over` will be called at the end of this turn of the loop
        self._is_alone = True  # one call came in the last turn of the loop: the next is not kept waiting for others
        self._batch: Batch | None = None  # that the thread is at

    async def make(self, call: Callable[[Connection], T]) -> T:
        """What a call answers, at once if nobody is in its way. Raises: what it raises; ConnectionClosed."""
        self._calls += 1
        if not self._calls % TOGETHER_MAX:
            await asyncio.sleep(0)  # a task whose calls are all made at once would have the loop for itself
        job = self.submit(call)
        return job.answer() if job.is_over else await finished(job)

    def submit(self, call: Callable[[Connection], T], *, is_revocable: bool = True) -> Job[T]:
        """Makes a call if nobody is in its way; else has the thread make it, with others. Raises: ConnectionClosed."""
        if self._is_over:
            raise closed()
        job = Job(lambda: self._make(call), _nothing, self._loop, is_revocable=is_revocable)
        batch = self._batch
        if self._waiting or (batch is not None and batch.has_calls) or not self._is_made(job, job.make):
            self._waiting.append(job.hand_over())
            self._hand_over_soon()
        return job

    def _is_made(self, job: Job[Any], run: Callable[[], None]) -> bool:
        """Makes a call, if that can be at once; it is over then, or when what it has promised is on disk."""
        if self.connection is None:
            return False
        promises, owed = self._owing.of(self.connection)
        before = promises.count
        if promises.at_once(run) is None:
            return False
        is_only_one = self._is_alone and not self._hands_over_soon and self._batch is None
        if not promises.is_empty:
            self._hand_over_soon()
        if promises.count == before:
            job.end()
            return True
        owed.append(Owed(job, promises.take_puts()))
        if is_only_one and promises.is_quick:  # the loop waits for the sync: it is short, and nobody would share it
            self._owing.keep()
            owed.clear()
            job.end()
        return True

    @property
    def is_held_up(self) -> bool:
        """Whether what the thread makes now takes too long for a brief call."""
        batch = self._batch
        return batch is not None and batch.has_calls and self._loop.time() - batch.began > HELD_UP_SECONDS

    def _hand_over_soon(self) -> None:
        """At the end of this turn of the loop: the thread gets all that comes in it, and the loop then rests."""
        if not self._hands_over_soon and self._batch is None:
            self._hands_over_soon = True
            self._loop.call_soon(self._hand_over)

    def _hand_over(self) -> None:
        self._hands_over_soon = False
        if self._batch is not None:
            return
        for _ in range(TOGETHER_MAX):
            if not self._waiting or not self._is_made(self._waiting[0], self._waiting[0].run):
                break
            del self._waiting[0]  # who was in the way has gone
        if self._waiting or not self._owing.is_empty:
            self._batch = self._give(self._waiting[:TOGETHER_MAX], self._over)
            del self._waiting[:TOGETHER_MAX]
            self._is_alone = self._batch.is_one_call

    def _give(self, jobs: Sequence[Job[Any]], then: Callable[[], object]) -> Batch:
        """Gives the thread these calls, and what others have promised."""
        owing, self._owing = self._owing, Owing()
        batch = Batch(self, owing, jobs, then, self._loop)
        self._jobs.put(batch.serve)
        return batch

    def _over(self) -> None:
        self._batch = None
        if self._waiting or not self._owing.is_empty:
            self._hand_over_soon()

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
            self._give(self._waiting, _nothing)
            self._waiting = []
        return super().end(commits=commits)


def _nothing() -> None:
    """Nothing else is to be done when it is over."""
