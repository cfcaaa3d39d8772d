"""Dead processes: what they held is freed before any call is refused because of it; named units stay."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from tests.helpers.support import bodies, until, waiting
from tests.stores.sqlite.programs import FOREVER, Program, programs
from tests.tiers import gate, nightly

import inorder
from inorder import QueueManager
from inorder.errors import (
    DuplicateMessage,
    DuplicatePending,
    NoMessageAvailable,
    ObjectInUse,
    OrderPending,
    QueueDeleted,
    QueueFull,
    UnknownQueue,
)
from inorder.stores.sqlite import watch
from inorder.testing import ManualClock

pytestmark = gate


def test_the_next_process_finds_the_unit_of_the_dead_last_process_backed_out(path: Path) -> None:
    with programs(path, 1) as [first]:
        first.run("qm.create_queue('Q'); qm.put('Q', b'there'); qm.get('Q', syncpoint=True)")
    with inorder.connect(path) as manager:
        assert [(one.body, one.backout_count) for one in manager.browse("Q")] == [(b"there", 1)]
        assert manager.inspect.units() == []


def unmarked(qm: QueueManager) -> bytes:
    with qm.open("Q", browse=True, co_op=True) as queue:
        return queue.browse_first(unmarked=True).body


def with_its_backouts(qm: QueueManager) -> tuple[bytes, int]:
    message = qm.get("Q")
    return message.body, message.backout_count


# The act of another process, the call that is refused while it lives, the error, and the result when it is dead.
Held = tuple[str, Callable[[QueueManager], object], type[inorder.InorderError], object]
HELD: dict[str, Held] = {
    "a get": ("qm.put('Q', b'1'); qm.get('Q', syncpoint=True)", with_its_backouts, NoMessageAvailable, (b"1", 1)),
    "a get behind what is locked": (
        "qm.put('Q', b'1'); handle = qm.open('Q', browse=True); handle.browse_first(lock=True)",
        lambda qm: qm.get("Q").body,
        NoMessageAvailable,
        b"1",
    ),
    "a strict get": (
        "qm.put('Q', b'1', syncpoint=True); other = qm.connect(); other.put('Q', b'2')",
        lambda qm: qm.get("Q", read_order="strict").body,
        OrderPending,
        b"2",
    ),
    "a strict get behind half a group": (
        "with qm.group('Q') as group: group.put(b'1'); group.put(b'2')\n"
        "handle = qm.open('Q', input='shared'); handle.get(logical=True); qm.put('Q', b'behind')",
        lambda qm: qm.get("Q", logical=True, read_order="strict").body,
        OrderPending,
        b"behind",
    ),
    "a browse of what is not marked": (
        "qm.put('Q', b'1'); handle = qm.open('Q', browse=True, co_op=True); handle.browse_first(mark_co_op=True)",
        unmarked,
        NoMessageAvailable,
        b"1",
    ),
    "an open": (
        "handle = qm.open('Q', input='exclusive')",
        lambda qm: qm.open("Q", input="exclusive").close(),
        ObjectInUse,
        None,
    ),
    "a delete": ("handle = qm.open('Q', output=True)", lambda qm: qm.delete_queue("Q"), ObjectInUse, None),
    "an alter of the order": (
        "qm.put('Q', b'1', syncpoint=True)",
        lambda qm: qm.alter_queue("Q", order="commit"),
        ObjectInUse,
        None,
    ),
    "a put under a key": (
        "qm.put('Q', b'theirs', deduplicate='k', syncpoint=True)",
        lambda qm: (qm.put("Q", b"ours", deduplicate="k").duplicate_of, bodies(qm)),
        DuplicatePending,
        (None, [b"ours"]),
    ),
    "a put on a full queue": (
        "qm.alter_queue('Q', max_depth=1); qm.put('Q', b'never', syncpoint=True)",
        lambda qm: (qm.put("Q", b"1"), bodies(qm))[1],
        QueueFull,
        [b"1"],
    ),
}


@pytest.mark.parametrize("what", HELD)
def test_a_call_is_refused_only_while_the_process_that_blocks_it_lives(
    qm: QueueManager, child: Program, what: str
) -> None:
    code, call, error, brings = HELD[what]
    child.run(code)
    with pytest.raises(error):
        call(qm)
    child.kill()
    assert call(qm) == brings


def test_a_repeated_put_is_refused_only_while_the_process_of_the_first_put_lives(
    qm: QueueManager, child: Program
) -> None:
    """If it were refused as a repeat of a put that is then backed out, the message would be lost."""
    again = child.ask("qm.put('Q', b'1', syncpoint=True).uid")
    with pytest.raises(DuplicateMessage):
        qm.put("Q", b"1", uid=again)
    child.kill()
    qm.put("Q", b"1", uid=again)
    assert bodies(qm) == [b"1"]


def test_a_delete_is_refused_only_while_the_process_that_holds_the_message_lives(
    qm: QueueManager, child: Program
) -> None:
    uid = qm.put("Q", b"1").uid
    child.run("qm.get('Q', syncpoint=True)")
    with pytest.raises(inorder.InorderError):
        qm.delete("Q", uid)
    child.kill()
    qm.delete("Q", uid)
    assert qm.depth("Q") == 0


@pytest.fixture
def sooner(monkeypatch: pytest.MonkeyPatch) -> None:
    """While calls of this process wait, it looks for dead processes more often than once a second."""
    monkeypatch.setattr(watch, "DEAD_CHECK_SECONDS", 0.05)


@pytest.mark.usefixtures("sooner")
def test_a_waiting_call_gets_the_message_of_a_dead_reader(qm: QueueManager, child: Program) -> None:
    child.run("qm.put('Q', b'1'); qm.get('Q', syncpoint=True)")
    call = waiting(qm, lambda: qm.get("Q", wait=FOREVER))
    child.kill()
    assert call.result().backout_count == 1


def test_two_processes_that_notice_one_death_at_once_agree(path: Path) -> None:
    with programs(path, 3) as [dying, one, other]:
        dying.run("qm.create_queue('Q'); qm.put('Q', b'1'); qm.get('Q', syncpoint=True)")
        dying.kill()
        for each in (one, other):
            each.begin("answer = body_or_error(lambda: qm.get('Q'))")
        assert sorted([one.answer(), other.answer()], key=str) == ["NoMessageAvailable", b"1"]


def test_confirm_ids_lock_ids_and_prepared_units_outlive_a_killed_process(qm: QueueManager, child: Program) -> None:
    child.run("qm.put('Q', b'locked'); lock = qm.browse_and_lock('Q').lock_id")
    lock_id = child.ask("lock")
    child.run("qm.put('Q', b'held', confirm_id=7); qm.put('Q', b'prepared', syncpoint=True); qm.prepare('P')")
    child.run("qm.put('Q', b'got'); qm.get('Q', confirm_id=8)")
    child.kill()
    with pytest.raises(NoMessageAvailable):
        qm.get("Q")
    assert sorted(unit.kind for unit in qm.inspect.units()) == ["confirm", "confirm", "lock", "prepared"]
    qm.settle("P", "commit")
    assert (qm.admin.release_lock("Q", lock_id), qm.undo("Q", 7), qm.undo("Q", 8)) == (1, 1, 1)
    assert sorted(bodies(qm)) == [b"got", b"locked", b"prepared"]


def test_a_temporary_queue_is_deleted_when_its_creator_is_found_dead(qm: QueueManager, child: Program) -> None:
    qm.create_queue("MODEL", type="model", shareable=True, default_input="shared")
    name = child.ask("(handle := qm.open('MODEL', input='shared', output=True)).name")
    other = qm.open(name, input="shared", output=True)
    other.put(b"1")
    child.kill()
    assert other.get().body == b"1"  # nothing has looked for dead processes yet
    with pytest.raises(QueueDeleted):
        other.get()
    with pytest.raises(QueueDeleted):
        other.put(b"2")
    other.close()
    with pytest.raises(UnknownQueue):
        qm.open(name, output=True)


def test_a_lease_outlives_the_process_that_began_it_and_ends_at_its_deadline(qm: QueueManager, path: Path) -> None:
    qm.put_many("Q", [b"1", b"2"])
    with programs(path, 2) as [first, second]:
        first.run("lease = qm.lease(seconds=60)")
        token = first.ask("lease.token")
        first.run("lease.__enter__(); qm.get('Q'); qm.put('Q', b'3')")
        first.kill()
        assert bodies(qm) == [b"2"], "the death of a process ends no lease"
        second.run(f"lease = qm.resume_lease({token!r}); lease.__enter__(); qm.put('Q', b'4'); lease.extend(0.2)")
        assert qm.get("Q", wait=FOREVER, read_order="strict").body == b"1", "who waits is given what the deadline frees"
    assert (bodies(qm), qm.inspect.units(), qm.admin.check()) == ([b"2"], [], [])


def test_one_of_two_processes_that_settle_a_lease_at_once_is_refused(qm: QueueManager, path: Path) -> None:
    settle = "\ntry:\n lease.{}(); answer = 'done'\nexcept inorder.errors.LeaseOver:\n answer = 'over'"
    with programs(path, 2) as [first, second]:
        for number in range(5):
            lease = qm.lease(seconds=60)
            with lease:
                qm.put("Q", b"1")
            for one in (first, second):
                one.run(f"lease = qm.resume_lease({lease.token!r})")
            first.begin(settle.format("commit"))
            second.begin(settle.format("back_out"))
            answers = [first.answer(), second.answer()]
            assert sorted(answers) == ["done", "over"], number
            assert qm.depth("Q") == (answers[0] == "done")
            qm.admin.clear_queue("Q")
    assert (qm.inspect.units(), qm.admin.check()) == ([], [])


@pytest.mark.parametrize(
    "point", ["committed", *(pytest.param(one, marks=nightly) for one in ("lease-over", "written", "before-sync"))]
)
def test_a_kill_while_a_lease_ends_leaves_it_ended_completely_or_not_at_all(path: Path, point: str) -> None:
    clock = ManualClock(path=path.with_suffix(".clock"))
    opened = f"""
