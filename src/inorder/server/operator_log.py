"""Runs acts that change or destroy data at the server, and logs them with the name of the user."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from typing import Final, TypeVar

from starlette.requests import Request

from ..client.manager import QueueManager
from ..client.operator_log import Acting
from .authentication import address_of
from .calls import Context
from .identity import Identity
from .watching import PROGRAM

T = TypeVar("T")
QUEUE_LENGTH_MAX = 256
ALONE: Final = frozenset({"clear", "delete"})  # acts on a queue that nobody has open
LOOKS: Final = 25
LOOK_SECONDS: Final = 0.1  # so that they are more than two times `UNUSED_SECONDS`, after which unused queues are closed


async def acted(
    context: Context, request: Request, act: str, queue: str, work: Callable[[QueueManager, Acting], T]
) -> T:
    """What `work` returns, which is done in a connection's thread, between two notes in the log of acts.

    Args:
        act: what it is: "clear", "delete".
        queue: on which; "": on the queue manager.
        work: may set how many messages it was about.

    Raises: what `work` raises; it is noted as the act's outcome.
    """
    identity: Identity = request.scope["inorder.identity"]
    address = address_of(request)

    def noted(qm: QueueManager) -> T:
        with qm.accounts.acting(act, _storable(queue), user=identity.name, address=address) as acting:
            return work(qm, acting)

    if queue:
        await _let_go(context, queue, everywhere=act in ALONE)
    return await context.qm.run(noted)


async def _let_go(context: Context, queue: str, *, everywhere: bool) -> None:
    """Has what puts and gets of other requests hold open by the name of a queue closed.

    Here it is closed at once. Other servers, and other workers of this one, close within two seconds what nobody uses.

    Args:
        everywhere: waits for these, unless another program has the queue open, too: then nothing is won.
    """
    await context.qm.close_queue(queue)
    for _ in range(LOOKS if everywhere else 0):
        programs = await context.qm.run(lambda qm: _users_elsewhere(qm, queue))
        if programs != {PROGRAM}:
            return
        await asyncio.sleep(LOOK_SECONDS)


def _users_elsewhere(qm: QueueManager, queue: str) -> set[str]:
    """The programs of other processes that have a queue open."""
    return {
        one.program.name
        for one in qm.inspect.connections()
        if one.process != os.getpid() and any(queue in (opened.queue, opened.name) for opened in one.opened)
    }


def _storable(name: str) -> str:
    """A name that a client gave, as the log can have it: no queue has one that does not fit."""
    return name.encode("utf-8", "backslashreplace").decode().replace("\0", "?")[:QUEUE_LENGTH_MAX]
