"""The lock of a store: one verb at a time in a process, and only in the process that opened the store."""

from __future__ import annotations

import os
import threading
from types import TracebackType

from ..errors import CallInProgress, forked


class VerbLock:
    """Held while a verb runs.

    Args:
        path: of the store.

    Raises: ForkedConnection, in a child made by fork, which has a copy of no use; CallInProgress, a finalizer or
    a signal handler made a call in the middle of a verb of its own thread. It is let in to be told so: a lock that
    kept it out would hang for ever.
    """

    __slots__ = ("_lock", "_path", "_process", "held")

    def __init__(self, path: str) -> None:
        self._path = path
        self._process = os.getpid()
        self._lock = threading.RLock()
        self.held = False

    def __enter__(self) -> None:
        if self._process != os.getpid():
            raise forked(self._path)
        self._lock.acquire()
        if self.held:
            self._lock.release()
            raise CallInProgress("a call was made from inside another one, by a finalizer or a signal handler")
        self.held = True

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.held = False
        self._lock.release()
