"""ManualClock: time that moves only when a test moves it."""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from pathlib import Path

from ..errors import bad_argument

POLL_SECONDS = 0.005
START = 1_000_000_000.0


class ManualClock:
    """A clock that stands still until `advance` moves it.

    Args:
        start: the initial time, in seconds since 1970.
        path: a file that holds the time, so that several processes share one clock; created if it is missing.
    """

    def __init__(self, start: float = START, path: str | os.PathLike[str] | None = None) -> None:
        if isinstance(start, bool) or not isinstance(start, int | float) or not math.isfinite(start):
            raise bad_argument("start", start, "seconds since 1970")
        self._time = float(start)
        if path is not None and not isinstance(path, str | os.PathLike):
            raise bad_argument("path", path, "the path of a file")
        self._path = None if path is None else Path(path)
        self._watchers: list[Callable[[], None]] = []
        if self._path is None:
            return
        if not self._path.exists():
            self._write(self._time)
        try:
            self.now()
        except ValueError:
            raise bad_argument("path", path, "a file that holds a time, or none yet") from None

    def now(self) -> float:
        return self._time if self._path is None else float(self._path.read_text())

    def advance(self, seconds: float) -> float:
        """Moves the time in one jump and returns it; waits of this process look again before this returns.

        Waits of other processes that share the path notice within milliseconds. One process moves the clock.
        """
        if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not 0 <= seconds < math.inf:
            raise bad_argument("seconds", seconds, "a finite number from 0")
        now = self.now() + seconds
        if self._path is None:
            self._time = now
        else:
            self._write(now)
        for moved in list(self._watchers):
            moved()
        return now

    def monotonic(self) -> float:
        return self.now()

    def nap(self, seconds: float) -> float | None:
        """Returns the real seconds after which a sleeper looks at the time again; None: when it is woken."""
        return None if self._path is None or seconds == math.inf else POLL_SECONDS

    def watch(self, moved: Callable[[], None]) -> None:
        self._watchers.append(moved)

    def _write(self, time: float) -> None:
        assert self._path is not None
        fresh = self._path.with_name(f"{self._path.name}.{os.getpid()}")
        fresh.write_text(repr(time))
        fresh.replace(self._path)
