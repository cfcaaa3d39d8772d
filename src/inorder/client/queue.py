"""Queue: an open queue, with its own browse cursor, browse lock and retained group states (an MQ object handle)."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

from ..errors import (
    CallerError,
    CallInProgress,
    ConnectionBroken,
    HandleError,
    InorderError,
    NoMessageAvailable,
    NotOpenFor,
    OptionsError,
    OrderPending,
    QueueCondition,
    Reason,
    WrongQueueType,
    bad_argument,
)
from ..model.attributes import QueueAttributes, QueueStatus
from ..model.message import Got, Message, UniqueId
from ..model.options import (
    DEFAULT_GET,
    BrowseKeywords,
    GetKeywords,
    GetOptions,
    OpenOptions,
    PutOptions,
    check_switch,
    check_whole,
)
from ..model.selecting import NO_CHANGES, Selector, in_our_words
from ..rules.browse_token import decode, encode
from ..rules.grouping import unfinished
from ..rules.lifecycle import Event
from ..rules.ordering import UNSET, pending_text
from ..rules.puts import PutResult
from ..stores.seam.records import GetOutcome, GetRequest, PutRequest
from ..support import old_paths
from ..support.locks import may_have_happened
from .browsing import Browsing
from .confirming import USES, ConfirmedCalls, Use
from .keywords import BROWSE_FIRST, BROWSE_NEXT, DEFAULT_PUT, PutCall, get_options, message_of, split_put, sweep_options
from .queue_internals import QueueInternals
from .session import NOT_OPEN, Retained, Session

if TYPE_CHECKING:
    from typing_extensions import Unpack

_tuple = tuple.__new__  # makes a named tuple without the call in between, where each put makes one
NO_USES: frozenset[Use] = frozenset()
COUNT_MAX = 2**31 - 1  # messages that are got at once


class Queue(ConfirmedCalls):
    """An open queue.

    Made by `QueueManager.open`. It has its own browse cursor, browse lock, and group state for puts, gets and
    browses, so that two handles of one queue never disturb each other. It shares the connection's unit of work.
    """

    def __init__(
        self,
        session: Session,
        name: str,
        options: OpenOptions,
        *,
        grows: bool = False,
        lazy: bool = False,
        manager: str = "",
        dynamic_name: str = "*",
    ) -> None:
        self._session = session
        self._store = session.store
        self._grows = grows  # opened for more whenever a call needs it
        self.name, self.options, self._manager = name, options, manager
        self._handle, self.local_name, self._incarnation = NOT_OPEN, name, 0
        self._watched = session.watch(self)
        self._uses = NO_USES  # what it is open for now
        if not lazy:  # a default handle is opened by the first call that is good enough to need it
            self._open(options, dynamic_name)
        self._puts, self._gets, self._browses = Retained(), Retained(), Retained()
        self._cursor = UNSET
        self.closed, self.was_used = False, True  # of a default handle: since `close_unused_queues` looked last
        session.retained(self._puts, self._gets)

    def _open(self, options: OpenOptions, dynamic_name: str = "*") -> None:
        try:
            how = {"manager": self._manager, "dynamic_name": dynamic_name}
            opened = self._store.open(self._session.owner, self.name, options, **how)
            self._watched.handle = opened.handle
        except InorderError:
            raise
        except BaseException:
            self._session.left.append(Session.keep_handles)
            raise
        self._handle, self.name, self.local_name, _, self._incarnation = opened
        self._is_open_for(opened.options)

    def _is_open_for(self, options: OpenOptions) -> None:
        self.options = options
        self._uses = frozenset(use for use, (needed, _) in USES.items() if options.covers(needed))

    @property
    def internals(self) -> QueueInternals:
        """For other parts of this package, not for programs: it may change with any version."""
        return QueueInternals(self)

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            return old_paths.member(self, name)

    # --- put

    def put(
        self,
        body: bytes | bytearray | memoryview | Message,
        options: PutOptions | None = None,
        **keywords: Unpack[PutCall],
    ) -> PutResult:
        """Puts one message.

        Args:
            body: the data, or a whole `Message`; fields given by keyword replace the message's.
            options, **keywords: fields of `Message` by keyword, and options, by keyword or as `PutOptions`:
                `QueueManager.put` lists them.

        Returns: the ids and numbers used, and the warning: 2049 the priority counts as 9; 2241 or 2242, a group
        or logical message is left open by a put without logical order.

        Raises:
            ArgumentError: a bad field or option, with its reason.
            NotOpenFor: 2039. PutInhibited: 2051. QueueFull: 2053. MessageTooBig: 2030, 2031.
            InconsistentCall: 2241, 2242, 2185, 2245, in logical order it does not go on with the open group.
            UnitTooLarge: 2024. UnitNotAvailable: 2255. UnitOfAnother: 9021. DuplicatePending: 9051.

        Under a unit of work the message is seen by nobody until commit. Outside one it is on the queue when the
        call returns. A key is taken with the message, and free again if that is backed out.

        Rules: R2.1 to R2.31.
        """
        message: Message | bytes
        if type(body) is bytes and not keywords and options is None:
            message, options = body, DEFAULT_PUT
        else:
            fields, options = split_put(keywords, options)
            message = message_of(body, fields)
        return self._put([message], options)[0]

    def put_many(
        self,
        messages: Iterable[bytes | bytearray | memoryview | Message],
        options: PutOptions | None = None,
        **keywords: Unpack[PutCall],
    ) -> list[PutResult]:
        """Puts messages in this order as one step: all, or none if one is refused.

        Args and errors as `put`; fields given by keyword apply to each message, a key of `deduplicate` to all of them.
        """
        if isinstance(messages, str | bytes | bytearray | memoryview | Message) or not isinstance(messages, Iterable):
            raise bad_argument("messages", messages, "an iterable of bodies or messages; use put for one")
        fields, options = split_put(keywords, options)
        if options.uid is not None:
            raise OptionsError("a unique id names one message: repeat each put by itself")
        return list(self._put([message_of(body, fields) for body in messages], options))

    def _put(self, messages: list[Message | bytes], options: PutOptions) -> Sequence[PutResult]:
        session, puts = self._session, self._puts
        with session:
            if "output" not in self._uses:
                self._need("output")
            state, in_unit = puts.state, options.syncpoint
            in_unit = session.block is not None if in_unit is None else in_unit
            in_unit = in_unit and not (options.confirm_id or options.uid)
            if session.services.carry is not None:
                messages = session.services.carry(messages)
            if in_unit:
                session.join_unit()
            if puts.is_lost and options.logical:
                puts.check()
            try:
                outcome = self._store.put(_tuple(PutRequest, (self._handle, messages, options, state, in_unit)))
                puts.advance(outcome.state, state if in_unit else None)
            except InorderError:
                raise
            except BaseException as error:
                puts.is_lost |= options.logical
                may_have_happened(error, f"the put on {self.name}")
                raise
            return outcome.results

    def end_group(self) -> None:
        """Marks the message put last in logical order as the last of its group, all its pieces.

        Raises: WrongState if it is committed already; InconsistentCall 2242 while its last segment is missing.
        """
        with self._session:
            self._need("output")
            try:
                self._puts.state = self._store.end_group(self._handle, self._puts.state)
            except InorderError:
                raise
            except BaseException:
                self._puts.is_lost = True
                raise

    # --- get

    def get(self, options: GetOptions | None = None, **keywords: Unpack[GetKeywords]) -> Got:
        """Removes one message and returns it. Options: by keyword, as `QueueManager.get` has them, or as `GetOptions`.

        Returns: the message; its `warning` says if something is to be known: 2079, 2080 (truncated, and then
        not removed), 2241, 2242, 2243, 2244.

        Raises:
            NoMessageAvailable: 2033, nothing suitable, or nothing in time.
            GetInhibited: 2016. NotOpenFor: 2037, 2036. OptionsError: 2046. MatchError: 2247.
            InconsistentCall: 2245. NoMessageUnderCursor: 2034. CallerError: 2246. UnitNotAvailable: 2255.
            UnitTooLarge: 2024. QueueDeleted: 2052. UnitOfAnother: 9021.

        Under a unit of work the message is hidden until commit removes it, and returns to its place at back
        out. Outside one it is gone when the call returns.

        Rules: R3.1 to R3.58, B-6 to B-34.
        """
        if keywords or options is not None:
            options = get_options(keywords, options, DEFAULT_GET)
        return self._get(options or DEFAULT_GET, 1).messages[0]

    def get_many(self, count: int, options: GetOptions | None = None, **keywords: Unpack[GetKeywords]) -> list[Got]:
        """Removes up to `count` messages as one step, as that many gets would; at least one, or it raises.

        It ends before the first message that cannot be had, and after one with a warning. With a wait it
        returns as soon as it has one. Errors as `get`.
        """
        check_whole("count", count, 1, COUNT_MAX)
        return list(self._get(get_options(keywords, options, DEFAULT_GET), count).messages)

    # --- browse

    def browse_first(self, options: GetOptions | None = None, **keywords: Unpack[BrowseKeywords]) -> Got:
        """Copies the first suitable message and puts the cursor on it. Errors as `get`, and 2036."""
        return self._browse("first", get_options(keywords, options, BROWSE_FIRST))

    def browse_next(self, options: GetOptions | None = None, **keywords: Unpack[BrowseKeywords]) -> Got:
        """Copies the next suitable message behind the cursor, and moves it there.

        Errors as `get`, 2036, and InconsistentCall 2259: the browse began in another order, logical or physical.
        """
        return self._browse("next", get_options(keywords, options, BROWSE_NEXT))

    def browse_cursor(self, options: GetOptions | None = None, **keywords: Unpack[BrowseKeywords]) -> Got:
        """Copies the message under the cursor again. Raises NoMessageUnderCursor 2034 if it is not there."""
        return self._browse("cursor", get_options(keywords, options, BROWSE_FIRST))

    def browse(
        self, options: GetOptions | None = None, *, after: str | None = None, **keywords: Unpack[BrowseKeywords]
    ) -> Browsing:
        """Copies every suitable message, until there is none; moves this handle's cursor.

        Args:
            after: a token: the browse goes on behind what it had shown, strictly, in the order in which it began. None:
                it begins with the first message.

        Returns: an iterator that says where it stands, and how it ended: `Browsing`.

        Raises: OptionsError, a `buffer` without `accept_truncated`: a message that does not fit would stop the
        cursor for ever. In the loop: OrderPending, with the `token`; otherwise as `browse_next` and `resume`.

        Rules: R3.59 to R3.68, B-38 to B-44.
        """
        return Browsing(contextlib.nullcontext(self), sweep_options(options, keywords), after)

    def leave_group(self, *, browsing: bool = False) -> bool:
        """Leaves the group, or message in segments, that this handle is inside, without closing it.

        A get, or a browse, then looks for the next message or group again; a browse goes on behind where the group
        stands. What is left of a group that was got in part holds no strict reader back any more and is reached
        by a match on group id and sequence number. It acts at once: a back out does not bring the handle back into it.

        Args:
            browsing: leaves the group that is browsed, and not the one that is got.

        Returns: whether the handle was inside one.

        Rules: B-45.
        """
        check_switch("browsing", browsing)
        retained = self._browses if browsing else self._gets
        with self._session:
            self._need_nothing()
            if not browsing:
                self._store.leave_group(self._handle)
            return retained.leave()

    def unlock(self, uid: UniqueId | None = None, *, lock_id: int = 0) -> Reason | None:
        """Frees the message that this handle browsed with lock; warning 2209 if there is none.

        With `uid` and `lock_id` it is the confirmed call: it frees one message that `browse_and_lock` locked.

        Raises, with `uid`: NotFound; WrongState, it is not locked; LockMismatch, another lock id holds it.

        Rules: R3.69 to R3.72, A-13.
        """
        if uid is not None or not isinstance(lock_id, int) or lock_id:
            return self._one_message(Event.UNLOCK, uid, lock_id=lock_id)
        with self._session:
            self._need("browse")
            return None if self._store.unlock(self._handle) else Reason.NO_MSG_LOCKED

    def browse_token(self) -> str:
        """Where a strict browse of this handle stands, to be given to `resume` of any handle of this queue.

        Raises: CallerError, the browse is relaxed: its place is not one that nothing is missed behind.
        """
        with self._session:
            self._need("browse")
            if self._cursor.logical is not None and not self._cursor.strict:
                raise CallerError("only a strict browse has a token", reason=Reason.ORDER_UNSUPPORTED)
            self._store.check_handle(self._handle)
            return encode(self._incarnation, self._cursor, self._browses.state)

    def resume(self, token: str) -> None:
        """Puts the browse cursor where a token says; the next `browse_next`, strict, goes on from there.

        `browse` without `after`, and `browse_first`, would begin from the first message again.

        Raises: ArgumentError, it is not a token; QueueCondition 2041, the queue was deleted and made again.

        Rules: B-38, B-41.
        """
        with self._session:
            self._need("browse")
            resumed = decode(token)
            self._store.check_handle(self._handle)
            if resumed.incarnation != self._incarnation:
                raise QueueCondition("the token is of another queue of this name", reason=Reason.OBJECT_CHANGED)
            self._store.unlock(self._handle)  # the cursor moves away from what it has locked (R3.70)
            self._cursor = resumed.cursor
            self._browses.advance(resumed.state, None)

    def _browse(self, position: Literal["first", "next", "cursor"], options: GetOptions) -> Got:
        if options.browse != position:
            options = replace(options, browse=position)
        return self._get(options, 1).messages[0]

    def _get(
        self,
        options: GetOptions,
        count: int,
        *,
        one_group: bool = False,
        accepts: Callable[[Got], object] | None = None,
    ) -> GetOutcome:
        session, browse, syncpoint = self._session, options.browse, options.syncpoint
        with session:
            if browse or options.under_cursor or "input" not in self._uses:
                self._need_for_reading(options)
            retained = self._browses if browse else self._gets
            if syncpoint is None:
                syncpoint = session.block is not None
            in_unit = syncpoint and not (browse or options.confirm_id)
            if in_unit or (options.syncpoint_if_persistent and not browse):
                session.join_unit()
            asked = (self._handle, options, retained.state, self._cursor, in_unit, count, one_group)
            request = _tuple(GetRequest, asked)
            if retained.is_lost and options.logical and not browse:
                retained.check()
            waits = options.wait and not options.by_cursor
            try:
                if accepts is not None:
                    outcome = session.services.store.get_if(request, accepts)
                else:
                    outcome = self._store.wait(request) if waits else self._store.get(request)
                if not outcome.messages:
                    raise self._missing(options, outcome)
                retained.advance(outcome.state, outcome.before_unit)
                if browse:
                    self._cursor = outcome.cursor
            except InorderError:
                raise
            except BaseException as error:
                if not browse:
                    retained.is_lost |= options.logical
                    may_have_happened(error, f"the get from {self.name}")
                raise
            return outcome

    def _missing(self, options: GetOptions, outcome: GetOutcome) -> NoMessageAvailable | OrderPending:
        """Why a get was given nothing, with what is pending if it was strict (B-26)."""
        data: dict[str, Any] = {"queue": self.name}
        if (pending := outcome.pending) is not None:
            age = max(0.0, self._session.services.now() - pending.since)
            place = pending.place if pending.place.number else None
            data |= {"kind": pending.kind.value, "by": pending.by, "age": age, "place": place}
        waited = f" in {options.wait:,} s" if options.wait else ""
        told = "" if pending is None else f": {pending_text(pending)}"
        if outcome.withheld is None:
            return NoMessageAvailable(f"no suitable message on {self.name}{waited}{told}", **data)
        return OrderPending(f"an earlier message on {self.name} is pending{waited}{told}", **data)

    # --- what it is open for

    def _need_for_reading(self, options: GetOptions) -> None:
        if options.browse or options.under_cursor:
            self._need("browse")
        if not options.browse:
            self._need("input")
        co_op = options.mark_co_op or options.unmark_co_op
        if co_op and not self.options.co_op:
            raise OptionsError("cooperative marks need a handle opened with co_op")

    def _alive(self) -> None:
        if self.closed:
            raise HandleError(f"this handle of {self.name} is closed")

    def _need_nothing(self) -> None:
        """The call may be made through any open handle."""
        self._alive()
        if self._handle == NOT_OPEN:
            try:
                self._open(USES["browse"][0])
            except WrongQueueType as error:  # what leads elsewhere can only be put to
                if error.reason is not Reason.OPTION_NOT_VALID_FOR_TYPE:
                    raise
                self._open(USES["output"][0])

    def _need(self, use: Use) -> None:
        """Opens the handle, or opens it for more, if that is still to be done."""
        if use in self._uses:
            return
        self._alive()
        needed, reason = USES[use]
        if self._handle == NOT_OPEN:
            self._open(needed)
        elif self._grows:
            self._is_open_for(self._store.extend(self._handle, self.options.joined(needed)).options)
        else:
            raise NotOpenFor(f"this handle of {self.name} is not open for {use}", reason=reason)

    # --- attributes, and the end

    def attributes(self) -> QueueAttributes:
        """The attributes of the queue as opened; an alias has its own."""
        with self._session:
            self._need_nothing()
            self._store.check_handle(self._handle)
            return self._store.queue(self.name)

    def status(self) -> QueueStatus:
        """Depth and open counts, after discarding what has expired."""
        with self._session:
            self._need_nothing()
            self._store.check_handle(self._handle)
            return self._store.status(self.name)

    def set(self, changes: Mapping[Selector, object] = NO_CHANGES, /, **named: Any) -> None:
        """Changes the attributes that a program may change on a queue: `get_allowed`, `put_allowed` (MQSET).

        MQ's names (InhibitGet) and, in `changes`, numbers (9) take MQ's values: 1 inhibits, 0 allows.

        Raises: ArgumentError 2067 for any other attribute, 2020 for a bad value.
        """
        wanted = in_our_words(changes, named)
        with self._session:
            self._need_nothing()
            self._store.check_handle(self._handle)
            self._store.alter_queue(self.name, "set", wanted)

    def close(self, *, delete: bool = False, purge: bool = False) -> Reason | None:
        """Closes the handle; its lock and marks go, its unit of work goes on.

        Args:
            delete: also delete the queue, a dynamic one that is empty and open nowhere else.
            purge: the same, with its messages; these go in steps, as by `QueueManager.delete_queue`.

        Returns: the warning 2242 or 2241, a logical message or a group is not finished; the handle is closed.

        Raises: QueueNotEmpty 2055, ObjectInUse 2042, WrongQueueType 2045; the handle then stays open.
        """
        check_switch("delete", delete)
        check_switch("purge", purge)
        with self._session:
            self._alive()
            self._end(delete=delete, purge=purge)
        warnings = (unfinished(self._puts.state), unfinished(self._gets.state))
        if Reason.INCOMPLETE_MSG in warnings:
            return Reason.INCOMPLETE_MSG
        return warnings[0] or warnings[1]

    def _end(self, *, delete: bool = False, purge: bool = False) -> None:
        if self.closed:
            return
        try:
            if self._handle != NOT_OPEN:
                self._store.close(self._handle, delete=delete, purge=purge)
            self.closed, self._uses = True, NO_USES
            self._session.forget(self._watched, (self._puts, self._gets))
        except InorderError:
            raise
        except BaseException:  # it may be closed, or not
            self.closed, self._uses = True, NO_USES
            self._watched.handle = NOT_OPEN
            self._session.left.append(Session.keep_handles)
            raise

    def __enter__(self) -> Queue:
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if self.closed or self._session.closed:
            return
        try:
            self.close()
        except ConnectionBroken:  # it ended with the connection
            if error is None:
                raise
        except CallInProgress:  # a loop that was dropped is ended by the collector, in the middle of any call
            self._watched.is_kept = False
            self._session.do_later(self, Queue._end)

    def __repr__(self) -> str:
        return f"<queue {self.name}{', closed' if self.closed else ''}>"
