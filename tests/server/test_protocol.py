"""Connections of a worker: incomplete heads, invalid requests, too many connections, stops, joined writes."""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import json
import os
import signal
import ssl
import sys
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest
from tests.helpers.cutting import ended
from tests.helpers.support import LIMIT_SECONDS
from tests.server.conftest import Served, alive
from uvicorn import Config
from uvicorn.server import ServerState

from inorder.server import Limits, certificates, protocol
from inorder.server.app import Factory
from inorder.server.protocol import JOINED_MAX, Joining, Protocol
from inorder.server.stopping import set_by_signals

Address = tuple[str, int]
HEALTH = b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n"


@contextlib.asynccontextmanager
async def listening(served: Served, limits: Limits, **tls: object) -> AsyncIterator[tuple[Address, asyncio.Event]]:
    """Serves connections as a worker does. Yields the address, and the event that is set when the worker stops."""
    factory = Factory(replace(served.settings, limits=limits))
    config = Config(factory, factory=True, http=Protocol, ws="none", lifespan="off", log_config=None)
    config.load()
    state, stopping = ServerState(), asyncio.Event()
    server = await asyncio.get_running_loop().create_server(
        lambda: Protocol(config=config, server_state=state, app_state={"stopping": stopping}),
        "127.0.0.1",
        0,
        **cast("Any", tls),
    )
    try:
        async with alive(cast("Any", config.loaded_app)):
            yield server.sockets[0].getsockname(), stopping
    finally:
        server.close()
        for one in list(state.connections):
            one.shutdown()
        await eventually(lambda: not state.connections)
        await server.wait_closed()


async def eventually(is_so: Callable[[], bool]) -> None:
    until = time.monotonic() + LIMIT_SECONDS
    while not is_so():
        assert time.monotonic() < until
        await asyncio.sleep(0.001)


