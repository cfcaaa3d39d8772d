"""Objects that tasks open or begin: queues, units of work, groups, loops over messages, leases."""

from __future__ import annotations

import itertools
import weakref
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Generator, Iterator
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from types import TracebackType
from typing import IO, TYPE_CHECKING, Any, Final, Generic, TypeVar, cast

from ..client import browsing, groups, leases, queue, queue_internals, requesting, unit_of_work
from ..client.keywords import BROWSE_FIRST, BROWSE_NEXT, get_options
from ..errors import CallerError, NoMessageAvailable, Reason, UnitNotFound
from ..model.message import NO_ID, Got
from ..model.options import DEFAULT_GET, BrowseKeywords, GetKeywords, GetOptions, OpenOptions
from ..rules.grouping import Numbers
from ..rules.puts import PutResult
from ..support import old_paths
from .calls import AwaitedNamespace, Calls, awaited
from .lanes import Connection, Lane, Seat, UnitBlock, leave
from .sharing import Sharing, joins

if TYPE_CHECKING:
    from typing_extensions import Unpack

T = TypeVar("T")
PAGE: Final = 100  # messages of a group that are fetched at once


E = TypeVar("E", bound=AbstractAsyncContextManager[Any])


class Entered(Generic[E]):
    """An object to await or to enter: `async with` makes it and ends it."""

    def __init__(self, make: Callable[[], Awaitable[E]]) -> None:
        self._make = make
        self._made: E | None = None

    def __await__(self) -> Generator[Any, None, E]:
        return self._make().__await__()

    async def __aenter__(self) -> E:
        self._made = await self._make()
        await self._made.__aenter__()
        return self._made

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._made is not None, "it was entered"
        await self._made.__aexit__(kind, error, trace)


