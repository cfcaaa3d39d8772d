"""A proxy between a client and a server that a test can cut, at once or after a number of bytes, or freeze."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable
from types import TracebackType
from typing import Literal

from benchmarks.servers import LOOPBACK

BLOCK = 65536

Way = Literal["to server", "to client"]


class Proxy:
    """Forwards connections to a port of the loopback until it is closed.

    Args:
        target: the server's port.
    """

    def __init__(self, target: int) -> None:
        self.passed: dict[Way, int] = {"to server": 0, "to client": 0}  # bytes, of all connections
        self.waiting = 0  # connections that arrived while it was frozen
        self._target = target
        self._left: dict[Way, int | None] = {"to server": None, "to client": None}
        self._lock = threading.Lock()  # guards the two dictionaries, and the ends
        self._flows = threading.Event()
        self._flows.set()
        self._ends: list[tuple[socket.socket, socket.socket]] = []  # client's end, server's end
        self._untold: set[socket.socket] = set()  # ends of servers that are not told of the client's end
        self._is_quiet = False
        self._threads: list[threading.Thread] = []
        self._door = socket.create_server((LOOPBACK, 0))
        self.port: int = self._door.getsockname()[1]
        self._run(self._accept)

    def __enter__(self) -> Proxy:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def cut(self) -> None:
        """Cuts all connections now; new ones are accepted."""
        with self._lock:
            ends, self._ends = self._ends, []
            self._left = {"to server": None, "to client": None}
        for pair in ends:
            for end in pair:
                _end(end)

    def abandon(self) -> None:
        """Cuts only the clients' ends: the server notices at the next `cut` or `close`."""
        with self._lock:
            ends = list(self._ends)
            self._untold.update(server for _, server in ends)
            self._left = {"to server": None, "to client": None}
        for client, _ in ends:
            _end(client)

    def cut_after(self, way: Way, count: int, *, quietly: bool = False) -> None:
        """Cuts all connections, once, when `count` more bytes have passed this way; 0: at the next byte.

        Args:
            quietly: cuts only the clients' ends, as `abandon` does.
        """
        with self._lock:
            self._left[way], self._is_quiet = count, quietly

    def freeze(self) -> None:
        """Forwards nothing, and accepts no connection, until `thaw`; both ends stay open."""
        self._flows.clear()

    def thaw(self) -> None:
        """Ends `freeze`; forwards the data that arrived meanwhile."""
        self._flows.set()

    def close(self) -> None:
        """Cuts all connections, and accepts no more."""
        self.thaw()
        _end(self._door)
        self._threads[0].join()  # so that no connection is accepted after the cut
        self.cut()
        for thread in self._threads:
            thread.join()

    def _run(self, target: Callable[..., None], *arguments: object) -> None:
        thread = threading.Thread(target=target, args=arguments, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):  # closed
            while True:
                client, _ = self._door.accept()
                self.waiting += not self._flows.is_set()
                self._flows.wait()
                try:
                    server = socket.create_connection((LOOPBACK, self._target))
                except ConnectionRefusedError:
                    _end(client)
                    continue
                for end in (client, server):
                    end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                with self._lock:
                    self._ends.append((client, server))
                self._run(self._pass, "to server", client, server)
                self._run(self._pass, "to client", server, client)

    def _pass(self, way: Way, source: socket.socket, sink: socket.socket) -> None:
        with contextlib.suppress(OSError):  # cut, or the other end is gone
            while data := source.recv(BLOCK):
                self._flows.wait()
                with self._lock:
                    left = self._left[way]
                    data = data[:left]
                    self.passed[way] += len(data)
                    self._left[way] = None if left is None else left - len(data)
                sink.sendall(data)
                if left is not None and left <= len(data):
                    (self.abandon if self._is_quiet else self.cut)()
        with contextlib.suppress(OSError):  # also after a reset, as by a program that was killed
            if sink not in self._untold:
                sink.shutdown(socket.SHUT_WR)


def _end(end: socket.socket) -> None:
    with contextlib.suppress(OSError):  # not connected any more
        end.shutdown(socket.SHUT_RDWR)
    end.close()
