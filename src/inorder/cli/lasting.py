"""Commands that run until a signal ends them. They work in threads, so that the main thread can handle signals."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from ..errors import InorderError

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


def run_all(
    works: Sequence[tuple[str, Callable[[], object]]], ends: threading.Event | None = None
) -> InorderError | None:
    """Does each work in a thread of this name, and waits for all; returns the error of the first that has failed.

    Args:
        ends: is set when one fails, so that the others end too.
    """
    failures: dict[int, InorderError] = {}

    def run(number: int, work: Callable[[], object]) -> None:
        try:
            work()
        except InorderError as error:
            failures[number] = error
            if ends is not None:
                ends.set()

    threads = [threading.Thread(name=name, target=run, args=(n, work)) for n, (name, work) in enumerate(works)]
    for one in threads:
        one.start()
    for one in threads:
        while one.is_alive():
            one.join(LOOK_SECONDS)
    return failures[min(failures)] if failures else None
