"""Clocks: the time that expiry, delivery delay and waits go by. It is always passed in.

`SystemClock` is the machine's. `inorder.testing.ManualClock` stands still until a test moves it.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Protocol

SLEEP_SECONDS_MAX = 60.0  # the machine's clock may be set: a sleep until a time looks at the clock as often as this


class Clock(Protocol):
    """What the queue manager asks of a clock."""

    def now(self) -> float:
        """Seconds since 1970."""
        ...

    def monotonic(self) -> float:
        """Seconds that only flow, from any beginning: how long a call waits is the same if the clock is set."""
        ...

    def nap(self, seconds: float) -> float | None:
        """How long a caller that has so many seconds to wait may sleep in one go; None: until woken."""
        ...

    def watch(self, moved: Callable[[], None]) -> None:
        """Calls `moved` whenever time jumps; a clock that only flows never calls it."""
        ...


class SystemClock:
    """The machine's clock."""

    now, monotonic = staticmethod(time.time), staticmethod(time.monotonic)

    def nap(self, seconds: float) -> float | None:
        return None if seconds == math.inf else min(max(0.0, seconds), SLEEP_SECONDS_MAX)

    def watch(self, moved: Callable[[], None]) -> None:
        """Does nothing: a sleeper looks at the clock again by itself."""