class UnitOfWork:
    """A unit of work; made by `QueueManager.unit_of_work`.

    Its first call borrows a connection. Until it has put or got something, a waiting get uses none.
    """

    def __init__(self, shared: Sharing, manager: object) -> None:
        self._shared, self._block = shared, UnitBlock()
        self.manager: Any = manager
        self.outer: Callable[[], unit_of_work.CurrentUnit | None] = unit_of_work.nothing
        self._seat: Seat | None = None
        self._status: unit_of_work.Status = "new"

    @classmethod
    def lent(cls, manager: Any, lane: Lane, unit: unit_of_work.UnitOfWork) -> UnitOfWork:
        """Makes the open unit of a connection the one of this task; returns it."""
        made = cls(manager._shared, manager)
        made._block.adopt(lane, unit)
        made._seat = manager._shared.sit(lane, made._block)
        unit_of_work.enter(made)
        return made

    @property
    def status(self) -> unit_of_work.Status:
        """One of "new", "open", "committed", "backed out" or "prepared"."""
        return self._status if self._block.unit is None else self._block.unit.status

    async def __aenter__(self) -> UnitOfWork:
        """Begins the unit. Raises: CallerError 2128 UOW_IN_PROGRESS, the task has one already."""
        if self.status != "new":
            raise CallerError(f"this unit of work is {self.status}: make another", reason=Reason.UOW_NOT_AVAILABLE)
        seat = self._shared.seat()
        if seat.block is not None:  # otherwise the connection checks it, after a back out that it still owes
            raise CallerError(
                "the task has a unit of work already: commit it or back it out first", reason=Reason.UOW_IN_PROGRESS
            )
        seat.block, self._seat, self._status = self._block, seat, "open"
        self._shared.keep(seat)
        if seat.lane is not None:  # the calls of an open queue, for example, join the unit
            try:
                await self._shared.run(seat, lambda _: None)
            except BaseException:  # `__aexit__` will not be called
                self._leave()
                self._status = "new"
                raise
        unit_of_work.enter(self)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Commits, or backs out after an exception; see `inorder.UnitOfWork`.

        Raises: ConnectionClosed, another task has closed the queue manager, which backed the unit out.
        """
        unit_of_work.leave(self)
        self._leave()
        if self.status == "open":
            await self._settle("committed" if error is None else "backed out", lambda unit: leave(unit, error))

    @property
    def warning(self) -> Reason | None:
        """After a commit: see `inorder.UnitOfWork`."""
        return None if self._block.unit is None else self._block.unit.warning

    async def commit(self) -> Reason | None:
        """Makes its puts visible and its gets final (R5.2). Returns the `warning`."""
        await self._settle("committed", unit_of_work.UnitOfWork.commit)
        return self.warning

    async def back_out(self, *, delay: float = 0, error: str = "") -> None:
        """Undoes its puts and returns messages got to their places; see `inorder.UnitOfWork`."""
        unit_of_work.later_of(delay, error)  # raises for bad arguments first
        await self._settle("backed out", lambda unit: unit.back_out(delay=delay, error=error))

    async def prepare(self, name: str) -> None:
        """Prepares the unit under a name; it then waits, also over a restart, until it is settled (R5.10).

        Raises: UnitExists, the name is taken; UnitNotFound, the unit holds nothing.
        """
        await self._settle("prepared", lambda unit: unit.prepare(name))

    async def _settle(self, status: unit_of_work.Status, act: Callable[[unit_of_work.UnitOfWork], object]) -> None:
        if self.status != "open":
            raise UnitNotFound(f"this unit of work is {self.status}")
        if self._block.unit is not None:
            await self._block.settle(act)
        elif status == "prepared":
            raise UnitNotFound("the unit of work has no puts or gets to prepare")
        else:
            self._status = status
        self._leave()

    def _leave(self) -> None:
        """Ends the block for later calls of the task."""
        if self._seat is not None and self._seat.block is self._block:
            self._seat.block = None

    def __repr__(self) -> str:
        return f"<unit of work, {self.status}>"


class AwaitedQueueInternals(AwaitedNamespace):
    """Calls of an open queue for other parts of this package."""

    _of = queue_internals.QueueInternals
    release_lock = awaited(queue_internals.QueueInternals.release_lock)


class Queue(Calls):
    """An open queue; made by `QueueManager.open`.

    Its calls use the connection on which it was opened. Other tasks may use it too; their calls run one by one.
    """

    def __init__(self, shared: Sharing, lane: Lane, opened: queue.Queue) -> None:
        self._shared, self._lane, self._handle = shared, lane, opened
        lane.handles[self] = opened
        weakref.finalize(self, lane.post, lambda: _close(opened)).atexit = False

    @property
    def name(self) -> str:
        """The name of the queue; after opening a model, the name of the new queue."""
        return self._handle.name

    @property
    def options(self) -> OpenOptions:
        """The options with which it is open."""
        return self._handle.options

    @property
    def closed(self) -> bool:
        """Whether it is closed."""
        return self._handle.closed

    put = awaited(queue.Queue.put)
    put_many = awaited(queue.Queue.put_many)
    end_group = awaited(queue.Queue.end_group)

    async def get(self, options: GetOptions | None = None, **keywords: Unpack[GetKeywords]) -> Got:
        """Removes one message and returns it. Give options as keywords, or as `GetOptions`."""
        return await self._get(queue.Queue.get, get_options(keywords, options, DEFAULT_GET))

    async def get_many(
        self, count: int, options: GetOptions | None = None, **keywords: Unpack[GetKeywords]
    ) -> list[Got]:
        """Removes up to `count` messages in one step, as that many gets would; raises if it finds none."""
        return await self._get(queue.Queue.get_many, get_options(keywords, options, DEFAULT_GET), count)

    async def browse_first(self, options: GetOptions | None = None, **keywords: Unpack[BrowseKeywords]) -> Got:
        """Copies the first suitable message and puts the cursor on it. Errors as `get`, and 2036."""
        return await self._get(queue.Queue.browse_first, get_options(keywords, options, BROWSE_FIRST))

    async def browse_next(self, options: GetOptions | None = None, **keywords: Unpack[BrowseKeywords]) -> Got:
        """Copies the next suitable message after the cursor, and moves the cursor to it."""
        return await self._get(queue.Queue.browse_next, get_options(keywords, options, BROWSE_NEXT))

    async def browse_cursor(self, options: GetOptions | None = None, **keywords: Unpack[BrowseKeywords]) -> Got:
        """Copies the message under the cursor again. Raises NoMessageUnderCursor 2034 if it is gone."""
        return await self._get(queue.Queue.browse_cursor, get_options(keywords, options, BROWSE_FIRST))

    leave_group = awaited(queue.Queue.leave_group)
    unlock = awaited(queue.Queue.unlock)
    browse_token = awaited(queue.Queue.browse_token)
    resume = awaited(queue.Queue.resume)
    attributes = awaited(queue.Queue.attributes)
    status = awaited(queue.Queue.status)
    set = awaited(queue.Queue.set)
    close = awaited(queue.Queue.close)
    confirm_put = awaited(queue.Queue.confirm_put)
    confirm_get = awaited(queue.Queue.confirm_get)
    browse_and_lock = awaited(queue.Queue.browse_and_lock)
    unique_ids = awaited(queue.Queue.unique_ids)
    delete = awaited(queue.Queue.delete)
    undo = awaited(queue.Queue.undo)

    @property
    def internals(self) -> AwaitedQueueInternals:
        """For other parts of this package only; it may change in any release."""
        return AwaitedQueueInternals(self)

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            return old_paths.member(self, name)

    async def _call(self, method: Callable[..., T], /, *given: Any, **named: Any) -> T:
        self._check()
        part = joins(method.__name__, given, named)
        return await self._shared.on(self._lane, part, lambda: method(self._handle, *given, **named))

    async def _get(self, method: Callable[..., T], options: GetOptions, /, *given: Any) -> T:
        self._check()
        outside = options.syncpoint is False or options.confirm_id or options.browse
        seat, at_once = self._shared.seat_of(self._lane, "" if outside else "get"), replace(options, wait=0)

        def call(_: Connection, wait: float) -> T:
            return method(self._handle, *given, options if wait else at_once)

        return await self._shared.take(seat, self.name, options, call)

    def _check(self) -> None:
        """Raises: ConnectionClosed, its connection was lost; another task may have a unit on the new one."""
        self._handle.internals.session.check()

    def browse(
        self, options: GetOptions | None = None, *, after: str | None = None, **keywords: Unpack[BrowseKeywords]
    ) -> Browsing:
        """Copies every suitable message, in an `async for`; moves this handle's cursor. See `inorder.Queue.browse`."""

        def begin(_: Connection) -> browsing.Browsing:
            return self._handle.browse(options, after=after, **keywords)

        return Browsing(self._shared, self._lane, begin, after)

    async def __aenter__(self) -> Queue:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        opened = self._handle
        if not opened.closed:
            await self._lane.exit(lambda: opened.__exit__(kind, error, trace))

    def __repr__(self) -> str:
        return repr(self._handle)


