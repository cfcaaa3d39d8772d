"""Definitions and open handles: the rules for opening, altering and deleting (mq-semantics 4.1 to 4.4)."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import replace
from operator import attrgetter
from typing import NamedTuple

from ...errors import (
    ArgumentError,
    GetInhibited,
    ObjectExists,
    ObjectInUse,
    PutInhibited,
    QueueCondition,
    QueueNotEmpty,
    Reason,
    SynchronousQueue,
    TooManyHandles,
    UnknownObject,
    UnknownQueue,
    WrongQueueType,
    bad_argument,
)
from ...model.attribute import names_in
from ...model.attributes import READABLE, SYSTEM_QUEUES, ManagerAttributes, QueueAttributes, QueueStatus, define_queue
from ...model.message import Transmission
from ...model.options import OpenOptions
from ...rules.channels import collecting
from ...rules.naming import Route, synchronous
from ...rules.ordering import read_order
from ..seam.definitions import CONNECTION, Connection, as_text, manager_row, queue_of, read_connection
from ..seam.tables import ChannelRow, DefinitionRow, HandleRow, ObjectRow, UnitRow
from .operation import Operation
from .process import OpenHandle
from .queue import LocalQueue

DYNAMIC_NAME = re.compile(r"[A-Za-z0-9./_%]{0,33}\*|[A-Za-z0-9./_%]{1,48}")
DEFAULT_PREFIX = "AMQ."


class Contents(NamedTuple):
    """A summary of the messages on a queue, for deleting it.

    Args:
        any: whether there are messages in any state.
        unsettled: how many messages are in units of work, or under confirm ids.
        uncommitted_puts: whether there are uncommitted puts.
    """

    any: bool
    unsettled: int
    uncommitted_puts: bool


class ToOpen(NamedTuple):
    """The result of resolving an open: a local queue, possibly just created from a model, or the route to another
    manager.
    """

    name: str
    route: Route
    exclusive: bool
    made_temporary: bool


class Catalog:
    """All definitions and open handles, as one operation sees them; messages are elsewhere."""

    def __init__(self, operation: Operation) -> None:
        self._operation, self._backend = operation, operation.backend
        self._known = operation.store.definitions.current(operation.backend)

    @property
    def manager(self) -> ManagerAttributes:
        return self._known.manager

    def number(self, name: str) -> int:
        """Returns the number of an existing definition."""
        return self._known.number(name)

    def rows(self, name: str | None = None) -> Sequence[DefinitionRow]:
        """Returns the records of all definitions by number, or the one of this name."""
        if name is None:
            return self._known.rows()
        return () if self.find(name) is None else (self._known.row(name),)

    def find(self, name: str) -> QueueAttributes | None:
        """Returns a stored definition, or None."""
        return self._known.get(name)

    def found(self, name: str) -> QueueAttributes | None:
        """Returns a stored definition, or one that every store has, or None."""
        return self.find(name) or SYSTEM_QUEUES.get(name)

    def made(self, name: str) -> QueueAttributes:
        """Returns a stored definition; stores it first if every store has it. Raises: UnknownQueue 2085."""
        definition = self.definition(name)
        if self.find(name) is None:
            self.add(definition)
        return definition

    @property
    def created_at(self) -> float:
        """The time when the store was created, and with it the queues that every store has."""
        return self._known.created_at

    def opens(self, queue: str) -> Sequence[HandleRow]:
        """Returns the handles of a local queue, of any process and under any name."""
        return self._backend.select(HandleRow, queue=self.number(queue))

    def contents(self, queue: str) -> Contents:
        """Summarizes the messages on a local queue."""
        return contents(self._operation, self._operation.queue(self.number(queue), queue))

    def add(self, attributes: QueueAttributes) -> None:
        """Stores a new definition, which has been checked."""
        number, now = self._operation.number(), self._operation.now
        text, begun = as_text(attributes), self.created_at if attributes.name in SYSTEM_QUEUES else now
        self._backend.save(DefinitionRow(number, attributes.name, attributes.type, text, begun, now))
        self._changed(None if _leads_on(attributes) else ())

    def change(self, attributes: QueueAttributes) -> None:
        """Stores an altered definition."""
        row, before = self._known.row(attributes.name), self._known[attributes.name]
        self._backend.save(row._replace(attributes=as_text(attributes), altered_at=self._operation.now))
        is_own = before.type == "local" and not (_leads_on(before) or _leads_on(attributes))
        self._changed([row.id] if is_own else None)

    def change_manager(self, attributes: ManagerAttributes) -> None:
        """Stores the attributes of the queue manager."""
        row = manager_row(self._backend)
        self._backend.save(row._replace(attributes=as_text(attributes)))
        self._changed(None)

    def remove(self, name: str) -> None:
        row, attributes = self._known.row(name), self._known[name]
        self._backend.remove_records(DefinitionRow, id=row.id)
        if attributes.type == "home_server":
            self._backend.remove_records(ChannelRow, name=collecting(name, self.manager.name))
        self._changed(None if _leads_on(attributes) else ())

    def _changed(self, queues: Collection[int] | None) -> None:
        """Makes the cached definitions of all processes obsolete.

        Args:
            queues: those whose open handles are affected; None: any may be.
        """
        self._operation.defines = True
        row = manager_row(self._backend)
        self._backend.save(row._replace(revision=row.revision + 1))
        self._backend.revise(queues)
        self._operation.durable = True
        self._known.current(self._backend)

    def local(self, name: str) -> LocalQueue:
        """Returns the local queue to which this name leads, in its present state. Raises: as `resolve`."""
        return self._used(self.resolve(name).name, name)

    def reached(self, name: str) -> LocalQueue:
        """The same, of a remote queue the transmission queue, on which puts to it are. Raises: as `route`."""
        return self._used(self.route(name).queue.name, name)

    def _used(self, found: str, name: str) -> LocalQueue:
        if self.find(found) is None:
            raise UnknownQueue(f"{found} has not been used, so it has no messages", queue=found)
        return self._operation.queue(self.number(found), found, name)

    def is_unused(self, name: str) -> bool:
        """Whether the name is that of a local queue that every store has and that was never used in this one."""
        return self.find(self.resolve(name).name) is None

    def status(self, queue: LocalQueue) -> QueueStatus:
        """Returns the depth and the numbers of handles of a queue (R4.6)."""
        handles, row = self.opens(queue.attributes.name), self._known.row(queue.attributes.name)
        return QueueStatus(
            current_depth=queue.depth,
            open_input_count=sum(one.input for one in handles),
            open_output_count=sum(one.output for one in handles),
            uncommitted=contents(self._operation, queue).unsettled,
            created_at=row.created_at,
            altered_at=row.altered_at,
        )

    # --- definitions

    def definitions(self) -> list[QueueAttributes]:
        return [queue_of(row.attributes) for row in sorted(self._known.rows(), key=attrgetter("name"))]

    def definition(self, name: str) -> QueueAttributes:
        """Returns the definition of this name. Raises: UnknownQueue 2085."""
        return self._known.names.definition(name)

    def create(self, attributes: QueueAttributes) -> None:
        name = attributes.name
        if self.find(name) is not None:
            raise ObjectExists(f"queue {name!r} already exists", queue=name)
        self.check_names(attributes)
        self.add(attributes)
        self.make_targets(attributes)
        self.check_dead_letters_reach(attributes)

    def make_targets(self, attributes: QueueAttributes) -> None:
        """Creates the transmission queues of a store-and-forward queue that do not exist (K-3)."""
        for name in names_in(attributes.targets):
            if self.find(name) is None:
                self.add(define_queue(name, usage="transmission"))

    def check_names(self, attributes: QueueAttributes) -> None:
        """Checks the names in a definition (R4.1, A-32). Raises: as `Names.check`."""
        self._known.names.check(attributes)

    def check_dead_letter_queue(self, name: str) -> None:
        """Checks that messages can reach a dead-letter queue, which may be missing. Raises: ArgumentError."""
        found = self.find(name)
        if found is not None and found.type == "alias":
            found = self.find(found.base_queue)
        if found is not None and found.mode == "synchronous":
            raise bad_argument(
                "dead_letter_queue", name, "a queue that stores messages here, or an asynchronous remote one"
            )

    def check_dead_letters_reach(self, attributes: QueueAttributes) -> None:
        """Checks the dead-letter queue again, if it is this queue, or an alias of it. Raises: ArgumentError."""
        dead = self.find(self.manager.dead_letter_queue)
        if dead is not None and attributes.name in (dead.name, dead.base_queue):
            self.check_dead_letter_queue(dead.name)

    def check_no_target(self, definition: QueueAttributes) -> None:
        """Refuses to delete or change a transmission queue that a store-and-forward queue needs (K-3)."""
        name = definition.name
        for one in self.definitions() if definition.usage == "transmission" else ():
            if name in names_in(one.targets):
                raise ObjectInUse(
                    f"{name} is the transmission queue of a target of store-and-forward queue {one.name}",
                    remedy=f"remove {name} from the targets of {one.name} first, or delete {one.name}",
                    queue=name,
                )

    def check_alter(self, before: QueueAttributes, changed: QueueAttributes) -> None:
        """Refuses to change the order rule while a put is unresolved (B-19), and the usage while the queue is not
        empty.
        """
        if changed.order != before.order and self.contents(before.name).uncommitted_puts:
            raise ObjectInUse(
                f"the order of {changed.name} cannot change while it has uncommitted puts", queue=changed.name
            )
        if changed.usage != before.usage:
            self.check_no_target(before)
            self._check_closed(before)
            self._check_empty(before.name, purge=False)
            if self._backend.select(UnitRow, queue=self.number(before.name), kind="staging"):
                raise QueueNotEmpty(f"{before.name} has staged rows", queue=before.name)

    def check_delete(self, name: str, *, purge: bool) -> None:
        definition = self.definition(name)
        self.check_no_target(definition)
        self._check_closed(definition)
        if definition.type == "local":
            self._check_empty(name, purge=purge)

    def check_clear(self, name: str) -> None:
        """Refuses to clear a queue that is open, or that has messages in units of work, as MQSC does."""
        definition = self.definition(name)
        if definition.type != "local":
            raise WrongQueueType(f"{name} is of type {definition.type}: only a local queue has messages", queue=name)
        self._check_closed(definition)
        self._check_empty(name, purge=True)

    def _check_closed(self, definition: QueueAttributes) -> None:
        name = definition.name
        by_name = self._backend.select(HandleRow, name=name)
        opens = {one.id for one in (*by_name, *(self.opens(name) if definition.type == "local" else ()))}
        if by_name:
            raise ObjectInUse(
                f"{name} is open",
                remedy=f"'inorder connection list {name}' shows by whom; calls by name keep it open until "
                f"close_queue({name!r})",
                queue=name,
                handles=opens,
            )
        if opens:
            raise ObjectInUse(f"{name} is open through an alias", queue=name, handles=opens)

    def check_delete_at_close(self, handle: OpenHandle, queue: QueueAttributes, *, purge: bool) -> None:
        """Refuses to delete at close, except a temporary queue by the handle that made it, and a permanent dynamic one
        that no other handle uses (R4.3).
        """
        kind, name = queue.definition_type, handle.name
        if kind == "temporary_dynamic" and self._backend.select(HandleRow, id=handle.id, made_temporary=1):
            return
        if kind != "permanent_dynamic":
            why = "is deleted by the handle that made it" if kind == "temporary_dynamic" else "is not a dynamic queue"
            raise WrongQueueType(f"{name} {why}", reason=Reason.OPTION_NOT_VALID_FOR_TYPE, queue=name)
        if len(self.opens(queue.name)) > 1:
            raise ObjectInUse(f"{name} is open in another connection", queue=name)
        self._check_empty(queue.name, purge=purge)

    def _check_empty(self, queue: str, *, purge: bool) -> None:
        there = self.contents(queue)
        if there.unsettled or (there.any and not purge):
            why = "has messages in units of work" if there.unsettled else "has messages"
            raise QueueNotEmpty(f"{queue} {why}", queue=queue)

    # --- aliases and remote queues

    def route(self, name: str, manager: str = "") -> Route:
        """Resolves a name. Raises: as `Names.route`."""
        return self._known.names.route(name, manager)

    def resolve(self, name: str) -> QueueAttributes:
        """Returns the local queue to which a name leads. Raises: as `Names.route`; 2043, if the queue is not local."""
        route = self.route(name)
        if route.transmission is not None:
            raise WrongQueueType(f"{name} is a remote queue: its messages are not here", queue=name)
        return route.queue

    def resolved(self, handle: OpenHandle, queue: QueueAttributes) -> QueueAttributes:
        """Returns the attributes for a call through this handle: the first name's defaults win (R4.1, R1.4).

        Raises: QueueCondition 2041, if its name now resolves to another queue.
        """
        try:
            route = self.route(handle.name, handle.manager)
        except (UnknownQueue, WrongQueueType) as error:
            raise _changed(handle) from error
        if (route.queue.name, route.transmission) != (queue.name, handle.transmission):
            raise _changed(handle)
        return route.attributes

    def resolved_for_put(self, handle: OpenHandle, queue: QueueAttributes) -> QueueAttributes:
        """Returns the attributes as `resolved` does.

        Raises: as `resolved`; PutInhibited 2051, if an alias or remote queue on the way allows no puts.
        """
        attributes = self.resolved(handle, queue)
        if queue.put_allowed and not attributes.put_allowed:
            raise PutInhibited(f"puts to {handle.name} are inhibited", queue=handle.name)
        return attributes

    def local_queue_of(self, name: str) -> str | None:
        """Returns the local queue that a change of this definition affects, if any."""
        definition = self.definition(name)
        affected = definition.base_queue if definition.type == "alias" else name
        found = self.find(affected)
        return affected if found is not None and found.type == "local" else None

    # --- opening

    def to_open(
        self, name: str, options: OpenOptions, manager: str, dynamic_name: str, *, open_already: int, handles_max: int
    ) -> ToOpen:
        """Checks an open. Creates the queue if the name is a model's (R4.1 to R4.4)."""
        if open_already >= handles_max:
            raise TooManyHandles(f"a connection can have at most {handles_max:,} open handles", limit=handles_max)
        names = self._known.names
        if names.is_here(manager) and (definition := self.definition(name)).type == "model":
            read_order(definition.read_order, options.read_order)  # before a queue is created that no call would delete
            queue = self._dynamic(definition, dynamic_name)
            made = queue.definition_type == "temporary_dynamic"
            return ToOpen(queue.name, Route(queue), self.is_exclusive(queue, options, None), made)
        route = self._route_to_open(name, manager)
        check_uses(name, route.transmission, options)
        read_order(route.queue.read_order, options.read_order)
        if route.queue.name not in self._known:
            self.add(route.queue)
        return ToOpen(name, route, self.is_exclusive(route.queue, options, None), made_temporary=False)

    def _route_to_open(self, name: str, manager: str) -> Route:
        """Resolves a name that is opened. Raises: as `route`; SynchronousQueue, with the location of its owner."""
        try:
            return self.route(name, manager)
        except SynchronousQueue as there:
            known = self._connection(there.connection)
            if known is None:
                text = f"{there.over[-1]} names connection {there.connection}, which is not defined"
                remedy = f"define it with: inorder connection define {there.connection} URL"
                raise UnknownObject(f"{text}: {remedy}", kind=CONNECTION, object=there.connection) from None
            _located(there, known)
            raise
        except WrongQueueType as error:
            known = self._connection(manager) if self._known.names.leads_nowhere(manager) else None
            if known is None:
                raise
            raise _located(synchronous(name, manager, known.name), known) from error

    def _connection(self, name: str) -> Connection | None:
        rows = self._operation.backend.select(ObjectRow, type=CONNECTION, name=name)
        return read_connection(rows[0].attributes) if rows else None

    def is_exclusive(self, queue: QueueAttributes, options: OpenOptions, own: int | None) -> bool:
        """Whether this input open is exclusive. Raises: ObjectInUse 2042 if it conflicts (R4.4)."""
        if options.input is None:
            return False
        asked = queue.default_input if options.input == "as_queue" else options.input
        exclusive = asked == "exclusive" or not queue.shareable
        others = [other for other in self.opens(queue.name) if other.id != own and other.input]
        if others and (exclusive or any(other.exclusive for other in others)):
            how = "exclusively" if others[0].exclusive else "for input"
            raise ObjectInUse(f"{queue.name} is open {how} elsewhere", queue=queue.name)
        return exclusive

    def _dynamic(self, model: QueueAttributes, pattern: str) -> QueueAttributes:
        """Creates a queue from a model (R4.2)."""
        if not isinstance(pattern, str) or not DYNAMIC_NAME.fullmatch(pattern):
            raise ArgumentError(
                f"dynamic_name must be a queue name, or at most 33 characters and *, not {pattern!r}",
                reason=Reason.DYNAMIC_Q_NAME_ERROR,
                argument="dynamic_name",
                value=pattern,
            )
        name = pattern
        if pattern.endswith("*"):
            name = f"{pattern[:-1] or DEFAULT_PREFIX}{self._operation.number():015X}"
        temporary = model.definition_type == "temporary_dynamic"
        attributes = replace(
            model, name=name, type="local", default_persistence=model.default_persistence and not temporary
        )
        self.create(attributes)
        return attributes


