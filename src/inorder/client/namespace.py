"""The base of the namespaces of a connection: `qm.admin`, `qm.accounts`, `qm.dead`, `qm.inspect`, `qm.internals`.

`QueueManager` itself has the everyday calls. Each access creates a namespace, which refers to its connection.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..errors import SynchronousQueue
    from .manager import QueueManager


class Namespace:
    """A group of calls of a connection under one name."""

    __slots__ = ("_manager", "_session", "_store")

    def __init__(self, manager: QueueManager) -> None:
        self._manager, self._session, self._store = manager, manager._session, manager._store

    def _make_room(self, queue: str = "", manager: str = "") -> bool:  # for `by_name`
        return self._manager._make_room(queue, manager)

    def _renew(self, queue: str, manager: str = "") -> bool:
        return self._manager._renew(queue, manager)

    def _lead(self, there: SynchronousQueue, queue: str, manager: str = "") -> bool:
        return self._manager._lead(there, queue, manager)
