"""The queue managers of a scenario, each with its own store; the first step that names one creates it."""

from __future__ import annotations

from collections.abc import Callable

from inorder.client.manager import QueueManager, connect
from inorder.client.owners import OwnerSession
from inorder.client.services import Services, connect_at, services_of
from inorder.rules.puts import Program
from inorder.testing.clock import ManualClock
from inorder.testing.stores import NAME, RestartableStore, make_store

from .actors import NameTable
from .language import HERE

URL = "https://"  # before the name of a queue manager in a connection, which may not be a path for all kinds of stores


class Site:
    """One queue manager: its store, its operator's connection, and the names that the table has used there."""

    def __init__(self, name: str, store: RestartableStore, table: NameTable) -> None:
        self.name, self.store, self.table = name, store, table
        self.operator = connect(store, program="operator")

    def connect(self) -> None:
        """Abandons the operator's connection and makes another one."""
        self.operator.internals.abandon()
        self.operator = connect(self.store, program="operator")

    def reach(self, program: str) -> QueueManager:
        """Returns a connection of another program."""
        return connect(self.store, program=program)


class Sites(dict[str, Site]):
    """The queue managers by their names in a table: `qm` is the queue manager TEST, and `qm2` is QM2.

    Args:
        kind: the kind of their stores.
    """

    def __init__(self, kind: str) -> None:
        super().__init__()
        self.kind, self.clock = kind, ManualClock()

    def __missing__(self, name: str) -> Site:
        first = next(iter(self.values()), None)
        table = NameTable() if first is None else NameTable(ids=first.table.ids, puts=first.table.puts)
        store = make_store(self.kind, self.clock, manager_name(name))
        self[name] = Site(name, store, table)
        return self[name]

    def reach_owner(self, location: str, program: Program, connect: Callable[[Services], OwnerSession]) -> OwnerSession:
        """Connects to the store of a queue manager by its name in the table, in the place of `owners.reach`."""
        del program
        store = self[location.removeprefix(URL)].store
        return connect(services_of(store)) if store.again is None else connect_at(None, store.again, connect)


def manager_name(site: str) -> str:
    """Returns the name of a queue manager from its name in a table."""
    return NAME if site == HERE else site.upper()
