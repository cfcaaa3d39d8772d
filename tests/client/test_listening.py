"""Listeners are told of each message once, in queue order, whichever process puts it; and how listeners end."""

from __future__ import annotations

import gc
import queue as queues
import subprocess
import sys
import threading
from operator import attrgetter

import pytest
from tests.helpers.support import LIMIT_SECONDS, Make, heard, until
from tests.tiers import ON_BOTH

from inorder import ArgumentError, Arrival, Match, QueueManager, connect
from inorder.errors import ObjectInUse, OrderUnsupported, QueueDeleted
from inorder.testing.stores import RestartableStore

PUTTER = """
import sys, inorder
with inorder.connect(sys.argv[1], program="putter") as qm:
    for n in range(10):
        qm.put("Q", b"", correlation_id=b"%d" % n, priority=n % 3, syncpoint=n % 2 == 1)
        if n % 4 == 3:
            qm.commit()
"""


class Numbers(list[int]):
    """A listener that collects the numbers in the correlation ids."""

    def __call__(self, arrival: Arrival) -> None:
        self.append(int(arrival.correlation_id.rstrip(b"\0")))


def put(qm: QueueManager, *numbers: int, **options: object) -> None:
    for number in numbers:
        qm.put("Q", b"", correlation_id=b"%d" % number, **options)  # type: ignore[arg-type]


@pytest.mark.parametrize("place", ON_BOTH)
def test_a_listener_is_notified_once_of_each_message_that_another_process_puts(place: str, make: Make) -> None:
    where = make(place)
    with connect(where) as qm:
        qm.create_queue("Q")
        numbers = Numbers()
        listener = qm.listen("Q", numbers)
        put(qm, 100)
        subprocess.run([sys.executable, "-c", PUTTER, where], check=True)
        put(qm, 101)
        until(lambda: len(numbers) >= 12, "all are told")
        heard(qm)
        assert sorted(numbers) == [*range(10), 100, 101]
    assert not listener.is_alive


def test_an_uncommitted_put_holds_back_the_later_messages_of_its_level(qm: QueueManager) -> None:
    numbers = Numbers()
    qm.listen("Q", numbers)
    other = qm.connect()
    put(other, 1, syncpoint=True)
    put(qm, 2)
    put(qm, 3, priority=5)
    heard(qm)
    assert numbers == [3], "another level goes on"
    other.commit()
    heard(qm)
    assert numbers == [3, 1, 2]


def test_a_listener_is_notified_only_of_messages_that_match_its_selector(qm: QueueManager) -> None:
    numbers = Numbers()
    put(qm, 1, 2, properties={"colour": "red"})
    put(qm, 3, properties={"colour": "blue"})
    qm.listen("Q", numbers, Match(selector="colour = 'red' AND JMSPriority < 5"))
    with qm.unit_of_work():  # an uncommitted message that does not match delays no other
        put(qm, 4, properties={"colour": "blue"})
        with qm.connect() as other:
            put(other, 5, properties={"colour": "red"})
            put(other, 6, properties={"colour": "red"}, priority=6)
        until(lambda: numbers[2:] == [5], "the one behind it is told")
    heard(qm)
    assert numbers == [1, 2, 5]


def test_a_bad_selector_makes_no_listener(qm: QueueManager) -> None:
    with pytest.raises(ArgumentError) as refused:
        qm.listen("Q", print, Match(selector="colour > 'red'"))
    assert refused.value.reason == 2459
    assert qm._services.connections == 1


def test_a_slow_listener_is_not_notified_of_messages_that_were_taken_meanwhile(qm: QueueManager) -> None:
    inside, go_on = threading.Event(), threading.Event()
    numbers = Numbers()

    def slow(arrival: Arrival) -> None:
        inside.set()
        go_on.wait(LIMIT_SECONDS)
        numbers(arrival)

    qm.listen("Q", slow)
    put(qm, 1)
    assert inside.wait(LIMIT_SECONDS)
    put(qm, 2, 3, 4)
    with qm.connect() as other:
        assert [other.get("Q").correlation_id[:1] for _ in range(2)] == [b"1", b"2"]
    go_on.set()
    heard(qm)
    assert numbers == [1, 3, 4], "what was taken meanwhile is not told"


def test_a_listener_on_an_unordered_queue_is_refused(qm: QueueManager) -> None:
    qm.create_queue("NONE", read_order="unordered")
    with pytest.raises(OrderUnsupported):
        qm.listen("NONE", print)
    assert "inorder listener NONE" not in {thread.name for thread in threading.enumerate()}
    assert qm.inspect.status("NONE").open_input_count == 0
    qm.delete_queue("NONE")


def test_a_listener_has_its_queue_open_until_it_is_cancelled(qm: QueueManager) -> None:
    for _ in range(3):
        listener = qm.listen("Q", print)
        for call in (qm.delete_queue, qm.admin.clear_queue):
            with pytest.raises(ObjectInUse):
                call("Q")
        listener.cancel()
    assert len(qm._session.belongings) <= 1
    assert qm._services.connections == 1
    qm.delete_queue("Q")


def test_a_listener_continues_when_gets_are_allowed_again(qm: QueueManager) -> None:
    told: queues.SimpleQueue[Arrival] = queues.SimpleQueue()
    qm.alter_queue("Q", get_allowed=False)
    listener = qm.listen("Q", told.put)
    put(qm, 1)
    assert told.empty()
    qm.alter_queue("Q", get_allowed=True)
    assert told.get(timeout=LIMIT_SECONDS).queue == "Q"
    assert listener.is_alive


def test_a_listener_ends_when_its_queue_is_deleted_and_says_why(
    qm: QueueManager, caplog: pytest.LogCaptureFixture
) -> None:
    qm.create_queue("MODEL", type="model", shareable=True, default_input="shared")
    temporary = qm.open("MODEL", dynamic_name="TEMPORARY")
    listener = qm.listen("TEMPORARY", print)
    heard(qm)
    temporary.close()
    temporary = qm.open("MODEL", dynamic_name="TEMPORARY")
    temporary.put(b"wakes those who wait on the name")
    until(lambda: not listener.is_alive, "the listener has ended")
    assert isinstance(listener.error, QueueDeleted)
    assert "a listener of TEMPORARY ends" in caplog.text


@pytest.mark.parametrize("end", ["close", "internals.abandon"])
def test_listeners_end_with_their_connection_and_no_other(store: RestartableStore, qm: QueueManager, end: str) -> None:
    other = qm.connect()
    one, two = other.listen("Q", print), qm.listen("Q", print)
    attrgetter(end)(other)()
    assert (one.is_alive, two.is_alive, one.error) == (False, True, None)
    assert qm._services.connections == 2, "this one, and its listener's"


def test_the_listeners_of_a_garbage_collected_connection_end(qm: QueueManager) -> None:
    listener = qm.connect().listen("Q", print)
    gc.collect()
    qm.depth("Q")
    until(lambda: not listener.is_alive, "the listener has ended")
