"""Calls made at once or with deferred durability (`Promises`), and gets that the caller's function refuses."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable
from typing import Any, TypeVar

import pytest
from tests.helpers.interrupting import Outside
from tests.helpers.support import bodies

import inorder
from inorder import GetOptions, Got, PutResult, QueueManager
from inorder.client.listening import StoreEvent
from inorder.errors import CallInProgress
from inorder.stores.postgresql import PostgresStore
from inorder.stores.seam.protocol import Promises

T = TypeVar("T")


def in_another_thread(call: Callable[[], object]) -> object:
    """Returns the answer or error of a call in another thread; None if it has not returned within a minute."""
    found: list[object] = []

    def run() -> None:
        try:
            found.append(call())
        except Exception as error:  # noqa: BLE001 - the caller checks it
            found.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(60)
    return found[0] if found else None


def gathered(promises: Promises, call: Callable[[], T]) -> T:
    """Makes a call at once if possible, otherwise with deferred durability; returns its answer."""
    found = promises.at_once(call)
    if found is not None:
        return found[0]
    with promises:
        return call()


# ---- at once


NEXT_CALLS: dict[str, Callable[[QueueManager], object]] = {
    "put": lambda qm: qm.put("NEXT", b""),
    "at once": lambda qm: qm.internals.promises().at_once(lambda: qm.put("NEXT", b"")),
    "get that waits": lambda qm: qm.get("WITH.ONE", wait=600),
    "check": lambda qm: qm.admin.check(),
}


@pytest.fixture
def local(qm: QueueManager) -> QueueManager:
    qm.create_queue("NEXT")
    qm.create_queue("WITH.ONE")
    qm.put("WITH.ONE", b"")
    return qm


def is_free(qm: QueueManager) -> bool:
    """Whether other threads can write, and each call syncs its own puts to disk again."""
    store, other = qm._session.services.store, qm.connect()
    put = in_another_thread(lambda: other.put("NEXT", b""))
    return isinstance(put, PutResult) and store.gathering.promises is None  # type: ignore[attr-defined]


@pytest.mark.parametrize("gets_to", ["promises", "end", "store", "host", "lock"])
@pytest.mark.parametrize("next_call", NEXT_CALLS)
def test_the_next_call_releases_locks_whose_release_was_interrupted_twice(
    local: QueueManager, monkeypatch: pytest.MonkeyPatch, gets_to: str, next_call: str
) -> None:
    """Both attempts to release the locks are interrupted."""
    promises, store = local.internals.promises(), local._session.services.store
    places: dict[str, Any] = {"promises": promises, "end": promises, "host": store.host}  # type: ignore[attr-defined]
    at = places.get(gets_to, store)
    let_go, left, calls = at.let_go, [Outside, Outside], list[str]()

    def interrupted() -> None:
        if left:
            raise left.pop()
        let_go()

    def end() -> None:
        raise Outside

    def hold() -> bool:
        store.lock.acquire()  # type: ignore[attr-defined]
        raise Outside

    def call() -> None:
        calls.append("made")
        local.put("Q", b"1")

    with monkeypatch.context() as patch:
        patch.setattr(at, "let_go", interrupted)
        if gets_to == "end":
            patch.setattr(promises, "_end", end)
        if gets_to == "lock":
            patch.setattr(store, "hold", hold)
        with pytest.raises(Outside):
            promises.at_once(call)
    assert not left
    assert calls == ([] if gets_to == "lock" else ["made"])
    NEXT_CALLS[next_call](local)
    assert is_free(local)
    assert bodies(local) == [b"1"] * len(calls)


def test_a_call_from_a_finalizer_during_the_release_of_leftover_locks_succeeds(
    local: QueueManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The call may come from a finalizer, which can run in the middle of any line of Python."""
    promises, other, left = local.internals.promises(), local.connect(), [Outside, Outside]
    host: Any = local._session.services.store.host  # type: ignore[attr-defined]
    let_go = host.let_go

    def interrupted() -> None:
        if left:
            raise left.pop()
        other.put("Q", b"of a finalizer")
        let_go()

    with monkeypatch.context() as patch:
        patch.setattr(host, "let_go", interrupted)
        with pytest.raises(Outside):
            promises.at_once(lambda: local.put("Q", b"1"))
        local.put("Q", b"2")
    assert is_free(local)
    assert bodies(local) == [b"1", b"of a finalizer", b"2"]


