"""One WebSocket to a server's store, over a blocking socket and without threads (W-2).

One thread at a time makes a call and reads its answer. Meanwhile another thread may send requests without an answer,
such as the end of a wait. An exception from outside in the middle of a call (Ctrl-C, a time-out) breaks the link,
because no thread would read the answer.
"""

from __future__ import annotations

import contextlib
import logging
import math
import re
import socket
import ssl
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from itertools import count
from typing import Final, NamedTuple

import msgspec
from websockets.client import ClientProtocol
from websockets.exceptions import InvalidState
from websockets.frames import Frame, Opcode
from websockets.http11 import Response
from websockets.uri import parse_uri

from ...errors import CallInProgress, InorderError, LogInRefused, StoreError, TooManyLogIns
from ...support.locks import Lock
from ...support.sockets import has_come
from .address import RemoteAddress, connected
from .frames import HEADER, PIECE_MAX, Flag, FrameKind, pieces
from .wire import WireError, decode_error

PATH: Final = "/inorder/v1/store"
PROTOCOL: Final = 1
CALL_BYTES: Final = "call_bytes="
"""Begins a feature of a server, and is followed by the most bytes of a call that it takes; a longer one ends the
connection. Servers of 0.2.0 do not say it."""
SWITCHING_PROTOCOLS, UNAUTHORIZED, FORBIDDEN, TOO_MANY_REQUESTS, SERVICE_UNAVAILABLE = 101, 401, 403, 429, 503
OF_PROXIES: Final = (502, 503, 504)  # answers of a proxy whose server does not answer
DIGITS: Final = re.compile("[0-9]{1,18}")
READ_BYTES: Final = 262_144
CONNECT_SECONDS: Final = 20.0
LOST: Final = (OSError, ssl.SSLError, EOFError)

quiet = logging.Logger("inorder.remote", logging.CRITICAL)


class Lost(Exception):
    """The link is lost: the call may have happened, or not."""


class LostBefore(Lost):
    """The link was lost before the call was sent, so the call has not happened."""


class Hello(NamedTuple):
    """The first message of each side.

    Args:
        protocol: the number of the protocol; the newer side uses the older protocol.
        release: of the side, for errors and logs.
        features: the names of optional features.
        fields: of messages, in the order of their rows.
        program: the name of the client's program; of the server: empty.
        first_handle: the number of the first handle that the server may give.
        store, manager, user: the store's id, the queue manager's name, and the user as which the server knows the
            client; of the client: empty.
        page_messages: see `Store.page_messages`.
        connection: the number of the connection in the server's store.
        resume: of the server: the secret that names this connection; of the client: that of its previous connection,
            which the server ends first; empty: there is none.
    """

    protocol: int
    release: str
    features: list[str]
    fields: list[str]
    program: str = ""
    first_handle: int = 1
    store: str = ""
    manager: str = ""
    user: str = ""
    page_messages: int = 1
    connection: int = 0
    resume: bytes = b""


def call_bytes(features: Sequence[str]) -> float:
    """The most bytes of a call that a server with these features takes; it need not say so."""
    said = [one.removeprefix(CALL_BYTES) for one in features if one.startswith(CALL_BYTES)]
    return min((int(one) for one in said if DIGITS.fullmatch(one)), default=math.inf)


HELLO: Final = msgspec.msgpack.Decoder(Hello)  # made once: see `support.decoders`


