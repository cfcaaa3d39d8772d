"""An operator's view of other processes: who they are, what they hold and wait for; dead ones hold nothing."""

from __future__ import annotations

import os
import time
from pathlib import Path

from tests.helpers.support import waiting
from tests.stores.sqlite.programs import FOREVER, Program

from inorder import QueueManager, Reason, connect
from inorder.stores.sqlite import SqliteStore
from inorder.testing import ManualClock


def test_units_locks_and_messages_name_the_process(qm: QueueManager, child: Program) -> None:
    child.run("qm.put('Q', b'1'); qm.put('Q', b'2', syncpoint=True); handle = qm.open('Q', browse=True)")
    child.run("handle.browse_first(lock=True)")
    [unit], [lock] = qm.inspect.units(), qm.inspect.locks()
    assert (unit.program.name, unit.process, unit.queues) == ("child 0", child.process.pid, ("Q",))
    assert (lock.kind, lock.program.name, lock.process) == ("handle", "child 0", child.process.pid)
    assert [one.holder and one.holder.process for one in qm.inspect.look("Q")] == [child.process.pid] * 2
    found = child.ask("(qm.inspect.units()[0].process, qm.inspect.locks()[0].process)")
    assert found == (child.process.pid, child.process.pid)


def test_messages_of_a_dead_process_are_not_shown_as_held(qm: QueueManager, child: Program) -> None:
    child.run("qm.put('Q', b'1'); qm.get('Q', syncpoint=True); qm.put('Q', b'2', syncpoint=True)")
    assert [one.state for one in qm.inspect.look("Q")] == ["got", "put"]
    child.kill()
    assert [(one.message.body, one.state, one.message.backout_count) for one in qm.inspect.look("Q")] == [
        (b"1", "available", 1)
    ]
    [view] = qm.inspect.overview()
    assert (view.depth, view.arrived, view.puts, view.gets) == (1, 2, 0, 0)


def test_connections_are_listed_with_process_and_start_time_but_without_dead_processes(
    qm: QueueManager, child: Program
) -> None:
    before = time.time()
    other = Program(child.ask("path"), "second")
    assert other.process.pid is not None
    try:
        other.answer()
        other.run("handle = qm.open('Q', input='exclusive'); qm.put('Q', b'1')")
        theirs = {one.program.name: one for one in qm.inspect.connections()}
        seen = theirs["second"]
        assert (seen.process, seen.host) == (other.process.pid, "")
        assert [one.uses for one in seen.opened] == ["get exclusive", "put"]
        assert {name: one.process for name, one in theirs.items()}["child 0"] == child.process.pid
        assert seen.since is not None
        assert before - 60 <= seen.since <= time.time() + 60, "it began between these looks, if no clock was set"
        assert child.ask("sorted((one.program.name, one.process) for one in qm.inspect.connections())") == sorted(
            (name, one.process) for name, one in theirs.items()
        )
    finally:
        other.kill()
    assert "second" not in [one.program.name for one in qm.inspect.connections()]
    with qm.open("Q", input="exclusive"):
        assert qm.inspect.overview()[0].open_input_count == 1, "the handle of the dead process is gone"


def test_the_oldest_message_may_have_the_higher_number(path: Path) -> None:
    """Each process reserves its own numbers for its puts."""
    clock = ManualClock(1000.0)
    stores = [SqliteStore(path, clock=clock) for _ in range(2)]
    first, second = (connect(store) for store in stores)
    first.create_queue("R")
    second.put("R", b"older", syncpoint=True)
    clock.advance(60.0)
    first.put("R", b"newer", syncpoint=True)
    assert [view.oldest_put_at for view in first.inspect.overview() if view.name == "R"] == [1000.0]
    for store in stores:
        store.close_store()


def test_processes_that_put_in_turns_soon_put_at_the_end_of_the_table(path: Path) -> None:
    """Only then does SQLite fill its pages in order, instead of splitting one every few rows."""
    stores = [SqliteStore(path) for _ in range(2)]
    first, second = (connect(store) for store in stores)
    first.create_queue("R")
    told = [qm.put("R", b"x").uid for _ in range(150) for qm in (first, second)]
    assert told[:100] != sorted(told[:100]), "each process had numbers ahead, and uses them up"
    assert told[200:] == sorted(told[200:])
    alone = [first.put("R", b"x").uid.number for _ in range(300)]
    assert alone[0] == told[-1].number + 1
    assert second.put("R", b"x").uid.number > alone[-1] + 1, "a process that puts alone draws many at once again"
    for store in stores:
        store.close_store()


def test_a_wait_names_its_process_and_what_it_waits_for(qm: QueueManager, child: Program) -> None:
    child.run("qm.put('Q', b'1', syncpoint=True)")
    call = waiting(qm, lambda: qm.get("Q", wait=FOREVER, read_order="strict"))
    [wait] = child.ask("[(it.process, it.pending.kind.value, it.pending.by, it.withheld) for it in qm.inspect.waits()]")
    assert wait == (os.getpid(), "in", "child 0", False)
    child.run("qm.commit()")
    assert call.result().body == b"1"


def test_inspecting_a_store_writes_nothing(path: Path, store: SqliteStore, clock: ManualClock) -> None:
    with connect(store) as qm:
        qm.create_queue("Q")
        qm.put("Q", b"1", expiry=1.0)
        qm.put("Q", b"2", delay=1.0)
        log = path.with_name(path.name + "-wal")
        before = log.stat()
        for _ in range(2):
            assert qm.inspect.overview()[0].depth == 2
            list(qm.inspect.look("Q"))
            (
                qm.inspect.locks(),
                qm.inspect.waits(),
                qm.inspect.connections(),
                qm.inspect.gaps("Q", b"G"),
                qm.admin.check(),
            )
            clock.advance(2.0)
        assert (log.stat().st_size, log.stat().st_mtime_ns) == (before.st_size, before.st_mtime_ns)


def test_a_definition_by_another_process_applies_from_the_next_call_on_an_open_queue(
    qm: QueueManager, child: Program
) -> None:
    """Even if it is not the queue itself: calls use aliases, remote definitions and the queue manager."""

    def replies_to() -> str:
        child.run("qm.put('A', inorder.Message(b'x', reply_to_queue='ANSWERS'))")
        return qm.get("Q").reply_to_queue

    child.run("qm.create_queue('A', type='alias', base_queue='Q')")
    assert replies_to() == "ANSWERS"
    qm.create_queue("ANSWERS", type="remote", remote_queue="THERE", remote_manager="QM2")
    assert replies_to() == "THERE"
    qm.alter_queue("ANSWERS", remote_queue="ELSEWHERE")
    assert replies_to() == "ELSEWHERE"
    qm.delete_queue("ANSWERS")
    assert replies_to() == "ANSWERS"
    refused = (
        "answer = None\ntry: qm.put('{}', b'x' * 40_000)\nexcept inorder.InorderError as e: answer = int(e.reason)"
    )
    qm.alter_queue("Q", max_length=10)
    assert child.run(refused.format("Q")) == Reason.MSG_TOO_BIG_FOR_Q
    qm.alter_queue("A", put_allowed=False)
    assert child.run(refused.format("A")) == Reason.PUT_INHIBITED
    qm.alter_queue("Q", put_allowed=True, max_length=50_000)
    assert child.run(refused.format("Q")) is None
    qm.admin.alter_manager(max_length=32_768)
    assert child.run(refused.format("Q")) == Reason.MSG_TOO_BIG_FOR_Q_MGR
