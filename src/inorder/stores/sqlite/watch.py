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

from . import owners
from .home import Home, Seen

log = logging.getLogger("inorder.stores")

LOOK_SECONDS = 0.006
BURY_SECONDS = 1.0
JOIN_SECONDS = 5.0


class Watch:
    """The thread. It does not keep the store alive."""

    def __init__(self, home: Home) -> None:
        self.wanted = threading.Event()
        self.home = weakref.ref(home, lambda _: self.wanted.set())  # the thread sees that it has gone, and ends
        self.ended = False
        self._any = 0
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None

    def attend(self, seen: Seen, *, waits: bool) -> None:
        """One more call waits, or one less."""
        with self._lock:
            seen.waiting += 1 if waits else -1
            if self.ended:
                return
            if not seen.waiting:
                self.wanted.clear()
                return
            self.wanted.set()
            if self._thread is None or not self._thread.is_alive():
                self._thread = threading.Thread(target=_run, args=(self,), name="inorder watch", daemon=True)
                self._thread.start()

    def end(self) -> None:
        """No more looks."""
        with self._lock:
            self.ended = True
            self.wanted.set()
            thread, self._thread = self._thread, None
        if thread is not None and thread is not threading.current_thread():
            thread.join(JOIN_SECONDS)

    def look(self, home: Home) -> None:
        """Tells of what others have changed since the last look."""
        now = home.database.seen_any()
        if now == self._any:
            return
        self._any = now
        for name in home.seen.changed(home.database):
            home.tell_of(name)


def _run(watch: Watch) -> None:
    bury_at = time.monotonic() + BURY_SECONDS
    while True:
        watch.wanted.wait()
        home = watch.home()
        if home is None or watch.ended:
            return
        try:
            watch.look(home)
            if time.monotonic() >= bury_at:
                bury_at = time.monotonic() + BURY_SECONDS
                owners.bury_dead(home)
        except Exception:
            log.exception("the store cannot be watched; waiting calls look for themselves, and meet the error")
            for name in home.seen.names():
                home.tell_of(name)
            time.sleep(BURY_SECONDS)
        del home
        time.sleep(LOOK_SECONDS)
