"""Stagings: the order in which staged messages are put, the groups that they form, and checks of given numbers (spark
3).

A staged message has no place. All messages that are put together on one queue are sorted by
`(order_key, staging, row)`, where keys sort as NULL, numbers, texts, bytes. Messages with one `group_key` become a
group: sequence numbers 1, 2, 3 ... in that order, the last one marked as last in group. A body that was cut into
segments is one logical message: its pieces share the number.

Messages that have their own group id keep their numbers. Within one settle these must follow each other without gap
or repeat. They need not begin at 1 nor end the group: earlier and later batches may have the rest.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from ..errors import InconsistentCall, QueueFull
from ..model.attributes import QueueAttributes
from ..model.message import IN_GROUP, LAST_IN_GROUP, NO_ID, Message
from .grouping import data_length
from .ordering import GROUP_INDEX_RANK_MIN, PRIORITY_MAX

Key = int | float | str | bytes | None


class StagedMessage(NamedTuple):
    """A message that waits outside its queue.

    Args:
        row: its position in its staging, from 0; pieces count.
        whole: the row of the first piece of its body; its own row if it is the whole body.
        staging: the position of its staging among those that are settled together, from 0.
    """

    message: Message
    row: int
    whole: int
    group_key: Key
    order_key: Key
    staging: int = 0


def sort_key(key: Key) -> tuple[Any, ...]:
    """Sorts keys of all types in one order, which is SQLite's."""
    if key is None:
        return (0,)
    if isinstance(key, str):
        return 2, key.encode()
    return (3, key) if isinstance(key, bytes) else (1, key)


def lined_up(rows: Iterable[StagedMessage]) -> list[StagedMessage]:
    """Sorts messages into the order in which they are put."""
    return sorted(rows, key=lambda one: (sort_key(one.order_key), one.staging, one.row))


def grouped(rows: Sequence[StagedMessage], id_of: Callable[[Message], bytes]) -> list[Message]:
    """The messages of sorted rows; those with a group key become members of their groups.

    Args:
        id_of: makes a group's id from its first message.
    """
    members: dict[Key, list[tuple[int, int]]] = {}
    ids: dict[Key, bytes] = {}
    for one in rows:
        known = members.setdefault(one.group_key, [])
        if (one.staging, one.whole) not in known[-1:]:
            known.append((one.staging, one.whole))
        ids.setdefault(one.group_key, id_of(one.message))
    return [_member(one, members[one.group_key], ids[one.group_key]) for one in rows]


def _member(one: StagedMessage, members: Sequence[tuple[int, int]], group_id: bytes) -> Message:
    if one.group_key is None:
        return one.message
    is_last = members[-1] == (one.staging, one.whole)
    return one.message.with_values(
        group_id=group_id,
        sequence_number=members.index((one.staging, one.whole)) + 1,
        flags=one.message.flags | IN_GROUP | (LAST_IN_GROUP if is_last else 0),
    )


def check_numbers(messages: Iterable[Message]) -> None:
    """Checks that the numbers of messages with their own group ids follow each other.

    Raises InconsistentCall for the first group, by its bytes, with the first number that does not.
    """
    own = (one for one in messages if one.group_id != NO_ID)
    ordered = sorted(own, key=lambda one: (one.group_id, one.sequence_number, one.offset))
    for before, one in itertools.pairwise(ordered):
        if before.group_id == one.group_id:
            ended = before.sequence_number, before.offset, data_length(before)
            check_next(one.group_id, ended, one.sequence_number, one.offset)


def check_next(group_id: bytes, before: tuple[int, int, int], sequence_number: int, offset: int) -> None:
    """Checks that a member of a group continues at the end of the one before, given by number, offset and length.

    Raises InconsistentCall.
    """
    last, begin, length = before
    if (sequence_number, offset) == (last, begin):
        wrong = f"message {sequence_number:,}{_at(offset)} comes twice"
    elif sequence_number == last and offset != begin + length:
        wrong = f"a segment of message {sequence_number:,} is at offset {offset:,}, not at {begin + length:,}"
    elif sequence_number == last + 1 and offset:
        wrong = f"message {sequence_number:,} has no first segment; this one is at offset {offset:,}"
    elif sequence_number > last + 1:
        wrong = f"after message {last:,} comes message {sequence_number:,}"
    else:
        return
    raise InconsistentCall(
        f"group {group_id.hex()}: {wrong}; within one batch the numbers of a group must follow each other",
        group_id=group_id,
        sequence_number=sequence_number,
        offset=offset,
    )


def _at(offset: int) -> str:
    return f" at offset {offset:,}" if offset else ""


def check_room(queue: QueueAttributes, depth: int, rows: int) -> None:
    """Checks that the queue has room for more messages; segments that the queue manager made may exceed the limit
    (R2.27).

    Raises QueueFull 2053.
    """
    if depth + rows > queue.max_depth:
        raise QueueFull(
            f"{queue.name} has {depth:,} messages; {rows:,} more would exceed its limit of {queue.max_depth:,}",
            queue=queue.name,
            depth=depth,
        )


class RankRange(NamedTuple):
    """Turns a priority into a rank on a queue: `-max(least, min(most, priority))`, as `ordering.rank` does.

    Args:
        least_of_head: replaces `least` for the head of a group.
    """

    least: int
    most: int
    least_of_head: int


def rank_range(queue: QueueAttributes) -> RankRange:
    """The range of effective priorities of messages that arrive at a queue now (R3.13, R1.4, R4.13)."""
    if queue.delivery == "fifo":
        return RankRange(queue.default_priority, queue.default_priority, queue.default_priority)
    return RankRange(0, PRIORITY_MAX, GROUP_INDEX_RANK_MIN if queue.index_type == "group_id" else 0)
