"""Waiting gets: any number of tasks, and one thread for each queue with waiting tasks.

A task whose get found nothing joins the `QueueWatch` of its queue. The thread of the watch's lane reports whenever a
get may find a message now (`LocalStore.watch`). The loop then lets the tasks try again, one at a time, in the order of
R3.27: gets that name a message first. They try in rounds: no task tries twice before each has tried once. If several
tasks ask for the same messages, only the first tries, because the others would find nothing either. When it finds a
message, the next one tries. A task that must first wait for a connection lets the others try meanwhile, because one of
them may have that connection.

No wake-up is lost. A task joins before it tries, and every change after the beginning of the watch causes a report; one
report may stand for several changes. While no task waits, the thread rests, and a put wakes no one.
"""

from __future__ import annotations

import asyncio
import contextvars
from collections import deque
from collections.abc import Awaitable, Callable, Hashable
from typing import TypeVar

from ..errors import NoMessageAvailable, OrderPending, WaitEnded
from ..support.clock import Clock
from .jobs import LaneJob, tell
from .lanes import Lane, gives_way

T = TypeVar("T")
NOTHING = (NoMessageAvailable, OrderPending)  # the errors of a try that found no message
KEPT_SECONDS = 5.0  # how long a thread rests before it ends


class _Rests(Exception):
    """Ends a watch while no task waits."""


class WaitingTask:
    """A waiting task.

    Attributes:
        key: tasks with the same key ask for the same messages.
        rank: the smallest is served first.
        deadline: by `Clock.monotonic`.
        has_news: whether it has a reason to try.
        turn: done when it may try; None: it does not wait for its turn now.
    """

    __slots__ = ("deadline", "has_news", "key", "rank", "timer", "turn")

    def __init__(self, key: Hashable, rank: int, deadline: float) -> None:
        self.key, self.rank, self.deadline = key, rank, deadline
        self.has_news = False
        self.turn: asyncio.Future[None] | None = None
        self.timer: asyncio.TimerHandle | None = None


