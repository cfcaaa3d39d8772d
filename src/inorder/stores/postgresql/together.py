"""Verbs that are together on a queue that keeps no order: plain puts, and gets of what is first.

They share an advisory lock of the queue, so that nobody has it locked while one of them runs (backend.py), and they run
the statements of `STATEMENTS_TOGETHER` and no others. None of these can do anything to another one:

* A put inserts rows that nobody sees before its commit. Their places have numbers of a sequence, which nobody else is
  given, and which a commit that is on disk has reserved in the queue's row (B-2): if none has, the put runs again with
  the queue locked, and reserves some. One producer's numbers ascend, whichever way it draws them (B-15).
* A get takes rows that nobody else has locked, and locks those with the same statement.
* A unit of work is its connection's own, and is settled with the queue locked.
* What is counted goes into a slot of its own session. So the depth that a put finds lacks what others put meanwhile.
* What all verbs look for (sql/attention.py) changes only while the queue is locked.
* Definitions of other queues may change meanwhile: what a verb reads is then newer than the revision that it found with
  its queue, and its next one reads again.

A verb that wants to do anything else, for what it was asked or for what it has found, fails with `Passing`, has changed
nothing, and runs again with the queue locked. No verb waits for a lock while it holds one of these, so there is no
deadlock.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ..seam.tables import DefinitionRow, ManagerRow, UnitRow
from ..sql.attention import DUE, EXPIRES, FRONTS, HEARD
from ..sql.records import saving, selecting
from ..sql.selection import EVERYTHING, WHOLE, ordered
from .making import ARRIVALS, PUTS_TOGETHER, counted, in_arrays
from .statements import STATEMENTS

# What may be on a queue: `queue state and due work` says when there is something to do.
GRANTED: Final = EXPIRES | DUE | FRONTS | HEARD
TAKEN_AS_KNOWN: Final = ("get and remove together as known", "get and remove one together as known")
LOCKS_FIRST: Final = 16  # verbs that lock a queue after one that should have

_SAME: Final = (
    *(STATEMENTS[name] for name in ("enter unordered queue", "unordered queues", "draw numbers", "draw places")),
    *(STATEMENTS[name] for name in ("queue state together", "queue state and due work")),
    *(STATEMENTS[f"queue state together {name}"] for name in ("as known", "to append")),
    *(STATEMENTS[name] for name in ("update queue counters together", *TAKEN_AS_KNOWN)),
    *ARRIVALS.values(),
    *PUTS_TOGETHER.values(),
    *(
        in_arrays(STATEMENTS[name], alike=alike).text
        for name in ("insert message", "insert plain message", "insert content")
        for alike in (False, True)
    ),
    saving(UnitRow),
    "DELETE FROM unit WHERE id = ?",  # a connection's unit of work gets another number now and then
    "id = ?".join(selecting(UnitRow)),
    "true".join(selecting(ManagerRow)),  # which others may change meanwhile, as the definitions
    *(f"{key} = ?".join(selecting(DefinitionRow)) for key in ("id", "name")),
    counted(STATEMENTS["restart unit"], 3),
    *(counted(STATEMENTS[name], 5) for name in ("hold messages for unit", "hold messages for unit many")),
    ordered(STATEMENTS["available by place"], EVERYTHING, WHOLE),  # a get that finds nothing has its answer
)
STATEMENTS_TOGETHER: Final[Mapping[str, str]] = {text: text for text in _SAME} | {
    STATEMENTS[name]: STATEMENTS[f"{name} together"] for name in ("get available singles", "get and remove")
}
TOGETHER_BEHIND: Final[Mapping[str, str]] = {
    **STATEMENTS_TOGETHER,
    **{
        STATEMENTS[name]: STATEMENTS[f"{name} together after fronts"]
        for name in ("get available singles", "get and remove")
    },
    **{STATEMENTS[name]: STATEMENTS[f"{name} after fronts"] for name in TAKEN_AS_KNOWN},
}


class Together:
    """What one connection remembers of queues that keep no order; the database decides.

    Attributes:
        queue: that to which this transaction has come together with others, if it has.
    """

    def __init__(self) -> None:
        self.queue: int | None = None
        self._locks: dict[tuple[int, bool], int] = {}  # how many verbs that feed a queue, or not, lock it first

    def knows(self, queue: int) -> bool:
        """Whether the queue kept no order when it was looked at last."""
        return (queue, True) in self._locks

    def may_come(self, queue: int, *, feeds: bool) -> bool:
        """Whether a verb should try it without locking the queue."""
        return self._locks.get((queue, feeds)) == 0

    def learn(self, queue: int, *, feeds: bool, is_granted: bool) -> None:
        """The queue is locked, and keeps no order; `is_granted`: nothing is on it that all have to look for."""
        for key in ((queue, True), (queue, False)):
            left = self._locks.setdefault(key, 0)
            if not is_granted:
                self._locks[key] = 1
            elif key[1] is feeds and left:
                self._locks[key] = left - 1

    def forget(self, queue: int) -> None:
        """The queue keeps its order, or is gone."""
        if self.knows(queue):
            del self._locks[queue, True], self._locks[queue, False]

    def refused(self, *, feeds: bool) -> None:
        """The verb that has come to the queue should have locked it; others like it may be about to come."""
        if self.queue is not None and self.may_come(self.queue, feeds=feeds):
            self._locks[self.queue, feeds] = LOCKS_FIRST

    def lock_next(self, queue: int, *, feeds: bool) -> None:
        """The next put locks the queue, and may then reserve numbers; or the next get, and may then set fronts."""
        self._locks[queue, feeds] = 1
