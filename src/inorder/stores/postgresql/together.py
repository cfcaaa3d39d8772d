"""Operations that are together on a queue that keeps no order: plain puts, and gets of the first messages.

They share an advisory lock of the queue, so that no operation has it locked while one of them runs (backend.py), and
they run only the statements of `STATEMENTS_TOGETHER`. None of these can interfere with another one:

* A put inserts rows that are invisible before its commit. Their places have numbers from a sequence, each drawn once,
  which a commit that is on disk has reserved in the queue's row (B-2): if none has, the put runs again with the queue
  locked, and reserves some. One producer's numbers ascend, by either way of drawing them (B-15).
* A get takes rows that no other operation has locked, and locks them with the same statement.
* A unit of work belongs to its connection, and is settled with the queue locked.
* Counts go into the slot of the session. So the depth that a put finds lacks messages that others put meanwhile.
* The attention bits (sql/attention.py) change only while the queue is locked.
* Definitions of other queues may change meanwhile: an operation may then read newer ones than the revision that it
  found with its queue, and the session's next operation reads them again.

An operation that needs anything else, because of its request or the messages that it found, fails with `Passing`, has
changed nothing, and runs again with the queue locked. No operation waits for a lock while it holds one of these, so no
deadlock can occur.
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

# Allowed attention bits: `queue state and due work` shows when there is something to do.
GRANTED: Final = EXPIRES | DUE | FRONTS | HEARD
TAKEN_AS_KNOWN: Final = ("get and remove together as known", "get and remove one together as known")
LOCKS_FIRST: Final = 16  # operations that lock a queue after one that should have locked it

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
    "DELETE FROM unit WHERE id = ?",  # a connection's unit of work sometimes gets another number
    "id = ?".join(selecting(UnitRow)),
    "true".join(selecting(ManagerRow)),  # others may change it meanwhile, like the definitions
    *(f"{key} = ?".join(selecting(DefinitionRow)) for key in ("id", "name")),
    counted(STATEMENTS["restart unit"], 3),
    *(counted(STATEMENTS[name], 5) for name in ("hold messages for unit", "hold messages for unit many")),
    ordered(STATEMENTS["available by place"], EVERYTHING, WHOLE),  # the answer to a get that finds nothing
)
STATEMENTS_TOGETHER: Final[Mapping[str, str]] = {text: text for text in _SAME} | {
    STATEMENTS[name]: STATEMENTS[f"{name} together"] for name in ("get available singles", "get and remove")
}
TOGETHER_AFTER_FRONTS: Final[Mapping[str, str]] = {
    **STATEMENTS_TOGETHER,
    **{
        STATEMENTS[name]: STATEMENTS[f"{name} together after fronts"]
        for name in ("get available singles", "get and remove")
    },
    **{STATEMENTS[name]: STATEMENTS[f"{name} after fronts"] for name in TAKEN_AS_KNOWN},
}


class Together:
    """A connection's records of queues that keep no order; the database decides.

    Attributes:
        queue: the queue on which this transaction is together with others, if any.
    """

    def __init__(self) -> None:
        self.queue: int | None = None
        self._locks: dict[tuple[int, bool], int] = {}  # how many operations, that feed a queue or not, lock it first

    def knows(self, queue: int) -> bool:
        """Whether the queue kept no order when it was last read."""
        return (queue, True) in self._locks

    def may_come(self, queue: int, *, feeds: bool) -> bool:
        """Whether an operation should try it without locking the queue."""
        return self._locks.get((queue, feeds)) == 0

    def learn(self, queue: int, *, feeds: bool, is_granted: bool) -> None:
        """Records that the locked queue keeps no order; `is_granted`: it has no attention bits that matter."""
        for key in ((queue, True), (queue, False)):
            left = self._locks.setdefault(key, 0)
            if not is_granted:
                self._locks[key] = 1
            elif key[1] is feeds and left:
                self._locks[key] = left - 1

    def forget(self, queue: int) -> None:
        """Records that the queue keeps its order, or is gone."""
        if self.knows(queue):
            del self._locks[queue, True], self._locks[queue, False]

    def refused(self, *, feeds: bool) -> None:
        """Records that the operation should have locked the queue; similar ones may follow."""
        if self.queue is not None and self.may_come(self.queue, feeds=feeds):
            self._locks[self.queue, feeds] = LOCKS_FIRST

    def lock_next(self, queue: int, *, feeds: bool) -> None:
        """Makes the next put lock the queue, so that it can reserve numbers; or the next get, so that it can set
        fronts.
        """
        self._locks[queue, feeds] = 1
