"""Names that lead elsewhere: what an open of a name comes to, on this queue manager or on the way to another one.

MQ's name resolution (between N-1, N-2, mq-semantics R4.1), as one look through the definitions::

    a name alone, or with the own queue manager's beside it
        local queue                     that queue
        alias                           what it names: a local queue, or a remote definition
        remote definition               a transmission queue, and behind it the name and the queue manager it has
    a name with another queue manager's beside it: that name is of
        a queue-manager alias           the queue manager that it stands for, by its transmission queue; here: as above
        a transmission queue            that one
        none of those                   the default transmission queue

A remote definition without a remote queue is a queue-manager alias. Its transmission queue is the one that it names,
else the one that is called as the remote queue manager, else the default one. Nothing here is followed twice, so a
chain of definitions ends, and what names itself is refused when it is defined (A-32).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import NamedTuple

from ..errors import UnknownQueue, WrongQueueType, bad_argument, nearest_names, written
from ..model.attribute import is_name
from ..model.attributes import SYSTEM_QUEUES, ManagerAttributes, QueueAttributes
from ..model.message import Transmission
from ..reasons import Reason


class Route(NamedTuple):
    """Where a name leads.

    Args:
        queue: the local queue on which messages come to lie.
        over: the definitions on the way to it, the first one first; none where the name is the queue's own.
        transmission: where they go from there; None: they are there.
    """

    queue: QueueAttributes
    over: tuple[QueueAttributes, ...] = ()
    transmission: Transmission | None = None

    @property
    def attributes(self) -> QueueAttributes:
        """What a call through the name goes by: the first definition's defaults, and everybody's inhibits (R4.1)."""
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
        """A definition: one that the store keeps, or one that every store has."""
        return self.by_name.get(name) or SYSTEM_QUEUES.get(name)

    def definition(self, name: str) -> QueueAttributes:
        """The definition of this name. Raises: UnknownQueue 2085."""
        found = self.find(name) if isinstance(name, str) else None
        if found is not None:
            return found
        near = nearest_names(name, sorted(self.by_name)) if isinstance(name, str) else []
        hint = f"; did you mean {' or '.join(near)}?" if near else ""
        raise UnknownQueue(f"there is no queue {written(name)}{hint}", queue=name, nearest=near)

    def route(self, name: str, manager: str = "") -> Route:
        """Where a name leads.

        Args:
            manager: the name of the queue manager that has the queue; blank, or its own, is this one.

        Raises: UnknownQueue 2085; WrongQueueType 2082, 2001 of an alias; 2043 a model; of a remote name 2184, 2087,
        2196, 2091, 2092, 2197, 2198, 2199.
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
        """Queue and manager of replies, where a message names the queue alone; a reply-to alias has both (N-2)."""
        found = self.find(queue)
        if found is None or found.type != "remote":
            return queue, self.manager.name
        return found.remote_queue or queue, found.remote_manager or self.manager.name

    def is_here(self, manager: str) -> bool:
        """Whether the name of a queue manager is this one's; no name is."""
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
        raise WrongQueueType(
            f"{definition.name} is a model queue: opening it makes a queue to use", queue=definition.name
        )

    def _aliased(self, alias: QueueAttributes) -> Route:
        base = self.find(alias.base_queue)
        if base is None:
            text = f"{alias.name} is an alias of {alias.base_queue!r}, which does not exist"
            raise WrongQueueType(text, reason=Reason.UNKNOWN_ALIAS_BASE_Q, queue=alias.name)
        if base.type not in ("local", "remote"):
            raise wrong_base(alias)
        route = self._of(base)
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

    def _sent(self, definition: QueueAttributes, transmission: Transmission) -> Route:
        return Route(self._transmission_queue(definition), (definition,), transmission)

    def _transmission_queue(self, definition: QueueAttributes) -> QueueAttributes:
        """The one by which a remote definition sends."""
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
                f"nothing leads to queue manager {manager!r}: no transmission queue has its name, and none is default; "
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
            text = f"the default transmission queue {name} has not usage='transmission'"
            raise WrongQueueType(text, reason=Reason.DEF_XMIT_Q_USAGE_ERROR, queue=name)
        return found

    # --- when something is defined

    def check(self, definition: QueueAttributes) -> None:
        """What a definition may lead to (R4.1, A-32): an alias to no alias, nothing to itself.

        Raises: WrongQueueType 2001; ArgumentError.
        """
        if definition.type == "alias":
            base = self.find(definition.base_queue)
            if definition.base_queue == definition.name or (base is not None and base.type in ("alias", "model")):
                raise wrong_base(definition)
        if definition.type == "remote":
            self._check_remote(definition)

    def _check_remote(self, definition: QueueAttributes) -> None:
        name, manager = definition.name, definition.remote_manager
        if definition.remote_queue and manager == self.manager.name:
            raise bad_argument("remote_manager", manager, "another queue manager's name: this one would send to itself")
        if definition.transmission_queue == name:
            raise bad_argument("transmission_queue", name, "another queue: this one would send by itself")
        if manager == name and not definition.transmission_queue:
            allowed = "given, as this definition has the name of the queue manager: it would send by itself"
            raise bad_argument("transmission_queue", "", allowed)


def check_own_name(name: str, definitions: Iterable[QueueAttributes]) -> None:
    """Raises: ArgumentError 2058, a definition leads to another queue manager of this name."""
    for one in definitions:
        sends = one.usage == "transmission" and one.name == name
        if sends or (one.remote_queue and one.remote_manager == name):
            allowed = f"another name: {one.name} leads to another queue manager of this name"
            raise bad_argument("name", name, allowed, Reason.Q_MGR_NAME_ERROR)


def wrong_base(alias: QueueAttributes) -> WrongQueueType:
    """The error for an alias of what an alias cannot name."""
    text = f"{alias.name} cannot be an alias of {alias.base_queue!r}: that is neither a local queue nor a remote one"
    return WrongQueueType(text, reason=Reason.ALIAS_BASE_Q_TYPE_ERROR, queue=alias.name)


def _of_transmission(found: QueueAttributes, name: str) -> QueueAttributes:
    if found.type != "local":
        text = f"{found.name}, by which {name} would send, is of type {found.type}, not a local queue"
        raise WrongQueueType(text, reason=Reason.XMIT_Q_TYPE_ERROR, queue=name)
    if found.usage != "transmission":
        text = f"{found.name}, by which {name} would send, has not usage='transmission'"
        raise WrongQueueType(text, reason=Reason.XMIT_Q_USAGE_ERROR, queue=name)
    return found
