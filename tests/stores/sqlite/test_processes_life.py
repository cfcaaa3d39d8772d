"""The life of connections among processes: stop, fork, threads, and the end of the interpreter."""

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
from inorder.errors import QueueManagerStopping

pytestmark = gate


def test_stop_ends_waits_and_later_calls_of_all_processes(path: Path, qm: QueueManager) -> None:
    with programs(path, 2) as [one, other]:
        one.run("wait = Waiting(qm, lambda: qm.get('Q', wait=60))")
        call = waiting(qm, lambda: qm.get("Q", wait=60))
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


def test_a_forked_child_that_ends_as_they_do_leaves_the_parents_unit_alone(child: Program, qm: QueueManager) -> None:
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
    child.run(
        "from inorder.client import services\n"
        "held, go_on = threading.Event(), threading.Event()\n"
        "def hold():\n"
        "    with services._making: held.set(); go_on.wait()\n"
        "thread = threading.Thread(target=hold); thread.start(); held.wait()\n"
        "answer = forked(lambda: inorder.connect(path).depth('Q')); go_on.set(); thread.join()\n"
    )
    assert child.ask("answer or 0") == 0


def test_a_fork_while_a_call_waits_lets_both_go_on(child: Program, qm: QueueManager) -> None:
    child.run("wait = Waiting(qm, lambda: qm.get('Q', wait=60))")
    assert child.ask("forked(lambda: inorder.connect(path).depth('Q'))") == 0
    qm.put("Q", b"1")
    assert child.ask("wait.end()") == b"1"


ENDS = {
    "without close": "",
    "in another thread's wait": (
        "own = qm.connect()\n"
        "def wait():\n"
        "    try: own.get('Q', wait=60, match=inorder.Match(correlation_id=b'none'))\n"
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
