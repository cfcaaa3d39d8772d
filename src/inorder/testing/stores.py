"""The stores that scenarios and tests run against, by name."""

from __future__ import annotations

import functools
import tempfile
import weakref
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

from ..clock import Clock
from ..errors import bad_argument
from ..manager import QueueManager, connect
from ..stores.memory import MemoryStore
from ..stores.protocol import LocalStore
from ..stores.waiting import WaitingRoom
from .clock import ManualClock


class RestartableStore(LocalStore, Protocol):
    """A store that a test can restart, and of which it can watch who waits."""

    waiting: WaitingRoom

    def restart(self) -> None:
        """Loses every connection and starts the queue manager again."""
        ...


def _memory(clock: Clock) -> RestartableStore:
    return MemoryStore(name="TEST", clock=clock)


def _sqlite(clock: Clock, *, shortcuts: bool = True) -> RestartableStore:
    from ..stores.sqlite import SqliteStore  # noqa: PLC0415 - who stays in memory does not load the database

    folder = tempfile.TemporaryDirectory(prefix="inorder-")
    store = SqliteStore(Path(folder.name) / "store.db", name="TEST", clock=clock, shortcuts=shortcuts)
    weakref.finalize(store, folder.cleanup)
    return store


STORES: Mapping[str, Callable[[Clock], RestartableStore]] = {
    "memory": _memory,
    "sqlite": _sqlite,
    "sqlite-long-way": functools.partial(_sqlite, shortcuts=False),  # plain requests as all others, by the rules
}


def make_store(name: str, clock: Clock) -> RestartableStore:
    """A fresh store of this kind. Raises: ArgumentError, an unknown kind."""
    if name not in STORES:
        raise bad_argument("store", name, f"one of {', '.join(STORES)}")
    return STORES[name](clock)


@contextmanager
def temporary_manager(store: str = "memory", clock: Clock | None = None) -> Iterator[QueueManager]:
    """A connection to a queue manager that is gone at the end of the block.

    Args:
        store: which kind, see `STORES`.
        clock: its clock; default: a new `ManualClock`.
    """
    fresh = make_store(store, clock or ManualClock())
    try:
        with connect(fresh, program="test") as manager:
            yield manager
    finally:
        fresh.stop()
        fresh.close_store()
