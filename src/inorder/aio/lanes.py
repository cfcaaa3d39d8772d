"""Lanes: connections with one thread each, which makes calls of tasks one after another; and their pool."""

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
from ..client.groups import GroupWriter
from ..client.queue import Queue
from ..client.unit_of_work import UnitOfWork
from ..errors import ConnectionBroken, ConnectionClosed, InorderError, OutcomeUnknown
from ..support.callers import Caller
from .jobs import LaneJob, finished, tell

T = TypeVar("T")
L = TypeVar("L", bound="Lane")
Connection = manager.QueueManager
LOST = (ConnectionBroken, OutcomeUnknown)
_user: ContextVar[str | None] = ContextVar("inorder.user", default=None)
gives_way: ContextVar[Callable[[], object] | None] = ContextVar("inorder.gives_way", default=None)
"""Called when this task has to wait for a connection: those that have one may go first meanwhile."""


def act_for(user: str) -> None:
    """Makes this task, and tasks that it starts later, call on behalf of a user; for servers.

    See `qm.accounts.on_behalf_of` of a connection.
    """
    _user.set(user)


class UnitBlock:
    """The block of a unit of work, which begins with the first call inside it.

    Attributes:
        lane, unit: the lane and unit after the beginning; None before.
    """

    def __init__(self) -> None:
        self.lane: Lane | None = None
        self.unit: UnitOfWork | None = None
        self._connection: Connection | None = None

    def adopt(self, lane: Lane, unit: UnitOfWork) -> None:
        """Notes that the unit has begun on a connection."""
        self.lane, self.unit, self._connection = lane, unit, lane.connection

    def begin_with(self, lane: Lane, call: Callable[[Connection], T]) -> Callable[[Connection], T]:
        """Returns a call that first begins the unit on a connection."""

        def begun(connection: Connection) -> T:
            self.adopt(lane, connection.unit_of_work().__enter__())
            return call(connection)

        return begun

    @property
    def is_begun(self) -> bool:
        """Whether the unit has begun. Raises: ConnectionBroken, its connection was lost."""
        if self.lane is not None and self.lane.connection is not self._connection:
            raise ConnectionBroken("the connection of this unit of work was lost, and the unit was backed out")
        return self.unit is not None

    async def settle(self, act: Callable[[UnitOfWork], object]) -> None:
        """Ends a unit that has begun; a cancel does not prevent it."""
        lane, unit = self.lane, self.unit
        assert lane is not None, "it has begun"
        assert unit is not None
        await lane.exit(lambda: act(unit))


def leave(unit: UnitOfWork, error: BaseException | None, writer: GroupWriter | None = None) -> None:
    """In the thread: commits, or backs out after an error; if that fails, the connection's next call backs out.

    Args:
        writer: the block of a group that has begun the unit, and ends it.

    Raises: ConnectionClosed, another task has closed the queue manager, which backed the unit out.
    """
    is_open = unit.status == "open"
    (writer or unit).__exit__(None if error is None else type(error), error, None)
    if is_open and error is None and unit.status == "backed out":
        raise ConnectionClosed("the connection was closed inside the block, and its unit of work backed out")


class Seat:
    """The connection and unit of work that a task holds.

    Attributes:
        caller: the task.
        lane: its connection, while something is open there.
        block: the block of a unit of work around its calls.
        is_known: whether later calls of the task find this object.
    """

    __slots__ = ("block", "caller", "is_known", "lane")

    def __init__(self, caller: Caller, lane: Lane | None = None) -> None:
        self.caller, self.lane, self.is_known = caller, lane, lane is not None
        self.block: UnitBlock | None = None

    def ended(self) -> None:
        """Tidies up after the end of the task."""
        if self.lane is not None:
            self.lane.tidy()

    @property
    def is_empty(self) -> bool:
        """Whether the task holds neither a connection nor a unit."""
        return self.lane is None and self.block is None

    @property
    def has_unit(self) -> bool:
        """Whether the task's calls are part of a unit of work."""
        return self.block is not None or (self.lane is not None and self.lane.has_unit)


