"""Lanes: connections with a thread each, which make the calls of tasks one after another; and the pool of them."""

from __future__ import annotations

import asyncio
import contextlib
import threading
import weakref
from collections import deque
from collections.abc import Callable
from contextvars import ContextVar
from queue import SimpleQueue
from typing import TypeVar

from ..client import manager
from ..client.unit_of_work import UnitOfWork
from ..errors import ConnectionBroken, ConnectionClosed, InorderError, OutcomeUnknown
from ..support.callers import Caller
from .jobs import Job, finished, tell

T = TypeVar("T")
L = TypeVar("L", bound="Lane")
Connection = manager.QueueManager
LOST = (ConnectionBroken, ConnectionClosed, OutcomeUnknown)
_user: ContextVar[str | None] = ContextVar("inorder.user", default=None)


def act_for(user: str) -> None:
    """Has this task, and tasks that it starts from now on, make all calls on behalf of a user.

    For servers. What that means: `qm.accounts.on_behalf_of` of a connection.
    """
    _user.set(user)


class UnitBlock:
    """The block of a unit of work: calls in it are part of the unit, which begins with the first.

    Attributes:
        lane, unit: where it has begun; None: it has not.
    """

    def __init__(self) -> None:
        self.lane: Lane | None = None
        self.unit: UnitOfWork | None = None
        self._connection: Connection | None = None

    def adopt(self, lane: Lane, unit: UnitOfWork) -> None:
        """It has begun on a connection."""
        self.lane, self.unit, self._connection = lane, unit, lane.connection

    def begin_with(self, lane: Lane, call: Callable[[Connection], T]) -> Callable[[Connection], T]:
        """A call that begins the unit on a connection first."""

        def begun(connection: Connection) -> T:
            self.adopt(lane, connection.unit_of_work().__enter__())
            return call(connection)

        return begun

    @property
    def is_begun(self) -> bool:
        """Whether it has a connection. Raises: ConnectionBroken, it has lost that."""
        if self.lane is not None and self.lane.connection is not self._connection:
            raise ConnectionBroken("the connection of this unit of work was lost, and what it had done is backed out")
        return self.unit is not None

    async def settle(self, act: Callable[[UnitOfWork], object]) -> None:
        """Ends the unit, which has begun, whatever comes."""
        lane, unit = self.lane, self.unit
        assert lane is not None, "it has begun"
        assert unit is not None
        await lane.exit(lambda: act(unit))


def leave(unit: UnitOfWork, error: BaseException | None) -> None:
    """In the thread: commits, or with an error backs out; if that fails, the connection's next call does it."""
    unit.__exit__(None if error is None else type(error), error, None)


class Seat:
    """What a task holds of a queue manager.

    Attributes:
        caller: the task.
        lane: the connection that it has, as long as that holds something.
        block: the block of a unit of work in which its calls stand.
        is_known: later calls of the task find it.
    """

    __slots__ = ("block", "caller", "is_known", "lane")

    def __init__(self, caller: Caller, lane: Lane | None = None) -> None:
        self.caller, self.lane, self.is_known = caller, lane, lane is not None
        self.block: UnitBlock | None = None

    def ended(self) -> None:
        """Its task has."""
        if self.lane is not None:
            self.lane.tidy()

    @property
    def is_empty(self) -> bool:
        """Whether it holds nothing."""
        return self.lane is None and self.block is None

    @property
    def has_unit(self) -> bool:
        """Whether its calls are part of a unit of work."""
        return self.block is not None or (self.lane is not None and self.lane.has_unit)


