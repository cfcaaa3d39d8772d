"""What bad files and other programs do to a store that several processes have open: a clear error each."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest
from tests.sqlite.programs import Program
from tests.support import bodies, waiting
from tests.tiers import gate

import inorder
from inorder import QueueManager
from inorder.errors import StoreError
from inorder.stores.sqlite import database, watch

pytestmark = gate


# ---- other programs in the file


def test_an_outside_checkpoint_loses_nothing(path: Path, qm: QueueManager, child: Program) -> None:
    outside = sqlite3.connect(path)
    for number in range(3):
        qm.put("Q", b"%d" % number)
        outside.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        child.run(f"qm.put('Q', b'{number}')")
    outside.close()
    assert bodies(qm) == [b"0", b"0", b"1", b"1", b"2", b"2"]


# ---- the file goes away


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


def test_a_wait_ends_when_the_file_is_deleted(path: Path, qm: QueueManager, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch, "BURY_SECONDS", 0.05)
    other = qm.connect()
    call = waiting(other, lambda: other.get("Q", wait=60))
    path.unlink()
    assert isinstance(call.error(), StoreError)
    for each in (other, qm):
        with pytest.raises(StoreError):
            each.close()
