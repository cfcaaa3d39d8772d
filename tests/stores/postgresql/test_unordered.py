"""A queue that keeps no order: plain puts and gets pass each other; every other call has the queue to itself."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from tests.helpers.support import LIMIT_SECONDS, Call, until
from tests.stores.postgresql.conftest import Connect
from tests.stores.postgresql.server import administrating, waits_for_a_lock

import inorder
from inorder import Flags, NoMessageAvailable, QueueManager
from inorder.errors import QueueFull
from inorder.stores.engine import points


@pytest.fixture
def qm(connect: Connect) -> QueueManager:
    """A program with an unordered queue U and an ordered queue Q, each with three messages."""
    one = connect("test")
    one.create_queue("U", read_order="unordered")
    one.create_queue("Q")
    for queue in ("U", "Q"):
        one.put_many(queue, [b"first", b"second", b"third"])
    return one


@contextmanager
def kept_open(act: Callable[[], object]) -> Iterator[Call[object]]:
    """A block during which the transaction of a call is completely written, but not committed."""
    written, goes_on, threads = threading.Event(), threading.Event(), list[int]()

    def reached(point: str) -> None:
        if point == "written" and threading.get_ident() in threads:
            written.set()
            assert goes_on.wait(LIMIT_SECONDS)

    def acted() -> object:
        threads.append(threading.get_ident())
        return act()

    points.reached = reached
    call = Call(acted)
    try:
        assert written.wait(LIMIT_SECONDS)
        yield call
    finally:
        goes_on.set()
        call.result()
        points.reached = None


def ran(url: str, sql: str) -> list[tuple[Any, ...]]:
    with administrating(url) as connection:
        found = connection.execute(sql)
        return found.fetchall() if found.description else []


def on(qm: QueueManager, queue: str) -> list[bytes]:
    return [message.body for message in qm.browse(queue)]


def counted(qm: QueueManager, queue: str) -> int:
    """The depth of a queue as read without a lock."""
    return next(one.depth for one in qm.inspect.overview() if one.name == queue)


def warmed(qm: QueueManager) -> QueueManager:
    """The program has both queues open, knows that U keeps no order, and has numbers for messages there."""
    for queue in ("Q", "U"):
        qm.put(queue, b"warm")
        qm.get(queue)
    return qm


# --- which call waits for which


def test_uncommitted_calls_block_no_put_and_no_get(qm: QueueManager, connect: Connect) -> None:
    putter, other = warmed(connect("putter")), warmed(connect("other"))
    with kept_open(lambda: putter.put("U", b"open")):
        other.put("U", b"passes")
        assert other.get("U").body == b"third"
        other.put("U", b"in a unit", syncpoint=True)
        assert other.get("U", syncpoint=True).body == b"warm"
        assert counted(other, "U") == 3
    other.commit()
    assert sorted(on(qm, "U")) == [b"in a unit", b"open", b"passes", b"warm"]
    with kept_open(lambda: putter.get("U")) as call:
        other.put("U", b"passes, too")
        found = other.get("U").body
    assert {found, call.result().body} == {b"open", b"warm"}  # type: ignore[attr-defined]
    assert qm.depth("U") == 3
    assert list(qm.admin.check()) == []


def put_open(queue: str) -> Callable[[QueueManager], object]:
    return lambda qm: qm.put(queue, b"open")


def put_behind(queue: str) -> Callable[[QueueManager], object]:
    return lambda qm: qm.put(queue, b"behind")


def put_in_group(qm: QueueManager) -> object:
    return qm.put("U", b"member", flags=Flags.IN_GROUP | Flags.LAST_IN_GROUP, group_id=b"g" * 24)


def get_by_id(qm: QueueManager) -> object:
    return qm.get("U", match=inorder.Match(correlation_id=b"c" * 24))


def back_out(qm: QueueManager) -> None:
    qm.get("U", syncpoint=True)
    qm.back_out()


def alter(qm: QueueManager) -> None:
    qm.alter_queue("U", read_order="strict")


Act = Callable[[QueueManager], object]
# The queue, the call that is not committed, the call that waits for it, and a check of the queue afterwards.
WAITING: dict[str, tuple[str, Act, Act, Callable[[list[bytes]], bool]]] = {
    "a put where order is kept": ("Q", put_open("Q"), put_behind("Q"), lambda on: on[-2:] == [b"open", b"behind"]),
    "a put beside who has the queue to himself": ("U", put_in_group, put_behind("U"), lambda on: on[-1] == b"behind"),
    **{act.__name__: ("U", put_open("U"), act, lambda on: b"open" in on)
       for act in (put_in_group, get_by_id, back_out, alter)},
}  # fmt: skip


@pytest.mark.parametrize("what", WAITING)
def test_calls_that_need_an_order_or_the_whole_queue_wait_for_an_uncommitted_call(
    qm: QueueManager, connect: Connect, url: str, what: str
) -> None:
    queue, first, second, is_right = WAITING[what]
    qm.put("U", b"wanted", correlation_id=b"c" * 24)
    one, other = warmed(connect("one")), warmed(connect("other"))
    with kept_open(lambda: first(one)):
        call = Call(lambda: second(other))
        until(lambda: waits_for_a_lock(url, "other"), "the call waits")
        assert not call.done
    call.result()
    assert is_right(on(qm, queue))
    assert qm.depth(queue) == len(on(qm, queue))
    assert list(qm.admin.check()) == []


def test_a_get_finds_a_message_only_after_the_commit_of_its_put(qm: QueueManager, connect: Connect) -> None:
    one, other = warmed(connect("one")), warmed(connect("other"))
    other.get_many("U", 100)
    with kept_open(lambda: one.put("U", b"open")), pytest.raises(NoMessageAvailable):
        other.get("U")
    assert other.get("U").body == b"open"


def test_plain_calls_never_lock_the_queue(qm: QueueManager, connect: Connect, url: str) -> None:
    """A call that locks the queue adds up its slots; here, the one slot has all the counts."""
    one = warmed(connect("one"))
    for nth in range(30):
        one.put("U", b"x", priority=nth % 10, correlation_id=b"c" * 24)
        one.put_many("U", [b"y", b"z"])
        one.put("U", b"in a unit", syncpoint=True)
        one.get("U")
        one.get_many("U", 1, syncpoint=True)
    one.get_many("U", 1000, syncpoint=True)
    with pytest.raises(NoMessageAvailable):
        one.get("U")
    before = ran(url, "SELECT change_of(queue) FROM slot")
    one.put("U", b"seen by those who wait")
    assert ran(url, "SELECT arrived, depth FROM slot") == [(121, 121 - 60 - 33 - 1)]  # the last 1: the get of `warmed`
    assert ran(url, "SELECT change_of(queue) FROM slot") != before
    one.back_out()
    assert qm.depth("U") == len(on(qm, "U"))
    assert list(qm.admin.check()) == []


def test_a_put_that_locks_nothing_wakes_a_waiting_get(qm: QueueManager, connect: Connect) -> None:
    getter, putter = warmed(connect("getter")), warmed(connect("putter"))
    qm.get_many("U", 100)
    call = Call(lambda: getter.get("U", wait=600).body)
    until(lambda: next(one.waiters for one in qm.inspect.overview() if one.name == "U") > 0, "the get waits")
    putter.put("U", b"woken")
    assert call.result() == b"woken"


# --- depth, numbers, and the slots


def test_a_queue_can_exceed_its_maximum_depth_by_no_more_than_the_puts_in_flight(
    qm: QueueManager, connect: Connect
) -> None:
    qm.alter_queue("U", max_depth=5)
    one, other = warmed(connect("one")), warmed(connect("other"))
    other.put("U", b"fourth")
    with kept_open(lambda: one.put("U", b"fifth")):
        other.put("U", b"sixth, which knows no fifth")
        with pytest.raises(QueueFull, match="it has 5"):
            other.put("U", b"seventh")
    assert qm.depth("U") == 6
    with pytest.raises(QueueFull, match="it has 6"):
        one.put("U", b"seventh")


def test_messages_of_one_producer_stay_in_order_whatever_else_it_does(qm: QueueManager, connect: Connect) -> None:
    """Its numbers ascend, no matter how they are drawn (B-15)."""
    one, other = connect("one"), connect("other")
    qm.get_many("U", 100)
    sent = []
    for nth in range(40):
        sent.append(str(nth).encode())
        one.put("U", sent[-1], expiry=3600.0 if nth % 7 == 3 else None)
        other.put("U", b"x")
        if nth == 20:
            one.alter_queue("U", read_order="relaxed")
        if nth == 30:
            one.alter_queue("U", read_order="unordered")
    assert [body for body in on(qm, "U") if body != b"x"] == sent


def test_one_put_can_have_more_messages_than_there_are_reserved_numbers(qm: QueueManager, connect: Connect) -> None:
    one = warmed(connect("one"))
    qm.get_many("U", 100)
    sent = [str(nth).encode() for nth in range(5000)]
    for begin in range(0, 2500, 500):
        one.put_many("U", sent[begin : begin + 500])
    one.put_many("U", sent[2500:])
    assert [message.body for message in qm.get_many("U", 10_000)] == sent
    assert list(qm.admin.check()) == []


@pytest.mark.parametrize("to", ["strict", "unordered"])
def test_the_read_order_of_a_filled_queue_can_change(qm: QueueManager, connect: Connect, url: str, to: Any) -> None:
    queue = "Q" if to == "unordered" else "U"
    one = connect("one")
    one.put(queue, b"fourth")
    one.put(queue, b"fifth")
    one.alter_queue(queue, read_order=to)
    other = connect("other")
    other.put(queue, b"sixth")
    for body in (b"seventh", b"eighth"):  # the first one reserves numbers
        one.put(queue, body)
    assert bool(ran(url, "SELECT 1 FROM slot")) is (to == "unordered")
    assert qm.depth(queue) == 8
    assert on(qm, queue)[:5] == [b"first", b"second", b"third", b"fourth", b"fifth"]
    assert list(qm.admin.check()) == []


@pytest.mark.parametrize(
    ("damage", "finding"),
    [
        ("UPDATE slot SET depth = depth - 1", "the recorded depth is"),
        ("UPDATE slot SET arrived = -1", "are not valid"),
        ("UPDATE tally SET arrived = depth - 1", "its counters are not valid"),
        (
            "INSERT INTO slot SELECT queue, 1, 0, 0 FROM tally WHERE unordered = 0",
            "has a slot, but the queue keeps its order",
        ),
        ("UPDATE tally SET unordered = 1", "its definition says relaxed"),
        ("UPDATE tally SET unordered = 0", "its definition says unordered"),
    ],
)
def test_the_check_finds_wrong_counters_and_slots(
    qm: QueueManager, connect: Connect, url: str, damage: str, finding: str
) -> None:
    warmed(connect("one")).put("U", b"counted in a slot")
    assert list(qm.admin.check()) == []
    ran(url, damage)
    assert any(finding in one for one in qm.admin.check())


def test_the_overview_includes_messages_counted_in_slots(qm: QueueManager, connect: Connect) -> None:
    warmed(connect("one")).put("U", b"new")
    assert [counted(qm, "U"), qm.depth("U"), counted(qm, "U")] == [4, 4, 4]
