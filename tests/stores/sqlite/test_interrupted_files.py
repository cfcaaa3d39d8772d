"""An exception from outside in the middle of work on the store's files: nothing is forgotten, and nobody is shut out.

A time-out of the caller's is a `TimeoutError`, which is an error of the system, too.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.helpers.support import bodies, waiting
from tests.stores.sqlite.inside import opened
from tests.stores.sqlite.programs import Child

import inorder
from inorder import QueueManager
from inorder.errors import StoreError
from inorder.rules.puts import Program
from inorder.stores.seam.changes import Changes, Death, Happened
from inorder.stores.sqlite import coordination, database, log

Planted = Callable[[Any, str, BaseException], list[None]]


@pytest.fixture
def planted(monkeypatch: pytest.MonkeyPatch) -> Planted:
    """The first call of a function raises this, and does nothing else; the list has an item then."""

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


def test_a_time_out_during_a_sync_is_no_failure_of_the_disk(qm: QueueManager, planted: Planted) -> None:
    assert not planted(log, "sync_data", TimeoutError())
    with pytest.raises(TimeoutError):
        qm.put("Q", b"1")
    qm.put("Q", b"2")
    assert bodies(qm) == [b"1", b"2"]


def test_a_sync_that_failed_elsewhere_promises_nothing(qm: QueueManager, monkeypatch: pytest.MonkeyPatch) -> None:
    store: Any = qm._store
    shared = store.database._coordination
    monkeypatch.setattr(log, "sync_data", lambda _: shared.words.__setitem__(coordination.SYNC_FAILED, 1))
    with pytest.raises(StoreError, match="an earlier sync to disk failed"):
        qm.put("Q", b"1")


def test_a_close_that_is_interrupted_is_finished(path: Path, planted: Planted, peer: Child) -> None:
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


def test_a_fork_whose_preparation_is_interrupted_shuts_nobody_out(peer: Child) -> None:
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
    assert peer.ask("count(database)") == 0


def test_who_is_to_be_woken_is_woken_by_the_next() -> None:
    """A listener of ours raises nothing: what it raises came from outside, and it is told again."""
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


def test_what_was_seen_of_queues_goes_with_the_last_wait(qm: QueueManager) -> None:
    qm.create_queue("R")
    with qm.connect() as other:
        call = waiting(other, lambda: other.get("R", wait=60).body)
        for _ in range(20):
            with pytest.raises(inorder.NoMessageAvailable):
                qm.get("Q", wait=0.001)
        qm.put("R", b"1")
        assert call.result() == b"1"
        store: Any = qm._store
        seen = store.host.watch._seen
        assert (seen.queues, seen.numbers) == ({}, {})


def test_a_backup_leaves_the_reserve_as_it_is(qm: QueueManager, path: Path) -> None:
    for _ in range(20):
        qm.put("Q", os.urandom(200_000))
    before = Path(f"{path}-lock").stat().st_size
    qm.admin.backup(path.with_name("copy.db"))
    assert Path(f"{path}-lock").stat().st_size == before > 3 << 20
