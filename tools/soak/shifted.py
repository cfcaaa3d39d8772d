"""A clock of several processes that can be set while they run, as an administrator sets the machine's."""

from __future__ import annotations

import mmap
import time
from pathlib import Path

from inorder.support.clock import SystemClock

LENGTH = 8


class ShiftedClock(SystemClock):
    """The machine's clock, and a shift that all processes read from one small file.

    No process is notified when it is set: this is the difference from `inorder.testing.ManualClock`.
    """

    def __init__(self, path: Path) -> None:
        with path.open("a+b") as file:
            if file.seek(0, 2) < LENGTH:
                file.write(bytes(LENGTH))
                file.flush()
            self._shift = memoryview(mmap.mmap(file.fileno(), LENGTH)).cast("d")

    def now(self) -> float:
        return time.time() + self._shift[0]

    def set(self, seconds: float) -> None:
        """Shifts the clock by this many seconds from the machine's, from now on, for all processes."""
        self._shift[0] = seconds
