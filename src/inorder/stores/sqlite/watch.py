"""Noticing what other processes do: a call that waits is woken when any process has changed its queue.

It sleeps on the bell that all processes hear (`bell.py`), and wakes at once. Once a second it wakes by itself, looks as
if it had been woken, and sees whether some process has died: what that one held becomes free. One call does that for
all calls of its process.

Where no process can wake another one, it looks every `LOOK_SECONDS`.
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
    """The queues on which calls of this process wait, with the state of each that they have seen."""

    def __init__(self) -> None:
        self.queues: dict[int, int | None] = {}  # None: all who wait for it were woken, and are going to look
        self.numbers: dict[str, int] = {}
        self.lock = Lock()
        self.waiting = 0  # calls

    def looked(self, queue: int, name: str, seen: int) -> None:
        """A call has looked at a queue, at this state of it, and waits for another one.

        While other calls wait, what they have seen stands: if it is older, they are still to be woken.
        """
        with self.lock:
            if self.waiting <= 1 or self.queues.get(queue) is None:
                self.queues[queue] = seen
                self.numbers[name] = queue

    def attend(self, waiting: int) -> None:
        """So many calls wait now."""
        with self.lock:
            self.waiting = waiting
            if not waiting:
                self.numbers.clear()  # first: an exception from outside may come between, and `queues` has each of them
                self.queues.clear()

    def own(self, queue: int, seen: int) -> None:
        """This process has changed the queue: its waiters know already."""
        with self.lock:
            if self.queues.get(queue) is not None:
                self.queues[queue] = seen


class SqliteWatch:
    """What the calls of this process that wait share. It does not keep the store alive."""

    def __init__(self, store: OpenStore, database: Database, seen: WaitedQueues) -> None:
        self._store = weakref.ref(store)
        self._database, self._seen = database, seen
        self.ended = False  # written, and the shared memory read, with the lock of `seen`
        self._next_dead_check = 0.0

    def attend(self, waiting: int) -> None:
        """So many calls wait now."""
        self._seen.attend(waiting)

    def looked(self, queue: int, name: str) -> None:
        """Inside a verb, which looks for the dead by itself: a call has found nothing on a queue, and waits."""
        self._seen.looked(queue, name, self._database.expect(queue))
        self._next_dead_check = time.monotonic() + DEAD_CHECK_SECONDS

    def end(self) -> None:
        """The store is about to be closed: waiting calls raise an error."""
        with self._seen.lock:
            if not self.ended:
                self.ended = True
                self._database.bell.ring(bell.own_bit())

    def ring(self) -> None:
        """Wakes the calls of this process."""
        with self._seen.lock:
            if not self.ended:
                self._database.bell.ring(bell.own_bit())

    def sleep(self, name: str, seconds: float, is_rung: Callable[[], bool]) -> None:
        """Returns when something may have happened on the queue, or was rung, or it is time for `look`.

        Args:
            is_rung: whether the caller was rung for; asked when the next ring is sure to be heard.
        """
        with self._seen.lock:
            if self.ended:
                return
            shared = self._database.bell
            rings = shared.rings
            queue = self._seen.numbers.get(name)
            if is_rung() or (queue is not None and self._has_news(queue)):
                return
        shared.sleep(rings, queue, min(seconds, self._next_dead_check - time.monotonic()))

    def look(self, name: str) -> None:
        """Reports if others have changed the queue since the last look of those who wait, or if its next change would
        not be heard. Raises: whatever a verb raises that looks for the dead."""
        store = self._store()
        assert store is not None, "a call waits on a store that is gone"
        with store.lock, self._seen.lock:  # behind the verb that runs: of its changes those who wait learn from it
            queue = None if self.ended else self._seen.numbers.get(name)
            has_news = queue is not None and self._has_news(queue)
            if queue is not None and has_news:
                store.changes.add([Change(name)])
                self._seen.queues[queue] = None
        if has_news:  # what a verb of this process has changed that verb hands out, before its call returns
            store.changes.hand_out()
        if time.monotonic() >= self._next_dead_check:
            self._next_dead_check = time.monotonic() + DEAD_CHECK_SECONDS
            end_dead_processes(store)

    def _has_news(self, queue: int) -> bool:
        seen = self._seen.queues[queue]
        return seen is not None and (self._database.seen(queue) != seen or not self._database.bell.expects(queue))


class SqliteBell(Bell):
    """Wakes a thread that waits for a queue: when it is rung, and when another process has changed the queue."""

    def __init__(self, watch: SqliteWatch, queue: str) -> None:
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
        """As with `Bell`. Raises: what `SqliteWatch.look` raises; ConnectionClosed."""
        ends_at = math.inf if seconds is None else time.monotonic() + seconds
        try:
            while not self._is_rung and (left := ends_at - time.monotonic()) > 0:
                self._sleeps = True  # a ring from now on wakes it
                if not self._is_rung:
                    self._sleep(left)
                self._sleeps = False
                if not self._is_rung:
                    self._watch.look(self._queue)
                if self._watch.ended and not self._is_rung:  # a call that was dismissed before learns that
                    raise ConnectionClosed("the store was closed while this call waited")
        finally:
            self._is_rung = self._sleeps = False

    def _sleep(self, seconds: float) -> None:
        if bell.WAKES:
            self._watch.sleep(self._queue, seconds, lambda: self._is_rung)
        else:
            super().wait(min(seconds, LOOK_SECONDS))
