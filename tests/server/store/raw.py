"""A WebSocket connection to a server's store that can send arbitrary frames and bytes."""

from __future__ import annotations

import socket
from typing import Any

import msgspec
from websockets.client import ClientProtocol
from websockets.frames import Frame, Opcode
from websockets.http11 import Response
from websockets.uri import parse_uri

from inorder.model.message import Message
from inorder.stores.remote.frames import HEADER, FrameKind
from inorder.stores.remote.link import PATH, PROTOCOL, Hello
from inorder.stores.remote.wire import decode_error, encode_call

SECONDS = 50.0


class Raw:
    """A client on the loopback address.

    Attributes:
        response: the server's answer to the upgrade.
    """

    def __init__(self, port: int, token: str | None, path: str = PATH, **headers: str) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), SECONDS)
        self._protocol = ClientProtocol(parse_uri(f"ws://127.0.0.1:{port}{path}"), max_size=None)
        request = self._protocol.connect()
        if token is not None:
            request.headers["Authorization"] = f"Bearer {token}"
        for name, value in headers.items():
            if name in request.headers:
                del request.headers[name]
            request.headers[name] = value
        self._protocol.send_request(request)
        self._flush()
        self._events: list[Any] = []
        found = self._next()
        assert isinstance(found, Response)
        self.response = found

    def __enter__(self) -> Raw:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    def _flush(self) -> None:
        for data in self._protocol.data_to_send():
            if data:
                self._socket.sendall(data)

    def _next(self) -> Any:
        """The next event, or None when the connection has ended."""
        while not self._events:
            try:
                data = self._socket.recv(65536)
            except ConnectionError:
                data = b""
            if data:
                self._protocol.receive_data(data)
            else:
                self._protocol.receive_eof()
            self._events += self._protocol.events_received()
            if not data:
                self._events.append(None)
        return self._events.pop(0)

    # --- sending

    def binary(self, data: bytes) -> None:
        self._protocol.send_binary(data)
        self._flush()

    def text(self, data: bytes) -> None:
        self._protocol.send_text(data)
        self._flush()

    def octets(self, data: bytes) -> None:
        """Sends bytes that need not be a WebSocket frame."""
        self._socket.sendall(data)

    def frame(self, kind: int, payload: bytes = b"", number: int = 1, flags: int = 0) -> None:
        self.binary(HEADER.pack(kind, flags, 0, number) + payload)

    def hello(self, **changes: Any) -> None:
        given = Hello(PROTOCOL, "0", [], list(Message.FIELDS), "raw")._replace(**changes)
        self.frame(FrameKind.HELLO, msgspec.msgpack.encode(given), 0)

    def call(self, verb: str, *arguments: Any, number: int = 1, **keywords: Any) -> None:
        self.frame(FrameKind.CALL, encode_call(verb, arguments, keywords), number)

    # --- receiving

    def answer(self) -> tuple[int, int, bytes]:
        """The kind, number and payload of the next frame, or (0, code, reason) at the end of the connection."""
        found = self._next()
        if found is None:
            return 0, 0, b""
        assert isinstance(found, Frame)
        if found.opcode is Opcode.CLOSE:
            return 0, int.from_bytes(found.data[:2], "big"), bytes(found.data[2:])
        kind, _, _, number = HEADER.unpack_from(found.data)
        return kind, number, bytes(found.data[HEADER.size :])

    def begin(self, **changes: Any) -> Hello:
        """Says hello and returns the server's."""
        self.hello(**changes)
        kind, _, payload = self.answer()
        assert kind == FrameKind.HELLO, decode_error(payload)
        return msgspec.msgpack.decode(payload, type=Hello)

    def ends(self) -> list[str]:
        """Reads to the end of the connection. Returns the classes of the errors that were received."""
        errors: list[str] = []
        while True:
            kind, _, payload = self.answer()
            if kind == 0:
                return errors
            if kind == FrameKind.ERROR:
                errors.append(type(decode_error(payload)).__name__)
