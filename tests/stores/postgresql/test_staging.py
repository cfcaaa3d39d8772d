"""Stagings of several programs run beside each other and beside puts, and end with their queue.

`test_pairs.py` tests that only one program at a time uses a staging.
"""

from __future__ import annotations

import threading

import pytest
from tests.helpers.support import LIMIT_SECONDS, Call, until
from tests.stores.postgresql.pairs import without_lock
from tests.stores.postgresql.server import administrating, waits_for_a_lock

import inorder
from inorder import QueueManager
from inorder.client.bulk import LedgerKey, Staged, Stager
from inorder.client.inspection import Unit
from inorder.errors import StoreDamaged
from inorder.stores.engine import points
from inorder.stores.postgresql.statements import STATEMENTS
from inorder.stores.sql import leftovers


@pytest.fixture
def url(url: str) -> str:
    with inorder.connect(url) as qm:
        qm.create_queue("Q")
    return url


class Held:
    """Holds threads before their next commit, each with all locks that its call takes."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._chosen: set[int] = set()
        self._sweeps: set[int] = set()
        self._there = threading.Semaphore(0)
        self._goes_on = threading.Event()
        monkeypatch.setattr(points, "reached", self._reached)

    def _reached(self, point: str) -> None:
        if point == "settled" and threading.get_ident() in self._sweeps:
            self._sweeps.discard(threading.get_ident())
            self._chosen.add(threading.get_ident())
        if point == "written" and threading.get_ident() in self._chosen:
            self._chosen.discard(threading.get_ident())
            self._there.release()
            assert self._goes_on.wait(LIMIT_SECONDS)

    def stage(self, qm: QueueManager, name: str, *bodies: bytes, queue: str = "Q") -> Call[None]:
        """Stages messages, and is held before the commit."""

        def act() -> None:
            handle = qm.open(queue, output=True)
            self._chosen.add(threading.get_ident())
            Stager(handle, name, lasts=600).stage(len(bodies), {"body": list(bodies)})

        call = Call(act)
        assert self._there.acquire(timeout=LIMIT_SECONDS), "the staging has not come to its commit"
        return call

    def undo(self, qm: QueueManager, name: str) -> Call[None]:
        """Undoes a large staging, and is held when it removes the first contents."""

        def act() -> None:
            self._sweeps.add(threading.get_ident())
            qm.bulk.undo_staging([name])

        call = Call(act)
        assert self._there.acquire(timeout=LIMIT_SECONDS), "it has not come to a commit of what it removes"
        return call

    def go_on(self) -> None:
        self._goes_on.set()


def await_waiting(url: str, program: str) -> None:
    until(lambda: waits_for_a_lock(url, program), f"{program} waits")


def test_two_stagings_and_a_put_do_not_wait_for_each_other(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with inorder.connect(url) as one, inorder.connect(url) as two, inorder.connect(url) as other:
        held = Held(monkeypatch)
        calls = [held.stage(one, "first", b"1", b"2"), held.stage(two, "second", b"3")]
        other.put("Q", b"put meanwhile")
        assert other.get("Q").body == b"put meanwhile"
        assert not any(call.done for call in calls), "none of them was in the way of the put"
        held.go_on()
        for call in calls:
            call.result()
        settled = other.bulk.settle_staging(LedgerKey("test", "", "batch"), [Staged("second", 1), Staged("first", 2)])
        assert settled.messages == 3
        assert [message.body for message in other.browse("Q")] == [b"3", b"1", b"2"]


def close_beside_a_staging(url: str, monkeypatch: pytest.MonkeyPatch) -> tuple[list[Unit], list[str]]:
    """Closes a temporary queue during a staging for it. Returns the remaining units, and the problems of the store."""
    with inorder.connect(url) as one, inorder.connect(url, program="owner") as two:
        two.create_queue("MODEL", type="model")
        temporary = two.open("MODEL", input="shared")
        held = Held(monkeypatch)
        staging = held.stage(one, "first", b"1", queue=temporary.name)
        closes = Call(temporary.close)
        await_waiting(url, "owner")
        held.go_on()
        staging.result()
        closes.result()
        return two.inspect.units(), two.admin.check()


def test_a_queue_is_deleted_after_a_running_staging_together_with_its_rows(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert close_beside_a_staging(url, monkeypatch) == ([], [])


def test_a_queue_that_is_deleted_without_an_exclusive_lock_is_noticed(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(STATEMENTS, "lock queue alone", without_lock(STATEMENTS["lock queue alone"]))
    with pytest.raises(
        StoreDamaged, match="other records refer to it, but it is not defined"
    ):  # rows that were staged for the deleted queue
        close_beside_a_staging(url, monkeypatch)


def sweep_at_once(url: str, monkeypatch: pytest.MonkeyPatch) -> tuple[int, list[str]]:
    """Connects while another program removes contents. Returns the number of remaining contents, and the problems."""
    monkeypatch.setattr(leftovers, "STEP_CONTENTS", 10)
    with inorder.connect(url) as one, one.open("Q", output=True) as queue:
        Stager(queue, "large", lasts=600).stage(35, {"body": [b"x"] * 35})
        held = Held(monkeypatch)
        first = held.undo(one, "large")
        second = Call(lambda: inorder.connect(url, program="second"))
        await_waiting(url, "second")
        held.go_on()
        first.result()
        with second.result() as two, administrating(url) as connection:
            [(count,)] = connection.execute("SELECT count(*) FROM leftover").fetchall()
            return count, two.admin.check()


def test_one_program_at_a_time_removes_contents(
    url: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    assert sweep_at_once(url, monkeypatch) == (0, [])
    assert "could not be removed" not in caplog.text


def test_two_programs_that_remove_contents_at_once_are_noticed(
    url: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setitem(STATEMENTS, "lock leftovers", without_lock(STATEMENTS["lock leftovers"]))
    sweep_at_once(url, monkeypatch)
    assert "could not be removed" in caplog.text


def test_the_last_batch_is_the_one_settled_last_whichever_program_drew_its_number(url: str) -> None:
    """Programs reserve thousands of numbers at once: those of the first program stay smaller for a long time."""
    with inorder.connect(url) as first, inorder.connect(url) as second:
        last = ""
        for turn in range(40):
            qm = (first, second)[turn % 2]
            with qm.open("Q", output=True) as queue:
                stager = Stager(queue, f"{turn}", lasts=600)
                stager.stage(1, {"body": [b""]})
            settled = qm.bulk.settle_staging(LedgerKey("test", "query", f"{turn}"), [stager.staged], after=last)
            assert not settled.already
            last = f"{turn}"
            assert {one.bulk.last_settled("Q", "test", "query") for one in (first, second)} == {last}
