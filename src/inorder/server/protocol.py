"""HTTP/1.1 by uvicorn and h11, with what they lack: a time for the head of a request, an end of dead peers, and who
has a client certificate. One that counts no more while its connection is open ends the connection.

A connection whose head does not arrive in time is closed: it would be there for ever, and a few thousand of them are
all that a server has. A peer that has gone without a word is noticed by the kernel (keep-alive probes, and a time for
what was sent to be acknowledged), so a get that waits for it ends, and what it would take stays in its place.
"""

from __future__ import annotations

import asyncio
import json
import select
import socket
import sys
from functools import partial
from types import TracebackType
from typing import Any, Final, cast

import h11
from uvicorn.protocols.http.h11_impl import STATUS_PHRASES, H11Protocol

from .app import Factory
from .calls import CERTIFICATE_COUNTS
from .disconnects import IN_ONE_WRITE, IS_GONE
from .problems import Problem, problem
from .renewing import CertifiedConnection, Renewed
from .settings import Limits
from .subjects import subject_of

PROBE_AFTER_SECONDS, PROBE_EVERY_SECONDS, PROBES = 30, 10, 3
UNACKNOWLEDGED_MS: Final = 60_000
LATE_SECONDS: Final = 1.0  # for the request of a connection that is refused: the server stops, or has too many
FAREWELL_SECONDS = 5.0  # for an idle client to close its side, once the server stops
TOO_LARGE: Final = 431
TLS: Final = b"\x16\x03"  # how the hello of a client begins
JOINED_MAX: Final = 65_536  # bytes of a write that is joined with others: to copy more costs more than a write


class Protocol(H11Protocol):
    """One connection."""

    _timer: asyncio.TimerHandle | None = None
    _shown: CertifiedConnection | None = None  # the client certificate

    @property
    def limits(self) -> Limits:
        factory = self.config.app
        assert isinstance(factory, Factory), "uvicorn was configured by running.py"
        return factory.settings.limits

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        joining = Joining(transport)
        super().connection_made(joining)
        self.app_state = {**self.app_state, IN_ONE_WRITE: joining}
        connected = cast("socket.socket", transport.get_extra_info("socket"))
        _watch_peer(connected)
        if hasattr(select, "POLLRDHUP"):  # Linux has it
            self.app_state = {**self.app_state, IS_GONE: partial(_is_gone, transport, connected.fileno())}
        is_late = is_stopping = self.app_state["stopping"].is_set()
        if is_stopping:
            self._refuse(problem("INWB0009E", Connection="close", Retry_After="1"))
        elif len(self.connections) > self.limits.connections:
            is_late, most = True, f"{self.limits.connections:,}"
            self._refuse(problem("INWB0008E", "connections", most, Connection="close", Retry_After="1"))
        else:
            self._show_certificate(transport)
        self._begin_timer(min(LATE_SECONDS, self.limits.head_seconds) if is_late else self.limits.head_seconds)

    def _refuse(self, found: Problem) -> None:
        """Answers each request with this, which closes the connection."""
        self.app = cast("Any", found.response())

    def _show_certificate(self, transport: asyncio.Transport) -> None:
        """Has each request say whose certificate the connection was made with, in the words of ASGI's TLS extension."""
        certificate = transport.get_extra_info("peercert")
        if certificate and isinstance(self.config.ssl, Renewed):
            self._shown = self.config.ssl.shown(transport.get_extra_info("ssl_object"), transport.abort)
            self.app_state = {**self.app_state, CERTIFICATE_COUNTS: self._shown.counts}
        subject = subject_of(certificate) if certificate else None
        if subject is None:
            return
        app = self.app

        async def with_subject(scope: Any, receive: Any, send: Any) -> None:
            scope["extensions"] = {"tls": {"client_cert_name": subject}}
            await app(scope, receive, send)

        self.app = cast("Any", with_subject)

    def data_received(self, data: bytes) -> None:
        if self._shown is not None and not self._shown.counts():
            self.transport.abort()
            return
        super().data_received(data)
        if self.conn.their_state is h11.IDLE and self.conn.trailing_data[0]:
            self._begin_timer(self.limits.head_seconds)
        elif self.conn.their_state is not h11.IDLE:
            self._end_timer()

    def connection_lost(self, exc: Exception | None) -> None:
        self._end_timer()
        if self._shown is not None:
            self._shown.close()
        super().connection_lost(exc)

    def shutdown(self) -> None:
        """The server stops: what waits for messages ends, so that the rest can."""
        self.app_state["stopping"].set()
        super().shutdown()
        if self.transport.is_closing():
            self._await_farewell()

    def _await_farewell(self) -> None:
        """Under TLS the peer has to close its side, too; an idle client does so when it sends the next request."""
        self._end_timer()
        self._timer = self.loop.call_later(FAREWELL_SECONDS, self._leave)

    def _leave(self) -> None:
        if self.transport.get_write_buffer_size():  # it still takes an answer
            self._await_farewell()
        else:
            self.transport.abort()

    def send_400_response(self, msg: str) -> None:
        """Input that h11 cannot read; its error says whether it was too long."""
        error = sys.exc_info()[1]
        is_large = getattr(error, "error_status_hint", 400) == TOO_LARGE
        if is_large:
            found = problem("INWB0006E", f"{self.limits.head:,}")
        else:
            found = problem("INWB0018E", self._why(error, msg))
        if self.conn.our_state not in (h11.IDLE, h11.SEND_RESPONSE):  # an answer is under way
            self.transport.close()
            return
        body = json.dumps({"error": [found.record()]}).encode()
        headers = [
            (b"content-type", b"application/json"),
            (b"content-length", b"%d" % len(body)),
            (b"connection", b"close"),
        ]
        status = found.code if is_large else 400
        events: list[Any] = [
            h11.Response(status_code=status, headers=headers, reason=STATUS_PHRASES[status]),
            h11.Data(data=body),
            h11.EndOfMessage(),
        ]
        for event in events:
            self.transport.write(self.conn.send(event) or b"")
        self.transport.close()

    def _why(self, error: BaseException | None, otherwise: str) -> str:
        """What h11 could not read, in words for who sent it; uvicorn has one text for all of it."""
        if self.conn.trailing_data[0].startswith(TLS):
            return "it starts TLS, which this port does not offer: use http, or serve with --certificate"
        return str(error).partition(": bytearray(")[0] if isinstance(error, h11.RemoteProtocolError) else otherwise

    def _begin_timer(self, seconds: float) -> None:
        if self._timer is None:
            self._timer = self.loop.call_later(seconds, self.transport.close)

    def _end_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


