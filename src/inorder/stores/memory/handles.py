"""Definitions, connections and open handles of the memory store."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from ...attributes import QueueAttributes, QueueStatus
from ...errors import ConnectionBroken, QueueDeleted
from ...options import OpenOptions
from ...rules.lifecycle import State
from ...rules.ordering import Pending
from ...rules.puts import Program
from ..base import Opened
from ..catalog import Catalog, Contents, Open
from ..rows import GOT, Row
from ..shelf import Connection, Handle
from .queue import MemoryQueue, MemoryUnit
from .undo import Undoable, UndoDict, UndoList


class Waits(NamedTuple):
    """A wait: on which queue, and what is known of it by its last look.

    Args:
        in_its_way: for each level the connections in its way (B-31); None: not known any more.
        pending: what a strict call waits for; `withheld`: something stands behind that.
    """

    queue: str
    in_its_way: Sequence[frozenset[int]] | None
    pending: Pending | None
    withheld: bool


@dataclass(slots=True, eq=False)
class MemoryConnection(Undoable, Connection[MemoryUnit]):
    """A connection, with its handles.

    Attributes:
        waits: while a call of it waits: where, and for whom.
    """

    waits: Waits | None = None
    by_id: dict[int, MemoryHandle] = field(default_factory=UndoDict)

    def handles(self) -> list[MemoryHandle]:
        return list(self.by_id.values())


@dataclass(slots=True, eq=False, kw_only=True)
class MemoryHandle(Undoable, Handle[MemoryUnit]):
    """An open queue, and the queue itself."""

    queue: MemoryQueue
    locked: list[Row] = field(default_factory=UndoList)

    def check_alive(self) -> None:
        """Raises QueueDeleted 2052 if the queue went away under the handle."""
        if self.queue.deleted:
            raise QueueDeleted(f"{self.queue.attributes.name} has been deleted", queue=self.name)


class Handles(Undoable, Catalog):
    """Everything that is defined and open; not the messages."""

    def __init__(self, numbers: Iterator[int], now: Callable[[], float]) -> None:
        self.queues: dict[str, MemoryQueue] = UndoDict()
        self.other_definitions: dict[str, QueueAttributes] = UndoDict()  # aliases and models
        self.connections: dict[int, MemoryConnection] = UndoDict()
        self._open: dict[int, tuple[MemoryConnection, MemoryHandle]] = UndoDict()
        self._numbers = numbers
        self._now = now

    # --- what the rules of the catalog ask

    def find(self, name: str) -> QueueAttributes | None:
        queue = self.queues.get(name)
        return self.other_definitions.get(name) if queue is None else queue.attributes

    def names(self) -> list[str]:
        return sorted([*self.queues, *self.other_definitions])

    def opens(self, queue: str) -> list[Open]:
        return [
            Open(one.id, one.name, one.options.input is not None, one.options.output, one.exclusive)
            for one in self.on(self.queues[queue])
        ]

    def opens_as(self, name: str) -> int:
        return sum(handle.name == name for _, handle in self._open.values())

    def contents(self, queue: str) -> Contents:
        rows = self.queues[queue].all_rows()
        puts = any(row.state is State.PUT_UNCONFIRMED for row in rows)
        return Contents(bool(rows), puts or any(row.state in GOT for row in rows), puts)

    def add(self, attributes: QueueAttributes) -> None:
        if attributes.type == "local":
            self.queues[attributes.name] = MemoryQueue(attributes, self._now(), next(self._numbers))
        else:
            self.other_definitions[attributes.name] = attributes

    def fresh_number(self) -> int:
        return next(self._numbers)

    # --- connections and handles

    def status(self, queue: MemoryQueue) -> QueueStatus:
        handles = self.opens(queue.attributes.name)
        return QueueStatus(
            current_depth=queue.depth,
            open_input_count=sum(one.input for one in handles),
            open_output_count=sum(one.output for one in handles),
            uncommitted=sum(row.unit is not None for row in queue.all_rows()),
            created_at=queue.created_at,
            altered_at=queue.altered_at,
        )

    def connect(self, program: Program) -> int:
        connection = MemoryConnection(next(self._numbers), program)
        self.connections[connection.id] = connection
        return connection.id

    def connection(self, owner: int) -> MemoryConnection:
        if owner not in self.connections:
            raise ConnectionBroken("the connection was lost: connect again")
        return self.connections[owner]

    def disconnect(self, connection: MemoryConnection) -> None:
        del self.connections[connection.id]

    def handle(self, handle: int) -> MemoryHandle:
        return self._found(handle)[1]

    def connection_of(self, handle: MemoryHandle) -> MemoryConnection:
        return self._found(handle.id)[0]

    def _found(self, handle: int) -> tuple[MemoryConnection, MemoryHandle]:
        if handle in self._open:
            return self._open[handle]
        raise ConnectionBroken("the connection of this handle was lost: connect again")

    def on(self, queue: MemoryQueue) -> list[MemoryHandle]:
        return [handle for _, handle in self._open.values() if handle.queue is queue]

    def open(
        self, connection: MemoryConnection, name: str, options: OpenOptions, dynamic_name: str, handles_max: int
    ) -> Opened:
        already = len(connection.by_id)
        found = self.to_open(name, options, dynamic_name, open_already=already, handles_max=handles_max)
        handle = MemoryHandle(
            id=next(self._numbers),
            connection=connection,
            name=found.name,
            options=options,
            exclusive=found.exclusive,
            made_temporary_queue=found.made_temporary,
            queue=self.queues[found.queue],
        )
        connection.by_id[handle.id] = handle
        self._open[handle.id] = connection, handle
        return Opened(handle.id, found.name, found.queue, options, handle.queue.incarnation)

    def extend(self, handle: MemoryHandle, options: OpenOptions) -> Opened:
        handle.check_alive()
        if options.input and not handle.options.input:
            handle.exclusive = self.is_exclusive(handle.queue.attributes, options, handle.id)
        handle.options = options
        return Opened(handle.id, handle.name, handle.queue.attributes.name, options, handle.queue.incarnation)

    def close(self, handle: MemoryHandle) -> None:
        connection, _ = self._open.pop(handle.id)
        del connection.by_id[handle.id]