async def answer_of(reader: asyncio.StreamReader) -> tuple[int, bytes]:
    """The status and body of the next answer."""
    head = await reader.readuntil(b"\r\n\r\n")
    length = int(next(line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length"))[15:])
    return int(head.split()[1]), await reader.readexactly(length)


PART = b"GET /health HTTP/1.1\r\nHost: local"


@pytest.mark.parametrize(("before", "begun"), [(b"", b""), (b"", PART), (HEALTH, PART)])
async def test_a_request_head_that_does_not_arrive_in_time_ends_the_connection(
    served: Served, before: bytes, begun: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with listening(served, Limits(head_seconds=600)) as (address, _):
        if not before:
            monkeypatch.setattr(Protocol, "limits", Limits(head_seconds=0.02))
        reader, writer = await asyncio.open_connection(*address)
        if before:
            writer.write(before)
            assert (await answer_of(reader))[0] == 200
            monkeypatch.setattr(Protocol, "limits", Limits(head_seconds=0.02))
        writer.write(begun)
        assert await reader.read() == b""
        writer.close()


# The bytes sent, and a word of the answer.
NO_REQUESTS: list[tuple[bytes, str]] = [
    (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(40), "TLS"),
    (b"HELLO\r\n\r\n", "illegal request line"),
    (b"GET /health HTTP/1.1\r\n\r\n", "Host"),
    (b"GET /health HTTP/1.1\r\nHost: localhost\r\nHost: localhost\r\n\r\n", "Host"),
    (b"GET /health HTTP/1.1\r\nHost: localhost\r\nno colon\r\n\r\n", "illegal header line"),
    (
        b"POST /health HTTP/1.1\r\nHost: localhost\r\nContent-Length: 60\r\nTransfer-Encoding: chunked\r\n\r\n"
        b"1\r\na\r\n0\r\n\r\nGET /ready HTTP/1.1\r\nHost: localhost\r\n\r\n",
        "Content-Length and Transfer-Encoding",
    ),
]


@pytest.mark.parametrize(("sent", "word"), NO_REQUESTS, ids=[one[1] for one in NO_REQUESTS])
async def test_an_invalid_request_gets_one_error_and_ends_the_connection(
    served: Served, sent: bytes, word: str
) -> None:
    async with listening(served, Limits()) as (address, _):
        reader, writer = await asyncio.open_connection(*address)
        writer.write(sent)
        status, body = await answer_of(reader)
        (error,) = json.loads(body)["error"]
        assert (status, error["msgId"], word in error["message"]) == (400, "INWB0018E", True), error["message"]
        assert await reader.read() == b"", "nothing of what was behind it is answered"
        writer.close()


async def test_a_slow_body_is_not_taken_for_a_slow_head(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    loop, timers = asyncio.get_running_loop(), list[asyncio.TimerHandle]()
    call_later = loop.call_later

    def noted(seconds: float, *given: Any, **named: Any) -> asyncio.TimerHandle:
        timer = call_later(seconds, *given, **named)
        if seconds == 4_321:
            timers.append(timer)
        return timer

    monkeypatch.setattr(loop, "call_later", noted)
    async with listening(served, Limits(head_seconds=4_321)) as (address, _):
        reader, writer = await asyncio.open_connection(*address)
        writer.write(b"POST /health HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\n\r\n")
        assert (await answer_of(reader))[0] == 405
        assert [one.cancelled() for one in timers] == [True], "the head has come, the body has not"
        writer.write(b"x")
        writer.write(HEALTH)
        assert (await answer_of(reader))[0] == 200
        writer.close()


async def test_more_connections_than_the_server_takes_are_refused(served: Served) -> None:
    async with listening(served, Limits(connections=1)) as (address, _):
        first, holding = await asyncio.open_connection(*address)
        holding.write(HEALTH)
        assert (await answer_of(first))[0] == 200
        second, surplus = await asyncio.open_connection(*address)
        surplus.write(HEALTH)
        status, body = await answer_of(second)
        assert (status, json.loads(body)["error"][0]["messageId"]) == (503, "INWB0008E")
        assert await second.read() == b""
        surplus.close()
        holding.write(HEALTH)
        assert (await answer_of(first))[0] == 200
        holding.close()


@pytest.mark.skipif(sys.version_info < (3, 11), reason="asyncio does not say there how long TLS waits for the peer")
async def test_a_stop_does_not_wait_for_the_tls_shutdown_of_an_idle_client(
    served: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Clients that keep connections for later read nothing meanwhile, so they do not see the end of TLS."""
    monkeypatch.setattr(protocol, "FAREWELL_SECONDS", 0.01)
    made = certificates.make(tmp_path, ["localhost"])
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(made.certificate, made.key)
    client = http.client.HTTPSConnection("127.0.0.1", context=ssl._create_unverified_context(), timeout=LIMIT_SECONDS)

    def asked(port: int) -> bytes:
        client.port = port
        client.request("GET", "/health")
        return client.getresponse().read()

    async with listening(served, Limits(), ssl=context, ssl_shutdown_timeout=3_600) as (address, _):
        assert await asyncio.to_thread(asked, address[1]) == b'{"status":"ok"}'
    client.close()


async def test_a_stop_sets_the_stopping_event_and_closes_idle_connections(served: Served) -> None:
    async with listening(served, Limits()) as (address, stopping):
        reader, writer = await asyncio.open_connection(*address)
        writer.write(HEALTH)
        await answer_of(reader)
    assert stopping.is_set()
    assert await reader.read() == b""
    writer.close()


async def test_a_connection_accepted_while_the_server_stops_gets_an_error_and_is_closed(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was accepted before the stop, so the client may have sent a request: it learns that nothing was done."""

    async with listening(served, Limits(head_seconds=600)) as (address, stopping):
        reader, writer = await asyncio.open_connection(*address)
        writer.write(HEALTH)
        assert (await answer_of(reader))[0] == 200
        stopping.set()
        monkeypatch.setattr(protocol, "LATE_SECONDS", 600.0)
        late, asking = await asyncio.open_connection(*address)
        asking.write(HEALTH)
        status, body = await answer_of(late)
        assert (status, json.loads(body)["error"][0]["messageId"]) == (503, "INWB0009E")
        assert await late.read() == b""
        monkeypatch.setattr(protocol, "LATE_SECONDS", 0.02)
        silent, idle = await asyncio.open_connection(*address)
        assert await silent.read() == b"", "it holds up the end"
        for one in (writer, asking, idle):
            one.close()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_sets_the_stopping_event_and_still_reaches_its_handler(number: signal.Signals) -> None:
    handled: list[int] = []
    before = signal.signal(number, lambda number, frame: handled.append(number))

    async def inside() -> None:
        mine, stopping = signal.getsignal(number), asyncio.Event()
        with set_by_signals(stopping):
            os.kill(os.getpid(), number)
            await stopping.wait()
            assert handled == [number], "who handled it before does so still"
        assert signal.getsignal(number) is mine

    try:
        ended(inside())
    finally:
        signal.signal(number, before)


async def test_a_signal_without_a_python_handler_is_left_unchanged() -> None:
    before = signal.getsignal(signal.SIGTERM)
    with set_by_signals(asyncio.Event()):
        assert signal.getsignal(signal.SIGTERM) is before


class Writes(asyncio.Transport):
    """A transport that keeps the data written to it."""

    def __init__(self) -> None:
        super().__init__()
        self.written: list[bytes] = []
        self.is_closed = False

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.written.append(bytes(data))

    def close(self) -> None:
        self.is_closed = True


def test_pieces_written_together_are_sent_in_one_write() -> None:
    below = Writes()
    transport = Joining(below)
    transport.write(b"1")
    with transport:
        for piece in (b"head", b"", b"body", b""):
            transport.write(piece)
        assert below.written == [b"1"]
    transport.write(b"2")
    assert below.written == [b"1", b"headbody", b"2"]


def test_a_long_body_is_not_copied_and_a_close_sends_buffered_data() -> None:
    below, long = Writes(), bytes(JOINED_MAX + 1)
    transport = Joining(below)
    with transport:
        transport.write(b"head")
        transport.write(long)
        assert below.written == [b"head", long]
    with transport:
        transport.write(b"last")
        transport.close()
        assert below.written[2:] == [b"last"]
        assert below.is_closed
    assert len(below.written) == 3
