"""Waiting calls: whose turn it is to look when changes are faster than looks, and the state that the room keeps."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterator

import pytest
from tests.helpers.support import LIMIT_SECONDS, Call, Stores, room_of, until, waiting

from inorder import FOREVER, GetOptions, Match, NoMessageAvailable, QueueManager, connect
from inorder.errors import ConnectionBroken, InorderError, OrderDeadlock
from inorder.model.options import OpenOptions
from inorder.rules.grouping import NOTHING_OPEN
from inorder.rules.ordering import UNSET
from inorder.stores.engine.waiting import Look
from inorder.stores.seam.records import GetRequest
from inorder.testing import ManualClock
from inorder.testing.stores import RestartableStore


class Holds:
    """A function that is called before each look of a waiting call, so that a test can act meanwhile."""

    def __init__(self) -> None:
        self.at_look: Callable[[], None] = lambda: None


@pytest.fixture
def holds(store: RestartableStore, monkeypatch: pytest.MonkeyPatch) -> Iterator[Holds]:
    holds, wait = Holds(), store.waiting.wait

    def held_wait(owner: int, queue: str, options: GetOptions, look: Look) -> None:
        def held_look() -> tuple[bool, float | None]:
            holds.at_look()
            return look()

        wait(owner, queue, options, held_look)

    monkeypatch.setattr(store.waiting, "wait", held_wait)
    yield holds
    holds.at_look = lambda: None


@pytest.fixture
def alarms(clock: ManualClock, monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The times until which waiting calls sleep if nothing happens."""
    told, nap = list[float](), clock.nap

    def note(seconds: float) -> float | None:
        told.append(clock.now() + seconds)
        return nap(seconds)

    monkeypatch.setattr(clock, "nap", note)
    return told


class Hold:
    """Blocks its callers until `gate` is set; `reached` says that one has called."""

    def __init__(self) -> None:
        self.reached, self.gate = threading.Event(), threading.Event()

    def __call__(self) -> None:
        self.reached.set()
        self.gate.wait(LIMIT_SECONDS)


def quietly(call: Callable[[], object]) -> Callable[[], object]:
    """Wraps a call so that it returns its error."""

    def run() -> object:
        try:
            return call()
        except InorderError as error:
            return error

    return run


# ---- turns


def change_at_each_look(qm: QueueManager, looks: list[str], name: str) -> Look:
    """A look that changes the queue and finds nothing, until there have been 20 looks by both together."""

    def look() -> tuple[bool, float | None]:
        looks.append(name)
        if len(looks) > 20:
            return True, None
        qm.connect().put("Q", b"another")
        return False, None

    return look


def test_a_waiter_with_a_reason_to_look_takes_turns_with_later_waiters(
    store: RestartableStore, qm: QueueManager
) -> None:
    room, looks, gate = store.waiting, list[str](), threading.Event()
    first = GetOptions(wait=FOREVER, match=Match(message_id=b"never"))
    in_front, behind = connect(store), connect(store)
    front = change_at_each_look(qm, looks, "front")

    def held() -> tuple[bool, float | None]:
        gate.wait(LIMIT_SECONDS)
        return front()

    one = Call(lambda: room.wait(in_front.internals.owner, "Q", first, held))
    until(lambda: any(waiter.looking for waiter in room._waiters), "the one in front looks")
    look = change_at_each_look(qm, looks, "behind")
    other = Call(lambda: room.wait(behind.internals.owner, "Q", GetOptions(wait=FOREVER), look))
    until(lambda: len(room._waiters) == 2, "the other one waits")
    gate.set()
    one.result()
    other.result()
    assert len(looks) > 20
    assert looks[:6] == ["front", "behind", "front", "behind", "front", "behind"]


