"""Stagings in a file: on disk when the call returns, kept by restarts and backups, settled wholly or not at all."""

from __future__ import annotations

import itertools
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.helpers import forked
from tests.helpers.staged import KEY, Writer, key, letters
from tests.helpers.support import bodies
from tests.tiers import gate

import inorder
from inorder.client.housekeeping import tidy
from inorder.stores.seam.records import Settled
from inorder.stores.sql import leftovers
from inorder.stores.sqlite import SqliteStore
from inorder.stores.sqlite.checking import problems
from inorder.support.clock import Clock, SystemClock
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
    tidy(writer.store)
    assert [rows_in(writer, table) for table in ("content", "leftover", "staged", "unit")] == [0, 0, 0, 0]
    assert is_sound(writer)


@contextmanager
def opened(path: Path, counts: dict[str, int], clock: Clock | None = None) -> Iterator[Writer]:
    """The next one that has the store open; it knows of these stagings, and how many messages each has."""
    store = SqliteStore(path, clock=clock or SystemClock())
    try:
        writer = Writer(store, inorder.connect(store, program="next"))
        writer.counts = counts
        assert is_sound(writer)
        yield writer
        assert is_sound(writer)
    finally:
        store.close_store()


def test_stagings_and_the_ledger_are_in_a_backup_and_there_when_the_store_is_opened_again(
    writer: Writer, store: SqliteStore, path: Path, clock: ManualClock
) -> None:
    copy = path.with_name("copy.db")
    writer.put(letters("a"))
    writer.stage("one", letters("bcd"), group_key=[1, 1, 2], order_key=[3, 2, 1])
    writer.qm.admin.backup(copy)
    store.close_store()
    for one in (path, copy):
        with opened(one, dict(writer.counts), clock) as again:
            assert again.store.in_ledger("Q", KEY) is not None
            assert again.settle("one", key=KEY._replace(batch="1")).messages == 3
            assert bodies(again.qm) == letters("adcb")


CHILD = """
import inorder
from inorder.stores.sqlite import SqliteStore
from tests.helpers.staged import Writer
store = SqliteStore(*arguments)
writer = Writer(store, inorder.connect(store, program="child"))
writer.qm.create_queue("Q", order="commit")
writer.stage("one", [b"a", b"b"], group_key=[1, 1])
writer.stage("two", [b"c"])
writer.settle("one", "two")
"""


def killed_at(path: Path, point: str) -> int:
    return forked.run(CHILD, str(path), kill_at=point)


@gate
@pytest.mark.parametrize(("point", "staged"), [("staged:1", 2), ("staged:2", 3), ("settled-staging:1", 3)])
def test_a_writer_that_is_killed_leaves_what_it_staged_and_nothing_of_a_settle(
    path: Path, point: str, staged: int
) -> None:
    assert killed_at(path, point) == -signal.SIGKILL
    with opened(path, {"one": 2, "two": 1}) as writer:
        assert sum(unit.puts for unit in writer.qm.inspect.units()) == staged
        assert bodies(writer.qm) == []
        assert writer.store.in_ledger("Q", KEY) is None
        if staged == 3:
            assert writer.settle("one", "two") == Settled(already=False, messages=3)
            assert bodies(writer.qm) == letters("abc")


@gate
def test_a_settle_that_is_killed_after_its_commit_is_known_to_the_next(path: Path) -> None:
    """The batch is written once more, and put once."""
    for point in itertools.count(1):
        each = path.with_name(f"{point}.db")
        code = killed_at(each, f"committed:{point}")
        with opened(each, {}) as writer:
            if not any(queue.name == "Q" for queue in writer.qm.queues()):
                continue
            writer.stage("again", letters("abc"))
            settled = writer.settle("again")
            assert bodies(writer.qm) == letters("abc")
            if code == 0 or settled.already:
                break
    assert settled.already


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
