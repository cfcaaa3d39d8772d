"""Queues that workers and tasks use by themselves: they are created when first needed."""

from __future__ import annotations

import contextlib
from typing import Any, Final

from ..client.manager import QueueManager
from ..errors import ObjectExists, UnknownQueue
from ..model.message import Message
from ..rules.puts import PutResult

DEFAULT_QUEUE: Final = "TASKS"  # of tasks that name no queue


def create_queue(qm: QueueManager, name: str = DEFAULT_QUEUE) -> None:
    """Creates a queue if it does not exist. Raises as `create_queue` of a queue manager."""
    with contextlib.suppress(UnknownQueue):
        qm.attributes(name)
        return
    with contextlib.suppress(ObjectExists):  # another program was first
        qm.create_queue(name)


def put_made(qm: QueueManager, queue: str, message: Message, **options: Any) -> PutResult:
    """Puts a message on a queue, and creates the queue if needed. Raises as a put, and as `create_queue`."""
    try:
        return qm.put(queue, message, **options)
    except UnknownQueue:
        create_queue(qm, queue)
    return qm.put(queue, message, **options)
