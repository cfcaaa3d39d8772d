"""The log of a recorded history, cut at frames and inside them: every promise up to the cut holds."""

from __future__ import annotations

import os
import random
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from tests.file_store import needs_files
from tools.proof.power import Recording, check_cuts, frame_ends, log_of, record

SEED = int(os.environ.get("INORDER_CRASH_SEED", random.SystemRandom().getrandbits(32)))
LONG = "INORDER_LONG" in os.environ
STEPS, CUTS = (400, 10**9) if LONG else (80, 40)


@needs_files
def test_a_cut_log_keeps_what_was_promised_before_the_cut(tmp_path: Path) -> None:
    recording = record(tmp_path, seed=SEED, steps=STEPS)
    cuts = recording.cuts(random.Random(SEED), CUTS)
    assert len(cuts) > 10
    (tmp_path / "cuts").mkdir()
    findings = check_cuts(recording, cuts, tmp_path / "cuts")
    assert not findings, f"INORDER_CRASH_SEED={SEED} tries the same history\n{findings}"


@pytest.fixture
def recording(tmp_path: Path) -> Recording:
    """Rows written one by one into a plain database, with the log's length after each."""
    path, lines = tmp_path / "plain.db", []
    with closing(sqlite3.connect(path, isolation_level=None)) as database:
        database.executescript("PRAGMA journal_mode=WAL; PRAGMA wal_autocheckpoint=0; CREATE TABLE row (n)")
        for n in range(20):
            database.execute("INSERT INTO row VALUES (?)", (n,))
            lines.append({"n": n, "durable": n % 2 == 0, "log": log_of(path).stat().st_size})
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
    assert [line["n"] for line in recording.told_at(at_ten)] == list(range(12))  # 11 is not durable, 12 is
    assert recording.told_at(0) == []
    assert len(recording.told_at(len(recording.log))) == 20


def test_a_log_that_was_begun_anew_is_refused(recording: Recording) -> None:
    log = bytearray(recording.log)
    log[recording.ends[2] + 8] ^= 1
    with pytest.raises(ValueError, match="begun anew"):
        frame_ends(bytes(log))
    with pytest.raises(ValueError, match="no write-ahead log"):
        frame_ends(b"\0" * 64)
