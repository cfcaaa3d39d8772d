"""`end_waits`: another thread ends the wait of a connection, which then goes on."""

from __future__ import annotations

import pytest
from tests.helpers.support import Call, bodies, waiting

from inorder import FOREVER, NoMessageAvailable, QueueManager, Reason
from inorder.errors import ConnectionClosed, WaitEnded


def test_a_get_that_waits_is_ended_and_the_connection_goes_on(qm: QueueManager) -> None:
    waits = qm.connect()
    call = waiting(waits, lambda: waits.get("Q", wait=FOREVER))
    assert waits.end_waits()
    error = call.error()
    assert isinstance(error, WaitEnded)
    assert error.reason is Reason.WAIT_ENDED
    assert not qm.inspect.waits()
    qm.put("Q", b"1")
    assert waits.get("Q", wait=FOREVER).body == b"1"


def test_its_unit_of_work_goes_on(qm: QueueManager) -> None:
    waits = qm.connect()

    def work() -> None:
        with waits.unit_of_work():
            waits.put("Q", b"1")
            with pytest.raises(WaitEnded):
                waits.get("Q", wait=FOREVER, read_order="relaxed")

    call = Call(work)
    call.settles(waits)
    waits.end_waits()
    call.result()
    assert bodies(qm) == [b"1"]


def test_a_browse_that_waits_is_ended_with_its_cursor_where_it_was(qm: QueueManager) -> None:
    qm.put_many("Q", [b"1", b"2"])
    other = qm.connect()
    queue = other.open("Q", browse=True)
    assert queue.browse_first().body == b"1"
    assert queue.browse_next().body == b"2"
    call = waiting(other, lambda: queue.browse_next(wait=FOREVER))
    assert other.end_waits()
    assert isinstance(call.error(), WaitEnded)
    qm.put("Q", b"3")
    assert queue.browse_next().body == b"3"


def test_it_ends_the_waits_of_its_own_connection_alone(qm: QueueManager) -> None:
    one, other = qm.connect(), qm.connect()
    first = waiting(one, lambda: one.get("Q", wait=FOREVER))
    second = waiting(other, lambda: other.get("Q", wait=FOREVER))
    assert one.end_waits()
    assert isinstance(first.error(), WaitEnded)
    second.sleeps(other)
    qm.put("Q", b"1")
    assert second.result().body == b"1"


def test_who_does_not_wait_is_not_ended_and_who_is_closed_is_told(qm: QueueManager) -> None:
    other = qm.connect()
    assert not other.end_waits()
    with pytest.raises(NoMessageAvailable):
        other.get("Q", wait=0)
    other.close()
    with pytest.raises(ConnectionClosed):
        other.end_waits()


def test_a_watch_is_told_of_each_change_until_its_end(qm: QueueManager) -> None:
    watcher, told = qm.connect(), []
    call = Call(lambda: watcher.internals.watch("Q", lambda: told.append(len(bodies(qm.connect())))))
    call.sleeps(watcher)
    assert set(told) == {0}
    qm.put("Q", b"1")
    call.sleeps(watcher)
    assert told[-1] == 1
    assert watcher.end_waits()
    assert isinstance(call.error(), WaitEnded)
