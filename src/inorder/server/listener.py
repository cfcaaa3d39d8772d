"""The listening socket of a worker. It limits connections so that enough file descriptors are left for the store.

They are counted where they are accepted: a client that only connects, and never begins with TLS or a request, has a
descriptor of this process all the same.
"""

from __future__ import annotations

import resource
import socket
import weakref
from dataclasses import replace
from multiprocessing import reduction
from typing import Any, Final

from .settings import Limits

RESERVE: Final = 160  # descriptors of a worker for the store, its own files, bodies on their way, and the surplus
SURPLUS: Final = 32  # connections that are still told why they are refused
LEAST: Final = 16  # connections, however few files a process may have open


def within_descriptors(limits: Limits) -> Limits:
    """These limits, with as many connections at most as the process may have files open, less a reserve."""
    most, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if most == resource.RLIM_INFINITY:
        return limits
    return replace(limits, connections=min(limits.connections, max(LEAST, most - RESERVE)))


class LimitedListener(socket.socket):
    """Closes at once what comes when so many connections are open.

    Attributes:
        most: how many connections may be open; each worker counts its own.
    """

    def __init__(self, fileno: int, most: int) -> None:
        super().__init__(fileno=fileno)
        self.most = most
        self._accepted: weakref.WeakSet[socket.socket] = weakref.WeakSet()

    def accept(self) -> tuple[socket.socket, Any]:
        while True:
            one, address = super().accept()
            if len(self._accepted) >= self.most:
                self._accepted = weakref.WeakSet(each for each in self._accepted if each.fileno() >= 0)
            if len(self._accepted) < self.most:
                self._accepted.add(one)
                return one, address
            one.close()

    def __reduce__(self) -> tuple[Any, ...]:
        """How a worker is given it."""
        return _inherited, (reduction.DupFd(self.fileno()), self.most)


def _inherited(descriptor: Any, most: int) -> LimitedListener:
    return LimitedListener(descriptor.detach(), most)
