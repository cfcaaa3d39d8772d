"""Definitions and open handles in the file: what the rules of `stores.catalog` ask."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict

from ...attributes import ManagerAttributes, QueueAttributes
from ..catalog import Catalog, Contents, Open
from .statements import statement
from .transaction import SqliteTransaction

DEFINE = statement("define")
BEGIN_TALLY = statement("begin tally")
REDEFINE = statement("redefine")
REVISE = statement("revise")
HANDLES_OF_QUEUE = statement("handles of queue")
HANDLES_BY_NAME = statement("handles by name")
ANY_MESSAGES = statement("any messages")
UNSETTLED = statement("unsettled")


class SqliteCatalog(Catalog):
    """The catalog in one transaction."""

    def __init__(self, verb: SqliteTransaction) -> None:
        self._verb = verb
        self._known = verb.home.definitions.current(verb)

    @property
    def manager(self) -> ManagerAttributes:
        return self._known.manager

    def number(self, name: str) -> int:
        return self._known.numbers[name]

    def find(self, name: str) -> QueueAttributes | None:
        return self._known.by_name.get(name)

    def names(self) -> Sequence[str]:
        return sorted(self._known.by_name)

    def opens(self, queue: str) -> list[Open]:
        rows = self._verb.execute(HANDLES_OF_QUEUE, (self.number(queue),))
        return [
            Open(handle, name, bool(input_), bool(output), bool(exclusive))
            for handle, name, input_, output, exclusive in rows
        ]

    def opens_as(self, name: str) -> int:
        count: int = self._verb.value(HANDLES_BY_NAME, name)
        return count

    def contents(self, queue: str) -> Contents:
        number = self.number(queue)
        unsettled, puts = next(self._verb.execute(UNSETTLED, (number,)))
        return Contents(bool(self._verb.value(ANY_MESSAGES, number)), unsettled > 0, puts > 0)

    def add(self, attributes: QueueAttributes) -> None:
        number, now = self.fresh_number(), self._verb.now
        self._verb.execute(DEFINE, (number, attributes.name, attributes.type, json.dumps(asdict(attributes)), now, now))
        if attributes.type == "local":
            self._verb.execute(BEGIN_TALLY, (number,))
        self.changed()

    def change(self, attributes: QueueAttributes) -> None:
        """Writes a definition that was altered."""
        number = self.number(attributes.name)
        self._verb.execute(REDEFINE, (json.dumps(asdict(attributes)), self._verb.now, number))
        self.changed()

    def changed(self) -> None:
        """Definitions are others from now on, for every process."""
        self._verb.execute(REVISE)
        self._verb.durable = True
        self._known.current(self._verb)

    def fresh_number(self) -> int:
        return next(self._verb.numbers)
