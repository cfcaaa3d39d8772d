"""The label in the body of each message of a proof: its writer, serial number, group and place in the group."""

from __future__ import annotations

from typing import NamedTuple

END = b"."


class Label(NamedTuple):
    """Identifies one message, permanently.

    Args:
        putter: the process that put it; no other has this name.
        serial: counts the messages of the putter, from 1.
        group: counts the groups of the putter, from 1; 0: in none.
        place, size: its place in the group, from 1, and how many the group has.
    """

    putter: str
    serial: int
    group: int = 0
    place: int = 1
    size: int = 1

    def __str__(self) -> str:
        return "/".join(map(str, self))

    def body(self, length: int) -> bytes:
        """A body that repeats the label and has an end, so that damage anywhere in it shows; at least one line long."""
        line = f"{self}\n".encode()
        return (line * (length // len(line) + 1))[: max(length, len(line))] + END


def parse(text: str) -> Label:
    """Reads a label from its text. Raises: ValueError, if it is not a label."""
    putter, *numbers = text.split("/")
    serial, group, place, size = map(int, numbers)
    return Label(putter, serial, group, place, size)


def text_of(body: bytes) -> str:
    """The text of the label in a body; if the body is damaged, "?" and its first bytes."""
    text = body.partition(b"\n")[0].decode(errors="replace")
    try:
        whole = parse(text).body(len(body) - len(END)) == body
    except ValueError:
        whole = False
    return text if whole else f"?{body[:60]!r}"
