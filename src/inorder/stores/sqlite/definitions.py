"""The definitions of queues, as this process keeps them while they do not change."""

from __future__ import annotations

import json
from typing import TypeVar

from ...attributes import MANAGER_ATTRIBUTES, QUEUE_ATTRIBUTES, ManagerAttributes, QueueAttributes, Table
from ...errors import StoreDamaged
from .reach import Reach
from .statements import statement

DEFINITIONS = statement("definitions")
MANAGER = statement("manager")
NO_REVISION = -1

T = TypeVar("T", ManagerAttributes, QueueAttributes)


class Definitions:
    """The definitions as this process read them last; read again when their revision is another one."""

    def __init__(self) -> None:
        self._revision = NO_REVISION
        self.manager = ManagerAttributes()
        self.by_name: dict[str, QueueAttributes] = {}
        self.numbers: dict[str, int] = {}
        self._by_number: dict[int, QueueAttributes] = {}
        self.times: dict[int, tuple[float, float]] = {}
        self._known: dict[str, QueueAttributes] = {}  # by their texts: what did not change is not read again

    def check(self, reach: Reach, revision: int) -> None:
        """Reads what has changed since this process read it."""
        if revision != self._revision:
            self._load(reach)

    def current(self, reach: Reach) -> Definitions:
        """The definitions as they are in this transaction."""
        self.check(reach, reach.value("SELECT revision FROM manager"))
        return self

    def forget(self) -> None:
        """What was read may have been of a transaction that was rolled back."""
        self._revision = NO_REVISION

    def attributes(self, number: int) -> QueueAttributes:
        return self._by_number[number]

    def _load(self, reach: Reach) -> None:
        text, self._revision = next(reach.execute(MANAGER))
        self.manager = _read(ManagerAttributes, MANAGER_ATTRIBUTES, text)
        known, self._known = self._known, {}
        self.by_name, self.numbers, self._by_number, self.times = {}, {}, {}, {}
        for number, text, created_at, altered_at in reach.execute(DEFINITIONS):
            attributes = self._known[text] = known.get(text) or _read(QueueAttributes, QUEUE_ATTRIBUTES, text)
            self.by_name[attributes.name] = self._by_number[number] = attributes
            self.numbers[attributes.name] = number
            self.times[number] = created_at, altered_at


def _read(kind: type[T], table: Table, text: str) -> T:
    """A definition, each value checked as if it were given now. Raises: StoreDamaged."""
    try:
        return kind(**{name: table[name].check(value) for name, value in json.loads(text).items()})
    except (ValueError, TypeError, AttributeError, LookupError, RecursionError) as error:
        raise StoreDamaged(
            f"a definition in the store is not one: {error!r:.200}. Restore it from a backup."
        ) from error
