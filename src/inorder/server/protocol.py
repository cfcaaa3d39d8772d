"""HTTP/1.1 by uvicorn and h11. It adds a time limit for the head of a request, the detection of dead peers, and client
certificates. A connection ends when its client certificate is no longer valid.

A connection whose head does not arrive in time is closed, because a server can only have a few thousand of them. The
kernel detects a peer that has vanished: it sends keep-alive probes, and limits the time for acknowledgements. Then a
get that waits for the peer ends, and its message stays in its place.
"""

from __future__ import annotations

import asyncio
import json
import select
import socket
import sys
from functools import partial
from typing import Any, Final, cast

import h11
from uvicorn.protocols.http.h11_impl import STATUS_PHRASES, H11Protocol

from ..support.sockets import watch_peer
from .app import Factory
from .calls import CERTIFIED
from .disconnects import IN_ONE_WRITE, IS_GONE
from .problems import Problem, problem
from .renewing import CertifiedConnection, Renewed
from .settings import Limits
from .store.protocol import SUBJECT
from .subjects import subject_of

LATE_SECONDS: Final = 1.0  # for the request on a connection that the server will refuse
FAREWELL_SECONDS = 5.0  # for an idle client to close its side after the server stops
TOO_LARGE: Final = 431
TLS: Final = b"\x16\x03"  # the first bytes of a client's hello
JOINED_MAX: Final = 65_536  # bytes of a write that is joined with others; a copy of more bytes costs more than a write


class Protocol(H11Protocol):
    """A connection."""

    _timer: asyncio.TimerHandle | None = None
    _shown: CertifiedConnection | None = None  # the client certificate

    @property
    def limits(self) -> Limits:
        factory = self.config.app
        assert isinstance(factory, Factory), "uvicorn was configured by running.py"
        return factory.settings.limits

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        joining = Joining(transport)
        super().connection_made(cast("asyncio.Transport", joining))
        self.app_state = {**self.app_state, IN_ONE_WRITE: joining}
        connected = cast("socket.socket", transport.get_extra_info("socket"))
        watch_peer(connected)
        if hasattr(select, "POLLRDHUP"):  # on Linux
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
        """Answers each request with this problem, and closes the connection."""
        self.app = cast("Any", found.response())

    def _show_certificate(self, transport: asyncio.Transport) -> None:
        """Passes the client certificate to each request, in ASGI's TLS extension."""
        certificate = transport.get_extra_info("peercert")
        if certificate and isinstance(self.config.ssl, Renewed):
            self._shown = self.config.ssl.shown(transport.get_extra_info("ssl_object"), transport.abort)
            self.app_state = {**self.app_state, CERTIFIED: self._shown}
        subject = subject_of(certificate) if certificate else None
        if subject is None:
            return
        self.app_state = {**self.app_state, SUBJECT: subject}
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
        """Ends the waits for messages, because the server stops."""
        self.app_state["stopping"].set()
        super().shutdown()
        if self.transport.is_closing():
            self._await_farewell()

    def _await_farewell(self) -> None:
        """Limits the time for the peer to close TLS, too. An idle client would only do so with its next request."""
        self._end_timer()
        self._timer = self.loop.call_later(FAREWELL_SECONDS, self._leave)

    def _leave(self) -> None:
        if self.transport.get_write_buffer_size():  # the connection can still carry an answer
            self._await_farewell()
        else:
            self.transport.abort()

    def send_400_response(self, msg: str) -> None:
        """Answers input that h11 cannot read. The error tells whether it was too long."""
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
        """The reason why h11 could not read a request, for its sender. Uvicorn has one text for all reasons."""
        if self.conn.trailing_data[0].startswith(TLS):
            return "it starts TLS, which this port does not offer: use http, or serve with --certificate"
        return str(error).partition(": bytearray(")[0] if isinstance(error, h11.RemoteProtocolError) else otherwise

    def handle_websocket_upgrade(self, event: h11.Request) -> None:
        """Leaves the connection to the protocol of WebSockets, with its client certificate."""
        self._end_timer()
        super().handle_websocket_upgrade(event)

    def _begin_timer(self, seconds: float) -> None:
        if self._timer is None:
            self._timer = self.loop.call_later(seconds, self.transport.close)

    def _end_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


class Joining:
    """A transport that joins the writes inside a `with` block.

    Otherwise the head and the body of an answer are two writes, and each wakes the client.
    """

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        self._held: list[bytes] | None = None

    def __enter__(self) -> None:
        self._held = []

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        self._let_go()

    def _let_go(self) -> None:
        held, self._held = self._held, None
        if held:
            self._transport.write(b"".join(held))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def write(self, data: bytes | bytearray | memoryview) -> None:
        if self._held is not None and len(data) <= JOINED_MAX:
            self._held.append(bytes(data))
            return
        self._let_go()
        self._transport.write(data)

    def close(self) -> None:
        self._let_go()
        self._transport.close()


def _is_gone(transport: asyncio.Transport, descriptor: int) -> bool:
    """Whether the peer has closed the connection, or its sending half, even if there are still unread bytes.

    It asks the kernel. So any thread may call it, and its answer is up to date.
    """
    asked = select.poll()
    asked.register(descriptor, select.POLLRDHUP)
    is_closed = bool(asked.poll(0))
    return is_closed or transport.is_closing()  # in this order: a closed one may lose its descriptor
