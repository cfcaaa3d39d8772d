"""Clocks: the time that expiry, delivery delay and waits go by. It is always passed in.

`SystemClock` is the machine's. `inorder.testing.ManualClock` stands still until a test moves it.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Protocol

SLEEP_SECONDS_MAX = 3600.0  # a thread cannot be asked to sleep for ever longer; it looks and sleeps again


class Clock(Protocol):
    """What the queue manager asks of a clock."""

    def now(self) -> float:
        """Seconds since 1970."""
        ...

    def pause(self, condition: threading.Condition, until: float | None) -> None:
        """Waits on `condition`, which the caller holds, until it is notified or the time is `until`."""
        ...

    def watch(self, moved: Callable[[], None]) -> None:
        """Calls `moved` whenever time jumps; a clock that only flows never calls it."""
        ...


class SystemClock:
    """The machine's clock."""

    def now(self) -> float:
        return time.time()

    def pause(self, condition: threading.Condition, until: float | None) -> None:
        condition.wait(None if until is None else min(max(0.0, until - self.now()), SLEEP_SECONDS_MAX))

    def watch(self, moved: Callable[[], None]) -> None:
        """Time never jumps here."""
