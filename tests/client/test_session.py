"""Connections: the references that keep one alive, its end, units that cannot be settled, default handles."""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.client.test_connections import in_child
from tests.helpers.support import LIMIT_SECONDS, Call, bodies, waiting

import inorder
from inorder import FOREVER, Got, QueueManager, aio, connect, errors
from inorder.model.message import IN_GROUP
from inorder.rules.retries import Later
from inorder.stores.seam.records import Outcome
from inorder.testing.stores import RestartableStore


class Disk:
    """While it is gone, no unit can be settled."""

    gone = False


@pytest.fixture
def disk(store: RestartableStore, monkeypatch: pytest.MonkeyPatch) -> Disk:
    disk, settle = Disk(), store.settle

    def settle_or_fail(owner: int, outcome: Outcome, later: Later | None = None, *, moves: bool = False) -> bool:
        if disk.gone:
            raise errors.StoreError("the disk is gone")
        return settle(owner, outcome, later, moves=moves)

    monkeypatch.setattr(store, "settle", settle_or_fail)
    return disk


# ---- forgotten connections, and when they are noticed


def test_a_garbage_collection_in_the_middle_of_an_operation_does_no_harm(qm: QueueManager) -> None:
    thresholds = gc.get_threshold()
    gc.set_threshold(1)
    try:
        for _ in range(10):
            circle: list[object] = [other := qm.connect()]
            other.put("Q", b"lost", syncpoint=True)
            circle.append(circle)
            del circle, other
            qm.put("Q", b"1")
            qm.inspect.status("Q")
            assert qm.get("Q").body == b"1"
    finally:
        gc.set_threshold(*thresholds)
    gc.collect()
    assert (qm.depth("Q"), qm.inspect.units(), qm._services.connections) == (0, [], 1)


