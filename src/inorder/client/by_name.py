"""Calls that name a queue, and the default handles that they go through."""

from __future__ import annotations

import contextlib
import functools
from collections import OrderedDict
from collections.abc import Callable, Set
from typing import Any, NamedTuple, Protocol, TypeVar, cast

from ..errors import QueueDeleted, Reason, TooManyHandles, UnknownQueue, WrongQueueType
from ..model.attribute import check_queue_name
from ..model.options import OpenOptions
from ..stores.seam.protocol import Store
from .queue import Queue
from .session import Session

F = TypeVar("F", bound=Callable[..., Any])
FOR_BROWSE = OpenOptions(browse=True)


class Elsewhere(NamedTuple):
    """The name of a queue, and of the queue manager that has it; no tuple that a caller gives as a name is one."""

    queue: str
    manager: str


Name = str | Elsewhere
HERE = ""  # the default, which a put by name knows by `is`: what is given may be nothing that can be compared


class NamesQueues(Protocol):
    """A connection, with a default handle for each queue that its calls name."""

    def _make_room(self, queue: str = "", manager: str = "") -> bool: ...
    def _renew(self, queue: str, manager: str = "") -> bool: ...


def by_name(call: F) -> F:
    """A call on the default handle of the queue that is its first argument, made again where that can help.

    At the limit of handles another one is closed first. If the queue was deleted the handle is opened anew, once.
    """

    @functools.wraps(call)
    def attempts(connection: NamesQueues, /, *given: Any, **named: Any) -> Any:
        is_new = False
        while True:
            try:
                return call(connection, *given, **named)
            except TooManyHandles:
                queue = given[0] if given else named["queue"]
                if not connection._make_room(queue, named.get("manager", "")):
                    raise
            except QueueDeleted:
                queue = given[0] if given else named["queue"]
                if is_new or not connection._renew(queue, named.get("manager", "")):
                    raise
                is_new = True

    return cast(F, attempts)


class CallsByName:
    """The default handles of a connection, one for each queue that its calls name."""

    _session: Session
    _store: Store
    _queues: OrderedDict[Name, Queue]  # the one used last is the last

    def close_queue(self, name: str, *, manager: str = "") -> Reason | None:
        """Closes the default handle of a queue; the warning as `Queue.close`, None if it was not open."""
        return self._close_default(name_of(name, manager)) if isinstance(name, str) else None

    def _close_default(self, name: Name) -> Reason | None:
        queue = self._queues.get(name)
        if queue is None:
            return None
        warning = None if queue.closed else queue.close()
        self._queues.pop(name, None)
        return warning

    def _close_idle(self, handles: Set[int]) -> bool:
        """Closes these if all are default handles that nobody would miss; whether they were."""
        idle = {queue.internals.number: name for name, queue in self._queues.items() if queue.internals.is_idle}
        if not handles <= idle.keys():
            return False
        for number in handles:
            self._close_default(idle[number])
        return True

    def _default(self, name: Name) -> Queue:
        """The default handle of a queue, not opened before a call needs it; the one used last is the last."""
        queue = self._queues.get(name) if isinstance(name, str | Elsewhere) else None
        if queue is None or queue.closed:
            self._check_no_model(name)
            if queue is not None:  # its close was interrupted
                self._queues.pop(name, None)
            return self._queues.setdefault(name, self._made(name, FOR_BROWSE, grows=True, lazy=True))
        self._queues.move_to_end(name)
        queue.was_used = True
        return queue

    def _open(self, name: Name, options: OpenOptions, **how: Any) -> Queue:
        while True:
            try:
                with self._session:
                    return self._made(name, options, **how)
            except TooManyHandles:
                if not self._make_room():
                    raise

    def _made(self, name: Name, options: OpenOptions, **how: Any) -> Queue:
        if isinstance(name, Elsewhere):
            name, how["manager"] = name
        return Queue(self._session, name, options, **how)

    def _check_no_model(self, name: Name) -> None:
        if isinstance(name, Elsewhere):
            return
        with self._session:
            kind = self._store.queue(name).type
        if kind == "model":
            raise WrongQueueType(
                f"{name} is a model queue: open it, which makes a queue to use", reason=Reason.Q_TYPE_ERROR
            )

    def _make_room(self, queue: str = "", manager: str = HERE) -> bool:
        """At the limit of handles: closes the default handle used longest ago that nobody would miss; whether any.

        Args:
            queue, manager: whose default handle the call is on. If that is open the limit is another's, which what the
                call was given has reached: a stream, or a function.
        """
        own = self._queues.get(name_of(queue, manager))
        if own is not None and own.internals.number and not own.closed:
            return False
        idle = next((name for name, queue in self._queues.items() if queue.internals.is_idle), None)
        if idle is not None:
            self._close_default(idle)
        return idle is not None

    def _renew(self, queue: str, manager: str = HERE) -> bool:
        """The queue of a default handle was deleted: closes it; whether another queue has the name now.

        A handle inside a group is closed alone: the group is not silently begun again. If the handle has its queue the
        error is another's, of a stream or a function that the call was given: that has read or done something.
        """
        name = name_of(queue, manager)
        own = self._queues.get(name)
        if own is None or own.closed or self._has_queue(own):
            return False
        was_idle = own.internals.is_idle
        self._close_default(name)
        if was_idle:
            with contextlib.suppress(UnknownQueue):
                self._default(name)
                return True
        return False

    def _has_queue(self, handle: Queue) -> bool:
        """Whether the queue of an open handle is there still."""
        try:
            with self._session:
                if handle.internals.number:
                    self._store.check_handle(handle.internals.number)
                return handle.internals.number != 0
        except QueueDeleted:
            return False


def name_of(queue: str, manager: str) -> Name:
    """A queue, and the queue manager that has it, if one is named. Raises: ArgumentError 2058, it is not a name."""
    if isinstance(manager, str) and manager == HERE:
        return queue
    manager = check_queue_name(manager, argument="manager", reason=Reason.Q_MGR_NAME_ERROR)
    return Elsewhere(queue, manager) if isinstance(queue, str) else queue  # which is then refused as a name here is