from inorder.stores.sqlite import SqliteStore
from inorder.stores.engine import points
from inorder.testing import ManualClock
qm.close()
store = SqliteStore({str(path)!r}, clock=ManualClock(path={str(path.with_suffix(".clock"))!r}))
qm = inorder.connect(store, program='child')
"""
    killed = f"""
import os, signal
points.reached = lambda name: os.kill(os.getpid(), signal.SIGKILL) if name == {point!r} else None
qm.admin.discard_expired()
"""
    with inorder.connect(path) as first:
        first.create_queue("Q")
    with programs(path, 2) as [holder, killer]:
        for one in (holder, killer):
            one.run(opened)
        holder.run("qm.put_many('Q', [b'1', b'2']); lease = qm.lease(seconds=30)")
        holder.run("lease.__enter__(); qm.get('Q'); qm.put('Q', b'3')")
        clock.advance(30)
        killer.begin(killed)
        until(lambda: not killer.process.is_alive(), "the kill")
        found = holder.ask("[one.body for one in qm.browse('Q')]")
        assert found in ([b"2"], [b"1", b"2"]), "all that the lease held, or nothing of it, is back"
        holder.run("qm.admin.discard_expired()")
        assert holder.ask("[one.body for one in qm.browse('Q')]") == [b"1", b"2"]
        assert holder.ask("(qm.inspect.units(), qm.admin.check())") == ([], [])
        assert holder.ask("error_of(lambda: qm.put('Q', b'4'))") == "LeaseOver"
