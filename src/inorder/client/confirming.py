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
USES: Mapping[Use, tuple[OpenOptions, Reason]] = {  # what a handle must be open for, and the reason if it is not
    "input": (OpenOptions(input="as_queue"), Reason.NOT_OPEN_FOR_INPUT),
    "output": (OpenOptions(output=True), Reason.NOT_OPEN_FOR_OUTPUT),
    "browse": (OpenOptions(browse=True), Reason.NOT_OPEN_FOR_BROWSE),
}

USE = Choice(get_args(Use))
LEASE = Seconds(0, LOCK_SECONDS_MAX, above=True, also={"None for no end": None})


def check_use(use: object) -> None:
    """What a handle is to be open for."""
    USE.check("use", use)


class ConfirmedCalls(ABC):
    """The calls of `Queue` about confirm ids, lock ids and unique ids, which live per queue.

    They act at once, never in a unit of work, and what they hold survives a restart.

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
        """Makes a message that was put under a confirm id visible; on an order=commit queue it is placed now.

        Args:
            confirm_id: if given, it must be the one of the put.

        Returns: the warning NOT_FOUND if the message is not there; None also if it is visible already.

        Raises: ConfirmIdMismatch; WrongState, a unit of work holds it. It acts at once, never in a unit of work.

        Rules: A-26, A-11, A-23.
        """
        return self._one_message(Event.CONFIRM_PUT, uid, confirm_id=confirm_id)

    def confirm_get(self, uid: UniqueId, *, confirm_id: int = 0) -> Reason | None:
        """Removes for good a message that was got under a confirm id.

        Returns: the warning NOT_FOUND if the message is not there: it was confirmed before.

        Raises: WrongState, it was not got, or in a unit of work; ConfirmIdMismatch. It acts at once.

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
        """Copies the available messages that match and locks them all under one new lock id.

        Get, delete and unlock then need that lock id. What arrives later is not locked. A lock stays until it is used,
        undone by `confirm_id`, or released; also over a restart. With a lease the queue manager releases it when that
        is over: the lock id is not known any more, and a message that was got under it, and comes back, is free.

        Args:
            match: which messages.
            confirm_id: for `undo`; 0: none.
            most: so many messages at most, from 1, the first in queue order; None: all.
            lease: seconds from now, above 0, at most 31,536,000 (a year); None: no end.

        Returns: the messages in queue order, and the lock id.

        Raises: ArgumentError; GetInhibited 2016; NotOpenFor 2037; QueueDeleted 2052.

        It acts at once, never in a unit of work.

        Rules: A-12, A-13, A-19.
        """
        if not isinstance(match, Match):
            raise bad_argument("match", match, "a Match", Reason.MATCH_OPTIONS_ERROR)
        selector_of(match)  # which says what is wrong in it
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
        """The unique ids of what stands under a confirm id, or under a lock id: one of the two is given.

        So a program that knows its id alone, after a crash say, can confirm, delete or unlock message by message.

        Args:
            confirm_id: everything that `undo` would act on: what was put, got or locked under it.
            lock_id: everything that is locked under it, and what was got under it and is not settled.

        Returns: them in queue order; what has no place yet comes last, as each process put it.

        Raises: NotFound, nothing stands under it, or its lease is over; OptionsError 2046, both are given, or none;
        ArgumentError 2046.

        It changes nothing, and sees what others hold too, in units of work as well.

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
        """Removes one message, unlocked, or locked under `lock_id`. Raises: NotFound, WrongState, LockMismatch."""
        self._one_message(Event.DELETE, uid, lock_id=lock_id)

    def undo(self, confirm_id: int) -> int:
        """Takes back everything put, got or locked on this queue under a confirm id; of how many messages.

        What was put is gone, what was got is back in its place with one more back out, what was locked is free.

        Raises: NotFound, nothing is held under it.

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
