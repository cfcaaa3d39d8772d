"""Name resolution: the queue that an open of a name leads to, here or on the way to another queue manager.

MQ's rules (between N-1, N-2, mq-semantics R4.1), as one walk through the definitions::

    a name alone, or with the own queue manager's name
        local queue                     that queue
        alias                           the object it names: a local queue, or a remote definition
        remote definition               a transmission queue, then the name and queue manager that it has; if it is
                                        synchronous, the queue at that queue manager, by its connection
        model, store-and-forward, home  nowhere: none of them is addressed
    a name with the name of another queue manager, which names
        a queue-manager alias           the queue manager that it names, by its transmission queue; if here: as above
        a transmission queue            that queue
        none of those                   the default transmission queue; without one, the queue manager itself if a
                                        connection has its name (queue discovery, A-30)

A remote definition without a remote queue is a queue-manager alias. Its transmission queue is the one that it names,
otherwise the one with the name of the remote queue manager, otherwise the default one. No step is taken twice, so every
chain of definitions ends, and a definition that names itself is refused (A-32).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Final, NamedTuple

from ..errors import InorderError, SynchronousQueue, UnknownQueue, WrongQueueType, bad_argument, nearest_names, written
from ..model.attribute import is_name, names_in
from ..model.attributes import SYSTEM_QUEUES, ManagerAttributes, QueueAttributes
from ..model.message import Transmission
from ..reasons import Reason
from .authorities import MANAGER

NOT_ADDRESSED: Final[Mapping[str, str]] = {
    "model": "is a model queue: open it to create a queue",
    "store_and_forward": "is a store-and-forward queue: name a queue of one of its target queue managers instead, with "
    "manager=",
    "home_server": "is a home-server queue: it collects messages, and cannot be opened",
}


class Route(NamedTuple):
    """The result of resolving a name.

    Args:
        queue: the local queue that stores the messages.
        over: the definitions on the way to it, the first one first; empty if the name is the queue's own.
        transmission: the destination from there; None: this is the destination.
    """

    queue: QueueAttributes
    over: tuple[QueueAttributes, ...] = ()
    transmission: Transmission | None = None

    @property
    def attributes(self) -> QueueAttributes:
        """The attributes that apply to a call through the name: the first definition's defaults, and the inhibits of
        all (R4.1).
        """
        if not self.over:
            return self.queue
        first, all_ = self.over[0], (*self.over, self.queue)
        return replace(
            self.queue,
            default_priority=first.default_priority,
            default_persistence=first.default_persistence,
            get_allowed=all(one.get_allowed for one in all_),
            put_allowed=all(one.put_allowed for one in all_),
        )


class Names(NamedTuple):
    """The definitions in which names are looked up."""

    manager: ManagerAttributes
    by_name: Mapping[str, QueueAttributes]

    def find(self, name: str) -> QueueAttributes | None:
        """Finds a definition: a stored one, or one that every store has."""
        return self.by_name.get(name) or SYSTEM_QUEUES.get(name)

    def definition(self, name: str) -> QueueAttributes:
        """Finds the definition of this name. Raises UnknownQueue 2085."""
        found = self.find(name) if isinstance(name, str) else None
        if found is not None:
            return found
        near = nearest_names(name, self.by_name) if isinstance(name, str) else []
        hint = f"; did you mean {' or '.join(near)}?" if near else ""
        raise UnknownQueue(f"there is no queue {written(name)}{hint}", queue=name, nearest=near)

    def route(self, name: str, manager: str = "") -> Route:
        """Resolves a name.

        Args:
            manager: the name of the queue manager that has the queue; blank, or its own name, is this one.

        Raises UnknownQueue 2085; WrongQueueType 2082 and 2001 for an alias, 2043 for a model; for a remote name 2184,
        2087, 2196, 2091, 2092, 2197, 2198, 2199; SynchronousQueue 2045, it leads to a queue that no message reaches
        from here by itself.
        """
        if self.is_here(manager):
            return self._here(name)
        if not is_name(name):
            raise UnknownQueue(f"no queue can have the name {written(name)}", queue=name, nearest=[])
        found = self.find(manager)
        if found is not None and found.type == "remote":
            if found.remote_queue:
                text = f"{manager} is a remote queue, not an alias of a queue manager"
                raise WrongQueueType(text, reason=Reason.UNKNOWN_REMOTE_Q_MGR, queue=manager)
            if self.is_here(found.remote_manager):
                here = self._here(name)
                return here._replace(over=(found, *here.over))
            return self._sent(found, Transmission(name, found.remote_manager))
        if found is not None and found.type == "local":
            return Route(_of_transmission(found, manager), (), Transmission(name, manager))
        if found is not None and found.type == "model":
            raise WrongQueueType(f"{manager} is a model queue", reason=Reason.UNKNOWN_REMOTE_Q_MGR, queue=manager)
        return Route(self._default(manager), (), Transmission(name, manager))

    def reply_to(self, queue: str) -> tuple[str, str]:
        """Queue and manager for replies, if a message names only the queue; a reply-to alias gives both (N-2)."""
        found = self.find(queue)
        if found is None or found.type != "remote":
            return queue, self.manager.name
        return found.remote_queue or queue, found.remote_manager or self.manager.name

    def asked_of(self, name: str, manager: str) -> str:
        """Returns the name for which an open or a put needs authority.

        It is the name itself if the queue manager is this one; else the queue that the name leads to, which is the
        transmission queue if the messages leave; the definition, if that is synchronous; "", the queue manager, if it
        leads nowhere.
        """
        if self.is_here(manager):
            return name
        try:
            return self.route(name, manager).queue.name
        except SynchronousQueue as there:
            return str(there.over[-1])
        except InorderError:
            return MANAGER

    def is_here(self, manager: str) -> bool:
        """Whether this names our queue manager; an empty name does."""
        return not manager or manager == self.manager.name

    def _here(self, name: str) -> Route:
        definition = self.definition(name)
        if definition.type == "alias":
            return self._aliased(definition)
        return self._of(definition)

    def _of(self, definition: QueueAttributes) -> Route:
        if definition.type == "local":
            return Route(definition)
        if definition.type == "remote":
            return self._remote(definition)
        raise WrongQueueType(f"{definition.name} {NOT_ADDRESSED[definition.type]}", queue=definition.name)

    def _aliased(self, alias: QueueAttributes) -> Route:
        base = self.find(alias.base_queue)
        if base is None:
            text = f"{alias.name} is an alias of {alias.base_queue!r}, which does not exist"
            raise WrongQueueType(text, reason=Reason.UNKNOWN_ALIAS_BASE_Q, queue=alias.name)
        if base.type not in ("local", "remote"):
            raise wrong_base(alias)
        try:
            route = self._of(base)
        except SynchronousQueue as there:
            there.data["over"] = (alias.name, *there.over)
            raise
        return route._replace(over=(alias, *route.over))

    def _remote(self, definition: QueueAttributes) -> Route:
        name, queue, manager = definition.name, definition.remote_queue, definition.remote_manager
        if not queue:
            text = f"{name} names no remote queue: it is an alias of queue manager {manager!r}"
            raise WrongQueueType(text, reason=Reason.REMOTE_Q_NAME_ERROR, queue=name)
        if self.is_here(manager):
            whose = "no queue manager" if not manager else "this queue manager"
            raise WrongQueueType(
                f"{name} names {whose} as the remote one", reason=Reason.UNKNOWN_REMOTE_Q_MGR, queue=name
            )
        return self._sent(definition, Transmission(queue, manager))

    def leads_nowhere(self, manager: str) -> bool:
        """Whether no definition here routes messages to this other queue manager, so that it may be discovered."""
        is_known = self.is_here(manager) or self.find(manager) is not None
        return not (is_known or self.manager.default_transmission_queue)

    def _sent(self, definition: QueueAttributes, transmission: Transmission) -> Route:
        if definition.mode == "synchronous":
            raise synchronous(*transmission, definition.connection, (definition.name,))
        return Route(self._transmission_queue(definition), (definition,), transmission)

    def _transmission_queue(self, definition: QueueAttributes) -> QueueAttributes:
        """Finds the transmission queue of a remote definition."""
        name = definition.transmission_queue
        found = self.find(name or definition.remote_manager)
        if found is not None:
            return _of_transmission(found, definition.name)
        if name:
            text = f"{definition.name} names the transmission queue {name}, which does not exist"
            raise WrongQueueType(text, reason=Reason.UNKNOWN_XMIT_Q, queue=definition.name)
        return self._default(definition.remote_manager)

    def _default(self, manager: str) -> QueueAttributes:
        name = self.manager.default_transmission_queue
        if not name:
            text = (
                f"no transmission queue leads to queue manager {manager!r}: none has its name, and no default is set; "
                f"this queue manager is called {self.manager.name!r}"
            )
            raise WrongQueueType(text, reason=Reason.UNKNOWN_REMOTE_Q_MGR, queue=manager)
        found = self.find(name)
        if found is None:
            raise WrongQueueType(
                f"the default transmission queue {name} does not exist", reason=Reason.UNKNOWN_DEF_XMIT_Q, queue=name
            )
        if found.type != "local":
            text = f"the default transmission queue {name} is of type {found.type}"
            raise WrongQueueType(text, reason=Reason.DEF_XMIT_Q_TYPE_ERROR, queue=name)
        if found.usage != "transmission":
            text = f"the default transmission queue {name} does not have usage='transmission'"
            raise WrongQueueType(text, reason=Reason.DEF_XMIT_Q_USAGE_ERROR, queue=name)
        return found

    # --- checks of new definitions

    def check(self, definition: QueueAttributes) -> None:
        """Checks the target of a definition (R4.1, A-32): an alias of no alias, and nothing that leads to itself.

        Raises WrongQueueType 2001; ArgumentError.
        """
        if definition.type == "alias":
            base = self.find(definition.base_queue)
            if definition.base_queue == definition.name or (base is not None and base.type not in ("local", "remote")):
                raise wrong_base(definition)
        if definition.type == "remote":
            self._check_remote(definition)
        if definition.type == "store_and_forward":
            self._check_targets(definition)
        if definition.type == "home_server" and definition.remote_manager == self.manager.name:
            allowed = "the name of another queue manager: this one cannot collect from itself"
            raise bad_argument("remote_manager", definition.remote_manager, allowed)

    def _check_targets(self, definition: QueueAttributes) -> None:
        for name in names_in(definition.targets):
            found = self.find(name)
            if self.is_here(name) or name == definition.name:
                allowed = "names of other queue managers: messages for this one do not wait to be sent"
                raise bad_argument("targets", name, allowed)
            if found is not None and found.usage != "transmission":
                allowed = f"queue managers for which a transmission queue can be made: there is another queue {name}"
                raise bad_argument("targets", name, allowed)

    def _check_remote(self, definition: QueueAttributes) -> None:
        name, manager = definition.name, definition.remote_manager
        if definition.transmission_queue == name:
            raise bad_argument("transmission_queue", name, "another queue: this one would send through itself")
        if manager == name and not definition.transmission_queue:
            allowed = "given, because this definition has the queue manager's name: it would send through itself"
            raise bad_argument("transmission_queue", "", allowed)


def synchronous(queue: str, manager: str, connection: str, over: tuple[str, ...] = ()) -> SynchronousQueue:
    """The error for a name that leads to a queue at its owner.

    Args:
        queue, manager: the queue and its owner.
        over: the definitions on the way, the first one first; none: the queue is discovered.
    """
    text = f"{over[-1] if over else queue} is a synchronous remote queue: its messages are at queue manager {manager}"
    return SynchronousQueue(
        f"{text}, by connection {connection}; this call can only be made there",
        queue=over[0] if over else queue,
        over=over,
        remote_queue=queue,
        remote_manager=manager,
        connection=connection,
    )


def check_own_name(name: str, definitions: Iterable[QueueAttributes]) -> None:
    """Raises ArgumentError 2058 if a definition leads to another queue manager with this name."""
    for one in definitions:
        sends = one.usage == "transmission" and one.name == name
        leads = one.remote_queue or one.type == "home_server"
        if sends or (leads and one.remote_manager == name):
            allowed = f"another name: {one.name} leads to another queue manager of this name"
            raise bad_argument("name", name, allowed, Reason.Q_MGR_NAME_ERROR)


def wrong_base(alias: QueueAttributes) -> WrongQueueType:
    """The error for an alias whose base queue has a type that an alias cannot name."""
    text = f"{alias.name} cannot be an alias of {alias.base_queue!r}, which is neither a local nor a remote queue"
    return WrongQueueType(text, reason=Reason.ALIAS_BASE_Q_TYPE_ERROR, queue=alias.name)


def _of_transmission(found: QueueAttributes, name: str) -> QueueAttributes:
    if found.type != "local":
        text = f"{found.name}, through which {name} would send, is of type {found.type}, not a local queue"
        raise WrongQueueType(text, reason=Reason.XMIT_Q_TYPE_ERROR, queue=name)
    if found.usage != "transmission":
        text = f"{found.name}, through which {name} would send, does not have usage='transmission'"
        raise WrongQueueType(text, reason=Reason.XMIT_Q_USAGE_ERROR, queue=name)
    return found
