"""Browses a queue in physical and in logical order, and group by group with two handles.

    python examples/two_handle_browse.py

The queue holds the two figures of the manual: groups Y and Z arrived at the same time, and message 2 of Z overtook
message 1. In physical order messages are browsed as they arrived. In logical order a group is browsed as a whole, at
the place of its first message.

A program that browses in physical order and wants the groups may fall into a trap. It reads a group to its end, and
continues from there to the next message with sequence number 1. The last message of Z is before the first one, so it
finds the first message of Z again, forever. Two handles avoid this. The first one browses only the first message of
each group. The second one is moved to that message by its token, and browses to the end of the group, but no further.

`inorder.connect()` keeps everything in memory; with the path of a file the results are the same.

Shown: seed 000; lifecycle C-14; mq-semantics R3.66, R3.67.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import inorder
from inorder import Flags, Match, Message

NO_GROUP = bytes(24)
FIRST_OF_GROUP = Match(sequence_number=1, offset=0)
TURNS = 5


def put_figure_2(qm: inorder.QueueManager) -> None:
    """Puts the messages of the manual's figure 2, each as its sender numbered it."""
    y, z = b"Y", b"Z"
    in_group, last = Flags.IN_GROUP, Flags.LAST_IN_GROUP
    qm.put("FIGURE", b"A")
    qm.put("FIGURE", b"Y1", group_id=y, sequence_number=1, flags=in_group)
    qm.put("FIGURE", b"Z2", group_id=z, sequence_number=2, flags=last)
    qm.put("FIGURE", b"Y2", group_id=y, sequence_number=2, flags=in_group)
    qm.put("FIGURE", b"Y3a", group_id=y, sequence_number=3, flags=last | Flags.SEGMENT)
    qm.put("FIGURE", b"Y3b", group_id=y, sequence_number=3, offset=3, flags=last | Flags.LAST_SEGMENT)
    qm.put("FIGURE", b"Z1", group_id=z, sequence_number=1, flags=in_group)
    qm.put("FIGURE", b"B")


def show(title: str, messages: Iterable[Message]) -> None:
    """Prints a line for each message."""
    print(title)
    for message in messages:
        print(f"  {describe(message)}")
    print()


def describe(message: Message) -> str:
    """Returns a description of a message."""
    body = message.body.decode()
    if message.group_id == NO_GROUP:
        return f"{body:5} in no group"
    group = message.group_id.rstrip(b"\0").decode()
    last = ", last" if message.group_status == "last" else ""
    segment = "" if message.segment_status == "no" else f", segment at {message.offset}"
    return f"{body:5} group {group}, message {message.sequence_number}{last}{segment}"


def rest_of_group(handle: inorder.Queue, first: Message) -> Iterator[Message]:
    """Moves the handle's cursor to `first`, and browses from there to the end of its group."""
    message = handle.browse_first(logical=True, match=Match(token=first.token))
    yield message
    while message.group_status == "in" or message.segment_status == "in":
        message = handle.browse_next(logical=True)
        yield message


def by_one_handle(handle: inorder.Queue) -> Iterator[Message]:
    """Falls into the trap: browses the first message of each group, and its members one by one, with one cursor."""
    first = handle.browse_first(match=FIRST_OF_GROUP)
    for _ in range(TURNS):  # `while True` would never end
        yield first
        message = first
        while message.group_status == "in":
            following = Match(group_id=first.group_id, sequence_number=message.sequence_number + 1)
            message = handle.browse_first(match=following)
        first = handle.browse_next(match=FIRST_OF_GROUP)


def by_two_handles(firsts: inorder.Queue, members: inorder.Queue) -> Iterator[Message]:
    """Avoids the trap: one handle browses the first messages, the other the members of each group."""
    for first in firsts.browse(match=FIRST_OF_GROUP):
        yield from rest_of_group(members, first)


def main() -> None:
    """Browses the same queue in four ways."""
    with inorder.connect() as qm:
        qm.create_queue("FIGURE")
        put_figure_2(qm)
        show("Physical order (figure 2):", qm.browse("FIGURE"))
        show("Logical order (figure 1):", qm.browse("FIGURE", logical=True))
        with qm.open("FIGURE", browse=True) as handle:
            show(f"One handle, the first message of each group, stopped after {TURNS}:", by_one_handle(handle))
        with qm.open("FIGURE", browse=True) as firsts, qm.open("FIGURE", browse=True) as members:
            show("Two handles, group by group:", by_two_handles(firsts, members))
        print(f"All of it is still there: {qm.depth('FIGURE')} messages")


if __name__ == "__main__":
    main()