class QueueWatch:
    """The tasks that wait for one queue, and the thread that reports when they should try.

    Args:
        lane: a lane for this watch only.
        all: all watches, by queue; this one removes itself when its thread stops watching.
    """

    def __init__(self, queue: str, clock: Clock, lane: Lane, all: dict[str, QueueWatch]) -> None:
        self.queue, self._clock, self._lane, self._all = queue, clock, lane, all
        self._loop = asyncio.get_running_loop()
        self._lines: dict[Hashable, deque[WaitingTask]] = {}  # by key; the first of each line tries
        self._round: deque[WaitingTask] = deque()  # the tasks still to try in this round
        self._again = False  # another round must follow
        self._looking: WaitingTask | None = None
        self._keeping: asyncio.TimerHandle | None = None
        self._job: LaneJob[None] | None = None  # the thread's current job; None: it rests
        self._is_watching = self._is_told = False
        self._error: BaseException | None = None  # why the thread has stopped watching

    # --- in the thread

    def _watch(self) -> None:
        self._lane.connected().internals.watch(self.queue, self._changed)

    def _changed(self) -> None:
        self._is_watching = False  # in this order: `_join` adds a line, and then reads this
        if self._lane.is_over or not self._lines:
            raise _Rests
        self._is_watching = True
        if not self._is_told:  # otherwise the loop already has a report to handle, after which all tasks try
            self._is_told = True
            if not tell(self._loop, self._let_look):
                raise _Rests

    # --- in the loop: turns

    def _let_look(self) -> None:
        self._is_told, self._again = False, True
        now = self._clock.monotonic()
        for waiter in [one for line in self._lines.values() for one in line if one.deadline <= now]:
            self._is_late(waiter)
        self._next()

    def _go_on(self) -> None:
        """Starts the thread's watch, in an empty context, because it belongs to no task."""
        self._job = LaneJob(self._watch, self._has_ended, self._loop, is_revocable=False)
        contextvars.Context().run(self._lane.give, self._job)

    def _has_ended(self) -> None:
        job, self._job = self._job, None
        assert job is not None, "the thread was at it"
        try:
            job.answer()
        except _Rests:
            if not self._lane.is_over:
                if self._lines:
                    self._go_on()
                return
            self._error = WaitEnded("the queue is not watched any more")
        except BaseException as error:  # noqa: BLE001 - the waiting tasks raise it
            self._error = error
        if not self._lane.is_over:
            self.end()
        for line in self._lines.values():
            for waiter in line:
                waiter.has_news = True
                self._round.append(waiter)
        self._next()

    def _next(self) -> None:
        """Gives the next task of this round its turn, unless a task is trying."""
        while self._looking is None:
            if self._round:
                waiter = self._round.popleft()
                if waiter.has_news and waiter.turn is not None and not waiter.turn.done():
                    waiter.has_news, self._looking = False, waiter
                    waiter.turn.set_result(None)
            elif self._again:
                self._again = False
                self._round.extend(sorted((line[0] for line in self._lines.values()), key=lambda one: one.rank))
                for waiter in self._round:
                    waiter.has_news = True
            else:
                return

    async def found(self, waiter: WaitingTask, look: Callable[[Callable[[], object]], Awaitable[T]]) -> T:
        """Lets a waiting task try until it finds a message; returns that.

        Args:
            look: makes one try. It raises an error of `NOTHING`, or calls its argument as soon as it has a message.

        Raises: as the last try.
        """
        self._join(waiter)
        try:
            while True:
                await self._turn(waiter)
                is_last = waiter.deadline <= self._clock.monotonic()
                gives_way.set(lambda: self._has_looked(waiter))
                try:
                    return await look(lambda: self._leave(waiter))
                except NOTHING:
                    if is_last:
                        raise
                    if self._error is not None:
                        raise self._error from None
                finally:
                    gives_way.set(None)
                self._has_looked(waiter)
        finally:
            self._leave(waiter)

    def has_line(self, key: Hashable) -> bool:
        """Whether a task with this key waits."""
        return key in self._lines

    def _join(self, waiter: WaitingTask) -> None:
        """Adds a waiting task."""
        if self._keeping is not None:
            self._keeping.cancel()
            self._keeping = None
        line = self._lines.setdefault(waiter.key, deque())
        line.append(waiter)
        if self._job is None and not self._lane.is_over:
            self._go_on()
        waiter.has_news = self._error is not None or (self._is_watching and line[0] is waiter)

    def _leave(self, waiter: WaitingTask) -> None:
        """Removes a task that has a message or gives up. Harmless when repeated."""
        line = self._lines.get(waiter.key)
        if line is None or waiter not in line:
            return
        was_first = line[0] is waiter
        line.remove(waiter)
        if not line:
            del self._lines[waiter.key]
        elif was_first:
            line[0].has_news = True
            self._round.appendleft(line[0])
        self._has_looked(waiter)
        if not self._lines and not self._lane.is_over:
            self._keeping = self._loop.call_later(KEPT_SECONDS, self._end_unless_used)

    async def _turn(self, waiter: WaitingTask) -> None:
        """Returns when the task should try; its turn lasts until `_has_looked` or `_leave`."""
        waiter.turn = self._loop.create_future()
        try:
            if waiter.has_news:
                self._round.append(waiter)
            self._set_timer(waiter)
            self._next()
            await waiter.turn
        finally:
            waiter.turn = None
            if waiter.timer is not None:
                waiter.timer.cancel()

    def _has_looked(self, waiter: WaitingTask) -> None:
        """Ends the turn of a task, which found nothing or cannot try yet."""
        if self._looking is waiter:
            self._looking = None
        self._next()

    def _set_timer(self, waiter: WaitingTask) -> None:
        nap = self._clock.nap(max(0.0, waiter.deadline - self._clock.monotonic()))
        waiter.timer = None if nap is None else self._loop.call_later(nap, self._time_passed, waiter)

    def _time_passed(self, waiter: WaitingTask) -> None:
        if waiter.deadline <= self._clock.monotonic():
            self._is_late(waiter)
            self._next()
        else:
            self._set_timer(waiter)

    def _is_late(self, waiter: WaitingTask) -> None:
        """Lets a task try a last time."""
        waiter.has_news = True
        self._round.appendleft(waiter)

    # --- the end

    def _end_unless_used(self) -> None:
        if not self._lines:
            self.end()

    def end(self) -> LaneJob[None]:
        """Ends the thread and all waits; to be called once."""
        if self._keeping is not None:
            self._keeping.cancel()
        if self._all.get(self.queue) is self:
            del self._all[self.queue]
        return self._lane.end(commits=False)

    @property
    def is_used(self) -> bool:
        """Whether a task waits."""
        return bool(self._lines)
