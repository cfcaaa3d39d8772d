"""The store in a file: any number of processes have it open, and what it promises is on disk when a verb returns."""

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
        path: the file; it is made if it is missing.
        name: of the queue manager, if the store is made; it is part of generated ids.
        clock: where the time comes from.
        keeps_log: the log is never copied into the file; for tests of what a loss of power leaves.
        shortcuts: plain requests go the short way; the other way gives the same answers.

    Raises: what `Database` raises: StoreForeign, StoreNewer, StoreOlder, StoreError.
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
        schema = f"{SCHEMA}\nINSERT INTO manager (id, attributes) VALUES (1, '{manager}');\n"
        self.database = Database(path, schema=schema, version=LADDER)
        try:
            seen = WaitedQueues()
            backend = SqlBackend(SqliteEngine(self.database, seen), name, shortcuts=shortcuts)
            host = SqliteHost(self.database, backend, keeps_log=keeps_log)
            super().__init__(backend, host, str(self.database.path), name, clock or SystemClock())
            self.shortcuts = backend.shortcuts
            host.watch = SqliteWatch(self, self.database, seen)
            connections.begin(self)
        except BaseException:
            self.database.close()
            raise


def problems_in_file(path: str | os.PathLike[str]) -> list[str]:
    """Everything that is wrong in a store that is too damaged to be opened by a queue manager.

    Raises: what `Database` raises: StoreDamaged, it cannot even be read.
    """
    database = Database(path, schema=SCHEMA, version=LADDER)
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
