"""Calls for operators: list messages, their holders and waiting readers, and check the store.

These calls need no handle. They do not take, lock or change messages, except for those whose names say so.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from ..errors import LeaseOver, UnitNotFound, bad_argument, written
from ..model.options import EVERYTHING, Match, check_instance, check_switch, check_whole, is_path
from ..model.parameters import ID_LENGTH, WHOLE_MAX, Choice, is_storable
from ..rules.gaps import Gaps
from ..rules.selectors import selector_of
from ..stores.seam.protocol import Store
from ..stores.seam.records import Outcome
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
from . import housekeeping
from .session import Session

Progress = Callable[[int, int], object]  # done, and all there is

PAGE_MESSAGES, PAGE_BYTES = 1000, 8 * 2**20  # of a listing: what is read at once
PREVIEW_MAX = 104_857_600


class OperatorCalls:
    """What a queue manager tells its operator, and does for it; part of `QueueManager`."""

    _session: Session
    _store: Store

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

    # --- who holds, and who waits

    def order_view(self, queue: str) -> OrderView:
        """What is pending on a queue, since when and by whom, and how many strict readers wait."""
        with self._session:
            return self._store.order_view(queue)

    def settle(self, name: str, outcome: Outcome) -> None:
        """Settles a prepared unit: outcome is "commit" or "back_out". Raises: UnitNotFound."""
        Choice(("commit", "back_out")).check("outcome", outcome)
        if not isinstance(name, str) or not is_storable(name):
            raise UnitNotFound(f"no unit is named {written(name)}", unit=name)
        with self._session:
            self._store.settle_prepared(name, outcome)

    def end_lease(self, name: str) -> None:
        """Backs out a lease before its deadline; it is named as in `units()`. Raises: LeaseOver 9060, it is over."""
        if not isinstance(name, str) or not is_storable(name):
            raise LeaseOver(f"there is no lease {written(name)}", lease=name)
        with self._session:
            self._store.end_lease(name)

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

    # --- upkeep

    def check(self, progress: Progress | None = None) -> list[str]:
        """Everything that is wrong with the store, in words; empty: it is sound.

        It reads everything, each part on one state of it, but for the bodies, which are verified some at a time. Others
        may work between two parts.

        Args:
            progress: called with the parts that are done and all there are. What it raises ends the check.

        What cannot be read for the damage in it is something that is wrong, and no error.
        """
        _callable("progress", progress)
        with self._session:
            found, parts = self._store.check(None)
            for part in range(parts):
                if progress is not None:
                    progress(part, parts)
                found += self._store.check(part)[0]
        if progress is not None:
            progress(parts, parts)
        return found

    def discard_expired(self, limit: int = housekeeping.STEP_MESSAGES) -> int:
        """Discards expired messages on all queues, up to `limit`; how many it was."""
        check_whole("limit", limit, 1)
        with self._session:
            return housekeeping.tidy(self._store, limit)

    def backup(self, path: str | os.PathLike[str], *, replace: bool = False, progress: Progress | None = None) -> None:
        """Copies the queue manager to another file as it is at one instant, while all go on using it.

        The copy is a store of its own, which `inorder.connect` opens. What was committed before the call is in it.
        Units of work that are open stay out of it: they are backed out when the copy is first opened.

        Args:
            path: of the copy. It appears there when it is whole and on disk.
            replace: a file that is there is replaced; without it, it is refused.
            progress: called with the bytes copied and the bytes in all, for each few MiB and at the end. What it
                raises ends the backup.

        Raises: ArgumentError, a file is there, or it is the store itself; CallerError 2298, the queue manager is in
        memory; StoreError, the path cannot be written, or somebody has it open; StoreFull 2192.
        """
        if not isinstance(path, str | os.PathLike) or not is_path(path):
            raise bad_argument("path", path, "the path of a file, in UTF-8")
        check_switch("replace", replace)
        _callable("progress", progress)
        with self._session:
            self._session.services.store.backup(path, replace=replace, progress=progress)


def _callable(argument: str, value: object) -> None:
    if value is not None and not callable(value):
        raise bad_argument(argument, value, "a function of two numbers")


if not TYPE_CHECKING:  # a type checker would take every name for one that is there
    __getattr__ = renamed(__name__, Sight="MessageView")

__all__ = [
    "ConnectionView",
    "Dropped",
    "Gaps",
    "Holder",
    "LockView",
    "MessageView",
    "Opening",
    "OperatorCalls",
    "OrderView",
    "Position",
    "QueueView",
    "Unit",
    "Wait",
]
