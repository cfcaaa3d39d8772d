"""Answers that are made while they are sent, at the pace of the client."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterable, Coroutine, Mapping
from contextlib import ExitStack
from typing import Any, TypeVar

from starlette.responses import StreamingResponse
from starlette.types import Message, Receive, Scope, Send

from ..problems import Problem

T = TypeVar("T")


class Streamed(StreamingResponse):
    """An answer of unknown length. While it is sent it keeps what it holds, and lets go of it however it ends.

    Args:
        parts: of the body; each is made when the one before is on its way.
        held: is closed at the end.
        seconds: for the client to take a part; then the connection is closed. None: as long as it likes.

    If making a part raises a Problem, as the user may not go on, the connection is closed, too.
    """

    def __init__(
        self,
        parts: AsyncIterable[bytes],
        held: ExitStack,
        *,
        seconds: float | None,
        media_type: str,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(parts, media_type=media_type, headers=headers)
        self._held, self._seconds = held, seconds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        with self._held:
            await super().__call__(scope, receive, send)

    async def stream_response(self, send: Send) -> None:
        async def patiently(message: Message) -> None:
            try:
                await asyncio.wait_for(send(message), self._seconds)
            except asyncio.TimeoutError:
                raise _TooSlow from None

        try:
            await super().stream_response(patiently)
        except (_TooSlow, Problem):
            return  # the answer has no end, so the server closes the connection


class _TooSlow(Exception):
    """The client does not take what is sent."""


async def unless(work: Coroutine[Any, Any, T], *ends: asyncio.Event) -> T | None:
    """What the work returns; None: one of the events came first, and it was cancelled."""
    working = asyncio.ensure_future(work)
    waiting = [asyncio.ensure_future(one.wait()) for one in ends]
    try:
        await asyncio.wait({working, *waiting}, return_when=asyncio.FIRST_COMPLETED)
        return working.result() if working.done() else None
    finally:
        for one in (working, *waiting):  # they are not awaited: in an answer that is cancelled each await is, too
            one.cancel()
            one.add_done_callback(_seen)


def _seen(task: asyncio.Future[Any]) -> None:
    """Its error was raised, or is not wanted any more."""
    if not task.cancelled():
        task.exception()
