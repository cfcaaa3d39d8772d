"""Named points of the source and the sink, at which a test holds a process, to kill it there.

The environment variable INORDER_SPARK_HOLD_AT="claimed:2:/tmp/held", read once at import, makes a process that comes to
the point "claimed" for the second time write a line into that file, and wait until it is killed. Without the variable
a point costs one call of an empty function.
"""

from __future__ import annotations

import os
import signal
from pathlib import Path

VARIABLE = "INORDER_SPARK_HOLD_AT"
POINTS = {
    "next": "the planner asks for the next offset; of the batches before, Spark's commit log knows",
    "claimed": "a claim is taken, and Spark does not know it",
    "logged": "Spark's offset log knows the claim; it is not planned",
    "planned": "the claim is planned, nothing is read",
    "reading": "a task has read a page of a slice",
    "staged": "a task of the sink has staged its rows",
    "settled": "the sink has put a batch, and Spark does not know it",
}


def _never(_name: str) -> None:
    """Nobody is to be held."""


class _Hold:
    """Holds the process when it comes to a point for the nth time."""

    def __init__(self, asked: str) -> None:
        self._point, _, rest = asked.partition(":")
        nth, _, file = rest.partition(":")
        if self._point not in POINTS or not nth.isdecimal() or int(nth) < 1 or not file:
            raise ValueError(f"{VARIABLE}={asked!r}: say POINT:NTH:FILE, with one of the points {', '.join(POINTS)}")
        self._left, self._file = int(nth), Path(file)

    def __call__(self, name: str) -> None:
        assert name in POINTS, name
        if name == self._point:
            self._left -= 1
            if self._left == 0:
                with self._file.open("a", encoding="utf-8") as file:
                    file.write(f"{name} {os.getpid()}\n")
                while True:
                    signal.pause()


reached = _Hold(os.environ[VARIABLE]) if VARIABLE in os.environ else _never
"""Called when a process has come to a point, one of `POINTS`, with its name."""
