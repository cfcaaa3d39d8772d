"""Leases over processes: who dies, whoever shows the token, and kills in the middle of the end."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.helpers.support import bodies, until
from tests.stores.sqlite.programs import FOREVER, programs
from tests.tiers import gate, nightly

import inorder
from inorder import QueueManager
from inorder.testing import ManualClock

pytestmark = gate


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


def test_of_two_that_settle_at_once_one_does_and_the_other_is_refused(qm: QueueManager, path: Path) -> None:
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
def test_a_kill_in_the_middle_of_the_end_of_a_lease_ends_it_once_or_not_yet(path: Path, point: str) -> None:
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
