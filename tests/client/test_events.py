"""Changes, listeners and hooks: the events they get, when, in which order, on which thread (lifecycle A-36, A-37)."""

from __future__ import annotations

import logging
import subprocess
import sys
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from tests.helpers.support import LIMIT_SECONDS, Call, bodies, told

import inorder.client.listening
from inorder import Arrival, Message, QueueFull, QueueManager, connect
from inorder.model.message import IN_GROUP, LAST_IN_GROUP
from inorder.stores.seam.changes import Change, Happened
from inorder.stores.sqlite import SqliteStore
from inorder.testing import ManualClock
from inorder.testing.stores import RestartableStore


class Heard:
    """Collects the events of listeners and hooks; reading them waits until all are delivered."""

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
        """The queue and body of each event that hooks got for this queue."""
        events = [event for event in self.all if isinstance(event, tuple)]
        return [(name, message.body) for name, message in events if name == queue]


@pytest.fixture
def heard(qm: QueueManager) -> Heard:
    return Heard(qm)


def tokens(qm: QueueManager) -> list[bytes]:
    return [message.token for message in qm.browse("Q")]


def test_a_listener_receives_what_identifies_the_message(qm: QueueManager, heard: Heard) -> None:
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


def test_a_listener_is_not_notified_again_of_a_message_that_is_backed_out_or_locked(
    qm: QueueManager, heard: Heard
) -> None:
    qm.put("Q", b"1")
    qm.listen("Q", heard)
    assert len(heard.all) == 1
    qm.get("Q", syncpoint=True)
    qm.back_out()
    with qm.open("Q") as handle:
        handle.browse_first(lock=True)
    assert (len(heard.all), bodies(qm)) == (1, [b"1"])


def test_a_hook_is_called_for_every_put_committed_or_not(qm: QueueManager, heard: Heard) -> None:
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


