"""A group that a task puts."""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType
from typing import IO, Any, Concatenate, ParamSpec, TypeVar

from ..client import groups
from ..errors import CallerError, Reason
from ..model.message import NO_ID
from ..rules.puts import PutResult
from .jobs import finished
from .lanes import Connection, Lane
from .queue_calls import GroupCalls
from .sharing import Sharing
from .streams import guarded

P = ParamSpec("P")
T = TypeVar("T")


class GroupWriter(GroupCalls):
    """Puts one group; made by `QueueManager.group`. See `inorder.GroupWriter`."""

    def __init__(self, shared: Sharing, queue: str) -> None:
        self._shared, self._queue = shared, queue
        self._writer: groups.GroupWriter | None = None
        self._lane: Lane | None = None

    @property
    def group_id(self) -> bytes:
        """The group's id, after the first put."""
        return NO_ID if self._writer is None else self._writer.group_id

    async def __aenter__(self) -> GroupWriter:
        """Begins the group, and a unit of work if the task has none."""
        seat = self._shared.seat("group")

        def enter(connection: Connection) -> groups.GroupWriter:
            return connection.group(self._queue).__enter__()

        self._writer = await self._shared.run(seat, enter)
        self._lane = seat.lane
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        lane, writer = self._begun
        await lane.exit(lambda: writer.__exit__(kind, error, trace))

    @property
    def _begun(self) -> tuple[Lane, groups.GroupWriter]:
        if self._lane is None or self._writer is None:
            raise CallerError("a group is put in its block: async with it", reason=Reason.INCOMPLETE_GROUP)
        return self._lane, self._writer

    async def _call(
        self, method: Callable[Concatenate[groups.GroupWriter, P], T], /, *given: P.args, **named: P.kwargs
    ) -> T:
        lane, writer = self._begun
        return await self._shared.on(lane, "put", lambda _: method(writer, *given, **named))

    async def put_stream(self, stream: IO[bytes], **options: Any) -> PutResult:
        """Puts a binary stream as the next message of the group, in segments; see `inorder.GroupWriter.put_stream`."""
        lane, writer = self._begun
        self._shared.seat_of(lane, "put_stream")
        guard, stop = guarded(stream)
        return await finished(lane.submit(lambda _: writer.put_stream(guard, **options)), stop)
