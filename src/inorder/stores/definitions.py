"""The definitions of queues and of the queue manager, as this process keeps them while they do not change."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TypeVar

from ..attributes import MANAGER_ATTRIBUTES, QUEUE_ATTRIBUTES, ManagerAttributes, QueueAttributes, Table
from ..errors import StoreDamaged
from .backend import Backend
from .tables import DefinitionRow, ManagerRow

NO_REVISION = -1

T = TypeVar("T", ManagerAttributes, QueueAttributes)


def as_text(attributes: ManagerAttributes | QueueAttributes) -> str:
    """A definition as it is kept."""
    return json.dumps(asdict(attributes))


class Definitions:
    """The definitions as this process read them last; read again when their revision is another one."""

    def __init__(self) -> None:
        self.revision = NO_REVISION
        self.manager = ManagerAttributes()
        self.by_name: dict[str, QueueAttributes] = {}
        self.rows: dict[str, DefinitionRow] = {}
        self.by_number: dict[int, QueueAttributes] = {}
        self._known: dict[str, QueueAttributes] = {}  # by their texts: what did not change is not read again

    def check(self, backend: Backend, revision: int) -> None:
        """Reads what has changed since this process read it."""
        if revision != self.revision:
            self.load(backend)

    def current(self, backend: Backend) -> Definitions:
        """The definitions as they are in this transaction."""
        (manager,) = backend.select(ManagerRow)
        self.check(backend, manager.revision)
        return self

    def forget(self) -> None:
        """What was read may have been of a transaction that was taken back."""
        self.revision = NO_REVISION

    def number(self, name: str) -> int:
        return self.rows[name].id

    def load(self, backend: Backend) -> None:
        """Reads all of them."""
        (manager,) = backend.select(ManagerRow)
        self.revision = manager.revision
        self.manager = _read(ManagerAttributes, MANAGER_ATTRIBUTES, manager.attributes)
        known, self._known = self._known, {}
        self.by_name, self.rows, self.by_number = {}, {}, {}
        for row in backend.select(DefinitionRow):
            text = row.attributes
            attributes = self._known[text] = known.get(text) or _read(QueueAttributes, QUEUE_ATTRIBUTES, text)
            self.by_name[attributes.name] = self.by_number[row.id] = attributes
            self.rows[attributes.name] = row


def _read(kind: type[T], table: Table, text: str) -> T:
    """A definition, each value checked as if it were given now. Raises: StoreDamaged."""
    try:
        return kind(**{name: table[name].check(value) for name, value in json.loads(text).items()})
    except (ValueError, TypeError, AttributeError, LookupError, RecursionError) as error:
        raise StoreDamaged(
            f"a definition in the store is not one: {error!r:.200}. Restore it from a backup."
        ) from error
