"""The small records as tables: statements made of the kinds and their fields, which are a closed set."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from ..tables import KEY_LENGTHS, UpTo
from .engine import Engine

T = TypeVar("T")


def table_of(kind: type[Any]) -> str:
    """The name of the table for a kind of record."""
    return kind.__name__.removesuffix("Row").lower()


@functools.lru_cache(maxsize=256)
def _condition(where: tuple[tuple[str, str], ...]) -> str:
    return " AND ".join(f"{name} {how}" for name, how in where) or "true"


@functools.lru_cache(maxsize=64)
def _selecting(kind: Any) -> tuple[str, str]:
    fields = kind._fields
    return (
        f"SELECT {', '.join(fields)} FROM {table_of(kind)} WHERE ",
        f" ORDER BY {', '.join(fields[: KEY_LENGTHS[kind]])}",
    )


@functools.lru_cache(maxsize=64)
def _saving(kind: Any) -> str:
    fields, length = kind._fields, KEY_LENGTHS[kind]
    changes = ", ".join(f"{name} = excluded.{name}" for name in fields[length:])
    return (
        f"INSERT INTO {table_of(kind)} ({', '.join(fields)}) VALUES ({', '.join('?' * len(fields))}) "
        f"ON CONFLICT ({', '.join(fields[:length])}) DO {f'UPDATE SET {changes}' if changes else 'NOTHING'}"
    )


class SqlRecords:
    """The part of a backend that keeps small records; and statements that know how many rows they change."""

    engine: Engine
    sql: Mapping[str, str]

    def select(self, kind: type[T], /, **where: Any) -> list[T]:
        condition, values = _where(where)
        row: Any = kind
        before, after = _selecting(row)
        make = row._make
        if "<=" in condition:  # by the index of that field; to have them by their keys the database would read all
            return sorted(make(row) for row in self.engine.execute(before + condition, values))
        return [make(row) for row in self.engine.execute(before + condition + after, values)]

    def save(self, record: Any) -> None:
        kind: Any = type(record)
        self.engine.execute(_saving(kind), record)

    def remove_records(self, kind: type[Any], /, **where: Any) -> int:
        condition, values = _where(where)
        self.engine.execute(f"DELETE FROM {table_of(kind)} WHERE {condition}", values)
        return self.engine.changes()

    # --- guarded changes

    def value(self, sql: str, *values: Any) -> Any:
        """The one value of a statement; None if there is no row."""
        row = next(self.engine.execute(sql, values), None)
        return None if row is None else row[0]

    def change(self, sql: str, values: Any, expected: int = 1) -> None:
        """A statement that changes so many rows, each in the state that it names."""
        self.engine.execute(sql, values)
        if (changed := self.engine.changes()) != expected:
            raise AssertionError(f"{changed} rows were in the state that was expected, of {expected}: {sql}")

    def change_each(self, name: str, numbers: Sequence[int], *values: Any) -> None:
        """The same for messages that are given by their numbers."""
        if len(numbers) == 1:
            self.change(self.sql[name], (numbers[0], *values))
        elif numbers:
            self.change(self.sql[f"{name} many"], (self.engine.array(numbers), *values), len(numbers))

    def execute_each(self, name: str, numbers: Sequence[int]) -> None:
        """A statement about contents, of messages that are given by their numbers."""
        if len(numbers) == 1:
            self.engine.execute(self.sql[name], (numbers[0],))
        elif numbers:
            self.engine.execute(self.sql[f"{name} many"], (self.engine.array(numbers),))


def _where(where: dict[str, Any]) -> tuple[str, list[Any]]:
    """A condition, and its values; the kind of a unit is written out, so that partial indexes are found."""
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
