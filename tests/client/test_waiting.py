"""Waiting: which call is served, what ends a wait, and that no wake-up is missed (mq-semantics 3.4, T72, T74)."""

from __future__ import annotations

import math
import threading
from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from tests.helpers.support import Call, Stores, bodies, room_of, waiting

from inorder import FOREVER, NoMessageAvailable, QueueManager, Reason, connect, errors
from inorder.support.clock import SLEEP_SECONDS_MAX, SystemClock

THREADS = 4
EACH = 50


class Waiter:
    """A connection whose get or browse waits."""

    def __init__(self, qm: QueueManager, act: Callable[[QueueManager], bytes]) -> None:
        self.qm = qm.connect()
        self.call = waiting(self.qm, lambda: act(self.qm))

    def sleeps(self) -> None:
        self.call.sleeps(self.qm)

    def result(self) -> bytes:
        return self.call.result()


def general(qm: QueueManager) -> bytes:
    return qm.get("Q", wait=FOREVER).body


def browser(qm: QueueManager) -> bytes:
    with qm.open("Q", browse=True) as handle:
        return handle.browse_first(wait=FOREVER).body


def locker(qm: QueueManager) -> bytes:
    handle = qm.open("Q", browse=True)
    body = handle.browse_first(wait=FOREVER, lock=True).body
    assert not handle.closed
    return body


def one_done(qm: QueueManager, waiters: list[Waiter]) -> Waiter:
    """Returns the waiter whose call has ended, once the others sleep."""
    Call(lambda: room_of(qm).watch_until(lambda: any(one.call.done for one in waiters))).result()
    [done] = [one for one in waiters if one.call.done]
    for one in waiters:
        if one is not done:
            one.sleeps()
    return done


@pytest.mark.every_store
def test_t74_one_message_serves_one_waiter(qm: QueueManager) -> None:
    waiters = [Waiter(qm, general) for _ in range(3)]
    for n in range(3):
        qm.put("Q", b"%d" % n)
        done = one_done(qm, waiters)
        assert done.result() == b"%d" % n
        waiters.remove(done)


@pytest.mark.every_store
def test_a_waiting_get_is_served_before_a_waiting_browse(qm: QueueManager) -> None:
    looking, removing = Waiter(qm, browser), Waiter(qm, general)
    qm.put("Q", b"1")
    assert removing.result() == b"1"
    looking.sleeps()
    qm.put("Q", b"2")
    assert looking.result() == b"2"


def test_a_waiting_browse_with_lock_is_served_before_a_plain_one(qm: QueueManager) -> None:
    looking, locking = Waiter(qm, browser), Waiter(qm, locker)
    qm.put("Q", b"1")
    assert locking.result() == b"1"
    looking.sleeps()
    locking.qm.close()
    assert looking.result() == b"1"


def test_inhibiting_gets_through_an_alias_ends_its_waits_only(qm: QueueManager) -> None:
    qm.create_queue("A", type="alias", base_queue="Q")
    served = Waiter(qm, lambda one: one.get("A", wait=FOREVER).body)
    qm.put("Q", b"1")  # a call that waits through an alias gets messages of its queue
    assert served.result() == b"1"
    through, direct = Waiter(qm, lambda one: one.get("A", wait=FOREVER).body), Waiter(qm, general)
    qm.alter_queue("A", get_allowed=False)
    assert isinstance(through.call.error(), errors.GetInhibited)
    direct.sleeps()
    qm.put("Q", b"2")
    assert direct.result() == b"2"


@pytest.mark.every_store
def test_stopping_the_queue_manager_ends_every_wait(qm: QueueManager) -> None:
    qm.create_queue("R")
    waiters = [Waiter(qm, general), Waiter(qm, browser), Waiter(qm, lambda one: one.get("R", wait=99).body)]
    qm.admin.stop()
    for one in waiters:
        error = one.call.error()
        assert isinstance(error, errors.QueueManagerStopping)
        assert error.reason == 2162
    qm.internals.abandon()


def test_abandoning_its_connection_ends_a_wait(qm: QueueManager) -> None:
    waiter, other = Waiter(qm, general), Waiter(qm, general)
    waiter.qm.internals.abandon()
    error = waiter.call.error()
    assert isinstance(error, errors.ConnectionBroken)
    assert error.reason == 2009
    other.sleeps()
    qm.put("Q", b"1")
    assert other.result() == b"1"


@pytest.mark.every_store
def test_deleting_its_dynamic_queue_ends_a_wait(qm: QueueManager) -> None:
    qm.create_queue("M", type="model", shareable=True, default_input="shared")
    creator = qm.open("M", dynamic_name="TMP")
    waiter = Waiter(qm, lambda one: one.get("TMP", wait=FOREVER).body)
    creator.close()
    error = waiter.call.error()
    assert isinstance(error, errors.QueueDeleted)
    assert error.reason == 2052


def test_a_change_of_its_alias_ends_a_wait(qm: QueueManager) -> None:
    qm.create_queue("R")
    qm.create_queue("A", type="alias", base_queue="Q")
    waiter = Waiter(qm, lambda one: one.get("A", wait=FOREVER).body)
    qm.alter_queue("A", base_queue="R")
    error = waiter.call.error()
    assert getattr(error, "reason", None) == 2041


