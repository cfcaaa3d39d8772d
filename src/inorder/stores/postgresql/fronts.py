"""Fronts of a queue: numbers behind which nothing is available, so that a search begins there.

PostgreSQL keeps what is deleted, and its entries in indexes, as long as a transaction may look that began before; a
forgotten one anywhere on the server is enough. What has left a queue stays at its head then, and every get goes through
all of it to find the first message.

So a queue may have fronts, in its row: for each kind of head and level a number below which nothing is available there.
They are exact, not a hint. They are set with the queue locked, to what is there, and whatever becomes available later
moves them back in its own transaction, by a trigger: a get that is backed out, a delay or a lock that ends, puts of a
unit of work whose numbers were drawn before. What arrives has a number above all. So a search behind the fronts finds
what a search of everything finds, whichever process is killed, and whichever server takes over.

A queue without trouble has none, and costs nothing. One get of so many compares how much of the index it has read
with what it took: if that is far more, it sets the fronts, or moves them; now and then it looks without them, and
removes them if they are of no use any more. A bit of the queue's attention says that there are fronts
(sql/attention.py).

The rows that a search begins with have the same trouble: the queue's own gets another serial every 64 messages
(schema.sql), and a connection's unit of work another number (operation.py).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from .statements import STATEMENTS

GETS_A_LOOK: Final = 64  # of one session on one queue
TOGETHER_A_LOOK: Final = 256  # where a look takes a lock that others do without
LOOKS_WITHOUT: Final = 16  # one look of so many goes without the fronts
ENTRIES_MAX: Final = 256  # that a get may read for nothing

BEHIND: Final[Mapping[str, str]] = {
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
    """When one session looks how far its gets go."""

    def __init__(self) -> None:
        self._gets: dict[int, int] = {}  # on each queue, since the last look
        self._looks: dict[int, int] = {}

    def count(self, queue: int) -> int:
        """One get more; how many there have been since the last look."""
        count = self._gets[queue] = self._gets.get(queue, 0) + 1
        return count

    def look(self, queue: int) -> bool:
        """This get looks. Returns: whether without the fronts, if the queue has some."""
        self._gets[queue] = 0
        looks = self._looks[queue] = self._looks.get(queue, 0) + 1
        return looks % LOOKS_WITHOUT == 0
