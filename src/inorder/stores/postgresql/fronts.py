"""Fronts of a queue: numbers below which nothing is available, so that a search begins there.

PostgreSQL keeps deleted rows, and their entries in indexes, as long as an older transaction may read them; one
forgotten transaction anywhere on the server is enough. The deleted rows then stay at the head of a queue, and every get
goes through all of them to find the first message.

So a queue may have fronts, in its row: for each value of `head` and each level, a number below which nothing is
available. They are exact, not a hint. They are set with the queue locked, to the first available messages. A message
that becomes available later moves them back in the same transaction, by a trigger: a get that is backed out, a delay or
a lock that ends, puts of a unit of work whose numbers were drawn before. Arrivals have higher numbers than all others.
So a search from the fronts on has the same result as a full search, even if any process is killed, or another server
takes over.

A queue without this problem has no fronts, and costs nothing. One get in several compares the entries of the index that
it has read with the messages that it took: if there are far more entries, it sets the fronts, or moves them. Now and
then it searches without them, and removes them if they are no longer useful. A bit of the queue's attention says that
it has fronts (sql/attention.py).

The rows that a search reads first have the same problem: the queue's row gets a new serial every 64 messages
(schema.sql), and a connection's unit of work a new number (operation.py).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from .statements import STATEMENTS

GETS_A_LOOK: Final = 64  # gets of one session on one queue
TOGETHER_A_LOOK: Final = 256  # if a measurement takes a lock that other gets do not need
LOOKS_WITHOUT: Final = 16  # one measurement in this many searches without the fronts
ENTRIES_MAX: Final = 256  # entries that a get may read without a message

AFTER_FRONTS: Final[Mapping[str, str]] = {
    STATEMENTS[name]: STATEMENTS[f"{name} after fronts"]
    for name in (
        "get available",
        "get available singles",
        "get and remove",
        "get and remove one",
        "next available rank",
    )
}


class Fronts:
    """Decides when a session measures how far its gets search."""

    def __init__(self) -> None:
        self._gets: dict[int, int] = {}  # on each queue, since the last measurement
        self._looks: dict[int, int] = {}

    def count(self, queue: int) -> int:
        """Counts a get. Returns the number of gets since the last measurement."""
        count = self._gets[queue] = self._gets.get(queue, 0) + 1
        return count

    def look(self, queue: int) -> bool:
        """Begins a measurement. Returns whether to search without the queue's fronts, if it has some."""
        self._gets[queue] = 0
        looks = self._looks[queue] = self._looks.get(queue, 0) + 1
        return looks % LOOKS_WITHOUT == 0
