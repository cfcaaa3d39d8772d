"""Programs that put what schedules say are killed amid it: no run is put twice, none is lost (decision 332)."""

from __future__ import annotations

import itertools
import random
import subprocess
import sys
import uuid
from collections import Counter
from datetime import datetime
from pathlib import Path

import pytest
from tests.tiers import gate, nightly

from inorder import QueueManager, connect
from inorder.testing import ManualClock
from inorder.work.due import Cron

pytest.importorskip("cronsim", reason="without inorder[work] there are no schedules")
CRON, ZONE = "*/10 1,2,3 * * *", "Europe/Berlin"
BEGIN = datetime.fromisoformat("2026-03-28T12:00:00+00:00").timestamp()  # the clocks change in the night
HOURS, PROGRAMS, KILLS = 42, 2, 4
RUNS_OF_A_LOOK = 6  # at most: it puts each by itself, and tells them when it has looked
# The programs share a clock, which each of them moves on when it has looked.
PROGRAM = f"""
import sys
import inorder
from inorder.stores.postgresql import PostgresStore
from inorder.stores.sqlite import SqliteStore
from inorder.testing import ManualClock
from inorder.work.periodic import Periodic, Schedule

where, clock = sys.argv[1], ManualClock(path=sys.argv[2])
schedule = Schedule(name="s", cron={CRON!r}, zone={ZONE!r}, queue="Q", missed="all",
                    body=lambda due: due.isoformat().encode())
is_url = where.startswith("postgresql:")
store = PostgresStore(where, "INORDER", clock=clock) if is_url else SqliteStore(where, clock=clock)
with inorder.connect(store, program="periodic") as qm:
    periodic = Periodic(qm, [schedule])
    print("ready", flush=True)
    for line in sys.stdin:
        for run in periodic.put_due():
            print(run.due, flush=True)
        print("looked", flush=True)
"""


class Program:
    """A process that looks for what is due when it is told to."""

    def __init__(self, where: str, clock_file: Path) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", PROGRAM, where, str(clock_file)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self.process.stdout is not None
        self._says = self.process.stdout
        assert self._says.readline() == "ready\n"

    def begin(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write("look\n")
        self.process.stdin.flush()

    def told(self) -> list[float]:
        """What it has put, as it says until it has looked, or is killed."""
        lines = itertools.takewhile(lambda line: line != "looked\n", self._says)
        return [float(line) for line in lines if line.endswith("\n")]

    def end(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self._says.close()
        self.process.wait()


def run_and_kill(where: str, clock: ManualClock, clock_file: Path) -> list[float]:
    """Programs look each hour, some are killed amid it and others begin; the runs that they say they have put."""
    chance = random.Random(3)
    running = [Program(where, clock_file) for _ in range(PROGRAMS)]
    running[0].begin()
    said = running[0].told()
    kills = set(chance.sample(range(HOURS), KILLS))
    for hour in range(HOURS):
        clock.advance(3600.0)
        for program in running:
            program.begin()
        if hour in kills:
            victim = running.pop(0)
            if chance.random() < 0.5:  # else amid it
                said += victim.told()
            victim.process.kill()
            said += victim.told()
            victim.end()
            running.append(Program(where, clock_file))
            running[-1].begin()
        for program in running:
            said += program.told()
    for program in running:
        program.end()
    return said


def put_and_kill(where: str, qm: QueueManager, clock_file: Path) -> None:
    qm.create_queue("Q")
    clock = ManualClock(BEGIN, clock_file)
    said = run_and_kill(where, clock, clock_file)
    found = [datetime.fromisoformat(message.body.decode()).timestamp() for message in qm.browse("Q")]
    expected = list(Cron(CRON, ZONE).between(BEGIN, clock.now()))
    assert found == expected, "a run was lost, doubled, or put out of turn"
    assert max(Counter(said).values()) == 1, "two programs say that they have put the same run"
    assert set(said) <= set(expected)
    assert len(expected) - len(said) <= KILLS * RUNS_OF_A_LOOK, "a program that lived has not said what it had put"
    assert qm.check() == []


@gate
def test_killed_programs_lose_and_double_no_run(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    with connect(path) as qm:
        put_and_kill(str(path), qm, tmp_path / "clock")


@nightly
def test_killed_programs_lose_and_double_no_run_on_a_server(postgresql: str, tmp_path: Path) -> None:
    where = f"{postgresql}{'&' if '?' in postgresql else '?'}schema=periodic_{uuid.uuid4().hex}"
    with connect(where) as qm:
        put_and_kill(where, qm, tmp_path / "clock")
