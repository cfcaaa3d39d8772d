"""Requests that wait or take messages: they end when the client disconnects and when the server stops."""

from __future__ import annotations

import asyncio
import contextlib
import math
from collections.abc import Awaitable, Callable
from typing import Any, Final, TypeVar

from starlette.requests import ClientDisconnect
from starlette.responses import Response

from ..client.manager import QueueManager
from ..model.message import Got
from ..model.options import GetOptions
from .calls import Call
from .problems import problem

TURNS: Final = 3  # of the loop, after which a task knows of a client that the loop knows to be gone
IS_GONE: Final = "is_gone"  # in a request's state, where the system can say at once whether a client has gone
IN_ONE_WRITE: Final = "in_one_write"  # in a request's state: what is sent inside of it goes out in one write
BRIEF_MAX: Final = 65_536  # bytes of a message that is put and got as quickly as others, in the loop's own thread
IsWanted = Callable[[], bool]
IsGone = Callable[[], bool]
Left = Callable[[QueueManager], object]
T = TypeVar("T")


def is_gone_of(call: Call) -> IsGone | None:
    """Says, in any thread and at once, whether the client has gone; None: this system cannot."""
    found: IsGone | None = call.request.scope.get("state", {}).get(IS_GONE)
    return found


class _Long(Exception):
    """The message is too long for the loop's own thread."""


async def taken_in_one_call(
    call: Call, is_gone: IsGone, options: GetOptions | None, answer: Callable[[Got], T], left: Left | None = None
) -> T:
    """The answer that is made of the message that a get takes, in one call of the store that does not wait.

    It is made before the message is gone, and in the loop's own thread unless it is long.

    Args:
        left: called behind the get, whatever has become of it.

    Raises: as the get, and what `answer` raises; ClientDisconnect, the client has gone.
    """

    def take(qm: QueueManager, most: float) -> T:
        answers: list[T] = []

        def accept(message: Got) -> None:
            if len(message.body) > most:
                raise _Long
            answers.append(answer(message))
            if is_gone():
                raise ClientDisconnect

        try:
            qm.internals.get_if(call.queue, accept, options)
        finally:
            if left is not None:
                left(qm)
        return answers[-1]

    await call.body(0)  # a get has none
    qm = call.context.qm
    try:
        return await qm.awaited(call.queue, lambda: qm.run(lambda one: take(one, BRIEF_MAX), is_brief=True))
    except _Long:
        return await qm.awaited(call.queue, lambda: qm.run(lambda one: take(one, math.inf)))


async def taken_in_one_unit(call: Call, is_gone: IsGone, work: Callable[[QueueManager], T]) -> T:
    """What `work` takes, without waiting, in a unit of work that is committed if the client is still there.

    Raises: what `work` raises; ClientDisconnect, the client has gone.
    """

    def take(qm: QueueManager) -> T:
        with qm.unit_of_work():
            found = work(qm)
            if is_gone():
                raise ClientDisconnect
        return found

    await call.body(0)  # a get has none
    qm = call.context.qm
    return await qm.awaited(call.queue, lambda: qm.run(take))


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