class RemoteLink:
    """A connection to a server. Raises: StoreError, it cannot be reached; LogInRefused; TooManyLogIns.

    Attributes:
        hello: the server's first message.
        call_bytes: the most bytes of a call that the server takes.
        has_unit: whether the connection has a unit of work, as the last answer said.
        is_lost: whether it can no longer be used.
        has_asked: whether a call has been sent and not been answered.
    """

    def __init__(self, address: RemoteAddress, hello: Hello) -> None:
        self.address, self.is_lost, self.has_unit = address, False, False
        self.has_asked = False
        self._asked = 0  # the number of the request that `ask` has sent
        self._calling, self._sending = Lock(), Lock()
        self._numbers = count(1)
        self._frames: deque[Frame] = deque()
        uri = parse_uri(f"ws://{address.server}{PATH}")
        self._protocol = ClientProtocol(uri, max_size=HEADER.size + PIECE_MAX, logger=quiet)
        credentials = address.credentials()
        self._socket = connected(address, credentials, CONNECT_SECONDS)
        try:
            self._socket.settimeout(CONNECT_SECONDS)  # for each answer until the connection is made
            self._open(hello, credentials.token)
            self._socket.settimeout(None)
        except Lost as error:
            self.drop()
            raise StoreError(f"{address} closed the connection before it was established") from error
        except BaseException:
            self.drop()
            raise

    def _open(self, hello: Hello, token: str | None) -> None:
        request = self._protocol.connect()
        if token is not None:
            request.headers["Authorization"] = f"Bearer {token}"
        self._protocol.send_request(request)
        self._flush()
        self._read_response()
        self._send(FrameKind.HELLO, 0, msgspec.msgpack.encode(hello))
        kind, _, payload = self._next()
        if kind == FrameKind.ERROR:
            raise decode_error(payload)
        if kind != FrameKind.HELLO:
            raise WireError(f"{self.address} did not begin with a hello")
        try:
            self.hello = HELLO.decode(payload)
        except msgspec.MsgspecError as error:
            raise WireError(f"{self.address} sent a hello that cannot be read") from error
        self.call_bytes = call_bytes(self.hello.features)
        if self.hello.protocol != PROTOCOL:
            raise StoreError(
                f"{self.address} is of release {self.hello.release} and speaks protocol {self.hello.protocol}; this "
                f"release speaks {PROTOCOL}"
            )

    def _read_response(self) -> None:
        """Reads the answer to the upgrade. Raises: as the class, for an answer that is not one."""
        events: list[object] = []
        while not events and self._protocol.handshake_exc is None:
            self._receive()
            events = list(self._protocol.events_received())
        answer = events[0] if events else None
        status = answer.status_code if isinstance(answer, Response) else 0
        body = bytes(answer.body or b"") if isinstance(answer, Response) else b""
        if status != SWITCHING_PROTOCOLS:
            raise refusal(self.address, status, body)
        self._frames.extend(event for event in events[1:] if isinstance(event, Frame))
        if self._protocol.handshake_exc is not None:
            raise StoreError(f"{self.address} answered, but not as a server of inorder does")

    # --- calls

    def call(
        self,
        payload: bytes,
        on_event: Callable[[], object] | None = None,
        *,
        kind: FrameKind = FrameKind.CALL,
        number: int | None = None,
    ) -> tuple[int, bytes]:
        """Sends a call and returns the kind and the payload of its answer.

        Args:
            on_event: called for each event that the server sends before the answer. If it raises, the call ends, and
                raises the same.

        Raises: Lost; LostBefore, the call has not happened; CallInProgress, a finalizer or a signal handler calls in
        the middle of a call.
        """
        if self._calling.is_mine:
            raise CallInProgress("a call was made from inside another one, by a finalizer or a signal handler")
        failures: list[Exception] = []

        def tell() -> None:
            if on_event is None or failures:
                return
            try:
                on_event()
            except Exception as error:  # noqa: BLE001 - raised after the answer
                failures.append(error)
                self.say(FrameKind.END_WAITS)

        with self._calling:
            number = next(self._numbers) if number is None else number
            try:
                self._notice_end()
                self._send(kind, number, payload)
                self.has_asked = True
                answer = self._answer(number, tell)
            except BaseException as error:
                self.drop()
                if failures and isinstance(error, Lost):
                    raise failures[0] from error
                raise
            finally:
                self.has_asked = False
        if failures:
            raise failures[0]
        return answer

    def ask(self, kind: FrameKind) -> None:
        """Sends a request of a special kind, also while a call waits, and returns after its answer. Raises: Lost."""
        self._asked = number = next(self._numbers)
        self._send(kind, number, b"")
        with self._calling:
            if self._asked:  # otherwise the call in progress has read the answer
                self._answer(number)

    def say(self, kind: FrameKind) -> None:
        """Sends a request without an answer, also while a call waits. Raises: Lost."""
        self._send(kind, 0, b"")

    def _answer(self, number: int, on_event: Callable[[], object] = bool) -> tuple[int, bytes]:
        while True:
            kind, answered, payload = self._next()
            if not answered and kind == FrameKind.ERROR:
                raise Lost from decode_error(payload)  # the reason why the server ends the connection
            if answered == number and kind == FrameKind.EVENT:
                on_event()
            elif answered == number:
                return kind, payload
            elif answered == self._asked:
                self._asked = 0

    # --- frames

    def _send(self, kind: FrameKind, number: int, payload: bytes) -> None:
        """Sends a whole payload. Raises: LostBefore: the other side cannot have received all of it."""
        with self._sending:
            if self.is_lost:
                raise LostBefore
            try:
                for piece in pieces(kind, number, payload):
                    self._protocol.send_binary(piece)
                    self._flush()
            except (Lost, InvalidState) as error:
                raise LostBefore from error

    def _notice_end(self) -> None:
        """Reads the data since the last answer. Raises: LostBefore, the server has ended the connection."""
        if self.is_lost or not has_come(self._socket):
            return
        self._socket.settimeout(0)
        try:
            self._receive()
        except Lost as error:
            if not isinstance(error.__cause__, BlockingIOError | ssl.SSLWantReadError):
                raise LostBefore from error
        finally:
            self._socket.settimeout(None)
        self._take_events()
        if any(frame.opcode is Opcode.CLOSE for frame in self._frames):
            raise LostBefore

    def _take_events(self) -> None:
        self._frames.extend(one for one in self._protocol.events_received() if isinstance(one, Frame))
        with self._sending:
            self._flush()  # the answers to pings

    def _next(self) -> tuple[int, int, bytes]:
        """Returns the kind, the number and the whole payload of the next frame except pings."""
        parts: list[bytes] = []
        while True:
            while not self._frames:
                self._receive()
                self._take_events()
            frame = self._frames.popleft()
            if frame.opcode is Opcode.CLOSE:
                raise Lost
            if frame.opcode is not Opcode.BINARY or not frame.fin or len(frame.data) < HEADER.size:
                continue
            kind, flags, _, number = HEADER.unpack_from(frame.data)
            parts.append(bytes(frame.data[HEADER.size :]))
            if not flags & Flag.MORE:
                if kind in (FrameKind.ANSWER, FrameKind.ERROR):
                    self.has_unit = bool(flags & Flag.HAS_UNIT)
                return kind, number, parts[0] if len(parts) == 1 else b"".join(parts)

    def _flush(self) -> None:
        try:
            for data in self._protocol.data_to_send():
                if data:
                    self._socket.sendall(data)
        except LOST as error:
            raise Lost from error

    def _receive(self) -> None:
        try:
            data = self._socket.recv(READ_BYTES)
        except LOST as error:
            raise Lost from error
        if not data:
            raise Lost
        self._protocol.receive_data(data)
        if self._protocol.parser_exc is not None:
            raise Lost from self._protocol.parser_exc

    # --- the end

    def drop(self) -> None:
        """Closes the socket. Harmless when repeated, and in another thread than the one that reads."""
        self.is_lost = True
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        with contextlib.suppress(OSError):
            self._socket.close()


