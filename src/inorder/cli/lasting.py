"""Commands that run until a signal ends them. They work in threads, so that the main thread can handle signals."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

LOOK_SECONDS = 1.0


@contextmanager
def ends_by_signal() -> Iterator[threading.Event]:
    """An event that SIGINT and SIGTERM set."""
    ends = threading.Event()
    before = {number: signal.signal(number, lambda *_: ends.set()) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield ends
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def run_all(threads: Sequence[threading.Thread]) -> None:
    """Starts the threads and waits for all of them to end."""
    for one in threads:
        one.start()
    for one in threads:
        while one.is_alive():
            one.join(LOOK_SECONDS)
