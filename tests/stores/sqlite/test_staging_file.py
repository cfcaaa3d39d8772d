"""Stagings in a file: on disk when the call returns, kept by restarts and backups, settled wholly or not at all."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.helpers.staged import KEY, Writer, key, letters
from tests.helpers.support import bodies

import inorder
from inorder.stores.sql import leftovers
from inorder.stores.sqlite import SqliteStore
from inorder.stores.sqlite.checking import problems
from inorder.testing import ManualClock


@pytest.fixture
def writer(store: SqliteStore) -> Writer:
    qm = inorder.connect(store, program="test")
    qm.create_queue("Q")
    return Writer(store, qm)


def rows_in(writer: Writer, table: str) -> int:
    assert isinstance(writer.store, SqliteStore)
    database = writer.store.database
    with database.reading():
        count = database.connection.execute(f"SELECT count(*) FROM {table}").get
    assert isinstance(count, int)
    return count


def is_sound(writer: Writer) -> bool:
    assert isinstance(writer.store, SqliteStore)
    assert problems(writer.store.database) == []
    return True


def test_contents_are_written_at_the_stage_and_stay_at_the_settle(writer: Writer) -> None:
    writer.stage("one", letters("abc"), group_key=[1, 1, None])
    assert [rows_in(writer, table) for table in ("content", "staged", "message")] == [3, 3, 0]
    assert is_sound(writer)
    writer.settle("one")
    assert [rows_in(writer, table) for table in ("content", "staged", "message", "staging", "unit")] == [3, 0, 3, 0, 0]
    assert is_sound(writer)


def test_every_act_is_on_disk_when_it_returns(writer: Writer, syncs: list[int]) -> None:
    writer.handle()
    writer.qm.put_many("Q", [b""] * 3)
    syncs.clear()
    writer.stage("one", letters("ab"), persistent=[False, False])
    assert len(syncs) == 1
    writer.settle("one")
    assert len(syncs) == 2
    writer.stage("two", letters("ab"))
    writer.store.undo_staging(["two"])
    assert len(syncs) == 4
    writer.store.undo_staging(["two"])
    assert writer.store.in_ledger("Q", KEY) is not None
    assert len(syncs) == 4


def test_a_large_staging_goes_in_steps(writer: Writer, monkeypatch: pytest.MonkeyPatch, clock: ManualClock) -> None:
    monkeypatch.setattr(leftovers, "STEP_CONTENTS", 10)
    for name in ("undone", "over"):
        writer.stage(name, [b"x"] * 35, lasts=10.0)
    commits = rows_in(writer, "content")
    assert commits == 70
    writer.store.undo_staging(["undone"])
    assert (rows_in(writer, "content"), rows_in(writer, "leftover")) == (35, 0)
    clock.advance(10.0)
    writer.store.discard_expired(1000)
    assert [rows_in(writer, table) for table in ("content", "leftover", "staged", "unit")] == [0, 0, 0, 0]
    assert is_sound(writer)


def test_stagings_and_the_ledger_are_in_a_backup_and_there_when_the_store_is_opened_again(
    writer: Writer, store: SqliteStore, path: Path, clock: ManualClock
) -> None:
    copy = path.with_name("copy.db")
    writer.put(letters("a"))
    writer.stage("one", letters("bcd"), group_key=[1, 1, 2], order_key=[3, 2, 1])
    writer.qm.admin.backup(copy)
    store.close_store()
    for one in (path, copy):
        reopened = SqliteStore(one, clock=clock)
        again = Writer(reopened, inorder.connect(reopened, program="next"))
        again.counts = dict(writer.counts)
        assert is_sound(again)
        assert reopened.in_ledger("Q", KEY) is not None
        assert again.settle("one", key=KEY._replace(batch="1")).messages == 3
        assert bodies(again.qm) == letters("adcb")
        assert is_sound(again)
        reopened.close_store()


def test_the_newest_batches_are_kept_though_clocks_are_set_back_and_processes_take_turns(
    writer: Writer, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("inorder.stores.engine.staging.LEDGER_BATCHES_MAX", 3)
    another = SqliteStore(path, clock=ManualClock(1.0))  # years before the other one's
    theirs = Writer(another, inorder.connect(another, program="test"))
    for batch in range(8):
        (writer if batch % 3 else theirs).put([], key=key(batch))
        noted = [one for one in range(8) if writer.store.in_ledger("Q", key(one)) is not None]
        assert noted == list(range(max(0, batch - 2), batch + 1))
    another.close_store()
