"""A backup while others write: one state of the store, whole, which opens as a store of its own."""

from __future__ import annotations

import contextlib
import errno
import functools
import os
from pathlib import Path

import apsw
import pytest
from tests.helpers.interrupting import IS_KNOWN, OUTSIDE, Interruption
from tests.helpers.support import Call
from tests.stores.sqlite.programs import Program
from tests.tiers import gate

import inorder
from inorder import ArgumentError, CallerError, QueueManager, Reason, StoreError, UniqueId
from inorder.model.message import Message
from inorder.stores.sqlite import backup
from inorder.stores.sqlite.checking import problems

MEMBERS = 5

# Puts units of MEMBERS messages, and reports each number when its commit has been acknowledged.
WRITE = f"""
qm.put("UNITS", b"open", syncpoint=True)
other, number = qm.connect(), 0
while True:
    with other.unit_of_work():
        for member in range({MEMBERS}):
            other.put("UNITS", f"{{number}}.{{member}}".encode() + bytes(2000))
    tell(number)
    number += 1
"""


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    return tmp_path / "copy.db"


def names(messages: list[Message]) -> list[str]:
    return [message.body.rstrip(b"\0").decode() for message in messages]


def check_database(path: Path) -> None:
    connection = apsw.Connection(str(path))
    assert connection.execute("PRAGMA integrity_check").get == "ok"
    assert connection.execute("PRAGMA foreign_key_check").fetchall() == []
    connection.close()


