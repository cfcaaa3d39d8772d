"""Long runs made short: they find nothing, and what they would find is found. Judged by counts, never by time."""

from __future__ import annotations

import gc
import json
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests import support
from tests.support import Stores, waiting
from tools.soak import __main__ as command
from tools.soak import fair, mixed, opens, ping_pong, wake_ups
from tools.soak.report import Report
from tools.soak.shifted import ShiftedClock
from tools.soak.usage import Usage, grown, usage

from inorder import Match, NoMessageAvailable, connect

pytestmark = pytest.mark.nightly

HOUR = 3600.0
WAIT_SECONDS = 0.05
SET_SECONDS = 2.0  # a wait in which the clock is set: a busy machine must have come to it before it is over
LENGTHENED_SECONDS = 50.0  # a wait that is not over by then was lengthened: an hour is what it would take


@pytest.fixture
def folder() -> Iterator[Path]:
    """On the quick disk, where there is one."""
    with tempfile.TemporaryDirectory() as path:
        yield Path(path)


def test_opens_and_closes_leave_nothing_behind(folder: Path) -> None:
    report = opens.run(folder, count=300)
    assert not report.findings, report
    assert report.figures["opens and closes"] == 300


def test_every_wait_in_ping_pong_is_answered(folder: Path) -> None:
    report = ping_pong.run(folder, waits=500, pairs=1)
    assert not report.findings, report
    assert report.figures["waits answered"] == 500


def test_every_wait_is_woken_while_processes_are_killed_and_stopped(folder: Path) -> None:
    report = wake_ups.run(folder, rounds=200, seed=1)
    assert not report.findings, report
    assert report.figures["rounds answered"] >= 200


def test_mixed_work_leaves_everything_flat_while_the_clock_is_set(folder: Path) -> None:
    report = mixed.run(folder, seconds=1, processes=2)
    assert not report.findings, report
    assert report.figures["rounds of all acts"] >= 2 * mixed.ROUNDS_MIN


def test_everyone_who_puts_gets_a_share(folder: Path) -> None:
    report = fair.run(folder, seconds=2.0, processes=2, threads=4)
    shares = [value for name, value in report.figures.items() if "smallest share" in name]
    assert len(shares) == 2, report
    assert min(shares) > 0, report


# ---- a clock that is set


def test_a_clock_that_is_set_forward_cuts_no_wait_short(stores: Stores, tmp_path: Path) -> None:
    clock = ShiftedClock(tmp_path / "clock")
    with connect(stores.make(clock)) as qm:
        qm.create_queue("Q")
        other = qm.connect()
        call = waiting(other, lambda: other.get("Q", match=Match(correlation_id=b"wanted"), wait=HOUR / 2).body)
        clock.set(HOUR)
        qm.put("Q", b"another")  # it looks, and finds nothing for it
        call.sleeps(other)
        qm.put("Q", b"wanted", correlation_id=b"wanted")
        assert call.result() == b"wanted"


def test_a_clock_that_is_set_back_lengthens_no_wait(
    stores: Stores, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = ShiftedClock(tmp_path / "clock")
    with connect(stores.make(clock)) as qm:
        qm.create_queue("Q")
        other = qm.connect()
        call = waiting(other, lambda: other.get("Q", wait=SET_SECONDS))
        clock.set(-HOUR)
        monkeypatch.setattr(support, "LIMIT_SECONDS", LENGTHENED_SECONDS)
        assert isinstance(call.error(), NoMessageAvailable)


def test_all_who_share_a_clock_see_it_set(tmp_path: Path) -> None:
    one, other = ShiftedClock(tmp_path / "clock"), ShiftedClock(tmp_path / "clock")
    before = other.now()
    one.set(HOUR)
    assert other.now() >= before + HOUR
    one.set(-HOUR)
    assert other.now() < before


# ---- what is found


def test_what_grows_is_named() -> None:
    flat = Usage(memory_mb=30.0, descriptors=9, threads=1, shared=2)
    more = Usage(memory_mb=60.0, descriptors=19, threads=11, shared=12)
    assert grown("p", [flat] * 4) == []
    assert grown("p", [flat, flat, flat._replace(descriptors=19), flat]) == ["p: descriptors grew from 9 to 19"]
    assert [finding.split()[1] for finding in grown("p", [flat, flat, flat, more])] == list(Usage._fields)
    assert grown("p", [flat, more, more, flat]) == []  # it had come to that before


def test_an_open_file_and_a_store_that_is_open_are_in_use(tmp_path: Path) -> None:
    gc.collect()  # what other tests have left open is not to be closed in the middle of this one
    before = usage()
    with (tmp_path / "file").open("wb"):
        assert usage().descriptors == before.descriptors + 1
    with connect(tmp_path / "store.db"):
        assert usage().shared > before.shared
    assert usage()[1:] == before[1:]


def test_a_wake_up_that_is_lost_is_a_finding(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wake_ups, "LOST_SECONDS", 0.0)
    monkeypatch.setattr(wake_ups, "PAUSE_SECONDS", (0.0, 0.0))  # nobody has even started
    report = wake_ups.run(folder, rounds=1, pairs=1, seed=1)
    assert report.findings == ["pair 0: round 0 is not over after 0 s"]


def test_a_wait_that_is_not_answered_is_a_finding(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ping_pong, "WAIT_SECONDS", WAIT_SECONDS)
    with connect(tmp_path / "store.db") as qm:
        for queue in ("PING", "PONG"):
            qm.create_queue(queue)
        taken, wrong = ping_pong.play(qm, 3, begins=True, own="PONG", other="PING")
    assert not taken
    assert wrong == "PONG: wait 0 was not answered within 0.05 s"


def test_the_command_tells_what_was_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    found = Report(name="fair", figures={"p99 ms": 51.25, "puts": 1000}, findings=["p99 is 51.25 ms"])
    monkeypatch.setitem(command.RUNS, "fair", lambda folder, asked: found)
    assert command.main(["fair", "--parent", str(tmp_path)]) == 1
    assert capsys.readouterr().out.splitlines() == [
        "fair",
        "  p99 ms        51.25",
        "  puts          1,000",
        "  ! p99 is 51.25 ms",
    ]
    assert command.main(["fair", "--json", "--parent", str(tmp_path)]) == 1
    assert json.loads(capsys.readouterr().out) == [found.as_json()]
    monkeypatch.setitem(command.RUNS, "fair", lambda folder, asked: Report(name="fair"))
    assert command.main(["fair", "--parent", str(tmp_path)]) == 0


def test_a_run_that_is_not_there_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        command.main(["marathon"])
    assert "there are opens, ping-pong, wake-ups, mixed, fair" in capsys.readouterr().err
