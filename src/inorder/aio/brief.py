"""Brief calls of all tasks on one connection, in the loop's own thread if they need not wait; one sync for many.

Waking a thread, and then the loop, costs more than a put. So the loop's thread makes a brief call at once if the call
need not wait: no other thread or process is writing now, and the store is on this machine. The cases:

    no writer is active      the loop makes the call at once (`_is_made`)
        it owes no sync          it is over
        it is the only call,     the loop waits for the sync, and the call is over
        and syncs are short
        otherwise                it joins `_owing`, and the loop continues; the thread does one sync for all of them
    a writer is active       it joins `_next.jobs`, as do all later calls. The loop tries again at the end of its turn;
                             then the thread makes the calls, with one sync for all

The thread gets one `CallBatch` at a time, with the calls of one turn of the loop, or those that arrived while it was
busy. Each call fails alone, and a cancel revokes it until it has begun (`jobs`). Calls return or raise when their
effect is on disk.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from copy import copy
from typing import Any, Final, NamedTuple, TypeVar

from ..errors import ConnectionBroken, InorderError, OutcomeUnknown
from ..stores.seam.protocol import Promises
from ..stores.seam.records import PutOutcome
from .jobs import LaneJob, finished, tell
from .lanes import Connection, Lane, closed

T = TypeVar("T")
TOGETHER_MAX: Final = 64  # calls in one batch: the first one waits for the last
HELD_UP_SECONDS: Final = 0.01  # if a call takes longer, later calls do not wait for it


class Owed(NamedTuple):
    """A call that waits for a sync, with its puts."""

    job: LaneJob[Any]
    puts: Sequence[PutOutcome]

    def fail(self, error: BaseException) -> None:
        """Fails the call after a failed sync; each call raises its own error, with the unique ids of its puts."""
        own = error
        if isinstance(error, InorderError):
            own = copy(error)
            own.__cause__ = error
        if isinstance(own, OutcomeUnknown):
            own.data = {**own.data, "uids": tuple(one.uid for put in self.puts for one in put.results)}
        self.job.fail(own)


class CallBatch:
    """Calls that end together, after one sync.

    Attributes:
        jobs: the calls that the thread makes, during which it has the connection. The loop made the others.
        began: when the thread got the batch, by the loop's clock.
    """

    def __init__(self) -> None:
        self.jobs: list[LaneJob[Any]] = []
        self.began = 0.0
        self._owing: list[tuple[Connection, Promises, list[Owed]]] = []  # more than one after a connection was lost

    def of(self, connection: Connection) -> tuple[Promises, list[Owed]]:
        """Returns the unsynced effects on a connection, and the calls that made them."""
        if not self._owing or self._owing[-1][0] is not connection:
            self._owing.append((connection, connection.internals.promises(), []))
        return self._owing[-1][1:]

    @property
    def all(self) -> list[LaneJob[Any]]:
        """Its calls, except those that were over at once."""
        return list(dict.fromkeys([*(one.job for _, _, calls in self._owing for one in calls), *self.jobs]))

    @property
    def owes(self) -> bool:
        """Whether calls that were made wait for their sync."""
        return any(calls for _, _, calls in self._owing)

    @property
    def is_empty(self) -> bool:
        """Whether it needs neither calls nor a sync."""
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
        """Syncs the calls' effects to disk; calls whose sync fails have failed."""
        for _, promises, calls in self._owing:
            try:
                promises.keep()
            except BaseException as error:  # noqa: BLE001 - raised again where the answers are asked for
                for one in calls:
                    one.fail(error)


class BriefLane(Lane):
    """A lane for the brief calls of all tasks."""

    def __init__(self, connect: Callable[[], Connection]) -> None:
        super().__init__(connect)
        self._calls = 0
        self._next = CallBatch()  # the thread's next batch
        self._hands_over_soon = False  # `_hand_over` will be called at the end of this turn of the loop
        self._is_alone = True  # the last turn of the loop had one call: the next call does not wait for others
        self._batch: CallBatch | None = None  # the thread's current batch

    async def make(self, call: Callable[[Connection], T]) -> T:
        """Makes a call, at once if it need not wait, and returns its result. Raises: as the call; ConnectionClosed."""
        self._calls += 1
        if not self._calls % TOGETHER_MAX:
            await asyncio.sleep(0)  # otherwise a task whose calls never wait would block the loop
        job = self.submit(call)
        return job.answer() if job.is_over else await finished(job)

    def submit(self, call: Callable[[Connection], T], *, is_revocable: bool = True) -> LaneJob[T]:
        """Makes a call if it need not wait; else gives it to the thread, with others. Raises: ConnectionClosed."""
        if self.is_over:
            raise closed()
        job = LaneJob(lambda: self._make(call), lambda: None, self._loop, is_revocable=is_revocable)
        if self._next.jobs or self._is_threads or not self._is_made(job, job.make):
            self._next.jobs.append(job.hand_over())
            self._hand_over_soon()
        return job

    def _is_made(self, job: LaneJob[Any], make: Callable[[], None]) -> bool:
        """Makes a call if it need not wait, and returns whether it did; the call is over now or after its sync."""
        if self.connection is None:
            return False
        promises, owed = self._next.of(self.connection)
        before = promises.count
        if promises.at_once(make) is None:
            return False
        is_only_one = self._is_alone and not self._hands_over_soon and self._batch is None and not self._next.owes
        if not promises.is_empty:
            self._hand_over_soon()
        if promises.count == before:
            job.end()
            return True
        owed.append(Owed(job, promises.take_puts()))
        if is_only_one and promises.is_quick:  # the loop waits: the sync is short, and no other call shares it
            self._next.keep()
            owed.clear()
            job.end()
        return True

    @property
    def _is_threads(self) -> bool:
        """Whether the thread makes calls now; while it only syncs, the loop may make them."""
        return self._batch is not None and bool(self._batch.jobs)

    @property
    def is_held_up(self) -> bool:
        """Whether the thread's current calls take too long for a brief call."""
        batch = self._batch
        return batch is not None and self._is_threads and self._loop.time() - batch.began > HELD_UP_SECONDS

    def _hand_over_soon(self) -> None:
        """Gives the thread all calls of this turn of the loop, at its end."""
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
            del jobs[0]
        if not self._next.is_empty:
            self._batch = self._give(TOGETHER_MAX)
            self._is_alone = len(self._batch.all) == 1

    def _give(self, most: int | None = None) -> CallBatch:
        """Gives the thread the next batch, with at most `most` calls to make."""
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
        """After a call: backs out a unit that it left open, so that the next call does not join it."""
        try:
            if self.connection is not None and self.connection.inspect.has_unit:
                self.connection.back_out()
        except ConnectionBroken:  # the next call makes another connection
            self.drop()

    def end(self, *, commits: bool) -> LaneJob[None]:
        """See `Lane.end`."""
        if not self._next.is_empty:
            self._give()
        return super().end(commits=commits)
