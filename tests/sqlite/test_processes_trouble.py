"""What bad files and other programs do to a store that several processes have open: a clear error each."""

from __future__ import annotations

import os
import sqlite3
import tempfile
from pathlib import Path

import apsw
import pytest
from tests.sqlite.programs import Child, Program, programs
from tests.support import bodies, waiting
from tests.tiers import gate

import inorder
from inorder import QueueManager
from inorder.errors import StoreDamaged, StoreError
from inorder.stores.sqlite import database, watch

pytestmark = gate
BODY = os.urandom(1000)


# ---- other programs in the file


def test_an_outside_reader_stops_nobody(path: Path, qm: QueueManager, child: Program) -> None:
    with Child() as outsider:
        outsider.run(f"reader = apsw.Connection({str(path)!r})")
        outsider.run("reader.execute('BEGIN; SELECT count(*) FROM message').fetchall()")
        for _ in range(5):
            child.run("qm.put('Q', b'1' * 100_000)")
            qm.put("Q", b"2")
        assert len(qm.get_many("Q", 20)) == 10


def test_an_outside_checkpoint_loses_nothing(path: Path, qm: QueueManager, child: Program) -> None:
    outside = sqlite3.connect(path)
    for number in range(3):
        qm.put("Q", b"%d" % number)
        outside.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        child.run(f"qm.put('Q', b'{number}')")
    outside.close()
    assert bodies(qm) == [b"0", b"0", b"1", b"1", b"2", b"2"]


# ---- what is not opened, and not written


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become nobody")
@pytest.mark.parametrize("what", ["file", "folder"])
def test_a_file_that_may_only_be_read_is_refused(child: Program, what: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "orders.db"
        with inorder.connect(path) as manager:
            manager.create_queue("Q")
        Path(folder).chmod(0o777 if what == "file" else 0o755)
        path.chmod(0o444 if what == "file" else 0o666)
        child.run("os.setgid(65534); os.setuid(65534)")
        assert child.ask(f"error_of(lambda: inorder.connect({str(path)!r}))") == "StoreError"
        with inorder.connect(path) as manager:
            assert manager.depth("Q") == 0


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


# ---- damage


def test_a_damaged_page_fails_the_call_that_meets_it_and_the_process_goes_on(path: Path) -> None:
    with inorder.connect(path) as manager:
        for queue in ("SOUND", "SICK"):
            manager.create_queue(queue)
        manager.put_many("SICK", [BODY] * 200)
        manager.put_many("SOUND", [b"1", b"2"])
    spoil(path, b"content")
    with programs(path, 1) as [one]:
        assert one.ask("error_of(lambda: list(qm.browse('SICK')))") == "StoreDamaged"
        assert one.ask("error_of(lambda: qm.get_many('SICK', 200))") == "StoreDamaged"
        assert one.ask("(qm.depth('SOUND'), qm.depth('SICK'))") == (2, 200)
        one.run("qm.close()")
    with inorder.connect(path) as manager, pytest.raises(StoreDamaged):
        list(manager.browse("SICK"))


def spoil(path: Path, table: bytes) -> None:
    """Writes rubbish over pages of a table's leaves."""
    connection = apsw.Connection(str(path))
    size = connection.pragma("page_size")
    assert isinstance(size, int)
    found = connection.execute(
        "SELECT pageno FROM dbstat WHERE name = ? AND pagetype = 'leaf' ORDER BY pageno", (table.decode(),)
    )
    pages = [page for (page,) in found if isinstance(page, int)]
    connection.close()
    with path.open("r+b") as file:
        for page in pages[5:15]:
            file.seek((page - 1) * size)
            file.write(b"\xff" * size)
