"""One file: transactions, faults, deleted files, durability, and a log that stays short."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path

import apsw
import pytest
from tests.helpers.support import LIMIT_SECONDS, Call
from tests.stores.sqlite.inside import count, opened, write
from tests.stores.sqlite.programs import Child
from tests.tiers import gate

from inorder import Message, QueueManager
from inorder.errors import ConnectionClosed, StoreDamaged, StoreError, StoreFull
from inorder.stores.sqlite import database as database_module
from inorder.stores.sqlite import faults
from inorder.stores.sqlite import log as log_module
from inorder.stores.sqlite.database import Database


def test_a_wrong_statement_raises_the_error_of_sqlite_unchanged(database: Database) -> None:
    with pytest.raises(apsw.SQLError), database.writing():
        database.connection.execute("SELECT nonsense FROM nowhere")
    with pytest.raises(apsw.SQLError), database.reading():
        database.connection.execute("SELECT nonsense FROM nowhere")


@gate
@pytest.mark.parametrize("begin", ["BEGIN IMMEDIATE", "BEGIN EXCLUSIVE"])
def test_a_write_waits_for_a_foreign_lock_as_long_as_it_takes(
    database: Database, path: Path, monkeypatch: pytest.MonkeyPatch, begin: str
) -> None:
    met = met_busy(database, monkeypatch)
    with Child() as shell:
        shell.run(f"foreign = apsw.Connection({str(path)!r}); foreign.execute({begin!r})")
        call = Call(lambda: write(database))
        assert met.wait(LIMIT_SECONDS)
        assert not call.done
        shell.run("foreign.execute('COMMIT')")
        call.result()
    assert count(database) == 1


@gate
def test_a_file_locked_exclusively_by_another_program_is_opened_after_its_release(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened(path).close()
    with Child() as shell:
        shell.run(f"foreign = apsw.Connection({str(path)!r}); foreign.execute('PRAGMA locking_mode = EXCLUSIVE')")
        shell.run("foreign.execute('BEGIN EXCLUSIVE; INSERT INTO note (text) VALUES (1); DELETE FROM note')")
        monkeypatch.setattr(database_module, "BUSY_MS", 1)
        call = Call(lambda: opened(path))
        shell.run("foreign.execute('COMMIT'); foreign.close()")
        database = call.result()
        assert count(database) == 0
        database.close()


def met_busy(database: Database, monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    """Is set when SQLite has given up waiting and is asked again."""
    met = threading.Event()
    passing = faults.patiently

    def patiently(connection: apsw.Connection, statement: str) -> apsw.Cursor:
        try:
            return connection.execute(statement)
        except apsw.BusyError:
            met.set()
        return passing(connection, statement)

    database.connection.set_busy_timeout(1)
    monkeypatch.setattr(database_module, "patiently", patiently)
    return met


def test_a_full_disk_is_reported_rolls_back_the_block_and_later_writes_succeed(database: Database) -> None:
    write(database)
    database.connection.execute("PRAGMA max_page_count = 10")
    with pytest.raises(StoreFull, match=r"disk that holds .*orders.db is full"):
        write(database, "x" * 100_000)
    insert = "INSERT INTO note (text) VALUES ('small'); INSERT INTO note (text) VALUES (zeroblob(100000))"
    with pytest.raises(StoreFull), database.writing():
        database.connection.execute(insert)
    assert count(database) == 1
    write(database)
    assert count(database) == 2


def test_a_damaged_page_is_reported(path: Path) -> None:
    database = opened(path)
    write(database, "x" * 100_000)
    database.close()
    content = bytearray(path.read_bytes())
    content[4096:] = os.urandom(len(content) - 4096)
    path.write_bytes(content)
    damaged = opened(path)
    with pytest.raises(StoreDamaged, match=r"orders.db is damaged.*backup"), damaged.reading():
        damaged.connection.execute("SELECT * FROM note").fetchall()
    with pytest.raises(StoreDamaged):
        write(damaged)
    damaged.close()


def test_open_statements_of_a_failed_call_do_not_keep_an_old_snapshot(database: Database) -> None:
    """While an exception propagates, the frames that it has left keep their statements open."""
    for text in ("1", "2", "3"):
        write(database, text)
    rows = []
    with suppress(ZeroDivisionError), database.reading():
        rows.append(database.connection.execute("SELECT text FROM note"))
        next(rows[0])
        raise ZeroDivisionError
    with closing(database.again()) as other:
        write(other)
    assert count(database) == 4
    write(database)
    assert count(database) == 5


@pytest.mark.parametrize("replace", [False, True])
def test_a_file_that_was_deleted_or_replaced_is_noticed(database: Database, path: Path, replace: bool) -> None:
    path.unlink()
    if replace:
        path.touch()
    for call in (write, count):
        with pytest.raises(StoreError, match=r"orders.db was deleted or replaced"):
            call(database)


def test_a_deleted_file_is_looked_for_at_most_once_per_interval_and_stays_an_error(
    database: Database, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 0.0
    monkeypatch.setattr(database_module, "monotonic", lambda: now)
    write(database)
    path.unlink()
    now += database_module.LOOK_SECONDS / 2
    write(database)
    count(database)
    now += database_module.LOOK_SECONDS
    for _ in range(3):  # once noticed, it stays an error
        with pytest.raises(StoreError, match=r"orders.db was deleted or replaced"):
            write(database)


def test_calls_on_a_closed_database_raise_connection_closed(database: Database) -> None:
    database.close()
    database.close()
    for call in (write, count, Database.tidy_log, lambda closed: closed.shared.bell, lambda closed: closed.sync(0)):
        with pytest.raises(ConnectionClosed):
            call(database)


def test_a_commit_does_not_sync_and_a_sync_syncs_the_log_once(database: Database, path: Path, syncs: list[int]) -> None:
    ticket = write(database)
    assert not syncs
    database.sync(ticket)
    database.sync(ticket)
    assert [os.fstat(one).st_ino for one in syncs] == [Path(f"{path}-wal").stat().st_ino]


def test_a_sync_that_failed_is_not_tried_again(database: Database, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(descriptor: int) -> None:
        raise OSError(5, "Input/output error")

    ticket = write(database)
    with monkeypatch.context() as patched:
        patched.setattr(log_module, "sync_data", fail)
        with pytest.raises(StoreError, match="could not be synced to disk: Input/output error"):
            database.sync(ticket)
    with pytest.raises(StoreError, match="an earlier sync to disk failed"):
        database.sync(ticket)
    database.close()
    again = opened(path)
    again.sync(write(again))
    again.close()


def test_a_sync_after_the_removal_of_the_log_raises_an_error(
    database: Database, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    database.sync(write(database))
    Path(f"{path}-wal").unlink()
    monkeypatch.setattr(database_module, "LOOK_SECONDS", 0.0)
    ticket = write(database)
    with pytest.raises(StoreError, match=r"orders.db-wal could not be synced"):
        database.sync(ticket)


def tidy_at(database: Database, pages: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes this number of pages long for a log."""
    monkeypatch.setattr(log_module, "LONG_PAGES", pages)
    database.log.note_length(database.connection, "main", 0)


