"""The log of a recorded history, cut at frames and inside them: every promise up to the cut holds."""

from __future__ import annotations

import os
import random
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from tools.proof.power import SIDECARS, Cut, Recording, check_cut, check_cuts, frame_ends, log_of, record

from inorder.stores.engine.operation import Operation

SEED = int(os.environ.get("INORDER_CRASH_SEED", random.SystemRandom().getrandbits(32)))
LONG = "INORDER_LONG" in os.environ
STEPS, CUTS = (100, 10**9) if LONG else (60, 30)


def test_a_cut_log_keeps_what_was_promised_before_the_cut(tmp_path: Path) -> None:
    recording = record(tmp_path, seed=SEED, steps=STEPS)
    cuts = recording.cuts(random.Random(SEED), CUTS)
    assert sum(bool(recording.lost_at(cut.length)) for cut in cuts) >= len(cuts) / 10
    (tmp_path / "cuts").mkdir()
    findings = recording.unsynced() + check_cuts(recording, cuts, tmp_path / "cuts")
    assert not findings, f"INORDER_CRASH_SEED={SEED} tries the same history\n{findings}"


@pytest.mark.nightly
@pytest.mark.parametrize("sidecar", [b"", SIDECARS[-1]], ids=["no sidecar", "another run of the machine"])
def test_numbers_that_come_again_after_a_cut_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sidecar: bytes
) -> None:
    """The cuts do try what a start does against it (B-2): without that they find it."""
    recording = record(tmp_path, seed=3, steps=40)
    told = [cut for cut in map(Cut, recording.ends) if any("uids" in line for line in recording.lost_at(cut.length))]
    cuts = [cut._replace(sidecar=sidecar) for cut in random.Random(1).sample(told, 10)]
    for name in ("found", "missed"):
        (tmp_path / name).mkdir()
    assert check_cuts(recording, cuts, tmp_path / "missed") == []
    monkeypatch.setattr(Operation, "skip_reserved", lambda _verb: None)
    assert "uid-repeated" in {finding.kind for finding in check_cuts(recording, cuts, tmp_path / "found")}


@pytest.fixture
def recording(tmp_path: Path) -> Recording:
    """Rows written one by one into a plain database, with the log's length after each."""
    path, lines, synced = tmp_path / "plain.db", [], 0
    with closing(sqlite3.connect(path, isolation_level=None)) as database:
        database.executescript("PRAGMA journal_mode=WAL; PRAGMA wal_autocheckpoint=0; CREATE TABLE row (n)")
        for n in range(20):
            database.execute("INSERT INTO row VALUES (?)", (n,))
            length = log_of(path).stat().st_size
            synced = length if n % 2 == 0 else synced
            lines.append({"call": n, "n": n, "durable": n % 2 == 0, "log": length, "synced": synced})
        shutil.copy(path, tmp_path / "copy.db")
        return Recording(database=tmp_path / "copy.db", log=log_of(path).read_bytes(), lines=lines)


def test_a_cut_log_has_what_was_written_up_to_the_cut(recording: Recording, tmp_path: Path) -> None:
    """The tool itself, on a database of which it is known what a cut leaves."""
    cuts = recording.cuts(random.Random(1), 10**9)
    assert len(cuts) == 4 * (len(recording.ends) - 1) + 1
    assert cuts[-1].length == len(recording.log)
    for number, cut in enumerate(cuts):
        path = tmp_path / f"{number}.db"
        shutil.copy(recording.database, path)
        log_of(path).write_bytes(recording.log[: cut.length] + cut.torn)
        with closing(sqlite3.connect(path)) as database:
            tables = database.execute("SELECT 1 FROM sqlite_master").fetchall()
            rows = [row[0] for row in database.execute("SELECT n FROM row")] if tables else []
        assert rows == [line["n"] for line in recording.lines if line["log"] <= cut.length]


def test_what_needed_no_disk_may_have_been_told_when_the_log_was_lost(recording: Recording) -> None:
    at_ten = recording.lines[10]["log"]
    assert [line["n"] for line in recording.told_at(at_ten)] == list(range(12))  # 11 was not synced, 12 was
    assert recording.told_at(0) == []
    assert len(recording.told_at(len(recording.log))) == 20
    assert [line["n"] for line in recording.lost_at(at_ten)] == [11]


def test_a_promise_that_was_not_synced_is_named(recording: Recording) -> None:
    assert recording.unsynced() == []
    recording.lines[12]["synced"] = recording.lines[10]["synced"]
    assert [finding.text.split()[:2] for finding in recording.unsynced()] == [["call", "12"]]


def test_a_log_that_was_begun_anew_is_refused(recording: Recording) -> None:
    log = bytearray(recording.log)
    log[recording.ends[2] + 8] ^= 1
    with pytest.raises(ValueError, match="begun anew"):
        frame_ends(bytes(log))
    with pytest.raises(ValueError, match="no write-ahead log"):
        frame_ends(b"\0" * 64)


def test_a_cut_that_leaves_no_store_is_a_finding(recording: Recording, tmp_path: Path) -> None:
    """A database of another program, say."""
    findings = check_cut(recording, Cut(len(recording.log)), tmp_path / "cut")
    assert [finding.kind for finding in findings] == ["unusable"]
