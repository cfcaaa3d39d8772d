"""The part of a connection that defines, alters, inquires and deletes queues."""

from __future__ import annotations

from collections.abc import Callable, Set
from typing import TYPE_CHECKING, Any, TypeVar

from ..errors import ObjectExists, ObjectInUse, SynchronousQueue
from ..model.attributes import (
    QueueAttributes,
    QueueKeywords,
    QueueStatus,
    QueueType,
    check_same,
    define_queue,
)
from ..model.options import check_switch
from ..model.selecting import Selector, inquired
from .by_name import CallsByName, by_name
from .owners import QueueElsewhere

if TYPE_CHECKING:
    from typing_extensions import Unpack

T = TypeVar("T")


class Defining(CallsByName):
    """The calls of `QueueManager` that define queues."""

    def create_queue(
        self, name: str, *, type: QueueType = "local", exist_ok: bool = False, **attributes: Unpack[QueueKeywords]
    ) -> None:
        """Creates a queue. Attributes: see `inorder.model.attributes.QueueAttributes`.

        Args:
            type: "local"; "alias", another name for the local or remote queue `base_queue`, with its own defaults and
                inhibits; "model": opening it creates a dynamic queue with these attributes; "remote", a name for the
                queue `remote_queue` of the queue manager `remote_manager`. Messages put to a remote queue wait on the
                transmission queue; with `mode="synchronous"` each call is made at that queue manager, which the
                named `connection` reaches (K-2). Without `remote_queue` it is an alias of the queue manager, for calls
                that take `manager=` and for replies (N-2).
            exist_ok: accepts an existing queue of this name and type if it has the attributes given here; the
                other attributes may differ.

        Raises: ArgumentError, a bad name, type or attribute, or a remote queue that would lead to itself; ObjectExists
        2100, with the differences if `exist_ok` is given.
        """
        check_switch("exist_ok", exist_ok)
        wanted = define_queue(name, type, **attributes)
        with self._session:
            try:
                self._store.create_queue(wanted)
            except ObjectExists:
                if not exist_ok:
                    raise
                check_same(self._store.queue(name), wanted, attributes.keys())

    def alter_queue(self, name: str, **changes: Unpack[QueueKeywords]) -> None:
        """Changes attributes of a queue; its messages keep their places.

        Raises: UnknownQueue 2085; ArgumentError; ObjectInUse 2042, a new `order` while a put is uncommitted.

        Rules: R4.10.
        """
        with self._session:
            self._store.alter_queue(name, "alter", dict(changes))

    def delete_queue(self, name: str, *, purge: bool = False) -> None:
        """Deletes a queue; with `purge` also its messages.

        Many messages are deleted a few hundred at a time, each step in its own transaction, so that other calls can run
        in between. If another program opens the queue meanwhile, the call fails and the remaining messages stay.

        Raises: ObjectInUse 2042, the queue is open (this connection's idle default handles do not count);
        QueueNotEmpty 2055, it has messages, or some in units of work.
        """
        check_switch("purge", purge)
        self._unhindered(lambda: self._store.delete_queue(name, purge=purge))

    def _unhindered(self, call: Callable[[], T]) -> T:
        """Makes a call on a queue that must not be open; first closes this connection's idle default handles of it."""
        try:
            with self._session:
                return call()
        except ObjectInUse as in_use:
            handles = in_use.data.get("handles")
            if not (isinstance(handles, Set) and self._close_idle(handles)):
                raise
        with self._session:
            return call()

    def queues(self) -> list[QueueAttributes]:
        """Returns the attributes of all queues, sorted by name."""
        with self._session:
            return self._store.queues()

    def attributes(self, name: str) -> QueueAttributes:
        """Returns the attributes of a queue. Raises: UnknownQueue 2085, with similar names."""
        with self._session:
            return self._store.queue(name)

    def depth(self, name: str) -> int:
        """Returns the depth of a queue: uncommitted puts count, messages got do not."""
        return self._status(name).current_depth

    def _status(self, name: str) -> QueueStatus:
        if not isinstance(self._queues.get(name) if isinstance(name, str) else None, QueueElsewhere):
            with self._session:
                try:
                    return self._store.status(name)
                except SynchronousQueue:  # its owner has the answer
                    pass
        return self._status_there(name)

    @by_name
    def _status_there(self, queue: str) -> QueueStatus:
        return self._default(queue).status()

    def inquire(self, name: str, *selectors: Selector) -> dict[Any, Any]:
        """Returns the selected attributes and status values of a queue, or all of them (MQINQ).

        Args:
            name: the queue.
            *selectors: our names (`max_depth`), MQ's names (`"MaxQDepth"`), or MQ's numbers (15). The result has the
                selectors as keys; MQ's selectors give MQ's values: InhibitGet is 1 if gets are not allowed.

        A model or remote queue has no status; an alias has the depth and counts of its base queue, and a synchronous
        remote queue those at its owner.

        Raises: ArgumentError 2067, an unknown selector; 2068, the queue has no status.
        """
        return inquired(self.attributes(name), lambda: self._status(name), selectors)


def local_name(qm: Defining, name: str) -> str:
    """The base queue of an alias, or the name of any other queue. Raises: UnknownQueue 2085."""
    found = qm.attributes(name)
    return found.base_queue if found.type == "alias" else found.name


def local_attributes(qm: Defining, name: str) -> QueueAttributes:
    """The attributes of a queue, or of the queue that an alias names. Raises: UnknownQueue 2085."""
    found = qm.attributes(name)
    return qm.attributes(found.base_queue) if found.type == "alias" else found
