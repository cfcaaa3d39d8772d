"""A web application without a framework: takes orders over HTTP and processes them, in one event loop.

Any ASGI server runs it: `uvicorn web_app:app`, with any number of workers. ORDERS names the store: a file, or the URL
of a PostgreSQL database. FastAPI and Starlette make such applications, too: docs/how-to/web.md.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from inorder import NoMessageAvailable, aio

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
WORKERS = 20  # tasks: while they wait they need neither a thread nor a connection


class Orders:
    """The application."""

    def __init__(self, store: str) -> None:
        self.store = store

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self.live(receive, send)
        elif (scope["method"], scope["path"]) == ("POST", "/orders"):
            body = (await receive())["body"]
            put = await self.qm.put("ORDERS", body)  # on disk when this returns
            await answer(send, 202, put.message_id.hex().encode())
        elif scope["path"] == "/price":
            try:
                price = await self.qm.request("PRICES", scope["query_string"], timeout=5)
                await answer(send, 200, price.body)
            except NoMessageAvailable:
                await answer(send, 504, b"nobody knows the price")
        else:
            await answer(send, 404, b"not found")

    async def live(self, receive: Receive, send: Send) -> None:
        """Runs from the start of a server's process to its end, so that a forked process makes its own connections."""
        assert (await receive())["type"] == "lifespan.startup"
        async with aio.connect(self.store) as self.qm:
            for queue in ("ORDERS", "DONE", "PRICES"):
                await self.qm.create_queue(queue, exist_ok=True)
            workers = [asyncio.create_task(self.work()) for _ in range(WORKERS)]
            await send({"type": "lifespan.startup.complete"})
            await receive()
            for worker in workers:
                worker.cancel()  # its unit of work is backed out: the order returns to its place
            await asyncio.gather(*workers, return_exceptions=True)
        await send({"type": "lifespan.shutdown.complete"})

    async def work(self) -> None:
        """Processes orders, each once, even if it is cancelled or killed."""
        while True:
            async with self.qm.unit_of_work():
                try:
                    order = await self.qm.get("ORDERS", wait=60)
                except NoMessageAvailable:
                    continue
                await self.qm.put("DONE", b"done: " + order.body)


async def answer(send: Send, status: int, body: bytes) -> None:
    """Sends the whole response."""
    await send({"type": "http.response.start", "status": status, "headers": [(b"content-type", b"text/plain")]})
    await send({"type": "http.response.body", "body": body})


app = Orders(os.environ.get("ORDERS", "orders.db"))
