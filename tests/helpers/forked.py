"""Processes that start quickly: forked from a server that has imported the modules and opened no store."""

from __future__ import annotations

import multiprocessing
import os
from multiprocessing.process import BaseProcess
from typing import Any

from tests.helpers.support import LIMIT_SECONDS
from tools.proof import crash_points

# One list for all tests: the only server imports the modules of the latest list.
SERVER = multiprocessing.get_context("forkserver")
SERVER.set_forkserver_preload(
    ["tests.helpers.stepping", "tests.stores.sqlite.inside", "tests.helpers.claiming", "tests.helpers.staged"]
)


def run(code: str, *arguments: str, kill_at: str = "") -> int:
    """Runs code in a new process with the environment of this one, and returns its exit status.

    Args:
        code: the program; the name `arguments` is defined in it.
        kill_at: a point and a number: with "committed:3" the process is killed when it is at the point the third time.
    """
    process: BaseProcess = SERVER.Process(target=_live, args=(code, arguments, kill_at, dict(os.environ)), daemon=True)
    process.start()
    process.join(LIMIT_SECONDS)
    status = process.exitcode
    process.kill()
    process.join()
    assert status is not None, f"it has not ended in time:\n{code}"
    return status


def _live(code: str, arguments: tuple[str, ...], kill_at: str, environment: dict[str, str]) -> None:
    os.environ.clear()  # the server's environment is that of the first test that used it
    os.environ.update(environment)
    if kill_at:
        crash_points.reach(crash_points.kill_at(kill_at))
    names: dict[str, Any] = {"arguments": arguments}
    exec(code, names)
