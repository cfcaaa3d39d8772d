"""Browses a queue in physical and in logical order, and group by group with two handles.

    python examples/two_handle_browse.py

The queue holds the two figures of the manual: groups Y and Z came at the same time, and message 2 of Z overtook
message 1. In physical order messages stand as they arrived. In logical order a group stands together, where its first
message stands.

Whoever browses in physical order and wants the groups has a trap before him. He reads a group to its end, and looks
on from there for the next message with sequence number 1. The last message of Z stands before the first one: looking
on from it he finds the first message of Z again, for ever. Two handles avoid it. The first one browses nothing but
the first message of each group. The second one is put on that message by its token and browses within the group, never
beyond its end.

`inorder.connect()` keeps everything in memory; with the path of a file all is the same.

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
    """The messages of the manual's figure 2, each as its sender numbered it."""
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
    """A line for each message."""
    print(title)
    for message in messages:
        print(f"  {describe(message)}")
    print()


def describe(message: Message) -> str:
    """A message in words."""
    body = message.body.decode()
    if message.group_id == NO_GROUP:
        return f"{body:5} in no group"
    group = message.group_id.rstrip(b"\0").decode()
    last = ", last" if message.group_status == "last" else ""
    segment = "" if message.segment_status == "no" else f", segment at {message.offset}"
    return f"{body:5} group {group}, message {message.sequence_number}{last}{segment}"


def rest_of_group(handle: inorder.Queue, first: Message) -> Iterator[Message]:
    """Moves the handle's cursor to `first`, and browses from there to the end of its group, and not beyond."""
    message = handle.browse_first(logical=True, match=Match(token=first.token))
    yield message
    while message.group_status == "in" or message.segment_status == "in":
        message = handle.browse_next(logical=True)
        yield message


def by_one_handle(handle: inorder.Queue) -> Iterator[Message]:
    """The trap: the first message of each group, then its members one by one, all with one cursor."""
    first = handle.browse_first(match=FIRST_OF_GROUP)
    for _ in range(TURNS):  # `while True` would never end
        yield first
        message = first
        while message.group_status == "in":
            following = Match(group_id=first.group_id, sequence_number=message.sequence_number + 1)
            message = handle.browse_first(match=following)
        first = handle.browse_next(match=FIRST_OF_GROUP)


def by_two_handles(firsts: inorder.Queue, members: inorder.Queue) -> Iterator[Message]:
    """The cure: one handle for the first messages, one for what belongs to each."""
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
