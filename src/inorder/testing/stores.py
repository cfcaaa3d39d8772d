"""The stores that scenarios and tests run against, by name."""

from __future__ import annotations

import atexit
import functools
import os
import shutil
import tempfile
import weakref
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol, cast

from ..client.manager import QueueManager, connect
from ..errors import IN_MEMORY, bad_argument
from ..stores.engine.waiting import WaitingRoom
from ..stores.open import InFile, InMemory, OnServer
from ..stores.seam.protocol import LocalStore
from ..support.clock import Clock
from .clock import ManualClock

if TYPE_CHECKING:
    from ..stores.engine.store import QueueStore
    from .schemas import Schemas


class RestartableStore(LocalStore, Protocol):
    """A store that a test can restart, and whose waiting readers it can watch."""

    waiting: WaitingRoom

    def restart(self) -> None:
        """Loses every connection and starts the queue manager again."""
        ...


class Maker(Protocol):
    """Makes a new store of its kind, for a queue manager of this name."""

    def __call__(self, clock: Clock, name: str = ...) -> RestartableStore: ...


NAME: Final = "TEST"  # of the queue manager


def _memory(clock: Clock, name: str = NAME) -> RestartableStore:
    return InMemory(IN_MEMORY).open(name, clock=clock)


def _sqlite(clock: Clock, name: str = NAME, *, shortcuts: bool = True) -> RestartableStore:
    folder = tempfile.mkdtemp(prefix="inorder-")
    store = InFile(Path(folder) / "store.db").open(name, clock=clock, shortcuts=shortcuts)
    weakref.finalize(store, remove_folder, folder, os.getpid())
    return store


def remove_folder(folder: str, process: int) -> None:
    """Removes the folder of a store that a process no longer uses. A forked child leaves that to its parent."""
    if process == os.getpid():
        shutil.rmtree(folder, ignore_errors=True)


# The environment variable with the URL of a database, in which each store of the kind "postgresql" gets a schema.
POSTGRESQL_URL: Final = "INORDER_POSTGRESQL"


def _postgresql(clock: Clock, name: str = NAME) -> RestartableStore:
    url = os.environ[POSTGRESQL_URL]
    schemas = _schemas(url, os.getpid())
    schema = schemas.take(name)
    store = OnServer(f"{url}{'&' if '?' in url else '?'}schema={schema}").open(name, clock=clock)
    weakref.finalize(store, schemas.give_back, schema, name)
    return store


@functools.cache
def _schemas(url: str, process: int) -> Schemas:
    """The schemas of a process: a forked child does not use its parent's."""
    from .schemas import Schemas  # noqa: PLC0415 - only with such a store

    schemas = Schemas(url, process)
    atexit.register(schemas.drop_all)
    return schemas


def _remote(clock: Clock, name: str = NAME) -> RestartableStore:
    from .remote import ServedStore  # noqa: PLC0415 - it loads a server

    return cast("RestartableStore", ServedStore(cast("QueueStore", _sqlite(clock, name))))


KINDS: Final[Mapping[str, Maker]] = {
    "memory": _memory,
    "sqlite": _sqlite,
    "sqlite-long-way": functools.partial(_sqlite, shortcuts=False),  # plain requests, too, go through the rules
    "postgresql": _postgresql,
    "remote": _remote,  # a server on the loopback over SQLite
}


class _Here(Mapping[str, Maker]):
    """The kinds that can be made now; "postgresql" needs a database named by the environment."""

    def __getitem__(self, name: str) -> Maker:
        if name == "postgresql" and not os.environ.get(POSTGRESQL_URL):
            raise KeyError(name)
        return KINDS[name]

    def __iter__(self) -> Iterator[str]:
        return (name for name in KINDS if name in self)

    def __len__(self) -> int:
        return sum(1 for _ in self)


STORES: Final[Mapping[str, Maker]] = _Here()


def make_store(name: str, clock: Clock, manager: str = NAME) -> RestartableStore:
    """Makes a new store of this kind, for a queue manager of this name. Raises: ArgumentError for an unknown kind."""
    if name not in STORES:
        needs = f" ({POSTGRESQL_URL}, a URL, is not set)" if name in KINDS else ""
        raise bad_argument("store", name, f"one of: {', '.join(STORES)}{needs}")
    return STORES[name](clock, manager)


@contextmanager
def temporary_manager(store: str = "memory", clock: Clock | None = None) -> Iterator[QueueManager]:
    """A connection to a new queue manager, which is deleted at the end of the block, but not by a forked child.

    Args:
        store: its kind, see `STORES`.
        clock: its clock; default: a new `ManualClock`.
    """
    fresh, process = make_store(store, clock or ManualClock()), os.getpid()
    try:
        with connect(fresh, program="test") as manager:
            yield manager
    finally:
        if process == os.getpid():
            fresh.stop()
            fresh.close_store()
