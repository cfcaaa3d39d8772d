"""Connections of several processes: stop, fork, threads, the end of the interpreter, bad files, other programs."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
from tests.helpers.support import bodies, waiting
from tests.stores.sqlite.programs import Program, programs
from tests.tiers import gate

import inorder
from inorder import QueueManager
from inorder.errors import QueueManagerStopping, StoreError
from inorder.stores.sqlite import SqliteStore, database, watch
from inorder.testing import ManualClock

pytestmark = gate


def test_stop_ends_waits_and_later_calls_of_all_processes(path: Path, qm: QueueManager) -> None:
    with programs(path, 2) as [one, other]:
        one.run("wait = Waiting(qm, lambda: qm.get('Q', wait=600))")
        call = waiting(qm, lambda: qm.get("Q", wait=600))
        other.run("qm.admin.stop()")
        assert isinstance(call.error(), QueueManagerStopping)
        assert one.ask("wait.end()") == "QueueManagerStopping"
        for each in (one, other):
            assert each.ask("error_of(lambda: qm.put('Q', b'1'))") == "QueueManagerStopping"
            assert each.ask("error_of(lambda: inorder.connect(path))") == "QueueManagerStopping"
            each.run("qm.close()")
        with pytest.raises(QueueManagerStopping):
            qm.get("Q")
        qm.close()
        with inorder.connect(path) as again:
            again.put("Q", b"after")
            assert one.ask("inorder.connect(path).get('Q').body") == b"after"


def test_the_normal_exit_of_a_forked_child_leaves_the_parents_unit_alone(child: Program, qm: QueueManager) -> None:
    child.run("qm.put('Q', b'1', syncpoint=True); import multiprocessing, atexit")
    child.run("def full_end(code): atexit._run_exitfuncs(); os._exit(code)")
    child.run("forked(lambda: None, full_end); forked(lambda: repr(inorder.connect(path).put('Q', b'2')), full_end)")
    child.run("multiprocessing.current_process()._config['daemon'] = False")
    child.run("one = multiprocessing.get_context('fork').Process(target=lambda: None); one.start(); one.join()")
    assert child.ask("one.exitcode") == 0
    assert [unit.puts for unit in qm.inspect.units()] == [1]
    child.run("qm.commit()")
    assert qm.depth("Q") == 2


def test_a_fork_beside_a_thread_that_connects_does_not_hang_the_child(child: Program) -> None:
    depth = child.run(
        "from inorder.client import services\n"
        "held, go_on = threading.Event(), threading.Event()\n"
        "def hold():\n"
        "    with services._making: held.set(); go_on.wait()\n"
        "thread = threading.Thread(target=hold); thread.start(); held.wait()\n"
        "answer = forked(lambda: inorder.connect(path).depth('Q')); go_on.set(); thread.join()\n"
    )
    assert depth == 0


def test_a_fork_while_a_call_waits_blocks_neither_process(child: Program, qm: QueueManager) -> None:
    child.run("wait = Waiting(qm, lambda: qm.get('Q', wait=600))")
    assert child.ask("forked(lambda: inorder.connect(path).depth('Q'))") == 0
    qm.put("Q", b"1")
    assert child.ask("wait.end()") == b"1"


ENDS = {
    "without close": "",
    "in another thread's wait": (
        "own = qm.connect()\n"
        "def wait():\n"
        "    try: own.get('Q', wait=600, match=inorder.Match(correlation_id=b'none'))\n"
        "    except inorder.InorderError: pass\n"
        "threading.Thread(target=wait, daemon=True).start()\n"
        "room = own._services.store.waiting\n"
        "room.watch_until(lambda: room.is_asleep(own.internals.owner))"
    ),
    "with an iterator left open": "messages = qm.browse('Q'); next(messages)",
}


@pytest.mark.parametrize("how", ENDS)
def test_an_interpreter_that_ends_backs_out_its_unit_and_closes_the_files(path: Path, how: str) -> None:
    code = (
        f"import sys, threading, inorder\nqm = inorder.connect({str(path)!r})\n"
        "qm.create_queue('Q'); qm.put('Q', b'there'); qm.put('Q', b'never', syncpoint=True)\n"
        "qm.get('Q', syncpoint=True); qm.connect().put('Q', b'also')\n" + ENDS[how]
    )
    done = subprocess.run([sys.executable, "-c", code], timeout=240, check=False, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert sorted(file.name for file in path.parent.iterdir()) == ["orders.db", "orders.db-lock"]
    with sqlite3.connect(path) as outside:
        assert outside.execute("SELECT count(*) FROM unit").fetchone() == (0,)
        assert outside.execute("SELECT count(*) FROM process").fetchone() == (0,)
    outside.close()
    with inorder.connect(path) as manager:
        assert bodies(manager) == [b"there", b"also"]


def test_an_outside_checkpoint_loses_nothing(path: Path, qm: QueueManager, child: Program) -> None:
    outside = sqlite3.connect(path)
    for number in range(3):
        qm.put("Q", b"%d" % number)
        outside.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        child.run(f"qm.put('Q', b'{number}')")
    outside.close()
    assert bodies(qm) == [b"0", b"0", b"1", b"1", b"2", b"2"]


def test_calls_on_a_file_that_was_deleted_while_open_raise_an_error(
    path: Path, qm: QueueManager, child: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database, "LOOK_SECONDS", 0.0)
    child.run("from inorder.stores.sqlite import database; database.LOOK_SECONDS = 0.0")
    path.unlink()
    for call in (lambda: qm.put("Q", b"1"), lambda: qm.get("Q"), lambda: qm.get("Q", wait=600), qm.queues):
        with pytest.raises(StoreError, match="deleted or replaced"):
            call()
    assert child.ask("error_of(lambda: qm.put('Q', b'1'))") == "StoreError"
    assert child.ask("error_of(qm.close)") == "StoreError"
    with pytest.raises(StoreError):
        qm.close()
    with inorder.connect(path) as fresh:
        assert fresh.queues() == []
        assert child.ask("inorder.connect(path).queues()") == []


def test_a_store_restored_under_a_running_program_works_for_programs_that_connect_later(
    path: Path, qm: QueueManager, child: Program
) -> None:
    """A running program has a number that the backup has yet to give; its syncs must not count for the others."""
    backup = path.with_name("backup.db")
    qm.admin.backup(backup)
    child.run("qm.close(); qm = inorder.connect(path)")  # now its number is not in the backup
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


def test_a_process_number_that_is_still_in_use_is_skipped(path: Path, qm: QueueManager, clock: ManualClock) -> None:
    """A store that was replaced by its copy gives numbers again; a program that has one may not have noticed yet."""
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
    call = waiting(other, lambda: other.get("Q", wait=600))
    path.unlink()
    assert isinstance(call.error(), StoreError)
    for each in (other, qm):
        with pytest.raises(StoreError):
            each.close()