def test_a_wait_ends_in_time_despite_an_earlier_waiter_that_always_has_a_reason_to_look(stores: Stores) -> None:
    store = stores.make()
    qm, busy, late = connect(store), connect(store), connect(store)
    qm.create_queue("Q")
    never = Match(message_id=b"never")
    Call(quietly(lambda: busy.get("Q", match=never, wait=FOREVER))).sleeps(busy)
    over = threading.Event()

    def produce() -> None:
        other = qm.connect()
        for _ in range(100_000):
            if over.is_set():
                return
            other.put("Q", b"", priority=0)
            other.get("Q")

    producer = Call(produce)
    last = Call(lambda: late.get("Q", match=Match(priority=5), wait=0.2))
    assert isinstance(last.error(), NoMessageAvailable)
    over.set()
    producer.result()


def test_a_specific_getter_is_served_before_a_general_one_after_a_pause(
    store: RestartableStore, qm: QueueManager
) -> None:
    """A round of looks that only time began must not move a specific getter behind a general one."""
    assert isinstance(store.clock, ManualClock)
    general, specific = qm.connect(), qm.connect()
    second = waiting(general, quietly(lambda: general.get("Q", wait=FOREVER)))
    first = waiting(specific, lambda: specific.get("Q", match=Match(correlation_id=b"c"), wait=FOREVER).body)
    for _ in range(3):
        store.clock.advance(1)
        second.sleeps(general)
        first.sleeps(specific)
    qm.put("Q", b"1", correlation_id=b"c")
    assert first.result() == b"1"
    assert not second.done


def test_a_waiter_whose_turn_has_not_come_sleeps(
    store: RestartableStore, holds: Holds, qm: QueueManager, alarms: list[float]
) -> None:
    specific, general = qm.connect(), qm.connect()
    first = waiting(specific, quietly(lambda: specific.get("Q", match=Match(message_id=b"never"), wait=FOREVER)))
    second = waiting(general, quietly(lambda: general.get("Q", wait=5)))
    holds.at_look = hold = Hold()
    qm.put("Q", b"1", correlation_id=b"c")
    assert hold.reached.wait(LIMIT_SECONDS)
    before = len(alarms)
    assert isinstance(store.clock, ManualClock)
    store.clock.advance(6)  # the second call has reached its deadline and has a reason to look, but it is not its turn
    until(lambda: math.inf in alarms[before:], "it sleeps until it is woken")
    holds.at_look = lambda: None
    hold.gate.set()
    assert second.result()
    assert not first.done


# ---- the end of a connection


def wait_on_store(
    store: RestartableStore, manager: QueueManager, options: GetOptions, *, queue: str = "Q", syncpoint: bool = False
) -> Callable[[], list[bytes]]:
    """A waiting call, for any thread, that bypasses the checks of the connection; it returns the bodies."""
    handle = store.open(manager.internals.owner, queue, OpenOptions(input="shared")).handle
    request = GetRequest(handle=handle, options=options, state=NOTHING_OPEN, cursor=UNSET, syncpoint=syncpoint)
    return lambda: [message.body for message in store.wait(request).messages]


