"""A call that meets trouble or an exception from outside leaves the process and its files consistent."""

from __future__ import annotations

import fcntl
import logging
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import apsw
import pytest
from tests.helpers.support import bodies, waiting
from tests.stores.sqlite.inside import opened
from tests.stores.sqlite.programs import Child

import inorder
from inorder import QueueManager
from inorder.errors import MessageTooBig, StoreDamaged, StoreError, StoreFull
from inorder.rules.puts import Program
from inorder.stores.engine import points
from inorder.stores.seam.changes import Changes, Death, Happened
from inorder.stores.sql.backend import SqlBackend
from inorder.stores.sqlite import SqliteStore, coordination, database, log
from inorder.stores.sqlite.checking import problems
from inorder.stores.sqlite.host import SqliteHost
from inorder.testing import ManualClock


@pytest.fixture
def file(qm: QueueManager) -> SqliteStore:
    store = qm._store
    assert isinstance(store, SqliteStore)
    return store


def interrupt_after_commit(file: SqliteStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """The next commit succeeds, and Ctrl-C is noticed right after it."""
    coordination = file.database._coordination
    announced = coordination.after_commit

    def interrupted(*_: Any, **__: Any) -> int:
        monkeypatch.setattr(coordination, "after_commit", announced)
        raise KeyboardInterrupt

    monkeypatch.setattr(coordination, "after_commit", interrupted)


def test_a_unit_whose_first_call_failed_leaves_no_number_behind(
    qm: QueueManager, file: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(SqliteHost, "make_room", lambda *_, **__: None)
    connection = file.database.connection
    pages = connection.execute("PRAGMA page_count").get
    connection.execute(f"PRAGMA max_page_count = {pages}").fetchall()
    with pytest.raises(StoreFull):
        qm.put("Q", b"y" * 200_000, syncpoint=True)
    connection.execute("PRAGMA max_page_count = 1073741823").fetchall()
    first = qm.put("Q", b"z", confirm_id=7)
    qm.put("Q", b"z2", confirm_id=7)
    assert [unit.kind for unit in qm.inspect.units()] == ["confirm"]
    assert qm.confirm_put("Q", first.uid) is None
    assert problems(file.database) == []


@pytest.mark.parametrize("call", ["put", "commit"])
def test_a_call_committed_just_before_ctrl_c_stays_committed(
    call: str, qm: QueueManager, file: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    queue = qm.open("Q")
    if call == "commit":
        queue.put(b"a", syncpoint=True)
    act = {"put": lambda: queue.put(b"a", syncpoint=True), "commit": qm.commit}[call]
    interrupt_after_commit(file, monkeypatch)
    with pytest.raises(KeyboardInterrupt):
        act()
    queue.put(b"b", syncpoint=True)
    qm.commit()
    assert [message.body for message in qm.browse("Q", read_order="strict")] == [b"a", b"b"]
    assert qm.inspect.units() == []
    assert problems(file.database) == []


def test_a_commit_succeeds_although_its_contents_cannot_be_removed_yet(
    qm: QueueManager, file: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    qm.put_many("Q", [b"x"] * 1500)
    qm.get_many("Q", 1500, syncpoint=True)

    def full(_: object) -> bool:
        raise StoreFull("the disk is full")

    with monkeypatch.context() as trouble:
        trouble.setattr(SqlBackend, "sweep", full)
        qm.commit()
    assert (qm.depth("Q"), qm.inspect.units()) == (0, [])
    qm.admin.discard_expired()
    assert file.database.connection.execute("SELECT count(*) FROM content").get == 0


def test_a_put_syncs_an_open_reservation_of_numbers_before_it_returns(qm: QueueManager, file: SqliteStore) -> None:
    qm.put("Q", b"x", persistent=False)
    # As if another process had died between the commit of a reservation and its sync.
    file.database._coordination.after_commit((), reserves=True)
    opened = [file.database.shared.is_reservation_open]
    qm.put("Q", b"y", persistent=False)
    assert [*opened, file.database.shared.is_reservation_open] == [True, False]


# ---- a call reports what has happened, even if something fails afterwards


def test_a_log_that_cannot_be_shortened_makes_no_call_fail(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    tries = []

    def full(self: log.Log, mode: int = 0) -> int:
        if not mode:  # the second try, with the reserve, has a mode
            tries.append(self)
        raise apsw.FullError("database or disk is full")

    with inorder.connect(tmp_path / "orders.db") as qm, monkeypatch.context() as patched:
        patched.setattr(log.Log, "_checkpoint", full)
        qm.create_queue("Q")
        with caplog.at_level(logging.ERROR, "inorder.stores"):
            for _ in range(25):
                qm.put_many("Q", [bytes(10_000)] * 100)
        assert qm.depth("Q") == 2_500
        assert 1 <= len(tries) <= 4, "not at each call"
        assert len(caplog.records) == len(tries)


def test_a_queue_defined_in_a_failed_transaction_is_not_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor is it confused with a queue that another process defines later, under the same revision."""

    def fail(point: str) -> None:
        if point == "written":
            raise ZeroDivisionError

    path = tmp_path / "orders.db"
    with inorder.connect(SqliteStore(path)) as qm, inorder.connect(SqliteStore(path)) as other:
        with monkeypatch.context() as patched:
            patched.setattr(points, "reached", fail)
            with pytest.raises(ZeroDivisionError):
                qm.create_queue("Q")
        other.create_queue("R")
        assert [attributes.name for attributes in qm.queues()] == ["R"]


def test_a_failed_discard_of_expired_messages_before_a_call_raises_its_own_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Expired messages are discarded in a step that stays even if the call is refused; here, its own commit fails."""

    def fail(point: str) -> None:
        if point == "written":
            raise apsw.CorruptError("database disk image is malformed")

    clock = ManualClock()
    with inorder.connect(SqliteStore(tmp_path / "orders.db", clock=clock)) as qm:
        qm.create_queue("Q", max_length=10)
        qm.put("Q", b"x", expiry=1)
        clock.advance(2)
        with monkeypatch.context() as patched:
            patched.setattr(points, "reached", fail)
            with pytest.raises(StoreDamaged):
                qm.put("Q", bytes(11))
        with pytest.raises(MessageTooBig):
            qm.put("Q", bytes(11))
        assert [one.message.body for one in qm.inspect.look("Q")] == []


Planted = Callable[[Any, str, BaseException], list[None]]


@pytest.fixture
def planted(monkeypatch: pytest.MonkeyPatch) -> Planted:
    """Makes the first call of a function raise this, and do nothing else; then the list has an item."""

    def plant(where: Any, name: str, error: BaseException) -> list[None]:
        came: list[None] = []
        does = getattr(where, name)

        def once(*given: Any, **by_name: Any) -> Any:
            if not came:
                came.append(None)
                raise error
            return does(*given, **by_name)

        monkeypatch.setattr(where, name, once)
        return came

    return plant


def test_a_time_out_during_a_sync_is_not_taken_for_a_failure_of_the_disk(qm: QueueManager, planted: Planted) -> None:
    assert not planted(log, "sync_data", TimeoutError())
    with pytest.raises(TimeoutError):
        qm.put("Q", b"1")
    qm.put("Q", b"2")
    assert bodies(qm) == [b"1", b"2"]


def test_a_put_raises_an_error_if_a_sync_of_another_process_has_failed(
    qm: QueueManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    store: Any = qm._store
    shared = store.database._coordination
    monkeypatch.setattr(log, "sync_data", lambda _: shared.words.__setitem__(coordination.SYNC_FAILED, 1))
    with pytest.raises(StoreError, match="an earlier sync to disk failed"):
        qm.put("Q", b"1")


def test_an_interrupted_close_is_completed_by_the_next_close(path: Path, planted: Planted, peer: Child) -> None:
    one = opened(path)
    one.hold_owner(7)
    assert not planted(one, "_disconnect", TimeoutError())
    with pytest.raises(TimeoutError):
        one.close()
    one.close()
    assert Path(f"{path}-lock") not in coordination.attached()
    assert peer.ask("database._coordination.is_alone")
    assert not peer.ask("database.shared.is_alive(7)")


def test_an_opening_that_is_interrupted_leaves_nothing_attached(path: Path, planted: Planted) -> None:
    assert not planted(database, "identity_of", TimeoutError())
    with pytest.raises(TimeoutError):
        opened(path)
    assert Path(f"{path}-lock") not in coordination.attached()


def test_a_time_out_ends_the_wait_for_the_turn(qm: QueueManager, planted: Planted) -> None:
    qm.put("Q", b"1")
    came = planted(fcntl, "lockf", TimeoutError())
    with pytest.raises(TimeoutError):
        qm.put("Q", b"2")
    assert came
    qm.put("Q", b"3")
    assert bodies(qm) == [b"1", b"3"]


def test_an_interrupted_preparation_of_a_fork_leaves_no_lock_held(peer: Child) -> None:
    peer.run(
        "def fail(self): Database.before_fork = real; raise KeyboardInterrupt\n"
        "real, Database.before_fork = Database.before_fork, fail\n"
        "sys.unraisablehook = lambda _: None\n"
        "pid = os.fork()\n"
        "if not pid: os._exit(0)\n"
        "os.waitpid(pid, 0)\n"
        "opens = threading.Thread(target=lambda: opened(str(database.path) + '2').close(), daemon=True)\n"
        "opens.start(); opens.join()\n"
    )
    assert peer.ask("Database.before_fork is real and os.path.exists(str(database.path) + '2')")
    assert peer.ask("count(database)") == 0


def test_an_event_whose_listener_was_interrupted_is_reported_again() -> None:
    """Our own listeners raise nothing; an exception in one comes from outside, so it is told again."""
    changes, told, errors = Changes(), list[Happened](), [TimeoutError()]

    def listener(happened: Happened) -> None:
        if errors:
            raise errors.pop()
        told.append(happened)

    changes.subscribe(listener, is_ours=True)
    death = Death(Program("u", "p"))
    with pytest.raises(TimeoutError):
        changes.report([death])
    changes.hand_out()
    assert told == [death]


def test_the_record_of_watched_queues_is_cleared_after_the_last_wait(qm: QueueManager) -> None:
    qm.create_queue("R")
    with qm.connect() as other:
        call = waiting(other, lambda: other.get("R", wait=600).body)
        for _ in range(20):
            with pytest.raises(inorder.NoMessageAvailable):
                qm.get("Q", wait=0.001)
        qm.put("R", b"1")
        assert call.result() == b"1"
        store: Any = qm._store
        seen = store.host.watch._seen
        assert (seen.queues, seen.numbers) == ({}, {})


def test_a_backup_leaves_the_reserve_unchanged(qm: QueueManager, path: Path) -> None:
    for _ in range(20):
        qm.put("Q", os.urandom(200_000))
    before = Path(f"{path}-lock").stat().st_size
    qm.admin.backup(path.with_name("copy.db"))
    assert Path(f"{path}-lock").stat().st_size == before > 3 << 20
