"""Clocks: the time for expiry, delivery delay and waits. Every function gets its clock as an argument.

`SystemClock` is the machine's. `inorder.testing.ManualClock` only moves when a test moves it.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Protocol

SLEEP_SECONDS_MAX = 60.0  # a sleep until a time checks the clock this often, because somebody may set it


class Clock(Protocol):
    """The calls that the queue manager makes on a clock."""

    def now(self) -> float:
        """Seconds since 1970."""
        ...

    def monotonic(self) -> float:
        """Seconds that never jump, from any start: setting the clock does not change how long a call waits."""
        ...

    def nap(self, seconds: float) -> float | None:
        """The longest single sleep for a caller that must wait this many seconds; None: until it is woken."""
        ...

    def watch(self, moved: Callable[[], None]) -> None:
        """Calls `moved` whenever time jumps; a clock that never jumps never calls it."""
        ...


class SystemClock:
    """The machine's clock."""

    now, monotonic = staticmethod(time.time), staticmethod(time.monotonic)

    def nap(self, seconds: float) -> float | None:
        return None if seconds == math.inf else min(max(0.0, seconds), SLEEP_SECONDS_MAX)

    def watch(self, moved: Callable[[], None]) -> None:
        """Does nothing: a sleeper checks the clock again by itself."""
