"""The shared state of the tasks of one loop: connections, the task that has each, and waiting tasks.

A task borrows a connection for each call, and keeps it while something of the task is open there (`Seat`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Hashable, Iterable, Mapping
from contextvars import ContextVar
from dataclasses import replace
from typing import Any, TypeVar

from ..client.unit_of_work import UnitOfWork
from ..errors import CallerError, Reason, UnitOfAnother, forked
from ..model.options import GetOptions, PutOptions
from ..rules.gets import rank_of
from ..support import forks
from ..support.callers import Caller
from ..support.clock import Clock
from .brief import BriefLane
from .jobs import finished
from .lanes import Connection, Lane, LanePool, Seat, UnitBlock, closed, leave
from .waiting import NOTHING, QueueWatch, WaitingTask

T = TypeVar("T")
JOINING = frozenset(
    "put put_json put_many put_stream get get_many get_stream get_group group reply leave_group end_group".split()
)


def joins(name: str, given: Iterable[object], named: Mapping[str, Any]) -> str:
    """Returns the name of a call if it would join an open unit of work, else ""."""
    if name not in JOINING or named.get("syncpoint") is False or named.get("confirm_id") or named.get("uid"):
        return ""
    options = [one for one in given if isinstance(one, PutOptions)]
    return "" if any(one.syncpoint is False or one.confirm_id or one.uid for one in options) else name


class Sharing:
    """The connections and waiting tasks of one loop.

    Args:
        another: makes a connection.
        connections: the largest number to lend; not counted are those that watch queues, one for requests, and one
            for brief calls.
    """

    def __init__(self, another: Callable[[], Connection], connections: int) -> None:
        self._another = another
        self._loop, self._life = asyncio.get_running_loop(), forks.current
        self.lanes = LanePool(self._connect, connections)
        self._seat: ContextVar[Seat | None] = ContextVar("inorder", default=None)
        self._asking: Lane | None = None
        self._brief: BriefLane | None = None
        self._watches: dict[str, QueueWatch] = {}
        self._clock: Clock | None = None
        self._path = ""

    def _connect(self) -> Connection:
        connection = self._another()
        self._clock, self._path = connection.internals.clock, connection.inspect.path
        return connection

    # --- seats

    def _check(self) -> None:
        if self._life is not forks.current:
            raise forked(self._path)
        if self.lanes.is_closed:
            raise closed()
        if asyncio.get_running_loop() is not self._loop:
            raise CallerError(
                "the connection belongs to another event loop: connect in each loop", reason=Reason.HCONN_ERROR
            )

    @property
    def seat_around(self) -> Seat | None:
        """The seat of this task, or of the task that started it."""
        return self._seat.get()

    @property
    def own_lane(self) -> Lane | None:
        """The connection that this very task has."""
        seat = self.seat_around
        return seat.lane if seat is not None and seat.caller.is_calling() else None

    def seat(self, joins: str = "") -> Seat:
        """Returns the seat of this task, or a new one.

        Args:
            joins: the name of a call that would join a unit of work, or "".

        Raises: as each call; UnitOfAnother, the unit of work belongs to the task that started this one.
        """
        seat = self._checked_seat()
        if seat is not None:
            if seat.caller.is_calling() or (not seat.is_empty and seat.caller.admits_caller()):
                return seat
            if joins:
                _check_unit(seat)
        return Seat(Caller.now())

    def _checked_seat(self) -> Seat | None:
        """Returns the seat around. Raises: as each call."""
        self._check()
        seat = self.seat_around
        if seat is not None and seat.caller.is_over:  # the loop tells so only later
            seat.ended()
        return seat

    def keep(self, seat: Seat) -> None:
        """Makes later calls of this task find its seat, if that holds something; not the seat of another task."""
        if seat.is_known or seat.is_empty or not seat.caller.is_calling():
            return
        seat.is_known = True
        self._seat.set(seat)
        task = asyncio.current_task()
        if task is not None:
            task.add_done_callback(lambda _: seat.ended())

    def sit(self, lane: Lane, block: UnitBlock) -> Seat:
        """Gives this task a lane, with the block of its open unit of work, until the task ends."""
        seat = lane.seat = Seat(Caller.now(), lane)
        seat.block = block
        connection = lane.connected()
        self._clock, self._path = connection.internals.clock, connection.inspect.path
        self._seat.set(seat)
        return seat

    async def _lane_for(self, seat: Seat) -> Lane:
        if seat.lane is None:
            lane = await self.lanes.borrow()
            seat.lane, lane.seat = lane, seat
        return seat.lane

    # --- calls

    async def run(self, seat: Seat, call: Callable[[Connection], T], *, hurry: Callable[[], object] | None = None) -> T:
        """Makes a call on the connection of a seat, in the unit of work of its block."""
        self._check()
        block = seat.block
        begins = block is not None and not block.is_begun
        lane = await self._lane_for(seat)
        try:
            async with lane:
                made = block.begin_with(lane, call) if begins and block is not None else call
                return await finished(lane.submit(made), hurry)
        finally:
            self.keep(seat)

    async def brief(self, call: Callable[[Connection], T]) -> T:
        """Makes a brief call, together with those of other tasks, or on the task's own connection if it has one."""
        self._check()
        if self._brief is None:
            self._brief = self.lanes.add(BriefLane(self._connect))
        if self.seat_around is not None or self._brief.is_held_up:
            seat = self.seat("run")
            if not seat.is_empty or self._brief.is_held_up:
                return await self.run(seat, call)
        return await self._brief.make(call)

    async def on(self, lane: Lane, joins: str, call: Callable[[], T], hurry: Callable[[], object] | None = None) -> T:
        """Makes a call on an object that is open on a connection: a queue, a group, a loop."""
        self.seat_of(lane, joins)
        async with lane:
            self.seat_of(lane, joins)  # a unit may have begun meanwhile
            return await lane.call(lambda _: call(), hurry)

    def seat_of(self, lane: Lane, joins: str) -> Seat:
        """Returns the seat of this task if it has a lane, else a seat for one call there."""
        own, holder = self._checked_seat(), lane.seat
        if joins and own is not None and own.lane is not lane and own.has_unit and own.caller.admits_caller():
            raise CallerError(
                "this was opened outside of the task's unit of work: open it inside the unit that it is to be part of",
                reason=Reason.UOW_NOT_AVAILABLE,
            )
        if joins:
            _check_unit(holder)
        return holder if holder is not None and holder.caller.is_calling() else Seat(Caller.now(), lane)

    async def let_go(self, queue: object) -> bool:
        """Closes the default handles of a queue on our free connections; returns whether `queue` is a name."""
        if not isinstance(queue, str):
            return False
        watch = self._watches.get(queue)
        if watch is not None and not watch.is_used:
            await finished(watch.end())
        for lane in list(self.lanes.all):
            if not lane.is_out:  # a task may have borrowed it during the calls on the others
                await lane.call(lambda one: one.close_queue(queue))
        return True

    async def close_unused(self) -> None:
        """Closes default handles on free connections that were not used since the last call of this."""
        for lane in list(self.lanes.all):
            if not lane.is_out and lane.has_queues:
                await lane.call(lambda one: one.internals.close_unused_queues())

    def asking(self) -> Lane:
        """Returns the lane for requests and replies, which never waits."""
        self._check()
        if self._asking is None:
            self._asking = self.lanes.add(Lane(self._connect))
        return self._asking

    # --- gets

    async def take(
        self,
        seat: Seat,
        queue: str,
        options: GetOptions,
        call: Callable[[Connection, float], T],
        keeps: UnitBlock | None = None,
        hurry: Callable[[], object] | None = None,
    ) -> T:
        """Makes a get, which waits if its options say so.

        Args:
            call: makes the get, with the given wait in seconds.
            keeps: takes over the get's own unit of work, if the get has one; None: the unit is committed.
            hurry: makes the get fail after a cancel.
        """
        in_unit = options.syncpoint is not False and (
            (seat.lane is not None and seat.lane.has_unit) or (seat.block is not None and seat.block.is_begun)
        )
        if in_unit and options.wait and seat.lane is not None:
            ends = seat.lane.end_waits
            return await self.run(seat, lambda one: call(one, options.wait), hurry=lambda: (ends(), hurry and hurry()))
        is_plain = not (
            in_unit
            or options.browse
            or options.by_cursor
            or options.syncpoint is not None
            or options.syncpoint_if_persistent
            or options.confirm_id
        )

        def look(taken: Callable[[], object]) -> Awaitable[T]:
            if is_plain:
                return self._taken(seat, lambda one: call(one, 0), taken, seat.block or keeps, hurry)
            return self.run(seat, lambda one: call(one, 0), hurry=hurry)

        if not options.wait or options.by_cursor:
            return await look(_nothing)
        key = (replace(options, wait=0), seat.lane)  # one without a connection may have to wait until we give up ours
        return await self.awaited(queue, key, rank_of(options), options.wait, look)

    async def _taken(
        self,
        seat: Seat,
        call: Callable[[Connection], T],
        taken: Callable[[], object],
        block: UnitBlock | None,
        hurry: Callable[[], object] | None,
    ) -> T:
        """Makes a get in its own unit of work, which is committed when the task has the message."""
        lane, units = await self._lane_for(seat), list[UnitOfWork]()

        def take(connection: Connection) -> T:
            unit = connection.unit_of_work().__enter__()
            try:
                found = call(connection)
            except BaseException as error:
                leave(unit, error)
                raise
            units.append(unit)
            return found

        async def settle(error: BaseException | None) -> None:
            await finished(lane.submit(lambda _: leave(units[0], error), is_revocable=error is None))

        try:
            async with lane:
                _check_unit(lane.seat)  # a unit may have begun meanwhile
                lane.is_taking = True
                job = lane.submit(take)
                cancel = await job.ended(hurry)
                if cancel is not None:
                    if not job.drop_error():
                        await settle(asyncio.CancelledError())
                    raise asyncio.CancelledError(*cancel)
                found = job.answer()
                taken()
                if block is not None:
                    block.adopt(lane, units[0])
                    return found
                try:
                    await settle(None)
                except asyncio.CancelledError as revoked:  # the commit had not begun
                    await settle(revoked)
                    raise
                return found
        finally:
            self.keep(seat)

    async def awaited(
        self,
        queue: str,
        key: Hashable,
        rank: int,
        seconds: float,
        look: Callable[[Callable[[], object]], Awaitable[T]],
    ) -> T:
        """Tries a get now, and again for up to `seconds`, until it finds a message.

        Args:
            key, rank: as in `WaitingTask`.
            look: makes one try. It raises an error of `NOTHING`, or calls its argument as soon as it has a message.
        """
        began = None if self._clock is None else self._clock.monotonic()
        watch = self._watches.get(queue)
        if watch is None or not watch.has_line(key):
            try:
                return await look(_nothing)
            except NOTHING:
                self._check()
        assert self._clock is not None, "a connection was made"
        watch = self._watches.get(queue)
        if watch is None:
            lane = Lane(self._another, name=f"inorder aio watch {queue}")
            watch = self._watches[queue] = QueueWatch(queue, self._clock, lane, self._watches)
        began = self._clock.monotonic() if began is None else began
        return await watch.found(WaitingTask(key, rank, began + seconds), look)

    # --- the end

    async def end(self, ends_well: Callable[[Lane], bool]) -> None:
        """Ends all connections; those that end well commit. Harmless when repeated."""
        if self.lanes.is_closed:
            return
        watches = [watch.end() for watch in list(self._watches.values())]
        try:
            await self.lanes.close(ends_well)
        finally:
            for watch in watches:
                await finished(watch)


def _check_unit(seat: Seat | None) -> None:
    """Raises: UnitOfAnother, a seat has a unit of work to which the present call does not belong."""
    if seat is None or not seat.has_unit or seat.caller.admits_caller():
        return
    names: dict[str, Any] = seat.caller.names
    raise UnitOfAnother(
        f"task {names['task']!r} has a unit of work open, and this call is in another task, which was started inside "
        "it: make the call in that task, or begin a separate unit in this one",
        **names,
    )


def _nothing() -> None:
    """The `taken` of a get for which no task waits: does nothing."""
