"""Waiting: which waiters a change wakes, in which order, and when a wait ends.

All calls of this process that wait on one store share its `WaitingRoom`. A waiter looks once at the start. Then it
sleeps until its queue changes, until a time comes that may change the result (a delayed message is due), or until its
deadline. After a change the waiters of the queue look one after another, in order of precedence (R3.27):

    removers that name a message or correlation id, then other removers, then browsers

and within a class in the order of arrival, although programs should not rely on that. A browse with lock counts as a
remover. Each look is one atomic operation of the store, so only one remover gets a message. A waiter that finds no
message sleeps again. Times are inclusive, and the last look comes before the deadline counts.

Changes may come faster than looks. So the waiters of a queue look in rounds: a waiter looks again only after all others
with a reason to look (a deadline is one) have looked in this round. A change that finds all asleep begins a new round.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from time import perf_counter

from ...errors import ConnectionBroken, InorderError
from ...model.options import GetOptions
from ...rules.gets import rank_of
from ...support.clock import Clock
from ...support.locks import AtEnd, Bell, Lock
from ..seam.backend import Host
from ..seam.changes import Change, Changes, Happened
from ..seam.telemetry import Telemetry

WATCHING = GetOptions(browse="first", wait=math.inf)

Look = Callable[[], tuple[bool, float | None]]
"""Looks once. Returns whether it found something, and when to look again even if nothing has changed."""


@dataclass(slots=True, eq=False)
class WaitingCall:
    """A call that waits.

    Attributes:
        deadline: by `Clock.monotonic`; again_at: by `Clock.now`.
        changed: its queue has changed since its last look.
        looked: it has looked in this round, and found nothing.
        ended: the error that ends the wait early.
    """

    owner: int
    queue: str
    rank: int
    deadline: float
    bell: Bell
    changed: bool = True  # it has not looked yet
    again_at: float = math.inf
    looking: bool = False
    looked: bool = False
    ended: InorderError | None = None


class WaitingRoom:
    """Holds and wakes the calls of this process that wait on one store."""

    def __init__(self, changes: Changes, host: Host, clock: Clock, telemetry: Telemetry) -> None:
        self._changes, self._host, self._clock, self._telemetry = changes, host, clock, telemetry
        self._lock = Lock()  # guards the following; nobody sleeps or looks while holding it
        self._waiters: list[WaitingCall] = []
        self._watchers: list[Bell] = []
        self._subscription = changes.subscribe(self._happened, is_ours=True)
        clock.watch(self._time_jumped)

    def wait(self, owner: int, queue: str, options: GetOptions, look: Look) -> None:
        """Looks until something is found or the wait of `options` is over.

        Raises: whatever a look raises, and the error of a dismissal.
        """
        about = {"queue": queue, "browse": options.browse is not None}
        self._telemetry.report("wait_began", {}, about)
        began, found = perf_counter(), False
        try:
            found = self._wait(owner, queue, options, look)
        finally:
            ended = {"seconds": perf_counter() - began}
            self._telemetry.report("wait_ended", ended, {**about, "found": found})

    def watch(self, owner: int, queue: str, look: Look) -> None:
        """Waits like a browse that never finds anything, but is not listed as a waiting call.

        Raises: whatever a look raises, and the error of a dismissal.
        """
        self._wait(owner, queue, WATCHING, look)

    def _wait(self, owner: int, queue: str, options: GetOptions, look: Look) -> bool:
        deadline = self._clock.monotonic() + options.wait
        waiter = WaitingCall(owner, queue, rank_of(options), deadline, self._host.bell(queue))
        with AtEnd(self._go, waiter) as again, again:
            with self._lock:
                self._waiters.append(waiter)
                self._waiters.sort(key=lambda one: one.rank)  # stable: in order of arrival within a rank
                self._attend()  # a new waiter looks first
            return self._serve(waiter, look)

    def _go(self, waiter: WaitingCall) -> None:
        with self._lock:
            if waiter not in self._waiters:
                return
            self._ring()
            self._waiters = [one for one in self._waiters if one is not waiter]
            self._attend()

    def _attend(self) -> None:
        self._subscription.turn(heeds=bool(self._waiters))
        self._host.attend(len(self._waiters))

    def _ring(self, but: WaitingCall | None = None) -> None:
        """Wakes all sleepers and watchers, to check whether an event concerns them."""
        for one in self._waiters:
            if one is not but:
                one.bell.ring()
        for bell in self._watchers:
            bell.ring()

    def _serve(self, waiter: WaitingCall, look: Look) -> bool:
        while True:
            self._sleep_until_turn(waiter)
            now = self._clock.monotonic()
            found, again_at = self._look(waiter, look)
            if found:
                return True
            waiter.again_at = math.inf if again_at is None else again_at
            if waiter.deadline <= now:
                return False

    def _sleep_until_turn(self, waiter: WaitingCall) -> None:
        while waiter.ended is None:
            with self._lock:
                left = self._left(waiter)
                has_reason = waiter.changed or left <= 0
                if has_reason and self._is_next(waiter):
                    if waiter.looked:  # all others with a reason have looked too
                        self._begin_round(waiter.queue)
                    waiter.changed, waiter.looking, waiter.looked = False, True, True
                    return
            # If it has a reason, it waits only for its turn: the end of every look wakes it.
            waiter.bell.wait(self._clock.nap(math.inf if has_reason else left))
        raise waiter.ended

    def _left(self, waiter: WaitingCall) -> float:
        """Returns the seconds until it looks again even if nothing has changed."""
        clock = self._clock
        return min(waiter.deadline - clock.monotonic(), waiter.again_at - clock.now())

    def _is_next(self, waiter: WaitingCall) -> bool:
        """Whether nobody is looking, and this is the first by round, rank and arrival of those with a reason to
        look.
        """
        if len(self._waiters) == 1:
            return True
        others = self._on(waiter.queue)
        ready = (one for one in others if one is waiter or self._has_reason(one))
        return not any(one.looking for one in others) and min(ready, key=lambda one: one.looked) is waiter

    def _on(self, queue: str) -> list[WaitingCall]:
        return [one for one in self._waiters if one.queue == queue]

    def _has_reason(self, waiter: WaitingCall) -> bool:
        return waiter.changed or self._left(waiter) <= 0

    def _look(self, waiter: WaitingCall, look: Look) -> tuple[bool, float | None]:
        found, again_at = look()
        with self._lock:
            waiter.looking = found  # if found, it leaves and does not sleep again
            self._ring(but=waiter)
        return found, again_at

    def _begin_round(self, queue: str) -> None:
        for waiter in self._on(queue):
            waiter.looked = False

    # --- events that wake

    def _happened(self, happened: Happened) -> None:
        if not isinstance(happened, Change):
            return
        with self._lock:
            waiters = self._on(happened.queue)
            if not any(one.looking or self._has_reason(one) for one in waiters):
                self._begin_round(happened.queue)
            for waiter in waiters:
                waiter.changed = True
            self._ring()

    def _time_jumped(self) -> None:
        with self._lock:
            for waiter in self._waiters:
                waiter.changed, waiter.looked = True, False
            self._ring()

    def dismiss(self, owner: int, why: InorderError | None = None) -> bool:
        """Ends the wait of a connection. Returns whether it had one.

        Args:
            why: the error that the wait raises; None: the connection was ended from outside.
        """
        why = why or ConnectionBroken("the connection was closed while this call waited")
        with self._lock:
            waiting = [one for one in self._waiters if one.owner == owner]
            for waiter in waiting:
                waiter.ended = waiter.ended or why
            self._ring()
        return bool(waiting)

    # --- watchers, for tests

    def is_asleep(self, owner: int) -> bool:
        """Whether this connection has a waiting call with no reason to look."""
        return any(
            one.owner == owner and not one.looking and one.ended is None and not self._has_reason(one)
            for one in self._waiters
        )

    def watch_until(self, holds: Callable[[], bool]) -> None:
        """Blocks until `holds()` is true. It is checked whenever anything happens here, once all waiters have been
        notified.
        """
        bell = Bell()
        with self._lock:
            self._watchers.append(bell)
        self._changes.watchers.append(bell)
        try:
            while not self._holds(holds):
                bell.wait(None)
        finally:
            self._changes.watchers.remove(bell)
            with self._lock:
                self._watchers.remove(bell)

    def _holds(self, holds: Callable[[], bool]) -> bool:
        with self._lock:
            return not self._changes.waiting and holds()

    def poke(self) -> None:
        """Wakes watchers after something that they may wait for."""
        with self._lock:
            self._ring()
