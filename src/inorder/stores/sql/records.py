"""The small records as tables: statements made of the kinds and their fields, which are a closed set."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeVar

from ...errors import StoreDamaged
from ..seam.damage import damaged
from ..seam.tables import KEY_LENGTHS, ActRow, UpTo
from .engine import Engine
from .shapes import Shapes, Table

T = TypeVar("T")
INSERTED_MAX = 64  # rows by one statement
NO_TIME = 1e300  # behind all others


def table_of(kind: type[Any]) -> str:
    """The name of the table for a kind of record."""
    return kind.__name__.removesuffix("Row").lower()


def _quoted(fields: Sequence[str]) -> list[str]:
    """Names of columns, which may mean something else to a database: to PostgreSQL `user` is the connected role."""
    return [f'"{name}"' for name in fields]


@functools.lru_cache(maxsize=256)
def _condition(where: tuple[tuple[str, str], ...]) -> str:
    return " AND ".join(f"{name} {how}" for name, how in where) or "true"


@functools.lru_cache(maxsize=64)
def selecting(kind: Any) -> tuple[str, str]:
    """The statement that reads such records, before and after what is said of them."""
    fields = _quoted(kind._fields)
    return (
        f"SELECT {', '.join(fields)} FROM {table_of(kind)} WHERE ",
        f" ORDER BY {', '.join(fields[: KEY_LENGTHS[kind]])}",
    )


@functools.lru_cache(maxsize=64)
def saving(kind: Any) -> str:
    """The statement that writes such a record."""
    fields, length = _quoted(kind._fields), KEY_LENGTHS[kind]
    changes = ", ".join(f"{name} = excluded.{name}" for name in fields[length:])
    return (
        f"INSERT INTO {table_of(kind)} ({', '.join(fields)}) VALUES ({', '.join('?' * len(fields))}) "
        f"ON CONFLICT ({', '.join(fields[:length])}) DO {f'UPDATE SET {changes}' if changes else 'NOTHING'}"
    )


@functools.lru_cache(maxsize=64)
def _for_many(sql: str, rows: int) -> str:
    """The statement that inserts one row, for so many."""
    before, one = sql.rstrip(";").rsplit(" VALUES ", 1)
    return f"{before} VALUES {','.join([one.replace(' ', '')] * rows)}"


class ShapesOfKinds(dict[Any, Shapes]):
    """What rows of each kind may look like, made when the first one is read."""

    def __init__(self, tables: Mapping[str, Table]) -> None:
        self._tables = tables

    def __missing__(self, kind: Any) -> Shapes:
        shapes = self[kind] = Shapes.of(self._tables[table_of(kind)], kind._fields)
        return shapes


class SqlRecords:
    """The part of a backend that keeps small records; and statements that know how many rows they change."""

    engine: Engine
    sql: Mapping[str, str]
    shapes: ShapesOfKinds
    noted: dict[int, int]
    """What may be on each queue that this transaction has come to: `attention`."""

    def select(self, kind: type[T], /, **where: Any) -> list[T]:
        condition, values = _where(where)
        row: Any = kind
        before, after = selecting(row)
        if "<=" in condition:  # by the index of that field; to have them by their keys the database would read all
            return sorted(self._made(row, self.engine.execute(before + condition + _limit(where), values)))
        return self._made(row, self.engine.execute(before + condition + after, values))

    def _made(self, kind: Any, found: Iterable[tuple[Any, ...]]) -> list[Any]:
        """Records of rows. Raises: StoreDamaged, a row cannot have been written as it is."""
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

    def newest_acts(self, before: tuple[float, int] | None, most: int, skip: int = 0) -> Sequence[ActRow]:
        at, number = before or (NO_TIME, 0)
        found: list[ActRow] = self._made(ActRow, self.engine.execute(self.sql["newest acts"], (at, number, most, skip)))
        return found

    def insert(self, name: str, values: Sequence[Any]) -> None:
        """Many new rows by a statement for one of them; `values`: of all rows, one after another.

        As many as possible go in one statement, of which there are few texts: the database keeps them prepared.
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
        """The one value of a statement; None if there is no row."""
        row = next(self.engine.execute(sql, values), None)
        return None if row is None else row[0]

    def change(self, sql: str, values: Any, expected: int = 1) -> None:
        """A statement that changes so many rows, each in the state that it names."""
        self.engine.run(sql, values)
        if (changed := self.engine.changes()) != expected:
            raise damaged("messages", f"of {expected} that were read {changed} are in the state that they had ({sql})")

    def change_each(self, name: str, numbers: Sequence[int], *values: Any) -> None:
        """The same for messages that are given by their numbers."""
        if len(numbers) == 1:
            self.change(self.sql[name], (numbers[0], *values))
        elif numbers:
            self.change(self.sql[f"{name} many"], (self.engine.array(numbers), *values), len(numbers))

    def execute_each(self, name: str, numbers: Sequence[int]) -> None:
        """A statement about contents, of messages that are given by their numbers."""
        if len(numbers) == 1:
            self.engine.run(self.sql[name], (numbers[0],))
        elif numbers:
            self.engine.run(self.sql[f"{name} many"], (self.engine.array(numbers),))


def _limit(where: dict[str, Any]) -> str:
    """The end of a selection that wants the lowest few."""
    for name, value in where.items():
        if isinstance(value, UpTo) and value.most is not None:
            return f" ORDER BY {name} LIMIT {value.most:d}"
    return ""


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
