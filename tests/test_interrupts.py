"""An exception from outside, at any place of any call: nothing stays held, and the call has happened or not."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from tests.interrupted import CALLS
from tests.interrupting import IS_KNOWN

import inorder
from inorder import QueueManager

IS_LONG = bool(os.environ.get("INORDER_LONG"))
PLACES = 10**9 if IS_LONG else 100
RANDOM_PLACES = 10_000 if IS_LONG else 100
PORTIONS = 4


def interrupted(qm: QueueManager, how: str, count: int, *names: str) -> subprocess.Popen[str]:
    """The program, at work: in a process of its own, since CPython miscounts its recursion when a trace raises."""
    for name in ("Q", "OTHER", "EMPTY"):
        qm.create_queue(name)
    arguments = [sys.executable, "-m", "tests.interrupted", qm._store.path, how, str(count), *names]  # type: ignore[attr-defined]
    return subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True)


@pytest.mark.skipif(not IS_KNOWN, reason="where exceptions come is written down for CPython 3.11")
@pytest.mark.parametrize("portion", range(PORTIONS))
def test_an_exception_at_any_place_leaves_nothing_held(portion: int) -> None:
    with tempfile.TemporaryDirectory() as folder, inorder.connect(Path(folder) / "store.db") as qm:
        program = interrupted(qm, "places", PLACES, *list(CALLS)[portion::PORTIONS])
        said, _ = program.communicate()
        assert program.returncode == 0, f"see what it printed, and {said!r}"
        came, problems = said.split(maxsplit=1)
        assert int(came) > PLACES // 2, "hardly any exception came into a call"
        assert problems.strip() == "[]"


@pytest.mark.slow
@pytest.mark.parametrize("how", ["signals", "threads"])
def test_exceptions_at_random_times_and_in_bursts(how: str) -> None:
    """Beside a writer in this process, whose every put comes through."""
    with tempfile.TemporaryDirectory() as folder, inorder.connect(Path(folder) / "store.db") as qm:
        program = interrupted(qm, how, RANDOM_PLACES)
        puts = gets = 0
        while program.poll() is None:
            qm.put("OTHER", b"%d" % puts)
            puts += 1
            assert qm.get("OTHER").body == b"%d" % gets
            gets += 1
        assert program.stdout is not None
        with program.stdout as output:
            said = output.read()
        assert program.returncode == 0, f"{how}: see what it printed, and {said!r}"
        came, problems = said.split(maxsplit=1)
        assert int(came) > RANDOM_PLACES, "hardly any exception came into a call"
        assert problems.strip() == "[]"
