"""Holds a process of Spark at a named point of the source or the sink (`inorder.spark.points`), to be killed there.

A driver is started with `environment("claimed:2:/tmp/held")`. It and all Python workers, which inherit that, import
`hold/sitecustomize.py` before anything else: whichever comes to the point "claimed" for the second time writes a line
into that file, and waits until it is killed.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path

from inorder.spark import points

VARIABLE = "SPARK_TEST_HOLD_AT"


def hold_at(asked: str) -> Callable[[str], None]:
    """What is done at each point, to hold at "POINT:NTH:FILE".

    Raises: ValueError, there is no such point, or nobody comes to it that often.
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
    """For a driver one of whose processes is to be held there: as the environment of this one."""
    path = [str(Path(__file__).with_name("hold")), *filter(None, [os.environ.get("PYTHONPATH")])]
    return os.environ | {VARIABLE: asked, "PYTHONPATH": os.pathsep.join(path)}


def install() -> None:
    """Does in this process what its environment asks for."""
    if asked := os.environ.get(VARIABLE):
        points.reached = hold_at(asked)
