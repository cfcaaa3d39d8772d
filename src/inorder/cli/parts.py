"""Splits many messages into units of work that fit into memory, by `--unit-size` and by the bytes of their bodies."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, TypeVar

from .. import Got, Message, NoMessageAvailable, OrderPending, QueueManager

UNIT_BYTES = 64 * 2**20
STEP_MESSAGES = 16  # messages in one call, because they may be long

M = TypeVar("M", bytes, Message, bytes | Message)


def parts(messages: Iterable[M], most: int) -> Iterator[list[M]]:
    """The messages in lists of at most `most`. A list also ends when its messages reach 64 MiB."""
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
    """Gets up to `most` messages, or 64 MiB of them, in the open unit of work.

    It waits for the first message only. Raises: NoMessageAvailable or OrderPending, if there was none.
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
