"""A store of an older release is upgraded wholly or not at all: killed, on a full disk, in use by others.

Here, this release is the older one, and `tests/helpers/invented.py` is the one that upgrades.
"""

from __future__ import annotations

import os
import shutil
import signal
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import apsw
import pytest
from tests.helpers import invented
from tests.helpers.forked import SERVER
from tests.helpers.support import put_group
from tests.stores.sqlite.disks import counted, mounted
from tests.stores.sqlite.programs import Child, programs
from tests.tiers import gate, nightly

import inorder
from inorder import StoreError
from inorder.errors import StoreFull, StoreNewer, StoreOlder
from inorder.stores.engine import points
from inorder.stores.seam.migrations import Ladder, MigrationStep, Upgraded
from inorder.stores.sqlite import upgrade_file
from inorder.stores.sqlite.database import Database
from inorder.stores.sqlite.statements import VERSION

NEXT = invented.SQLITE.newest
STEPS = [f"upgrade-step {version}" for version in range(VERSION + 1, NEXT + 1)]
POINTS = [*(one for one in points.UPGRADE_POINTS if one != "upgrade-step"), *STEPS]
CALLS_MAX = 2000

pytestmark = gate

Rows = dict[str, list[tuple[Any, ...]]]


def upgraded(path: Path, **named: Any) -> Upgraded:
    """Upgrades the store to the next, invented release."""
    return upgrade_file(path, ladder=invented.SQLITE, schema=invented.SCHEMA, **named)


def opened_by_next(path: Path) -> Database:
    return Database(path, schema=invented.SCHEMA, ladder=invented.SQLITE)


def filled(path: Path) -> None:
    """Makes a store with messages, a group, a prepared unit, and a process that was killed in a unit of work."""
    with inorder.connect(path) as qm:
        qm.create_queue("Q", description="ours")
        qm.put_many("Q", [bytes([number]) * 3000 for number in range(50)])
        put_group(qm, b"first", b"last")
        qm.put("Q", b"prepared", syncpoint=True)
        qm.prepare("monday")
    with programs(path, 1) as [one]:
        one.run("qm.put('Q', b'open', syncpoint=True)")
        one.kill()