@pytest.mark.every_store
def test_many_threads_get_every_message_once(qm: QueueManager) -> None:
    start = threading.Barrier(2 * THREADS)

    def put(n: int) -> None:
        mine = qm.connect()
        start.wait()
        for m in range(EACH):
            mine.put("Q", b"%d.%d" % (n, m), syncpoint=bool(m % 2))
            mine.commit()

    def get() -> list[bytes]:
        mine = qm.connect()
        start.wait()
        return [mine.get("Q", wait=FOREVER).body for _ in range(EACH)]

    getters = [Call(get) for _ in range(THREADS)]
    putters = [Call(partial(put, n)) for n in range(THREADS)]
    for putter in putters:
        putter.result()
    counts = Counter(body for getter in getters for body in getter.result())
    assert counts == Counter(b"%d.%d" % (n, m) for n in range(THREADS) for m in range(EACH))
    assert qm.depth("Q") == 0


def test_the_system_clock_sleeps_until_the_time_but_never_beyond_a_maximum() -> None:
    clock = SystemClock()
    assert clock.nap(math.inf) is None
    assert clock.nap(-5) == 0
    assert clock.nap(5) == 5
    assert clock.nap(1e12) == SLEEP_SECONDS_MAX


def test_a_wait_also_ends_by_the_system_clock(stores: Stores) -> None:
    with connect(stores.make()) as qm:
        qm.create_queue("Q")
        with pytest.raises(NoMessageAvailable):
            Call(lambda: qm.get("Q", wait=0.001)).result()


@pytest.mark.parametrize("act", [general, browser])
def test_a_waiting_call_that_has_found_a_message_is_not_asleep(
    act: Callable[[QueueManager], bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise code that watches the room would take a call that is about to end for a waiting one."""
    with connect() as qm:
        qm.create_queue("Q")
        room, asleep, go = room_of(qm), list[bool](), room_of(qm)._go

        def goes(one: Any) -> None:
            asleep.append(room.is_asleep(one.owner))
            go(one)

        monkeypatch.setattr(room, "_go", goes)
        waiter = Waiter(qm, act)
        qm.put("Q", b"x")
        assert waiter.result() == b"x"
        assert asleep[0] is False


def test_a_waiting_get_can_be_ended_and_the_connection_still_works(qm: QueueManager) -> None:
    waits = qm.connect()
    call = waiting(waits, lambda: waits.get("Q", wait=FOREVER))
    assert waits.end_waits()
    error = call.error()
    assert isinstance(error, errors.WaitEnded)
    assert error.reason is Reason.WAIT_ENDED
    assert not qm.inspect.waits()
    qm.put("Q", b"1")
    assert waits.get("Q", wait=FOREVER).body == b"1"


def test_the_unit_of_work_of_an_ended_wait_continues(qm: QueueManager) -> None:
    waits = qm.connect()

    def work() -> None:
        with waits.unit_of_work():
            waits.put("Q", b"1")
            with pytest.raises(errors.WaitEnded):
                waits.get("Q", wait=FOREVER, read_order="relaxed")

    call = Call(work)
    call.settles(waits)
    waits.end_waits()
    call.result()
    assert bodies(qm) == [b"1"]


def test_ending_a_waiting_browse_does_not_move_its_cursor(qm: QueueManager) -> None:
    qm.put_many("Q", [b"1", b"2"])
    other = qm.connect()
    queue = other.open("Q", browse=True)
    assert queue.browse_first().body == b"1"
    assert queue.browse_next().body == b"2"
    call = waiting(other, lambda: queue.browse_next(wait=FOREVER))
    assert other.end_waits()
    assert isinstance(call.error(), errors.WaitEnded)
    qm.put("Q", b"3")
    assert queue.browse_next().body == b"3"


def test_end_waits_ends_only_the_waits_of_its_own_connection(qm: QueueManager) -> None:
    one, other = qm.connect(), qm.connect()
    first = waiting(one, lambda: one.get("Q", wait=FOREVER))
    second = waiting(other, lambda: other.get("Q", wait=FOREVER))
    assert one.end_waits()
    assert isinstance(first.error(), errors.WaitEnded)
    second.sleeps(other)
    qm.put("Q", b"1")
    assert second.result().body == b"1"


def test_end_waits_ends_nothing_without_a_wait_and_fails_on_a_closed_connection(qm: QueueManager) -> None:
    other = qm.connect()
    assert not other.end_waits()
    with pytest.raises(NoMessageAvailable):
        other.get("Q", wait=0)
    other.close()
    with pytest.raises(errors.ConnectionClosed):
        other.end_waits()


def test_a_watch_is_called_after_each_change_until_it_is_ended(qm: QueueManager) -> None:
    watcher, told = qm.connect(), []
    call = Call(lambda: watcher.internals.watch("Q", lambda: told.append(len(bodies(qm.connect())))))
    call.sleeps(watcher)
    assert set(told) == {0}
    qm.put("Q", b"1")
    call.sleeps(watcher)
    assert told[-1] == 1
    assert watcher.end_waits()
    assert isinstance(call.error(), errors.WaitEnded)
