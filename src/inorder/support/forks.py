"""Which process this is, without a call of the system each time: a child made by fork begins a life of its own.

And when a process began, as the system knows it.
"""

from __future__ import annotations

import functools
import itertools
import os
import time
from pathlib import Path

current: object = object()
"""Another one in each process; an object that was made in this one keeps it, and compares with `is`."""

# Sets a new `current` at each call. All of it is written in C: an exception from outside (see `locks`) that came into a
# function here would leave the child with the life of its parent.
_begin = map(globals().__setitem__, itertools.repeat("current"), iter(object, None)).__next__

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_begin)


def began_at(process: int) -> float | None:
    """When a process of this machine began, seconds since 1970; None where the system does not say."""
    try:
        told = Path(f"/proc/{process}/stat").read_text(encoding="utf-8", errors="replace")
        ticks = int(told.rpartition(")")[2].split()[19])  # behind the name, which may have spaces
        return _at(ticks)
    except (OSError, AttributeError, IndexError, ValueError):  # not Linux, or the process has ended
        return None


@functools.lru_cache(maxsize=1024)
def _at(ticks: int) -> float:
    """When the machine had run so long. It is asked once, so that the answer about a process stays the same."""
    return time.time() - (time.clock_gettime(time.CLOCK_BOOTTIME) - ticks / os.sysconf("SC_CLK_TCK"))
