"""Named points inside the store's transactions, at which a crash test has the process killed.

The environment variable INORDER_CRASH_AT="committed:3", read once at import, kills the process with SIGKILL when it
comes to the point "committed" for the third time. Without the variable a point costs one call of an empty function.
"""

from __future__ import annotations

import os
import signal

VARIABLE = "INORDER_CRASH_AT"
POINTS = {
    "begun": "a writing transaction has begun",
    "written": "all is written, before COMMIT",
    "committed": "after COMMIT, before the turn is released",
    "before-sync": "before the log is synced for those who wait",
    "synced": "the log is on disk, nobody has been told",
    "settled": "a unit is settled, its bodies are not yet removed",
    "staged": "rows are staged and on disk, the caller has not been told",
    "settled-staging": "what was staged is put, it is still staged and not in the ledger",
    "reaping": "in the middle of backing out a dead owner",
    "checkpoint": "before the log is copied into the database",
}


def _never(_name: str) -> None:
    """No crash was asked for."""


class _Crash:
    """Kills the process when it comes to a point for the nth time."""

    def __init__(self, asked: str) -> None:
        self._point, _, nth = asked.partition(":")
        if self._point not in POINTS or not nth.isdecimal() or int(nth) < 1:
            raise ValueError(f"{VARIABLE}={asked!r}: say POINT:NTH, with one of the points {', '.join(POINTS)}")
        self._left = int(nth)

    def __call__(self, name: str) -> None:
        assert name in POINTS, name
        if name == self._point:
            self._left -= 1
            if self._left == 0:
                os.kill(os.getpid(), signal.SIGKILL)


reached = _Crash(os.environ[VARIABLE]) if VARIABLE in os.environ else _never
"""Called when the store has come to a point, one of `POINTS`, with its name."""