def rows(path: Path) -> Rows:
    """All rows of all tables, without what an upgrade changes."""
    with closing(sqlite3.connect(path)) as connection:
        names = [name for (name,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")]
        found = {name: sorted(connection.execute(f"SELECT * FROM {name}"), key=repr) for name in names}
        found["manager"] = connection.execute("SELECT id, attributes, identifier FROM manager").fetchall()
    found["definition"] = [row[:6] for row in found["definition"]]
    return found


def version_of(path: Path) -> int:
    with closing(sqlite3.connect(path)) as connection:
        (version,) = connection.execute("PRAGMA user_version").fetchone()
    assert isinstance(version, int)
    return version


@pytest.fixture
def path(path: Path) -> Path:
    filled(path)
    return path


@pytest.fixture(autouse=True)
def nothing_at_points() -> Iterator[None]:
    yield
    points.reached = None


def test_an_upgrade_keeps_all_rows_and_makes_the_tables_of_a_new_store(path: Path) -> None:
    before = rows(path)
    done = upgraded(path)
    backup = path.with_name(f"orders.db.schema-{VERSION}")
    assert (done.found, done.version, done.backup) == (VERSION, NEXT, backup)
    assert rows(path) == rows(backup) == before
    with closing(sqlite3.connect(path)) as connection:  # numbers jump once, as unsynced data may be missing
        assert connection.execute("SELECT boot FROM manager").fetchall() == [("",)]
    database = opened_by_next(path)  # it refuses all tables but its own
    with database.writing():
        assert {note for (note,) in database.connection.execute("SELECT note FROM definition")} == {"none"}
    database.close()


def test_a_store_of_this_release_is_left_alone(path: Path) -> None:
    before = path.read_bytes()
    assert inorder.upgrade(path) == Upgraded(found=VERSION, version=VERSION)
    assert rows(path)
    assert path.read_bytes()[:100] == before[:100]
    assert list(path.parent.glob("*.schema-*")) == []
    upgraded(path)
    assert upgraded(path) == Upgraded(found=NEXT, version=NEXT)


def refused(path: Path, error: type[Exception], words: str, call: Callable[[], object]) -> None:
    before = rows(path), version_of(path)
    with pytest.raises(error, match=words):
        call()
    assert (rows(path), version_of(path)) == before


def test_connecting_to_an_older_store_raises_an_error_with_the_remedy(path: Path) -> None:
    with pytest.raises(StoreOlder, match=f"inorder upgrade --store {path}") as caught:
        opened_by_next(path)
    assert (caught.value.version, caught.value.upgradable) == (VERSION, True)


def test_a_store_from_before_the_first_step_is_refused(path: Path) -> None:
    later = Ladder(NEXT + 1, [MigrationStep(version=NEXT + 1, statements="")])
    refused(path, StoreOlder, f"too old.*is {NEXT}", lambda: upgrade_file(path, ladder=later))


def test_an_older_release_refuses_an_upgraded_store(path: Path) -> None:
    upgraded(path)
    refused(path, StoreNewer, f"schema version {NEXT}", lambda: inorder.connect(path))
    refused(path, StoreNewer, "newer release", lambda: inorder.upgrade(path))


def test_an_existing_file_at_the_path_of_the_backup_is_not_overwritten(path: Path) -> None:
    there = path.with_name(f"orders.db.schema-{VERSION}")
    there.write_text("mine")
    refused(path, ValueError, "does not exist yet", lambda: upgraded(path))
    refused(path, ValueError, "backup must be.*does not exist yet", lambda: upgraded(path, backup=there))
    refused(path, ValueError, "a file other than", lambda: upgraded(path, backup=f"{path}-journal"))
    assert there.read_text() == "mine"
    assert upgraded(path, backup=path.with_name("other.db")).backup == path.with_name("other.db")


def test_an_upgrade_of_a_missing_or_empty_file_is_refused_and_makes_no_store(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="no store"):
        inorder.upgrade(tmp_path / "none.db")
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "empty.db").touch()
    with pytest.raises(StoreError, match="no store"):
        inorder.upgrade(tmp_path / "empty.db")
    assert (tmp_path / "empty.db").stat().st_size == 0


def test_an_upgrade_is_refused_while_others_have_the_store_open(path: Path) -> None:
    with programs(path, 1) as [other]:
        with pytest.raises(StoreError, match="others have it open"):
            upgraded(path)
        other.run("qm.put('Q', b'more')")
    with inorder.connect(path) as qm:
        with pytest.raises(StoreError, match="others have it open"):
            upgraded(path)
        qm.put("Q", b"more")
    with Child() as shell:
        shell.run(f"reader = apsw.Connection({str(path)!r})")
        shell.run("reader.execute('BEGIN; SELECT count(*) FROM message').fetchall()")
        with pytest.raises(StoreError, match="others have it open"):
            upgraded(path, backup=False)
    assert version_of(path) == VERSION
    upgraded(path)


def test_a_process_that_connects_during_an_upgrade_waits_and_finds_the_new_version(path: Path) -> None:
    with Child() as other:

        def let_in(point: str) -> None:
            if point == "upgrade-begun":
                other.begin(f"tell('begins'); answer = error_of(lambda: inorder.connect({str(path)!r}))")
                assert other.answer() == "begins"

        points.reached = let_in
        upgraded(path)
        points.reached = None
        assert other.answer() == "StoreNewer"
    assert version_of(path) == NEXT


@pytest.mark.parametrize("what", ["orders.db", ""])
def test_a_file_or_folder_without_rights_is_refused(path: Path, monkeypatch: pytest.MonkeyPatch, what: str) -> None:
    closed = path.parent / what
    monkeypatch.setattr(os, "access", lambda asked, mode: asked != closed)  # root may write everywhere
    refused(path, StoreError, "cannot (read and write|be written)", lambda: upgraded(path))
    assert list(path.parent.glob("*.schema-*")) == []


@pytest.mark.parametrize("wrong", ["CREATE NONSENSE", "DROP TABLE handle", "CREATE TABLE more (a)", "SELECT 1"])
def test_a_step_that_fails_or_makes_another_schema_changes_nothing(path: Path, wrong: str) -> None:
    steps = invented.SQLITE.from_version(VERSION)
    last = MigrationStep(version=NEXT + 1, statements=wrong)
    ladder, schema = Ladder(NEXT + 1, [*steps, last]), f"{invented.SCHEMA}; CREATE TABLE right (a);"
    refused(path, Exception, "NONSENSE|not a store as inorder creates it",
            lambda: upgrade_file(path, ladder=ladder, schema=schema, backup=False))  # fmt: skip


def upgrade_and_die(path: Path, at: str | int) -> None:
    """Kills itself at a point, or before the nth time that it writes, syncs, shortens or removes a file."""
    if isinstance(at, str):
        points.reached = lambda point: os.kill(os.getpid(), signal.SIGKILL) if point == at else None
    else:
        system = _Mortal(at)
        assert system.calls == at
    upgraded(path)


class _Mortal(apsw.VFS):
    def __init__(self, calls: int) -> None:
        self.calls = calls
        super().__init__("mortal", "unix", makedefault=True)

    def xOpen(self, name: Any, flags: Any) -> apsw.VFSFile:  # noqa: N802 - its name in SQLite
        return _MortalFile(self, name, flags)

    def xDelete(self, name: str, sync: bool) -> None:  # noqa: N802 - as above
        self.count()
        super().xDelete(name, sync)

    def count(self) -> None:
        self.calls -= 1
        if self.calls < 0:
            os.kill(os.getpid(), signal.SIGKILL)


class _MortalFile(apsw.VFSFile):
    def __init__(self, system: _Mortal, name: Any, flags: Any) -> None:
        super().__init__("unix", name, flags)
        self._system = system

    def xWrite(self, data: Any, offset: int) -> None:  # noqa: N802 - as above
        self._system.count()
        super().xWrite(data, offset)

    def xSync(self, flags: int) -> None:  # noqa: N802 - as above
        self._system.count()
        super().xSync(flags)

    def xTruncate(self, size: int) -> None:  # noqa: N802 - as above
        self._system.count()
        super().xTruncate(size)


def killed(path: Path, at: str | int) -> bool:
    process = SERVER.Process(target=upgrade_and_die, args=(path, at), daemon=True)
    process.start()
    process.join()
    assert process.exitcode in (0, -signal.SIGKILL)
    return process.exitcode != 0


def check_whole(path: Path, before: Rows) -> int:
    """Checks that one release can open the store, and that nothing is lost. Returns the version of that release."""
    try:
        with inorder.connect(path) as qm:  # backs out the open unit
            assert (qm.depth("Q"), qm.admin.check()) == (53, [])
        found = VERSION
    except StoreNewer:
        opened_by_next(path).close()
        assert rows(path) == before
        found = NEXT
    copies = list(path.parent.glob("*.schema-*"))
    assert all(version_of(copy) == VERSION and rows(copy) == before for copy in copies if copy.suffix != ".part")
    assert upgraded(path, backup=False).version == NEXT
    return found


@pytest.mark.parametrize("point", POINTS)
def test_a_kill_at_any_point_of_an_upgrade_leaves_a_store_of_one_release(path: Path, point: str) -> None:
    before = rows(path)
    assert killed(path, point)
    assert check_whole(path, before) == (NEXT if point == "upgrade-committed" else VERSION)


@nightly
def test_a_kill_at_any_write_of_an_upgrade_leaves_the_store_unchanged(tmp_path: Path) -> None:
    """An upgrade ends when it removes the rollback journal, so no kill before that changes the store."""
    found = []
    for calls in range(CALLS_MAX):
        folder = tmp_path / str(calls)
        folder.mkdir()
        filled(folder / "orders.db")
        before = rows(folder / "orders.db")
        if not killed(folder / "orders.db", calls):
            assert version_of(folder / "orders.db") == NEXT
            break
        found.append(check_whole(folder / "orders.db", before))
    assert found == [VERSION] * len(found)
    assert 30 < len(found) < CALLS_MAX


ROOMS = range(0, 1_200_000, 16_384)


@nightly
@pytest.mark.parametrize("copies", [False, True], ids=["without a copy", "with a copy"])
def test_an_upgrade_with_too_little_disk_space_leaves_the_store_unchanged(tmp_path: Path, copies: bool) -> None:
    filled(tmp_path / "before.db")
    found = []
    for room in ROOMS:
        with counted(tmp_path / str(room), 6 << 20) as disk:
            shutil.copy(tmp_path / "before.db", disk.store)
            before = rows(disk.store)
            with (disk.folder / "ballast").open("wb") as ballast:
                ballast.truncate(disk.free - room)
            try:
                upgraded(disk.store, backup=copies)
            except StoreFull:
                disk.clear()
                assert not [one for one in disk.folder.iterdir() if one.suffix == ".part"]
            found.append(version_of(disk.store))
            assert rows(disk.store) == before
            upgraded(disk.store, backup=False)
    assert found == sorted(found)
    assert set(found) == {VERSION, NEXT}


def test_an_upgrade_on_a_full_disk_raises_store_full(tmp_path: Path) -> None:
    with mounted(tmp_path / "disk", 6 << 20) as disk:
        filled(disk.store)
        disk.fill()
        with pytest.raises(StoreFull, match="changed nothing"):
            upgraded(disk.store)
        disk.clear()
        with inorder.connect(disk.store) as qm:
            assert (qm.depth("Q"), qm.admin.check()) == (53, [])
        assert upgraded(disk.store).version == NEXT
