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

The thread is given one `CallBatch` at a time, of what has come in one turn of the loop, or while it was at the last
one. Each call stands for itself: it fails alone, and is revoked by a cancel as long as it has not begun (`jobs`). It
raises as it answers: when what it has promised is on disk.
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


class CallBatch:
    """Calls that are over together, when what they have promised is on disk.

    Attributes:
        jobs: those that the thread makes; the connection is its own meanwhile. The others were made in the loop.
        began: when the thread was given it, by the loop's clock.
    """

    def __init__(self) -> None:
        self.jobs: list[Job[Any]] = []
        self.began = 0.0
        self._owing: list[tuple[Connection, Promises, list[Owed]]] = []  # more than one after a connection was lost

    def of(self, connection: Connection) -> tuple[Promises, list[Owed]]:
        """What is promised on a connection, and by whom."""
        if not self._owing or self._owing[-1][0] is not connection:
            self._owing.append((connection, connection.internals.promises(), []))
        return self._owing[-1][1:]

    @property
    def all(self) -> list[Job[Any]]:
        """Its calls, but for those that were over at once."""
        return list(dict.fromkeys([*(one.job for _, _, calls in self._owing for one in calls), *self.jobs]))

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to do."""
        return not self.jobs and all(promises.is_empty for _, promises, _ in self._owing)

    def make(self, connected: Callable[[], Connection]) -> None:
        """In the thread: makes the calls. Each fails alone."""
        for job in self.jobs:
            try:
                promises, owed = self.of(connected())
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

    def keep(self) -> None:
        """Brings to disk what was promised. The calls of which that fails have failed."""
        for _, promises, calls in self._owing:
            try:
                promises.keep()
            except BaseException as error:  # noqa: BLE001 - raised again where the answers are asked for
                for one in calls:
                    one.fail(error)


class BriefLane(Lane):
    """A lane of no task, for brief calls of all of them."""

    def __init__(self, connect: Callable[[], Connection]) -> None:
        super().__init__(connect)
        self._calls = 0
        self._next = CallBatch()  # what the thread will be given
        self._hands_over_soon = False  # `_hand_over` will be called at the end of this turn of the loop
        self._is_alone = True  # one call came in the last turn of the loop: the next is not kept waiting for others
        self._batch: CallBatch | None = None  # that the thread is at

    async def make(self, call: Callable[[Connection], T]) -> T:
        """What a call answers, at once if nobody is in its way. Raises: what it raises; ConnectionClosed."""
        self._calls += 1
        if not self._calls % TOGETHER_MAX:
            await asyncio.sleep(0)  # a task whose calls are all made at once would have the loop for itself
        job = self.submit(call)
        return job.answer() if job.is_over else await finished(job)

    def submit(self, call: Callable[[Connection], T], *, is_revocable: bool = True) -> Job[T]:
        """Makes a call if nobody is in its way; else has the thread make it, with others. Raises: ConnectionClosed."""
        if self.is_over:
            raise closed()
        job = Job(lambda: self._make(call), _nothing, self._loop, is_revocable=is_revocable)
        if self._next.jobs or self._is_threads or not self._is_made(job, job.make):
            self._next.jobs.append(job.hand_over())
            self._hand_over_soon()
        return job

    def _is_made(self, job: Job[Any], make: Callable[[], None]) -> bool:
        """Makes a call, if that can be at once; it is over then, or when what it has promised is on disk."""
        if self.connection is None:
            return False
        promises, owed = self._next.of(self.connection)
        before = promises.count
        if promises.at_once(make) is None:
            return False
        is_only_one = self._is_alone and not self._hands_over_soon and self._batch is None
        if not promises.is_empty:
            self._hand_over_soon()
        if promises.count == before:
            job.end()
            return True
        owed.append(Owed(job, promises.take_puts()))
        if is_only_one and promises.is_quick:  # the loop waits for the sync: it is short, and nobody would share it
            self._next.keep()
            owed.clear()
            job.end()
        return True

    @property
    def _is_threads(self) -> bool:
        """Whether the thread makes calls now; else, while it syncs, the loop does."""
        return self._batch is not None and bool(self._batch.jobs)

    @property
    def is_held_up(self) -> bool:
        """Whether what the thread makes now takes too long for a brief call."""
        batch = self._batch
        return batch is not None and self._is_threads and self._loop.time() - batch.began > HELD_UP_SECONDS

    def _hand_over_soon(self) -> None:
        """At the end of this turn of the loop: the thread gets all that comes in it, and the loop then rests."""
        if not self._hands_over_soon and self._batch is None:
            self._hands_over_soon = True
            self._loop.call_soon(self._hand_over)

    def _hand_over(self) -> None:
        self._hands_over_soon = False
        if self._batch is not None:
            return
        jobs = self._next.jobs
        for _ in range(TOGETHER_MAX):
            if not jobs or not self._is_made(jobs[0], jobs[0].run):
                break
            del jobs[0]  # who was in the way has gone
        if not self._next.is_empty:
            self._batch = self._give(TOGETHER_MAX)
            self._is_alone = len(self._batch.all) == 1

    def _give(self, most: int | None = None) -> CallBatch:
        """Gives the thread what has come, up to so many calls that it makes."""
        batch, self._next = self._next, CallBatch()
        if most is not None:
            self._next.jobs, batch.jobs = batch.jobs[most:], batch.jobs[:most]
        batch.began = self._loop.time()
        self._jobs.put(lambda: self._serve(batch))
        return batch

    def _serve(self, batch: CallBatch) -> None:
        batch.make(self.connected)
        batch.keep()
        tell(self._loop, self._over, batch)

    def _over(self, batch: CallBatch) -> None:
        for job in batch.all:
            job.end()
        if self._batch is batch:
            self._batch = None
        if not self._next.is_empty and not self.is_over:
            self._hand_over_soon()

    def _note(self) -> None:
        """After a call: what it has left open is not open for the next one."""
        try:
            if self.connection is not None and self.connection.inspect.has_unit:
                self.connection.back_out()
        except ConnectionBroken:  # it was lost, and the next call has another
            self.drop()

    def end(self, *, commits: bool) -> Job[None]:
        """See `Lane.end`."""
        if not self._next.is_empty:
            self._give()
        return super().end(commits=commits)


def _nothing() -> None:
    """Nothing else is to be done when it is over."""
