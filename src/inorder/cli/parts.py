"""Many messages in units of work that fit into memory: bounded by `--unit-size`, and by the bytes of their bodies."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, TypeVar

from .. import Got, Message, NoMessageAvailable, OrderPending, QueueManager

UNIT_BYTES = 64 * 2**20
STEP_MESSAGES = 16  # so many are got at once: they may be long

M = TypeVar("M", bytes, Message, bytes | Message)


def parts(messages: Iterable[M], most: int) -> Iterator[list[M]]:
    """The messages, as they come, in lists of so many; a list ends with the message with which it has 64 MiB."""
    part: list[M] = []
    room = UNIT_BYTES
    for message in messages:
        part.append(message)
        room -= message.length if isinstance(message, Message) else len(message)
        if len(part) >= most or room <= 0:
            yield part
            part, room = [], UNIT_BYTES
    if part:
        yield part


def take(qm: QueueManager, queue: str, most: int, options: dict[str, Any]) -> list[Got]:
    """Gets up to so many messages in the unit of work that is open, or as many as have 64 MiB.

    It waits for the first one only. Raises: NoMessageAvailable, OrderPending, there was none.
    """
    taken = qm.get_many(queue, min(most, STEP_MESSAGES), **options)
    room = UNIT_BYTES - sum(message.length for message in taken)
    while len(taken) < most and room > 0:
        try:
            more = qm.get_many(queue, min(most - len(taken), STEP_MESSAGES), **{**options, "wait": 0})
        except (NoMessageAvailable, OrderPending):
            break
        taken += more
        room -= sum(message.length for message in more)
    return taken