def test_ending_a_garbage_collected_connection_is_retried_after_a_failure(
    qm: QueueManager, store: RestartableStore, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(owner: int) -> None:
        raise errors.StoreError("the disk is gone")

    qm.connect().put("Q", b"1", syncpoint=True)
    with monkeypatch.context() as patched, caplog.at_level(logging.ERROR, "inorder.session"):
        patched.setattr(store, "disconnect", fail)
        gc.collect()
        assert qm.depth("Q") == 1
    assert "the next try follows" in caplog.text
    assert qm.depth("Q") == 0


def test_a_dropped_connection_with_unfinished_work_is_freed_without_the_garbage_collector(
    qm: QueueManager, disk: Disk, store: RestartableStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without the garbage collector: work that is left to do keeps no reference to its connection."""

    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    def give_up(other: QueueManager) -> None:
        with other.unit_of_work():
            other.put("Q", b"no commit")
            disk.gone = True

    gc.disable()
    try:
        with monkeypatch.context() as patched:
            patched.setattr(store, "open", interrupted)
            with pytest.raises(KeyboardInterrupt):
                qm.connect().put("Q", b"open was interrupted")
        with pytest.raises(errors.StoreError):
            give_up(qm.connect())
        disk.gone = False
        assert (qm.inspect.status("Q").uncommitted, qm.inspect.units(), qm._services.connections) == (0, [], 1)
    finally:
        gc.enable()


def test_a_queue_that_could_not_be_closed_does_not_keep_its_connection_alive(qm: QueueManager) -> None:
    """Its `with` block ends in the middle of another call, as it can when the garbage collector ends it."""

    def leave() -> None:
        other = qm.connect()
        queue = other.open("Q")
        with other._session:
            queue.__exit__(None, None, None)

    gc.disable()
    try:
        leave()
        assert (qm.inspect.status("Q").open_input_count, qm._services.connections) == (0, 1)
    finally:
        gc.enable()


@pytest.mark.parametrize("is_dropped", [True, False])
def test_a_queue_that_could_not_be_closed_is_closed_by_the_next_call(qm: QueueManager, is_dropped: bool) -> None:
    queue = qm.open("Q", output=True)
    with qm._session:
        queue.__exit__(None, None, None)
    assert not queue.closed
    kept = [queue]
    del queue
    if is_dropped:
        kept.clear()
    assert qm.connect().inspect.status("Q").open_output_count == 1
    qm.queues()
    assert qm.connect().inspect.status("Q").open_output_count == 0
    assert all(one.closed for one in kept)


def test_a_handle_and_a_block_keep_their_connection_alive(store: RestartableStore, qm: QueueManager) -> None:
    handle = connect(store).open("Q")
    gc.collect()
    handle.put(b"1", syncpoint=True)
    with connect(store).unit_of_work() as unit:
        gc.collect()
        assert [one.kind for one in qm.inspect.units()] == ["session"]
    assert repr(unit) == "<unit of work, committed>"
    assert (len(qm.inspect.units()), handle.status().uncommitted) == (1, 1)
    del handle
    gc.collect()
    assert qm.inspect.units() == []


def test_two_threads_that_end_one_connection_end_it_once(store: RestartableStore, qm: QueueManager) -> None:
    before = qm._services.connections
    for _ in range(20):
        other, start = qm.connect(), threading.Barrier(2)

        def end(other: QueueManager = other, start: threading.Barrier = start) -> None:
            start.wait(LIMIT_SECONDS)
            other.internals.abandon()

        for call in [Call(end), Call(end)]:
            call.result()
    assert qm._services.connections == before


# ---- units that cannot be settled


def test_a_unit_that_could_not_be_committed_accepts_no_later_put(qm: QueueManager, disk: Disk) -> None:
    def fail() -> None:
        with qm.unit_of_work():
            qm.put("Q", b"1")
            disk.gone = True

    with pytest.raises(errors.StoreError):
        fail()
    with pytest.raises(errors.StoreError):
        qm.put("Q", b"2", syncpoint=True)
    disk.gone = False
    qm.put("Q", b"3")
    assert (bodies(qm), qm.inspect.units()) == ([b"3"], [])
    with qm.unit_of_work():
        qm.put("Q", b"4")
    assert bodies(qm) == [b"3", b"4"]


def test_a_connection_whose_unit_could_not_be_backed_out_can_still_read(qm: QueueManager, disk: Disk) -> None:
    def fail() -> None:
        with qm.unit_of_work():
            assert qm.get("Q").body == b"held"
            disk.gone = True

    qm.put_many("Q", [b"held", b"free"])
    with pytest.raises(errors.StoreError):
        fail()
    assert (bodies(qm), qm.inspect.status("Q").current_depth) == ([b"free"], 1)
    assert len(list(qm.inspect.look("Q"))) == 2
    assert qm.get("Q", syncpoint=False).body == b"free"
    for call in (qm.unit_of_work().__enter__, qm.commit, qm.back_out, lambda: qm.prepare("P"),
                 lambda: qm.get("Q", syncpoint=True)):  # fmt: skip
        with pytest.raises(errors.StoreError, match="the disk is gone"):
            call()
    disk.gone = False
    assert (bodies(qm), qm.inspect.units()) == ([b"held"], [])


def test_a_block_that_ends_during_a_call_of_another_thread_is_backed_out(qm: QueueManager) -> None:
    qm.create_queue("R")
    calls: list[Call[bytes]] = []

    def act() -> None:
        with qm.unit_of_work():
            qm.put("Q", b"1")
            calls.append(waiting(qm, lambda: qm.get("R", wait=FOREVER, syncpoint=False).body))

    with pytest.raises(errors.CallInProgress):
        act()
    qm.connect().put("R", b"r")
    assert calls[0].result() == b"r"
    qm.put("Q", b"2")
    assert (bodies(qm), qm.inspect.units()) == ([b"2"], [])


def test_the_group_state_is_restored_after_a_unit_that_could_not_be_settled(qm: QueueManager, disk: Disk) -> None:
    handle = qm.open("Q")

    def fail() -> None:
        with qm.unit_of_work():
            handle.put(b"1", logical=True, flags=IN_GROUP)
            disk.gone = True

    with pytest.raises(errors.StoreError):
        fail()
    disk.gone = False
    assert handle.put(b"2").warning is None
    assert not handle.internals.put_state.group_open


def test_a_connection_that_cannot_commit_is_closed_anyway(qm: QueueManager, disk: Disk) -> None:
    other = qm.connect()
    other.put("Q", b"1", syncpoint=True)
    disk.gone = True
    with pytest.raises(errors.StoreError):
        other.close()
    assert qm._services.connections == 1
    assert (bodies(qm), qm.inspect.units()) == ([], [])
    with pytest.raises(errors.ConnectionClosed):
        other.put("Q", b"2")


def test_close_of_a_stopped_queue_manager_ends_the_connection(qm: QueueManager) -> None:
    idle, other = qm.connect(), qm.connect()
    other.put("Q", b"1", syncpoint=True)
    qm.admin.stop()
    idle.close()
    with pytest.raises(errors.QueueManagerStopping):
        other.close()  # its unit of work could not be committed
    other.close()
    assert qm._services.connections == 1


# ---- checks


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_forked_child_cannot_use_the_store_object_of_its_parent(qm: QueueManager, store: RestartableStore) -> None:
    qm.put("Q", b"1")
    calls: list[Callable[[], object]] = [
        lambda: connect(store), qm.connect, lambda: store.status("Q"), store.manager, store.stop, store.restart,
    ]  # fmt: skip

    def act() -> None:
        for call in calls:
            with pytest.raises(errors.ForkedConnection) as raised:
                call()
            assert "again" not in str(raised.value)

    assert in_child(act) == 0
    assert qm.get("Q").body == b"1"


def test_the_time_of_an_operation_is_read_under_the_lock(qm: QueueManager, store: Any) -> None:
    held: list[bool] = []
    now = store.clock.now

    def look() -> Any:
        held.append(store.lock.is_mine)
        return now()

    store.clock.now = look
    store.status("Q")
    assert held
    assert all(held)


# ---- default handles


def test_the_least_recently_used_default_handle_is_closed_for_another(qm: QueueManager) -> None:
    qm.admin.alter_manager(max_handles=2)
    for name in ("Q1", "Q2", "Q3"):
        qm.create_queue(name)
    qm.put("Q1", b"1")
    qm.put("Q2", b"1")
    qm.put("Q1", b"2")
    qm.put("Q3", b"1")
    assert [qm.inspect.status(name).open_output_count for name in ("Q1", "Q2", "Q3")] == [1, 0, 1]


def test_a_default_handle_inside_a_group_is_not_closed_for_another(qm: QueueManager) -> None:
    qm.admin.alter_manager(max_handles=1)
    qm.create_queue("R")
    qm.put("Q", b"1", logical=True, flags=IN_GROUP)
    with pytest.raises(errors.TooManyHandles):
        qm.put("R", b"1")
    qm.close_queue("Q")
    with qm.group("R") as group:
        with pytest.raises(errors.TooManyHandles):
            qm.put("Q", b"2")
        group.put(b"1")
    qm.put("Q", b"2")


def test_a_call_by_name_opens_a_new_queue_of_the_same_name(qm: QueueManager) -> None:
    def put_in_a_group(other: QueueManager) -> None:
        with other.group("REPLY") as group:
            group.put(b"2")

    def get_group(other: QueueManager) -> None:
        qm.put("REPLY", b"2")
        assert [message.body for message in other.get_group("REPLY")] == [b"2"]

    ways: dict[str, Callable[[QueueManager], object]] = {
        "put": lambda other: other.put("REPLY", b"2"),
        "put by keyword": lambda other: other.put(queue="REPLY", body=b"2"),
        "put_many of an iterator": lambda other: other.put_many("REPLY", iter([b"2"])),
        "group": put_in_a_group,
        "get_group": get_group,
    }
    qm.create_queue("M", type="model")
    for way, act in ways.items():
        with qm.connect() as other:
            made = qm.open("M", dynamic_name="REPLY")
            other.put("REPLY", b"1")
            made.close()
            with pytest.raises(errors.QueueDeleted):
                other.put("REPLY", b"nowhere")
            qm.create_queue("REPLY")
            act(other)
            assert bodies(qm, "REPLY") == ([] if way == "get_group" else [b"2"])
        qm.close_queue("REPLY")
        qm.delete_queue("REPLY", purge=True)


def test_a_group_on_a_deleted_queue_is_not_continued_on_a_new_queue_of_the_same_name(qm: QueueManager) -> None:
    qm.create_queue("M", type="model")
    other = qm.connect()
    made = qm.open("M", dynamic_name="REPLY")
    other.put("REPLY", b"1", logical=True, flags=IN_GROUP)
    made.close()
    qm.create_queue("REPLY")
    with pytest.raises(errors.QueueDeleted):
        other.put("REPLY", b"2", logical=True, flags=IN_GROUP)
    assert bodies(qm, "REPLY") == []


def test_a_new_connection_ends_a_garbage_collected_one_and_can_use_the_same_file(tmp_path: Path) -> None:
    file = tmp_path / "q.db"
    with connect(file) as qm:
        qm.create_queue("Q")
    connect(file).put("Q", b"lost", syncpoint=True)
    gc.collect()
    with connect(file) as qm:
        qm.put("Q", b"1")
        assert bodies(qm) == [b"1"]


@pytest.mark.parametrize("error", [errors.QueueDeleted, errors.TooManyHandles])
def test_an_error_raised_by_the_callers_function_does_not_repeat_the_call(
    qm: QueueManager, error: type[Exception]
) -> None:
    calls = 0

    def accepts(_: Got) -> None:
        nonlocal calls
        calls += 1
        assert calls == 1
        raise error("of another connection")

    qm.create_queue("OTHER")
    qm.put("OTHER", b"its handle could make room")
    qm.put("Q", b"1")
    with pytest.raises(error, match="of another connection"):
        qm.internals.get_if("Q", accepts)
    assert bodies(qm) == [b"1"]


def test_an_unknown_keyword_with_the_name_of_an_internal_argument_is_refused(qm: QueueManager) -> None:
    for name in ("connection", "call", "given", "named"):
        unknown: dict[str, Any] = {name: 1}
        with pytest.raises(errors.ArgumentError, match="must be one of"):
            qm.put("Q", b"1", **unknown)


def opened(qm: QueueManager) -> list[str]:
    """The names of the open queues."""
    return sorted(opening.name for one in qm.inspect.connections() for opening in one.opened)


def test_a_queue_that_no_call_has_used_since_the_last_cleanup_is_closed(qm: QueueManager) -> None:
    qm.create_queue("R")
    qm.put("Q", b"1")
    qm.put("R", b"1")
    qm.internals.close_unused_queues()  # closes none: both have been used
    assert opened(qm) == ["Q", "R"]
    qm.put("R", b"2")
    qm.internals.close_unused_queues()
    assert opened(qm) == ["R"]
    qm.internals.close_unused_queues()
    assert opened(qm) == []
    assert qm.get("Q").body == b"1"


def test_a_queue_inside_a_group_or_opened_by_the_program_is_not_closed_as_unused(qm: QueueManager) -> None:
    qm.put("Q", b"1", flags=inorder.Flags.IN_GROUP, logical=True)
    with qm.open("Q", browse=True):
        for _ in range(3):
            qm.internals.close_unused_queues()
        assert opened(qm) == ["Q", "Q"]
    second = qm.put("Q", b"2", flags=inorder.Flags.LAST_IN_GROUP, logical=True)
    assert second.sequence_number == 2


def test_a_queue_that_was_closed_as_unused_can_be_deleted(qm: QueueManager) -> None:
    other = qm.connect()
    other.put("Q", b"1")
    other.internals.close_unused_queues()
    other.internals.close_unused_queues()
    qm.delete_queue("Q", purge=True)
    other.internals.close_unused_queues()
    assert opened(qm) == []


async def test_asyncio_connections_close_their_unused_queues(tmp_path: Path) -> None:
    async with aio.connect(tmp_path / "store.db", connections=2) as qm:
        await qm.create_queue("Q")
        await asyncio.gather(*(qm.put("Q", b"") for _ in range(8)))
        await qm.run(lambda one: one.put("Q", b""), is_brief=True)
        assert await qm.run(opened)
        for _ in range(2):
            await qm.internals.close_unused_queues()
        assert await qm.run(opened) == []
        await qm.put("Q", b"")
