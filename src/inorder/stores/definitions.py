"""The definitions of queues and of the queue manager, as this process keeps them while they do not change."""

from __future__ import annotations

import functools
import json
from dataclasses import asdict
from typing import TypeVar

from ..attribute import Table
from ..attributes import MANAGER_ATTRIBUTES, QUEUE_ATTRIBUTES, ManagerAttributes, QueueAttributes
from ..channel_attributes import CHANNEL_ATTRIBUTES, ChannelAttributes
from ..process_attributes import PROCESS_ATTRIBUTES, ProcessAttributes
from ..rules.naming import Names
from .backend import Backend
from .damage import DECODING, damaged, only
from .tables import DefinitionRow, ManagerRow

NO_REVISION = -1

T = TypeVar("T", ManagerAttributes, QueueAttributes, ProcessAttributes, ChannelAttributes)


def as_text(attributes: ManagerAttributes | QueueAttributes | ProcessAttributes | ChannelAttributes) -> str:
    """A definition as it is kept."""
    return json.dumps(asdict(attributes))


class Definitions:
    """The definitions as this process read them last; read again when their revision is another one.

    Attributes:
        manager: another object each time that they are read.
        names: what names lead to.
    """

    def __init__(self) -> None:
        self.revision = NO_REVISION
        self.manager = ManagerAttributes()
        self.by_name: dict[str, QueueAttributes] = {}
        self.names = Names(self.manager, self.by_name)
        self.rows: dict[str, DefinitionRow] = {}
        self.by_number: dict[int, QueueAttributes] = {}
        self._known: dict[str, QueueAttributes] = {}  # by their texts: what did not change is not read again

    def check(self, backend: Backend, revision: int) -> None:
        """Reads what has changed since this process read it."""
        if revision != self.revision:
            self.load(backend)

    def current(self, backend: Backend) -> Definitions:
        """The definitions as they are in this transaction."""
        manager = only(backend.select(ManagerRow), "the queue manager")
        if manager.revision != self.revision:
            self._read(backend, manager)
        return self

    def forget(self) -> None:
        """Forgets what was read: it may be of a transaction that was taken back."""
        self.revision = NO_REVISION

    def queue(self, number: int) -> QueueAttributes:
        """The attributes of a queue that something names. Raises: StoreDamaged, it is not defined."""
        try:
            return self.by_number[number]
        except KeyError:
            raise damaged(f"queue {number}", "it is named and not defined") from None

    def number(self, name: str) -> int:
        return self.rows[name].id

    def load(self, backend: Backend) -> None:
        """Reads all of them."""
        self._read(backend, only(backend.select(ManagerRow), "the queue manager"))

    def _read(self, backend: Backend, manager: ManagerRow) -> None:
        self.revision = manager.revision
        self.manager = manager_of(manager.attributes)
        known, self._known = self._known, {}
        self.by_name, self.rows, self.by_number = {}, {}, {}
        for row in backend.select(DefinitionRow):
            text = row.attributes
            attributes = self._known[text] = known.get(text) or queue_of(text)
            if (row.name, row.type) != (attributes.name, attributes.type):
                raise damaged(f"definition {row.id}", f"{row.type} {row.name} is {attributes.type} {attributes.name}")
            self.by_name[attributes.name] = self.by_number[row.id] = attributes
            self.rows[attributes.name] = row
        self.names = Names(self.manager, self.by_name)


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
    try:
        return kind(**{name: table[name].check(value) for name, value in json.loads(text).items()})
    except DECODING as error:
        raise damaged("a definition", f"{error!r}") from error
