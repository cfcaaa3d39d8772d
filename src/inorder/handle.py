"""Queue: an open queue, with its own browse cursor, browse lock and retained group states (an MQ object handle)."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator
from dataclasses import replace
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal

from .attributes import QueueAttributes, QueueStatus
from .errors import (
    HandleError,
    NoMessageAvailable,
    NotOpenFor,
    OptionsError,
    Reason,
    bad_argument,
)
from .message import Descriptor, Message
from .options import (
    BrowseKeywords,
    GetKeywords,
    GetOptions,
    OpenOptions,
    PutKeywords,
    PutOptions,
)
from .rules.gets import in_unit_of_work
from .rules.grouping import GroupState, unfinished
from .rules.ordering import UNSET
from .rules.puts import PutResult
from .session import Retained, Session
from .stores.base import GetOutcome, GetRequest, PutRequest
from .waiting import Look

if TYPE_CHECKING:
    from typing_extensions import Unpack

DEFAULT_PUT = PutOptions()
DEFAULT_GET = GetOptions()
BROWSE_FIRST = GetOptions(browse="first")
BROWSE_NEXT = GetOptions(browse="next")
NO_MARKS = {"mark_handle": False, "mark_co_op": False}


class PutCall(Descriptor, PutKeywords, total=False):
    """Everything a put takes by keyword: fields of the descriptor, and options."""


class Queue:
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
        dynamic_name: str = "*",
    ) -> None:
        self._session = session
        self._store = session.store
        self._grows = grows  # a default handle is opened for whatever a call needs
        opened = self._store.open(session.owner, name, options, dynamic_name=dynamic_name)
        self._handle, self.name, self._local, self.options = opened
        self._puts, self._gets, self._browses = Retained(), Retained(), Retained()
        self._cursor = UNSET
        self.closed = False
        self.is_reserved = False  # for a block that will put through it
        session.retained(self._puts, self._gets)

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
            options: the options; or give them by keyword.
            **keywords: fields of `Message`, and options of `PutOptions`.

        Returns: the ids and numbers used, and the warning: 2049 the priority counts as 9; 2241 or 2242, a group
        or logical message is left open by a put without logical order.

        Raises:
            ArgumentError: a bad field or option, with its reason.
            NotOpenFor: 2039. PutInhibited: 2051. QueueFull: 2053. MessageTooBig: 2030, 2031.
            InconsistentCall: 2241, 2242, 2185, 2245, in logical order it does not go on with the open group.
            UnitTooLarge: 2024. UnitNotAvailable: 2255.

        Under a unit of work the message is seen by nobody until commit. Outside one it is on the queue when the
        call returns. Source: mq-semantics 2.
        """
        fields, options = _split(keywords, options)
        return self._put([_message(body, fields)], options)[0]

    def put_many(
        self,
        messages: Iterable[bytes | bytearray | memoryview | Message],
        options: PutOptions | None = None,
        **keywords: Unpack[PutCall],
    ) -> list[PutResult]:
        """Puts messages in this order as one step: all, or none if one is refused.

        Args and errors as `put`; fields given by keyword apply to each message.
        """
        if isinstance(messages, bytes | bytearray | memoryview | Message):
            raise bad_argument("messages", messages, "an iterable of bodies or messages; use put for one")
        fields, options = _split(keywords, options)
        return self._put([_message(body, fields) for body in messages], options)

    def _put(self, messages: list[Message], options: PutOptions) -> list[PutResult]:
        with self._session:
            self._need(OpenOptions(output=True), Reason.NOT_OPEN_FOR_OUTPUT)
            in_unit = self._session.in_unit(options.syncpoint)
            outcome = self._store.put(
                PutRequest(
                    handle=self._handle,
                    messages=messages,
                    options=options,
                    state=self._puts.state,
                    in_unit=in_unit,
                )
            )
            self._puts.advance(outcome.state, in_unit=in_unit)
            return outcome.results

    def end_group(self) -> None:
        """Marks the message put last in logical order as the last of its group, all its pieces.

        Raises: WrongState if it is committed already; InconsistentCall 2242 while its last segment is missing.
        """
        with self._session:
            self._need(OpenOptions(output=True), Reason.NOT_OPEN_FOR_OUTPUT)
            self._puts.state = self._store.end_group(self._handle, self._puts.state)

    def withdraw(self, before: GroupState) -> None:
        """Takes back what the open unit put of the current logical message, to where the handle stood before."""
        with self._session:
            self._store.withdraw(self._handle, self._puts.state)
            self._puts.state = before

    @property
    def put_state(self) -> GroupState:
        """Where this handle stands in a group and logical message that it puts."""
        return self._puts.state

    @property
    def get_state(self) -> GroupState:
        """Where this handle stands in a group and logical message that it gets."""
        return self._gets.state

    @property
    def is_idle(self) -> bool:
        """Whether nothing is lost if it is closed: no block, group, message or cursor, and so no lock or mark."""
        return not (self.is_reserved or self._puts.in_use or self._gets.in_use or self._cursor != UNSET)

    # --- get

    def get(self, options: GetOptions | None = None, **keywords: Unpack[GetKeywords]) -> Message:
        """Removes one message and returns it.

        Args:
            options: the options; or give them by keyword, see `GetOptions`.

        Returns: the message; its `warning` says if something is to be known: 2079, 2080 (truncated, and then
        not removed), 2241, 2242, 2243, 2244.

        Raises:
            NoMessageAvailable: 2033, nothing suitable, or nothing in time.
            GetInhibited: 2016. NotOpenFor: 2037, 2036. OptionsError: 2046. MatchError: 2247.
            InconsistentCall: 2245. NoMessageUnderCursor: 2034. CallerError: 2246. UnitNotAvailable: 2255.
            UnitTooLarge: 2024. QueueDeleted: 2052.

        Under a unit of work the message is hidden until commit removes it, and returns to its place at back
        out. Outside one it is gone when the call returns. Source: mq-semantics 3.
        """
        return self._get(_options(keywords, options, DEFAULT_GET), 1)[0]

    def get_many(self, count: int, options: GetOptions | None = None, **keywords: Unpack[GetKeywords]) -> list[Message]:
        """Removes up to `count` messages as one step, as that many gets would; at least one, or it raises.

        It ends before the first message that cannot be had, and after one with a warning. With a wait it
        returns as soon as it has one. Errors as `get`.
        """
        if not isinstance(count, int) or isinstance(count, bool) or count < 1:
            raise bad_argument("count", count, "an integer from 1")
        return self._get(_options(keywords, options, DEFAULT_GET), count)

    def take_group(self, options: GetOptions) -> list[Message]:
        """One complete group, or one message in no group, as one step; see `groups.get_group`."""
        return self._get(options, 2**62, one_group=True)

    # --- browse

    def browse_first(self, options: GetOptions | None = None, **keywords: Unpack[BrowseKeywords]) -> Message:
        """Copies the first suitable message and puts the cursor on it. Errors as `get`, and 2036."""
        return self._browse("first", _options(keywords, options, BROWSE_FIRST))

    def browse_next(self, options: GetOptions | None = None, **keywords: Unpack[BrowseKeywords]) -> Message:
        """Copies the next suitable message behind the cursor, and moves it there.

        Errors as `get`, 2036, and InconsistentCall 2259: the browse began in another order, logical or physical.
        """
        return self._browse("next", _options(keywords, options, BROWSE_NEXT))

    def browse_cursor(self, options: GetOptions | None = None, **keywords: Unpack[BrowseKeywords]) -> Message:
        """Copies the message under the cursor again. Raises NoMessageUnderCursor 2034 if it is not there."""
        return self._browse("cursor", _options(keywords, options, BROWSE_FIRST))

    def browse(self, options: GetOptions | None = None, **keywords: Unpack[BrowseKeywords]) -> Iterator[Message]:
        """Copies every suitable message from the first on, until there is none; moves this handle's cursor."""
        first = replace(_options(keywords, options, BROWSE_FIRST), browse="first")
        following = replace(first, browse="next")
        try:
            yield self._browse("first", first)
            while True:
                yield self._browse("next", following)
        except NoMessageAvailable:
            return

    def unlock(self) -> Reason | None:
        """Frees the message that this handle browsed with lock; warning 2209 if there is none (R3.71)."""
        with self._session:
            self._need(OpenOptions(browse=True), Reason.NOT_OPEN_FOR_BROWSE)
            return None if self._store.unlock(self._handle) else Reason.NO_MSG_LOCKED

    def _browse(self, position: Literal["first", "next", "cursor"], options: GetOptions) -> Message:
        if options.browse != position:
            options = replace(options, browse=position)
        return self._get(options, 1)[0]

    # --- the one way to read

    def _get(self, options: GetOptions, count: int, *, one_group: bool = False) -> list[Message]:
        with self._session:
            self._need_for_reading(options)
            look = functools.partial(self._look, options, count, one_group)
            if not options.wait or options.by_cursor:
                messages = look().result
            else:
                room = self._session.services.room
                messages = room.wait(self._session.owner, self._local, options, look)
            if not messages:
                waited = f" in {options.wait:,} s" if options.wait else ""
                raise NoMessageAvailable(f"no suitable message on {self.name}{waited}", queue=self.name)
            return messages

    def _look(self, options: GetOptions, count: int, one_group: bool) -> Look[list[Message]]:
        retained = self._browses if options.browse else self._gets
        syncpoint = self._session.in_unit(options.syncpoint)
        outcome = self._store.get(
            GetRequest(
                handle=self._handle,
                options=options,
                state=retained.state,
                cursor=self._cursor,
                syncpoint=syncpoint and not options.browse,
                count=count,
                one_group=one_group,
            )
        )
        if not outcome.messages:
            return Look(again_at=outcome.look_again_at)
        self._advance(retained, options, syncpoint, outcome)
        return Look(outcome.messages)

    def _advance(self, retained: Retained, options: GetOptions, syncpoint: bool, outcome: GetOutcome) -> None:
        in_unit = any(in_unit_of_work(options, one, syncpoint=syncpoint) for one in outcome.messages)
        retained.advance(outcome.state, in_unit=in_unit)
        if options.browse:
            self._cursor = outcome.cursor

    # --- what it is open for

    def _need_for_reading(self, options: GetOptions) -> None:
        if options.browse or options.under_cursor:
            self._need(OpenOptions(browse=True), Reason.NOT_OPEN_FOR_BROWSE)
        if not options.browse:
            self._need(OpenOptions(input="as_queue"), Reason.NOT_OPEN_FOR_INPUT)
        co_op = options.mark_co_op or options.unmark_co_op
        if co_op and not self.options.co_op:
            raise OptionsError("cooperative marks need a handle opened with co_op")

    def _check_open(self) -> None:
        if self.closed:
            raise HandleError(f"this handle of {self.name} is closed")

    def _need(self, options: OpenOptions, reason: Reason) -> None:
        self._check_open()
        if self.options.covers(options):
            return
        if not self._grows:
            what = "output" if options.output else "browse" if options.browse else "input"
            raise NotOpenFor(f"this handle of {self.name} is not open for {what}", reason=reason)
        self.options = self._store.extend(self._handle, self.options.joined(options)).options

    # --- attributes, and the end

    def attributes(self) -> QueueAttributes:
        """The attributes of the queue as opened; an alias has its own."""
        with self._session:
            return self._store.queue(self.name)

    def status(self) -> QueueStatus:
        """Depth and open counts, after discarding what has expired."""
        with self._session:
            return self._store.status(self.name)

    def set(self, **changes: Any) -> None:
        """Changes the attributes that a program may change on a queue: `get_allowed`, `put_allowed` (MQSET).

        Raises: ArgumentError 2067 for any other attribute, 2020 for a bad value.
        """
        with self._session:
            self._store.alter_queue(self.name, "set", changes)

    def close(self, *, delete: bool = False, purge: bool = False) -> Reason | None:
        """Closes the handle; its lock and marks go, its unit of work goes on (R5.7).

        Args:
            delete: also delete the queue, a permanent dynamic one that is empty and open nowhere else.
            purge: the same, with its messages.

        Returns: the warning 2242 or 2241, a logical message or a group is not finished; the handle is closed.

        Raises: QueueNotEmpty 2055, ObjectInUse 2042, WrongQueueType 2045; the handle then stays open.
        """
        if self.closed:
            raise HandleError(f"this handle of {self.name} is closed")
        with self._session:
            self._store.close(self._handle, delete=delete, purge=purge)
            self.closed = True
            self._session.forget((self._puts, self._gets))
        warnings = (unfinished(self._puts.state), unfinished(self._gets.state))
        if Reason.INCOMPLETE_MSG in warnings:
            return Reason.INCOMPLETE_MSG
        return warnings[0] or warnings[1]

    def __enter__(self) -> Queue:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not self.closed and not self._session.closed:
            self.close()

    def __repr__(self) -> str:
        return f"<queue {self.name}{', closed' if self.closed else ''}>"


