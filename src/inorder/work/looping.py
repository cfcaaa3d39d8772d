"""The event loop of a worker for `async def` functions: one thread for all of their calls in the process.

A lane has got the message and has the connection, as for any function. It starts the call in the loop, and makes the
calls of the function on its connection until the function ends (`aio.lent`). So attempts, retries, limits of time and
the end of a worker are as for all functions, and a call that is ended from outside is cancelled.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable
from queue import SimpleQueue
from typing import Any

from ..aio import QueueManager as AsyncQueueManager
from ..aio.lanes import serve
from ..aio.lent import Jobs, with_lent
from ..client.manager import QueueManager
from ..client.unit_of_work import UnitOfWork


class TaskLoop:
    """An event loop in a separate thread."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="inorder work: loop", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        loop = self.loop
        asyncio.set_event_loop(loop)
        loop.run_forever()
        left = asyncio.all_tasks(loop)
        for one in left:
            one.cancel()
        loop.run_until_complete(asyncio.gather(*left, return_exceptions=True))
        loop.run_until_complete(loop.shutdown_asyncgens())
        loop.run_until_complete(loop.shutdown_default_executor())
        loop.close()

    def call(
        self, qm: QueueManager, unit: UnitOfWork, begin: Callable[[AsyncQueueManager], Awaitable[Any]]
    ) -> AsyncCall:
        """Makes a call of an `async def` function, to be run by the thread that has the connection."""
        return AsyncCall(self, qm, unit, begin)

    def end(self, seconds: float) -> None:
        """Ends the loop, and waits so long for that; calls that still run are cancelled."""
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join(seconds)


class AsyncCall:
    """The call of an `async def` function with a message that a lane has got.

    Args:
        qm, unit: the lane's connection, and its open unit of work.
        begin: calls the function with the connection for tasks.
    """

    def __init__(
        self, tasks: TaskLoop, qm: QueueManager, unit: UnitOfWork, begin: Callable[[AsyncQueueManager], Awaitable[Any]]
    ) -> None:
        self._loop, self._qm, self._unit, self._begin = tasks.loop, qm, unit, begin
        self._jobs: Jobs = SimpleQueue()
        self._task: asyncio.Task[Any] | None = None
        self._is_cancelled = False

    def run(self) -> Any:
        """In the lane's thread: waits for the function, and makes its calls on the connection meanwhile.

        Returns: the function's result.

        Raises as the function; CancelledError if it was cancelled.
        """
        self._loop.call_soon_threadsafe(self._start)
        serve(self._jobs)
        assert self._task is not None, "its end has ended the jobs"
        return self._task.result()

    def cancel(self) -> None:
        """From any thread: cancels the function."""
        self._loop.call_soon_threadsafe(self._cancel)

    # --- in the loop

    def _start(self) -> None:
        self._task = self._loop.create_task(self._main())
        self._task.add_done_callback(lambda _: self._jobs.put(None))
        if self._is_cancelled:
            self._task.cancel()

    async def _main(self) -> Any:
        return await with_lent(self._qm, self._unit, self._jobs, self._begin)

    def _cancel(self) -> None:
        self._is_cancelled = True
        if self._task is not None:
            self._task.cancel()
