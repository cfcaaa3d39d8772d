"""Requests that wait, or take: they end when the client goes, and when the server stops."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from typing import Any, Final, TypeVar

from starlette.requests import ClientDisconnect
from starlette.responses import Response

from ..manager import QueueManager
from .calls import Call
from .problems import problem

TURNS: Final = 3  # of the loop, after which a task knows of a client that the loop knows to be gone
IS_GONE: Final = "is_gone"  # in a request's state, where the system can say at once whether a client has gone
IN_ONE_WRITE: Final = "in_one_write"  # in a request's state: what is sent inside of it goes out in one write
IsWanted = Callable[[], bool]
IsGone = Callable[[], bool]
T = TypeVar("T")


def is_gone_of(call: Call) -> IsGone | None:
    """Says, in any thread and at once, whether the client has gone; None: this system cannot."""
    found: IsGone | None = call.request.scope.get("state", {}).get(IS_GONE)
    return found


async def at_once(call: Call, is_gone: IsGone, work: Callable[[QueueManager, Callable[[], None]], T]) -> T:
    """What `work` takes in one call of the store.

    Args:
        work: does not wait. It calls what it is given just before the message is gone.

    Raises: what `work` raises; ClientDisconnect, the client has gone.
    """

    def check() -> None:
        if is_gone():
            raise ClientDisconnect

    await call.body(0)  # a get has none
    qm = call.context.qm
    return await qm.awaited(call.queue, lambda: qm.run(lambda one: work(one, check), is_brief=True))


async def check_wanted(is_wanted: IsWanted) -> None:
    """Raises: ClientDisconnect, nobody waits for the answer any more."""
    for _ in range(TURNS):
        await asyncio.sleep(0)
    if not is_wanted():
        raise ClientDisconnect


async def while_wanted(call: Call, take: Callable[[IsWanted], Awaitable[Response]]) -> Response:
    """What `take` answers, unless the client goes or the server stops before.

    Raises: ClientDisconnect; Problem 503, the server stops.
    """
    await call.body(0)  # a get has none; what comes next is that the client has gone
    gone = asyncio.ensure_future(_gone(call))
    stops = asyncio.ensure_future(call.context.stopping.wait())
    taking: asyncio.Future[Response] = asyncio.ensure_future(take(lambda: not gone.done()))
    try:
        tasks: set[asyncio.Future[Any]] = {gone, stops, taking}
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        if not taking.done():
            taking.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                return await taking  # it was being committed, so it counts
            raise ClientDisconnect if gone.done() else problem("INWB0009E", Retry_After="1")
        return await taking
    finally:
        for one in (gone, stops, taking):
            await ended(one)


async def _gone(call: Call) -> None:
    while (await call.request.receive())["type"] != "http.disconnect":
        pass


async def ended(task: asyncio.Future[Any]) -> None:
    """Ends a task that is not needed any more."""
    task.cancel()
    await asyncio.wait({task})
    if not task.cancelled():
        task.exception()  # it was raised where somebody waited for it, or the client has gone
