"""The store objects of a worker that serve programs elsewhere.

A store in a file or in memory is one object for all of them. Of a database a worker opens a few objects, each with a
separate session, and shares the connections among them (W-3).
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Final, cast

from ...aio.brief import BriefLane
from ...aio.jobs import finished
from ...client.manager import QueueManager, connect
from ...errors import InorderError
from ...stores.seam.protocol import LocalStore
from ..watching import PROGRAM

SESSIONS_MAX: Final = 8  # of a database
THREADS: Final = 16
USER_THREADS_MAX: Final = 12  # of one user, so that slow calls of one never hold up all others


class ForLane:
    """Stands in for a connection in a lane whose calls each name their own connection."""

    has_unit, is_idle = False, True

    def __init__(self, store: LocalStore) -> None:
        self.promises = store.promises
        self.internals = self.inspect = self.accounts = self

    def on_behalf_of(self, user: str) -> contextlib.AbstractContextManager[None]:
        """Does nothing: each call's own connection has its user."""
        del user
        return contextlib.nullcontext()

    def end_waits(self) -> None:
        """Does nothing: brief calls do not wait."""

    def close(self) -> None:
        """Does nothing: the store is closed after its lane has ended."""


class SharedStore:
    """A store object.

    Args:
        base: its first connection, which keeps it open.

    Attributes:
        lane: makes brief calls; None: the store is a database, whose answers the loop cannot wait for.
    """

    def __init__(self, base: QueueManager) -> None:
        self.base, self.services = base, base._services
        self.lane: BriefLane | None = None

    def begin(self) -> None:
        """In the loop: makes it ready for calls. Harmless when repeated."""
        if self.lane is None and not self.services.is_alone:
            self.lane = BriefLane(lambda: cast("QueueManager", ForLane(self.services.store)))

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
        self._all: list[SharedStore] = []
        self.threads = ThreadPoolExecutor(THREADS, thread_name_prefix="inorder store")

    def take(self) -> SharedStore:
        """Returns the store object with the fewest connections. Blocks; raises: as `connect`."""
        with self._lock:
            found = [one.services for one in self._all]
            if not found or (
                found[0].is_alone
                and len(found) < SESSIONS_MAX
                and all(one.connections > 1 for one in found)  # the first is the base's
            ):
                self._all.append(SharedStore(connect(self._store, program=PROGRAM)))
                return self._all[-1]
            return min(self._all, key=lambda one: one.services.connections)

    async def close(self) -> None:
        """Ends all connections. Harmless when repeated."""
        await asyncio.to_thread(self.threads.shutdown)
        while self._all:
            one = self._all.pop()
            with contextlib.suppress(InorderError):  # a lost store cannot be closed either
                await one.end()
            with contextlib.suppress(InorderError):
                await asyncio.to_thread(one.base.close)