def _close(opened: queue.Queue) -> None:
    if not opened.closed and not opened.internals.session.closed:
        opened.close()


class GroupWriter(Calls):
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
        self._writer = await self._shared.run(seat, lambda one: one.group(self._queue).__enter__())
        self._lane = seat.lane
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        lane, writer = self._begun
        unit = writer.own_unit
        await lane.exit(lambda: leave(unit, error, writer) if unit else writer.__exit__(kind, error, trace))

    @property
    def _begun(self) -> tuple[Lane, groups.GroupWriter]:
        if self._lane is None or self._writer is None:
            raise CallerError("the group must be entered first, with async with", reason=Reason.INCOMPLETE_GROUP)
        return self._lane, self._writer

    put = awaited(groups.GroupWriter.put)

    async def _call(self, method: Callable[..., T], /, *given: Any, **named: Any) -> T:
        lane, writer = self._begun
        return await self._shared.on(lane, "put", lambda: method(writer, *given, **named))

    async def put_stream(self, stream: IO[bytes], **options: Any) -> PutResult:
        """Puts a binary stream as the next message of the group, in segments; see `inorder.GroupWriter.put_stream`."""
        lane, writer = self._begun
        guard, stop = guarded(stream)
        return await self._shared.on(lane, "put_stream", lambda: writer.put_stream(guard, **options), stop)


