"""WebSockets by uvicorn and websockets, with the client certificate of the connection, and without lines in the log."""

from __future__ import annotations

import logging
from typing import Any, Final

from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

SUBJECT: Final = "certificate_subject"  # in the state of a connection that has a client certificate
SHOWN: Final = "certificate_shown"

quiet = logging.Logger("inorder.server.websockets", logging.ERROR)  # of its own, so that no configuration resets it


class StoreProtocol(WebSocketsSansIOProtocol):
    """A connection after its upgrade."""

    def __init__(self, *given: Any, **more: Any) -> None:
        super().__init__(*given, **more)
        self.logger = self.conn.logger = quiet

    async def run_asgi(self) -> None:
        subject = self.app_state.get(SUBJECT)
        if subject is not None:
            self.scope["extensions"]["tls"] = {"client_cert_name": subject}
        await super().run_asgi()

    def connection_lost(self, exc: Exception | None) -> None:
        shown = self.app_state.get(SHOWN)
        if shown is not None:
            shown.close()
        super().connection_lost(exc)
