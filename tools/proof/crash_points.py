"""Kills a process at a named point inside the stores' verbs (`inorder.stores.engine.points`), or of the run of a
channel.

In a separate process: `reach(kill_at("committed:3"))`. A process that is started with a command line is given
`environment("committed:3")`: Python then imports `sitecustomize.py`, beside this file, before the program.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path

from inorder.client import two_phases
from inorder.mq.channels import points as channel_points
from inorder.stores.engine import points

VARIABLE = "PROOF_KILL_AT"
POINTS = {**points.POINTS, **channel_points.POINTS, **channel_points.FAST_POINTS, **two_phases.POINTS}


def reach(step: Callable[[str], object]) -> None:
    """Calls `step` in this process at each point that a store, or the run of a channel, reaches."""
    points.reached = channel_points.reached = two_phases.reached = step


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def kill_at(asked: str) -> Callable[[str], None]:
    """A step for `reach` that kills at "POINT:NTH": when that point is reached for the nth time.

    Raises: ValueError, there is no such point, or no process reaches it that often.
    """
    point, _, nth = asked.partition(":")
    if point not in POINTS or not nth.isdecimal() or int(nth) < 1:
        raise ValueError(f"{asked!r}: must be POINT:NTH, with one of the points {', '.join(POINTS)}")
    left = int(nth)

    def step(name: str) -> None:
        nonlocal left
        assert name in POINTS, name
        left -= name == point
        if not left:
            die()

    return step


def kill_at_step(number: int) -> Callable[[str], None]:
    """A step for `reach` that kills at this call of it, from 1; 0: never."""
    left = number

    def step(name: str) -> None:
        nonlocal left
        del name
        left -= 1
        if not left:
            die()

    return step


def environment(asked: str) -> dict[str, str]:
    """The environment of this process, for a process that is to be killed there."""
    path = [str(Path(__file__).parent), *filter(None, [os.environ.get("PYTHONPATH")])]
    return os.environ | {VARIABLE: asked, "PYTHONPATH": os.pathsep.join(path)}


def install() -> None:
    """Applies the request in this process's environment."""
    if asked := os.environ.get(VARIABLE):
        reach(kill_at(asked))
