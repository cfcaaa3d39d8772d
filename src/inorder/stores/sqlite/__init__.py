"""The store in a file, shared by any number of processes. Acknowledged changes are on disk when an operation
returns.
"""

from __future__ import annotations

import os

from ...support.clock import Clock, SystemClock
from ..engine import connections
from ..engine.store import QueueStore, new_manager
from ..sql.backend import SqlBackend
from .checking import problems
from .database import Database
from .engine import SqliteEngine
from .host import SqliteHost
from .opening import SIDECAR, is_of_any_store, is_of_open_store, is_of_store, resolved
from .statements import LADDER, SCHEMA
from .upgrading import upgrade_file
from .watch import SqliteWatch, WaitedQueues


class SqliteStore(QueueStore):
    """A store in a file, as this process has it open. All connections of the process share it.

    Args:
        path: the file; it is created if it is missing.
        name: of the queue manager, if the store is created; it is part of generated ids.
        clock: the source of the time.
        keeps_log: never copy the log into the file; for tests of the state after a loss of power.
        shortcuts: use the shortcuts for plain requests; the answers are the same without them.

    Raises: the errors of `Database`: StoreForeign, StoreNewer, StoreOlder, StoreError.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        name: str = "INORDER",
        clock: Clock | None = None,
        *,
        keeps_log: bool = False,
        shortcuts: bool = True,
    ) -> None:
        manager = new_manager(name).replace("'", "''")
        rows = f"INSERT INTO manager (id, attributes) VALUES (1, '{manager}')"
        self.database = Database(path, schema=SCHEMA, rows=rows, ladder=LADDER)
        try:
            seen = WaitedQueues()
            backend = SqlBackend(SqliteEngine(self.database, seen), name, shortcuts=shortcuts)
            host = SqliteHost(self.database, backend, keeps_log=keeps_log)
            super().__init__(backend, host, str(self.database.path), name, clock or SystemClock(), backend.shortcuts)
            host.watch = SqliteWatch(self, self.database, seen)
            connections.begin(self)
        except BaseException:
            self.database.close()
            raise


def problems_in_file(path: str | os.PathLike[str]) -> list[str]:
    """Checks a store that is too damaged for a queue manager to open. Returns all findings.

    Raises: the errors of `Database`; StoreDamaged, if it cannot be read at all.
    """
    database = Database(path, schema=SCHEMA, ladder=LADDER)
    try:
        return problems(database)
    finally:
        database.close()


__all__ = [
    "SIDECAR",
    "SqliteStore",
    "is_of_any_store",
    "is_of_open_store",
    "is_of_store",
    "problems_in_file",
    "resolved",
    "upgrade_file",
]
