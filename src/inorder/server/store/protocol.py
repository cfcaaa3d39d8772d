"""WebSockets by uvicorn and websockets, with the client certificate of the connection, and without lines in the log."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, Final

from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

from ...stores.remote.frames import HEADER, PIECE_MAX
from ..calls import CERTIFIED

SUBJECT: Final = "certificate_subject"  # in the state of a connection that has a client certificate

quiet = logging.Logger("inorder.server.websockets", logging.ERROR)  # of its own, so that no configuration resets it


PROTOCOL: Final = "store_protocol"  # in the state of the request to connect: this object


class StoreProtocol(WebSocketsSansIOProtocol):
    """A connection after its upgrade.

    Attributes:
        take: gets each message as it arrives, None in place of a text; without it messages wait for `receive`.
    """

    def __init__(self, *given: Any, **more: Any) -> None:
        super().__init__(*given, **more)
        self.logger = self.conn.logger = quiet
        self.take: Callable[[bytes | None], object] | None = None

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        wrong = self.conn.handshake_exc
        if wrong is not None and not self.close_sent:  # uvicorn would leave the connection open, without an answer
            self.handshake_complete = self.close_sent = True
            answer = self.conn.reject(400, f"Failed to open a WebSocket connection: {wrong.__cause__ or wrong}.\n")
            self.transport.write(b"".join(self.conn.data_to_send()) or answer.serialize())
            self.transport.close()

    def send_receive_event_to_app(self) -> None:
        if self.take is None:
            super().send_receive_event_to_app()
            return
        parts, self.frames = self.frames, []
        if not self.close_sent:
            self.take(b"".join(parts) if self.curr_msg_data_type == "bytes" else None)

    async def send(self, message: Any) -> None:
        await super().send(message)
        self.handshake_complete |= self.close_sent  # a refusal completes it, too; otherwise uvicorn logs an error

    def takes_directly(self, take: Callable[[bytes | None], object]) -> None:
        """From now on gives each message to `take`, unless some are waiting for `receive`."""
        if self.queue.empty():
            self.take = take

    def send_at_once(self, message: bytes) -> bool:
        """Sends a message, unless it must wait for a slow reader; to a client that has gone it sends nothing.

        Returns: False: it must wait.
        """
        if not self.writable.is_set():
            return False
        if not (self.disconnected or self.close_sent):
            self.conn.send_binary(message)
            self.transport.write(b"".join(self.conn.data_to_send()))
        return True

    def wake(self) -> None:
        """Makes `receive` return, as at the end of the connection."""
        self.queue.put_nowait({"type": "websocket.disconnect", "code": 1005})

    async def run_asgi(self) -> None:
        self.scope["state"][PROTOCOL] = self
        subject = self.app_state.get(SUBJECT)
        if subject is not None:
            self.scope["extensions"]["tls"] = {"client_cert_name": subject}
        await super().run_asgi()

    def connection_lost(self, exc: Exception | None) -> None:
        certified = self.app_state.get(CERTIFIED)
        if certified is not None:
            certified.close()
        super().connection_lost(exc)


SETTINGS: Final[dict[str, Any]] = {
    "ws": StoreProtocol,
    "ws_max_size": HEADER.size + PIECE_MAX,
    "ws_ping_interval": None,
    "ws_per_message_deflate": False,
}
"""The settings with which uvicorn serves WebSockets: no compression, and no pings of its own (W-2)."""
