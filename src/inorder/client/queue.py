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
from ..stores.seam.records import GetOutcome, GetRequest, Opened, PutRequest
from ..support import old_paths
from ..support.locks import may_have_happened
from .browsing import Browsing
from .confirming import USES, ConfirmedCalls, Use
from .keywords import BROWSE_FIRST, BROWSE_NEXT, DEFAULT_PUT, PutCall, get_options, message_of, split_put, sweep_options
from .queue_internals import QueueInternals
from .session import NOT_OPEN, Retained, Session

if TYPE_CHECKING:
    from typing_extensions import Unpack

_tuple = tuple.__new__  # makes a named tuple without an extra call: each put makes one
NO_USES: frozenset[Use] = frozenset()
COUNT_MAX = 2**31 - 1  # messages in one `get_many`


class Queue(ConfirmedCalls):
    """An open queue, made by `QueueManager.open`.

    It has its own browse cursor, browse lock, and group state for puts, gets and browses, so two handles of one
    queue never disturb each other. It shares the connection's unit of work.
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
        self._grows = grows  # a call may open it for further uses
        self.name, self.options, self._manager = name, options, manager
        self._handle, self.local_name, self._incarnation = NOT_OPEN, name, 0
        self._watched = session.watch(self)
        self._uses = NO_USES  # its uses now
        if not lazy:  # the first call with valid arguments opens a default handle
            self._open(options, dynamic_name)
        self._puts, self._gets, self._browses = Retained(), Retained(), Retained()
        self._cursor = UNSET
        self.closed, self.was_used = False, True  # a default handle: since the last `close_unused_queues`
        session.retained(self._puts, self._gets)

    def _open(self, options: OpenOptions, dynamic_name: str = "*") -> None:
        try:
            opened = self._opened(options, dynamic_name)
            self._watched.handle = opened.handle
        except InorderError:
            raise
        except BaseException:
            self._session.left.append(Session.keep_handles)
            raise
        self._handle, self.name, self.local_name, _, self._incarnation = opened
        self._is_open_for(opened.options)

    def _opened(self, options: OpenOptions, dynamic_name: str) -> Opened:
        how = {"manager": self._manager, "dynamic_name": dynamic_name}
        return self._store.open(self._session.owner, self.name, options, **how)

    def _is_open_for(self, options: OpenOptions) -> None:
        self.options = options
        self._uses = frozenset(use for use, (needed, _) in USES.items() if options.covers(needed))

    @property
    def internals(self) -> QueueInternals:
        """For other parts of this package only; it may change in any release."""
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
            options: the options, unless they are given as keywords.
            **keywords: fields of `Message`, and options; `QueueManager.put` lists them.

        Returns: the ids and numbers used, and a warning or None: 2049, the priority is above 9 and counts as 9; 2241 or
        2242, a put without logical order left a group or logical message open.

        Raises:
            ArgumentError: a bad field or option, with its reason.
            NotOpenFor: 2039. PutInhibited: 2051. QueueFull: 2053. MessageTooBig: 2030, 2031.
            InconsistentCall: 2241, 2242, 2185, 2245, a put in logical order does not continue the open group.
            UnitTooLarge: 2024. UnitNotAvailable: 2255. UnitOfAnother: 9021. DuplicatePending: 9051.

        In a unit of work the message is invisible before the commit. Outside one it is on the queue when the
        call returns. A `deduplicate` key is taken with the message, and free again if the message is backed out.

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
        """Puts messages in this order in one step: all of them, or none if one is refused.

        Arguments and errors are those of `put`. Fields given by keyword apply to each message; a `deduplicate` key
        applies to all of them together.
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
                outcome = self._store.put(_tuple(PutRequest, (self._handle, messages, options, state, in_unit, 0)))
                puts.advance(outcome.state, state if in_unit else None)
            except InorderError:
                raise
            except BaseException as error:
                puts.is_lost |= options.logical
                may_have_happened(error, f"the put on {self.name}")
                raise
            return outcome.results

    def end_group(self) -> None:
        """Marks the last message put in logical order, with all its segments, as the last of its group.

        Raises: WrongState, it is already committed; InconsistentCall 2242, its last segment is missing.
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
        """Removes one message and returns it.

        Options are given as keywords, which `QueueManager.get` lists, or as `GetOptions`.

        Returns: the message. Its `warning` is None, or one of 2079, 2080 (truncated, and then not removed), 2241,
        2242, 2243, 2244.

        Raises:
            NoMessageAvailable: 2033, no suitable message, or none in time.
            GetInhibited: 2016. NotOpenFor: 2037, 2036. OptionsError: 2046. MatchError: 2247.
            InconsistentCall: 2245. NoMessageUnderCursor: 2034. CallerError: 2246. UnitNotAvailable: 2255.
            UnitTooLarge: 2024. QueueDeleted: 2052. UnitOfAnother: 9021.

        In a unit of work the message is hidden; a commit removes it, a back out returns it to its place. Outside
        one it is gone when the call returns.

        Rules: R3.1 to R3.58, B-6 to B-34.
        """
        if keywords or options is not None:
            options = get_options(keywords, options, DEFAULT_GET)
        return self._get(options or DEFAULT_GET, 1).messages[0]

    def get_many(self, count: int, options: GetOptions | None = None, **keywords: Unpack[GetKeywords]) -> list[Got]:
        """Removes up to `count` messages in one step, as that many gets would; raises if it finds none.

        It stops before the first message that it cannot get, and after a message with a warning. With a wait it
        returns as soon as it has one message. Errors are those of `get`.
        """
        check_whole("count", count, 1, COUNT_MAX)
        return list(self._get(get_options(keywords, options, DEFAULT_GET), count).messages)

    # --- browse

    def browse_first(self, options: GetOptions | None = None, **keywords: Unpack[BrowseKeywords]) -> Got:
        """Copies the first suitable message and puts the cursor on it. Errors as `get`, and 2036."""
        return self._browse("first", get_options(keywords, options, BROWSE_FIRST))

    def browse_next(self, options: GetOptions | None = None, **keywords: Unpack[BrowseKeywords]) -> Got:
        """Copies the next suitable message after the cursor, and moves the cursor to it.

        Errors as `get`, 2036, and InconsistentCall 2259: the browse began in another order, logical or physical.
        """
        return self._browse("next", get_options(keywords, options, BROWSE_NEXT))

    def browse_cursor(self, options: GetOptions | None = None, **keywords: Unpack[BrowseKeywords]) -> Got:
        """Copies the message under the cursor again. Raises NoMessageUnderCursor 2034 if it is gone."""
        return self._browse("cursor", get_options(keywords, options, BROWSE_FIRST))

    def browse(
        self, options: GetOptions | None = None, *, after: str | None = None, **keywords: Unpack[BrowseKeywords]
    ) -> Browsing:
        """Copies every suitable message, one after another; moves this handle's cursor.

        Args:
            after: a token, from which an earlier strict browse continues in its own order (logical or physical). None:
                begins with the first message.

        Returns: an iterator that knows its position and how it ended: `Browsing`.

        Raises: OptionsError, a `buffer` without `accept_truncated`: a message that does not fit would stop the
        cursor for ever. In the loop: OrderPending, with the `token`; otherwise as `browse_next` and `resume`.

        Rules: R3.59 to R3.68, B-38 to B-44.
        """
        return Browsing(contextlib.nullcontext(self), sweep_options(options, keywords), after)

    def leave_group(self, *, browsing: bool = False) -> bool:
        """Leaves the group, or message in segments, that this handle is inside; the handle stays open.

        The next get or browse looks for the next message or group; a browse continues after the position of the
        group. The rest of a group that was partly got no longer holds back strict readers; a match on group id and
        sequence number reaches it. The call acts at once: a back out does not return the handle to the group.

        Args:
            browsing: leaves the group that the handle browses instead of the one that it gets.

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
        """Unlocks the message that this handle browsed with `lock`; returns the warning 2209 if it locked none.

        With `uid` and `lock_id` it is the confirmed call, which unlocks one message that `browse_and_lock` locked.

        Raises, with `uid`: NotFound; WrongState, it is not locked; LockMismatch, another lock id holds it.

        Rules: R3.69 to R3.72, A-13.
        """
        if uid is not None or not isinstance(lock_id, int) or lock_id:
            return self._one_message(Event.UNLOCK, uid, lock_id=lock_id)
        with self._session:
            self._need("browse")
            return None if self._store.unlock(self._handle) else Reason.NO_MSG_LOCKED

    def browse_token(self) -> str:
        """Returns the position of this handle's strict browse, for `resume` of any handle of this queue.

        Raises: CallerError, the browse is relaxed: continuing from its position could miss messages.
        """
        with self._session:
            self._need("browse")
            if self._cursor.logical is not None and not self._cursor.strict:
                raise CallerError("only a strict browse has a token", reason=Reason.ORDER_UNSUPPORTED)
            self._store.check_handle(self._handle)
            return encode(self._incarnation, self._cursor, self._browses.state)

    def resume(self, token: str) -> None:
        """Moves the browse cursor to the position in a token; a strict `browse_next` continues from there.

        `browse` without `after`, and `browse_first`, begin with the first message again.

        Raises: ArgumentError, it is not a token; QueueCondition 2041, the queue was deleted and created again.

        Rules: B-38, B-41.
        """
        with self._session:
            self._need("browse")
            resumed = decode(token)
            self._store.check_handle(self._handle)
            if resumed.incarnation != self._incarnation:
                raise QueueCondition("the token is of another queue of this name", reason=Reason.OBJECT_CHANGED)
            self._store.unlock(self._handle)  # the cursor leaves the message that it locked (R3.70)
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
        may_wait: bool = False,
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
            asked = (self._handle, options, retained.state, self._cursor, in_unit, count, one_group, None)
            request = _tuple(GetRequest, asked)
            if retained.is_lost and options.logical and not browse:
                retained.check()
            waits = options.wait and not options.by_cursor
            try:
                if accepts is not None:
                    outcome = session.services.store.get_if(request, accepts, waits=bool(waits and may_wait))
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
        """The error of a get that found nothing; for a strict one with the pending message (B-26)."""
        data: dict[str, Any] = {"queue": self.name}
        if (pending := outcome.pending) is not None:
            age = max(0.0, self._session.services.now() - pending.since) if outcome.age is None else outcome.age
            place = pending.place if pending.place.number else None
            data |= {"kind": pending.kind.value, "by": pending.by, "age": age, "place": place}
        waited = f" in {options.wait:,} s" if options.wait else ""
        told = "" if pending is None else f": {pending_text(pending)}"
        if outcome.withheld is None:
            return NoMessageAvailable(f"no suitable message on {self.name}{waited}{told}", **data)
        return OrderPending(f"an earlier message on {self.name} is pending{waited}{told}", **data)

    # --- its uses

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
        """For calls that any open handle may make."""
        self._alive()
        if self._handle == NOT_OPEN:
            try:
                self._open(USES["browse"][0])
            except WrongQueueType as error:  # a remote queue can only be opened for output
                if error.reason is not Reason.OPTION_NOT_VALID_FOR_TYPE:
                    raise
                self._open(USES["output"][0])

    def _need(self, use: Use) -> None:
        """Opens the handle, or extends it, for this use unless it already is."""
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
        """Returns the attributes of the queue as opened: of an alias, the alias's own."""
        with self._session:
            self._need_nothing()
            self._store.check_handle(self._handle)
            return self._store.queue(self.name)

    def status(self) -> QueueStatus:
        """Returns depth and open counts, after discarding expired messages."""
        with self._session:
            self._need_nothing()
            self._store.check_handle(self._handle)
            return self._store.status(self.name)

    def set(self, changes: Mapping[Selector, object] = NO_CHANGES, /, **named: Any) -> None:
        """Changes the attributes that programs may set on a queue: `get_allowed` and `put_allowed` (MQSET).

        MQ's names (InhibitGet) and, in `changes`, MQ's numbers (9) take MQ's values: 1 inhibits, 0 allows.

        Raises: ArgumentError 2067 for any other attribute, 2020 for a bad value.
        """
        wanted = in_our_words(changes, named)
        with self._session:
            self._need_nothing()
            self._store.check_handle(self._handle)
            self._store.alter_queue(self.name, "set", wanted)

    def close(self, *, delete: bool = False, purge: bool = False) -> Reason | None:
        """Closes the handle and drops its browse lock and marks; the unit of work stays open.

        Args:
            delete: also deletes the queue, which must be dynamic, empty and not open elsewhere. A temporary queue is
                deleted whatever is on it, but only by the handle that made it.
            purge: also deletes the queue with its messages, in steps like `QueueManager.delete_queue`.

        Returns: None, or the warning 2242 or 2241 if a logical message or group is unfinished; the handle is closed.

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
        except BaseException:  # the store may have closed it or not
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
        except CallInProgress:  # the garbage collector ends a dropped loop, even in the middle of another call
            self._watched.is_kept = False
            self._session.do_later(self, Queue._end)

    def __repr__(self) -> str:
        return f"<queue {self.name}{', closed' if self.closed else ''}>"
