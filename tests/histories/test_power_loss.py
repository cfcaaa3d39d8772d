"""The log of a recorded history, cut at frames and inside them, keeps every promise made before the cut."""

from __future__ import annotations

import asyncio
import os
import random
import shutil
import sqlite3
import threading
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

import pytest
from tools.proof.power import SIDECARS, Cut, Recording, check_cut, check_cuts, frame_ends, log_of, record

import inorder
from inorder import NoMessageAvailable, aio
from inorder.stores.engine.operation import Operation
from inorder.stores.sqlite import SqliteStore

SEED = int(os.environ.get("INORDER_CRASH_SEED", random.SystemRandom().getrandbits(32)))
LONG = "INORDER_LONG" in os.environ
STEPS, CUTS = (100, 10**9) if LONG else (60, 30)


@pytest.mark.gate
def test_a_cut_log_keeps_what_was_promised_before_the_cut(tmp_path: Path) -> None:
    recording = record(tmp_path, seed=SEED, steps=STEPS)
    cuts = recording.cuts(random.Random(SEED), CUTS)
    assert sum(bool(recording.lost_at(cut.length)) for cut in cuts) >= len(cuts) / 10
    (tmp_path / "cuts").mkdir()
    findings = recording.unsynced() + check_cuts(recording, cuts, tmp_path / "cuts")
    assert not findings, f"INORDER_CRASH_SEED={SEED} tries the same history\n{findings}"


@pytest.mark.nightly
@pytest.mark.parametrize("sidecar", [b"", SIDECARS[-1]], ids=["no sidecar", "another run of the machine"])
def test_uids_given_twice_after_a_cut_are_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sidecar: bytes
) -> None:
    """The cuts test the precaution that a start takes (B-2): without it they find the fault."""
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
    """Tests the tool itself, on a database for which the result of each cut is known."""
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


def test_an_unsynced_call_may_have_been_answered_although_its_log_is_lost(recording: Recording) -> None:
    at_ten = recording.lines[10]["log"]
    assert [line["n"] for line in recording.told_at(at_ten)] == list(range(12))  # 11 was not synced, 12 was
    assert recording.told_at(0) == []
    assert len(recording.told_at(len(recording.log))) == 20
    assert [line["n"] for line in recording.lost_at(at_ten)] == [11]


def test_a_promise_that_was_not_synced_is_reported(recording: Recording) -> None:
    assert recording.unsynced() == []
    recording.lines[12]["synced"] = recording.lines[10]["synced"]
    assert [finding.text.split()[:2] for finding in recording.unsynced()] == [["call", "12"]]


def test_a_log_that_was_reset_is_refused(recording: Recording) -> None:
    log = bytearray(recording.log)
    log[recording.ends[2] + 8] ^= 1
    with pytest.raises(ValueError, match="begun anew"):
        frame_ends(bytes(log))
    with pytest.raises(ValueError, match="no write-ahead log"):
        frame_ends(b"\0" * 64)


def test_a_cut_that_leaves_no_store_is_a_finding(recording: Recording, tmp_path: Path) -> None:
    """Here the database of another program is left."""
    findings = check_cut(recording, Cut(len(recording.log)), tmp_path / "cut")
    assert [finding.kind for finding in findings] == ["unusable"]


# --- brief calls of tasks, beside a thread that writes: answers hold after the cut

TASKS, CALLS, ANSWER_CUTS = 8, 24, 25


class Answer(NamedTuple):
    """An answer to a caller.

    Args:
        synced: number of bytes of the log that were certainly on disk before the answer.
        what: "put" or "got".
    """

    synced: int
    what: str
    body: bytes


class Writers:
    """Tasks and a thread that work on one store, whose log is never copied into the database.

    Attributes:
        copy: the database without its log.
    """

    def __init__(self, path: Path) -> None:
        self.path, self.answers = path, list[Answer]()
        self.copy = path.with_name("copy.db")
        self._synced = 0

    def sync(self, descriptor: int) -> None:
        length = os.fstat(descriptor).st_size
        os.fdatasync(descriptor)
        self._synced = max(self._synced, length)

    def _note(self, what: str, body: bytes) -> None:
        self.answers.append(Answer(self._synced, what, body))

    async def work(self) -> bytes:
        """Runs all of them; returns the log at the end."""
        store = SqliteStore(self.path, keeps_log=True)
        async with aio.connect(store, connections=2) as qm:
            await qm.create_queue("Q")
            thread = threading.Thread(target=self._thread, args=(store,))
            thread.start()
            await asyncio.gather(*(self._task(qm, number) for number in range(TASKS)))
            await asyncio.to_thread(thread.join)
            shutil.copy(self.path, self.copy)  # before the close, which would copy the log into it
            return log_of(self.path).read_bytes()

    def _thread(self, store: SqliteStore) -> None:
        with inorder.connect(store) as qm:
            for number in range(CALLS):
                body = b"thread %d" % number
                qm.put("Q", body)
                self._note("put", body)

    async def _task(self, qm: aio.QueueManager, task: int) -> None:
        chance = random.Random(SEED + task)
        for number in range(CALLS):
            body = b"task %d.%d" % (task, number)
            await chance.choice((self._put, self._put, self._put_and_fail, self._get))(qm, body)
            if chance.random() < 0.2:  # otherwise its next call often shares a sync with other tasks
                await asyncio.sleep(0.001)

    async def _put(self, qm: aio.QueueManager, body: bytes) -> None:
        await qm.run(lambda one: one.put("Q", body), is_brief=True)
        self._note("put", body)

    async def _put_and_fail(self, qm: aio.QueueManager, body: bytes) -> None:
        def put(one: inorder.QueueManager) -> None:
            one.put("Q", body)
            raise KeyError

        with pytest.raises(KeyError):
            await qm.run(put, is_brief=True)
        self._note("put", body)

    async def _get(self, qm: aio.QueueManager, _: bytes) -> None:
        try:
            got = await qm.run(lambda one: one.internals.get_if("Q", lambda message: None), is_brief=True)
        except NoMessageAvailable:
            return
        self._note("got", got.body)


def bodies_at(path: Path, log: bytes, folder: Path) -> list[bytes]:
    """The bodies on the queue if the power fails when this part of the log is on disk."""
    folder.mkdir()
    store = folder / path.name
    shutil.copy(path, store)
    log_of(store).write_bytes(log)
    with inorder.connect(store) as qm:
        return [message.body for message in qm.browse("Q")]


def test_answered_puts_and_gets_were_on_disk_before_their_answers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    writers = Writers(tmp_path / "store.db")
    with monkeypatch.context() as patched:
        patched.setattr("inorder.stores.sqlite.log.sync_data", writers.sync)
        log = asyncio.run(writers.work())
    answers = writers.answers
    got = {one.body for one in answers if one.what == "got"}
    assert len(got) < len(answers)
    lengths = sorted({one.synced for one in answers})
    cuts = {*random.Random(SEED).sample(lengths, min(ANSWER_CUTS, len(lengths))), lengths[0], lengths[-1]}
    for cut in cuts:
        found = bodies_at(writers.copy, log[:cut], tmp_path / str(cut))
        known = [one for one in answers if one.synced <= cut]
        lost = {one.body for one in known if one.what == "put"} - got - set(found)
        again = {one.body for one in known if one.what == "got"} & set(found)
        told = f"INORDER_CRASH_SEED={SEED}, cut at {cut:,}"
        assert not lost, f"{told}: puts that were answered are lost"
        assert not again, f"{told}: messages that were got come again"
        assert len(found) == len(set(found)), f"{told}: messages are there twice"