@gate
def test_a_copy_has_all_that_was_acknowledged_before_it_and_only_whole_units(path: Path, copy: Path) -> None:
    with inorder.connect(path) as qm:
        qm.create_queue("UNITS")
        qm.put_many("UNITS", [bytes(3000)] * 4000)  # so that the copy takes several steps
        qm.get_many("UNITS", 4000)
        with Program(path) as process:
            process.answer()
            process.begin(WRITE)
            for _ in range(10):
                process.answer()
            for _ in range(3):
                before = process.answer()
                during: list[int] = []
                qm.admin.backup(copy, replace=True, progress=lambda done, total: during.append(process.answer()))  # noqa: B023
                assert len(during) > 1, "the writer went on"
                check_database(copy)
                with inorder.connect(copy) as copied:
                    assert copied.inspect.units() == [], "whoever was connected is not there"
                    assert problems(copied._store.database) == []  # type: ignore[attr-defined]
                    found = names(list(copied.browse("UNITS")))
                    wholes = [f"{unit}.{member}" for unit in range(len(found) // MEMBERS) for member in range(MEMBERS)]
                    assert found == wholes
                    assert len(found) // MEMBERS > before
                    assert copied.depth("UNITS") == len(found)
    assert sorted(one.name for one in path.parent.iterdir() if one.suffix == ".part") == []


def test_a_copy_backs_out_the_units_of_connections_and_keeps_named_units(path: Path, copy: Path) -> None:
    with inorder.connect(path) as qm:
        qm.create_queue("Q")
        qm.put_many("Q", [b"1", b"2", b"3"])
        qm.get("Q", syncpoint=True)
        qm.put("Q", b"not committed", syncpoint=True)
        named = qm.connect()
        named.put("Q", b"prepared", syncpoint=True)
        named.prepare("transfer")
        held = named.put("Q", b"held", confirm_id=7)
        qm.admin.backup(copy)
        with inorder.connect(copy) as copied:
            assert {unit.kind for unit in copied.inspect.units()} == {"prepared", "confirm"}
            assert names(list(copied.browse("Q"))) == ["1", "2", "3"]
            assert next(iter(copied.browse("Q"))).backout_count == 1
            copied.settle("transfer", "commit")
            copied.confirm_put("Q", held.uid)
            copied.close_queue("Q")
            copied.delete_queue("Q", purge=True)
        qm.commit()
        assert names(list(qm.browse("Q"))) == ["2", "3", "not committed"], "the copy is another store"
    check_database(copy)


def test_numbers_in_a_copy_continue_above_those_reserved_in_the_original(path: Path, copy: Path) -> None:
    with inorder.connect(path) as qm:
        qm.create_queue("Q")
        last = qm.put("Q", b"1").uid
        qm.admin.backup(copy)
    with inorder.connect(copy) as copied:
        first = copied.put("Q", b"2").uid
        assert isinstance(first, UniqueId)
        assert first.number > last.number + 100
        assert names(list(copied.browse("Q"))) == ["1", "2"]


def test_a_copy_in_the_place_of_its_original_gives_no_id_and_no_place_again(path: Path, copy: Path) -> None:
    with inorder.connect(path) as qm:
        qm.create_queue("Q")
        qm.put("Q", b"0")  # so that places are reserved
        qm.get("Q")
        qm.admin.backup(copy)
    used = ids_and_places(path)
    copy.replace(path)  # beside the original's sidecar
    assert not used & ids_and_places(path)


def ids_and_places(path: Path) -> set[object]:
    with inorder.connect(path) as qm:
        qm.put_many("Q", [b"1", b"2"])
        return {one for found in qm.inspect.look("Q") for one in (found.message.uid, found.place)}


def test_the_copy_is_private_and_needs_no_file_beside_it(path: Path, copy: Path) -> None:
    with inorder.connect(path) as qm:
        path.chmod(0o660)
        qm.admin.backup(copy)
        assert copy.stat().st_mode & 0o777 == 0o600
        assert not list(copy.parent.glob("copy.db?*"))


def test_progress_is_reported_in_bytes_up_to_the_size_of_the_copy(qm: QueueManager, copy: Path) -> None:
    seen: list[tuple[int, int]] = []
    qm.put_many("Q", [bytes(10_000)] * 1000)
    qm.admin.backup(copy, progress=lambda done, total: seen.append((done, total)))
    assert seen == sorted(seen)
    assert seen[-1] == (copy.stat().st_size, copy.stat().st_size)


def test_a_failed_backup_keeps_the_existing_file_and_leaves_no_partial_copy(
    qm: QueueManager, path: Path, copy: Path
) -> None:
    def enough(done: int, total: int) -> None:
        raise KeyboardInterrupt

    copy.write_text("precious")
    with pytest.raises(KeyboardInterrupt):
        qm.admin.backup(copy, replace=True, progress=enough)
    assert copy.read_text() == "precious"
    assert {one.name for one in path.parent.iterdir()} >= {"copy.db", "orders.db"}
    assert not list(path.parent.glob("*.part"))
    qm.put("Q", b"all is well")


@pytest.mark.skipif(not IS_KNOWN, reason="it is not known where exceptions may come")
def test_the_name_of_a_copy_never_leads_to_a_part_of_it(path: Path, copy: Path, tmp_path: Path) -> None:
    part, publish = tmp_path / "copy.part", functools.partial(backup._publish, replace=False, argument="path")
    part.write_bytes(b"whole")
    counted = Interruption()
    counted.during(lambda: publish(part, copy, path))
    for place in range(counted.places):
        copy.unlink(missing_ok=True)
        part.write_bytes(b"whole")
        with contextlib.suppress(*OUTSIDE):
            Interruption(place).during(lambda: publish(part, copy, path))
        assert not copy.exists() or copy.read_bytes() == b"whole"


def test_a_disk_without_hard_links_can_have_a_copy(
    qm: QueueManager, copy: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(target: Path, part: Path) -> None:
        raise PermissionError(errno.EPERM, os.strerror(errno.EPERM))

    monkeypatch.setattr(Path, "hardlink_to", refuse)
    qm.admin.backup(copy)
    check_database(copy)
    with pytest.raises(ArgumentError, match="replace"):
        qm.admin.backup(copy)


def test_a_file_that_exists_or_appears_meanwhile_is_kept_unless_replace_is_given(qm: QueueManager, copy: Path) -> None:
    with pytest.raises(ArgumentError, match="replace"):
        qm.admin.backup(copy, progress=lambda done, total: copy.write_text("mine"))
    with pytest.raises(ArgumentError, match="replace"):
        qm.admin.backup(copy)
    assert copy.read_text() == "mine"
    qm.admin.backup(copy, replace=True)
    with inorder.connect(copy) as copied:
        assert copied.queues() == qm.queues()


def test_a_backup_onto_the_store_or_its_files_is_refused_under_any_name(
    qm: QueueManager, path: Path, tmp_path: Path
) -> None:
    os.link(path, tmp_path / "link.db")
    (tmp_path / "soft.db").symlink_to(path)
    os.link(f"{path}-wal", tmp_path / "log")
    before = Path(f"{path}-lock").read_bytes()
    beside = ("orders.db-lock", "orders.db-wal", "orders.db-shm", "orders.db-journal", "log")
    for name in ("orders.db", "link.db", "soft.db", *beside):
        with pytest.raises(ArgumentError, match="of a store"):
            qm.admin.backup(tmp_path / name, replace=True)
    assert Path(f"{path}-lock").read_bytes() == before
    qm.put("Q", b"all is well")


def test_a_backup_replaces_neither_an_open_store_nor_anything_but_a_regular_file(
    qm: QueueManager, copy: Path, tmp_path: Path
) -> None:
    os.mkfifo(copy)
    with pytest.raises(ArgumentError, match="must be a regular file"):
        qm.admin.backup(copy, replace=True)
    assert copy.is_fifo()
    with pytest.raises(ArgumentError, match="path"):
        qm.admin.backup(tmp_path, replace=True)
    with pytest.raises(StoreError, match="no folder"):
        qm.admin.backup(tmp_path / "nowhere" / "copy.db")
    with inorder.connect(tmp_path / "other.db") as other:
        other.create_queue("THEIRS")
        with pytest.raises(StoreError, match="open"):
            qm.admin.backup(tmp_path / "other.db", replace=True)
        other.put("THEIRS", b"all is well")


def test_a_process_may_fork_in_the_middle_of_a_backup(path: Path, copy: Path) -> None:
    statuses: list[int] = []

    def fork(done: int, total: int) -> None:
        child = os.fork()
        if not child:
            try:
                inorder.connect(path)
            except inorder.errors.ForkedConnection:
                os._exit(7)
            os._exit(1)
        statuses.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))

    with inorder.connect(path) as qm:
        qm.create_queue("Q")
        qm.put("Q", b"1")
        qm.admin.backup(copy, progress=fork)
        qm.put("Q", b"2")
        assert statuses == [7]
    with inorder.connect(copy) as copied:
        assert names(list(copied.browse("Q"))) == ["1"]
    check_database(copy)


def test_other_threads_of_the_process_can_put_during_a_backup(qm: QueueManager, copy: Path) -> None:
    with qm.connect() as other:
        qm.admin.backup(copy, progress=lambda done, total: Call(lambda: other.put("Q", b"meanwhile")).ends())
    assert qm.depth("Q") >= 1
    with inorder.connect(copy) as copied:
        assert copied.depth("Q") == 0, "the copy is of one instant"


def test_a_backup_of_a_queue_manager_in_memory_is_refused(copy: Path) -> None:
    with inorder.connect() as qm, pytest.raises(CallerError, match="memory") as refused:
        qm.admin.backup(copy)
    assert refused.value.reason is Reason.FUNCTION_NOT_SUPPORTED
    assert not copy.exists()
