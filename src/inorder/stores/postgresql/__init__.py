"""The store in PostgreSQL: programs on any number of machines use it at once."""

from __future__ import annotations

from ...support.clock import Clock, SystemClock
from ..engine import connections
from ..engine.store import QueueStore, new_manager
from .address import Address, parse
from .backend import PostgresBackend
from .engine import PostgresEngine
from .host import PostgresHost
from .opening import are_one, drop, is_there, open_link
from .upgrading import upgrade_schema
from .watch import PostgresWatch


class PostgresStore(QueueStore):
    """A store in a schema of a PostgreSQL database, over one connection to it.

    Args:
        url: of libpq, `postgresql://host/database`, with the schema as `?schema=orders`. The store, and the schema too,
            is created there if it is missing.
        name: of the queue manager, if the store is created; it is part of generated ids.
        clock: the source of the time.
        program: the name by which administrators of the server recognize the connection.
        shortcuts: use the shortcuts for plain requests; the answers are the same without them.

    Raises: ArgumentError, if the URL is not valid; StoreError and its kinds, if no store can be opened there.
    """

    page_messages = 256

    def __init__(
        self, url: str, name: str = "INORDER", clock: Clock | None = None, *, shortcuts: bool = True, program: str = ""
    ) -> None:
        self.address = parse(url)
        link = open_link(self.address, new_manager(name), program)
        try:
            engine = PostgresEngine(link)
            backend = PostgresBackend(engine, name, shortcuts=shortcuts)
            backend.has_own_clock = clock is not None
            host = PostgresHost(link, backend)
            super().__init__(backend, host, str(self.address), name, clock or SystemClock(), backend.shortcuts)
            host.store = self
            host.watch = PostgresWatch(self, link, backend.sql)
            connections.begin(self)
        except BaseException:
            link.close()
            raise


__all__ = ["Address", "PostgresStore", "are_one", "drop", "is_there", "parse", "upgrade_schema"]
