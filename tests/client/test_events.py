"""Listeners and hooks: what they are told, when, in which order, on which thread (lifecycle A-36, A-37)."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.helpers.support import LIMIT_SECONDS, bodies, told

from inorder import Arrival, Message, QueueFull, QueueManager, connect
from inorder.stores.sqlite import SqliteStore
from inorder.testing import ManualClock
from inorder.testing.stores import RestartableStore


class Heard:
    """What listeners and hooks were told, asked for when all has been told."""

    def __init__(self, qm: QueueManager) -> None:
        self._qm = qm
        self._several: list[object] = []

    def __call__(self, *event: object) -> None:
        self._several.append(event[0] if len(event) == 1 else event)

    @property
    def all(self) -> list[object]:
        told(self._qm)
        return list(self._several)

    @property
    def tokens(self) -> list[bytes]:
        return [event.token for event in self.all if isinstance(event, Arrival)]

    def told(self, queue: str = "Q") -> list[tuple[str, bytes]]:
        """What hooks were told of this queue: bodies, with the queue."""
        events = [event for event in self.all if isinstance(event, tuple)]
        return [(name, message.body) for name, message in events if name == queue]


@pytest.fixture
def heard(qm: QueueManager) -> Heard:
    return Heard(qm)


def tokens(qm: QueueManager) -> list[bytes]:
    return [message.token for message in qm.browse("Q")]


def test_a_listener_is_told_what_identifies_the_message(qm: QueueManager, heard: Heard) -> None:
    there = qm.put("Q", b"before it listens", priority=4)
    qm.listen("Q", heard)
    result = qm.put("Q", b"1", correlation_id=b"c", priority=4)
    _, message = qm.browse("Q")
    first, second = heard.all
    assert isinstance(first, Arrival)
    assert first.uid == there.uid
    assert second == Arrival(
        queue="Q",
        uid=result.uid,
        token=message.token,
        message_id=result.message_id,
        correlation_id=b"c".ljust(24, b"\0"),
        priority=4,
    )


def test_a_listener_is_not_told_again_of_what_returns(qm: QueueManager, heard: Heard) -> None:
    qm.put("Q", b"1")
    qm.listen("Q", heard)
    assert len(heard.all) == 1
    qm.get("Q", syncpoint=True)
    qm.back_out()
    with qm.open("Q") as handle:
        handle.browse_first(lock=True)
    assert (len(heard.all), bodies(qm)) == (1, [b"1"])


def test_a_hook_is_told_of_every_put_committed_or_not(qm: QueueManager, heard: Heard) -> None:
    qm.create_queue("R")
    qm.inspect.hook("put", heard)
    qm.put("Q", b"1")
    qm.put("R", b"2", syncpoint=True)
    assert (heard.told("Q"), heard.told("R")) == ([("Q", b"1")], [("R", b"2")])
    qm.commit()
    qm.alter_queue("R", max_depth=2)
    with pytest.raises(QueueFull):
        qm.put_many("R", [b"3", b"4"])
    assert heard.told("R") == [("R", b"2")], "and of none that is refused"


def test_a_hook_is_told_of_what_expires_at_its_back_out(qm: QueueManager, heard: Heard, clock: ManualClock) -> None:
    qm.inspect.hook("expired", heard)
    qm.put("Q", b"old", expiry=10)
    qm.get("Q", syncpoint=True)
    clock.advance(10)
    qm.admin.discard_expired()
    assert heard.told() == []
    qm.back_out()
    qm.admin.discard_expired()
    assert heard.told() == [("Q", b"old")]


@pytest.mark.parametrize("touch", ["get", "browse", "put", "status", "discard_expired", "connect"])
def test_a_hook_is_told_once_of_what_expires_whoever_finds_it(
    qm: QueueManager, heard: Heard, clock: ManualClock, touch: str
) -> None:
    qm.inspect.hook("expired", heard)
    qm.put("Q", b"old", expiry=10)
    qm.put("Q", b"new", expiry=20)
    clock.advance(10)
    calls: dict[str, Callable[[], object]] = {
        "get": lambda: qm.get("Q"),
        "browse": lambda: bodies(qm),
        "put": lambda: qm.put("Q", b"x"),
        "status": lambda: qm.inspect.status("Q"),
        "discard_expired": qm.admin.discard_expired,
        "connect": qm.connect,
    }
    assert heard.told() == []
    calls[touch]()
    assert heard.told() == [("Q", b"old")]
    qm.admin.discard_expired()
    assert heard.told() == [("Q", b"old")]


def test_events_are_told_in_the_order_in_which_they_happened(qm: QueueManager, heard: Heard) -> None:
    qm.create_queue("R")
    qm.inspect.hook("put", heard)
    qm.inspect.hook("visible", lambda queue, message: heard("Q", Message(b"visible")) if queue == "Q" else None)
    for n in range(20):
        qm.put("Q" if n % 3 else "R", b"%d" % n)
    several = [message.body for _, message in (e for e in heard.all if isinstance(e, tuple)) if message.body != b""]
    assert [body for body in several if body != b"visible"] == [b"%d" % n for n in range(20)]
    assert several.count(b"visible") == 13


def test_a_listener_and_the_hooks_have_a_thread_each_that_is_not_the_callers(qm: QueueManager) -> None:
    listening: set[int] = set()
    hooked: set[int] = set()
    qm.listen("Q", lambda arrival: listening.add(threading.get_ident()))
    for name in ("put", "visible"):
        qm.inspect.hook(name, lambda queue, message: hooked.add(threading.get_ident()))
    for _ in range(3):
        qm.put("Q", b"1")
    told(qm)
    assert len(listening) == len(hooked) == 1
    assert len(listening | hooked | {threading.get_ident()}) == 3


def test_an_error_is_logged_and_harms_nobody(qm: QueueManager, heard: Heard, caplog: pytest.LogCaptureFixture) -> None:
    def fail(*event: object) -> None:
        raise ZeroDivisionError

    qm.listen("Q", fail)
    qm.inspect.hook("put", fail)
    qm.listen("Q", heard)
    with caplog.at_level(logging.ERROR, "inorder"):
        qm.put_many("Q", [b"1", b"2"])
        assert heard.tokens == tokens(qm)
    names = [record.name for record in caplog.records]
    assert (names.count("inorder.events"), names.count("inorder.listening")) >= (2, 2)
    records = caplog.records
    assert all(record.exc_info and record.exc_info[0] is ZeroDivisionError for record in records)
    assert bodies(qm) == [b"1", b"2"]


def test_what_is_cancelled_is_told_nothing_more_and_the_others_are(qm: QueueManager, heard: Heard) -> None:
    listener, hook, other = qm.listen("Q", heard), qm.inspect.hook("put", heard), Heard(qm)
    qm.listen("Q", other)
    qm.put("Q", b"1")
    before = heard.all
    assert before != []
    listener.cancel()
    hook.cancel()
    qm.put("Q", b"2")
    assert heard.all == before
    assert other.tokens == tokens(qm)
    listener.cancel()


def test_a_listener_may_put_and_cancel(qm: QueueManager) -> None:
    qm.create_queue("R")
    other = qm.connect()

    def pass_on(arrival: Arrival) -> None:
        registration.cancel()
        other.put("R", arrival.message_id)

    registration = qm.listen("Q", pass_on)
    for body in (b"1", b"2"):
        qm.put("Q", body)
        told(qm)
    assert len(bodies(qm, "R")) == 1


def test_the_end_of_the_last_connection_tells_what_has_happened_and_ends_the_thread(
    store: RestartableStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in ("events", "listening"):
        monkeypatch.setattr(f"inorder.client.{module}.JOIN_SECONDS", LIMIT_SECONDS)
    seen: list[Message] = []
    before = set(threading.enumerate())

    def ours() -> set[str]:
        return {it.name for it in threading.enumerate() if it not in before} & {"inorder events", "inorder listener Q"}

    with connect(store) as qm:
        qm.create_queue("Q")
        qm.listen("Q", lambda arrival: None)
        qm.inspect.hook("visible", lambda queue, message: seen.append(message))
        assert len(ours()) == 2
        qm.put_many("Q", [b"1", b"2"])
    assert len(seen) == 2
    assert not ours()


def test_a_connection_that_ends_after_its_store_was_closed_ends_quietly(tmp_path: Path) -> None:
    """A listener notices the end of its connection on its own thread, which may come to it later than the program."""
    store = SqliteStore(tmp_path / "store.db")
    qm = connect(store)
    own = qm.connect()
    store.close_store()
    own.internals.abandon()
    qm.internals.abandon()