class Lane:
    """A connection, and its thread.

    Attributes:
        seat: the seat of the task that has it; None: no task has it.
        is_out: whether it is borrowed.
        is_taking: whether its unit of work is that of a get alone, which a task is making.
        handles: the program's queue objects, with the queue of the connection that each wraps.
        is_over: whether it takes no more calls.

    `async with lane:` keeps other tasks, which may use a queue that is open here, away during a call and from a get to
    its commit. The lane becomes free at the end of that block if nothing is open on it.
    """

    def __init__(
        self,
        connect: Callable[[], Connection],
        freed: Callable[[Lane], object] | None = None,
        name: str = "inorder aio",
    ) -> None:
        self._connect, self._freed = connect, freed
        self._loop = asyncio.get_running_loop()
        self.connection: Connection | None = None
        self.seat: Seat | None = None
        self.is_out = self._has_unit = self.is_taking = self._is_untidy = False
        self._alone = asyncio.Lock()
        self.handles: weakref.WeakKeyDictionary[object, Queue] = weakref.WeakKeyDictionary()
        self._is_idle = True
        self.is_over = False
        self._under_way = 0  # calls, and blocks that hold the lane or wait for it
        self._jobs = self._start(name)
        self._no_more = weakref.finalize(self, self._jobs.put, None)  # the thread does not keep the lane alive
        self._no_more.atexit = False

    def _start(self, name: str) -> SimpleQueue[Callable[[], None] | None]:
        """Starts its thread; returns the queue from which that takes its jobs, up to a None."""
        jobs: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        threading.Thread(target=serve, args=(jobs,), name=name, daemon=True).start()
        return jobs

    async def __aenter__(self) -> None:
        self._under_way += 1
        try:
            await self._alone.acquire()
        except BaseException:
            self._ended()
            raise
        if self.seat is not None and self.seat.caller.is_over:  # the loop tells so only later
            self.leave()
            self._tidy()

    async def __aexit__(self, *_: object) -> None:
        self.is_taking = False
        self._alone.release()
        if self._is_untidy:
            self._tidy()
        self._ended()

    @property
    def has_unit(self) -> bool:
        """Whether its connection has a unit of work, other than that of a get alone."""
        return self._has_unit and not self.is_taking

    @property
    def has_queues(self) -> bool:
        """Whether calls by name have left queues open on its connection."""
        connection = self.connection
        return connection is not None and connection.internals.has_queues

    def submit(self, call: Callable[[Connection], T], *, is_revocable: bool = True) -> LaneJob[T]:
        """Submits a call to the thread, after earlier ones. Raises: ConnectionClosed."""
        if self.is_over:
            raise closed()
        self._under_way += 1
        return self.give(LaneJob(lambda: self._make(call), self._ended, self._loop, is_revocable=is_revocable))

    def give(self, job: LaneJob[T]) -> LaneJob[T]:
        """Gives the thread a job, after earlier ones."""
        self._jobs.put(job.hand_over().serve)
        return job

    async def call(self, call: Callable[[Connection], T], hurry: Callable[[], object] | None = None) -> T:
        """Makes a call in the thread and returns its result. Raises: as `finished`; ConnectionClosed."""
        return await finished(self.submit(call), hurry)

    async def exit(self, leave: Callable[[], T]) -> T:
        """Ends a block in the thread, despite a cancel; or here, once the thread has ended."""
        if not self._no_more.alive:
            return leave()
        if self.is_over:  # the thread ends the connection first
            return await finished(self.give(LaneJob(leave, lambda: None, self._loop, is_revocable=False)))
        return await finished(self.submit(lambda _: leave(), is_revocable=False))

    def post(self, call: Callable[[], object]) -> None:
        """Makes a call in the thread, without waiting for it; finalizers may call this from any thread."""
        tell(self._loop, lambda: self.is_over or self.submit(lambda _: call(), is_revocable=False))

    # --- in the thread

    def connected(self) -> Connection:
        """Returns its connection, after making it if needed. Raises: as `inorder.connect`."""
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
            if connection is not None and connection.internals.is_over:
                self.drop()
            self._is_idle = connection is None or connection.internals.is_idle
            self._has_unit = not self._is_idle and connection is not None and connection.internals.has_unit
        except ConnectionBroken:  # the next call makes another connection
            self.drop()
            self._is_idle, self._has_unit = True, False

    def drop(self) -> None:
        """In the thread: ends the connection and backs out its unit; the next call makes a new one."""
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
        """Takes the lane from its task."""
        if self.seat is not None:
            self.seat.lane = None
            self.seat = None

    def tidy(self) -> None:
        """After the end of its task: backs out its unit, and closes all but queues that the program still has.

        If another task is in a call on one of these queues, this waits, because the call may have a unit of its own.
        """
        self.leave()
        if self._alone.locked():
            self._is_untidy = True
        else:
            self._tidy()

    def _tidy(self) -> None:
        self._is_untidy = False
        if self.is_over:
            return
        kept = [one for one in self.handles.values() if not one.closed]

        def settle(connection: Connection) -> None:
            try:
                if connection.internals.has_unit:
                    connection.back_out()
                if kept:
                    connection.internals.close_all_but(kept)
                elif not connection.internals.is_idle:
                    self.drop()
            except InorderError:  # the end of the connection backs out, now or later
                self.drop()

        self.submit(settle, is_revocable=False)

    def end_waits(self) -> None:
        """Ends the wait of the running call, if it waits."""
        if self.connection is not None:
            with contextlib.suppress(InorderError):  # the connection has ended
                self.connection.end_waits()

    def end(self, *, commits: bool) -> LaneJob[None]:
        """Ends the connection and the thread after the submitted calls.

        Args:
            commits: commits an open unit of work; otherwise it is backed out.
        """
        self.is_over = True
        self.end_waits()
        return self.give(LaneJob(lambda: self._end(commits=commits), self._no_more, self._loop, is_revocable=False))


def serve(jobs: SimpleQueue[Callable[[], None] | None]) -> None:
    """In a thread: does jobs one after another, up to a None."""
    while (job := jobs.get()) is not None:
        job()
        del job  # it refers to the lane


class LanePool:
    """The pool of lanes, which are made when needed and lent in the order of requests.

    Attributes:
        all: its lanes, and those added for special purposes.

    Args:
        most: the largest number of lanes to lend.
    """

    def __init__(self, connect: Callable[[], Connection], most: int) -> None:
        self._connect, self._most = connect, most
        self._made = 0  # lanes for lending
        self.all: list[Lane] = []
        self.free: list[Lane] = []
        self._waiting: deque[asyncio.Future[Lane]] = deque()
        self.is_closed = False

    async def borrow(self) -> Lane:
        """Lends a lane to the caller alone, until its calls are over and nothing is open there.

        Raises: ConnectionClosed, the pool is closed.
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
        if give_way := gives_way.get():
            give_way()
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
        """Adds a lane that is not lent but ends with the others."""
        self.all.append(lane)
        return lane

    async def close(self, ends_well: Callable[[Lane], bool]) -> None:
        """Ends all connections and threads, with a commit if `ends_well` returns True. Raises: as the commit."""
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
    """Returns the error of a call after the end."""
    return ConnectionClosed("the connection is closed")
