"""A large group that a unit of work has taken: its bodies come in pages, while the caller goes through it.

The group was taken whole, in one transaction; from then on the unit keeps its messages from everybody, so that it
makes no difference when they are read. When the unit has ended they are gone, or on the queue again: then to read on
is an error.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, overload

from ...errors import UnitNotFound
from ...message import Message
from .codec import GOT_COLUMNS
from .handles import SqliteConnection
from .home import Home
from .reach import Reach
from .statements import statement
from .units import SqliteUnit
from .verb import Verb

PAGE_MESSAGES: Final = 256
PAGE_BYTES: Final = 1 << 20

READ_TAKEN = statement("read taken", columns=GOT_COLUMNS)


class TakenGroup(Sequence[Message]):
    """The messages of the group, in order.

    Args:
        unit: what has taken them.
        now: when.
        numbers, lengths: of each message.
    """

    def __init__(
        self,
        home: Home,
        connection: SqliteConnection,
        unit: SqliteUnit,
        now: float,
        numbers: Sequence[int],
        lengths: Sequence[int],
    ) -> None:
        self._home, self._connection, self._unit, self._now = home, connection, unit, now
        self._numbers, self._lengths = array("q", numbers), array("q", lengths)

    def __len__(self) -> int:
        return len(self._numbers)

    @overload
    def __getitem__(self, index: int) -> Message: ...
    @overload
    def __getitem__(self, index: slice) -> list[Message]: ...

    def __getitem__(self, index: int | slice) -> Message | list[Message]:
        """One message, or some. Raises: as `__iter__`."""
        if isinstance(index, slice):
            return self._page(self._numbers[index])
        return self._page([self._numbers[index]])[0]

    def __iter__(self) -> Iterator[Message]:
        """The messages, a page at a time.

        Raises: UnitNotFound, the unit of work has ended before all was read; ConnectionBroken 2009.
        """
        start = 0
        while start < len(self._numbers):
            end = self._end_of_page(start)
            yield from self._page(self._numbers[start:end])
            start = end

    def _end_of_page(self, start: int) -> int:
        size, last = 0, min(start + PAGE_MESSAGES, len(self._numbers))
        for index in range(start, last):
            size += self._lengths[index]
            if size > PAGE_BYTES and index > start:
                return index
        return last

    def _page(self, numbers: Iterable[int]) -> list[Message]:
        with Verb(self._home, writes=False) as verb:
            if self._home.connection(self._connection.id).unit is not self._unit:
                raise UnitNotFound(
                    "the unit of work that took this group has ended: read the whole group before you settle the unit"
                )
            return read_taken(verb, numbers, self._unit, self._now)


def read_taken(reach: Reach, numbers: Iterable[int], unit: SqliteUnit, now: float) -> list[Message]:
    """These messages, which the unit holds, as they were got at that time."""
    got = reach.codec.got
    found = reach.execute_many(READ_TAKEN, [(number, unit.id) for number in numbers])
    return [got(columns, now) for columns in found]