def test_a_call_that_begins_to_wait_while_its_connection_ends_gets_an_error(
    store: RestartableStore, qm: QueueManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    other, hold, disconnect, room = qm.connect(), Hold(), store.disconnect, room_of(qm)

    def held_disconnect(owner: int) -> None:
        hold()
        disconnect(owner)

    monkeypatch.setattr(store, "disconnect", held_disconnect)
    coming = wait_on_store(store, other, GetOptions(wait=FOREVER))
    end = Call(other.internals.abandon)
    assert hold.reached.wait(LIMIT_SECONDS)
    wait = Call(coming)
    Call(lambda: room.watch_until(lambda: room.is_asleep(other.internals.owner))).result()
    hold.gate.set()
    end.result()
    assert isinstance(wait.error(), ConnectionBroken)


def test_a_call_that_begins_to_wait_after_the_waiting_calls_were_dismissed_gets_an_error(
    store: RestartableStore, qm: QueueManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    other, hold, dismiss = qm.connect(), Hold(), store.waiting.dismiss

    def dismiss_and_hold(owner: int) -> None:
        dismiss(owner)
        hold()

    monkeypatch.setattr(store.waiting, "dismiss", dismiss_and_hold)
    coming = wait_on_store(store, other, GetOptions(wait=FOREVER))
    end = Call(other.internals.abandon)
    assert hold.reached.wait(LIMIT_SECONDS)
    with pytest.raises(ConnectionBroken):
        coming()
    hold.gate.set()
    end.result()


# ---- what the room keeps


def test_the_waiting_room_keeps_nothing_about_queues_without_waiters(qm: QueueManager) -> None:
    def kept() -> int:
        return sum(len(value) for value in vars(room_of(qm)).values() if isinstance(value, dict | list | set))

    before = kept()
    qm.create_queue("M", type="model")
    for _ in range(20):
        with qm.open("M") as handle:
            handle.put(b"1")
    assert kept() == before


def test_connections_to_one_store_object_share_one_waiting_room(store: RestartableStore, qm: QueueManager) -> None:
    other = connect(store)
    assert room_of(other) is room_of(qm)
    count = len(store.changes._subscriptions)
    for _ in range(5):
        connect(store).close()
    assert len(store.changes._subscriptions) == count
    wait = waiting(other, lambda: other.get("Q", wait=FOREVER).body)
    qm.put("Q", b"1")
    assert wait.result() == b"1"


# ---- when a waiting call looks again by itself; the clock of the scenario tables makes every waiter look


def test_a_wait_looks_again_when_a_delay_ends(qm: QueueManager, clock: ManualClock, alarms: list[float]) -> None:
    """R3.27, and the rule for delivery times."""
    qm.put("Q", b"1", delay=9)
    qm.put("Q", b"2", delay=5)
    other = qm.connect()
    call = waiting(other, lambda: other.get("Q", wait=600).body)
    until(lambda: bool(alarms), "it sleeps")
    assert set(alarms) == {clock.now() + 5}
    clock.advance(5)
    assert call.result() == b"2"


def test_a_browse_for_unmarked_messages_looks_again_when_a_mark_ends(
    qm: QueueManager, clock: ManualClock, alarms: list[float]
) -> None:
    """R3.74: the interval of the queue manager is 5 seconds."""
    qm.put("Q", b"1")
    other = qm.connect()
    with qm.open("Q", browse=True, co_op=True) as handle, other.open("Q", browse=True, co_op=True) as one_more:
        handle.browse_first(mark_co_op=True)
        clock.advance(2)
        call = waiting(other, lambda: one_more.browse_first(unmarked=True, wait=600).body)
        until(lambda: bool(alarms), "it sleeps")
        assert set(alarms) == {clock.now() + 3}
        clock.advance(3)
        assert call.result() == b"1"


def test_b31_a_waiter_that_only_needs_to_look_again_is_in_no_deadlock(
    store: RestartableStore, qm: QueueManager, holds: Holds
) -> None:
    """One waits for two, who commits and then asks for a message that one holds: one need only look again."""
    qm.create_queue("R")
    for queue in ("Q", "R"):
        qm.put_many(queue, [b"1", b"2"])
    strictly = GetOptions(read_order="strict", wait=600)
    one, two = qm.connect(), qm.connect()
    one.get("R", syncpoint=True)
    two.get("Q", syncpoint=True)
    first = waiting(one, wait_on_store(store, one, strictly, syncpoint=True))
    asks = wait_on_store(store, two, strictly, queue="R", syncpoint=True)
    with pytest.raises(OrderDeadlock):
        asks()
    holds.at_look = hold = Hold()
    two.commit()
    assert hold.reached.wait(LIMIT_SECONDS)
    holds.at_look = lambda: None
    two.put("Q", b"3", syncpoint=True)
    second = waiting(two, asks)
    assert not first.done
    hold.gate.set()
    assert first.result() == [b"2"]
    one.back_out()
    assert second.result() == [b"1"]
