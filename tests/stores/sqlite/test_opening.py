"""Opening a store: valid files, files refused before anything is written, and cleanup for dead processes."""

from __future__ import annotations

import errno
import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import apsw
import pytest
from tests.stores.sqlite.inside import VERSION, opened
from tests.stores.sqlite.programs import Child
from tests.tiers import gate
from tools.proof import crash_points

import inorder
from inorder.errors import ArgumentError, InorderError, StoreError, StoreForeign, StoreNewer
from inorder.stores.seam.migrations import Ladder
from inorder.stores.sqlite import SqliteStore, opening
from inorder.stores.sqlite.database import Database
from inorder.stores.sqlite.opening import APPLICATION_ID, MAGIC, file_system


def contents(folder: Path) -> dict[str, bytes]:
    return {each.name: each.read_bytes() for each in folder.iterdir() if each.is_file()}


def refused(path: Path, error: type[StoreError], words: str) -> None:
    before = contents(path.parent) if path.parent.is_dir() else None
    with pytest.raises(error, match=words) as caught:
        opened(path)
    assert str(path) in str(caught.value)
    assert before is None or contents(path.parent) == before, "something was written"


def test_a_new_store_is_marked_and_private(path: Path) -> None:
    database = opened(path)
    assert path.stat().st_mode & 0o777 == 0o600
    header = path.read_bytes()[:100]
    assert header.startswith(MAGIC)
    assert int.from_bytes(header[68:72], "big") == APPLICATION_ID
    assert int.from_bytes(header[60:64], "big") == VERSION
    assert database.connection.execute("PRAGMA journal_mode").get == "wal"
    database.close()


def test_an_empty_file_becomes_a_store_and_keeps_its_permissions(path: Path) -> None:
    path.touch()
    path.chmod(0o660)
    opened(path).close()
    assert path.stat().st_mode & 0o777 == 0o660
    opened(path).close()


@gate
def test_two_processes_that_create_a_store_at_once_can_both_use_it(path: Path) -> None:
    with Child() as first, Child() as second:
        for child in (first, second):
            child.begin(f"database = opened({str(path)!r}); write(database)")
        for child in (first, second):
            child.answer()
        assert first.ask("count(database)") == second.ask("count(database)") == 2


def test_the_schema_to_compare_with_is_made_once_for_all_stores(tmp_path: Path) -> None:
    """Making the schema in memory takes nearly as long as opening a store."""
    paths = [tmp_path / f"{number}.db" for number in range(20)]
    for path in paths:
        inorder.connect(path).close()
    before = opening._objects_of.cache_info().misses
    for path in paths:
        inorder.connect(path).close()
    assert opening._objects_of.cache_info().misses == before


def test_a_schema_that_fails_leaves_an_empty_file(path: Path) -> None:
    with pytest.raises(Exception, match="syntax error"):
        Database(path, schema="CREATE TABLE a (b); CREATE NONSENSE", ladder=Ladder(1))
    assert path.stat().st_size == 0
    opened(path).close()


def test_a_link_leads_to_the_same_store(path: Path) -> None:
    database = opened(path)
    link = path.with_name("link.db")
    link.symlink_to(path)
    second = opened(link)
    database.hold_owner(1)
    assert second.shared.is_alive(1)
    assert not link.with_name("link.db-lock").exists()
    second.close()
    database.close()


def of_another_program(path: Path, journal: str = "delete", application_id: int = 0) -> None:
    foreign = sqlite3.connect(path)
    foreign.execute(f"PRAGMA journal_mode = {journal}")
    foreign.execute(f"PRAGMA application_id = {application_id}")
    foreign.execute("CREATE TABLE a (b)")
    foreign.close()


NO_STORES: dict[str, tuple[Callable[[Path], object], type[StoreError], str]] = {
    "one character": (lambda path: path.write_bytes(b"x"), StoreForeign, "no SQLite file either"),
    "a text": (lambda path: path.write_bytes(b"hello " * 1000), StoreForeign, "no SQLite file either"),
    "half a header": (lambda path: path.write_bytes(MAGIC + bytes(50)), StoreForeign, "no SQLite file either"),
    "a database": (of_another_program, StoreForeign, "SQLite file of another program"),
    "a database with a log": (
        lambda path: of_another_program(path, "wal", 0x12345678),
        StoreForeign,
        "SQLite file of another program",
    ),
    "a newer store": (lambda path: opened(path, VERSION + 1).close(), StoreNewer, "newer release"),
    "a folder": (lambda path: path.mkdir(), StoreError, "is a directory"),
    "a pipe": (os.mkfifo, StoreError, "not an ordinary file"),
}


