"""`queue.internals`: calls of an open queue for other parts of this package. Programs do not use them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from ..errors import InorderError
from ..model.message import Got
from ..model.options import CALLERS_ID, DEFAULT_GET, GetOptions, check_instance, check_switch
from ..rules.browse_token import encode
from ..rules.grouping import GroupState, next_member
from ..rules.ordering import UNSET, Cursor
from ..stores.seam.protocol import Store
from ..stores.seam.records import GetRequest
from .browsing import BrowsePosition, FetchedPage
from .confirming import USE, Use
from .events import check_callable
from .keywords import get_options
from .session import NOT_OPEN, Session

if TYPE_CHECKING:
    from .queue import Queue


class QueueInternals:
    """Calls of an open queue for other parts of this package, `queue.internals`."""

    __slots__ = ("_queue",)

    def __init__(self, queue: Queue) -> None:
        self._queue = queue

    @property
    def session(self) -> Session:
        """The session of the connection."""
        return self._queue._session

    @property
    def number(self) -> int:
        """The handle's number in the store while it is open; else 0."""
        return self._queue._handle

    @property
    def put_state(self) -> GroupState:
        """The position of this handle in the group and logical message that it puts."""
        return self._queue._puts.state

    @property
    def get_state(self) -> GroupState:
        """The position of this handle in the group and logical message that it gets."""
        return self._queue._gets.state

    @property
    def is_idle(self) -> bool:
        """Whether closing it would lose nothing: it has no group, logical message or cursor, so no lock or mark."""
        queue = self._queue
        is_open = queue._handle != NOT_OPEN
        return is_open and not (queue._puts.in_use or queue._gets.in_use or queue._cursor != UNSET)

    def given(self) -> Queue:
        """Marks the handle as given to the program: it stays open when its object is dropped."""
        self._queue._watched.is_kept = True
        return self._queue

    def checked_for(self, use: Use) -> Queue:
        """Returns this handle, opened for a use. Raises: QueueDeleted 2052, its queue was deleted; HandleError 2019."""
        queue = self._queue
        USE.check("use", use)
        with queue._session:
            queue._need(use)
            queue._store.check_handle(queue._handle)
        return queue

    def opened_for(self, use: Use) -> tuple[Store, int]:
        """Inside a call: opens the handle for a use; returns the store and the handle's number in it."""
        USE.check("use", use)
        self._queue._need(use)
        return self._queue._store, self._queue._handle

    def get_if(self, accepts: Callable[[Got], object], options: GetOptions | None = None) -> Got:
        """Gets a message unless `accepts` raises; see `Internals.get_if`."""
        check_callable(accepts)
        return self._queue._get(get_options({}, options, DEFAULT_GET), 1, accepts=accepts).messages[0]

    def read(self, options: GetOptions, accepts: Callable[[Got], object] | None = None) -> Got:
        """Gets or browses, as `options.browse` says.

        Args:
            accepts: as in `Internals.get_if`, but the get waits as the options say; a browse does not call it.
        """
        return self._queue._get(options, 1, accepts=accepts, may_wait=True).messages[0]

    @property
    def browsed(self) -> tuple[Cursor, GroupState]:
        """The browse cursor and the place in the group that it browses."""
        return self._queue._cursor, self._queue._browses.state

    def browse_back(self, before: tuple[Cursor, GroupState]) -> None:
        """Undoes a browse: restores what `browsed` returned before it, and unlocks the message that it locked."""
        queue = self._queue
        with queue._session:
            queue._store.unlock(queue._handle)
            queue._cursor, state = before
            queue._browses.advance(state, None)

    @property
    def takes_back(self) -> bool:
        """Whether `read` can be given `accepts`: not for a store elsewhere."""
        return not self.session.services.store.changes.are_elsewhere

    def take_group(self, options: GetOptions) -> Iterator[Got]:
        """Gets one complete group, or one message in no group, in one step; see `groups.get_group`.

        A large group is read page by page as the caller iterates, which must end before the unit of work is settled.
        """
        queue = self._queue
        check_instance("options", options, GetOptions, "GetOptions")
        outcome = queue._get(get_options({}, options, DEFAULT_GET), 2**62, one_group=True)
        yield from outcome.messages
        rest = outcome.rest
        while rest is not None:
            with queue._session:
                messages, rest = queue._store.read_rest(queue._handle, rest)
            yield from messages

    def withdraw(self, before: GroupState, *, whole_group: bool = False) -> None:
        """For streams: undoes the unit's puts of the logical message or group, and restores the handle's state."""
        queue = self._queue
        check_instance("before", before, GroupState, "a state that the handle had")
        check_switch("whole_group", whole_group)
        with queue._session:
            try:
                queue._store.withdraw(queue._handle, queue._puts.state, whole_group=whole_group)
                queue._puts.state = before
            except InorderError:
                raise
            except BaseException:
                queue._puts.is_lost = True
                raise

    @property
    def incarnation(self) -> int:
        """A number for this creation of the queue: a queue created again under its name has another."""
        return self._queue._incarnation

    @property
    def standing(self) -> BrowsePosition:
        """The position of this handle's browse."""
        queue = self._queue
        state = queue._browses.state
        has_token = queue._handle != NOT_OPEN and (queue._cursor.logical is None or queue._cursor.strict)
        token = encode(queue._incarnation, queue._cursor, state) if has_token else None
        return BrowsePosition(token, next_member(state))

    def browse_on(self, options: GetOptions, page: FetchedPage) -> Got:
        """Does `browse_next` for a loop that fetches pages ahead."""
        queue = self._queue
        most = queue._store.page_messages
        if most == 1:
            return queue.browse_next(options)
        with queue._session:
            queue._need_for_reading(options)
            outcome = page.next(queue._session, queue._cursor)
            if outcome is None:
                request = GetRequest(queue._handle, options, queue._browses.state, queue._cursor, False, 1, False)
                found = queue._store.browse_page(request, min(page.fetch, most))
                outcome = page.fill(found, queue._session.services.now())
            if outcome is not None:
                queue._browses.advance(outcome.state, None)
                queue._cursor = outcome.cursor
                page.stands(queue._session, queue._cursor)
                return outcome.messages[0]
        return queue.browse_next(options)

    def go_on(self, token: str, options: GetOptions) -> GetOptions:
        """Resumes a browse from a token; returns the options that continue it as it began."""
        self._queue.resume(token)
        begun = self._queue._cursor.logical
        logical = options.logical if begun is None else options.logical or begun
        return replace(options, read_order=options.read_order or "strict", logical=logical)

    def release_lock(self, lock_id: int) -> int:
        """For operators: unlocks all messages under a lock id; returns how many. Raises: NotFound."""
        queue = self._queue
        CALLERS_ID.check("lock_id", lock_id)
        with queue._session:
            queue._need_nothing()
            return queue._store.release_lock(queue._handle, lock_id)
