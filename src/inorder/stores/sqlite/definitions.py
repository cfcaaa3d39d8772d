"""The definitions of queues, as this process keeps them while they do not change."""

from __future__ import annotations

import json

from ...attributes import ManagerAttributes, QueueAttributes
from .reach import Reach
from .statements import statement

DEFINITIONS = statement("definitions")
MANAGER = statement("manager")
NO_REVISION = -1


class Definitions:
    """The definitions as this process read them last; read again when their revision is another one."""

    def __init__(self) -> None:
        self._revision = NO_REVISION
        self.manager = ManagerAttributes()
        self.by_name: dict[str, QueueAttributes] = {}
        self.numbers: dict[str, int] = {}
        self._by_number: dict[int, QueueAttributes] = {}
        self.times: dict[int, tuple[float, float]] = {}

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
        self.manager = ManagerAttributes(**json.loads(text))
        self.by_name, self.numbers, self._by_number, self.times = {}, {}, {}, {}
        for number, text, created_at, altered_at in reach.execute(DEFINITIONS):
            attributes = QueueAttributes(**json.loads(text))
            self.by_name[attributes.name] = self._by_number[number] = attributes
            self.numbers[attributes.name] = number
            self.times[number] = created_at, altered_at
