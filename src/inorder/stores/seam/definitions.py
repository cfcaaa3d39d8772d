"""The definitions of queues and of the queue manager, read by name or number, and cached until they change."""

from __future__ import annotations

import functools
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import MISSING, asdict, fields
from typing import Any, Final, TypeVar

from ...model.attribute import Table
from ...model.attributes import MANAGER_ATTRIBUTES, QUEUE_ATTRIBUTES, ManagerAttributes, QueueAttributes
from ...model.channel_attributes import CHANNEL_ATTRIBUTES, ChannelAttributes
from ...model.process_attributes import PROCESS_ATTRIBUTES, ProcessAttributes
from ...rules.naming import Names
from .backend import Backend
from .damage import DECODING, damaged, only
from .tables import DefinitionRow, ManagerRow

NO_REVISION = -1

T = TypeVar("T", ManagerAttributes, QueueAttributes, ProcessAttributes, ChannelAttributes)

# The defaults of each kind, with their classes. They are allowed, and most values of most definitions are these.
USUAL: Final = {
    kind: {one.name: (one.default, one.default.__class__) for one in fields(kind) if one.default is not MISSING}
    for kind in (ManagerAttributes, QueueAttributes, ProcessAttributes, ChannelAttributes)
}


def as_text(attributes: ManagerAttributes | QueueAttributes | ProcessAttributes | ChannelAttributes) -> str:
    """A definition as it is kept."""
    return json.dumps(asdict(attributes))


class Definitions(Mapping[str, QueueAttributes]):
    """The definitions by name, each read when it is asked for, and kept while they are those of one revision.

    Two numbers say whether they still are. The queue manager's revision grows with every change: `current` compares it.
    A queue's revision, which every verb reads with its counters, becomes that one when something changes by which calls
    on the queue go (`Catalog`); so the definition of another queue costs them nothing.

    Attributes:
        manager: another object each time that another revision is read.
        names: what names lead to.
        by_number: the queues that were asked for by their numbers.
    """

    def __init__(self) -> None:
        self.revision = NO_REVISION
        self.manager = ManagerAttributes()
        self.names = Names(self.manager, self)
        self.by_number: dict[int, QueueAttributes] = {}
        self._rows: dict[str, DefinitionRow | None] = {}
        self._backend: Backend | None = None

    def current(self, backend: Backend) -> Definitions:
        """The definitions as they are in this transaction."""
        manager = only(backend.select(ManagerRow), "the queue manager")
        if manager.revision != self.revision:
            self.forget()
            self.manager = manager_of(manager.attributes)
            self.names = Names(self.manager, self)
            self._backend, self.revision = backend, manager.revision
        return self

    def forget(self) -> None:
        """Forgets what was read."""
        self.revision = NO_REVISION
        self.by_number, self._rows = {}, {}

    def queue(self, number: int) -> QueueAttributes:
        """The attributes of a queue that something names. Raises: StoreDamaged, it is not defined."""
        if number not in self.by_number:
            rows = self._select(id=number)
            if not rows:
                raise damaged(f"queue {number}", "it is named and not defined")
            self.by_number[number] = _attributes_of(rows[0])
        return self.by_number[number]

    def number(self, name: str) -> int:
        return self.row(name).id

    def row(self, name: str) -> DefinitionRow:
        """The record of a definition. Raises: KeyError, there is none."""
        if name not in self._rows:
            self._rows[name] = next(iter(self._select(name=name)), None)
        row = self._rows[name]
        if row is None:
            raise KeyError(name)
        return row

    def rows(self) -> Sequence[DefinitionRow]:
        """The records of all of them, by number."""
        return self._select()

    def _select(self, **where: Any) -> Sequence[DefinitionRow]:
        assert self._backend is not None, "no verb has read the queue manager"
        return self._backend.select(DefinitionRow, **where)

    # --- the mapping

    def __getitem__(self, name: str) -> QueueAttributes:
        return _attributes_of(self.row(name))

    def __iter__(self) -> Iterator[str]:
        return (row.name for row in self.rows())

    def __len__(self) -> int:
        return len(self.rows())


def _attributes_of(row: DefinitionRow) -> QueueAttributes:
    """What a record defines. Raises: StoreDamaged."""
    attributes = queue_of(row.attributes)
    if (row.name, row.type) != (attributes.name, attributes.type):
        raise damaged(f"definition {row.id}", f"{row.type} {row.name} is {attributes.type} {attributes.name}")
    return attributes


def manager_of(text: str) -> ManagerAttributes:
    """The queue manager's attributes as they are kept. Raises: StoreDamaged."""
    return _read(ManagerAttributes, MANAGER_ATTRIBUTES, text)


@functools.lru_cache(maxsize=1024)
def queue_of(text: str) -> QueueAttributes:
    """A queue's attributes as they are kept; a process that opens stores again and again checks each text once.

    Raises: StoreDamaged.
    """
    return _read(QueueAttributes, QUEUE_ATTRIBUTES, text)


def process_of(text: str) -> ProcessAttributes:
    """A process definition as it is kept. Raises: StoreDamaged."""
    return _read(ProcessAttributes, PROCESS_ATTRIBUTES, text)


def channel_of(text: str) -> ChannelAttributes:
    """A channel's definition as it is kept. Raises: StoreDamaged."""
    return _read(ChannelAttributes, CHANNEL_ATTRIBUTES, text)


def _read(kind: type[T], table: Table, text: str) -> T:
    """A definition, each value checked as if it were given now. Raises: StoreDamaged."""
    usual = USUAL[kind]
    try:
        values = json.loads(text).items()
        return kind(
            **{
                name: table[name].takes.check(name, value)
                for name, value in values
                if usual.get(name) != (value, value.__class__)
            }
        )
    except DECODING as error:
        raise damaged("a definition", f"{error!r}") from error
