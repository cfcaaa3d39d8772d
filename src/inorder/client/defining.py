"""The part of a connection that defines, alters, inquires and deletes queues."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Set
from typing import TYPE_CHECKING, Any, TypeVar

from ..errors import ObjectExists, ObjectInUse, Reason, bad_argument
from ..model.attributes import (
    ManagerAttributes,
    ManagerKeywords,
    QueueAttributes,
    QueueKeywords,
    QueueStatus,
    QueueType,
    check_same,
    define_queue,
)
from ..model.options import check_switch
from ..model.selecting import Selector, inquired
from ..stores.seam.protocol import Store
from .session import Session

if TYPE_CHECKING:
    from typing_extensions import Unpack

T = TypeVar("T")


class Defining(ABC):
    """What `QueueManager` has of it."""

    _session: Session
    _store: Store

    def create_queue(self, name: str, *, exist_ok: bool = False, **attributes: Unpack[QueueKeywords]) -> None:
        """Defines a local queue. Attributes: see `inorder.model.attributes.QueueAttributes`.

        Args:
            exist_ok: a queue of this name and type that has the attributes given here is left as it is. What is not
                given may be otherwise: somebody may have altered it.

        Raises: ArgumentError, a bad name or attribute; ObjectExists 2100, with what differs where `exist_ok` is given.
        """
        self._define(name, "local", attributes, exist_ok=exist_ok)

    def create_alias(self, name: str, *, exist_ok: bool = False, **attributes: Unpack[QueueKeywords]) -> None:
        """Defines another name for a local or remote queue, `base_queue`, with its own defaults and inhibits."""
        self._define(name, "alias", attributes, exist_ok=exist_ok)

    def create_model(self, name: str, *, exist_ok: bool = False, **attributes: Unpack[QueueKeywords]) -> None:
        """Defines a model: opening it makes a dynamic queue with these attributes."""
        self._define(name, "model", attributes, exist_ok=exist_ok)

    def create_remote_queue(self, name: str, *, exist_ok: bool = False, **attributes: Unpack[QueueKeywords]) -> None:
        """Defines a name for the queue `remote_queue` of the queue manager `remote_manager` (N-2).

        What is put through it waits on the transmission queue. Without `remote_queue` it is an alias of the queue
        manager, for the calls that take `manager=`, and for replies.

        Raises: as `create_queue`; ArgumentError, it would lead to itself.
        """
        self._define(name, "remote", attributes, exist_ok=exist_ok)

    def _define(self, name: str, kind: QueueType, attributes: QueueKeywords, *, exist_ok: bool) -> None:
        check_switch("exist_ok", exist_ok)
        refused = {"name", "type"} & attributes.keys()
        if refused:
            raise bad_argument(
                "attribute",
                refused.pop(),
                "an attribute that is given by keyword; the call itself sets the type",
                Reason.SELECTOR_ERROR,
            )
        wanted = define_queue(name, kind, **attributes)
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

    def clear_queue(self, name: str) -> int:
        """Removes all messages of a local queue, locked ones too, as MQSC's CLEAR QLOCAL; returns how many.

        Of many messages some hundreds go at a time, each time in a transaction of its own, so that other calls come
        between. Others may then find what is not removed yet. What they have got or locked stays theirs, and what
        is put after the beginning stays on the queue. If the call is interrupted, the rest stays.

        Raises: ObjectInUse 2042, it is open, not counting idle handles of this connection's own calls by name;
        QueueNotEmpty 2055, it has messages in units of work; WrongQueueType 2043.
        """
        return self._unhindered(name, lambda: self._store.clear_queue(name))

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

    @abstractmethod
    def _close_idle(self, handles: Set[int]) -> bool: ...

    def queues(self) -> list[QueueAttributes]:
        """The attributes of all queues, by name."""
        with self._session:
            return self._store.queues()

    def attributes(self, name: str) -> QueueAttributes:
        """The attributes of one queue. Raises: UnknownQueue 2085 with the nearest names."""
        with self._session:
            return self._store.queue(name)

    def status(self, name: str) -> QueueStatus:
        """Depth and open counts of a queue, after discarding what has expired."""
        with self._session:
            return self._store.status(name)

    def depth(self, name: str) -> int:
        """How many messages the queue counts: uncommitted puts are in, messages got are out."""
        return self.status(name).current_depth

    def inquire(self, name: str, *selectors: Selector) -> dict[Any, Any]:
        """Attributes and status of a queue by name (MQINQ); all of them if none is named.

        Args:
            name: the queue.
            *selectors: our names (`max_depth`), MQ's (`"MaxQDepth"`), or MQ's numbers (15). The answer is under what
                was asked, and in MQ's values if it was asked in MQ's words: InhibitGet is 1 if gets are not allowed.

        A model or remote queue has no status; depth and counts of an alias are those of the queue that it names.

        Raises: ArgumentError 2067, an unknown selector; 2068, it has no status.
        """
        return inquired(self.attributes(name), lambda: self.status(name), selectors)

    def manager_attributes(self) -> ManagerAttributes:
        """The queue manager's own attributes."""
        with self._session:
            return self._store.manager()

    def alter_manager(self, **changes: Unpack[ManagerKeywords]) -> None:
        """Changes attributes of the queue manager, for example `max_uncommitted`."""
        with self._session:
            self._store.alter_manager(dict(changes))
