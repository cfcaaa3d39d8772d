"""The memory store, which is the specification. `backend.py` keeps the rows; the operations are those of every
store.
"""

from __future__ import annotations

from ...errors import IN_MEMORY
from ...support.clock import Clock, SystemClock
from ..engine import connections
from ..engine.store import QueueStore, new_manager
from .backend import MemoryBackend
from .host import MemoryHost


class MemoryStore(QueueStore):
    """A store in this process's memory, which ends with the process.

    Args:
        name: the queue manager's name; it is part of generated ids.
        clock: the source of the time.
    """

    def __init__(self, name: str = "INORDER", clock: Clock | None = None) -> None:
        backend = MemoryBackend(new_manager(name), name)
        super().__init__(backend, MemoryHost(backend), IN_MEMORY, name, clock or SystemClock())
        connections.begin(self)


__all__ = ["MemoryStore"]
