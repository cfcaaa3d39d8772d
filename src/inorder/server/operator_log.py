"""Runs acts that change or destroy data at the server, and logs them with the name of the user."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from typing import Final, TypeVar

from starlette.requests import Request

from ..client.manager import QueueManager
from ..client.operator_log import Acting
from ..model.parameters import as_storable
from .authentication import address_of
from .calls import Context
from .identity import Identity
from .watching import PROGRAM

T = TypeVar("T")
QUEUE_LENGTH_MAX = 256
ALONE: Final = frozenset({"clear", "delete"})  # acts for which no program may have the queue open
LOOKS: Final = 25
LOOK_SECONDS: Final = 0.1  # so that they are more than two times `UNUSED_SECONDS`, after which unused queues are closed


async def acted(
    context: Context, request: Request, act: str, queue: str, work: Callable[[QueueManager, Acting], T]
) -> T:
    """Runs an act in the thread of a connection, and logs its beginning and its outcome. Returns the result of `work`.

    Args:
        act: its name in the log, such as "clear".
        queue: the queue that it changes; "": the queue manager.
        work: does the act; it may set the number of messages for the log.

    Raises: the errors of `work`; the log then has them as the outcome.
    """
    identity: Identity = request.scope["inorder.identity"]
    address = address_of(request)
    name = as_storable(queue).replace("\0", "?")[:QUEUE_LENGTH_MAX]  # a client's wrong name, which the log can store

    def noted(qm: QueueManager) -> T:
        with qm.accounts.acting(act, name, user=identity.name, address=address) as acting:
            return work(qm, acting)

    if queue:
        await _let_go(context, queue, everywhere=act in ALONE)
    return await context.qm.run(noted)


async def _let_go(context: Context, queue: str, *, everywhere: bool) -> None:
    """Closes the handles of a queue that this server keeps for puts and gets of its requests.

    This worker closes its handles at once. Other workers and other servers close unused handles within two seconds.

    Args:
        everywhere: whether to wait for them. There is no use in waiting if another program has the queue open, too.
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
