"""Checks a store in a file: SQLite's own check of the file, and `sql.checking` for its tables."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, Final

import apsw

from ..sql.checking import Part
from ..sql.checking import parts as parts_of
from ..sql.shapes import Table
from .database import Database
from .statements import STATEMENTS, TABLES, checks

FILE: Final = ("PRAGMA integrity_check", "PRAGMA foreign_key_check")


class SqliteSource:
    """See `sql.checking.CheckedDatabase`."""

    tables: Mapping[str, Table] = TABLES
    sql: Mapping[str, str] = STATEMENTS
    wrong: tuple[type[Exception], ...] = (apsw.CorruptError,)

    def __init__(self, database: Database) -> None:
        self._database = database

    def reading(self) -> AbstractContextManager[None]:
        return self._database.reading()

    def query(self, sql: str, values: Sequence[Any] = ()) -> Iterable[tuple[Any, ...]]:
        return self._database.connection.execute(sql, tuple(values))


def parts() -> list[Part]:
    """Returns the parts of a check."""
    return parts_of((*FILE, *checks().values()))


def problems(database: Database) -> list[str]:
    """Returns all findings; empty if the store is sound."""
    source = SqliteSource(database)
    return [text for part in parts() for text in part(source)]
