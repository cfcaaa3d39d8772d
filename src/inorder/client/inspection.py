"""`qm.inspect`: queues, messages, their holders and waiting readers, and what happens, as operators see them.

These calls need no handle. They do not take, lock or change messages.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from ..errors import bad_argument
from ..model.attributes import QueueStatus
from ..model.message import UniqueId
from ..model.options import EVERYTHING, Match, check_instance, check_whole
from ..model.parameters import ID_LENGTH, WHOLE_MAX, Choice
from ..rules.gaps import Gaps
from ..rules.selectors import selector_of
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
from .by_name import by_name
from .events import Hook, HookName, Registration
from .namespace import Namespace

PAGE_MESSAGES, PAGE_BYTES = 1000, 8 * 2**20  # of a listing: what is read at once
PAGE_ACTS = 500
PREVIEW_MAX = 104_857_600


class Inspect(Namespace):
    """Looks at a queue manager, `qm.inspect`; they take, lock and change nothing."""

    # --- the connection

    @property
    def path(self) -> str:
        """Where the store is: a file, a server without its password, or ":memory:"."""
        return self._session.services.store.path

    @property
    def program(self) -> str:
        """The name that is recorded with each message that this connection puts."""
        return self._manager._program.name

    @property
    def has_unit(self) -> bool:
        """Whether a unit of work is open that has put or got something."""
        return not self._session.closed and self._store.has_unit(self._session.owner)

    # --- what lies on a queue

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
        """Every message on a queue, whatever its state and its holder; what has expired is passed over.

        It is read in pages, each of them one moment: what changes between two may be missed, or be shown twice.

        Args:
            queue: a local queue or an alias.
            order: "physical", by place; "logical", groups and messages in segments together, where their first message
                stands, and at last those of which the first message is not there. In both, what has no place yet comes
                last, as it came.
            match: which messages are shown.
            unit: only what this unit holds.
            preview: how many bytes of each body are read, 0 to 104,857,600.
            most: how many messages at most; None: all.
            after: the `position` of a message in a listing in the same order: it goes on behind it.
            numbered_after: only what was given a higher number by the queue; in physical order. `QueueView.numbered` is
                the highest so far, so that one can follow what arrives.

        Raises: ArgumentError; UnknownQueue 2085, WrongQueueType 2045.

        Rules: B-5.
        """
        Choice(("physical", "logical")).check("order", order)
        check_instance("match", match, Match, "a Match")
        selector_of(match)  # which says what is wrong in it
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
        with self._session:
            return self._store.look(request)

    def _pages(self, page: Sequence[MessageView], request: LookRequest, room: int) -> Iterator[MessageView]:
        while page:
            yield from page
            room -= len(page)
            if len(page) < request.most or not room:
                return
            page = self._page(replace(request, after=page[-1].position, most=min(request.most, room)))

    def gaps(self, queue: str, group_id: bytes) -> Gaps:
        """What is missing of a group, or of a message in segments, whatever the state of what is there.

        Args:
            group_id: at most 24 bytes, not all NUL.

        Raises: ArgumentError; as `look`.
        """
        if not isinstance(group_id, bytes) or len(group_id) > ID_LENGTH or not group_id.strip(b"\0"):
            raise bad_argument("group_id", group_id, f"bytes, 1 to {ID_LENGTH} of them and not all NUL")
        with self._session:
            return self._store.gaps(queue, group_id.ljust(ID_LENGTH, b"\0"))

    def overview(self, queue: str | None = None) -> list[QueueView]:
        """All local queues by name, at one moment: depth, what is held, how old. Cheap at any depth; writes nothing.

        Args:
            queue: the name of a local queue: it alone, or nothing if there is none or nothing has used it yet.
        """
        if queue is not None and not isinstance(queue, str):
            raise bad_argument("queue", queue, "the name of a queue, or None for all")
        with self._session:
            return self._store.overview(queue)

    def dropped(self) -> list[Dropped]:
        """Reports and trigger messages that had to be dropped, and why, by the queue that they were about.

        Neither their target nor the dead-letter queue took them. The call writes nothing.
        """
        with self._session:
            return self._store.dropped()

    def status(self, name: str) -> QueueStatus:
        """Depth and open counts of a queue, after discarding what has expired."""
        return self._manager._status(name)

    @by_name
    def unique_ids(self, queue: str, *, confirm_id: int = 0, lock_id: int = 0) -> list[UniqueId]:
        """The unique ids of what stands under a confirm id or a lock id; see `Queue.unique_ids`."""
        return self._manager._default(queue).unique_ids(confirm_id=confirm_id, lock_id=lock_id)

    # --- who holds, and who waits

    def order_view(self, queue: str) -> OrderView:
        """What is pending on a queue, since when and by whom, and how many strict readers wait."""
        with self._session:
            return self._store.order_view(queue)

    def units(self) -> list[Unit]:
        """All unsettled units of this queue manager, oldest first."""
        with self._session:
            return self._store.units()

    def waits(self) -> list[Wait]:
        """The calls that wait for messages, and what the strict ones wait for."""
        with self._session:
            return self._store.waits()

    def locks(self) -> list[LockView]:
        """What locks messages: browse locks of handles, and lock ids; the oldest first."""
        with self._session:
            return self._store.locks()

    def connections(self) -> list[ConnectionView]:
        """Who has this queue manager open, and which queues for what: a program, a process, its handles.

        Connections are in the order in which they were made. Those of a process that has died are ended before, and
        not shown.
        """
        with self._session:
            return self._store.list_connections()

    # --- what happens

    def hook(self, name: HookName, called: Hook) -> Registration:
        """Calls `called(queue, message)` for what calls of this process do, on any queue.

        "put" is reported after each put, "visible" when everyone can see a message, "expired" when one is
        discarded by a call of this process, "duplicate" of puts refused as duplicates. All hooks are called on one
        thread of their own, in the order of what happened; what they raise is logged.

        Rules: A-36.
        """
        with self._session:
            return self._session.services.hub.hook(name, called)

    def observe(self, observer: StoreObserver) -> Observation:
        """Calls `observer` with a `StoreEvent` for each call on the store, of all connections of this process to it.

        It is called on the thread of the call, when that is over and before the caller has the answer; so it should be
        quick. What it raises is logged. Calls that it makes itself, on another connection, report nothing. It ends with
        `Observation.cancel`, or with the last connection. docs/reference/events.md lists the events.

        Raises: ArgumentError, `observer` cannot be called.
        """
        with self._session:
            return self._session.services.telemetry.observe(observer)


if not TYPE_CHECKING:  # a type checker would take every name for one that is there
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
