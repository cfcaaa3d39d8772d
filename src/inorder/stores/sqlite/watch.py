"""Notices changes by other processes: wakes a waiting call when any process has changed its queue.

The call sleeps on the bell that all processes share (`bell.py`), and wakes at once. Once a second it wakes by itself,
looks as if it had been woken, and checks whether a process has died, whose messages then become available. One call
does that for all calls of its process.

On systems where processes cannot wake each other, it looks every `LOOK_SECONDS`.
"""

from __future__ import annotations

import math
import time
import weakref
from collections.abc import Callable

from ...errors import ConnectionClosed
from ...support.locks import Bell, Lock
from ..engine.connections import end_dead_processes
from ..engine.process import OpenStore
from ..seam.changes import Change
from . import bell
from .database import Database

LOOK_SECONDS = 0.006
DEAD_CHECK_SECONDS = 1.0


class WaitedQueues:
    """The queues on which calls of this process wait, with the state of each that these calls have seen."""

    def __init__(self) -> None:
        self.queues: dict[int, int | None] = {}  # None: all calls that wait for it were woken and will look
        self.numbers: dict[str, int] = {}
        self.lock = Lock()
        self.waiting = 0  # calls

    def looked(self, queue: int, name: str, seen: int) -> None:
        """Records that a call has looked at this state of a queue and waits for another one.

        While other calls wait, the state that they have seen stays: if it is older, they must still be woken.
        """
        with self.lock:
            if self.waiting <= 1 or self.queues.get(queue) is None:
                self.queues[queue] = seen
                self.numbers[name] = queue

    def attend(self, waiting: int) -> None:
        """Sets how many calls wait now."""
        with self.lock:
            self.waiting = waiting
            if not waiting:
                self.numbers.clear()  # first: if an exception comes in between, `queues` still has them all
                self.queues.clear()

    def named(self, name: str | None) -> dict[str, int]:
        """Returns the queue of this name, if calls wait on it, with its number; None: all on which calls wait."""
        if name is None:
            return dict(self.numbers)
        return {name: self.numbers[name]} if name in self.numbers else {}

    def own(self, queue: int, seen: int) -> None:
        """Records a change by this process, whose waiting calls already know it."""
        with self.lock:
            if self.queues.get(queue) is not None:
                self.queues[queue] = seen


class SqliteWatch:
    """The shared state of the waiting calls of this process. It does not keep the store alive."""

    def __init__(self, store: OpenStore, database: Database, seen: WaitedQueues) -> None:
        self._store = weakref.ref(store)
        self._database, self._seen = database, seen
        self.ended = False  # written, like the reads of the shared memory, under the lock of `seen`
        self._next_dead_check = 0.0

    def attend(self, waiting: int) -> None:
        """Sets how many calls wait now."""
        self._seen.attend(waiting)

    def looked(self, queue: int, name: str) -> None:
        """Inside an operation, which looks for dead processes itself: a call has found nothing on a queue, and
        waits.
        """
        shared = self._database.shared
        shared.bell.expect(queue)
        self._seen.looked(queue, name, shared.seen(queue))
        self._next_dead_check = time.monotonic() + DEAD_CHECK_SECONDS

    def end(self) -> None:
        """Makes waiting calls raise an error, before the store is closed."""
        with self._seen.lock:
            if not self.ended:
                self.ended = True
                self._database.shared.bell.ring(bell.own_bit())

    def ring(self) -> None:
        """Wakes the calls of this process."""
        with self._seen.lock:
            if not self.ended:
                self._database.shared.bell.ring(bell.own_bit())

    def sleep(self, name: str | None, seconds: float, is_rung: Callable[[], bool]) -> None:
        """Returns when the queue may have changed, the bell was rung, or it is time for `look`.

        Args:
            name: of the queue; None: any on which calls of this process wait.
            is_rung: whether the bell was rung; called once the next ring cannot be missed.
        """
        with self._seen.lock:
            if self.ended:
                return
            shared = self._database.shared.bell
            rings = shared.rings
            queues = self._seen.named(name).values()
            if is_rung() or any(map(self._has_news, queues)):
                return
        shared.sleep(rings, queues, min(seconds, self._next_dead_check - time.monotonic()))

    def look(self, name: str | None) -> None:
        """Reports changes that others made since the waiting calls looked last, and whether the next change could be
        missed.

        Raises: the errors of operations that look for dead processes.
        """
        store = self._store()
        assert store is not None, "a call waits on a store that is gone"
        with store.lock, self._seen.lock:  # after the running operation, which reports its own changes
            found = {} if self.ended else self._seen.named(name)
            news = {one: number for one, number in found.items() if self._has_news(number)}
            store.changes.add(map(Change, news))
            self._seen.queues.update(dict.fromkeys(news.values()))
        if news:  # an operation of this process delivers its own changes before its call returns
            store.changes.hand_out()
        if time.monotonic() >= self._next_dead_check:
            self._next_dead_check = time.monotonic() + DEAD_CHECK_SECONDS
            end_dead_processes(store)

    def _has_news(self, queue: int) -> bool:
        seen, shared = self._seen.queues[queue], self._database.shared
        return seen is not None and (shared.seen(queue) != seen or not shared.bell.expects(queue))


class SqliteBell(Bell):
    """Wakes a thread that waits for a queue: when it is rung, or when another process has changed the queue.

    Args:
        queue: None: any queue on which calls of this process wait.
    """

    def __init__(self, watch: SqliteWatch, queue: str | None) -> None:
        super().__init__()
        self._watch, self._queue = watch, queue
        self._is_rung = self._sleeps = False

    def ring(self) -> None:
        self._is_rung = True
        if self._sleeps:
            if bell.WAKES:
                self._watch.ring()
            else:
                super().ring()

    def wait(self, seconds: float | None) -> None:
        """As `Bell.wait`. Raises: the errors of `SqliteWatch.look`; ConnectionClosed."""
        ends_at = math.inf if seconds is None else time.monotonic() + seconds
        try:
            while not self._is_rung and (left := ends_at - time.monotonic()) > 0:
                self._sleeps = True  # a ring from now on wakes it
                if not self._is_rung:
                    self._sleep(left)
                self._sleeps = False
                if not self._is_rung:
                    self._watch.look(self._queue)
                if self._watch.ended and not self._is_rung:  # a call that was dismissed before gets that error
                    raise ConnectionClosed("the store was closed while this call waited")
        finally:
            self._is_rung = self._sleeps = False

    def _sleep(self, seconds: float) -> None:
        if bell.WAKES:
            self._watch.sleep(self._queue, seconds, lambda: self._is_rung)
        else:
            super().wait(min(seconds, LOOK_SECONDS))