def test_the_log_is_restarted_when_it_is_long(database: Database, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tidy_at(database, 20, monkeypatch)
    for _ in range(200):
        write(database)
        database.tidy_log()
    assert Path(f"{path}-wal").stat().st_size < 40 * 4200


def test_a_long_read_prevents_the_restart_of_the_log_but_blocks_no_write(
    database: Database, monkeypatch: pytest.MonkeyPatch, peer: Child
) -> None:
    tidy_at(database, 20, monkeypatch)
    peer.run("r = database.reading(); r.__enter__()")
    for _ in range(100):
        write(database)
        database.tidy_log()
    assert peer.ask("database.connection.execute('SELECT count(*) FROM note').get") == 0
    peer.run("r.__exit__(None, None, None)")
    for _ in range(30):
        write(database)
        database.tidy_log()
    assert database.log._pages < 30


def test_only_one_process_at_a_time_tidies_the_log(
    database: Database, monkeypatch: pytest.MonkeyPatch, peer: Child
) -> None:
    tidy_at(database, 1, monkeypatch)
    peer.run("database._coordination.take(coordination.TIDYING)")
    write(database)
    database.tidy_log()
    assert database.log._pages, "it passed by"


def test_a_sync_during_which_the_store_is_closed_raises_connection_closed(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Daemon threads may be in a sync when the interpreter ends."""
    monkeypatch.setattr(log_module, "sync_data", lambda _: database.close())
    with pytest.raises(ConnectionClosed):
        database.sync(write(database))


Act = Callable[[QueueManager], object]
LASTING, LIGHT = (Message(b"x", persistent=persistent) for persistent in (True, False))


def in_turn(*acts: Act) -> Act:
    def act(qm: QueueManager) -> None:
        for one in acts:
            one(qm)

    return act


def in_unit(*acts: Act) -> Act:
    def act(qm: QueueManager) -> None:
        with qm.unit_of_work() as block:
            for one in acts:
                one(qm)
            block.commit()

    return act


def put(qm: QueueManager) -> object:
    return qm.put("Q", LASTING)


def get(qm: QueueManager) -> object:
    return qm.get("Q")


PREPARED: list[Act] = [lambda qm: qm.put("Q", LIGHT, syncpoint=True), lambda qm: qm.prepare("u")]
# An act, and the number of syncs that it must make.
PROMISES: dict[str, tuple[Act, int]] = {
    "a put": (put, 1),
    "a put of many": (lambda qm: qm.put_many("Q", [b"1", b"2", b"3"]), 1),
    "a put that is not persistent": (lambda qm: qm.put("Q", LIGHT), 0),
    "a get": (get, 1),
    "a get of many": (lambda qm: qm.get_many("Q", 3), 1),
    "a get of what is not persistent": (lambda qm: qm.get("LIGHT"), 0),
    "a browse": (lambda qm: list(qm.browse("Q")), 0),
    "a commit of a put": (in_unit(put), 1),
    "a commit of many": (in_unit(put, get, put, get), 1),
    "a commit of what is not persistent": (in_unit(lambda qm: qm.put("Q", LIGHT), lambda qm: qm.get("LIGHT")), 0),
    "a commit of nothing": (in_unit(), 0),
    "a put under a confirm id": (lambda qm: qm.put("Q", LIGHT, confirm_id=7), 1),
    "a get under a confirm id": (lambda qm: qm.get("LIGHT", confirm_id=7), 1),
    "an undo": (in_turn(lambda qm: qm.get("Q", confirm_id=7), lambda qm: qm.undo("Q", 7)), 2),
    "a lock": (lambda qm: qm.browse_and_lock("LIGHT"), 1),
    "a lock on nothing": (lambda qm: qm.browse_and_lock("EMPTY"), 0),
    "a get with a lock id": (lambda qm: qm.get("LIGHT", lock_id=qm.browse_and_lock("LIGHT").lock_id), 2),
    "a release": (lambda qm: qm.admin.release_lock("Q", qm.browse_and_lock("Q").lock_id), 2),
    "a prepare": (in_turn(*PREPARED), 1),
    "a settlement": (in_turn(*PREPARED, lambda qm: qm.settle("u", "commit")), 2),
    "a change of a definition": (lambda qm: qm.alter_queue("Q", max_depth=100), 1),
    "the end of a queue": (in_turn(lambda qm: qm.close_queue("EMPTY"), lambda qm: qm.delete_queue("EMPTY")), 1),
    "a definition": (lambda qm: qm.create_queue("NEW"), 1),
}


@pytest.fixture
def filled(qm: QueueManager) -> QueueManager:
    """Messages on two queues; all numbers that the test needs are reserved."""
    qm.create_queue("LIGHT")
    qm.create_queue("EMPTY")
    for queue, message in {"Q": LASTING, "LIGHT": LIGHT, "EMPTY": LASTING}.items():
        qm.put_many(queue, [message] * 5)
    qm.get_many("EMPTY", 5)
    return qm


@pytest.mark.parametrize("what", PROMISES)
def test_each_act_makes_exactly_the_expected_number_of_syncs(filled: QueueManager, syncs: list[int], what: str) -> None:
    act, expected = PROMISES[what]
    syncs.clear()
    act(filled)
    assert len(syncs) == expected
