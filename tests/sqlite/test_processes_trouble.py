"""What bad files and other programs do to a store that several processes have open: a clear error each."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import apsw
import pytest
from tests.sqlite.programs import Program, child, path, programs, qm
from tests.support import bodies, waiting

import inorder
from inorder import QueueManager
from inorder.errors import StoreDamaged, StoreError, StoreForeign, StoreNewer
from inorder.stores.sqlite import database, watch

__all__ = ["child", "path", "qm"]
BODY = os.urandom(1000)


# ---- other programs in the file

HOLD = """
import sqlite3, sys, time
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
connection.execute(sys.argv[2])
connection.execute("SELECT count(*) FROM message").fetchall()
print("holding", flush=True)
time.sleep(float(sys.argv[3]))
connection.execute("ROLLBACK")
connection.close()
"""


@contextmanager
def outsider(path: Path, begin: str, seconds: float) -> Iterator[None]:
    """Another program has a transaction open on the file for so long."""
    command = [sys.executable, "-c", HOLD, str(path), begin, str(seconds)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "holding\n"
        yield
    assert process.returncode == 0


def test_nobody_is_told_that_the_database_is_locked(path: Path, qm: QueueManager, child: Program) -> None:
    with outsider(path, "BEGIN EXCLUSIVE", 2.0):
        child.begin("qm.put_many('Q', [b'child'] * 10); answer = qm.depth('Q')")
        qm.put_many("Q", [b"own"] * 10)
        with inorder.connect(path) as another:
            another.put("Q", b"own")
        assert child.answer() >= 10
    assert qm.depth("Q") == 21


def test_an_outside_reader_stops_nobody(path: Path, qm: QueueManager, child: Program) -> None:
    with outsider(path, "BEGIN", 0.5):
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


def test_a_store_of_a_newer_release_is_refused_and_left_as_it_is(path: Path) -> None:
    inorder.connect(path).close()
    outside = sqlite3.connect(path)
    outside.execute("PRAGMA user_version = 1000")
    outside.close()
    before = path.read_bytes()
    with pytest.raises(StoreNewer):
        inorder.connect(path)
    assert path.read_bytes() == before
    assert not Path(f"{path}-wal").exists()


def test_a_foreign_file_is_refused_and_left_as_it_is(path: Path) -> None:
    path.write_bytes(b"my diary, not a database" * 100)
    before = path.read_bytes()
    with pytest.raises(StoreForeign):
        inorder.connect(path)
    assert path.read_bytes() == before
    path.unlink()
    outside = sqlite3.connect(path)
    outside.execute("CREATE TABLE mine (one)")
    outside.close()
    before = path.read_bytes()
    with pytest.raises(StoreForeign):
        inorder.connect(path)
    assert (path.read_bytes(), [one.name for one in path.parent.iterdir()]) == (before, [path.name])


def test_a_directory_is_refused(path: Path) -> None:
    path.mkdir()
    with pytest.raises(StoreError, match="directory"):
        inorder.connect(path)
    assert list(path.iterdir()) == []


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
