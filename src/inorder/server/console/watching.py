"""The last minutes of all queues, sampled every second while a page is open, and their last hour from the store.

The first visit starts the sampling, and it ends a minute after the last visit, so an unwatched server does no work. One
task samples for all visitors of a worker; their browsers listen to `changes`.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from itertools import pairwise
from typing import Final, NamedTuple

from ... import QueueManager
from ...errors import InorderError, UnknownQueue
from ...rules.history import RINGS
from ...stores.seam.views import QueueView
from ..api.streaming import unless
from ..calls import Room
from ..logs import LOGGER
from ..sampling import SampledQueues

log = logging.getLogger(LOGGER)
EVERY_SECONDS: Final = 1.0
KEPT_SECONDS: Final = 300.0
IDLE_SECONDS: Final = 60.0
HOUR_READ_SECONDS: Final = 30.0
RATE_SECONDS: Final = 5.0  # the period of a rate
AT_LEAST_SECONDS: Final = 10.0  # a page reloads this often even without changes, because its ages grow
LISTENERS_MAX: Final = 200
LISTENED_SECONDS: Final = 300.0  # then the browser connects and authenticates again


class QueueSample(NamedTuple):
    """A queue at one moment. `at` is monotonic time; `age`: the age of its oldest message, in seconds."""

    at: float
    depth: int
    arrived: int
    age: float


class Recent(NamedTuple):
    """The activity of a queue in the last minutes.

    Args:
        put, got: messages a second; None if not known yet. `got` counts messages that left the depth (got, expired,
            backed out), minus those that came back.
        puts, gets: the same over time, the newest last.
        depths: the depths over time; `ages`: the ages of the oldest message, in seconds.
        seconds: how long ago the first of them was.
    """

    put: float | None = None
    got: float | None = None
    puts: Sequence[float] = ()
    gets: Sequence[float] = ()
    depths: Sequence[float] = ()
    ages: Sequence[float] = ()
    seconds: float = 0.0


NOTHING: Final = Recent()


class Watching:
    """Samples the queues while a page is open.

    Args:
        look: reads the state of all queues.
        clock: seconds.
        every: seconds between two samples.
    """

    def __init__(
        self,
        look: Callable[[], Awaitable[SampledQueues]],
        clock: Callable[[], float] = time.monotonic,
        *,
        every: float = EVERY_SECONDS,
    ) -> None:
        self._look, self._clock, self._every = look, clock, every
        self._samples: dict[tuple[str, float], deque[QueueSample]] = {}
        self._hour: dict[tuple[str, float], list[float | None]] = {}
        self._hour_read = 0.0
        self._before: list[QueueView] = []
        self._number, self._changed = 0, asyncio.Condition()
        self._wanted_at = 0.0
        self.listening = Room("open pages of the console", LISTENERS_MAX)
        self.task: asyncio.Task[None] | None = None

    def want(self) -> None:
        """Notes that a page is open."""
        self._wanted_at = self._clock()
        if self.task is None or self.task.done():
            self.task = asyncio.create_task(self._watch())

    async def close(self) -> None:
        """Ends the sampling."""
        if self.task is not None:
            self.task.cancel()
            await asyncio.wait([self.task])

    async def changes(self, *ends: asyncio.Event) -> AsyncIterator[None]:
        """Yields at once, and then after each change. It ends at the event, or after some minutes."""
        end = self._clock() + LISTENED_SECONDS
        seen = self._number
        yield None
        while self._clock() < end:
            self.want()
            with suppress(asyncio.TimeoutError):
                await unless(asyncio.wait_for(self._another(seen), AT_LEAST_SECONDS), *ends)
            if any(one.is_set() for one in ends):
                return
            seen = self._number
            yield None

    async def _another(self, seen: int) -> None:
        async with self._changed:
            await self._changed.wait_for(lambda: self._number != seen)

    def recent(self, queue: QueueView) -> Recent:
        """The recent activity of a queue."""
        samples = self._samples.get((queue.name, queue.created_at))
        return NOTHING if samples is None or len(samples) < 2 else _recent(samples)

    def last_hour(self, qm: QueueManager, queues: Sequence[QueueView]) -> Mapping[str, Sequence[float | None]]:
        """The depth of each queue in each minute of the last hour, from the store's history; None: not known. Each is
        read at most twice a minute. A queue without two values is left out.
        """
        now, minute = time.time(), RINGS["hour"]
        if (read := now // HOUR_READ_SECONDS) != self._hour_read:
            self._hour, self._hour_read = {}, read
        known = self._hour
        lacking = [one for one in queues if (one.name, one.created_at) not in known]
        try:
            found = qm.internals.histories([one.name for one in lacking], "hour") if lacking else []
        except UnknownQueue:  # one was deleted since the page looked, so it has changed and loads again
            return {}
        for one, points in zip(lacking, found, strict=True):
            depths: list[float | None] = [None] * minute.slots
            for point in points:
                depths[-1 - minute.distance(point.at, now)] = point.peak
            known[one.name, one.created_at] = depths if len(points) > 1 else []
        return {one.name: depths for one in queues if (depths := known[one.name, one.created_at])}

    async def _watch(self) -> None:
        while self._clock() - self._wanted_at < IDLE_SECONDS:
            try:
                now = await self._look()
            except InorderError as error:  # it may pass; the pages show it meanwhile
                log.warning("the console cannot read the state of the queues: %s", error)
            else:
                await self.see(now)
            await asyncio.sleep(self._every)
        self._samples.clear()

    async def see(self, look: SampledQueues) -> None:
        """Stores a sample, and notifies listeners if it differs from the one before."""
        (at, now), clock = look, time.time()
        known = {
            (one.name, one.created_at): QueueSample(
                at, one.depth, one.arrived, 0.0 if one.oldest_put_at is None else max(0.0, clock - one.oldest_put_at)
            )
            for one in now
        }
        for key in self._samples.keys() - known.keys():
            del self._samples[key]
        for key, sample in known.items():
            samples = self._samples.setdefault(key, deque())
            samples.append(sample)
            while samples[0].at < at - KEPT_SECONDS:
                samples.popleft()
        if list(now) != self._before:
            self._before = list(now)
            async with self._changed:
                self._number += 1
                self._changed.notify_all()


def _recent(samples: Sequence[QueueSample]) -> Recent:
    known = list(samples)
    steps = [_rates(one, other) for one, other in pairwise(known)]
    since = next(one for one in known if one.at >= known[-1].at - RATE_SECONDS)
    put, got = _rates(since if since is not known[-1] else known[-2], known[-1])
    puts, gets = [one for one, _ in steps], [max(0.0, other) for _, other in steps]
    return Recent(
        put,
        got,
        puts,
        gets,
        depths=[float(one.depth) for one in known],
        ages=[one.age for one in known],
        seconds=known[-1].at - known[0].at,
    )


def _rates(one: QueueSample, other: QueueSample) -> tuple[float, float]:
    """Messages put and got a second between two samples."""
    seconds = max(other.at - one.at, 0.001)
    put = other.arrived - one.arrived
    return put / seconds, (put - (other.depth - one.depth)) / seconds