def test_calls_are_no_longer_gathered_after_their_promises_are_kept(local: QueueManager) -> None:
    promises = local.internals.promises()
    promises.__enter__()  # as if an exception from outside came where `__exit__` begins
    local.put("Q", b"1")
    promises.keep()
    assert is_free(local)
    local.put("Q", b"2")
    assert promises.is_empty


def test_a_lock_that_was_not_acquired_is_not_released(local: QueueManager, monkeypatch: pytest.MonkeyPatch) -> None:
    """An interrupted call leaves something to release; then a finalizer runs in the middle of an operation."""
    store, other = local._session.services.store, local.connect()
    told = list[type[BaseException]]()
    at: Any = store

    def interrupted() -> None:
        raise Outside

    with monkeypatch.context() as patch:
        patch.setattr(at, "let_go", interrupted)
        patch.setattr(at, "hold", lambda: False)
        with pytest.raises(Outside):
            local.internals.promises().at_once(lambda: local.put("Q", b"1"))

    def accept(_: Got) -> None:
        with pytest.raises(CallInProgress) as error:
            other.put("Q", b"of a finalizer")
        told.append(error.type)

    local.internals.get_if("WITH.ONE", accept)
    assert told == [CallInProgress]
    assert is_free(local)


def test_no_call_is_made_at_once_inside_another_one(qm: QueueManager) -> None:
    promises, other = qm.internals.promises(), qm.connect()
    found = promises.at_once(lambda: other.internals.promises().at_once(lambda: other.put("Q", b"")))
    assert found == (None,)
    assert isinstance(in_another_thread(lambda: other.put("Q", b"")), inorder.PutResult)


def test_while_a_call_is_made_at_once_others_wait(qm: QueueManager) -> None:
    other, done = qm.connect(), threading.Event()

    def put() -> None:
        other.put("Q", b"2")
        done.set()

    def calls() -> bool:
        threading.Thread(target=put, daemon=True).start()
        for _ in range(3):
            qm.put("Q", b"1")
        return done.is_set()

    assert qm.internals.promises().at_once(calls) == (False,)
    assert done.wait(60)
    assert [one.body for one in qm.get_many("Q", 9)] == [b"1", b"1", b"1", b"2"]


@pytest.mark.every_store
def test_a_call_from_a_finalizer_in_the_middle_of_an_operation_is_refused(qm: QueueManager) -> None:
    other, refused = qm.connect(), list[BaseException]()
    qm.put("Q", b"1")

    def meddle(message: Got) -> None:
        try:
            other.put("Q", b"2")
        except CallInProgress as error:
            refused.append(error)

    found = qm.internals.promises().at_once(lambda: qm.internals.get_if("Q", meddle))
    assert (found is None) == isinstance(qm._session.services.store, PostgresStore), "not on a server"
    if found is None:
        qm.internals.get_if("Q", meddle)
    assert len(refused) == 1
    assert qm.depth("Q") == 0


def test_an_observer_of_a_call_blocks_no_other_thread(qm: QueueManager) -> None:
    """An observer may wait for another thread that makes calls."""
    other, found = qm.connect(), list[object]()

    def observe(event: StoreEvent) -> None:
        if event.name == "inorder.put":
            found.append(in_another_thread(lambda: other.depth("Q")))

    qm.put("Q", b"0")  # opens the queue, and reserves numbers
    promises = qm.internals.promises()
    with contextlib.closing(contextlib.ExitStack()) as stack:
        stack.callback(qm.inspect.observe(observe).cancel)
        gathered(promises, lambda: qm.put("Q", b"1", persistent=False))
        assert found == [2], "at once, for it has promised nothing"
        gathered(promises, lambda: qm.put("Q", b"2"))
        promises.keep()
        assert found == [2, 3]