@pytest.mark.parametrize("what", NO_STORES)
def test_a_path_that_is_not_a_store_is_refused_and_left_unchanged(path: Path, what: str) -> None:
    make, error, words = NO_STORES[what]
    make(path)
    refused(path, error, words)


def test_a_newer_version_that_is_still_only_in_the_log_is_refused(path: Path, peer: Child) -> None:
    peer.run("with database.writing(): database.connection.execute('PRAGMA user_version = 99')")
    peer.kill()
    with pytest.raises(StoreNewer, match="schema version 99"):
        opened(path)


def test_a_missing_folder_is_refused(path: Path) -> None:
    refused(path / "deep.db", StoreError, "no folder")


@pytest.mark.parametrize(("what", "words"), [("orders.db", "cannot read and write it"), ("", "cannot be written")])
def test_a_file_or_folder_without_write_permission_is_refused(
    path: Path, monkeypatch: pytest.MonkeyPatch, what: str, words: str
) -> None:
    path.touch()
    closed = path.parent / what
    monkeypatch.setattr(os, "access", lambda asked, mode: asked != closed)  # root may write everywhere
    refused(path, StoreError, words)


def test_a_file_beside_the_store_that_may_not_be_written_is_named(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The store was given to a group, but the files beside it were not."""
    opened(path).close()
    opening_it = os.open

    def closed(file: Any, flags: int, *given: Any, **named: Any) -> int:
        if str(file).endswith("-lock"):
            raise PermissionError(errno.EACCES, "Permission denied", str(file))
        return opening_it(file, flags, *given, **named)

    monkeypatch.setattr(os, "open", closed)  # root may write everywhere
    refused(path, StoreError, "orders.db-lock cannot be opened.*It belongs to the store: give this user those rights")


def test_a_network_file_system_is_refused(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "net"
    folder.mkdir()
    mounts = tmp_path / "mounts"
    mounts.write_text(f"/dev/vda / ext4 rw 0 0\nserver:/x {folder} nfs4 rw 0 0\n")
    monkeypatch.setattr(opening, "MOUNTS", mounts)
    refused(folder / "orders.db", StoreError, r"network file system \(nfs4\).*local disk")
    opened(path).close()


def test_a_file_that_is_mounted_alone_is_refused(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a container: the log would be in the container, and two containers would have two logs."""
    opened(path).close()
    mounts = tmp_path / "mounts"
    mounts.write_text(f"/dev/vda / ext4 rw 0 0\n/dev/vda {path} ext4 rw 0 0\n")
    monkeypatch.setattr(opening, "MOUNTS", mounts)
    refused(path, StoreError, r"this file alone is mounted here.*Mount the folder")


def test_a_file_with_a_second_name_is_refused(path: Path, tmp_path: Path) -> None:
    """Programs that use both names would have two logs, and damage the store without an error."""
    opened(path).close()
    second = tmp_path / "second.db"
    second.hardlink_to(path)
    for name in (path, second):
        refused(name, StoreError, r"has 2 names \(hard links\).*Remove the other names")
    second.unlink()
    opened(path).close()


MOUNTS = r"""rootfs / rootfs rw 0 0
/dev/vda / ext4 rw,relatime 0 0
server:/home /home nfs rw 0 0
tmpfs /home/local tmpfs rw 0 0
//host/share /mnt/my\040files cifs rw 0 0
nonsense
"""


def test_the_nearest_mount_determines_the_file_system() -> None:
    kinds = {
        "/orders.db": "ext4",
        "/home/me/orders.db": "nfs",
        "/home/local/orders.db": "tmpfs",
        "/homely/orders.db": "ext4",
        "/mnt/my files/orders.db": "cifs",
    }
    assert {path: file_system(Path(path), MOUNTS) for path in kinds} == kinds
    assert file_system(Path("/orders.db"), "") == ""


def test_a_file_beside_the_store_may_disappear_while_the_store_is_opened(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The last process to close a store removes its log; another may open the store at that moment."""
    opened(path).close()
    log, lstat = Path(f"{path}-wal"), Path.lstat
    gone: list[Path] = []
    log.touch()

    def late(beside: Path) -> os.stat_result:
        if beside == log and not gone:
            log.unlink()
            gone.append(log)
        return lstat(beside)

    monkeypatch.setattr(Path, "lstat", late)
    opened(path).close()
    assert gone


NOWHERE = {
    "a loop of links": "loop",
    "a name of a megabyte": "n" * 1_000_000,
    "a name that leaves no room for those beside it": "n" * 250,
    "a path of 3,000 folders": "d/" * 3_000 + "orders.db",
    "a name in a file": "file/orders.db",
}


@pytest.mark.parametrize("path", NOWHERE.values(), ids=NOWHERE)
def test_an_unusable_path_is_refused_with_a_short_message(
    path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("loop").symlink_to("loop")
    Path("file").write_text("text")
    before = sorted(tmp_path.iterdir())
    with pytest.raises(StoreError, match="cannot be opened") as raised:
        inorder.connect(path)
    assert len(str(raised.value)) < 4_100
    assert sorted(tmp_path.iterdir()) == before, "something was made"
    with inorder.connect("here.db") as qm, pytest.raises(InorderError) as raised_again:
        qm.admin.backup(path)
    assert len(str(raised_again.value)) < 4_100


@pytest.mark.parametrize("given", [b"bytes", 5])
def test_a_path_object_that_gives_no_text_is_refused(given: object) -> None:
    odd: Any = type("Odd", (os.PathLike,), {"__fspath__": lambda _: given})
    with pytest.raises(ArgumentError, match="store must be"):
        inorder.connect(odd())


@pytest.mark.parametrize("suffix", ["-lock", "-wal", "-shm", "-journal"])
def test_the_name_of_a_file_beside_another_store_is_refused_for_stores_and_backups(tmp_path: Path, suffix: str) -> None:
    """SQLite would take it for a file of the other store, and remove it or read it back."""
    for name in ("orders.db", "other.db"):
        with inorder.connect(tmp_path / name) as qm:
            qm.create_queue("Q")
            qm.put("Q", b"kept")
    beside = tmp_path / f"orders.db{suffix}"
    beside.unlink(missing_ok=True)
    with pytest.raises(StoreError, match="the name of a file beside another store"):
        inorder.connect(beside)
    with (
        inorder.connect(tmp_path / "other.db") as qm,
        pytest.raises(ArgumentError, match="other than those of a store"),
    ):
        qm.admin.backup(beside)
    assert not beside.exists()
    with inorder.connect(tmp_path / "orders.db") as qm:
        assert (qm.get("Q").body, qm.admin.check()) == (b"kept", [])


def test_a_second_store_object_of_a_process_does_not_restart_the_queue_manager(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    with inorder.connect(SqliteStore(path)) as first:
        first.create_queue("Q")
        first.put("Q", b"in a unit", syncpoint=True)
        first.put("Q", inorder.Message(b"light", persistent=False))
        with inorder.connect(SqliteStore(path)) as second:
            assert second.depth("Q") == 2
            first.commit()
            assert [message.body for message in second.browse("Q")] == [b"in a unit", b"light"]


def put_number(path: Path) -> int:
    """The number of a message that is put after a start of the queue manager."""
    with inorder.connect(path) as qm:
        if not qm.queues():
            qm.create_queue("Q")
        qm.put("Q", b"x")
        (message,) = qm.get_many("Q", 2)
        assert message.place is not None
        return message.place.number


def test_a_start_skips_numbers_only_if_the_machine_was_restarted(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    assert [put_number(path), put_number(path)] == [1, 2]
    with closing(apsw.Connection(str(path))) as database:
        database.execute("UPDATE manager SET boot = 'another run'")
    after = put_number(path)
    assert after > 2 + 1
    assert put_number(path) == after + 1


LARGE_UNIT = """
import sys
import inorder
from tools.proof.limits import make_small

make_small()
with inorder.connect(sys.argv[1]) as qm, qm.unit_of_work():
    qm.get_many("Q", 10)
"""


def test_contents_left_by_a_dead_process_are_removed_by_the_process_that_finds_it_dead(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    with inorder.connect(path) as qm, closing(apsw.Connection(str(path))) as database:
        qm.create_queue("Q")
        qm.put_many("Q", [b"x"] * 10)
        killed = subprocess.run(
            [sys.executable, "-c", LARGE_UNIT, path], env=crash_points.environment("settled:2"), check=False
        )
        assert killed.returncode == -signal.SIGKILL
        assert database.execute("SELECT count(*) FROM leftover").get == 8
        assert qm.inspect.units() == []  # this call finds the dead process
        qm.put("Q", b"y", syncpoint=True)
        qm.commit()
        assert database.execute("SELECT count(*) FROM leftover").get == 0
        assert database.execute("SELECT count(*) FROM content").get == 1
