"""What everyone who works in a transaction reaches by it: statements, and the units and handles that rows name."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import apsw

from ..rows import HeldUnit
from .codec import Codec
from .handles import SqliteHandle
from .statements import ById, statement
from .units import SqliteUnit, unit_of

UNIT = statement("unit")
NAMED_UNIT = statement("named unit")
LOCKER = statement("locker")


class Reach:
    """The part of a transaction that a search needs.

    Args:
        sessions: the units of work of this process's connections, by number.
        handles: the handles of this process.
    """

    def __init__(
        self,
        connection: apsw.Connection,
        codec: Codec,
        sessions: Mapping[int, SqliteUnit],
        handles: Mapping[int, SqliteHandle],
    ) -> None:
        self.codec = codec
        self.execute: Callable[..., Any] = connection.execute
        self.execute_many: Callable[..., Any] = connection.executemany
        self._open_blob, self._changes = connection.blob_open, connection.changes
        self._sessions, self._handles = sessions, handles
        self._units: dict[int, SqliteUnit] = {}

    def value(self, sql: str, *values: Any) -> Any:
        """The one value of a statement; None if there is no row."""
        row = next(self.execute(sql, values), None)
        return None if row is None else row[0]

    def change(self, sql: str, values: Sequence[Any] | Mapping[str, Any], expected: int = 1) -> None:
        """A statement that changes so many rows, each in the state that it names."""
        self.execute(sql, values)
        if (changed := self._changes()) != expected:
            raise AssertionError(f"{changed} rows were in the state that was expected, of {expected}: {sql}")

    def change_each(self, sql: ById, numbers: Sequence[int], *values: Any) -> None:
        """The same for messages that are given by their numbers."""
        if len(numbers) == 1:
            self.change(sql.one, (numbers[0], *values))
        elif numbers:
            self.change(sql.many, (apsw.carray(array("q", numbers)), *values), len(numbers))

    def execute_each(self, sql: ById, numbers: Sequence[int]) -> None:
        """A statement about contents, of messages that are given by their numbers."""
        if len(numbers) == 1:
            self.execute(sql.one, (numbers[0],))
        elif numbers:
            self.execute(sql.many, (apsw.carray(array("q", numbers)),))

    def value_of(self, sql: str, values: Mapping[str, Any]) -> Any:
        """The same for a statement whose values have names."""
        row = next(self.execute(sql, values), None)
        return None if row is None else row[0]

    def beginning(self, number: int, size: int) -> bytes:
        """The first bytes of a body; the others are not read."""
        body = self._open_blob("main", "content", "body", number, False)
        try:
            return body.read(size)
        finally:
            body.close()

    # --- who holds

    def number_of(self, unit: HeldUnit) -> int:
        assert isinstance(unit, SqliteUnit)
        return unit.id

    def unit(self, number: int) -> SqliteUnit:
        """The one object for a unit in this transaction."""
        own = self._sessions.get(number)
        if own is not None:
            return own
        if number not in self._units:
            self._units[number] = unit_of(next(self.execute(UNIT, (number,))))
        return self._units[number]

    def named_unit(self, queue: int, kind: str, name: str) -> SqliteUnit | None:
        """What a confirm id or lock id holds on a queue, if anything."""
        row = next(self.execute(NAMED_UNIT, (queue, kind, name)), None)
        return None if row is None else self.unit(row[0])

    def is_lock(self, number: int, lock_id: str) -> bool:
        unit = self.unit(number)
        return unit.kind == "lock" and unit.name == lock_id

    def has_locked(self, handle: int) -> bool:
        """Whether a handle of this process has browsed something with lock."""
        one = self._handles.get(handle)
        return one is not None and bool(one.locked)

    def locker(self, handle: int) -> tuple[int, str]:
        """The connection and the program of a handle that holds a browse lock."""
        connection, program = next(self.execute(LOCKER, (handle,)))
        return connection, program
