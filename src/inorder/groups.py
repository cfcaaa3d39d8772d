"""Groups as whole things: put one in a block, get one in a loop; and long messages as streams.

All of it is made of ordinary puts and gets in logical order; what is added is that a group is closed, a stream
is whole, and a unit of work is there when one is needed.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext
from types import TracebackType
from typing import IO, TYPE_CHECKING, Any

from .errors import CallerError, InconsistentCall, Reason, bad_argument
from .handle import Queue
from .message import IN_GROUP, LAST_IN_GROUP, LAST_SEGMENT, NO_ID, NUMBER_MAX, SEGMENT, Message
from .options import EVERYTHING, GetOptions, Match, PutOptions
from .rules.puts import PutResult
from .session import Session
from .unit_of_work import UnitOfWork

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from .message import Descriptor

CHUNK_BYTES = 1024 * 1024
LOGICAL_IN_UNIT = PutOptions(logical=True, syncpoint=True)


class GroupWriter:
    """Puts one group; made by `QueueManager.group`.

        with qm.group("ORDERS") as group:
            group.put(b"header")
            group.put(b"line 1")

    Leaving the block closes the group: the last message is marked as last in group. If there is no unit of work
    the block makes one, committed at its end. After an exception nothing is marked.

    Attributes:
        group_id: the group's id, after the first put.
    """

    def __init__(self, session: Session, queue: Queue) -> None:
        self._queue = queue
        self._own_unit = None if session.unit_is_open() else UnitOfWork(session)
        self._closed = False
        self._put_any = False
        self.group_id = NO_ID

    def __enter__(self) -> GroupWriter:
        state = self._queue.put_state
        if state.group_open or state.message_open:
            raise InconsistentCall("a group is open on this handle: end it first", reason=Reason.INCOMPLETE_GROUP)
        if self._own_unit is not None:
            self._own_unit.__enter__()
        self._queue.is_reserved = True
        return self

    def put(
        self,
        body: bytes | bytearray | memoryview | Message,
        *,
        last: bool = False,
        **fields: Unpack[Descriptor],
    ) -> PutResult:
        """Puts the next message of the group; the queue manager gives the group id and the sequence number.

        Args:
            last: this is the last message of the group.
            **fields: fields of the descriptor; `flags` may say that it is a segment, or may be segmented.

        Raises: CallerError after the last message; otherwise as `Queue.put`.
        """
        if self._closed:
            raise CallerError("the last message of this group has been put", reason=Reason.INCOMPLETE_GROUP)
        given = fields.get("flags", body.flags if isinstance(body, Message) else 0)
        fields["flags"] = given | (LAST_IN_GROUP if last else IN_GROUP)
        result = self._queue.put(body, LOGICAL_IN_UNIT, **fields)
        self.group_id, self._put_any = result.group_id, True
        self._closed = last and not self._queue.put_state.message_open
        return result

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if error is None and self._put_any and not self._closed:
                self._queue.end_group()
        except BaseException as failure:
            self._leave(type(failure), failure, failure.__traceback__)
            raise
        self._leave(kind, error, trace)

    def _leave(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._queue.is_reserved = False
        if self._own_unit is not None:
            self._own_unit.__exit__(kind, error, trace)


def get_group(
    session: Session, queue: Queue, *, wait: float | None = 0, match: Match = EVERYTHING
) -> Iterator[Message]:
    """One complete group in order, or one message in no group, segments joined; taken as one step.

    Args:
        wait: seconds to wait until a whole group is there.
        match: which group: what its first message must be.

    Outside a unit of work it makes one: committed when the loop ends, backed out when it is left early.

    Raises: NoMessageAvailable 2033; InconsistentCall 2241, this handle is inside a group; as `Queue.get`.
    """
    options = GetOptions(logical=True, complete=True, all_messages=True, wait=wait, match=match, syncpoint=True)
    state = queue.get_state
    if state.group_open or state.message_open:
        raise InconsistentCall("this handle is inside a group: finish it first", reason=Reason.INCOMPLETE_GROUP)
    with _unit(session):
        yield from queue.take_group(options)


def put_stream(
    session: Session, queue: Queue, stream: IO[bytes], *, chunk: int = CHUNK_BYTES, **fields: Any
) -> PutResult:
    """Puts all that a binary stream holds as one logical message, a segment for every `chunk` bytes.

    Memory holds two chunks. It is one unit of work: the open one, or one of its own. If it fails, nothing of it
    stays on the queue.

    Returns: what the last put returned; its offset plus the last chunk is the length.

    Raises: ArgumentError 2251, the stream is longer than 999,999,999 bytes; as `Queue.put`.
    """
    if not isinstance(chunk, int) or isinstance(chunk, bool) or not 1 <= chunk <= NUMBER_MAX:
        raise bad_argument("chunk", chunk, f"a number of bytes from 1 to {NUMBER_MAX:,}")
    given = int(fields.pop("flags", 0))
    before = queue.put_state
    with _unit(session):
        data = stream.read(chunk)
        following = stream.read(chunk)
        if not following:
            return queue.put(data, LOGICAL_IN_UNIT, flags=given, **fields)
        try:
            while following:
                queue.put(data, LOGICAL_IN_UNIT, flags=given | SEGMENT, **fields)
                data, following = following, stream.read(chunk)
            return queue.put(data, LOGICAL_IN_UNIT, flags=given | LAST_SEGMENT, **fields)
        except BaseException:
            if queue.put_state.message_open:
                queue.withdraw(before)
            raise


def get_stream(
    session: Session,
    queue: Queue,
    stream: IO[bytes],
    *,
    wait: float | None = 0,
    match: Match = EVERYTHING,
) -> Message:
    """Gets one logical message and writes its data to a binary stream, segment by segment.

    Memory holds one segment. It is one unit of work: the open one, or one of its own, committed when all is
    written, backed out if that fails (what was written then is not all).

    Returns: the first segment's descriptor, without body, with the whole length.

    Raises: NoMessageAvailable 2033; InconsistentCall 2242, this handle is inside a logical message.
    """
    if queue.get_state.message_open:
        raise InconsistentCall("this handle is inside a logical message: finish it first", reason=Reason.INCOMPLETE_MSG)
    options = GetOptions(logical=True, all_segments=True, wait=wait, match=match, syncpoint=True)
    following = GetOptions(logical=True, syncpoint=True)
    with _unit(session):
        first = message = queue.get(options)
        length = message.length
        stream.write(message.body)
        while not _ends_message(message):
            message = queue.get(following)
            stream.write(message.body)
            length += message.length
        return first.with_values(body=b"", length=length, flags=first.flags | message.flags)


def _ends_message(message: Message) -> bool:
    return message.segment_status != "in"


def _unit(session: Session) -> UnitOfWork | nullcontext[None]:
    """The unit of work that the call stands in, or one of its own."""
    return nullcontext() if session.unit_is_open() else UnitOfWork(session)
