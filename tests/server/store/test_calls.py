"""The thread and the order of a connection's calls: brief calls that need not wait run in the event loop."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import inorder
from inorder import GetOptions, QueueManager
from inorder.errors import WaitEnded
from inorder.model.attributes import define_queue
from inorder.rules.grouping import NOTHING_OPEN
from inorder.rules.ordering import UNSET
from inorder.server.store.brief import BYTES_MAX, MESSAGES_MAX
from inorder.server.store.connection import CALLS_MAX
from inorder.stores.memory import MemoryStore
from inorder.stores.remote.frames import FrameKind
from inorder.stores.remote.link import RemoteLink
from inorder.stores.remote.wire import decode_error, encode_call
from inorder.stores.seam.records import GetRequest
from inorder.testing.remote import ServedStore, the_server

LOOP, POOL = "inorder test server", "inorder store"
SECONDS = 60.0


@pytest.fixture
def store() -> MemoryStore:
    made = MemoryStore("QM1")
    made.create_queue(define_queue("Q"))
    return made


@pytest.fixture
def qm(store: MemoryStore) -> Iterator[QueueManager]:
    first = ServedStore(store)
    with inorder.connect(first) as made:
        made.put("Q", b"opened")
        made.get("Q")
        yield made
    first.close_store()


@pytest.fixture
def elsewhere(qm: QueueManager) -> ServedStore:
    """The client's side of the connection, which has a handle."""
    assert isinstance(qm._store, ServedStore)
    return qm._store


@pytest.fixture
def threads(store: MemoryStore) -> list[tuple[str, str]]:
    """The calls that reach the store, each with the first part of its thread's name."""
    found = []

    def noted(verb: str) -> Callable[..., Any]:
        call = getattr(store, verb)

        def made(*given: Any, **more: Any) -> Any:
            found.append((verb, threading.current_thread().name.rpartition("_")[0] or LOOP))
            return call(*given, **more)

        return made

    for verb in ("put", "get", "get_if", "settle"):
        setattr(store, verb, noted(verb))
    return found


def test_brief_calls_are_made_in_the_thread_of_the_loop(qm: QueueManager, threads: list[tuple[str, str]]) -> None:
    with qm.unit_of_work():
        qm.put("Q", b"x" * 1_024)
    assert qm.get("Q").body == b"x" * 1_024
    assert threads == [("put", LOOP), ("settle", LOOP), ("get_if", LOOP)]


def test_long_calls_are_made_in_a_thread_of_the_pool(qm: QueueManager, threads: list[tuple[str, str]]) -> None:
    bodies = [b"x"] * (MESSAGES_MAX + 1)
    with qm.unit_of_work():
        qm.put_many("Q", bodies)
    assert [one.body for one in qm.get_many("Q", len(bodies))] == bodies
    assert threads == [("put", POOL), ("settle", POOL), ("get", POOL)]


def test_a_long_message_is_got_in_a_thread_of_the_pool(qm: QueueManager, threads: list[tuple[str, str]]) -> None:
    long = bytes(BYTES_MAX + 1)
    qm.put("Q", long)
    assert qm.get("Q").body == long
    assert threads == [("put", POOL), ("get_if", LOOP), ("get", POOL)]
    with pytest.raises(inorder.NoMessageAvailable):
        qm.get("Q")


def test_messages_long_together_are_got_in_a_pool_thread(qm: QueueManager, threads: list[tuple[str, str]]) -> None:
    bodies = [bytes(BYTES_MAX // 2) + end for end in (b"1", b"2", b"3")]
    for body in bodies:
        qm.put("Q", body)
    threads.clear()
    assert [one.body for one in qm.get_many("Q", 3)] == bodies
    assert threads == [("get_if", LOOP), ("get", POOL)]


def test_the_loop_does_not_wait_for_another_thread_that_writes(qm: QueueManager, store: MemoryStore) -> None:
    loop = the_server(os.getpid())._loop
    with store.lock:
        putting = threading.Thread(target=qm.put, args=("Q", b"later"))
        putting.start()
        for _ in range(100):
            asyncio.run_coroutine_threadsafe(asyncio.sleep(0), loop).result(SECONDS)
        assert putting.is_alive()
    putting.join(SECONDS)
    assert qm.get("Q").body == b"later"


# ---- calls that the client sends before earlier ones are answered


def checks(elsewhere: ServedStore, count: int) -> RemoteLink:
    """Sends this many calls at once, numbered from 1,000. Returns the link."""
    link = elsewhere._link
    payload = encode_call("manager", (), {})
    for number in range(1_000, 1_000 + count):
        link._send(FrameKind.CALL, number, payload)
    return link


def test_calls_that_are_sent_together_are_answered_in_order(elsewhere: ServedStore) -> None:
    link = checks(elsewhere, CALLS_MAX)
    answers = [link._next()[:2] for _ in range(CALLS_MAX)]
    assert answers == [(FrameKind.ANSWER, number) for number in range(1_000, 1_000 + CALLS_MAX)]


def a_wait(elsewhere: ServedStore) -> GetRequest:
    handle = next(iter(elsewhere.handles))
    return GetRequest(handle, GetOptions(wait=SECONDS), NOTHING_OPEN, UNSET, syncpoint=False)


def test_a_wait_ends_even_if_its_end_is_sent_immediately_after_it(elsewhere: ServedStore) -> None:
    link = elsewhere._link
    for _ in range(20):
        link._send(FrameKind.CALL, 1_000, encode_call("wait", (a_wait(elsewhere),), {}))
        link.say(FrameKind.END_WAITS)
        kind, number, payload = link._next()
        assert (kind, number) == (FrameKind.ERROR, 1_000)
        assert isinstance(decode_error(payload), WaitEnded)


def test_a_watch_ends_with_the_exception_of_its_callback_and_the_connection_stays_open(
    qm: QueueManager, elsewhere: ServedStore
) -> None:
    link, called = elsewhere._link, list[None]()

    def fails() -> None:
        called.append(None)
        raise ZeroDivisionError

    with qm.unit_of_work():
        qm.put("Q", b"x")
        with pytest.raises(ZeroDivisionError):
            qm.internals.watch("Q", fails)
    assert (elsewhere._link, len(called), qm.get("Q").body) == (link, 1, b"x")
