"""Checks a store in PostgreSQL: `sql.checking` for its tables."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import psycopg

from ..sql.checking import Part
from ..sql.checking import parts as parts_of
from ..sql.shapes import Table
from .faults import told_as_ours
from .link import Link
from .statements import STATEMENTS, TABLES, checks


class PostgresSource:
    """See `sql.checking.CheckedDatabase`. The check uses the connection alone."""

    tables: Mapping[str, Table] = TABLES
    sql: Mapping[str, str] = STATEMENTS
    wrong: tuple[type[Exception], ...] = (psycopg.DataError,)

    def __init__(self, link: Link) -> None:
        self._link = link

    @contextmanager
    def reading(self) -> Iterator[None]:
        with told_as_ours(self._link.address):
            self._link.check()
            self._link.begin("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
            is_in_step = False
            try:
                yield
                is_in_step = True
            finally:
                if not self._link.is_closed:
                    self._link.roll_back(is_in_step=is_in_step)

    def query(self, sql: str, values: Sequence[Any] = ()) -> Iterable[tuple[Any, ...]]:
        return self._link.scan(sql, values)


def parts() -> list[Part]:
    """Returns the parts of a check."""
    return parts_of(checks().values())
