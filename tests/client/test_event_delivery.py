"""How changes reach observers, and events their listeners: in order, on time, and without harm to the caller."""

from __future__ import annotations

import logging
import subprocess
import sys
import threading
from collections.abc import Callable
from functools import partial

import pytest
from tests.helpers.support import LIMIT_SECONDS, Call, bodies, told

import inorder.client.listening
from inorder import Arrival, Message, QueueManager, connect
from inorder.model.message import IN_GROUP, LAST_IN_GROUP
from inorder.stores.seam.changes import Change, Happened
from inorder.testing import ManualClock
from inorder.testing.stores import RestartableStore


def subscribe(store: RestartableStore, listener: Callable[[Change], object], *, wants: bool = True) -> None:
    """Has a listener told of changes of the store.

    Args:
        wants: it looks at their messages.
    """

    def of_changes(happened: Happened) -> None:
        if isinstance(happened, Change):
            listener(happened)

    store.changes.subscribe(of_changes).turn(heeds=True, wants=wants)


# ---- listeners to the changes of a store


def test_what_a_listener_raises_reaches_nobody(
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


def test_listeners_are_told_in_the_order_of_the_verbs(store: RestartableStore, qm: QueueManager) -> None:
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
    Call(lambda: qm.put("Q", b"2")).result()  # is not held up: the first caller tells it too
    Call(lambda: qm.put("Q", b"3")).result()
    assert seen == []
    gate.set()
    first.result()
    assert seen == [b"1", b"2", b"3"] == bodies(qm)


def test_a_listener_that_calls_the_store_is_told_of_that_afterwards(store: RestartableStore, qm: QueueManager) -> None:
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


def test_many_threads_lose_no_change_and_all_are_told_in_order(store: RestartableStore, qm: QueueManager) -> None:
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


def test_a_listener_that_asks_to_exit_silences_nobody(qm: QueueManager, caplog: pytest.LogCaptureFixture) -> None:
    seen: list[Arrival] = []

    def leave(arrival: Arrival) -> None:
        raise SystemExit

    qm.listen("Q", leave)
    qm.listen("Q", seen.append)
    with caplog.at_level(logging.ERROR, "inorder.listening"):
        qm.put_many("Q", [b"1", b"2"])
        told(qm)
    assert len(seen) == 2
    assert "SystemExit" in caplog.text


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
    with connect(store) as again:  # a thread of its own, beside the one that hangs
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


def test_r6_3_what_expired_before_its_commit_was_never_visible(
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
def test_a_listener_is_told_of_gets(store: RestartableStore, qm: QueueManager, size: int) -> None:
    """Of one message, of a group, of one so large that the SQLite store brings it in pages."""
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
