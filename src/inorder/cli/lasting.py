"""Commands that go on until a signal ends them: in threads, so that the signal finds the main one free."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

LOOK_SECONDS = 1.0


@contextmanager
def ends_by_signal() -> Iterator[threading.Event]:
    """Set by the signals that end a program."""
    ends = threading.Event()
    before = {number: signal.signal(number, lambda *_: ends.set()) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield ends
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def run_all(threads: Sequence[threading.Thread]) -> None:
    """Runs threads to their ends."""
    for one in threads:
        one.start()
    for one in threads:
        while one.is_alive():
            one.join(LOOK_SECONDS)
