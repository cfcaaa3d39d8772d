"""The definitions of queues and of the queue manager, read by name or number, and cached until they change."""

from __future__ import annotations

import functools
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import MISSING, asdict, fields
from typing import Any, Final, NamedTuple, TypeVar

from ...model.attribute import Table, is_name
from ...model.attributes import MANAGER_ATTRIBUTES, QUEUE_ATTRIBUTES, ManagerAttributes, QueueAttributes
from ...model.channel_attributes import CHANNEL_ATTRIBUTES, ChannelAttributes
from ...model.process_attributes import PROCESS_ATTRIBUTES, ProcessAttributes
from ...rules.naming import Names
from .backend import Backend
from .damage import DECODING, damaged, decodes, only
from .tables import DefinitionRow, ManagerRow

NO_REVISION = -1
CHANNEL: Final = "channel"  # a kind of objects, as the next one
CONNECTION: Final = "connection"

T = TypeVar("T", ManagerAttributes, QueueAttributes, ProcessAttributes, ChannelAttributes)

# The defaults of each kind, with their classes. Most stored values are defaults, which need no check.
USUAL: Final = {
    kind: {one.name: (one.default, one.default.__class__) for one in fields(kind) if one.default is not MISSING}
    for kind in (ManagerAttributes, QueueAttributes, ProcessAttributes, ChannelAttributes)
}


def as_text(attributes: ManagerAttributes | QueueAttributes | ProcessAttributes | ChannelAttributes) -> str:
    """Returns a definition as JSON, for storing."""
    return json.dumps(asdict(attributes))


def manager_row(backend: Backend) -> ManagerRow:
    """Returns the record of the queue manager. Raises: StoreDamaged."""
    return only(backend.select(ManagerRow), "the queue manager")


class Definitions(Mapping[str, QueueAttributes]):
    """The definitions by name, each read when needed and cached while its revision is current.

    Two numbers show whether a revision is current. The queue manager's revision grows with every change; `current`
    compares it. A queue's revision, which every operation reads with the counters, is set to the manager's only when
    something that matters to calls on that queue changes (`Catalog`). So a change of another queue costs them nothing.

    Attributes:
        manager: a new object for each revision that is read.
        created_at: the time when the store was created.
        names: resolves names.
        by_number: the queues that were looked up by number.
    """

    def __init__(self) -> None:
        self.revision = NO_REVISION
        self.manager = ManagerAttributes()
        self.created_at = 0.0
        self.names = Names(self.manager, self)
        self.by_number: dict[int, QueueAttributes] = {}
        self._rows: dict[str, DefinitionRow | None] = {}
        self._backend: Backend | None = None

    def current(self, backend: Backend) -> Definitions:
        """Returns the definitions as of this transaction."""
        manager = manager_row(backend)
        self.created_at = manager.created_at
        if manager.revision != self.revision:
            self.forget()
            self.manager = manager_of(manager.attributes)
            self.names = Names(self.manager, self)
            self._backend, self.revision = backend, manager.revision
        return self

    def forget(self) -> None:
        """Empties the cache."""
        self.revision = NO_REVISION
        self.by_number, self._rows = {}, {}

    def queue(self, number: int) -> QueueAttributes:
        """Returns the attributes of a queue that a record refers to. Raises: StoreDamaged, if it is not defined."""
        if number not in self.by_number:
            rows = self._select(id=number)
            if not rows:
                raise damaged(f"queue {number}", "other records refer to it, but it is not defined")
            self.by_number[number] = _attributes_of(rows[0])
        return self.by_number[number]

    def number(self, name: str) -> int:
        return self.row(name).id

    def row(self, name: str) -> DefinitionRow:
        """Returns the record of a definition. Raises: KeyError, if there is none."""
        if name not in self._rows:
            found = self._select(name=name) if is_name(name) else ()  # a database refuses odd characters
            self._rows[name] = next(iter(found), None)
        row = self._rows[name]
        if row is None:
            raise KeyError(name)
        return row

    def rows(self) -> Sequence[DefinitionRow]:
        """Returns all records, by number."""
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
    """Returns the definition in a record. Raises: StoreDamaged."""
    attributes = queue_of(row.attributes)
    if (row.name, row.type) != (attributes.name, attributes.type):
        raise damaged(f"definition {row.id}", f"{row.type} {row.name} is {attributes.type} {attributes.name}")
    return attributes


def manager_of(text: str) -> ManagerAttributes:
    """Decodes the queue manager's stored attributes. Raises: StoreDamaged."""
    return _read(ManagerAttributes, MANAGER_ATTRIBUTES, text)


@functools.lru_cache(maxsize=1024)
def queue_of(text: str) -> QueueAttributes:
    """Decodes a queue's stored attributes. Cached, because a process that reopens stores would check the same texts
    again.

    Raises: StoreDamaged.
    """
    return _read(QueueAttributes, QUEUE_ATTRIBUTES, text)


def process_of(text: str) -> ProcessAttributes:
    """Decodes a stored process definition. Raises: StoreDamaged."""
    return _read(ProcessAttributes, PROCESS_ATTRIBUTES, text)


def channel_of(text: str) -> ChannelAttributes:
    """Decodes a stored channel definition. Raises: StoreDamaged."""
    return _read(ChannelAttributes, CHANNEL_ATTRIBUTES, text)


def _read(kind: type[T], table: Table, text: str) -> T:
    """Decodes a definition, checking each value as if it were given now. Raises: StoreDamaged."""
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


class Connection(NamedTuple):
    """How another store is reached, at the other end of channels or as the owner of synchronous remote queues.

    Args:
        name: 1 to 48 characters out of A-Z a-z 0-9 . / _ %
        location: the path or URL of the store. It has no password: others can read it.
        user: the user as which the server of the store must know this side; empty: any.
    """

    name: str
    location: str
    user: str = ""


@decodes("a connection")
def read_connection(text: str) -> Connection:
    """Decodes a stored connection. Raises: StoreDamaged."""
    return Connection(*(str(json.loads(text)[name]) for name in Connection._fields))
