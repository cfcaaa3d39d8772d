"""The store objects of a worker that serve programs elsewhere.

A store in a file or in memory is one object for all of them. Of a database a worker opens a few objects, each with a
session of its own, and shares the connections among them (W-3).
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Final

from ...aio.brief import BriefLane
from ...aio.jobs import finished
from ...client.manager import QueueManager, connect
from ...errors import InorderError
from ..watching import PROGRAM

SESSIONS_MAX: Final = 8  # of a database
THREADS: Final = 16


class Place:
    """A store object.

    Args:
        connect: makes a connection to it. The first one keeps it open.

    Attributes:
        lane: makes brief calls; None: the store is a database, whose answers the loop cannot wait for.
    """

    def __init__(self, connect: Callable[[], QueueManager]) -> None:
        self._connect, self.base = connect, connect()
        self.services = self.base._services
        self.lane: BriefLane | None = None

    def begin(self) -> None:
        """In the loop: makes it ready for calls. Harmless when repeated."""
        if self.lane is None and not self.services.is_alone:
            self.lane = BriefLane(self._connect)

    async def end(self) -> None:
        """In the loop: ends the lane, after its calls."""
        if self.lane is not None:
            await finished(self.lane.end(commits=True))


class Places:
    """The store objects, which are opened when they are needed.

    Attributes:
        threads: make the calls.
    """

    def __init__(self, store: str) -> None:
        self._store, self._lock = store, threading.Lock()
        self._all: list[Place] = []
        self.threads = ThreadPoolExecutor(THREADS, thread_name_prefix="inorder store")

    def take(self) -> Place:
        """Returns the store object with the fewest connections. Blocks; raises: as `connect`."""
        with self._lock:
            found = [one.services for one in self._all]
            if not found or (
                found[0].is_alone
                and len(found) < SESSIONS_MAX
                and all(one.connections > 1 for one in found)  # the first is that of the base
            ):
                self._all.append(Place(partial(connect, self._store, program=PROGRAM)))
                return self._all[-1]
            return min(self._all, key=lambda one: one.services.connections)

    async def close(self) -> None:
        """Ends all connections."""
        await asyncio.to_thread(self.threads.shutdown)
        for one in self._all:
            with contextlib.suppress(InorderError):  # a lost store cannot be closed either
                await one.end()
            with contextlib.suppress(InorderError):
                await asyncio.to_thread(one.base.close)
