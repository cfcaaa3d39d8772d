"""The listening socket of a worker. It limits connections so that enough file descriptors are left for the store.

It counts connections when it accepts them, because a client that only connects, and never begins TLS or a request, uses
a descriptor of this process, too.
"""

from __future__ import annotations

import resource
import socket
import weakref
from dataclasses import replace
from multiprocessing import reduction
from typing import Any, Final

from .settings import Limits

RESERVE: Final = 160  # descriptors of a worker for the store, its own files, bodies in transit, and the surplus
SURPLUS: Final = 32  # connections that get an answer with the reason why they are refused
LEAST: Final = 16  # connections, however few files a process may have open


def within_descriptors(limits: Limits) -> Limits:
    """The limits, with no more connections than the process may have open files, minus a reserve."""
    most, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if most == resource.RLIM_INFINITY:
        return limits
    return replace(limits, connections=min(limits.connections, max(LEAST, most - RESERVE)))


class LimitedListener(socket.socket):
    """Closes a new connection at once if too many are open.

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
        """Passes the socket to a worker process."""
        return _inherited, (reduction.DupFd(self.fileno()), self.most)


def _inherited(descriptor: Any, most: int) -> LimitedListener:
    return LimitedListener(descriptor.detach(), most)
