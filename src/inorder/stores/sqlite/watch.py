"""Noticing what other processes do: while calls of this process wait, a thread looks for changes.

A look reads one number from memory that all processes share. Only if it is another one the waiters are told, and of
their queues alone; they then look at the store. Once a second the thread sees whether some process has died: what
that one held becomes free.
"""

from __future__ import annotations

import logging
import threading
import time
import weakref
from typing import TYPE_CHECKING

from ..base import Change
from . import owners

if TYPE_CHECKING:
    from .store import SqliteStore

log = logging.getLogger("inorder.stores")

LOOK_SECONDS = 0.004
BURY_SECONDS = 1.0
JOIN_SECONDS = 5.0


class Watch:
    """The thread, and what it compares with. It does not keep the store alive."""

    def __init__(self, store: SqliteStore) -> None:
        self._wanted = threading.Event()
        self._store = weakref.ref(store, lambda _: self._wanted.set())  # the thread sees that it has gone, and ends
        self._seen: dict[int, tuple[str, int]] = {}  # queues that calls have waited on, with what was seen last
        self._any = 0
        self._waiting = 0
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._ended = False

    def attend(self, *, waits: bool) -> None:
        """One more call waits, or one less."""
        with self._lock:
            self._waiting += 1 if waits else -1
            if self._ended:
                return
            if not self._waiting:
                self._wanted.clear()
                return
            self._wanted.set()
            if self._thread is None or not self._thread.is_alive():
                self._thread = threading.Thread(target=_run, args=(self,), name="inorder watch", daemon=True)
                self._thread.start()

    def looked(self, queue: int, name: str, seen: int) -> None:
        """A call has looked at a queue, at this state of it, and waits for another one.

        While other calls wait, what they have seen stands: should it be older, they are still to be told.
        """
        if self._waiting <= 1 or queue not in self._seen:
            self._seen[queue] = name, seen

    def own(self, queue: int, seen: int) -> None:
        """This process has changed the queue: its waiters are told already."""
        if queue in self._seen:
            self._seen[queue] = self._seen[queue][0], seen

    def end(self) -> None:
        """No more looks."""
        with self._lock:
            self._ended = True
            self._wanted.set()
            thread, self._thread = self._thread, None
        if thread is not None and thread is not threading.current_thread():
            thread.join(JOIN_SECONDS)

    def _look(self, store: SqliteStore) -> None:
        now = store.database.seen_any()
        if now == self._any:
            return
        self._any = now
        for queue, (name, before) in list(self._seen.items()):
            seen = store.database.seen(queue)
            if seen != before:
                self._seen[queue] = name, seen
                store.tell_of(Change(name))

    def _tell_all(self, store: SqliteStore) -> None:
        for name, _ in list(self._seen.values()):
            store.tell_of(Change(name))


def _run(watch: Watch) -> None:
    bury_at = time.monotonic() + BURY_SECONDS
    while True:
        watch._wanted.wait()
        store = watch._store()
        if store is None or watch._ended:
            return
        try:
            watch._look(store)
            if time.monotonic() >= bury_at:
                bury_at = time.monotonic() + BURY_SECONDS
                owners.bury_dead(store)
        except Exception:
            log.exception("the store cannot be watched; waiting calls look for themselves, and meet the error")
            watch._tell_all(store)
            time.sleep(BURY_SECONDS)
        del store
        time.sleep(LOOK_SECONDS)
