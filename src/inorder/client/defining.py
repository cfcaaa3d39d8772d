"""The part of a connection that defines, alters, inquires and deletes queues."""

from __future__ import annotations

from collections.abc import Callable, Set
from typing import TYPE_CHECKING, Any, TypeVar

from ..errors import ObjectExists, ObjectInUse
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
from .by_name import CallsByName

if TYPE_CHECKING:
    from typing_extensions import Unpack

T = TypeVar("T")


class Defining(CallsByName):
    """What `QueueManager` has of it."""

    def create_queue(
        self, name: str, *, type: QueueType = "local", exist_ok: bool = False, **attributes: Unpack[QueueKeywords]
    ) -> None:
        """Defines a queue. Attributes: see `inorder.model.attributes.QueueAttributes`.

        Args:
            type: "local"; "alias", another name for the local or remote queue `base_queue`, with its own defaults and
                inhibits; "model": opening it makes a dynamic queue with these attributes; "remote", a name for the
                queue `remote_queue` of the queue manager `remote_manager`. What is put through that waits on the
                transmission queue. Without `remote_queue` it is an alias of the queue manager, for the calls that take
                `manager=`, and for replies (N-2).
            exist_ok: a queue of this name and type that has the attributes given here is left as it is. What is not
                given may be otherwise: somebody may have altered it.

        Raises: ArgumentError, a bad name, type or attribute, or a remote queue that would lead to itself; ObjectExists
        2100, with what differs where `exist_ok` is given.
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
        """Changes attributes; what is on the queue keeps its place.

        Raises: UnknownQueue 2085; ArgumentError; ObjectInUse 2042, a new `order` while a put is not committed.

        Rules: R4.10.
        """
        with self._session:
            self._store.alter_queue(name, "alter", dict(changes))

    def delete_queue(self, name: str, *, purge: bool = False) -> None:
        """Deletes a queue; `purge` also its messages.

        Of many messages some hundreds go at a time, each time in a transaction of its own, so that other calls come
        between. If another program opens the queue meanwhile, the call fails, and the queue stays with the rest.

        Raises: ObjectInUse 2042, it is open, not counting idle handles of this connection's own calls by name;
        QueueNotEmpty 2055, it has messages, or some in units of work.
        """
        check_switch("purge", purge)
        self._unhindered(name, lambda: self._store.delete_queue(name, purge=purge))

    def _unhindered(self, name: str, call: Callable[[], T]) -> T:
        """A call on a queue that must not be open; what this connection's calls by name left open is closed for it."""
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
        """The attributes of all queues, by name."""
        with self._session:
            return self._store.queues()

    def attributes(self, name: str) -> QueueAttributes:
        """The attributes of one queue. Raises: UnknownQueue 2085 with the nearest names."""
        with self._session:
            return self._store.queue(name)

    def depth(self, name: str) -> int:
        """How many messages the queue counts: uncommitted puts are in, messages got are out."""
        return self._status(name).current_depth

    def _status(self, name: str) -> QueueStatus:
        with self._session:
            return self._store.status(name)

    def inquire(self, name: str, *selectors: Selector) -> dict[Any, Any]:
        """Attributes and status of a queue by name (MQINQ); all of them if none is named.

        Args:
            name: the queue.
            *selectors: our names (`max_depth`), MQ's (`"MaxQDepth"`), or MQ's numbers (15). The answer is under what
                was asked, and in MQ's values if it was asked in MQ's words: InhibitGet is 1 if gets are not allowed.

        A model or remote queue has no status; depth and counts of an alias are those of the queue that it names.

        Raises: ArgumentError 2067, an unknown selector; 2068, it has no status.
        """
        return inquired(self.attributes(name), lambda: self._status(name), selectors)
