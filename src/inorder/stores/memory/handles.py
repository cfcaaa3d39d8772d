"""Definitions, connections and open handles of the memory store: who may open, alter and delete what."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from ...attributes import QueueAttributes, QueueStatus
from ...errors import (
    ArgumentError,
    ConnectionBroken,
    ObjectExists,
    ObjectInUse,
    QueueCondition,
    QueueDeleted,
    QueueNotEmpty,
    Reason,
    TooManyHandles,
    UnknownQueue,
    WrongQueueType,
    nearest_names,
)
from ...options import OpenOptions
from ...rules.lifecycle import State
from ...rules.ordering import read_order
from ...rules.puts import Program
from ..base import Opened
from .queue import GOT, HeldUnit, MemoryQueue, Row

DYNAMIC_NAME = re.compile(r"[A-Za-z0-9./_%]{0,33}\*|[A-Za-z0-9./_%]{1,48}")
DEFAULT_PREFIX = "AMQ."


class Waits(NamedTuple):
    """A wait: on which queue, and, as far as the last look holds, for each level the connections in its way (B-31)."""

    queue: str
    in_its_way: Sequence[frozenset[int]] | None


@dataclass(slots=True, eq=False)
class Connection:
    """A connection: its handles, and its one unit of work (R5.1).

    Attributes:
        waits: while a call of it waits: where, and for whom.
    """

    id: int
    program: Program
    unit: HeldUnit | None = None
    waits: Waits | None = None
    by_id: dict[int, Handle] = field(default_factory=dict)

    def handles(self) -> list[Handle]:
        return list(self.by_id.values())


@dataclass(slots=True, eq=False)
class Handle:
    """An open queue.

    Attributes:
        name: the queue as opened: itself, or an alias of it.
        exclusive: no other handle may be open for input.
        made_temporary_queue: closing this handle deletes the queue (R4.3).
        locked: rows that it browsed with lock.
    """

    id: int
    connection: Connection
    name: str
    queue: MemoryQueue
    options: OpenOptions
    exclusive: bool
    made_temporary_queue: bool = False
    locked: list[Row] = field(default_factory=list)

    def check_alive(self) -> None:
        """Raises QueueDeleted 2052 if the queue went away under the handle."""
        if self.queue.deleted:
            raise QueueDeleted(f"{self.queue.attributes.name} has been deleted", queue=self.name)


class Resolved(NamedTuple):
    """A name resolved to a local queue, by way of an alias or directly (R4.1)."""

    queue: MemoryQueue
    alias: QueueAttributes | None


class Handles:
    """Everything that is defined and open; not the messages."""

    def __init__(self, numbers: Iterator[int]) -> None:
        self.queues: dict[str, MemoryQueue] = {}
        self.other_definitions: dict[str, QueueAttributes] = {}  # aliases and models
        self.connections: dict[int, Connection] = {}
        self._open: dict[int, Handle] = {}
        self._numbers = numbers

    # --- definitions

    def definitions(self) -> list[QueueAttributes]:
        every = {name: queue.attributes for name, queue in self.queues.items()} | self.other_definitions
        return [every[name] for name in sorted(every)]

    def definition(self, name: str) -> QueueAttributes:
        if isinstance(name, str) and name in self.queues:
            return self.queues[name].attributes
        if isinstance(name, str) and name in self.other_definitions:
            return self.other_definitions[name]
        near = nearest_names(str(name), [one.name for one in self.definitions()])
        hint = f"; did you mean {' or '.join(near)}?" if near else ""
        raise UnknownQueue(f"there is no queue {name!r}{hint}", queue=name, nearest=near)

    def create(self, attributes: QueueAttributes, now: float) -> MemoryQueue | None:
        name = attributes.name
        if name in self.queues or name in self.other_definitions:
            raise ObjectExists(f"there is a queue {name!r} already", queue=name)
        if attributes.type == "local":
            self.queues[name] = MemoryQueue(attributes, now, next(self._numbers))
            return self.queues[name]
        self.check_alias(attributes)
        self.other_definitions[name] = attributes
        return None

    def check_alias(self, attributes: QueueAttributes) -> None:
        """An alias names a local queue, never another alias, so that no circle can arise (R4.1, A-32)."""
        base = self.other_definitions.get(attributes.base_queue)
        if attributes.type == "alias" and (base is not None or attributes.base_queue == attributes.name):
            raise _wrong_base(attributes)

    def check_alter(self, queue: MemoryQueue, changed: QueueAttributes) -> None:
        """The order rule stays while a put is unresolved (B-19)."""
        unresolved = any(row.state is State.PUT_UNCONFIRMED for row in queue.all_rows())
        if changed.order != queue.attributes.order and unresolved:
            raise ObjectInUse(
                f"the order of {changed.name} cannot change while a put is not committed", queue=changed.name
            )

    def check_delete(self, name: str, *, purge: bool) -> None:
        self.definition(name)
        open_handles = sum(handle.name == name for handle in self._all())
        if open_handles:
            raise ObjectInUse(
                f"{name} is open, by {open_handles} handle(s); calls by name hold one until close_queue({name!r})",
                queue=name,
            )
        if (queue := self.queues.get(name)) is not None:
            if self.on(queue):
                raise ObjectInUse(f"{name} is open through an alias", queue=name)
            _check_empty(queue, purge=purge)

    def resolve(self, name: str) -> Resolved:
        """The local queue that a name stands for. Raises: 2085, 2082 base unknown, 2001, 2043 a model."""
        definition = self.definition(name)
        if definition.type == "local":
            return Resolved(self.queues[name], None)
        if definition.type == "model":
            raise WrongQueueType(f"{name} is a model queue: opening it makes a queue to use", queue=name)
        if definition.base_queue in self.other_definitions:
            raise _wrong_base(definition)
        if definition.base_queue not in self.queues:
            raise WrongQueueType(
                f"{name} is an alias of {definition.base_queue!r}, which does not exist",
                reason=Reason.UNKNOWN_ALIAS_BASE_Q,
                queue=name,
            )
        return Resolved(self.queues[definition.base_queue], definition)

    def resolved(self, handle: Handle) -> QueueAttributes:
        """The attributes that a call through this handle goes by: an alias's defaults win (R4.1, R1.4)."""
        if handle.name == handle.queue.attributes.name:
            return handle.queue.attributes
        alias = self.other_definitions.get(handle.name)
        queue = handle.queue.attributes
        if alias is None or alias.base_queue != queue.name:
            raise QueueCondition(f"{handle.name} has changed: open it again", reason=Reason.OBJECT_CHANGED)
        return replace(
            queue,
            default_priority=alias.default_priority,
            default_persistence=alias.default_persistence,
            get_allowed=queue.get_allowed and alias.get_allowed,
            put_allowed=queue.put_allowed and alias.put_allowed,
        )

    def names_for(self, name: str) -> list[str]:
        """The local queue that a change of this definition affects, if any."""
        definition = self.definition(name)
        affected = definition.base_queue if definition.type == "alias" else name
        return [affected] if affected in self.queues else []

    def status(self, queue: MemoryQueue) -> QueueStatus:
        handles = self.on(queue)
        return QueueStatus(
            current_depth=queue.depth,
            open_input_count=sum(handle.options.input is not None for handle in handles),
            open_output_count=sum(handle.options.output for handle in handles),
            uncommitted=sum(row.unit is not None for row in queue.all_rows()),
            created_at=queue.created_at,
            altered_at=queue.altered_at,
        )

    # --- connections and handles

    def connect(self, program: Program) -> int:
        connection = Connection(next(self._numbers), program)
        self.connections[connection.id] = connection
        return connection.id

    def connection(self, owner: int) -> Connection:
        if owner not in self.connections:
            raise ConnectionBroken("the connection was lost: connect again")
        return self.connections[owner]

    def disconnect(self, connection: Connection) -> None:
        del self.connections[connection.id]

    def handle(self, handle: int) -> Handle:
        if handle in self._open:
            return self._open[handle]
        raise ConnectionBroken("the connection of this handle was lost: connect again")

    def _all(self) -> Iterator[Handle]:
        return iter(self._open.values())

    def on(self, queue: MemoryQueue) -> list[Handle]:
        return [handle for handle in self._all() if handle.queue is queue]

    def open(
        self,
        connection: Connection,
        name: str,
        options: OpenOptions,
        dynamic_name: str,
        handles_max: int,
        now: float,
    ) -> Opened:
        if len(connection.by_id) >= handles_max:
            raise TooManyHandles(f"a connection opens at most {handles_max:,} handles", limit=handles_max)
        definition = self.definition(name)
        if definition.type == "model":
            queue = self._dynamic(definition, dynamic_name, now)
            name = queue.attributes.name
        else:
            queue = self.resolve(name).queue
        read_order(queue.attributes.read_order, options.read_order)
        exclusive = self._check_conflict(queue, options, None)
        made = queue.attributes.definition_type == "temporary_dynamic" and definition.type == "model"
        handle = Handle(next(self._numbers), connection, name, queue, options, exclusive, made)
        connection.by_id[handle.id] = self._open[handle.id] = handle
        return Opened(handle.id, name, queue.attributes.name, options)

    def extend(self, handle: Handle, options: OpenOptions) -> Opened:
        handle.check_alive()
        if options.input and not handle.options.input:
            handle.exclusive = self._check_conflict(handle.queue, options, handle)
        handle.options = options
        return Opened(handle.id, handle.name, handle.queue.attributes.name, options)

    def close(self, handle: Handle) -> None:
        del handle.connection.by_id[handle.id], self._open[handle.id]

    def _check_conflict(self, queue: MemoryQueue, options: OpenOptions, own: Handle | None) -> bool:
        """Whether this input open is exclusive. Raises: ObjectInUse 2042 if it conflicts (R4.4)."""
        if options.input is None:
            return False
        asked = queue.attributes.default_input if options.input == "as_queue" else options.input
        exclusive = asked == "exclusive" or not queue.attributes.shareable
        others = [other for other in self.on(queue) if other is not own and other.options.input]
        if others and (exclusive or any(other.exclusive for other in others)):
            how = "exclusively" if others[0].exclusive else "for input"
            raise ObjectInUse(f"{queue.attributes.name} is open {how} elsewhere", queue=queue.attributes.name)
        return exclusive

    def _dynamic(self, model: QueueAttributes, pattern: str, now: float) -> MemoryQueue:
        """A new queue made from a model (R4.2)."""
        if not isinstance(pattern, str) or not DYNAMIC_NAME.fullmatch(pattern):
            raise ArgumentError(
                f"dynamic_name must be a queue name, or at most 33 characters and *, not {pattern!r}",
                reason=Reason.DYNAMIC_Q_NAME_ERROR,
                argument="dynamic_name",
                value=pattern,
            )
        name = pattern
        if pattern.endswith("*"):
            name = f"{pattern[:-1] or DEFAULT_PREFIX}{next(self._numbers):015X}"
        temporary = model.definition_type == "temporary_dynamic"
        attributes = replace(
            model,
            name=name,
            type="local",
            default_persistence=model.default_persistence and not temporary,
        )
        queue = self.create(attributes, now)
        assert queue is not None
        return queue

    def check_delete_at_close(self, handle: Handle, *, purge: bool) -> None:
        """Only dynamic queues are deleted at close, and only when nobody else uses them (R4.3)."""
        queue = handle.queue
        if queue.attributes.definition_type == "predefined":
            raise WrongQueueType(
                f"{handle.name} is not a dynamic queue",
                reason=Reason.OPTION_NOT_VALID_FOR_TYPE,
                queue=handle.name,
            )
        if len(self.on(queue)) > 1:
            raise ObjectInUse(f"{handle.name} is open elsewhere", queue=handle.name)
        _check_empty(queue, purge=purge)


def _check_empty(queue: MemoryQueue, *, purge: bool) -> None:
    rows = queue.all_rows()
    unsettled = any(row.state in GOT or row.state is State.PUT_UNCONFIRMED for row in rows)
    if unsettled or (rows and not purge):
        why = "has messages in units of work" if unsettled else "has messages"
        raise QueueNotEmpty(f"{queue.attributes.name} {why}", queue=queue.attributes.name)


def _wrong_base(alias: QueueAttributes) -> WrongQueueType:
    return WrongQueueType(
        f"{alias.name} cannot be an alias of {alias.base_queue!r}: that is no local queue",
        reason=Reason.ALIAS_BASE_Q_TYPE_ERROR,
        queue=alias.name,
    )
