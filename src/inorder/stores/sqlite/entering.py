"""Who is inside which group, in the file (B-45): the part of a transaction that notes it."""

from __future__ import annotations

from abc import ABC, abstractmethod

from ..base import Outcome
from ..rows import Entered, HeldUnit, ReaderId
from ..shelf import Told
from .codec import entry_text
from .reach import Reach
from .shelf import SqliteQueue
from .statements import statement
from .units import SqliteUnit

ENTER = statement("enter")
LEAVE = statement("leave")
LEAVE_WITH_UNIT = statement("leave with unit")
LEAVE_ALL = statement("leave all")
COMMIT_ENTRIES = statement("commit entries")
BACK_OUT_ENTRIES = statement("back out entries")
RETURN_READERS = statement("return readers")


class Entering(Reach, ABC):
    """What a verb does to the groups that readers are inside."""

    @abstractmethod
    def touch(self, queue: SqliteQueue) -> Told: ...

    def enter(self, queue: SqliteQueue, entered: Entered, unit: SqliteUnit | None) -> None:
        unit_number = None if unit is None else unit.id
        values = queue.id, entered.head.group_id, entered.reader, unit_number, entry_text(entered)
        self.execute(ENTER, values)
        queue.has_entries = True

    def leave(
        self,
        queue: SqliteQueue,
        reader: ReaderId,
        unit: SqliteUnit | None,
        open_unit: SqliteUnit | None,
        *,
        but: bytes | None = None,
    ) -> None:
        if not queue.has_entries:
            return
        if open_unit is not None:
            self.execute(LEAVE_WITH_UNIT, (queue.id, reader, open_unit.id, but))
        self.execute(LEAVE, (queue.id, reader, None if unit is None else unit.id, but))

    def leave_all(self, queue: SqliteQueue, reader: ReaderId) -> None:
        if queue.has_entries:
            self.execute(LEAVE_ALL, (queue.id, reader))
            self.touch(queue)

    def back_out_of_groups(self, queue: SqliteQueue, unit: HeldUnit) -> None:
        assert isinstance(unit, SqliteUnit)
        self._settle_entries(queue, unit, "back_out")

    def _settle_entries(self, queue: SqliteQueue, unit: SqliteUnit, outcome: Outcome) -> None:
        """What the unit has done to the groups that readers are inside counts, or is taken back."""
        if not queue.has_entries:
            return
        if outcome == "commit":
            self.execute(COMMIT_ENTRIES, (queue.id, unit.id))
        else:
            self.execute(BACK_OUT_ENTRIES, (queue.id, unit.id))
            self.execute(RETURN_READERS, (queue.id, unit.id))
