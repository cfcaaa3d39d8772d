"""What changes or destroys something at the server: done, and noted with the name of who asked for it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from starlette.requests import Request

from ..acts import Acting
from ..manager import QueueManager
from .calls import Context
from .entrance import address_of
from .identity import Identity

T = TypeVar("T")
QUEUE_LENGTH_MAX = 256


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
        with qm.acting(act, _storable(queue), user=identity.name, address=address) as acting:
            return work(qm, acting)

    if queue:
        await context.qm.close_queue(queue)  # which puts and gets of other requests hold open by its name
    return await context.qm.run(noted)


def _storable(name: str) -> str:
    """A name that a client gave, as the log can have it: no queue has one that does not fit."""
    return name.encode("utf-8", "backslashreplace").decode().replace("\0", "?")[:QUEUE_LENGTH_MAX]