class Stopped(Exception):
    """Raised in a thread by a guarded stream after its task was cancelled."""


def guarded(stream: IO[bytes]) -> tuple[IO[bytes], Callable[[], None]]:
    """Returns a stream for a thread, and a function after which each use of the stream raises `Stopped`."""
    guard = _Guard(stream)
    return cast("IO[bytes]", guard), guard.stop


class _Guard:
    def __init__(self, stream: IO[bytes]) -> None:
        self._stream, self._is_stopped = stream, False

    def stop(self) -> None:
        self._is_stopped = True

    def __getattr__(self, name: str) -> Any:
        if self._is_stopped:
            raise Stopped
        return getattr(self._stream, name)


class Browsing(AsyncIterator[Got]):
    """An iterator over the messages of a browse; made by `browse`. See `inorder.Browsing`."""

    def __init__(
        self,
        shared: Sharing,
        lane: Lane | None,
        begin: Callable[[Connection], browsing.Browsing],
        after: str | None,
    ) -> None:
        self._shared, self._lane, self._begin, self._after = shared, lane, begin, after
        self._loop: browsing.Browsing | None = None

    async def __anext__(self) -> Got:
        if self._lane is None:
            seat = self._shared.seat()
            found = await self._shared.run(seat, self._next)
            self._lane = seat.lane
            if seat.lane is not None and self._loop is not None:  # the collector must not end it in another thread
                weakref.finalize(self, seat.lane.post, self._loop.close).atexit = False
        else:
            lane = self._lane
            found = await self._shared.on(lane, "", lambda: self._next(lane.connected()))
        if found is None:
            raise StopAsyncIteration
        return found

    def _next(self, connection: Connection) -> Got | None:
        if self._loop is None:
            self._loop = self._begin(connection)
        return next(self._loop, None)

    async def aclose(self) -> None:
        """Ends the loop early. Harmless when repeated."""
        if self._lane is not None and self._loop is not None:
            await self._lane.exit(self._loop.close)

    @property
    def token(self) -> str | None:
        """The current or last position, for `browse(..., after=token)` (B-41); None in a relaxed browse."""
        return self._after if self._loop is None else self._loop.token

    @property
    def awaits(self) -> Numbers | None:
        """The next member of the group that it is inside (B-44), or None. See `inorder.Browsing.awaits`."""
        return None if self._loop is None else self._loop.awaits


class Group(AsyncIterator[Got]):
    """An iterator that gets a complete group; made by `QueueManager.get_group`.

    Outside a unit of work it begins one, which is committed when the loop asks for a message after the last.
    """

    def __init__(self, shared: Sharing, queue: str, options: GetOptions) -> None:
        self._shared, self._queue, self._options = shared, queue, options
        self._lane: Lane | None = None
        self._block = UnitBlock()
        self._messages: Iterator[Got] = iter(())
        self._page: deque[Got] = deque()
        self._has_more = self._is_new = True

    async def __anext__(self) -> Got:
        if self._is_new:
            await self._begin()
        elif not self._page and self._has_more and self._lane is not None:
            self._keep(await self._shared.on(self._lane, "get_group", self._next_page))
        if not self._page:
            await self._end(None)
            raise StopAsyncIteration
        return self._page.popleft()

    async def _begin(self) -> None:
        def take(connection: Connection, wait: float) -> list[Got]:
            self._messages = connection.get_group(
                self._queue, wait=wait, match=self._options.match, read_order=self._options.read_order
            )
            return self._next_page()

        seat = self._shared.seat("get_group")
        options = replace(self._options, syncpoint=None)  # `take` puts it in a unit
        page = await self._shared.take(seat, self._queue, options, take, self._block)
        self._is_new, self._lane = False, seat.lane
        self._keep(page)

    def _next_page(self) -> list[Got]:
        return list(itertools.islice(self._messages, PAGE))

    def _keep(self, page: list[Got]) -> None:
        self._page.extend(page)
        self._has_more = len(page) == PAGE

    async def _end(self, error: BaseException | None) -> None:
        block, self._block = self._block, UnitBlock()
        if block.unit is not None:
            await block.settle(lambda unit: leave(unit, error))

    async def aclose(self) -> None:
        """Ends the loop early; the messages got return to their places. Harmless when repeated."""
        self._page.clear()
        self._is_new = self._has_more = False
        await self._end(GeneratorExit())

    def __del__(self) -> None:
        lane, unit = self._block.lane, self._block.unit
        if lane is not None and unit is not None:
            lane.post(lambda: leave(unit, GeneratorExit()))


