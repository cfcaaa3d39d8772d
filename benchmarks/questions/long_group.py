"""Do puts and gets cost more in a group of a hundred thousand members?"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from itertools import count
from pathlib import Path

import inorder
from benchmarks.harness import Bar, Contestant, Figures, Question, Ready, Site, Work, rate
from benchmarks.systems import BLOCK, BODY, FILL_BLOCK
from benchmarks.systems.ours import QUEUE, group_ids, interleaved, open_queue, put_all, settings_of
from inorder import Flags

LONG = 100_000
SHORT = 100
GROWING = "GROWING"
IN_LONG, IN_SHORT = "a long group", "groups of 100"


class Groups:
    """Groups of one length, one after the other: gets read those of one queue, puts make those of another.

    Before the first measurement the group of the puts has reached its length; a long one continues to grow.
    """

    def __init__(self, qm: inorder.QueueManager, length: int) -> None:
        self._qm = qm
        self._length = length
        self._left = 0
        self._ids = count()
        self._growing = qm.open(GROWING, output=True)
        self._number = 0
        if length > SHORT:
            for start in range(0, length, FILL_BLOCK):
                self._growing.put_many([BODY] * min(FILL_BLOCK, length - start), logical=True, flags=Flags.IN_GROUP)

    def stock(self, operations: int) -> None:
        """Puts whole groups until there are enough messages to get."""
        while self._left < operations * BLOCK:
            put_all(self._qm, interleaved(group_ids(1, next(self._ids)), range(1, self._length + 1), self._length))
            self._left += self._length

    def get(self) -> None:
        """Gets the next hundred members, in a unit of work."""
        with self._qm.unit_of_work():
            for _ in range(BLOCK):
                self._qm.get(QUEUE, logical=True)
        self._left -= BLOCK

    def put(self) -> None:
        """Puts the next member of the growing group; a short group ends at its length."""
        self._number += 1
        ends = self._length == SHORT and self._number % SHORT == 0
        self._growing.put(BODY, logical=True, flags=Flags.LAST_IN_GROUP if ends else Flags.IN_GROUP)


@contextmanager
def opened(folder: Path, *, length: int) -> Iterator[Ready]:
    """Opens two queues with groups of one length."""
    with open_queue(folder) as qm:
        qm.create_queue(GROWING)
        groups = Groups(qm, length)
        works = {
            "get": Work(operation=groups.get, size=BLOCK, before=groups.stock),
            "put": Work(operation=groups.put),
        }

        def measure(seconds: float) -> Figures:
            return {figure: rate(work, seconds / len(works)) for figure, work in works.items()}

        yield Ready(measure=measure, settings=settings_of(qm))


def contestants(site: Site) -> list[Contestant]:
    """Returns two contestants: a long group, and short ones."""
    lengths = {IN_LONG: max(2 * SHORT, site.scaled(LONG)), IN_SHORT: SHORT}
    return [Contestant(name=name, role="ours", open=partial(opened, length=length)) for name, length in lengths.items()]


QUESTION = Question(
    name="long_group",
    title=f"get and put in logical order in a group of {LONG:,} members",
    unit="messages/s",
    contestants=contestants,
    bars=[Bar(figure=figure, of=IN_LONG, against=IN_SHORT, first=0.8, goal=0.95) for figure in ("get", "put")],
)
