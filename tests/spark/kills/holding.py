"""Holds a process of Spark at a named point of the source or the sink (`inorder.spark.points`), to be killed there.

A driver is started with `environment("claimed:2:/tmp/held")`. The driver and all Python workers, which inherit it,
import `hold/sitecustomize.py` first: the process that reaches the point "claimed" for the second time writes a line
into the file, and waits until it is killed.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path

from inorder.spark import points

VARIABLE = "SPARK_TEST_HOLD_AT"


def hold_at(asked: str) -> Callable[[str], None]:
    """Returns the function to call at each point, which holds at "POINT:NTH:FILE".

    Raises: ValueError, there is no such point, or NTH or FILE is missing or wrong.
    """
    point, _, rest = asked.partition(":")
    nth, _, file = rest.partition(":")
    if point not in points.POINTS or not nth.isdecimal() or int(nth) < 1 or not file:
        raise ValueError(f"{asked!r}: say POINT:NTH:FILE, with one of the points {', '.join(points.POINTS)}")
    left = int(nth)

    def step(name: str) -> None:
        nonlocal left
        assert name in points.POINTS, name
        left -= name == point
        if name == point and not left:
            with Path(file).open("a", encoding="utf-8") as held:
                held.write(f"{name} {os.getpid()}\n")
            while True:
                signal.pause()

    return step


def environment(asked: str) -> dict[str, str]:
    """The environment of a driver of which one process is to be held there: this process's, with additions."""
    path = [str(Path(__file__).with_name("hold")), *filter(None, [os.environ.get("PYTHONPATH")])]
    return os.environ | {VARIABLE: asked, "PYTHONPATH": os.pathsep.join(path)}


def install() -> None:
    """Holds this process as its environment asks."""
    if asked := os.environ.get(VARIABLE):
        points.reached = hold_at(asked)
