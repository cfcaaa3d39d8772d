"""Waiting: which waiters a change wakes, in which order, and when a wait ends.

All calls of this process that wait on one store share its `WaitingRoom`. A waiter looks once at the start. Then it
sleeps until its queue changes, until a time comes that may change the result (a delayed message is due), or until its
deadline. After a change the waiters of the queue look one after another, in order of precedence (R3.27):

    removers that name a message or correlation id, then other removers, then browsers

and within a class in the order of arrival, although programs should not rely on that. A browse with lock counts as a
remover. Each look is one atomic operation of the store, so only one remover gets a message. A waiter that finds no
message sleeps again. Times are inclusive, and the last look comes before the deadline counts.

A server's calls wait without a thread each: one thread of the room, `_look_for_others`, looks for all of them.

Changes may come faster than looks. So the waiters of a queue look in rounds: a waiter looks again only after all others
with a reason to look (a deadline is one) have looked in this round. A change that finds all asleep begins a new round.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
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
LINGER_SECONDS = 1.0  # how long the thread that looks for others stays after the last of them

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
        deferred: how it looks and ends, if it waits without a separate thread.
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
    ended: BaseException | None = None
    deferred: Deferred | None = None


@dataclass(slots=True, eq=False)
class Deferred:
    """The rest of a waiting call without a thread.

    Attributes:
        look: looks once; done: called at the end, with the error if there is one.
        at_it: held by the thread that looks, and permanently after the end.
    """

    look: Look
    done: Callable[[BaseException | None], object]
    at_it: threading.Lock = field(default_factory=threading.Lock)


class WaitingRoom:
    """Holds and wakes the calls of this process that wait on one store."""

    def __init__(self, changes: Changes, host: Host, clock: Clock, telemetry: Telemetry) -> None:
        self._changes, self._host, self._clock, self._telemetry = changes, host, clock, telemetry
        self._lock = Lock()  # guards the following; no thread sleeps or looks while it holds the lock
        self._waiters: list[WaitingCall] = []
        self._watchers: list[Bell] = []
        self._common: Bell | None = None  # wakes the thread that looks for others; None: there is none
        self._subscription = changes.subscribe(self._happened, is_ours=True)
        clock.watch(self._time_jumped)

    def wait(self, owner: int, queue: str, options: GetOptions, look: Look) -> None:
        """Looks until something is found or the wait of `options` is over.

        Raises: the errors of a look, and the error of a dismissal.
        """
        ended, found = self._told(queue, options), False
        try:
            found = self._wait(owner, queue, options, look)
        finally:
            ended(found)

    def _told(self, queue: str, options: GetOptions) -> Callable[[bool], None]:
        """Reports the begin of a wait to the observers. Returns the function that reports its end."""
        about = {"queue": queue, "browse": options.browse is not None}
        self._telemetry.report("wait_began", {}, about)
        began = perf_counter()

        def ended(found: bool) -> None:
            self._telemetry.report("wait_ended", {"seconds": perf_counter() - began}, {**about, "found": found})

        return ended

    def watch(self, owner: int, queue: str, look: Look) -> None:
        """Waits like a browse that never finds anything, but is not listed as a waiting call.

        Raises: the errors of a look, and the error of a dismissal.
        """
        self._wait(owner, queue, WATCHING, look)

    def _wait(self, owner: int, queue: str, options: GetOptions, look: Look) -> bool:
        waiter = self._waiter(owner, queue, options)
        with AtEnd(self._go, waiter) as again, again:
            self._come(waiter)
            return self._serve(waiter, look)

    def _waiter(self, owner: int, queue: str, options: GetOptions) -> WaitingCall:
        deadline = self._clock.monotonic() + options.wait
        return WaitingCall(owner, queue, rank_of(options), deadline, self._host.bell(queue))

    def _come(self, waiter: WaitingCall) -> None:
        with self._lock:
            self._waiters.append(waiter)
            self._waiters.sort(key=lambda one: one.rank)  # stable: in order of arrival within a rank
            self._attend()  # a new waiter looks first

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
            if one is not but and one.deferred is None:
                one.bell.ring()
        if self._common is not None:
            self._common.ring()
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
            left = self._take_turn(waiter)
            if left is None:
                return
            waiter.bell.wait(self._clock.nap(left))
        raise waiter.ended

    def _take_turn(self, waiter: WaitingCall) -> float | None:
        """Returns None if the waiter must look now, or else the seconds for which it may sleep unless it is woken."""
        with self._lock:
            left = self._left(waiter)
            has_reason = waiter.changed or left <= 0
            if has_reason and self._is_next(waiter):
                if waiter.looked:  # all others with a reason have looked, too
                    self._begin_round(waiter.queue)
                waiter.changed, waiter.looking, waiter.looked = False, True, True
                return None
        # If it has a reason, it waits only for its turn: the end of every look wakes it.
        return math.inf if has_reason else left

    def _left(self, waiter: WaitingCall) -> float:
        """Returns the seconds until it looks again even if nothing has changed."""
        clock = self._clock
        return min(waiter.deadline - clock.monotonic(), waiter.again_at - clock.now())

    def _is_next(self, waiter: WaitingCall) -> bool:
        """Whether no waiter is looking, and this is the first by round, rank and arrival of those with a reason to
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

    # --- calls without a thread

    def wait_apart(
        self,
        owner: int,
        queue: str,
        options: GetOptions,
        look: Look,
        done: Callable[[BaseException | None], object],
        *,
        is_told: bool = True,
    ) -> None:
        """As `wait`, but returns after the first look at most. It calls `done` at the end of the wait, perhaps at once.

        Args:
            look: called in this thread, and later in a thread of the room, which must not be held up.
            done: called once, with the error that `wait` would raise, or None.
            is_told: whether observers are told of the wait. False: as `watch`.
        """
        told, found = (self._told(queue, options) if is_told else lambda _: None), False
        waiter = self._waiter(owner, queue, options)

        def looks() -> tuple[bool, float | None]:
            nonlocal found
            found, again_at = look()
            return found, again_at

        def ended(error: BaseException | None) -> None:
            self._go(waiter)
            told(found)
            done(error)

        waiter.deferred = Deferred(looks, ended)
        self._come(waiter)
        if self._advance(waiter):
            return
        with self._lock:
            is_first = self._common is None
            if self._common is None:
                self._common = self._host.bell(None)
            self._common.ring()
        if is_first:
            threading.Thread(target=self._look_for_others, name="inorder waits", daemon=True).start()

    def _advance(self, waiter: WaitingCall) -> bool:
        """Lets a call without a thread look, if it is its turn. Returns whether its wait is over."""
        call = waiter.deferred
        assert call is not None
        if not call.at_it.acquire(blocking=False):
            return False
        error = waiter.ended
        while error is None:
            if self._take_turn(waiter) is not None:
                call.at_it.release()
                return False
            now = self._clock.monotonic()
            try:
                found, again_at = self._look(waiter, call.look)
            except BaseException as failure:  # noqa: BLE001 - the caller of the wait gets it
                error = failure
                break
            if found or waiter.deadline <= now:
                break
            waiter.again_at = math.inf if again_at is None else again_at
            error = waiter.ended
        call.done(error)
        return True

    def _look_for_others(self) -> None:
        """Looks for all calls that wait without a thread, and ends some time after the last of them."""
        bell, lingers = self._common, False
        assert bell is not None
        while True:
            with self._lock:
                calls = [one for one in self._waiters if one.deferred is not None]
                if not calls and lingers:
                    self._common = None
                    return
                lingers, left, ready = not calls, math.inf if calls else LINGER_SECONDS, []
                for one in calls:
                    due = self._left(one)
                    if one.changed or one.ended is not None or due <= 0:
                        ready.append(one)
                    else:
                        left = min(left, due)
            gone = [self._advance(one) for one in ready]
            if any(gone):
                continue  # it may be the turn of another
            try:
                bell.wait(self._clock.nap(left))
            except BaseException as error:  # noqa: BLE001 - such as the end of the store; the callers get it
                for one in calls:
                    one.ended = one.ended or error

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
        """Blocks until `holds()` is true; it is checked after each event, once all waiters have been notified."""
        bell = Bell()
        with self._lock:
            self._watchers.append(bell)
        self._changes.watchers.append(bell)
        try:
            while True:
                with self._lock:
                    if not self._changes.waiting and holds():
                        return
                bell.wait(None)
        finally:
            self._changes.watchers.remove(bell)
            with self._lock:
                self._watchers.remove(bell)

    def poke(self) -> None:
        """Wakes watchers after an event for which they may wait."""
        with self._lock:
            self._ring()