def test_a_hook_is_called_for_a_message_that_is_expired_when_it_is_backed_out(
    qm: QueueManager, heard: Heard, clock: ManualClock
) -> None:
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
def test_a_hook_is_called_once_for_an_expired_message_whichever_call_finds_it(
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


def test_events_are_delivered_in_the_order_in_which_they_happened(qm: QueueManager, heard: Heard) -> None:
    qm.create_queue("R")
    qm.inspect.hook("put", heard)
    qm.inspect.hook("visible", lambda queue, message: heard("Q", Message(b"visible")) if queue == "Q" else None)
    for n in range(20):
        qm.put("Q" if n % 3 else "R", b"%d" % n)
    several = [message.body for _, message in (e for e in heard.all if isinstance(e, tuple)) if message.body != b""]
    assert [body for body in several if body != b"visible"] == [b"%d" % n for n in range(20)]
    assert several.count(b"visible") == 13


def test_a_listener_and_the_hooks_each_have_a_thread_that_is_not_the_callers(qm: QueueManager) -> None:
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


@pytest.mark.parametrize("error", [ZeroDivisionError, SystemExit])
def test_an_error_of_a_listener_or_hook_is_logged_and_does_not_affect_others(
    qm: QueueManager, heard: Heard, caplog: pytest.LogCaptureFixture, error: type[BaseException]
) -> None:
    def fail(*event: object) -> None:
        raise error

    qm.listen("Q", fail)
    qm.inspect.hook("put", fail)
    qm.listen("Q", heard)
    with caplog.at_level(logging.ERROR, "inorder"):
        qm.put_many("Q", [b"1", b"2"])
        assert heard.tokens == tokens(qm)
    names = [record.name for record in caplog.records]
    assert (names.count("inorder.events"), names.count("inorder.listening")) >= (2, 2)
    records = caplog.records
    assert all(record.exc_info and record.exc_info[0] is error for record in records)
    assert bodies(qm) == [b"1", b"2"]


def test_cancelled_listeners_and_hooks_are_not_called_and_the_others_still_are(qm: QueueManager, heard: Heard) -> None:
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


def test_closing_the_last_connection_delivers_pending_events_and_ends_the_threads(
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


def test_a_connection_that_ends_after_its_store_was_closed_ends_quietly(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A listener ends its connection on its own thread, perhaps after the store was closed."""
    store = SqliteStore(tmp_path / "store.db")
    qm = connect(store)
    own = qm.connect()
    store.close_store()
    own.internals.abandon()
    qm.internals.abandon()
    assert caplog.records == []


def subscribe(store: RestartableStore, listener: Callable[[Change], object], *, wants: bool = True) -> None:
    """Subscribes a listener to changes of the store.

    Args:
        wants: whether the listener reads their messages.
    """

    def of_changes(happened: Happened) -> None:
        if isinstance(happened, Change):
            listener(happened)

    store.changes.subscribe(of_changes).turn(heeds=True, wants=wants)


# ---- listeners to the changes of a store


def test_an_exception_of_a_listener_is_logged_and_reaches_no_caller(
    store: RestartableStore, qm: QueueManager, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(change: Change) -> None:
        raise ZeroDivisionError

    seen: list[Change] = []
    subscribe(store, fail)
    subscribe(store, seen.append)
    with caplog.at_level(logging.ERROR, "inorder.stores"):
        assert qm.put("Q", b"1").warning is None
    assert [message.body for change in seen for message in change.visible] == [b"1"]
    assert "a listener failed" in caplog.text


def test_listeners_are_notified_in_the_order_of_the_operations(store: RestartableStore, qm: QueueManager) -> None:
    seen: list[bytes] = []
    held, gate = threading.Event(), threading.Event()

    def note(change: Change) -> None:
        for message in change.visible:
            if message.body == b"1":
                held.set()
                gate.wait(LIMIT_SECONDS)
            seen.append(message.body)

    subscribe(store, note)
    other = qm.connect()
    first = Call(lambda: other.put("Q", b"1"))
    assert held.wait(LIMIT_SECONDS)
    Call(lambda: qm.put("Q", b"2")).result()  # returns at once: the first caller delivers its change, too
    Call(lambda: qm.put("Q", b"3")).result()
    assert seen == []
    gate.set()
    first.result()
    assert seen == [b"1", b"2", b"3"] == bodies(qm)


def test_a_listener_that_puts_is_notified_of_that_after_the_current_change(
    store: RestartableStore, qm: QueueManager
) -> None:
    qm.create_queue("R")
    other = qm.connect()
    seen: list[str] = []

    def pass_on(change: Change) -> None:
        if change.queue == "Q" and change.visible:
            other.put("R", b"x")
        seen.extend(change.queue for _ in change.visible)

    subscribe(store, pass_on)
    qm.put("Q", b"1")
    assert seen == ["Q", "R"]


def test_a_listener_is_notified_of_every_change_of_many_threads_in_order(
    store: RestartableStore, qm: QueueManager
) -> None:
    seen: list[bytes] = []
    subscribe(store, lambda change: seen.extend(message.body for message in change.visible))

    def put(number: int) -> None:
        with qm.connect() as own:
            for n in range(50):
                own.put("Q", b"%d %d" % (number, n))

    for call in [Call(partial(put, number)) for number in range(4)]:
        call.result()
    qm.inspect.status("Q")
    assert seen == bodies(qm)


# ---- the thread of the listeners


def test_a_listener_that_never_returns_does_not_hold_up_the_last_close(
    store: RestartableStore, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(inorder.client.listening, "JOIN_SECONDS", 0.05)
    inside, gate = threading.Event(), threading.Event()

    def hang(arrival: Arrival) -> None:
        inside.set()
        gate.wait(LIMIT_SECONDS)

    qm = connect(store)
    qm.create_queue("Q")
    qm.listen("Q", hang)
    qm.put("Q", b"1")
    assert inside.wait(LIMIT_SECONDS)
    with caplog.at_level(logging.WARNING, "inorder.listening"):
        Call(qm.close).result()
    assert "did not return" in caplog.text
    with connect(store) as again:  # gets a new thread beside the one that hangs
        seen: list[Arrival] = []
        again.listen("Q", seen.append)
        again.put("Q", b"2")
        told(again)
        assert len(seen) == 2
    gate.set()


def test_a_listener_may_close_the_last_connection(store: RestartableStore) -> None:
    qm = connect(store)
    qm.create_queue("Q")
    closed = threading.Event()

    def close(arrival: Arrival) -> None:
        qm.internals.abandon()
        closed.set()

    qm.listen("Q", close)
    Call(lambda: qm.put("Q", b"1")).result()
    assert closed.wait(LIMIT_SECONDS)


HANGING_LISTENER = """
import threading
from inorder import connect
qm = connect()
qm.create_queue("Q")
inside = threading.Event()
def hang(arrival):
    inside.set()
    threading.Event().wait()
qm.listen("Q", hang)
qm.put("Q", b"1")
inside.wait()
print("the end")
"""


def test_the_end_of_the_interpreter_waits_for_no_listener() -> None:
    done = subprocess.run([sys.executable, "-c", HANGING_LISTENER], check=True, capture_output=True, text=True)
    assert done.stdout.split() == ["the", "end"]


def test_r6_3_a_message_that_expires_before_its_commit_is_never_visible(
    store: RestartableStore, qm: QueueManager, clock: ManualClock
) -> None:
    changes: list[Change] = []
    qm.put("Q", b"old", priority=1, expiry=10, syncpoint=True)
    qm.put("Q", b"1", priority=2, syncpoint=True)
    clock.advance(10)
    subscribe(store, changes.append)
    qm.commit()
    assert [message.priority for change in changes for message in change.visible] == [2]
    assert [message.priority for change in changes for message in change.expired] == [1]


@pytest.mark.parametrize("size", [1, 2, 300])
def test_a_listener_is_notified_of_gets(store: RestartableStore, qm: QueueManager, size: int) -> None:
    """Gets of one message, of a group, and of a group so large that the SQLite store reads it in pages."""
    changes: list[Change] = []
    flags = [IN_GROUP] * (size - 1) + [LAST_IN_GROUP]
    with qm.unit_of_work(), qm.open("Q", output=True) as handle:
        handle.put_many([Message(b"x", flags=flag if size > 1 else 0) for flag in flags], logical=True)
    subscribe(store, changes.append, wants=False)
    if size == 1:
        qm.get("Q")
    else:
        members = qm.get_group("Q")
        next(members)
    assert [change.queue for change in changes] == ["Q"]
