"""Tells processes apart without a system call: a child made by fork gets a new identity. Also finds when a process
began.
"""

from __future__ import annotations

import functools
import itertools
import os
import time
from pathlib import Path

current: object = object()
"""A different object in each process; compare with `is`, and save it in objects that belong to one process."""

# Sets a new `current` at each call. Everything here is written in C: if this were a Python function, an exception from
# outside (see `locks`) inside it would leave the child with the identity of its parent.
_begin = map(globals().__setitem__, itertools.repeat("current"), iter(object, None)).__next__

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_begin)


def began_at(process: int) -> float | None:
    """When a process of this machine began, seconds since 1970; None if the system does not report it."""
    try:
        told = Path(f"/proc/{process}/stat").read_text(encoding="utf-8", errors="replace")
        ticks = int(told.rpartition(")")[2].split()[19])  # after the name, which may contain spaces
        return _at(ticks)
    except (OSError, AttributeError, IndexError, ValueError):  # not Linux, or the process has ended
        return None


@functools.lru_cache(maxsize=1024)
def _at(ticks: int) -> float:
    """Turns ticks since the boot into a time. Cached, so that repeated answers for a process are equal."""
    return time.time() - (time.clock_gettime(time.CLOCK_BOOTTIME) - ticks / os.sysconf("SC_CLK_TCK"))
