"""A client of event streams that runs in the application's process and can read a stream before it ends."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
from collections.abc import AsyncIterator, Mapping
from typing import Any, NamedTuple

from starlette.types import ASGIApp
from tests.server.conftest import PORT, TOKEN


class Event(NamedTuple):
    """One event; a heartbeat has no kind."""

    kind: str
    cursor: str
    data: Any


def parsed(block: str) -> Event:
    """Parses an event as HTML specifies, if no field repeats. The data of the console's events is plain text."""
    fields = dict(line.partition(": ")[::2] for line in block.split("\n"))
    data = fields.get("data", "null")
    shown = json.loads(data) if data[:1] in ("{", "n") else data
    return Event(fields.get("event", ""), fields.get("id", ""), shown)


class Listener:
    def __init__(self, app: ASGIApp, path: str, query: str, headers: Mapping[str, str | None]) -> None:
        self._sent: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self._left = asyncio.Event()
        self._asked = False
        self.takes = asyncio.Event()  # while cleared, the client reads nothing
        self.takes.set()
        self._text = ""
        self.status = 0
        self.is_over = False
        credentials = base64.b64encode(f"me:{TOKEN}".encode()).decode()
        given = {"host": f"localhost:{PORT}", "authorization": f"Basic {credentials}"} | dict(headers)
        scope = {
            "type": "http", "asgi": {"version": "3.0", "spec_version": "2.3"}, "http_version": "1.1", "method": "GET",
            "scheme": "http", "path": path, "raw_path": path.encode(), "root_path": "", "query_string": query.encode(),
            "headers": [(name.lower().encode(), value.encode()) for name, value in given.items() if value is not None],
            "client": ("127.0.0.1", 1), "server": ("localhost", PORT),
        }  # fmt: skip
        self.task = asyncio.ensure_future(app(scope, self._receive, self._send))

    async def _receive(self) -> dict[str, Any]:
        if self._asked:
            await self._left.wait()
            return {"type": "http.disconnect"}
        self._asked = True
        return {"type": "http.request", "body": b"", "more_body": False}

    async def _send(self, message: Any) -> None:
        await self.takes.wait()
        await self._sent.put(message)

    async def next(self) -> Event | None:
        """The next block, or None at the end of the stream."""
        while "\n\n" not in self._text:
            message = await self._sent.get()
            if message["type"] == "http.response.start":
                self.status = message["status"]
                continue
            self._text += message["body"].decode()
            if not message.get("more_body"):
                self.is_over = True
                return None
        block, _, self._text = self._text.partition("\n\n")
        return parsed(block)

    async def event(self) -> Event:
        """The next event; heartbeats are skipped."""
        while True:
            found = await self.next()
            assert found is not None, "the stream has ended"
            if found.kind:
                return found

    async def rest(self) -> str:
        """Reads to the end of the stream. Returns the text after the last complete block."""
        while await self.next() is not None:
            pass
        return self._text

    async def leave(self) -> None:
        """Disconnects."""
        self._left.set()
        await self.task


@contextlib.asynccontextmanager
async def listening(app: ASGIApp, path: str, query: str = "", **headers: str | None) -> AsyncIterator[Listener]:
    """A client that disconnects after the block. It sends the launch token unless `authorization` says otherwise."""
    one = Listener(app, path, query, {name.replace("_", "-"): value for name, value in headers.items()})
    try:
        yield one
    finally:
        one.takes.set()
        await one.leave()
