"""What bad files and other programs do to a store that several processes have open: a clear error each."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest
from tests.helpers.support import bodies, waiting
from tests.stores.sqlite.programs import Program
from tests.tiers import gate

import inorder
from inorder import QueueManager
from inorder.errors import StoreError
from inorder.stores.sqlite import SqliteStore, database, watch
from inorder.testing import ManualClock

pytestmark = gate


def test_an_outside_checkpoint_loses_nothing(path: Path, qm: QueueManager, child: Program) -> None:
    outside = sqlite3.connect(path)
    for number in range(3):
        qm.put("Q", b"%d" % number)
        outside.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        child.run(f"qm.put('Q', b'{number}')")
    outside.close()
    assert bodies(qm) == [b"0", b"0", b"1", b"1", b"2", b"2"]


def test_a_file_that_is_deleted_while_it_is_open(
    path: Path, qm: QueueManager, child: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database, "LOOK_SECONDS", 0.0)
    child.run("from inorder.stores.sqlite import database; database.LOOK_SECONDS = 0.0")
    path.unlink()
    for call in (lambda: qm.put("Q", b"1"), lambda: qm.get("Q"), lambda: qm.get("Q", wait=60), qm.queues):
        with pytest.raises(StoreError, match="deleted or replaced"):
            call()
    assert child.ask("error_of(lambda: qm.put('Q', b'1'))") == "StoreError"
    assert child.ask("error_of(qm.close)") == "StoreError"
    with pytest.raises(StoreError):
        qm.close()
    with inorder.connect(path) as fresh:
        assert fresh.queues() == []
        assert child.ask("inorder.connect(path).queues()") == []


def test_a_store_that_is_restored_under_a_program_works_for_all_that_come_after(
    path: Path, qm: QueueManager, child: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A program that lives has numbers that the backup has yet to give; its syncs must not count for the others."""
    backup = path.with_name("backup.db")
    qm.admin.backup(backup)
    child.run("qm.close(); qm = inorder.connect(path)")  # with numbers that are not in the backup
    qm.close()
    path.rename(path.with_name("before.db"))
    for beside in ("-wal", "-shm"):
        Path(f"{path}{beside}").unlink(missing_ok=True)
    backup.rename(path)
    for number in range(5):
        with inorder.connect(path) as fresh:
            fresh.put("Q", b"%d" % number)
    assert child.ask("error_of(lambda: qm.put('Q', b'1'))") == "StoreError"
    assert child.ask("error_of(qm.admin.check_store)") == "StoreError"
    with inorder.connect(path) as fresh:
        assert bodies(fresh) == [b"0", b"1", b"2", b"3", b"4"]
        assert fresh.inspect.connections(), "the others are not taken for owners of the store that is here now"


def test_a_number_that_still_lives_is_passed_over(path: Path, qm: QueueManager, clock: ManualClock) -> None:
    """A store that was copied over itself gives numbers once more; a program that has one may not have noticed yet."""
    first, second = SqliteStore(path, clock=clock), None
    database = first.database
    try:
        taken = range(first.process + 1, first.process + 1_000)
        assert all(database.hold_owner(number) for number in taken)
        assert not database.hold_owner(taken[0])
        second = SqliteStore(path, clock=clock)
        assert second.process > taken[-1]
    finally:
        for store in (first, second):
            if store is not None:
                store.close_store()


def test_a_wait_ends_when_the_file_is_deleted(path: Path, qm: QueueManager, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch, "DEAD_CHECK_SECONDS", 0.05)
    other = qm.connect()
    call = waiting(other, lambda: other.get("Q", wait=60))
    path.unlink()
    assert isinstance(call.error(), StoreError)
    for each in (other, qm):
        with pytest.raises(StoreError):
            each.close()
