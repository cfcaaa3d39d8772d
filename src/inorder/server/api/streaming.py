"""Answers that the server makes while it sends them, at the pace of the client."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterable, Coroutine, Mapping
from contextlib import ExitStack
from typing import Any, TypeVar

from starlette.responses import StreamingResponse
from starlette.types import Message, Receive, Scope, Send

from ...errors import InorderError
from ..logs import LOGGER
from ..problems import Problem

log = logging.getLogger(LOGGER)
T = TypeVar("T")


class Streamed(StreamingResponse):
    """An answer of unknown length. It holds resources while it is sent, and releases them at its end in any case.

    Args:
        parts: the parts of the body; each is made after the previous one was sent.
        held: the resources; closed at the end.
        seconds: for the client to take a part; afterwards the connection is closed. None: no limit.

    A Problem from `parts`, such as a lost authority, also closes the connection. So does an error of the queue manager,
    such as that of a claim that was given back meanwhile.
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
            return  # without the end of the answer, the server closes the connection
        except InorderError as error:
            log.warning("an answer was broken off: %s", error)


class _TooSlow(Exception):
    """The client does not take the answer in time."""


async def unless(work: Coroutine[Any, Any, T], *ends: asyncio.Event) -> T | None:
    """Returns the result of the work; None if one of the events came first, and the work was cancelled."""
    working = asyncio.ensure_future(work)
    waiting = [asyncio.ensure_future(one.wait()) for one in ends]
    try:
        await asyncio.wait({working, *waiting}, return_when=asyncio.FIRST_COMPLETED)
        return working.result() if working.done() else None
    finally:
        for one in (working, *waiting):  # without awaiting them, because a cancelled answer cancels each await, too
            one.cancel()
            one.add_done_callback(_seen)


def _seen(task: asyncio.Future[Any]) -> None:
    """Takes the error of a task, which was raised before or is no longer needed."""
    if not task.cancelled():
        task.exception()