class Replies(AsyncIterator[Got]):
    """An iterator over the replies to one request, as they arrive; made by `QueueManager.replies`."""

    def __init__(self, shared: Sharing, ask: Callable[[Connection], requesting.Replies]) -> None:
        self._shared, self._ask = shared, ask
        self._replies: requesting.Replies | None = None

    @property
    def message_id(self) -> bytes | None:
        """The request's message id, once it was put; else None."""
        return None if self._replies is None else self._replies.message_id

    async def __anext__(self) -> Got:
        lane = self._shared.asking()
        if self._replies is None:
            self._replies = await lane.call(self._ask)
        replies = self._replies

        def now(_: Connection) -> Got | None:
            try:
                return replies.next_within(0)
            except StopIteration:
                return None

        async def look() -> Got:
            found = await lane.call(now)
            if found is None:
                raise NoMessageAvailable("no reply is there yet")
            return found

        try:
            if wait := replies.left:
                return await self._shared.awaited(replies.reply_queue, replies, 0, wait, lambda _: look())
        except NoMessageAvailable:  # time is over: the next call ends the loop or raises
            pass
        found = await lane.call(now)
        if found is None:
            raise StopAsyncIteration
        return found


class Lease:
    """A lease; made by `QueueManager.lease` and `QueueManager.resume_lease`.

    Attributes:
        token, name, user, ends_at: as in `inorder.Lease`.
    """

    def __init__(self, shared: Sharing, lease: leases.Lease, user: str | None) -> None:
        self._shared, self._as = shared, user
        self.token, self.name, self.user, self.ends_at = lease.token, lease.name, lease.user, lease.ends_at

    async def run(self, call: Callable[[Connection], T]) -> T:
        """Runs a function in the lease, on the connection's thread: `lambda qm: qm.get("Q")`; returns its result.

        Raises: LeaseOver 9060; as `call`, after which the lease stays open.
        """
        return await self._on(lambda lease, connection: _inside(lease, connection, call))

    async def commit(self) -> None:
        """Makes its puts visible and its gets final in one step. Raises: LeaseOver 9060."""
        await self._on(lambda lease, _: lease.commit())

    async def back_out(self) -> None:
        """Undoes its puts and returns messages got to their places. Raises: LeaseOver 9060."""
        await self._on(lambda lease, _: lease.back_out())

    async def extend(self, seconds: float) -> float:
        """Sets the deadline to `seconds` from now and returns it. Raises: LeaseOver 9060; ArgumentError."""
        self.ends_at = await self._on(lambda lease, _: lease.extend(seconds))
        return self.ends_at

    async def _on(self, act: Callable[[leases.Lease, Connection], T]) -> T:
        def call(connection: Connection) -> T:
            return act(connection.resume_lease(self.token, user=self._as), connection)

        return await self._shared.run(self._shared.seat(), call)

    def __repr__(self) -> str:
        return f"<lease {self.name}>"


def _inside(lease: leases.Lease, connection: Connection, call: Callable[[Connection], T]) -> T:
    with lease:
        return call(connection)