class Joining(asyncio.Transport):
    """A transport: what is written inside of `with` goes out in one write.

    The head of an answer and its body are two writes otherwise, and each wakes the client.
    """

    def __init__(self, transport: asyncio.Transport) -> None:
        super().__init__()
        self._transport = transport
        self._held: list[bytes] | None = None

    def __enter__(self) -> None:
        self._held = []

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._let_go()

    def _let_go(self) -> None:
        held, self._held = self._held, None
        if held:
            self._transport.write(b"".join(held))

    def write(self, data: bytes | bytearray | memoryview) -> None:
        if self._held is not None and len(data) <= JOINED_MAX:
            self._held.append(bytes(data))
            return
        self._let_go()
        self._transport.write(data)

    def close(self) -> None:
        self._let_go()
        self._transport.close()

    def abort(self) -> None:
        self._transport.abort()

    def is_closing(self) -> bool:
        return self._transport.is_closing()

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return self._transport.get_extra_info(name, default)

    def is_reading(self) -> bool:
        return self._transport.is_reading()

    def get_write_buffer_size(self) -> int:
        return self._transport.get_write_buffer_size()

    def pause_reading(self) -> None:
        self._transport.pause_reading()

    def resume_reading(self) -> None:
        self._transport.resume_reading()


def _is_gone(transport: asyncio.Transport, descriptor: int) -> bool:
    """Whether the peer has closed the connection, or its sending half, even behind bytes that nobody has read yet.

    It asks the kernel, so any thread may call it, and it knows as soon as the kernel does.
    """
    asked = select.poll()
    asked.register(descriptor, select.POLLRDHUP)
    is_closed = bool(asked.poll(0))
    return is_closed or transport.is_closing()  # in this order: only a closed one loses its descriptor to another


def _watch_peer(one: socket.socket) -> None:
    """Has the kernel look after a peer that says nothing, and send what is short at once.

    asyncio asks for the latter itself, but only of sockets that were made with the number of the protocol. An answer is
    two writes, and the second would wait some 40 ms for the first to be acknowledged.
    """
    one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    one.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in (
        ("TCP_KEEPIDLE", PROBE_AFTER_SECONDS),
        ("TCP_KEEPINTVL", PROBE_EVERY_SECONDS),
        ("TCP_KEEPCNT", PROBES),
        ("TCP_USER_TIMEOUT", UNACKNOWLEDGED_MS),
    ):
        if hasattr(socket, name):  # some systems lack it
            one.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
