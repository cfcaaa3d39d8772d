"""Noticing what other processes do: while calls of this process wait, a thread looks for changes.

A look reads one number from memory that all processes share. Only if it is another one the waiters are woken, and of
their queues alone; they then look at the store. Once a second the thread sees whether some process has died: what
that one held becomes free.
"""

from __future__ import annotations

import logging
import threading
import time
import weakref

from ...locks import Bell, Lock
from ..changes import Change
from ..connections import bury_dead
from ..process import OpenStore
from .database import Database

log = logging.getLogger("inorder.stores")

LOOK_SECONDS = 0.006
BURY_SECONDS = 1.0
JOIN_SECONDS = 5.0


class WaitedQueues:
    """The queues on which calls of this process wait, with the state of each that they have seen."""

    def __init__(self) -> None:
        self.queues: dict[int, tuple[str, int]] = {}
        self._lock = Lock()
        self.waiting = 0  # calls

    def looked(self, queue: int, name: str, seen: int) -> None:
        """A call has looked at a queue, at this state of it, and waits for another one.

        While other calls wait, what they have seen stands: should it be older, they are still to be told.
        """
        with self._lock:
            if self.waiting <= 1 or queue not in self.queues:
                self.queues[queue] = name, seen

    def forget(self) -> None:
        """No call waits any more."""
        with self._lock:
            self.queues.clear()

    def own(self, queue: int, seen: int) -> None:
        """This process has changed the queue: its waiters know already."""
        with self._lock:
            if queue in self.queues:
                self.queues[queue] = self.queues[queue][0], seen

    def changed(self, database: Database) -> list[str]:
        """The queues that are in another state than was seen; that one counts as seen now."""
        with self._lock:
            found = []
            for queue, (name, before) in self.queues.items():
                seen = database.seen(queue)
                if seen != before:
                    self.queues[queue] = name, seen
                    found.append(name)
            return found

    def names(self) -> list[str]:
        with self._lock:
            return [name for name, _ in self.queues.values()]


class Watch:
    """The thread. It does not keep the store alive."""

    def __init__(self, store: OpenStore, database: Database, seen: WaitedQueues) -> None:
        self.bell = Bell()  # calls wait now, or the store has gone: the thread looks, or ends
        self.store = weakref.ref(store, lambda _: self.bell.ring())
        self.database, self.seen = database, seen
        self.ended = self.asleep = False
        self._any = 0
        self._lock = Lock()
        self._thread: threading.Thread | None = None

    def attend(self, waiting: int) -> None:
        """So many calls wait now."""
        with self._lock:
            self.seen.waiting = waiting
            if not waiting:
                self.seen.forget()
            if self.ended or not waiting:
                return
            if self.asleep:
                self.bell.ring()
            if self._thread is None or not self._thread.is_alive():
                self._thread = threading.Thread(target=_run, args=(self,), name="inorder watch", daemon=True)
                self._thread.start()

    def end(self) -> None:
        """No more looks."""
        with self._lock:
            self.ended = True
            self.bell.ring()
            thread, self._thread = self._thread, None
        if thread is not None and thread is not threading.current_thread():
            thread.join(JOIN_SECONDS)

    def look(self, store: OpenStore) -> None:
        """Reports what others have changed since the last look."""
        now = self.database.seen_any()
        if now == self._any:
            return
        self._any = now
        store.changes.report([Change(name) for name in self.seen.changed(self.database)])


def _run(watch: Watch) -> None:
    bury_at = time.monotonic() + BURY_SECONDS
    while True:
        if not watch.seen.waiting:
            watch.asleep = True
            if not watch.seen.waiting and not watch.ended:  # now that whoever comes rings
                watch.bell.wait(None)
            watch.asleep = False
        store = watch.store()
        if store is None or watch.ended:
            return
        try:
            watch.look(store)
            if time.monotonic() >= bury_at:
                bury_at = time.monotonic() + BURY_SECONDS
                bury_dead(store)
        except Exception:
            log.exception("the store cannot be watched; waiting calls look for themselves, and meet the error")
            store.changes.report([Change(name) for name in watch.seen.names()])
            time.sleep(BURY_SECONDS)
        del store
        time.sleep(LOOK_SECONDS)
