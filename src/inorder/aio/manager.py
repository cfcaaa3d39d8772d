"""QueueManager for tasks, and `connect`."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Hashable
from dataclasses import replace
from types import TracebackType
from typing import IO, TYPE_CHECKING, Any, TypeVar

from ..client import manager
from ..client.groups import whole_group
from ..client.keywords import Data
from ..errors import IN_MEMORY, ConnectionBroken, ObjectInUse, Reason
from ..model.message import Descriptor, Got
from ..model.options import EVERYTHING, BrowseKeywords, GetOptions, Match, OpenKeywords, check_whole
from ..rules.gets import rank_of
from ..rules.ordering import ReadOrder
from ..rules.puts import PutResult
from ..stores.seam.protocol import LocalStore
from ..support import old_paths
from .calls import Accounts, Admin, Bulk, DeadLetters, Inspect, ManagerCalls
from .lanes import Connection
from .opened import Browsing, Entered, Group, GroupWriter, Lease, Queue, Replies, UnitOfWork, guarded
from .sharing import Sharing, joins

if TYPE_CHECKING:
    from typing_extensions import Unpack

T = TypeVar("T")
CONNECTIONS = 4
SETTLING = frozenset({"commit", "back_out", "prepare"})


def connect(
    store: str | os.PathLike[str] | LocalStore = IN_MEMORY,
    *,
    program: str | None = None,
    name: str | None = None,
    token: str | None = None,
    ca: str | os.PathLike[str] | None = None,
    certificate: str | os.PathLike[str] | None = None,
    key: str | os.PathLike[str] | None = None,
    reconnect: float | None = None,
    connections: int = CONNECTIONS,
) -> Entered[QueueManager]:
    """Connects to a queue manager: `async with connect(...) as qm`, or `qm = await connect(...)`.

    Args:
        store, program, name, token, ca, certificate, key, reconnect: as in `inorder.connect`.
        connections: the largest number of connections that the tasks share, from 1; each has a thread. They are made
            when needed.

    Raises, when it is entered or awaited: as `inorder.connect`.
    """
    check_whole("connections", connections, 1)

    def connected() -> Connection:
        return manager.connect(
            store,
            program=program,
            name=name,
            token=token,
            ca=ca,
            certificate=certificate,
            key=key,
            reconnect=reconnect,
        )

    return shared(connected().connect if store == IN_MEMORY else connected, connections)


def shared(another: Callable[[], Connection], connections: int) -> Entered[QueueManager]:
    """As `connect`, with the connections that a function makes."""
    return Entered(lambda: _connected(another, connections))


async def _connected(another: Callable[[], Connection], connections: int) -> QueueManager:
    made = QueueManager(another, connections)
    try:
        await made.begin()
    except BaseException:
        await made.internals.abandon()
        raise
    return made


class SharedInternals:
    """Calls for servers on the connections that tasks share."""

    def __init__(self, shared: Sharing) -> None:
        self._shared = shared

    async def abandon(self) -> None:
        """Ends all connections as if the program had died: open units of work are backed out (R5.6)."""
        await self._shared.end(lambda _: False)

    async def close_unused_queues(self) -> None:
        """Closes default handles on free connections that were not used since the last call of this.

        Servers call it now and then, because an open queue cannot be cleared or deleted (2042).
        """
        await self._shared.close_unused()


class QueueManager(ManagerCalls):
    """A queue manager for tasks; made by `inorder.aio.connect`. `inorder.aio` describes how tasks share it."""

    def __init__(self, another: Callable[[], Connection], connections: int) -> None:
        self._another, self._connections = another, connections
        self._shared = Sharing(another, connections)

    # --- namespaces

    @property
    def admin(self) -> Admin:
        """Administration; see `inorder.QueueManager.admin`."""
        return Admin(self)

    @property
    def accounts(self) -> Accounts:
        """Users of servers and their tokens; see `inorder.QueueManager.accounts`."""
        return Accounts(self)

    @property
    def bulk(self) -> Bulk:
        """Claims and staged rows; see `inorder.QueueManager.bulk`."""
        return Bulk(self)

    @property
    def dead(self) -> DeadLetters:
        """Dead letters; see `inorder.QueueManager.dead`."""
        return DeadLetters(self)

    @property
    def inspect(self) -> Inspect:
        """Inspection; see `inorder.QueueManager.inspect`."""
        return Inspect(self)

    @property
    def internals(self) -> SharedInternals:
        """For other parts of this package only; it may change in any release."""
        return SharedInternals(self._shared)

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            return old_paths.member(self, name)

    # --- connections, and calls on them

    def connect(self, *, connections: int | None = None) -> Entered[QueueManager]:
        """Opens another queue manager object on the same store, with its own connections."""
        if connections is not None:
            check_whole("connections", connections, 1)
        most = connections or self._connections
        return shared(self._another, most)

    async def begin(self) -> None:
        """Makes its first connection, if it has none. Raises: as `inorder.connect`."""
        await self._shared.run(self._shared.seat(), lambda _: None)

    async def _call(self, method: Callable[..., T], /, *given: Any, **named: Any) -> T:
        shared, name = self._shared, method.__name__
        seat = shared.seat_around if name in SETTLING else None  # whichever task began it
        seat = seat or shared.seat(joins(name, given, named))

        try:
            return await shared.run(seat, lambda one: method(one, *given, **named))
        except ObjectInUse:
            if not given or not await shared.let_go(given[0]):
                raise
        return await shared.run(seat, lambda one: method(one, *given, **named))

    async def _get(self, method: Callable[..., T], options: GetOptions, queue: str, /, *given: Any) -> T:
        at_once = replace(options, wait=0)
        seat = self._shared.seat("" if options.syncpoint is False or options.confirm_id else "get")

        def get(one: Connection, wait: float) -> T:
            return method(one, queue, *given, options if wait else at_once)

        try:
            return await self._shared.take(seat, queue, options, get)
        except ObjectInUse:  # another of our connections may have the queue open
            if not await self._shared.let_go(queue):
                raise
        return await self._shared.take(seat, queue, options, get)

    async def close_queue(self, name: str, *, manager: str = "") -> Reason | None:
        """Closes the default handles of a queue, on this task's connection and on all free connections.

        Returns: the warning of the task's handle, as `Queue.close`; None if it was not open.
        """
        warning = await self._call(Connection.close_queue, name, manager=manager)
        await self._shared.let_go(name)
        return warning

    async def run(self, work: Callable[[Connection], T], *, is_brief: bool = False) -> T:
        """Runs a function on a connection, in the connection's thread, and returns its result.

        Use it for several calls, or a loop. The function must leave nothing open on the connection, and must not wait.
        A cancel before its beginning revokes it; after that it runs to its end::

            names = await qm.run(lambda connection: [one.name for one in connection.queues()])

        Args:
            is_brief: whether the function takes about as long as a put or a get. Brief functions of all tasks share an
                extra connection. The loop's own thread runs one at once if the store is on this machine and no other
                program is writing to it. Otherwise the connection's thread runs the waiting ones one after another.
                One sync serves several, after which they return or raise. While one takes long, others use other
                connections. No other program can write while the function runs in the loop, so it must call only this
                connection and no other store, and must not wait for another thread.

        Raises: as the function; CallInProgress 2219, a brief function makes a call that waits.
        """
        if is_brief:
            return await self._shared.brief(work)
        return await self._shared.run(self._shared.seat("run"), work)

    async def awaited(
        self,
        queue: str,
        look: Callable[[], Awaitable[T]],
        *,
        wait: float = 0,
        match: Match = EVERYTHING,
        key: Hashable = None,
    ) -> T:
        """Repeats a function until it finds something on a queue, or the time is over; for gets made of several calls.

        If the function raises NoMessageAvailable or OrderPending, it is repeated after each change of the queue, and
        once more at the end. Meanwhile it uses no connection and no thread. It must leave nothing open, and must not
        wait itself.

        Args:
            look: makes the calls, with `run` or in its own unit of work.
            wait: seconds from now, from 0; or `FOREVER`.
            match: the match of the get; gets that name a message try first (R3.27).
            key: functions with the same key would find the same, so only one of them tries at a time; None: unique.

        Returns: the result of `look`.

        Raises: as the last call of `look`.
        """

        async def once(found: Callable[[], object]) -> T:
            try:
                answer = await look()
            except ObjectInUse:  # another of our connections may have the queue open
                if not await self._shared.let_go(queue):
                    raise
                answer = await look()
            found()
            return answer

        if wait == 0:
            return await once(lambda: None)
        options = GetOptions(match=match, wait=wait)
        key = object() if key is None else (key, self._shared.own_lane)  # as in `take`
        return await self._shared.awaited(queue, key, rank_of(options), options.wait, once)

    # --- blocks, loops and other calls that keep a connection

    def unit_of_work(self) -> UnitOfWork:
        """Returns a block whose puts and gets form one unit: its end commits them, an exception backs them out.

        The unit belongs to the task that began it. A put or get of a task that was started in it raises UnitOfAnother.
        """
        return UnitOfWork(self._shared, self)

    async def lease(self, *, seconds: float = 30.0, user: str | None = None, most: int | None = None) -> Lease:
        """Begins a unit of work with a token and a deadline; see `inorder.QueueManager.lease`."""
        return Lease(self._shared, await self._call(Connection.lease, seconds=seconds, user=user, most=most), user)

    async def resume_lease(self, token: str, *, user: str | None = None) -> Lease:
        """Returns the lease with this token; see `inorder.QueueManager.resume_lease`."""
        return Lease(self._shared, await self._call(Connection.resume_lease, token, user=user), user)

    def open(self, name: str, *, dynamic_name: str = "*", **options: Unpack[OpenKeywords]) -> Entered[Queue]:
        """Opens a queue: `async with qm.open(...) as queue`, or `queue = await qm.open(...)`.

        Until it is closed, it keeps a connection, which the task's other calls use too.
        """
        return Entered(lambda: self._open(name, dynamic_name, options))

    async def _open(self, name: str, dynamic_name: str, options: OpenKeywords) -> Queue:
        handle = await self._call(Connection.open, name, dynamic_name=dynamic_name, **options)
        seat = self._shared.seat_around
        if seat is None or seat.lane is None:  # otherwise the task holds the connection of its open queue
            raise ConnectionBroken("the connection was lost while the queue was opened")
        return Queue(self._shared, seat.lane, handle)

    def group(self, queue: str) -> GroupWriter:
        """Returns a block that puts one group in logical order; see `inorder.GroupWriter`."""
        return GroupWriter(self._shared, queue)

    def browse(self, queue: str, *, after: str | None = None, **keywords: Unpack[BrowseKeywords]) -> Browsing:
        """Copies every suitable message, in an `async for`; see `inorder.QueueManager.browse`."""
        return Browsing(self._shared, None, lambda one: one.browse(queue, after=after, **keywords), after)

    def get_group(
        self,
        queue: str,
        *,
        wait: float = 0,
        match: Match = EVERYTHING,
        read_order: ReadOrder | None = None,
    ) -> Group:
        """Gets a complete group in order, or one message in no group, in an `async for`.

        See `inorder.QueueManager.get_group`. Leaving the loop early backs the group out, at the latest when the task
        ends; with `contextlib.aclosing` at once.
        """
        return Group(self._shared, queue, whole_group(wait=wait, match=match, read_order=read_order))

    async def request(self, queue: str, body: Data, *, timeout: float, **fields: Unpack[Descriptor]) -> Got:
        """Puts a request and returns the reply to it; see `inorder.QueueManager.request`."""
        async for reply in self.replies(queue, body, timeout=timeout, count=1, **fields):
            return reply
        raise AssertionError("a loop over one reply ends with it, or raises")

    def replies(
        self, queue: str, body: Data, *, timeout: float, count: int | None = None, **fields: Unpack[Descriptor]
    ) -> Replies:
        """Returns an iterator that puts a request in its first step and yields the replies as they arrive.

        See `inorder.QueueManager.replies`.
        """
        return Replies(self._shared, lambda one: one.replies(queue, body, timeout=timeout, count=count, **fields))

    async def put_stream(self, queue: str, stream: IO[bytes], **options: Any) -> PutResult:
        """Puts a binary stream as one logical message in segments, or as a group; see
        `inorder.client.groups.put_stream`.

        The connection's thread reads the stream. A cancel stops it, and nothing is put.
        """
        guard, stop = guarded(stream)
        seat = self._shared.seat("put_stream")
        return await self._shared.run(seat, lambda one: one.put_stream(queue, guard, **options), hurry=stop)

    async def get_stream(
        self,
        queue: str,
        stream: IO[bytes],
        *,
        wait: float = 0,
        match: Match = EVERYTHING,
        as_group: bool = False,
    ) -> Got:
        """Gets one logical message, or a group, into a binary stream; see `inorder.client.groups.get_stream`.

        The connection's thread writes the stream. A cancel stops it, and no message is removed.
        """
        guard, stop = guarded(stream)
        options = GetOptions(wait=wait, match=match, logical=True, all_messages=as_group)

        def call(one: Connection, wait: float) -> Got:
            return one.get_stream(queue, guard, wait=wait, match=match, as_group=as_group)

        return await self._shared.take(self._shared.seat("get_stream"), queue, options, call, hurry=stop)

    # --- the end

    async def close(self) -> None:
        """Ends all connections. The task's unit of work is committed (R5.6), those of other tasks are backed out.

        The block of such a unit ends with ConnectionClosed.

        Harmless when repeated.
        """
        seat = self._shared.seat_around
        mine = seat.lane if seat is not None and seat.caller.admits_caller() else None
        await self._shared.end(lambda lane: lane is mine or not lane.is_out)

    async def __aenter__(self) -> QueueManager:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await (self.close() if error is None else self.internals.abandon())

    @property
    def connections_in_use(self) -> int:
        """The number of connections that are in a call, or that a task or an open queue holds."""
        return sum(lane.is_out for lane in self._shared.lanes.all)

    def __repr__(self) -> str:
        state = f"{self.connections_in_use} of {self._connections} connections in use"
        return f"<queue manager for tasks, {'closed' if self._shared.lanes.is_closed else state}>"