class Lane:
    """A connection, and its thread.

    Attributes:
        seat: of the task that has it; None: nobody has, or what is open there is not a task's.
        is_out: it is not free.
        has_unit: its connection has a unit of work that has put or got something.
        handles: queues that are open on it, as the program has them.
        is_over: nothing more is submitted.

    `async with lane:` keeps other tasks away during a call, and from a get to its commit: they may use a queue that is
    open here. The lane is not free before that block has ended, and is free afterwards if nothing is open on it.
    """

    def __init__(
        self,
        connect: Callable[[], Connection],
        freed: Callable[[Lane], object] | None = None,
        name: str = "inorder aio",
    ) -> None:
        self._connect, self._freed = connect, freed
        self._loop = asyncio.get_running_loop()
        self._jobs: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self.connection: Connection | None = None
        self.seat: Seat | None = None
        self.is_out = self.has_unit = False
        self._alone = asyncio.Lock()
        self.handles: weakref.WeakSet[object] = weakref.WeakSet()
        self._is_idle = True
        self.is_over = False
        self._under_way = 0  # calls, and blocks that hold the lane or wait for it
        threading.Thread(target=_serve, args=(self._jobs,), name=name, daemon=True).start()
        self._no_more = weakref.finalize(self, self._jobs.put, None)  # the thread does not keep it
        self._no_more.atexit = False

    async def __aenter__(self) -> None:
        self._under_way += 1
        try:
            await self._alone.acquire()
        except BaseException:
            self._ended()
            raise

    async def __aexit__(self, *_: object) -> None:
        self._alone.release()
        self._ended()

    @property
    def has_queues(self) -> bool:
        """Whether calls by name have left queues open on its connection."""
        connection = self.connection
        return connection is not None and connection.internals.has_queues

    def submit(self, call: Callable[[Connection], T], *, is_revocable: bool = True) -> Job[T]:
        """Has its thread make a call, after those that were submitted before. Raises: ConnectionClosed."""
        if self.is_over:
            raise closed()
        self._under_way += 1
        return self.give(Job(lambda: self._make(call), self._ended, self._loop, is_revocable=is_revocable))

    def give(self, job: Job[T]) -> Job[T]:
        """Gives its thread a job, after those before it."""
        self._jobs.put(job.hand_over().serve)
        return job

    async def call(self, call: Callable[[Connection], T], hurry: Callable[[], object] | None = None) -> T:
        """What a call answers. Raises: as `finished`; ConnectionClosed."""
        return await finished(self.submit(call), hurry)

    async def exit(self, leave: Callable[[], T]) -> T:
        """Has its thread end a block, whatever comes; or does it here, if there is nothing left to end."""
        return leave() if self.is_over else await finished(self.submit(lambda _: leave(), is_revocable=False))

    def post(self, call: Callable[[], object]) -> None:
        """Has its thread make a call that nobody awaits; from any thread, as finalizers may run in any."""
        tell(self._loop, lambda: self.is_over or self.submit(lambda _: call(), is_revocable=False))

    # --- in the thread

    def connected(self) -> Connection:
        """Its connection, made if it has none. Raises: as `inorder.connect`."""
        if self.connection is None:
            self.connection = self._connect()
        return self.connection

    def _make(self, call: Callable[[Connection], T]) -> T:
        connection, user = self.connection or self.connected(), _user.get()
        try:
            if user is None:
                return call(connection)
            with connection.accounts.on_behalf_of(user):
                return call(connection)
        except LOST:
            self.drop()
            raise
        finally:
            self._note()

    def _note(self) -> None:
        connection = self.connection
        try:
            self._is_idle = connection is None or connection.internals.is_idle
            self.has_unit = not self._is_idle and connection is not None and connection.inspect.has_unit
        except ConnectionBroken:  # it was lost, and the next call has another
            self.drop()
            self._is_idle, self.has_unit = True, False

    def drop(self) -> None:
        """In the thread: the next call has a new connection; what was open on this one is backed out."""
        with contextlib.suppress(InorderError):
            self._end(commits=False)

    def _end(self, *, commits: bool) -> None:
        connection, self.connection = self.connection, None
        if connection is not None:
            (connection.close if commits else connection.internals.abandon)()

    # --- in the loop

    def _ended(self) -> None:
        self._under_way -= 1
        if self.is_out and self._is_idle and not self._under_way:
            self.leave()
            self.is_out = False
            if self._freed is not None:
                self._freed(self)

    def leave(self) -> None:
        """The task has it no more."""
        if self.seat is not None:
            self.seat.lane = None
            self.seat = None

    def tidy(self) -> None:
        """Its task has ended: what it left open is backed out and closed, but for queues that the program still has."""
        self.leave()
        if self.is_over:
            return
        handles = self.handles

        def settle(connection: Connection) -> None:
            if connection.inspect.has_unit:
                connection.back_out()
            if not connection.internals.is_idle and not handles:
                self.drop()

        self.submit(settle, is_revocable=False)

    def end_waits(self) -> None:
        """Ends the wait of the call that is under way, if it waits."""
        if self.connection is not None:
            with contextlib.suppress(InorderError):  # it has ended
                self.connection.end_waits()

    def end(self, *, commits: bool) -> Job[None]:
        """Has the connection ended after the calls that were submitted, and the thread with it.

        Args:
            commits: its unit of work, if it has one, is committed; else it is backed out.
        """
        self.is_over = True
        self.end_waits()
        job = self.give(Job(lambda: self._end(commits=commits), lambda: None, self._loop, is_revocable=False))
        self._no_more()
        return job


def _serve(jobs: SimpleQueue[Callable[[], None] | None]) -> None:
    while (job := jobs.get()) is not None:
        job()
        del job  # it holds the lane


class LanePool:
    """The pool: some lanes, made when they are needed, and given in the order of requests.

    Attributes:
        all: these, and those that others have made for what they do beside.

    Args:
        most: so many are lent at most.
    """

    def __init__(self, connect: Callable[[], Connection], most: int) -> None:
        self._connect, self._most = connect, most
        self._made = 0  # to be borrowed: there are others, too
        self.all: list[Lane] = []
        self.free: list[Lane] = []
        self._waiting: deque[asyncio.Future[Lane]] = deque()
        self.is_closed = False

    async def borrow(self) -> Lane:
        """One for the caller alone, until what is made on it is over and nothing is open there.

        Raises: ConnectionClosed, there will be none any more.
        """
        if self.is_closed:
            raise closed()
        if self.free:
            lane = self.free.pop()
        elif self._made < self._most:
            self._made += 1
            lane = self.add(Lane(self._connect, self._has_come_back))
        else:
            lane = await self._next()
        lane.is_out = True
        return lane

    async def _next(self) -> Lane:
        waiting = asyncio.get_running_loop().create_future()
        self._waiting.append(waiting)
        try:
            lane: Lane = await waiting
        except asyncio.CancelledError:
            if waiting.done() and not waiting.cancelled() and waiting.exception() is None:
                self._has_come_back(waiting.result())
            raise
        return lane

    def _has_come_back(self, lane: Lane) -> None:
        while self._waiting:
            waiting = self._waiting.popleft()
            if not waiting.done():
                waiting.set_result(lane)
                return
        self.free.append(lane)

    def add(self, lane: L) -> L:
        """One that is not lent, and ends with the others."""
        self.all.append(lane)
        return lane

    async def close(self, ends_well: Callable[[Lane], bool]) -> None:
        """Ends all connections, and their threads. Raises: what the commit of one that ends well raises."""
        self.is_closed = True
        for waiting in self._waiting:
            if not waiting.done():
                waiting.set_exception(closed())
        errors = []
        for job in [lane.end(commits=ends_well(lane)) for lane in self.all]:
            try:
                await finished(job)
            except InorderError as error:
                errors.append(error)
        if errors:
            raise errors[0]


def closed() -> ConnectionClosed:
    """The error of a call after the end."""
    return ConnectionClosed("the connection is closed")
