"""Whose turn it is to look, when changes come faster than looks, and what the room keeps."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from inorder.waiting import Room
from tests.support import LIMIT_SECONDS, Call, Stores, waiting

from inorder import FOREVER, GetOptions, Match, NoMessageAvailable, QueueManager, connect
from inorder.errors import ConnectionBroken, InorderError, OrderDeadlock
from inorder.options import OpenOptions
from inorder.rules.grouping import NOTHING_OPEN
from inorder.rules.ordering import UNSET
from inorder.rules.puts import Program
from inorder.stores.records import GetOutcome, GetRequest
from inorder.stores.telemetry import Telemetry
from inorder.stores.waiting import Look
from inorder.testing import ManualClock
from inorder.testing.stores import RestartableStore


class Holds:
    """What is done before a verb of the store, where a test wants to look at what others do meanwhile."""

    def __init__(self) -> None:
        self.at_get: Callable[[], None] = lambda: None
        self.at_disconnect: Callable[[], None] = lambda: None


@pytest.fixture
def holds(store: RestartableStore, monkeypatch: pytest.MonkeyPatch) -> Iterator[Holds]:
    holds, get, disconnect = Holds(), store.get, store.disconnect

    def held_get(request: GetRequest) -> GetOutcome:
        holds.at_get()
        return get(request)

    def held_disconnect(owner: int) -> None:
        holds.at_disconnect()
        disconnect(owner)

    monkeypatch.setattr(store, "get", held_get)
    monkeypatch.setattr(store, "disconnect", held_disconnect)
    yield holds
    holds.at_get = holds.at_disconnect = lambda: None


def quietly(call: Callable[[], object]) -> Callable[[], object]:
    """The call, with its error as its result."""

    def run() -> object:
        try:
            return call()
        except InorderError as error:
            return error

    return run


# ---- turns


def change_at_each_look(qm: QueueManager, looks: list[str], name: str) -> Callable[[], Look[str]]:
    """A look that finds nothing while the queue changes under it; the fifth in a row finds something."""

    def look() -> Look[str]:
        looks.append(name)
        if len(looks) > 20:
            return Look("found")
        qm.connect().put("Q", b"another")
        return Look()

    return look


def test_a_waiter_in_front_that_always_has_a_reason_lets_those_behind_look(
    store: RestartableStore, qm: QueueManager
) -> None:
    room, looks, gate = Room(store, Telemetry(store)), list[str](), threading.Event()
    first = GetOptions(wait=FOREVER, match=Match(message_id=b"never"))
    in_front, behind = connect(store), connect(store)
    front = change_at_each_look(qm, looks, "front")

    def held() -> Look[str]:
        gate.wait(LIMIT_SECONDS)
        return front()

    one = Call(lambda: room.wait(in_front.owner, "Q", first, held))
    while not any(waiter.looking for waiter in room._waiters):
        time.sleep(0.001)
    look = change_at_each_look(qm, looks, "behind")
    other = Call(lambda: room.wait(behind.owner, "Q", GetOptions(wait=FOREVER), look))
    while len(room._waiters) < 2:
        time.sleep(0.001)
    gate.set()
    assert (one.result(), other.result()) == ("found", "found")
    assert looks[:6] == ["front", "behind", "front", "behind", "front", "behind"]


def test_a_deadline_is_kept_behind_a_waiter_that_always_has_a_reason(stores: Stores) -> None:
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


def test_after_a_pause_the_order_of_rank_holds_again(store: RestartableStore, qm: QueueManager) -> None:
    """A round that time alone began must not put a specific getter behind a general one."""
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


def test_a_waiter_whose_turn_has_not_come_sleeps(store: RestartableStore, holds: Holds, qm: QueueManager) -> None:
    specific, general = qm.connect(), qm.connect()
    first = waiting(specific, quietly(lambda: specific.get("Q", match=Match(message_id=b"never"), wait=FOREVER)))
    second = waiting(general, quietly(lambda: general.get("Q", wait=5)))
    looking, gate = threading.Event(), threading.Event()

    def hold() -> None:
        looking.set()
        gate.wait(LIMIT_SECONDS)

    holds.at_get = hold
    qm.put("Q", b"1", correlation_id=b"c")
    assert looking.wait(LIMIT_SECONDS)
    assert isinstance(store.clock, ManualClock)
    store.clock.advance(6)  # the second one has its deadline, and a reason, but not its turn
    before = time.process_time()
    time.sleep(0.3)
    spent = time.process_time() - before
    holds.at_get = lambda: None
    gate.set()
    assert second.result()
    assert spent < 0.15
    assert not first.done


# ---- the end of a connection


def test_a_call_that_comes_to_wait_while_its_connection_ends_is_told(
    store: RestartableStore, holds: Holds, qm: QueueManager
) -> None:
    other = qm.connect()
    ending, gate = threading.Event(), threading.Event()

    def hold() -> None:
        ending.set()
        gate.wait(LIMIT_SECONDS)

    holds.at_disconnect = hold
    room = qm.room
    options = GetOptions(wait=FOREVER)
    handle = other.open("Q")
    end = Call(other.abandon)
    assert ending.wait(LIMIT_SECONDS)
    # As `Queue.get` does; its own check of the connection came before the end.
    wait = Call(lambda: room.wait(other.owner, "Q", options, lambda: handle._look(options, 1, False)))
    Call(lambda: room.watch_until(lambda: room.is_asleep(other.owner))).result()
    gate.set()
    end.result()
    assert isinstance(wait.error(), ConnectionBroken)


# ---- what the room keeps


def test_the_room_keeps_nothing_of_queues_on_which_nobody_waits(qm: QueueManager) -> None:
    def kept() -> int:
        return sum(len(value) for value in vars(qm.room).values() if isinstance(value, dict | list | set))

    before = kept()
    qm.create_model("M")
    for _ in range(20):
        with qm.open("M") as handle:
            handle.put(b"1")
    assert kept() == before


def test_connections_to_one_store_object_meet_in_one_room(store: Any, qm: QueueManager) -> None:
    other = connect(store)
    assert other.room is qm.room
    count = len(store.teller._observers)
    for _ in range(5):
        connect(store).close()
    assert len(store.teller._observers) == count
    wait = waiting(other, lambda: other.get("Q", wait=FOREVER).body)
    qm.put("Q", b"1")
    assert wait.result() == b"1"


def test_two_stores_do_not_share(stores: Stores, store: RestartableStore, qm: QueueManager) -> None:
    assert connect().room is not qm.room
    assert connect(stores.make()).room is not qm.room
    assert store.connect(Program("u", "p")) > 0


# ---- when a call that waits looks again by itself; the clock of the tables lets every waiter look


def look(
    qm: QueueManager,
    options: GetOptions,
    *,
    queue: str = "Q",
    opened: OpenOptions = OpenOptions(input="shared"),  # noqa: B008 - a value
    syncpoint: bool = False,
) -> GetOutcome:
    """What the store answers a call that would wait: its first look."""
    handle = qm._store.open(qm.owner, queue, opened).handle
    return qm._store.get(
        GetRequest(handle=handle, options=options, state=NOTHING_OPEN, cursor=UNSET, syncpoint=syncpoint, waits=True)
    )


def test_a_wait_looks_again_when_a_delay_ends(qm: QueueManager, clock: ManualClock) -> None:
    """R3.27, and the rule of delivery times."""
    qm.put("Q", b"1", delay=9)
    qm.put("Q", b"2", delay=5)
    assert look(qm, GetOptions(wait=60)).look_again_at == clock.now() + 5


def test_a_browse_for_unmarked_messages_looks_again_when_a_mark_ends(qm: QueueManager, clock: ManualClock) -> None:
    """R3.74: the interval of the queue manager is 5 seconds."""
    qm.put("Q", b"1")
    set_of = OpenOptions(browse=True, co_op=True)
    with qm.open("Q", browse=True, co_op=True) as handle:
        handle.browse_first(mark_co_op=True)
        clock.advance(2)
        outcome = look(qm, GetOptions(browse="first", unmarked=True, wait=60), opened=set_of)
        assert outcome.messages == []
        assert outcome.look_again_at == clock.now() + 3


def test_b31_who_waits_for_nobody_any_more_is_in_no_circle_before_it_looks_again(qm: QueueManager) -> None:
    """One waits for two, who commits, and asks for what one holds: one need only look."""
    qm.create_queue("R")
    for queue in ("Q", "R"):
        qm.put_many(queue, [b"1", b"2"])
    strictly = GetOptions(read_order="strict", wait=60)
    one, two = qm.connect(), qm.connect()
    one.get("R", syncpoint=True)
    two.get("Q", syncpoint=True)
    assert look(one, strictly, syncpoint=True).messages == []
    with pytest.raises(OrderDeadlock):
        look(two, strictly, queue="R", syncpoint=True)
    two.commit()
    two.put("Q", b"3", syncpoint=True)
    assert look(two, strictly, queue="R", syncpoint=True).messages == []
