"""The engine of an SQLite file: its connection, and its statements."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import apsw

from ...rules.staging import Key
from ..seam.backend import OperationKind
from ..sql.shapes import Table
from .database import Database
from .statements import STATEMENTS, TABLES
from .watch import WaitedQueues


class SqliteEngine:
    """See `sql.engine.Engine`.

    Args:
        seen: the states of queues that waiting calls of this process have seen.
    """

    def __init__(self, database: Database, seen: WaitedQueues) -> None:
        self._database, self._seen = database, seen
        self.sql: Mapping[str, str] = STATEMENTS
        self.tables: Mapping[str, Table] = TABLES
        self._connection: apsw.Connection | None = None
        self.execute: Callable[..., Any]
        self.scan: Callable[..., Any]
        self.run: Callable[..., Any]
        self.changes: Callable[[], int]
        self.has_triggers = False

    @property
    def is_inside(self) -> bool:
        return self._database.is_inside

    @property
    def has_happened(self) -> bool:
        return self._database.has_happened

    def begin(self, kind: OperationKind) -> None:
        connection = self._database.begin(writes=kind.writes)
        if connection is not self._connection:  # the first one, or after a fork
            self.has_triggers = False  # in this order: an exception from outside may come between
            connection.config(apsw.SQLITE_DBCONFIG_ENABLE_TRIGGER, 0)
            self.execute = self.scan = connection.execute
            self.run, self.changes = self._database.execute, connection.changes
            self._connection = connection

    def commit(self, changed: Collection[int], *, reserves: bool, durable: bool) -> int:
        database = self._database
        ticket = database.commit(changed, reserves=reserves)
        if self._seen.queues:
            for queue in changed:
                self._seen.own(queue, database.shared.seen(queue))
        return ticket

    def abort(self, error: BaseException) -> None:
        self._database.abort(error)

    def follow_groups(self) -> None:
        assert self._connection is not None
        self._connection.config(apsw.SQLITE_DBCONFIG_ENABLE_TRIGGER, 1)
        self.has_triggers = True

    @contextmanager
    def ignore_groups(self) -> Iterator[None]:
        assert self._connection is not None
        if not self.has_triggers:
            yield
            return
        self.has_triggers = False  # after an exception, the next verb on groups follows them again
        self._connection.config(apsw.SQLITE_DBCONFIG_ENABLE_TRIGGER, 0)
        yield
        self.follow_groups()

    def array(self, values: Sequence[int] | Sequence[bytes] | Sequence[str]) -> Any:
        return apsw.carray(array("q", values) if isinstance(values[0], int) else tuple(values))

    def keys(self, values: Sequence[Key]) -> Sequence[Key]:
        return values

    def beginning(self, number: int, size: int) -> bytes | None:
        assert self._connection is not None
        try:
            body = self._connection.blob_open("main", "content", "body", number, False)
        except apsw.SQLError:  # no such row, or no blob
            return None
        try:
            return body.read(size)
        finally:
            body.close()
