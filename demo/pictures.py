"""Parts 1 and 2: the eight messages of figure 2, put by three processes, read in two orders by a fourth."""

from __future__ import annotations

from collections.abc import Sequence

from inorder.model.message import IN_GROUP, LAST_IN_GROUP, LAST_SEGMENT, SEGMENT
from inorder.model.options import Match

from .processes import Cast
from .screen import Screen
from .worker import names

# Figure 2: name, group, sequence number, offset, flags.
FIGURE_2: Sequence[tuple[str, str, int, int, int]] = (
    ("A", "", 1, 0, 0),
    ("Y1", "Y", 1, 0, IN_GROUP),
    ("Z2", "Z", 2, 0, LAST_IN_GROUP),
    ("Y2", "Y", 2, 0, IN_GROUP),
    ("Y3.1", "Y", 3, 0, LAST_IN_GROUP | SEGMENT),
    ("Y3.2", "Y", 3, 4, LAST_IN_GROUP | LAST_SEGMENT),
    ("Z1", "Z", 1, 0, IN_GROUP),
    ("B", "", 1, 0, 0),
)
PHYSICAL = "A Y1 Z2 Y2 Y3.1 Y3.2 Z1 B".split()
LOGICAL = "A Y1 Y2 Y3.1 Y3.2 Z1 Z2 B".split()
WRITERS = {"Y": "writer of Y", "Z": "writer of Z", "": "A"}
READER = "late getter"


def put_figure_2(cast: Cast, queue: str) -> None:
    """Puts the eight messages in their physical order, each by the process that writes its group."""
    for name, group, sequence_number, offset, flags in FIGURE_2:
        cast.process(WRITERS[group]).do(
            "put",
            queues=[queue],
            name=name,
            group=group,
            sequence_number=sequence_number,
            offset=offset,
            flags=flags,
        )


def physical_and_logical(screen: Screen, cast: Cast) -> None:
    """Shows part 1: the two orders of one queue."""
    screen.title("1. One queue, two orders: as they arrived, and as they belong together")
    queue, reader = cast.new_queue(), cast.process(READER)
    put_figure_2(cast, queue)
    physical, logical = reader.do("browse", queue=queue), reader.do("browse", queue=queue, logical=True)
    print(f"  {'':2}  {'physical order':32}  logical order")
    for n, pair in enumerate(zip(physical, logical, strict=True), 1):
        left, right = (screen.named(name, group, 5) + place.ljust(27) for name, group, place in pair)
        print(f"  {n:2}  {left}  {right}".rstrip())
    screen.check("browsing physically is figure 2", [name for name, *_ in physical], PHYSICAL)
    screen.check("browsing logically is figure 1", [name for name, *_ in logical], LOGICAL)
    got = reader.do("drain", queue=queue, logical=True)
    screen.check("getting in logical order brings the same", got, LOGICAL)
    screen.check("and leaves the queue empty", cast.qm.depth(queue), 0)


def complete_groups(screen: Screen, cast: Cast) -> None:
    """Shows part 2: complete groups only."""
    screen.title("2. Whole groups or nothing")
    queue = cast.new_queue()
    put_figure_2(cast, queue)
    with cast.qm.open(queue) as handle:
        lost = [message for message in handle.browse() if message.body == b"Z1"]
        handle.get(match=Match(token=lost[0].token))  # Z1 is lost: group Z will never be complete
    groups = cast.process(READER).do("groups", queue=queue)
    for group in groups:
        print(f"  a group, its segments joined: {' '.join(group)}")
    screen.check("Z1 is missing, so group Z is passed over", groups, [["A"], ["Y1", "Y2", "Y3.1Y3.2"], ["B"]])
    screen.check("and its other message stays", names(cast.qm.browse(queue)), ["Z2"])