def alive(handle: Queue) -> Queue:
    """The handle itself. Raises: QueueDeleted 2052, its queue went away; HandleError 2019."""
    with handle._session:
        handle._check_open()
        handle._store.extend(handle._handle, handle.options)
    return handle


def _message(body: bytes | bytearray | memoryview | Message, fields: dict[str, Any]) -> Message:
    if isinstance(body, Message):
        return body.replace(**fields) if fields else body
    return Message(body, **fields)


def _split(keywords: Any, options: PutOptions | None) -> tuple[dict[str, Any], PutOptions]:
    """Keywords are fields of the message or options of the put."""
    if not keywords:
        return {}, options or DEFAULT_PUT
    chosen = {name: value for name, value in keywords.items() if name in PutKeywords.__annotations__}
    fields = {name: value for name, value in keywords.items() if name not in chosen}
    return fields, replace(options or DEFAULT_PUT, **chosen)


def _options(keywords: Any, options: GetOptions | None, default: GetOptions) -> GetOptions:
    if not keywords:
        return options or default
    allowed = BrowseKeywords.__annotations__ if default.browse else GetKeywords.__annotations__
    for name in keywords:
        if name not in allowed:
            raise bad_argument("option", name, f"one of {', '.join(sorted(allowed))}", Reason.OPTIONS_ERROR)
    return replace(options or default, **keywords)
