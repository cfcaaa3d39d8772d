"""Makes SIGTERM and SIGHUP end a tool as Ctrl-C does, so that it stops the processes that it started."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def ended_by_signals() -> Iterator[None]:
    """Either signal raises SystemExit in the block; a second one does not interrupt the clean-up. For the main thread.

    A SIGHUP that is ignored, as under nohup, stays so.
    """
    before = {one: signal.getsignal(one) for one in (signal.SIGTERM, signal.SIGHUP)}
    heeded = [one for one, action in before.items() if action is not signal.SIG_IGN]

    def end(number: int, _: object) -> None:
        for one in heeded:
            signal.signal(one, signal.SIG_IGN)
        sys.exit(128 + number)

    for one in heeded:
        signal.signal(one, end)
    try:
        yield
    finally:
        for one in heeded:
            signal.signal(one, before[one])