def refusal(address: RemoteAddress, status: int, body: bytes) -> InorderError:
    """Returns the error for an answer that refuses the connection."""
    said = _said(body)
    if status == UNAUTHORIZED:
        how = "give a valid token as token= or in INORDER_TOKEN, or a certificate, or store them with inorder login"
        return LogInRefused(f"{address} refused the log-in: {how}")
    if status == FORBIDDEN:
        return LogInRefused(f"{address} refused the log-in: {said or 'the token or certificate is not valid'}")
    if status == TOO_MANY_REQUESTS:
        return TooManyLogIns(f"{address} refuses log-ins for a while, after too many failed ones: {said}", seconds=0.0)
    if status == SERVICE_UNAVAILABLE and said:
        return StoreError(f"{address} takes no more connections: {said}")
    if status in OF_PROXIES:
        return StoreError(f"{address} answered {status}: a proxy there does not reach the server")
    return StoreError(
        f"{address} answered {status or 'something else than HTTP'}, so it offers no store: an inorder server of a "
        "release after 0.1.0 must answer there"
    )


def _said(body: bytes) -> str:
    """The explanation in a problem of our interface, if the body is one."""
    try:
        found = msgspec.json.decode(body)
    except msgspec.DecodeError:
        return ""
    first = found.get("error", [{}])[0] if isinstance(found, Mapping) else {}
    return str(first.get("message", "")) if isinstance(first, Mapping) else ""
