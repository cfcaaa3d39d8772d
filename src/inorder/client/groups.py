"""Whole groups: put one in a block, get one in a loop. Also long messages as streams.

These calls use ordinary puts and gets in logical order. In addition they close the group, complete the stream, and
begin a unit of work when one is needed.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping
from contextlib import nullcontext
from typing import IO, TYPE_CHECKING, Any

from ..errors import CallerError, ConnectionBroken, InconsistentCall, OutcomeUnknown, Reason, bad_argument
from ..model.fields import NUMBER_MAX
from ..model.message import ANY_GROUP, IN_GROUP, LAST_IN_GROUP, LAST_SEGMENT, NO_ID, SEGMENT, Descriptor, Got, Message
from ..model.options import EVERYTHING, GetOptions, Match, PutOptions, check_switch
from ..model.parameters import Integer, is_integer
from ..rules.grouping import GroupState
from ..rules.ordering import ReadOrder
from ..rules.puts import PutResult
from ..support.streams import flush, write_whole
from .queue import Queue
from .session import Session
from .unit_of_work import UnitOfWork

if TYPE_CHECKING:
    from typing_extensions import Unpack

CHUNK_BYTES = 1024 * 1024
BYTES = Integer(1, NUMBER_MAX, what="a number of bytes")
LOGICAL_IN_UNIT = PutOptions(logical=True, syncpoint=True)


class GroupWriter:
    """Puts one group; made by `QueueManager.group`.

    ::

        with qm.group("ORDERS") as group:
            group.put(b"header")
            group.put(b"line 1")

    The end of the block marks the last message as the last in the group. If that message is already committed, this
    raises WrongState: then give `last=True` on its put. Without a unit of work the block begins one and commits it at
    its end; after a commit inside the block it begins another. After an exception nothing is marked.

    Attributes:
        group_id: the group's id, after the first put.
        own_unit: the unit of work that the block has begun; None: the puts are part of another one.
    """

    def __init__(self, session: Session, queue: Queue) -> None:
        self._session = session
        self._queue = queue
        self.own_unit: UnitOfWork | None = None
        self._closed = False
        self._put_any = False
        self._handle = queue.internals
        self._state = self._handle.put_state
        self.group_id = NO_ID

    def __enter__(self) -> GroupWriter:
        """Begins the group. Raises: UnitOfAnother, another thread or task has a unit of work open here."""
        try:
            self._have_unit()
        except BaseException as failure:  # `__exit__` will not be called
            self._leave(failure)
            raise
        return self

    def _have_unit(self) -> None:
        """Begins a unit of work if none is open, also after a commit inside the block."""
        if not self._session.can_join_unit():
            self.own_unit = UnitOfWork(self._session).__enter__()

    def put(
        self,
        body: bytes | bytearray | memoryview | Message,
        *,
        last: bool = False,
        **fields: Unpack[Descriptor],
    ) -> PutResult:
        """Puts the next message of the group; the queue manager assigns the group id and sequence number.

        Args:
            last: whether this is the last message of the group.
            **fields: fields of the descriptor; `flags` may mark the message as a segment, or allow segmentation.

        Raises: CallerError after the last message; otherwise as `Queue.put`.
        """
        if self._closed:
            raise CallerError("the last message of this group has been put", reason=Reason.INCOMPLETE_GROUP)
        check_switch("last", last)
        self._check_goes_on()
        _check_fields(fields)
        self._have_unit()
        given = fields.get("flags", body.flags if isinstance(body, Message) else 0)
        fields["flags"] = _flags(given) | (LAST_IN_GROUP if last else IN_GROUP)
        result = self._queue.put(body, LOGICAL_IN_UNIT, **fields)
        self.group_id, self._put_any, self._state = result.group_id, True, self._handle.put_state
        self._closed = last and not self._handle.put_state.message_open
        return result

    def put_stream(self, stream: IO[bytes], *, last: bool = False, chunk: int = CHUNK_BYTES) -> PutResult:
        """Puts a binary stream as the next message of the group, in segments; see `put_stream` below."""
        check_switch("last", last)
        self._check_goes_on()
        self._have_unit()
        flags = LAST_IN_GROUP if last else IN_GROUP
        result = put_stream(self._session, self._queue, stream, chunk=chunk, flags=flags)
        self.group_id, self._put_any, self._state = result.group_id, True, self._handle.put_state
        self._closed = last
        return result

    def _check_goes_on(self) -> None:
        """Raises: InconsistentCall 2241, the puts of this group were backed out."""
        if self._handle.put_state != self._state:
            raise InconsistentCall(
                "the puts of this group were backed out: start the group again", reason=Reason.INCOMPLETE_GROUP
            )

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        try:
            if error is None and self._put_any and not self._closed:
                self._check_goes_on()
                self._queue.end_group()
        except BaseException as failure:
            self._leave(failure)
            raise
        self._leave(error)

    def _leave(self, error: BaseException | None) -> None:
        try:
            if self.own_unit is not None:
                self.own_unit.__exit__(None, error, None)
        finally:
            if not self._session.closed and not self._queue.closed:
                try:  # noqa: SIM105 - `suppress` is not a block that is written in C
                    self._queue.close()
                except (ConnectionBroken, OutcomeUnknown):  # it ended with the connection
                    pass


def whole_group(*, wait: float = 0, match: Match = EVERYTHING, read_order: ReadOrder | None = None) -> GetOptions:
    """Returns the options for `get_group`.

    Args:
        wait: seconds to wait for a complete group, from 0; or `FOREVER`.
        match: selects the group by its first message.
        read_order: as in a get.
    """
    return GetOptions(
        logical=True, complete=True, all_messages=True, wait=wait, match=match, read_order=read_order, syncpoint=True
    )


def get_group(session: Session, queue: Queue, options: GetOptions) -> Generator[Got, None, None]:
    """Gets one complete group in order, or one message in no group, in one step; segments are joined.

    Outside a unit of work it begins one: the end of the loop commits it, leaving the loop early backs it out at once.
    Until then puts and gets of this connection belong to that unit. If you keep the iterator in a variable, close it,
    or get the group in a unit of work of your own.

    A large group is read page by page as the loop proceeds, and memory holds one page. So settle a unit of your own
    only after the loop has ended.

    Raises: NoMessageAvailable 2033; InconsistentCall 2241, this handle is inside a group; as `Queue.get`;
    UnitOfAnother, another thread or task has the open unit of work; UnitNotFound, the unit was settled before the loop
    had read all of a large group.
    """
    state = queue.internals.get_state
    if state.group_open or state.message_open:
        raise InconsistentCall(
            "this handle has a group open: finish it first, or close the handle", reason=Reason.INCOMPLETE_GROUP
        )
    with _unit(session):
        yield from queue.internals.take_group(options)


def put_stream(
    session: Session,
    queue: Queue,
    stream: IO[bytes],
    *,
    chunk: int = CHUNK_BYTES,
    as_group: bool = False,
    most: int = NUMBER_MAX,
    **fields: Any,
) -> PutResult:
    """Puts the content of a binary stream as one logical message, with a segment for every `chunk` bytes.

    Memory holds two chunks. The puts are part of the open unit of work, or of a new one. If a put fails, no part of the
    stream stays on the queue.

    Args:
        chunk: bytes of a segment, 1 to 999,999,999.
        as_group: puts the stream as a group of logical messages, so that it may have any length; even a short stream
            becomes a group. `get_stream(as_group=True)` gets all of it.
        most: bytes of one logical message, 1 to 999,999,999.
        **fields: fields of the descriptor of all segments; only the first segment of each logical message gets
            `properties`.

    Returns: the result of the last put; its offset plus the last chunk is the length of the last logical message.

    Raises: ArgumentError 2251, the stream is longer than `most` bytes and `as_group` is False; InconsistentCall 2242,
    2241, the handle has a logical message or (with `as_group`) a group open; as `Queue.put`.
    """
    BYTES.check("chunk", chunk)
    BYTES.check("most", most)
    check_switch("as_group", as_group)
    if not callable(getattr(stream, "read", None)):
        raise bad_argument("stream", stream, "a binary stream to read from")
    _check_fields(fields)
    given = _flags(fields.pop("flags", 0))
    behind = {name: value for name, value in fields.items() if name != "properties"}
    before = queue.internals.put_state
    if before.message_open:
        raise InconsistentCall("this handle has a logical message open: end it first", reason=Reason.INCOMPLETE_MSG)
    if as_group and (given & ANY_GROUP or before.group_open):
        raise InconsistentCall(
            "put_stream(as_group=True) makes a new group: give no group flags, and end the open group first",
            reason=Reason.INCOMPLETE_GROUP,
        )
    queue.internals.checked_for("output")  # before the stream is read: the call may be repeated
    with _unit(session):
        try:
            for data, flags in _pieces(stream, chunk, most, IN_GROUP if as_group else 0):
                own = behind if queue.internals.put_state.message_open else fields
                result = queue.put(data, LOGICAL_IN_UNIT, flags=given | flags, **own)
            if as_group:
                queue.end_group()
        except BaseException:
            after = queue.internals.put_state
            if after.message_open or (as_group and after.group_open):
                queue.internals.withdraw(before, whole_group=as_group)
            raise
        return result


def _pieces(stream: IO[bytes], chunk: int, most: int, group: int) -> Iterator[tuple[bytes, int]]:
    """Yields the segments of a stream with their flags, as one logical message, or with the flag `group` as several.

    Raises: ArgumentError 2251, the stream is too long for one.
    """
    length, following = 0, _read(stream, min(chunk, most))
    while True:
        data, length = following, length + len(following)
        following = _read(stream, min(chunk, most - length if length < most else most))
        if length > most or (length == most and following and not group):
            allowed = f"at most {most:,} bytes for one logical message; as_group=True makes a group of several"
            raise bad_argument("stream", f"{length + len(following):,} bytes or more", allowed, Reason.OFFSET_ERROR)
        ends_message = length == most or not following
        begins_message = length == len(data)
        segment = 0 if begins_message and ends_message else LAST_SEGMENT if ends_message else SEGMENT
        yield data, group | segment
        if not following:
            return
        if ends_message:
            length = 0


def get_stream(
    session: Session,
    queue: Queue,
    stream: IO[bytes],
    *,
    wait: float = 0,
    match: Match = EVERYTHING,
    as_group: bool = False,
) -> Got:
    """Gets one logical message and writes its data to a binary stream, segment by segment.

    Memory holds one segment. The gets are part of the open unit of work, or of a new one. A new one is committed when
    all data is written and the stream is flushed. If that fails, it is backed out, and the stream has only part of the
    data. If the data must survive a crash of the machine, get it in a unit of work of your own, and call ``os.fsync``
    before the commit.

    Args:
        as_group: gets a complete group, as `put_stream(as_group=True)` makes it, and writes the data of its logical
            messages in order; or one logical message in no group.

    Returns: the descriptor of the first segment, without the body, with the length of all data.

    Raises: NoMessageAvailable 2033; InconsistentCall 2242, 2241, this handle is inside a logical message or (with
    `as_group`) a group.
    """
    if not callable(getattr(stream, "write", None)):
        raise bad_argument("stream", stream, "a binary stream to write to")
    check_switch("as_group", as_group)
    state = queue.internals.get_state
    if state.message_open:
        raise InconsistentCall("this handle has a logical message open: finish it first", reason=Reason.INCOMPLETE_MSG)
    if as_group and state.group_open:
        raise InconsistentCall("this handle has a group open: finish it first", reason=Reason.INCOMPLETE_GROUP)
    options = GetOptions(logical=True, all_segments=True, all_messages=as_group, wait=wait, match=match, syncpoint=True)
    following = GetOptions(logical=True, syncpoint=True)
    with _unit(session):
        first = message = queue.get(options)
        length = message.length
        write_whole(stream, message.body)
        while _goes_on(queue.internals.get_state, as_group=as_group):
            message = queue.get(following)
            write_whole(stream, message.body)
            length += message.length
        flush(stream)
        return first.with_values(body=b"", length=length, flags=first.flags | message.flags)  # type: ignore[return-value]


def _goes_on(state: GroupState, *, as_group: bool) -> bool:
    return state.message_open or (as_group and state.group_open)


def _read(stream: IO[bytes], chunk: int) -> bytes:
    data = stream.read(chunk)
    if not isinstance(data, bytes):  # a text stream, or one that does not block and has nothing yet
        raise bad_argument("stream", stream, "a blocking binary stream, whose reads return bytes")
    return data


def _check_fields(fields: Mapping[str, object]) -> None:
    """Raises: ArgumentError, a name that is no field of the descriptor; these puts take no options."""
    for name in fields:
        if name not in Descriptor.__annotations__:
            raise bad_argument("field", name, f"one of: {', '.join(sorted(Descriptor.__annotations__))}")


def _flags(value: object) -> int:
    if not is_integer(value):
        raise bad_argument("flags", value, "a sum of Flags", Reason.MSG_FLAGS_ERROR)
    return int(value)


def _unit(session: Session) -> UnitOfWork | nullcontext[None]:
    """Joins the open unit of work, or returns a new one."""
    return nullcontext() if session.can_join_unit() else UnitOfWork(session)