def _located(there: SynchronousQueue, known: Connection) -> SynchronousQueue:
    there.data |= {"location": known.location, "user": known.user}
    return there


def _leads_on(attributes: QueueAttributes) -> bool:
    """Whether messages go through this queue to others, or reach it by other names without an open. Calls through
    handles of other queues must then notice when it is created or deleted.
    """
    return attributes.type not in READABLE or attributes.usage == "transmission"


def get_allowed(operation: Operation, handle: OpenHandle, queue: LocalQueue) -> QueueAttributes:
    """Returns the attributes for a get through this handle. Raises: GetInhibited 2016."""
    attributes = queue.attributes
    if not handle.is_direct:
        attributes = Catalog(operation).resolved(handle, attributes)
    if not attributes.get_allowed:
        raise GetInhibited(f"gets from {handle.name} are inhibited", queue=handle.name)
    return attributes


def contents(operation: Operation, queue: LocalQueue) -> Contents:
    """Summarizes the messages on a queue."""
    (counts,) = operation.backend.overview(operation.now, queue.id, briefly=True)
    return Contents(queue.depth + counts.gets > 0, counts.puts + counts.gets, counts.puts > 0)


def check_uses(name: str, transmission: Transmission | None, options: OpenOptions) -> None:
    """Refuses to open another queue manager's queue except for output (R4.1, N-2). Raises: WrongQueueType 2045."""
    if transmission is not None and (options.input or options.browse):
        raise WrongQueueType(
            f"{name} leads to queue manager {transmission.manager}: it can only be opened for output (output=True)",
            reason=Reason.OPTION_NOT_VALID_FOR_TYPE,
            queue=name,
        )


def _changed(handle: OpenHandle) -> QueueCondition:
    return QueueCondition(f"{handle.name} has changed: open it again", reason=Reason.OBJECT_CHANGED)
