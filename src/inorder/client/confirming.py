"""Confirmed calls of an open queue: they confirm puts and gets, lock messages, and undo confirm ids."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Literal, get_args

from ..errors import OptionsError, Reason, bad_argument
from ..model.message import UniqueId
from ..model.options import CALLERS_ID, EVERYTHING, ID_OR_NONE, Match, OpenOptions, UniqueIds, check_whole
from ..model.parameters import Choice, Seconds
from ..rules.leases import LOCK_SECONDS_MAX
from ..rules.lifecycle import Event
from ..rules.selectors import selector_of
from ..stores.seam.protocol import Store
from ..stores.seam.records import Locked, LockRequest, OneMessage
from .session import Session

Use = Literal["input", "output", "browse"]
USES: Mapping[Use, tuple[OpenOptions, Reason]] = {  # the options to open with, and the reason without them
    "input": (OpenOptions(input="as_queue"), Reason.NOT_OPEN_FOR_INPUT),
    "output": (OpenOptions(output=True), Reason.NOT_OPEN_FOR_OUTPUT),
    "browse": (OpenOptions(browse=True), Reason.NOT_OPEN_FOR_BROWSE),
}

USE = Choice(get_args(Use))
LEASE = Seconds(0, LOCK_SECONDS_MAX, above=True, also={"None for no end": None})


class ConfirmedCalls(ABC):
    """The calls of `Queue` that use confirm ids, lock ids and unique ids; each queue has its own.

    They act at once, never in a unit of work. The messages that they hold stay held across a restart.

    Rules: A-15.
    """

    _session: Session
    _store: Store
    _handle: int

    @abstractmethod
    def _need(self, use: Use) -> None: ...

    @abstractmethod
    def _need_nothing(self) -> None: ...

    def confirm_put(self, uid: UniqueId, *, confirm_id: int = 0) -> Reason | None:
        """Makes a message that was put under a confirm id visible; on an order=commit queue it gets its place now.

        Args:
            confirm_id: if given, it must be the put's.

        Returns: the warning NOT_FOUND if the queue does not have the message; None otherwise, also if it was already
        visible.

        Raises: ConfirmIdMismatch; WrongState, a unit of work holds it. It acts at once, never in a unit of work.

        Rules: A-26, A-11, A-23.
        """
        return self._one_message(Event.CONFIRM_PUT, uid, confirm_id=confirm_id)

    def confirm_get(self, uid: UniqueId, *, confirm_id: int = 0) -> Reason | None:
        """Removes for good a message that was got under a confirm id.

        Returns: None, or the warning NOT_FOUND if the queue no longer has the message: it was confirmed before.

        Raises: WrongState, it was not got, or got in a unit of work; ConfirmIdMismatch. It acts at once.

        Rules: A-25.
        """
        return self._one_message(Event.CONFIRM_GET, uid, confirm_id=confirm_id)

    def browse_and_lock(
        self,
        match: Match = EVERYTHING,
        *,
        confirm_id: int = 0,
        most: int | None = None,
        lease: float | None = None,
    ) -> Locked:
        """Copies the available messages that match, and locks them all under one new lock id.

        Get, delete and unlock then need that lock id. Messages that arrive later are not locked. A lock stays, even
        across a restart, until it is used, released, or undone by `confirm_id`. With a lease the queue manager releases
        the lock when the lease ends. The lock id is then unknown, and a message that was got under it and returns is
        unlocked.

        Args:
            match: selects the messages.
            confirm_id: for `undo`; 0: none.
            most: the largest number of messages, from 1; the first in queue order are taken. None: all.
            lease: seconds from now, above 0, at most 31,536,000 (a year); None: no end.

        Returns: the messages in queue order, and the lock id. On a store elsewhere one call locks at most 65,536
            messages, and no more after 64 MiB of bodies; call it again for the rest.

        Raises: ArgumentError; GetInhibited 2016; NotOpenFor 2037; QueueDeleted 2052.

        It acts at once, never in a unit of work.

        Rules: A-12, A-13, A-19.
        """
        if not isinstance(match, Match):
            raise bad_argument("match", match, "a Match", Reason.MATCH_OPTIONS_ERROR)
        selector_of(match)  # raises if the selector is wrong
        ID_OR_NONE.check("confirm_id", confirm_id)
        if most is not None:
            check_whole("most", most, 1)
        LEASE.check("lease", lease)
        with self._session:
            self._need("input")
            return self._store.browse_and_lock(
                LockRequest(handle=self._handle, match=match, confirm_id=confirm_id, most=most, lease=lease)
            )

    def unique_ids(self, *, confirm_id: int = 0, lock_id: int = 0) -> list[UniqueId]:
        """Returns the unique ids of the messages under a confirm id or a lock id; give one of the two.

        A program that knows only that id, for example after a crash, can then confirm, delete or unlock each message.

        Args:
            confirm_id: all messages put, got or locked under it: those that `undo` would act on.
            lock_id: all messages locked under it, and those got under it and not yet settled.

        Returns: the ids in queue order. Messages without a place yet come last, in the order in which each process
        put them.

        Raises: NotFound, no message is under this id, or its lease is over; OptionsError 2046, both ids are given, or
        none; ArgumentError 2046.

        The call changes nothing. It includes messages that others hold, also in units of work.

        Rules: A-9, A-12, A-15, B-5.
        """
        ID_OR_NONE.check("confirm_id", confirm_id)
        ID_OR_NONE.check("lock_id", lock_id)
        if bool(confirm_id) == bool(lock_id):
            raise OptionsError("exactly one of confirm_id and lock_id must be given")
        with self._session:
            self._need_nothing()
            return self._store.unique_ids(self._handle, confirm_id, lock_id)

    def delete(self, uid: UniqueId, *, lock_id: int = 0) -> None:
        """Removes a message that is unlocked or locked under `lock_id`. Raises: NotFound, WrongState, LockMismatch."""
        self._one_message(Event.DELETE, uid, lock_id=lock_id)

    def undo(self, confirm_id: int) -> int:
        """Undoes all puts, gets and locks on this queue under a confirm id; returns the number of messages.

        Messages put under it are removed. Messages got return to their places, and their back out counts rise by
        one. Locked messages are unlocked.

        Raises: NotFound, no message is held under it.

        Rules: A-15.
        """
        CALLERS_ID.check("confirm_id", confirm_id)
        with self._session:
            self._need_nothing()
            return self._store.undo(self._handle, confirm_id)

    def _one_message(self, event: Event, uid: object, *, lock_id: int = 0, confirm_id: int = 0) -> Reason | None:
        unique = UniqueIds().check("uid", uid)
        ID_OR_NONE.check("lock_id", lock_id)
        ID_OR_NONE.check("confirm_id", confirm_id)
        with self._session:
            if event is Event.CONFIRM_PUT:
                self._need("output")
            elif event is Event.UNLOCK:
                self._need_nothing()
            else:
                self._need("input")
            return self._store.one_message(
                OneMessage(handle=self._handle, event=event, uid=unique, lock_id=lock_id, confirm_id=confirm_id)
            )


__all__ = ["ConfirmedCalls", "Locked"]
