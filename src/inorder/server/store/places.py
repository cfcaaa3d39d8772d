"""The store objects of a worker that serve programs elsewhere.

A store in a file or in memory is one object for all of them. Of a database a worker opens a few objects, each with a
session of its own, and shares the connections among them (W-3).
"""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from ...client.manager import QueueManager, connect
from ...client.services import Services
from ...errors import InorderError
from ..watching import PROGRAM

SESSIONS_MAX: Final = 8  # of a database
THREADS: Final = 16
USER_THREADS_MAX: Final = 12  # of one user, so that slow calls of one never hold up all others


class Places:
    """The store objects, which are opened when they are needed.

    Attributes:
        threads: make the calls.
    """

    def __init__(self, store: str) -> None:
        self._store, self._lock = store, threading.Lock()
        self._bases: list[QueueManager] = []
        self.threads = ThreadPoolExecutor(THREADS, thread_name_prefix="inorder store")

    def take(self) -> Services:
        """Returns the store object with the fewest connections. Blocks; raises: as `connect`."""
        with self._lock:
            found = [base._services for base in self._bases]
            if not found or (
                found[0].is_alone
                and len(found) < SESSIONS_MAX
                and all(one.connections > 1 for one in found)  # the first is that of the base
            ):
                self._bases.append(connect(self._store, program=PROGRAM))
                return self._bases[-1]._services
            return min(found, key=lambda one: one.connections)

    def close(self) -> None:
        """Ends all connections. Blocks."""
        self.threads.shutdown(wait=True)
        for one in self._bases:
            try:
                one.close()
            except InorderError:  # a lost store cannot be closed either
                continue
