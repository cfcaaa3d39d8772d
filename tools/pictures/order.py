"""Physical against logical order: what a queue manager tells of eight messages."""

from __future__ import annotations

import inorder
from inorder import Flags, Message

from .svg import MARGIN, WIDTH, Picture

IN, LAST = Flags.IN_GROUP, Flags.LAST_IN_GROUP
# As they arrive: name, group, sequence number, offset, flags. The bodies of segments have four bytes.
ARRIVALS = (
    ("A", "", 1, 0, Flags(0)),
    ("Y1", "Y", 1, 0, IN),
    ("Z2", "Z", 2, 0, LAST),
    ("Y2", "Y", 2, 0, IN),
    ("Y3.1", "Y", 3, 0, LAST | Flags.SEGMENT),
    ("Y3.2", "Y", 3, 4, LAST | Flags.LAST_SEGMENT),
    ("Z1", "Z", 1, 0, IN),
    ("B", "", 1, 0, Flags(0)),
)
GROUP_OF = {name: group for name, group, *_ in ARRIVALS}
KINDS = {"": "three", "Y": "one", "Z": "two"}

STEP = (WIDTH - 2 * MARGIN) / len(ARRIVALS)
BOX, HIGH = 48, 34
UPPER, LOWER = 44, 164


def read() -> tuple[list[str], list[str]]:
    """The names in physical and in logical order, as a queue gives them."""
    with inorder.connect() as qm:
        qm.create_queue("Q")
        for name, group, sequence_number, offset, flags in ARRIVALS:
            member = Message(name.encode(), flags=flags, offset=offset, sequence_number=sequence_number)
            qm.put("Q", member.replace(group_id=group.encode()) if group else member)
        physical, logical = qm.browse("Q"), qm.browse("Q", logical=True)
        return [message.body.decode() for message in physical], [message.body.decode() for message in logical]


def draw() -> str:
    physical, logical = read()
    picture = Picture("The messages of a queue in physical and in logical order", 276)
    picture.text(MARGIN, 30, "physical order: as they arrived", "bold")
    for name in physical:
        _curve(picture, name, physical.index(name), logical.index(name))
    _row(picture, physical, UPPER)
    _row(picture, logical, LOWER)
    picture.text(MARGIN, LOWER + HIGH + 24, "logical order: as they belong", "bold")
    picture.text(MARGIN, LOWER + HIGH + 46, "Group Y has 3 messages, the last in 2 segments; group Z has 2.", "faint")
    picture.text(MARGIN, LOWER + HIGH + 64, "A group stands where its first message stands.", "faint")
    return picture.svg()


def _middle(n: int) -> float:
    return MARGIN + (n + 0.5) * STEP


def _row(picture: Picture, names: list[str], y: float) -> None:
    for n, name in enumerate(names):
        picture.box(_middle(n) - BOX / 2, y, BOX, HIGH, [name], KINDS[GROUP_OF[name]])


def _curve(picture: Picture, name: str, above: int, below: int) -> None:
    x, y, top, bottom = _middle(above), _middle(below), UPPER + HIGH, LOWER
    bend = (top + bottom) / 2
    path = f"M{x:.1f} {top} C{x:.1f} {bend} {y:.1f} {bend} {y:.1f} {bottom}"
    picture.path(path, f"line {KINDS[GROUP_OF[name]]}-line")
