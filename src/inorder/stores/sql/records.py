"""The small records as tables. Statements are built from the record classes and their fields, which are a closed
set.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeVar

from ...errors import StoreDamaged
from ..seam.damage import damaged
from ..seam.records import Act
from ..seam.tables import KEY_LENGTHS, UpTo
from .engine import Engine
from .shapes import Shapes, Table

T = TypeVar("T")
INSERTED_MAX = 64  # rows in one statement
NO_TIME = 1e300  # later than all others


def table_of(kind: type[Any]) -> str:
    """Returns the name of the table for a class of records."""
    return kind.__name__.removesuffix("Row").lower()


def _quoted(fields: Sequence[str]) -> list[str]:
    """Quotes the names of columns, which may have another meaning: in PostgreSQL `user` is the connected role."""
    return [f'"{name}"' for name in fields]


@functools.lru_cache(maxsize=256)
def _condition(where: tuple[tuple[str, str], ...]) -> str:
    return " AND ".join(f"{name} {how}" for name, how in where) or "true"


@functools.lru_cache(maxsize=64)
def selecting(kind: Any) -> tuple[str, str]:
    """Returns the statement that reads such records, as the parts before and after the condition."""
    fields = _quoted(kind._fields)
    return (
        f"SELECT {', '.join(fields)} FROM {table_of(kind)} WHERE ",
        f" ORDER BY {', '.join(fields[: KEY_LENGTHS[kind]])}",
    )


@functools.lru_cache(maxsize=64)
def saving(kind: Any) -> str:
    """Returns the statement that writes such a record."""
    fields, length = _quoted(kind._fields), KEY_LENGTHS[kind]
    changes = ", ".join(f"{name} = excluded.{name}" for name in fields[length:])
    return (
        f"INSERT INTO {table_of(kind)} ({', '.join(fields)}) VALUES ({', '.join('?' * len(fields))}) "
        f"ON CONFLICT ({', '.join(fields[:length])}) DO {f'UPDATE SET {changes}' if changes else 'NOTHING'}"
    )


@functools.lru_cache(maxsize=64)
def _for_many(sql: str, rows: int) -> str:
    """Extends the statement that inserts one row to this many."""
    before, one = sql.rstrip(";").rsplit(" VALUES ", 1)
    return f"{before} VALUES {','.join([one.replace(' ', '')] * rows)}"


class ShapesOfKinds(dict[Any, Shapes]):
    """The possible types of each class of rows, created when the first one is read."""

    def __init__(self, tables: Mapping[str, Table]) -> None:
        self._tables = tables

    def __missing__(self, kind: Any) -> Shapes:
        shapes = self[kind] = Shapes.of(self._tables[table_of(kind)], kind._fields)
        return shapes


class SqlRecords:
    """The part of a backend for small records, and for statements that must change a known number of rows."""

    engine: Engine
    sql: Mapping[str, str]
    shapes: ShapesOfKinds
    noted: dict[int, int]
    """The `attention` of each queue that this transaction has read."""

    def select(self, kind: type[T], /, **where: Any) -> list[T]:
        condition, values = _where(where)
        row: Any = kind
        before, after = selecting(row)
        if "<=" in condition:  # uses that field's index; ordering by key would read all rows
            return sorted(self._made(row, self.engine.execute(before + condition + _limit(where), values)))
        return self._made(row, self.engine.execute(before + condition + after, values))

    def _made(self, kind: Any, found: Iterable[tuple[Any, ...]]) -> list[Any]:
        """Makes records from rows. Raises: StoreDamaged, if a row cannot have been written."""
        made = []
        for row in found:
            shapes = self.shapes[kind]
            if tuple(map(type, row)) not in shapes.known and (wrong := shapes.wrong(row)):
                raise self._wrong_record(kind, row, wrong)
            made.append(kind._make(row))
        return made

    @staticmethod
    def _wrong_record(kind: Any, row: tuple[Any, ...], wrong: str) -> StoreDamaged:
        key = ", ".join(
            f"{name} {value!r:.40}" for name, value in zip(kind._fields, row[: KEY_LENGTHS[kind]], strict=False)
        )
        return damaged(f"table {table_of(kind)}, {key}", wrong, table=table_of(kind))

    def save(self, record: Any) -> None:
        kind: Any = type(record)
        self.engine.run(saving(kind), record)

    def remove_records(self, kind: type[Any], /, **where: Any) -> int:
        condition, values = _where(where)
        self.engine.run(f"DELETE FROM {table_of(kind)} WHERE {condition}", values)
        return self.engine.changes()

    def newest_acts(self, before: tuple[float, int] | None, most: int, skip: int = 0) -> Sequence[Act]:
        at, number = before or (NO_TIME, 0)
        found: list[Act] = self._made(Act, self.engine.execute(self.sql["newest acts"], (at, number, most, skip)))
        return found

    def insert(self, name: str, values: Sequence[Any]) -> None:
        """Inserts many rows by a statement for one; `values`: of all rows, one after another.

        Each statement inserts as many rows as possible. Their number is a power of two, so that the database can keep
        the few texts prepared.
        """
        sql = self.sql[name]
        width = sql.count("?")
        begin, end = 0, len(values)
        while begin < end:
            rows = min(INSERTED_MAX, 1 << ((end - begin) // width).bit_length() - 1)
            self.engine.run(_for_many(sql, rows), values[begin : begin + rows * width])
            begin += rows * width

    # --- guarded changes

    def value(self, sql: str, *values: Any) -> Any:
        """Returns the only value of a statement; None if there is no row."""
        row = next(self.engine.execute(sql, values), None)
        return None if row is None else row[0]

    def change(self, sql: str, values: Any, expected: int = 1) -> None:
        """Runs a statement that must change this many rows, each in the state that it names."""
        self.engine.run(sql, values)
        if (changed := self.engine.changes()) != expected:
            raise damaged("messages", f"only {changed} of {expected} rows are still in the state that was read ({sql})")

    def change_each(self, name: str, numbers: Sequence[int], *values: Any) -> None:
        """The same for messages by their numbers."""
        if len(numbers) == 1:
            self.change(self.sql[name], (numbers[0], *values))
        elif numbers:
            self.change(self.sql[f"{name} many"], (self.engine.array(numbers), *values), len(numbers))

    def execute_each(self, name: str, numbers: Sequence[int]) -> None:
        """Runs a statement about contents, for messages by their numbers."""
        if len(numbers) == 1:
            self.engine.run(self.sql[name], (numbers[0],))
        elif numbers:
            self.engine.run(self.sql[f"{name} many"], (self.engine.array(numbers),))


def _limit(where: dict[str, Any]) -> str:
    """Returns the end of a statement that selects the lowest few."""
    for name, value in where.items():
        if isinstance(value, UpTo) and value.most is not None:
            return f" ORDER BY {name} LIMIT {value.most:d}"
    return ""


def _where(where: dict[str, Any]) -> tuple[str, list[Any]]:
    """Returns a condition and its values. The kind of a unit is part of the text, so that partial indexes are used."""
    how, values = [], []
    for name, value in where.items():
        if value is None:
            how.append((name, "IS NULL"))
        elif isinstance(value, UpTo):
            how.append((name, "<= ?"))
            values.append(value.value)
        elif name == "kind":
            assert value.isalpha(), value
            how.append((name, f"= '{value}'"))
        else:
            how.append((name, "= ?"))
            values.append(value)
    return _condition(tuple(how)), values
