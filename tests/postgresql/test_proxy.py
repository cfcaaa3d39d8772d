"""The proxy: what it passes, cuts, holds back and counts, between sockets of this test."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator

import pytest
from benchmarks.servers import LOOPBACK
from tests.postgresql.proxy import Proxy, Way
from tests.support import Call

SECONDS = 20.0


class Wire:
    """A proxy in front of a door, and connections through it."""

    def __init__(self, proxy: Proxy, door: socket.socket) -> None:
        self.proxy, self._door = proxy, door
        self.client, self.server = self.connected()

    def connected(self) -> tuple[socket.socket, socket.socket]:
        client = socket.create_connection((LOOPBACK, self.proxy.port), SECONDS)
        server, _ = self._door.accept()
        server.settimeout(SECONDS)
        return client, server


@pytest.fixture
def wire() -> Iterator[Wire]:
    with socket.create_server((LOOPBACK, 0)) as door, Proxy(door.getsockname()[1]) as proxy:
        door.settimeout(SECONDS)
        one = Wire(proxy, door)
        yield one
        one.client.close()
        one.server.close()


def everything(end: socket.socket) -> bytes:
    """What comes until the end."""
    return b"".join(iter(lambda: end.recv(100), b""))


def test_bytes_pass_both_ways_and_are_counted(wire: Wire) -> None:
    wire.client.sendall(b"question")
    assert wire.server.recv(100) == b"question"
    wire.server.sendall(b"answer")
    wire.server.close()
    assert everything(wire.client) == b"answer"
    wire.client.close()
    assert wire.proxy.passed == {"to server": 8, "to client": 6}


@pytest.mark.parametrize("way", ["to server", "to client"])
@pytest.mark.parametrize("count", [0, 1, 4, 5])
def test_it_cuts_after_so_many_bytes(wire: Wire, way: Way, count: int) -> None:
    source, sink = (wire.client, wire.server) if way == "to server" else (wire.server, wire.client)
    source.sendall(b"before")
    assert sink.recv(6) == b"before"
    wire.proxy.cut_after(way, count)
    source.sendall(b"12345")
    assert everything(sink) == b"12345"[:count]
    assert everything(source) == b""
    again, server = wire.connected()
    with again, server:
        again.sendall(b"1234567")
        assert server.recv(100) == b"1234567"


def test_what_is_frozen_passes_once_it_thaws(wire: Wire) -> None:
    wire.proxy.freeze()
    wire.client.sendall(b"late")
    call = Call(lambda: wire.server.recv(100))
    wire.server.sendall(b"early")
    assert wire.proxy.passed == {"to server": 0, "to client": 0}
    assert not call.done
    wire.proxy.thaw()
    assert call.result() == b"late"
    assert wire.client.recv(100) == b"early"


def test_it_takes_its_time(wire: Wire) -> None:
    wire.proxy.delay_seconds = 0.05
    start = time.monotonic()
    wire.client.sendall(b"slow")
    assert wire.server.recv(100) == b"slow"
    assert time.monotonic() - start >= 0.05


def test_who_is_not_there_is_an_end_at_once(wire: Wire) -> None:
    with socket.create_server((LOOPBACK, 0)) as gone:
        port = gone.getsockname()[1]
    with Proxy(port) as proxy, socket.create_connection((LOOPBACK, proxy.port), SECONDS) as client:
        assert everything(client) == b""
