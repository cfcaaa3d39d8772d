"""The base of the namespaces of a connection: `qm.admin`, `qm.accounts`, `qm.dead`, `qm.inspect`, `qm.internals`.

`QueueManager` itself has the everyday calls. Each access creates a namespace, which refers to its connection.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .manager import QueueManager


class Namespace:
    """A group of calls of a connection under one name."""

    __slots__ = ("_manager", "_session", "_store")

    def __init__(self, manager: QueueManager) -> None:
        self._manager, self._session, self._store = manager, manager._session, manager._store
