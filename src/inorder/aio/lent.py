"""A queue manager for one asyncio task, on a connection that another thread has, with a unit of work open.

A worker's thread has got a message and waits for an `async def` function. Meanwhile it makes the calls of the function
on its connection, one after another. So the function's calls are part of the unit of work, and the loop never blocks.
"""

from __future__ import annotations

import contextlib
from collections.abc import Awaitable, Callable
from queue import SimpleQueue
from typing import TypeVar

from ..client import unit_of_work
from ..errors import InorderError
from .jobs import LaneJob, finished
from .lanes import Connection, Lane, closed
from .manager import QueueManager
from .opened import UnitOfWork

T = TypeVar("T")
Jobs = SimpleQueue[Callable[[], None] | None]


class LentLane(Lane):
    """A connection whose calls its thread makes, from a queue of jobs.

    It always stays with its task, so that no call of the function leaves the unit of work unnoticed: if the
    connection is lost, or is ended from outside, all later calls raise ConnectionClosed.
    """

    def __init__(self, connection: Connection, jobs: Jobs) -> None:
        self._given = jobs
        super().__init__(lambda: connection)
        self.connection, self.is_out, self._has_unit = connection, True, True

    def _start(self, name: str) -> Jobs:
        return self._given

    def _end(self, *, commits: bool) -> None:
        if self.connection is not None:
            self.connection.internals.abandon()

    def _ended(self) -> None:
        self._under_way -= 1

    async def exit(self, leave: Callable[[], T]) -> T:
        """See `Lane.exit`. Raises: ConnectionClosed, the function has ended, and the thread makes no more calls."""
        if self.is_over:
            raise closed()
        return await super().exit(leave)

    async def give_back(self) -> None:
        """Takes no more calls, and closes the queues that the function has left open."""
        self.is_over = True
        left = list(self.handles.values())

        def close_all() -> None:
            for one in left:
                with contextlib.suppress(InorderError):  # its connection has ended
                    one.__exit__(None, None, None)

        await finished(self._give(close_all))

    def post(self, call: Callable[[], object]) -> None:
        """See `Lane.post`. It comes at once: the loop might come to it only after the function has ended."""
        if not self.is_over:
            self._give(call)

    def _give(self, call: Callable[[], object]) -> LaneJob[object]:
        return self.give(LaneJob(call, lambda: None, self._loop, is_revocable=False))


async def with_lent(
    connection: Connection, unit: unit_of_work.UnitOfWork, jobs: Jobs, work: Callable[[QueueManager], Awaitable[T]]
) -> T:
    """Runs a function of this task with a connection and its open unit of work; returns its result.

    Args:
        jobs: where the thread that has the connection takes the calls from.
        work: the function. Calls of other tasks, and those that wait outside of the unit, use further connections.
    """
    qm, lane = QueueManager(connection.connect, 1), LentLane(connection, jobs)
    around = UnitOfWork.lent(qm, lane, unit)
    try:
        return await work(qm)
    finally:
        unit_of_work.leave(around)
        await lane.give_back()
        await qm.internals.abandon()
