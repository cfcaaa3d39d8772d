"""Runs a program step by step, and kills it with SIGKILL at its n-th step.

A step is a call of the queue manager that has returned, or a point inside the store's verbs (`points.py`).
Between two steps a program does nothing that another process could see. The program itself is unchanged; it runs in a
process forked from a server that has imported the package and opened no store.
"""

from __future__ import annotations

import contextlib
import io
import runpy
import signal
import sys
from collections.abc import Callable, Sequence
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, NamedTuple

from tests.helpers.forked import SERVER
from tests.helpers.support import LIMIT_SECONDS
from tools.proof.crash_points import die, reach

from inorder import Queue, QueueManager, UnitOfWork
from inorder.stores.engine.points import POINTS

NEVER = 0
CALLS = {
    QueueManager: ("create_queue", "open", "put", "get", "browse", "close"),
    Queue: ("put", "get", "browse_first", "browse_next", "close"),
    UnitOfWork: ("__enter__", "__exit__"),
}


class Life(NamedTuple):
    """The record of a program's run.

    Args:
        killed: whether it was killed.
        steps: the names of its steps, in order; empty if it was killed.
        told: its output; empty if it was killed.
    """

    killed: bool
    steps: Sequence[str]
    told: str

    @property
    def calls(self) -> list[int]:
        """The numbers of the steps that are calls, from 1."""
        return [number for number, name in enumerate(self.steps, 1) if name not in POINTS]


def run(program: Path, *arguments: str, kill_at: int = NEVER) -> Life:
    """Runs a program to its end, or to the step `kill_at`, counted from 1."""
    ours, theirs = SERVER.Pipe(duplex=False)
    process = SERVER.Process(target=_live, args=(theirs, str(program), arguments, kill_at), daemon=True)
    process.start()
    theirs.close()
    try:
        assert ours.poll(LIMIT_SECONDS), f"{program.name} has not ended in time"
        steps, told = ours.recv()
    except EOFError:
        process.join(LIMIT_SECONDS)
        assert process.exitcode == -signal.SIGKILL, f"{program.name} has failed: see what it printed"
        return Life(True, [], "")
    finally:
        process.kill()
        process.join()
        ours.close()
    return Life(False, steps, told)


def _live(pipe: Connection, program: str, arguments: Sequence[str], kill_at: int) -> None:
    """Runs the program in the new process, and records its steps."""
    steps: list[str] = []

    def step(name: str) -> None:
        steps.append(name)
        if len(steps) == kill_at:
            die()

    for kind, names in CALLS.items():
        for name in names:
            setattr(kind, name, _stepping(getattr(kind, name), f"{kind.__name__}.{name}", step))
    reach(step)
    sys.argv = [program, *arguments]
    told = io.StringIO()
    with contextlib.redirect_stdout(told):
        runpy.run_path(program, run_name="__main__")
    pipe.send((steps, told.getvalue()))


def _stepping(call: Callable[..., Any], name: str, step: Callable[[str], None]) -> Callable[..., Any]:
    def stepping(*given: Any, **named: Any) -> Any:
        try:
            return call(*given, **named)
        finally:
            step(name)

    return stepping
