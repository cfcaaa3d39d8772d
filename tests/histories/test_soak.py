"""Short versions of the long runs find nothing, and planted faults are found. Results are counts, never times."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.helpers.support import Call, Stores, waiting
from tools.soak import fair, mixed, opens, wake_ups
from tools.soak.shifted import ShiftedClock
from tools.soak.usage import Usage, grown

from inorder import Match, NoMessageAvailable, connect

pytestmark = pytest.mark.nightly

HOUR = 3600.0
SET_SECONDS = 2.0  # the clock is set during this wait


@pytest.fixture
def folder() -> Iterator[Path]:
    """A temporary folder, which may be on a faster disk than tmp_path."""
    with tempfile.TemporaryDirectory() as path:
        yield Path(path)


def test_opens_and_closes_leave_nothing_behind(folder: Path) -> None:
    report = opens.run(folder, count=300)
    assert not report.findings, report
    assert report.figures["opens and closes"] == 300


def test_every_wait_is_woken_while_processes_are_killed_and_stopped(folder: Path) -> None:
    report = wake_ups.run(folder, rounds=200, seed=1)
    assert not report.findings, report
    assert report.figures["rounds answered"] >= 200


def test_mixed_work_grows_no_resource_while_the_clock_is_set(folder: Path) -> None:
    report = mixed.run(folder, seconds=1, processes=2)
    assert not report.findings, report
    assert report.figures["rounds of all acts"] >= 2 * mixed.ROUNDS_MIN


def test_the_smallest_shares_of_processes_and_threads_that_put_are_measured(folder: Path) -> None:
    report = fair.run(folder, seconds=0.5, processes=2, threads=4)
    assert len([name for name in report.figures if "smallest share" in name]) == 2, report


# ---- a clock that is set


def test_a_clock_that_is_set_forward_cuts_no_wait_short(stores: Stores, tmp_path: Path) -> None:
    clock = ShiftedClock(tmp_path / "clock")
    with connect(stores.make(clock)) as qm:
        qm.create_queue("Q")
        other = qm.connect()
        call = waiting(other, lambda: other.get("Q", match=Match(correlation_id=b"wanted"), wait=HOUR / 2).body)
        clock.set(HOUR)
        qm.put("Q", b"another")  # the get looks, and finds no message for it
        call.sleeps(other)
        qm.put("Q", b"wanted", correlation_id=b"wanted")
        assert call.result() == b"wanted"


def test_a_clock_that_is_set_back_lengthens_no_wait(stores: Stores, tmp_path: Path) -> None:
    clock = ShiftedClock(tmp_path / "clock")
    with connect(stores.make(clock)) as qm:
        qm.create_queue("Q")
        other = qm.connect()
        call = Call(lambda: other.get("Q", wait=SET_SECONDS))
        call.settles(other)  # on a slow machine the wait may end first
        clock.set(-HOUR)
        assert isinstance(call.error(), NoMessageAvailable)


# ---- findings


def test_resources_that_grow_are_reported() -> None:
    flat = Usage(memory_mb=30.0, descriptors=9, threads=1, shared=2)
    more = Usage(memory_mb=60.0, descriptors=19, threads=11, shared=12)
    assert grown("p", [flat] * 4) == []
    assert grown("p", [flat, flat, flat._replace(descriptors=19), flat]) == ["p: descriptors grew from 9 to 19"]
    assert [finding.split()[1] for finding in grown("p", [flat, flat, flat, more])] == list(Usage._fields)
    assert grown("p", [flat, more, more, flat]) == []  # it had grown before


IN_USE = """
import sys
from tools.soak.usage import usage
import inorder
before = usage()
with open(sys.argv[1], "wb"):
    assert usage().descriptors == before.descriptors + 1
with inorder.connect(sys.argv[2]):
    assert usage().shared > before.shared
assert usage()[1:] == before[1:]
"""


def test_an_open_file_and_an_open_store_count_as_resources_in_use(tmp_path: Path) -> None:
    """In a process of its own, where nothing else is closed meanwhile."""
    words = [sys.executable, "-c", IN_USE, str(tmp_path / "file"), str(tmp_path / "store.db")]
    subprocess.run(words, cwd=Path(__file__).parents[2], check=True)


def test_a_wake_up_that_is_lost_is_a_finding(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wake_ups, "LOST_SECONDS", 0.0)
    monkeypatch.setattr(wake_ups, "PAUSE_SECONDS", (0.0, 0.0))
    report = wake_ups.run(folder, rounds=10**9, pairs=1, seed=1)
    assert report.findings
    assert report.findings[0].endswith("has not ended after 0 s")
