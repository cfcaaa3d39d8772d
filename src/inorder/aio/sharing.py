"""What the tasks of one loop share of a queue manager: connections, which task has which, and what tasks wait for.

A task behaves as if it had a connection of its own. It has one as long as something of it is open there (`Seat`), and
otherwise for the time of a call.
"""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Awaitable, Callable, Hashable
from dataclasses import replace
from typing import Any, Protocol, TypeVar

from ..client.unit_of_work import UnitOfWork
from ..errors import (
    CallerError,
    NoMessageAvailable,
    OrderPending,
    Reason,
    UnitOfAnother,
    forked,
)
from ..model.options import GetOptions
from ..rules.gets import rank_of
from ..support import forks
from ..support.callers import Caller
from ..support.clock import Clock
from .attempts import Attempt
from .brief import BriefLane
from .jobs import finished
from .lanes import Connection, Lane, LanePool, Seat, closed
from .waiting import QueueWatch, WaitingTask

T = TypeVar("T")
NOTHING = (NoMessageAvailable, OrderPending)

_seats: contextvars.ContextVar[tuple[tuple[Sharing, Seat], ...]] = contextvars.ContextVar("inorder", default=())


class Sharing:
    """See above.

    Args:
        another: makes a connection.
        connections: so many at most, beside those that watch queues, one for requests, and one for brief calls.
    """

    def __init__(self, another: Callable[[], Connection], connections: int) -> None:
        self._another = another
        self._loop, self._life = asyncio.get_running_loop(), forks.current
        self.lanes = LanePool(self._connect, connections)
        self._asking: Lane | None = None
        self._brief: BriefLane | None = None
        self._watches: dict[str, QueueWatch] = {}
        self._clock: Clock | None = None
        self._path = ""

    def _connect(self) -> Connection:
        connection = self._another()
        self._clock, self._path = connection.clock, connection.path
        return connection

    # --- who has what

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
        """What this task, or the one that started it, holds."""
        for of, seat in _seats.get():
            if of is self:
                return seat
        return None

    def seat(self, joins: str = "") -> Seat:
        """What this task holds; a new one if it holds nothing.

        Args:
            joins: a call that would be part of a unit of work.

        Raises: as each call; UnitOfAnother, the unit of work is that of the task that has started this one.
        """
        self._check()
        seat = self.seat_around
        if seat is not None:
            if seat.caller.is_calling() or (not seat.is_empty and seat.caller.admits_caller()):
                return seat
            if joins and seat.has_unit:
                self._refuse(seat)
        return Seat(Caller.now())

    def _refuse(self, seat: Seat) -> None:
        names: dict[str, Any] = seat.caller.names
        raise UnitOfAnother(
            f"task {names['task']!r} has a unit of work open, and this call, of a task that was started in it, is not "
            "its own: make the call in that task, or begin a unit of its own in this one",
            **names,
        )

    def keep(self, seat: Seat) -> None:
        """Later calls of the task find its seat, as long as it holds something."""
        if seat.is_known or seat.is_empty:
            return
        seat.is_known = True
        others = tuple((of, one) for of, one in _seats.get() if of is not self)
        _seats.set((*others, (self, seat)))
        task = asyncio.current_task()
        if task is not None:
            task.add_done_callback(lambda _: seat.ended())

    async def _lane_for(self, seat: Seat) -> Lane:
        if seat.lane is None:
            lane = await self.lanes.borrow()
            seat.lane, lane.seat = lane, seat
        return seat.lane

    # --- calls

    async def run(self, seat: Seat, call: Callable[[Connection], T], *, hurry: Callable[[], object] | None = None) -> T:
        """A call on the connection of a seat; in the unit of work of its block."""
        self._check()
        block = seat.block
        begins = block is not None and not block.is_begun
        lane = await self._lane_for(seat)
        try:
            async with lane:
                job = lane.submit(block.begin_with(lane, call) if begins and block is not None else call)
                return await finished(job, hurry)
        finally:
            self.keep(seat)

    async def brief(self, call: Callable[[Connection], T]) -> T:
        """A brief call, together with those of other tasks; on the task's own connection, if it has one."""
        self._check()
        if self._brief is None:
            self._brief = BriefLane(self._connect)
            self.lanes.all.append(self._brief)
        if self.seat_around is not None or self._brief.is_held_up:
            seat = self.seat("run")
            if not seat.is_empty or self._brief.is_held_up:
                return await self.run(seat, call)
        return await self._brief.make(call)

    async def on(self, lane: Lane, joins: str, call: Callable[[Connection], T]) -> T:
        """A call on the connection of something that is open: a queue, a group, a loop."""
        self.seat_of(lane, joins)
        async with lane:
            return await finished(lane.submit(call))

    def seat_of(self, lane: Lane, joins: str) -> Seat:
        """That of the task that has a lane, even if it is another one."""
        self._check()
        own = self.seat_around
        if joins and own is not None and own.lane is not lane and own.has_unit and own.caller.admits_caller():
            raise CallerError(
                "this was opened outside of the task's unit of work: open it inside the unit that it is to be part of",
                reason=Reason.UOW_NOT_AVAILABLE,
            )
        seat = lane.seat or Seat(Caller.now(), lane, is_known=True)
        if joins and seat.has_unit and not seat.caller.admits_caller():
            self._refuse(seat)
        return seat

    async def let_go(self, queue: object) -> bool:
        """Closes what our own free connections have open of a queue; whether there was any."""
        if not isinstance(queue, str):
            return False
        watch = self._watches.get(queue)
        if watch is not None and not watch.is_used:
            await asyncio.wait([watch.end()])  # so that a cancel of this call is not one of the watch
        for lane in list(self.lanes.all):
            if not lane.is_out:  # now: a task may have borrowed it while the others were asked
                await finished(lane.submit(lambda one: one.close_queue(queue)))
        return True

    async def close_unused(self) -> None:
        """Closes what calls by name hold open on free connections, and have not used since this was called last."""
        for lane in list(self.lanes.all):
            if not lane.is_out and lane.has_queues:
                await finished(lane.submit(lambda one: one.close_unused_queues()))

    def asking(self) -> Lane:
        """Where requests are put and replies come, beside all others; it waits for nobody."""
        self._check()
        if self._asking is None:
            self._asking = Lane(self._connect, lambda _: None)
            self.lanes.all.append(self._asking)
        return self._asking

    async def take(
        self,
        seat: Seat,
        queue: str,
        options: GetOptions,
        call: Callable[[Connection, bool], T],
        keeps: Adopting | None = None,
        hurry: Callable[[], object] | None = None,
    ) -> T:
        """A get, which waits if its options say so.

        Args:
            call: makes it; whether it waits there, or looks once.
            keeps: who has the unit of work that the get was made in, if it was made in one of its own; None: it is
                committed.
            hurry: makes it fail, after a cancel.
        """
        in_unit = options.syncpoint is not False and (
            (seat.lane is not None and seat.lane.has_unit) or (seat.block is not None and seat.block.is_begun)
        )
        if in_unit and options.wait and seat.lane is not None:
            ends = seat.lane.end_waits
            return await self.run(seat, lambda one: call(one, True), hurry=lambda: (ends(), hurry and hurry()))
        is_plain = not (
            in_unit
            or options.browse
            or options.by_cursor
            or options.syncpoint
            or options.syncpoint_if_persistent
            or options.confirm_id
            or (options.syncpoint is False and seat.has_unit)
        )

        def look(taken: Callable[[], object]) -> Any:
            if is_plain:
                return self._taken(seat, lambda one: call(one, False), taken, keeps, hurry)
            return self.run(seat, lambda one: call(one, False), hurry=hurry)

        if not options.wait or options.by_cursor:
            answer: T = await look(_nothing)
            return answer
        return await self.awaited(queue, replace(options, wait=0), rank_of(options), options.wait, look)

    async def awaited(
        self,
        queue: str,
        key: Hashable,
        rank: int,
        seconds: float,
        look: Callable[[Callable[[], object]], Awaitable[T]],
    ) -> T:
        """What a look finds, now or in so many seconds.

        Args:
            key, rank: as `WaitingTask` has them.
            look: one look. It raises what is in `NOTHING`, or calls what it is given as soon as it has found something.
        """
        began = None if self._clock is None else self._clock.monotonic()
        watch = self._watches.get(queue)
        if watch is None or not watch.has_line(key):
            try:
                return await look(_nothing)
            except NOTHING:
                self._check()
        assert self._clock is not None, "a connection was made"
        watch = self._watches.get(queue) or self._watch(queue, self._clock)
        began = self._clock.monotonic() if began is None else began
        waiter = WaitingTask(key, rank, began + seconds)
        watch.join(waiter)
        try:
            while True:
                await watch.turn(waiter)
                now = self._clock.monotonic()
                try:
                    return await look(lambda: watch.leave(waiter))
                except NOTHING:
                    if waiter.deadline <= now:
                        raise
                    if watch.error is not None:
                        raise watch.error from None
                watch.has_looked(waiter)
        finally:
            watch.leave(waiter)

    def _watch(self, queue: str, clock: Clock) -> QueueWatch:
        def ended(watch: QueueWatch) -> None:
            if self._watches.get(queue) is watch:
                del self._watches[queue]

        watch = self._watches[queue] = QueueWatch(queue, clock, self._another, ended)
        return watch

    async def _taken(
        self,
        seat: Seat,
        call: Callable[[Connection], T],
        taken: Callable[[], object],
        keeps: Adopting | None,
        hurry: Callable[[], object] | None,
    ) -> T:
        """What a get takes in a unit of work of its own, which is committed when the task has it in hand."""
        lane = await self._lane_for(seat)
        attempt = Attempt(call)
        try:
            async with lane:
                job = lane.submit(attempt.take)
                cancel = await job.ended(hurry)
                if cancel is not None:
                    if not job.has_failed:
                        await finished(lane.submit(attempt.back_out, is_revocable=False))
                    raise cancel
                found = job.answer()
                taken()
                adopting = seat.block or keeps
                try:
                    if adopting is not None:
                        adopting.adopt(lane, attempt.unit, lane.connection)
                    else:
                        await finished(lane.submit(attempt.commit))
                except asyncio.CancelledError:  # it had not begun
                    await finished(lane.submit(attempt.back_out, is_revocable=False))
                    raise
                return found
        finally:
            self.keep(seat)

    async def end(self, ends_well: Callable[[Lane], bool]) -> None:
        """Ends all connections; those that end well commit. Harmless when repeated."""
        if self.lanes.is_closed:
            return
        watches = [watch.end() for watch in list(self._watches.values())]
        try:
            await self.lanes.close(ends_well)
        finally:
            if watches:
                await asyncio.wait(watches)


class Adopting(Protocol):
    """The call that keeps a unit of work that a get has begun."""

    def adopt(self, lane: Lane, unit: UnitOfWork, connection: Connection | None) -> None: ...


def _nothing() -> None:
    """Nobody needs to know that a get has taken something."""
