"""`qm.inspect`: queues, messages, their holders, waiting readers and events, for operators.

These calls need no handle. They do not take, lock or change messages.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

from ..errors import NotAuthorized, SynchronousQueue, UnknownQueue, bad_argument
from ..model.attributes import QueueStatus
from ..model.message import UniqueId
from ..model.options import EVERYTHING, Match, check_instance, check_whole
from ..model.parameters import ID_LENGTH, WHOLE_MAX, Choice
from ..rules.gaps import Gaps
from ..rules.selectors import selector_of
from ..stores.seam.protocol import Store
from ..stores.seam.telemetry import Observation, StoreObserver
from ..stores.seam.views import (
    ConnectionView,
    Dropped,
    Holder,
    ListingOrder,
    LockView,
    LookRequest,
    MessageView,
    Opening,
    OrderView,
    Position,
    QueueView,
    Unit,
    Wait,
)
from ..support.old_paths import renamed
from .by_name import FOR_BROWSE, by_name
from .events import Hook, HookName, Registration
from .namespace import Namespace

T = TypeVar("T")

PAGE_MESSAGES, PAGE_BYTES = 1000, 8 * 2**20  # limits of one page of a listing
PREVIEW_MAX = 104_857_600


class Inspect(Namespace):
    """Inspection of a queue manager, `qm.inspect`; its calls take, lock and change no message."""

    # --- the connection

    @property
    def path(self) -> str:
        """The store's location: a file, a URL without its password, or ":memory:"."""
        return self._session.services.store.path

    @property
    def program(self) -> str:
        """The name that is recorded with each message that this connection puts."""
        return self._manager._program.name

    @property
    def has_unit(self) -> bool:
        """Whether a unit of work is open that has put or got something."""
        return not self._session.closed and self._session.has_unit

    # --- messages on a queue

    def look(
        self,
        queue: str,
        *,
        order: ListingOrder = "physical",
        match: Match = EVERYTHING,
        unit: Unit | None = None,
        preview: int = 64,
        most: int | None = None,
        after: Position | None = None,
        numbered_after: int | None = None,
    ) -> Iterator[MessageView]:
        """Lists every unexpired message on a queue, in any state and with any holder.

        The listing is read in pages, each a snapshot. It may miss or repeat messages that change between two pages.

        Args:
            queue: a local queue, an alias, or a synchronous remote queue, whose owner is asked.
            order: "physical", by place; "logical", groups and messages in segments together, at the place of their
                first message; those without their first message come last. In both orders, messages without a place
                yet come at the end, in order of arrival.
            match: which messages to list.
            unit: only messages that this unit holds.
            preview: how many bytes of each body to read, 0 to 104,857,600.
            most: the largest number of messages; None: all.
            after: the `position` of a message in a listing in the same order; this listing continues after it.
            numbered_after: only messages to which the queue gave a higher number; in physical order.
                `QueueView.numbered` is the highest so far, so a program can follow arriving messages.

        Raises: ArgumentError; UnknownQueue 2085, WrongQueueType 2045.

        Rules: B-5.
        """
        Choice(("physical", "logical")).check("order", order)
        check_instance("match", match, Match, "a Match")
        selector_of(match)  # raises if the selector is wrong
        check_whole("preview", preview, 0, PREVIEW_MAX)
        if unit is not None:
            check_instance("unit", unit, Unit, "a Unit from units()")
        if most is not None:
            check_whole("most", most, 0)
        if after is not None:
            check_instance("after", after, Position, "the position of a message from look()")
        if numbered_after is not None:
            check_whole("numbered_after", numbered_after, 0)
            if order != "physical":
                raise bad_argument("order", order, "physical if numbered_after is given")
        size = max(1, min(PAGE_MESSAGES, PAGE_BYTES // max(1, preview)))
        request = LookRequest(
            queue=queue,
            order=order,
            after=after,
            most=size,
            preview=preview,
            match=match,
            unit=unit,
            numbered_after=numbered_after,
        )
        room = WHOLE_MAX if most is None else most
        return self._pages(self._page(replace(request, most=min(size, room))), request, room)

    def _page(self, request: LookRequest) -> Sequence[MessageView]:
        return self._asked(request.queue, lambda store, name: store.look(replace(request, queue=name)))

    def _asked(self, queue: str, ask: Callable[[Store, str], T]) -> T:
        """Asks the store about a queue; for a synchronous remote queue the store of its owner."""
        try:
            with self._session:
                return ask(self._store, queue)
        except SynchronousQueue:
            if self._session.stays_here:
                raise
        return self._asked_there(queue, ask)

    def _asked_there(self, queue: str, ask: Callable[[Store, str], T]) -> T:
        """Asks the owner of a queue. Raises: as `QueueManager.open`."""
        with self._manager._open(queue, FOR_BROWSE) as there, there.internals.session:
            store, _ = there.internals.opened_for("browse")
            return ask(store, there.local_name)

    def _pages(self, page: Sequence[MessageView], request: LookRequest, room: int) -> Iterator[MessageView]:
        while page:
            yield from page
            room -= len(page)
            if len(page) < request.most or not room:
                return
            page = self._page(replace(request, after=page[-1].position, most=min(request.most, room)))

    def gaps(self, queue: str, group_id: bytes) -> Gaps:
        """Returns the missing parts of a group or of a message in segments; parts in any state count as present.

        Args:
            group_id: at most 24 bytes, not all NUL.

        Raises: ArgumentError; as `look`.
        """
        if not isinstance(group_id, bytes) or len(group_id) > ID_LENGTH or not group_id.strip(b"\0"):
            raise bad_argument("group_id", group_id, f"bytes (1 to {ID_LENGTH}), not all NUL")
        return self._asked(queue, lambda store, name: store.gaps(name, group_id.ljust(ID_LENGTH, b"\0")))

    def overview(self, queue: str | None = None) -> list[QueueView]:
        """Returns depth, held messages and age of all local queues, in one snapshot, sorted by name.

        It is cheap at any depth and writes nothing.

        Args:
            queue: only this local queue; the list is empty if it does not exist or was never used. For a synchronous
                remote queue the owner answers.
        """
        if queue is not None and not isinstance(queue, str):
            raise bad_argument("queue", queue, "the name of a queue, or None for all")
        with self._session:
            found = self._store.overview(queue)
            if found or queue is None or not self._is_elsewhere(queue):
                return found
        return self._asked_there(queue, lambda store, name: store.overview(name))

    def _is_elsewhere(self, queue: str) -> bool:
        """Whether it is a synchronous remote queue whose owner may be asked."""
        with contextlib.suppress(UnknownQueue, NotAuthorized):
            return not self._session.stays_here and self._store.queue(queue).mode == "synchronous"
        return False

    def dropped(self) -> list[Dropped]:
        """Returns the dropped reports and trigger messages with the reasons, by the queue that they were about.

        Neither their destination nor the dead-letter queue accepted them. The call writes nothing.
        """
        with self._session:
            return self._store.dropped()

    def status(self, name: str) -> QueueStatus:
        """Returns depth and open counts of a queue, after discarding expired messages."""
        return self._manager._status(name)

    @by_name
    def unique_ids(self, queue: str, *, confirm_id: int = 0, lock_id: int = 0) -> list[UniqueId]:
        """Returns the unique ids of the messages under a confirm id or lock id; see `Queue.unique_ids`."""
        return self._manager._default(queue).unique_ids(confirm_id=confirm_id, lock_id=lock_id)

    # --- holders and waits

    def order_view(self, queue: str) -> OrderView:
        """Returns the pending messages of a queue with ages and holders, and the number of waiting strict readers."""
        return self._asked(queue, lambda store, name: store.order_view(name))

    def units(self) -> list[Unit]:
        """Returns all unsettled units of this queue manager, oldest first."""
        with self._session:
            return self._store.units()

    def waits(self) -> list[Wait]:
        """Returns the calls that wait for messages; for strict ones also the message that they wait for."""
        with self._session:
            return self._store.waits()

    def locks(self) -> list[LockView]:
        """Returns the browse locks of handles and the lock ids, oldest first."""
        with self._session:
            return self._store.locks()

    def connections(self) -> list[ConnectionView]:
        """Returns the connections to this queue manager: their programs, processes, and open handles.

        Connections are in the order in which they were made. Connections of dead processes are ended first and not
        listed.
        """
        with self._session:
            return self._store.list_connections()

    # --- events

    def hook(self, name: HookName, called: Hook) -> Registration:
        """Calls `called(queue, message)` for events of this process on any queue.

        "put" is reported after each put, "visible" when everyone can see a message, "expired" when a call of this
        process discards a message, "duplicate" when a put is refused as a duplicate. One separate thread calls all
        hooks, in the order of the events; it logs their exceptions.

        Raises: ArgumentError. CallerError 2298, the store is elsewhere: its server has the events; use `listen`.

        Rules: A-36.
        """
        with self._session:
            return self._session.services.hub.hook(name, called)

    def observe(self, observer: StoreObserver) -> Observation:
        """Calls `observer` with a `StoreEvent` for each call on the store by any connection of this process.

        The observer runs on the thread of the call, after the call and before its return, so it should be quick. Its
        exceptions are logged. Calls that it makes on another connection are not reported. The observation ends with
        `Observation.cancel`, or with the last connection. docs/reference/events.md lists the events. Of a store
        elsewhere it gets the calls of this connection; waits, expiry and dead connections are the server's.

        Raises: ArgumentError, `observer` cannot be called.
        """
        with self._session:
            return self._session.services.telemetry.observe(observer)


if not TYPE_CHECKING:  # otherwise a type checker would accept any name
    __getattr__ = renamed(__name__, Sight="MessageView")

__all__ = [
    "ConnectionView",
    "Dropped",
    "Gaps",
    "Holder",
    "Inspect",
    "LockView",
    "MessageView",
    "Opening",
    "OrderView",
    "Position",
    "QueueView",
    "Unit",
    "Wait",
]
