"""Makes SIGTERM and SIGHUP end a tool as Ctrl-C does, so that it stops the processes that it started."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

AFTER_SECONDS: Final = 0.01  # by then the callback that received the exception has ended


@contextmanager
def ended_by_signals() -> Iterator[None]:
    """Either signal raises SystemExit in the block; a second one does not interrupt the clean-up. For the main thread.

    A SIGHUP that is ignored, as under nohup, stays ignored. Python catches an exception in a callback of a weak
    reference, or in a `__del__`, and only reports it; then it is raised again.
    """
    before = {one: signal.getsignal(one) for one in (signal.SIGTERM, signal.SIGHUP)}
    heeded = [one for one, action in before.items() if action is not signal.SIG_IGN]

    def end(number: int, _: object) -> None:
        for one in heeded:
            signal.signal(one, signal.SIG_IGN)
        sys.exit(128 + number)

    def end_after_all(taken: sys.UnraisableHookArgs) -> None:
        report(taken)
        if isinstance(error := taken.exc_value, SystemExit):
            signal.signal(signal.SIGALRM, lambda *_: sys.exit(error.code))
            signal.setitimer(signal.ITIMER_REAL, AFTER_SECONDS)

    report, sys.unraisablehook = sys.unraisablehook, end_after_all
    for one in heeded:
        signal.signal(one, end)
    try:
        yield
    finally:
        sys.unraisablehook = report
        for one in heeded:
            signal.signal(one, before[one])