def test_an_observer_is_called_when_the_observed_call_is_on_disk(
    qm: QueueManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    happened: list[str] = []

    def sync(descriptor: int) -> None:
        happened.append("synced")

    monkeypatch.setattr("inorder.stores.sqlite.log.sync_data", sync)
    qm.put("Q", b"0")  # opens the queue, and reserves numbers
    happened.clear()
    promises = qm.internals.promises()
    with contextlib.closing(contextlib.ExitStack()) as stack:
        stack.callback(qm.inspect.observe(lambda event: happened.append(event.name)).cancel)
        assert promises.at_once(lambda: qm.put("Q", b"1")) is not None
        assert promises.at_once(lambda: qm.put("Q", b"2", persistent=False)) is not None
        assert happened == ["inorder.put"], "of the second, which promises nothing"
        promises.keep()
    assert happened == ["inorder.put", "synced", "inorder.put"]


def test_an_observer_sees_a_call_whose_sync_failed_as_failed(qm: QueueManager, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(descriptor: int) -> None:
        raise OSError(5, "Input/output error")

    heard: list[StoreEvent] = []
    qm.put("Q", b"0")
    promises = qm.internals.promises()
    monkeypatch.setattr("inorder.stores.sqlite.log.sync_data", fail)
    with contextlib.closing(contextlib.ExitStack()) as stack:
        stack.callback(qm.inspect.observe(heard.append).cancel)
        assert promises.at_once(lambda: qm.put("Q", b"1")) is not None
        with pytest.raises(inorder.StoreError):
            promises.keep()
    (one,) = heard
    assert (one.metadata["completion"], one.metadata["error"]) == ("failed", "StoreError")
    assert set(one.measurements) == {"seconds"}


def test_a_put_by_an_observer_is_synced_before_it_returns(qm: QueueManager, monkeypatch: pytest.MonkeyPatch) -> None:
    """The observer's put is not one of the gathered calls."""
    syncs: list[int] = []
    store = qm._session.services.store
    sync = store.host.sync  # type: ignore[attr-defined]

    def noting(ticket: int) -> None:
        syncs.append(ticket)
        sync(ticket)

    monkeypatch.setattr(store.host, "sync", noting)  # type: ignore[attr-defined]
    other, found = qm.connect(), list[bool]()
    other.put("Q", b"0")

    def observe(event: StoreEvent) -> None:
        if event.name == "inorder.put":
            before = len(syncs)
            other.put("Q", b"of the observer")
            found.append(len(syncs) > before)

    promises = qm.internals.promises()
    with contextlib.closing(contextlib.ExitStack()) as stack:
        stack.callback(qm.inspect.observe(observe).cancel)
        gathered(promises, lambda: qm.put("Q", b"1"))
        with promises:
            qm.put("Q", b"2")
        promises.keep()
    assert found == [True, True]


@pytest.mark.parametrize("how", ["at once", "gathered"])
def test_a_gathered_call_that_would_wait_is_refused(qm: QueueManager, how: str) -> None:
    promises, calls = qm.internals.promises(), list[int]()

    def wait() -> None:
        calls.append(1)
        qm.get("Q", wait=600)

    def within() -> None:
        with promises:
            wait()

    with pytest.raises(CallInProgress, match="wait=0"):
        gathered(promises, wait) if how == "at once" else within()
    assert calls == [1]
    qm.put("Q", b"1")
    assert qm.get("Q", wait=600).body == b"1"


# ---- a get that is refused


class Refused(Exception):
    """The message is not wanted."""


def refuse(message: Got) -> None:
    raise Refused(message.body)


@pytest.mark.every_store
@pytest.mark.parametrize(("read_order", "persistent"), [("relaxed", True), ("strict", True), ("unordered", False)])
def test_a_message_that_the_callers_function_refuses_keeps_its_place(
    qm: QueueManager, read_order: Any, persistent: bool
) -> None:
    qm.create_queue("R", read_order=read_order)
    qm.put_many("R", [b"1", b"2"], persistent=persistent)
    for within in (contextlib.nullcontext(), qm.unit_of_work(), contextlib.nullcontext()):
        with within, pytest.raises(Refused, match="1"):
            qm.internals.get_if("R", refuse)
    assert qm.depth("R") == 2
    assert not qm.inspect.has_unit
    accepted: list[bytes] = []
    got = qm.internals.get_if("R", lambda message: accepted.append(message.body))
    assert (got.body, got.backout_count, accepted) == (b"1", 0, [b"1"])
    assert [one.body for one in qm.get_many("R", 9)] == [b"2"]


def test_the_callers_function_is_not_called_if_no_message_matches(qm: QueueManager) -> None:
    asked: list[Got] = []
    qm.put("Q", b"1")
    with pytest.raises(inorder.NoMessageAvailable):
        qm.internals.get_if("Q", asked.append, GetOptions(match=inorder.Match(message_id=b"none")))
    assert asked == []


def test_arguments_that_are_not_a_function_or_not_options_are_refused(qm: QueueManager) -> None:
    qm.put("Q", b"1")
    wrong: list[tuple[Any, Any, str]] = [("no", None, "'no'"), (refuse, 1, "options"), (refuse, {}, "{}")]
    for accepts, options, word in wrong:
        with pytest.raises(inorder.ArgumentError, match=word):
            qm.internals.get_if("Q", accepts, options)
    assert qm.depth("Q") == 1
