"""What this process keeps of a store that it has open: the file, its connections and handles, who is to be told."""

from __future__ import annotations

import threading

from ...clock import Clock
from ...errors import ConnectionBroken
from ..base import Change
from ..lock import VerbLock
from ..telling import Teller
from .codec import Codec
from .database import Database
from .definitions import Definitions
from .handles import SqliteConnection, SqliteHandle
from .units import SqliteUnit


class Seen:
    """The queues on which calls of this process wait, with the state of each that they have seen."""

    def __init__(self) -> None:
        self._seen: dict[int, tuple[str, int]] = {}
        self._lock = threading.Lock()
        self.waiting = 0  # calls

    def looked(self, queue: int, name: str, seen: int) -> None:
        """A call has looked at a queue, at this state of it, and waits for another one.

        While other calls wait, what they have seen stands: should it be older, they are still to be told.
        """
        with self._lock:
            if self.waiting <= 1 or queue not in self._seen:
                self._seen[queue] = name, seen

    def own(self, queue: int, seen: int) -> None:
        """This process has changed the queue: its waiters are told already."""
        with self._lock:
            if queue in self._seen:
                self._seen[queue] = self._seen[queue][0], seen

    def changed(self, database: Database) -> list[str]:
        """The queues that are in another state than was seen; that one counts as seen now."""
        with self._lock:
            found = []
            for queue, (name, before) in self._seen.items():
                seen = database.seen(queue)
                if seen != before:
                    self._seen[queue] = name, seen
                    found.append(name)
            return found

    def names(self) -> list[str]:
        with self._lock:
            return [name for name, _ in self._seen.values()]


class Home:
    """A store as this process has it open."""

    def __init__(self, database: Database, name: str, clock: Clock, *, keeps_log: bool) -> None:
        self.database, self.clock, self.keeps_log = database, clock, keeps_log
        self.codec = Codec(name)
        self.definitions = Definitions()
        self.lock = VerbLock(str(database.path))
        self.teller = Teller()
        self.seen = Seen()
        self.process = 0
        self.handles: dict[int, SqliteHandle] = {}
        self.connections: dict[int, SqliteConnection] = {}
        self.session_units: dict[int, SqliteUnit] = {}
        self.has_leftovers = False

    @property
    def is_watched(self) -> bool:
        """Whether anybody looks at the messages of changes."""
        return self.teller.is_watched

    def tell_of(self, queue: str) -> None:
        """Another process has changed something on this queue."""
        self.teller.add([Change(queue)])
        self.teller.tell()

    def connection(self, owner: int) -> SqliteConnection:
        if owner not in self.connections:
            raise ConnectionBroken("the connection was lost: connect again")
        return self.connections[owner]

    def handle(self, handle: int) -> SqliteHandle:
        if handle not in self.handles:
            raise ConnectionBroken("the connection of this handle was lost: connect again")
        return self.handles[handle]
