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

TURNS: Final = 3  # of the loop, until a task sees that the client has gone
IS_GONE: Final = "is_gone"  # in a request's state, on systems that can tell at once whether a client has gone
IN_ONE_WRITE: Final = "in_one_write"  # in a request's state: a block in which all writes are joined
BRIEF_MAX: Final = 65_536  # bytes of a message that the loop's own thread puts and gets
IsWanted = Callable[[], bool]
IsGone = Callable[[], bool]
Left = Callable[[QueueManager], object]
T = TypeVar("T")


def is_gone_of(call: Call) -> IsGone | None:
    """A function for any thread that returns at once whether the client has gone; None if the system has none."""
    found: IsGone | None = call.request.scope.get("state", {}).get(IS_GONE)
    return found


class _Long(Exception):
    """The message is too long for the loop's own thread."""


async def taken_in_one_call(
    call: Call, is_gone: IsGone, options: GetOptions | None, answer: Callable[[Got], T], left: Left | None = None
) -> T:
    """Gets a message in one call of the store, without waiting, and returns the answer made of it.

    The answer is made before the get is committed, and in the loop's own thread unless the message is long.

    Args:
        left: is called after the get, whether it succeeded or not.

    Raises: the errors of the get, and of `answer`; ClientDisconnect, if the client has gone.
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
    """Calls `work`, without waiting, in a unit of work that is committed if the client is still connected.

    Raises: the errors of `work`; ClientDisconnect, if the client has gone.
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
    """Raises: ClientDisconnect, if the client no longer waits for the answer."""
    for _ in range(TURNS):
        await asyncio.sleep(0)
    if not is_wanted():
        raise ClientDisconnect


async def while_wanted(call: Call, take: Callable[[IsWanted], Awaitable[Response]]) -> Response:
    """Returns the answer of `take`, unless the client disconnects or the server stops first.

    Raises: ClientDisconnect; Problem 503, if the server stops.
    """
    await call.body(0)  # a get has none; the next event is the client's disconnect
    gone = asyncio.ensure_future(_gone(call))
    stops = asyncio.ensure_future(call.context.stopping.wait())
    taking: asyncio.Future[Response] = asyncio.ensure_future(take(lambda: not gone.done()))
    try:
        tasks: set[asyncio.Future[Any]] = {gone, stops, taking}
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        if not taking.done():
            taking.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                return await taking  # its commit had begun, so it counts
            raise ClientDisconnect if gone.done() else problem("INWB0009E", Retry_After="1")
        return await taking
    finally:
        for one in (gone, stops, taking):
            await ended(one)


async def _gone(call: Call) -> None:
    while (await call.request.receive())["type"] != "http.disconnect":
        pass


async def ended(task: asyncio.Future[Any]) -> None:
    """Ends a task that is no longer needed."""
    task.cancel()
    await asyncio.wait({task})
    if not task.cancelled():
        task.exception()  # another task has handled it, or the client has gone
