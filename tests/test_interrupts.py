"""An exception from outside, at any place of any call: nothing stays held, and the call has happened or not."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace

import pytest
from tests.interrupted import CALLS, ready
from tests.interrupting import IS_KNOWN, Interruption, Outside

import inorder
from inorder.stores.sqlite.coordination import TURN

PLACES = 10**9 if os.environ.get("INORDER_LONG") else 25
RANDOM_PLACES = 10_000 if os.environ.get("INORDER_LONG") else 100
LIMIT_SECONDS = 30

PROBE = f"""
import fcntl, os, sys
import apsw
path = sys.argv[1]
sidecar = os.open(path + "-lock", os.O_RDWR)
connection = apsw.Connection(path)
for _ in sys.stdin:
    try:
        fcntl.lockf(sidecar, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, {TURN})
    except OSError:
        print("the turn is held", flush=True)
        continue
    fcntl.lockf(sidecar, fcntl.LOCK_UN, 1, {TURN})
    try:
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("ROLLBACK")
    except apsw.BusyError:
        print("a transaction is open", flush=True)
        continue
    print("free", flush=True)
"""


class Probe:
    """Another process, which sees whether this one keeps writers from the store."""

    def __init__(self, path: Path) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", PROBE, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def __call__(self) -> str:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        print(file=self.process.stdin, flush=True)
        return self.process.stdout.readline().strip()

    def end(self) -> None:
        self.process.communicate(timeout=LIMIT_SECONDS)


@pytest.fixture
def world(tmp_path: Path) -> Iterator[SimpleNamespace]:
    path = tmp_path / "store.db"
    with inorder.connect(path) as qm, inorder.connect(path) as other, ThreadPoolExecutor(1) as thread:
        for name in ("Q", "OTHER", "EMPTY"):
            qm.create_queue(name)
        probe = Probe(path)
        yield SimpleNamespace(path=path, qm=qm, other=other, thread=thread, probe=probe)
        probe.end()


def at_places(call: Callable[[], object], total: int, seed: str) -> list[int]:
    if total <= PLACES:
        return list(range(total))
    return sorted(random.Random(seed).sample(range(total), PLACES))


@pytest.mark.skipif(not IS_KNOWN, reason="where exceptions come is written down for CPython 3.11")
@pytest.mark.parametrize("name", CALLS)
def test_an_exception_from_outside_leaves_nothing_held(name: str, world: SimpleNamespace) -> None:
    call, qm = CALLS[name], world.qm
    ready(qm)
    call(qm)
    ready(qm)
    counting = Interruption()
    counting.during(lambda: call(qm))
    for at in at_places(lambda: call(qm), counting.places, name):
        ready(qm)
        interruption = Interruption(at)
        try:
            interruption.during(lambda: call(qm))
        except Outside:
            pass
        else:
            assert not interruption.where, f"lost: {interruption.where}"
        about = f"after an exception at place {at}: {interruption.where}"
        assert world.probe() == "free", about
        done = world.thread.submit(world.other.put, "OTHER", b"x")
        done.result(timeout=LIMIT_SECONDS)
        ready(qm)
        call(qm)
    assert qm.check() == []


@pytest.mark.slow
@pytest.mark.parametrize("how", ["signals", "threads"])
def test_exceptions_at_random_times_and_in_bursts(how: str) -> None:
    """Beside a writer in this process, whose every put comes through."""
    with tempfile.TemporaryDirectory() as folder, inorder.connect(Path(folder) / "store.db") as qm:
        for name in ("Q", "OTHER", "EMPTY"):
            qm.create_queue(name)
        arguments = [str(Path(folder) / "store.db"), how, str(RANDOM_PLACES)]
        program = subprocess.Popen(
            [sys.executable, "-m", "tests.interrupted", *arguments], stdout=subprocess.PIPE, text=True
        )
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
