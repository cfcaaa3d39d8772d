"""Processes killed with SIGKILL, at random moments and at named points, break no promise made before.

`make crash` kills thousands of processes.
"""

from __future__ import annotations

import json
import os
import random
import signal
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.helpers.support import LIMIT_SECONDS, until
from tools.proof import crash, lives
from tools.proof.awaiting import TASKS
from tools.proof.checker import OBSERVER, ROUNDS, STORE, check_folder, main, run_observer
from tools.proof.history import read_folder
from tools.proof.lives import POINTS, RANDOM, Life, Parent, live, lives_of

SEED = int(os.environ.get("INORDER_CRASH_SEED", random.SystemRandom().getrandbits(32)))
OFTEN = ("begun", "written", "committed", "before-sync", "synced", "settled")  # every worker soon reaches these points


@pytest.fixture(scope="module")
def parent() -> Iterator[Parent]:
    one = Parent()
    yield one
    one.close()


@pytest.mark.gate
def test_killed_processes_break_no_promise(tmp_path: Path) -> None:
    report = crash.run(kills=12, seed=SEED, workers=3, lives=2, seconds=600, parent=tmp_path)
    assert not report.findings, f"INORDER_CRASH_SEED={SEED} tries the same plan\n{report}"
    assert report.kills.total() >= 12
    assert report.promises > 0


@pytest.mark.nightly
@pytest.mark.parametrize("point", OFTEN)
def test_a_kill_at_a_named_point_breaks_no_promise(
    tmp_path: Path, parent: Parent, point: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lives, "POINT_SECONDS_MAX", 120.0)  # it certainly gets there, but late on a busy machine
    for number in ("0000", "0001"):
        (tmp_path / ROUNDS / number).mkdir(parents=True)
    assert run_observer(tmp_path / STORE, tmp_path / ROUNDS / "0000", SEED) == []
    life = Life(name="victim", seed=SEED, end=point, nth=15, seconds=0)
    assert live(parent, tmp_path / STORE, tmp_path / ROUNDS / "0001", life) == (point, []), f"INORDER_CRASH_SEED={SEED}"
    assert check_folder(tmp_path) == [], f"INORDER_CRASH_SEED={SEED}"
    assert (tmp_path / ROUNDS / "0001" / OBSERVER).exists()


@pytest.mark.nightly
def test_killed_asyncio_programs_break_no_promise(tmp_path: Path, parent: Parent) -> None:
    for number in ("0000", "0001"):
        (tmp_path / ROUNDS / number).mkdir(parents=True)
    assert run_observer(tmp_path / STORE, tmp_path / ROUNDS / "0000", SEED) == []
    folder = tmp_path / ROUNDS / "0001"
    pid = parent.bear(tmp_path / STORE, folder, Life("victim", SEED, RANDOM, nth=1, seconds=0, awaits=True))
    assert parent.told(LIMIT_SECONDS) == "at work"
    until(lambda: len(at_work(folder)) == TASKS, "all tasks are at work")
    os.kill(pid, signal.SIGKILL)
    assert parent.told(LIMIT_SECONDS) == str(-signal.SIGKILL)
    assert check_folder(tmp_path) == [], f"INORDER_CRASH_SEED={SEED}"


def at_work(folder: Path) -> set[str]:
    """The tasks that a promise was made to."""
    return {call.process for call in read_folder(folder) if call.outcome == "promised"} - {"victim"}


def test_the_plan_of_a_run_follows_from_its_seed_and_has_every_point() -> None:
    plans = [list(lives_of(random.Random(SEED), "0001", 10, 20)) for _ in range(2)]
    assert plans[0] == plans[1]
    points = Counter(life.end for lives in plans[0] for life in lives)
    assert points.keys() == {RANDOM, *POINTS}


def test_a_worker_that_ends_by_itself_is_a_finding(tmp_path: Path, parent: Parent) -> None:
    """This one ends because its store cannot be opened."""
    life = Life(name="victim", seed=SEED, end="begun", nth=1, seconds=0)
    _, findings = live(parent, tmp_path / "no such folder" / STORE, tmp_path, life)
    assert [finding.kind for finding in findings] == ["worker"]
    assert "Error" in findings[0].text


def test_a_store_that_cannot_be_opened_is_a_finding(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / ROUNDS / "0000").mkdir(parents=True)
    (tmp_path / STORE).write_bytes(b"this is no database" * 1000)
    monkeypatch.setattr("sys.argv", ["checker", str(tmp_path), "--json"])
    assert main() == 1
    assert [one["kind"] for one in json.loads(capsys.readouterr().out)] == ["unusable"] * 2
