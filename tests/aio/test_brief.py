"""Brief calls of tasks: made at once if no other writer is active, synced together, and failing separately."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.helpers.support import LIMIT_SECONDS

import inorder
from inorder import aio
from inorder.aio import brief
from inorder.client.listening import StoreEvent
from inorder.errors import IN_MEMORY, OutcomeUnknown
from inorder.stores.sqlite.log import Log

TASKS = 16
Put = Callable[[int], Awaitable[object]]


def putting(qm: aio.QueueManager, *, persistent: bool = True) -> Put:
    def put(number: int) -> Awaitable[object]:
        body = str(number).encode()
        return qm.run(lambda one: one.put("Q", body, persistent=persistent), is_brief=True)

    return put


@contextlib.asynccontextmanager
async def connected(place: Path | str) -> AsyncIterator[aio.QueueManager]:
    async with aio.connect(place, connections=2) as qm:
        await qm.create_queue("Q")
        await qm.run(lambda one: None, is_brief=True)  # connects
        yield qm


@pytest.fixture
def qm(request: pytest.FixtureRequest, tmp_path: Path) -> contextlib.AbstractAsyncContextManager[aio.QueueManager]:
    return connected(getattr(request, "param", tmp_path / "store.db"))


in_memory = pytest.mark.parametrize("qm", [IN_MEMORY], indirect=True)


def store_of(qm: aio.QueueManager) -> Any:
    """The store of the connection that makes brief calls."""
    lane = qm._shared._brief
    assert lane is not None
    assert lane.connection is not None
    return lane.connection._session.services.store


@pytest.fixture
def syncs(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Gets an item for each sync of the log."""
    found: list[int] = []

    def sync(descriptor: int) -> None:
        found.append(descriptor)
        os.fdatasync(descriptor)

    monkeypatch.setattr("inorder.stores.sqlite.log.sync_data", sync)
    return found


async def test_concurrent_puts_share_a_sync(qm: aio.QueueManager, syncs: list[int]) -> None:
    put = putting(qm)
    await put(-1)  # opens the queue, and reserves numbers
    before = len(syncs)
    await asyncio.gather(*map(put, range(TASKS)))
    assert len(syncs) <= before + 2  # the first does not wait for the others
    assert [int(one.body) for one in await qm.get_many("Q", 100)] == list(range(-1, TASKS))


async def test_a_brief_call_returns_or_raises_only_after_its_puts_are_on_disk(
    qm: aio.QueueManager, syncs: list[int]
) -> None:
    """As without tasks, a caller that gets an error knows that its earlier puts are on disk."""

    def put_and_fail(one: inorder.QueueManager) -> None:
        one.put("Q", b"1")
        raise KeyError("mine")

    put = putting(qm)
    for number in range(3):
        before = len(syncs)
        await put(number)
        assert len(syncs) > before
        before = len(syncs)
        with pytest.raises(KeyError, match="mine"):
            await qm.run(put_and_fail, is_brief=True)
        assert len(syncs) > before
    assert await qm.depth("Q") == 6


async def test_puts_whose_sync_fails_raise_and_a_nonpersistent_put_succeeds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, syncs: list[int]
) -> None:
    def fail(descriptor: int) -> None:
        raise OSError(5, "Input/output error")

    qm = await aio.connect(tmp_path / "store.db")
    await qm.create_queue("Q")
    put, passing = putting(qm), putting(qm, persistent=False)
    await put(-1)
    monkeypatch.setattr("inorder.stores.sqlite.log.sync_data", fail)
    found = await asyncio.gather(*map(put, range(3)), passing(3), return_exceptions=True)
    assert [type(one) for one in found[:3]] == [inorder.StoreError] * 3, found
    assert isinstance(found[3], inorder.PutResult), found
    await qm.internals.abandon()


@pytest.mark.parametrize("together", [1, 3])
async def test_each_put_of_unknown_outcome_is_named_by_its_own_error(
    qm: aio.QueueManager, monkeypatch: pytest.MonkeyPatch, together: int
) -> None:
    """A lost connection to a server leaves such puts: committed, but perhaps not on disk."""
    uids: dict[int, inorder.UniqueId] = {}

    def lose(ticket: int) -> None:
        raise OutcomeUnknown("the connection was lost", uids=())

    def put(number: int) -> Awaitable[None]:
        def note(one: inorder.QueueManager) -> None:
            uids[number] = one.put("Q", b"").uid

        return qm.run(note, is_brief=True)

    await put(-1)  # opens the queue, and reserves numbers
    host = store_of(qm).host
    with monkeypatch.context() as patched:
        patched.setattr(host, "sync", lose)
        errors = await asyncio.gather(*map(put, range(together)), return_exceptions=True)
    assert [type(one) for one in errors] == [OutcomeUnknown] * together
    assert [one.data["uids"] for one in errors if isinstance(one, OutcomeUnknown)] == [
        (uids[number],) for number in range(together)
    ]


@contextmanager
def somebody_writes(qm: aio.QueueManager) -> Iterator[Callable[[], None]]:
    """Occupies the store with another thread, until the returned function is called or the block ends."""
    lock = store_of(qm).lock
    began, may_end = threading.Event(), threading.Event()

    def hold() -> None:
        with lock:
            began.set()
            may_end.wait()

    thread = threading.Thread(target=hold)
    thread.start()
    began.wait()
    try:
        yield may_end.set
    finally:
        may_end.set()
        thread.join()


@pytest.mark.parametrize("persistent", [False, True])
async def test_a_brief_call_is_made_at_once_in_the_thread_of_the_loop(qm: aio.QueueManager, persistent: bool) -> None:
    threads: list[int] = []

    def put(one: inorder.QueueManager) -> None:
        threads.append(threading.get_ident())
        one.put("Q", b"", persistent=persistent)

    await qm.run(put, is_brief=True)
    others = [asyncio.ensure_future(qm.run(put, is_brief=True)) for _ in range(2)]
    await asyncio.sleep(0)
    assert persistent or all(one.done() for one in others), "a call that promises nothing gives the loop no turn"
    await asyncio.gather(*others)
    assert set(threads) == {threading.get_ident()}


@in_memory
async def test_a_task_whose_calls_are_all_made_at_once_still_lets_the_loop_run_others(qm: aio.QueueManager) -> None:
    """Otherwise no timeout or cancel would take effect."""

    put, calls = putting(qm, persistent=False), 0

    async def put_on() -> None:
        nonlocal calls
        for calls in range(10 * brief.TOGETHER_MAX):
            await put(calls)

    task = asyncio.ensure_future(put_on())
    await asyncio.sleep(0)  # it begins
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await qm.depth("Q") == calls, "the call that was cancelled has not happened"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no forks")
async def test_a_call_may_fork_and_its_child_is_refused(qm: aio.QueueManager) -> None:
    parent, children = os.getpid(), list[int]()

    def fork(one: inorder.QueueManager) -> None:
        one.put("Q", b"1")
        children.append(os.fork())
        one.put("Q", b"2")

    try:
        await qm.run(fork, is_brief=True)
    except inorder.errors.ForkedConnection:
        os._exit(17)
    finally:
        if os.getpid() != parent:
            os._exit(18)
    assert os.waitstatus_to_exitcode(os.waitpid(children[0], 0)[1]) == 17
    assert [one.body for one in await qm.get_many("Q", 9)] == [b"1", b"2"]


async def test_calls_that_wait_for_a_sync_end_although_a_later_call_was_delayed(
    qm: aio.QueueManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two calls wait for a sync while another thread occupies the store for a moment, which delays a later call."""
    monkeypatch.setattr("inorder.stores.engine.process.EnginePromises.is_quick", True)  # on any disk

    lane = qm._shared._brief
    assert lane is not None
    await putting(qm)(0)  # opens the queue
    for _ in range(2):
        await asyncio.sleep(0)
    jobs = [lane.submit(lambda one: one.put("Q", b"", persistent=True)) for _ in range(3)]
    assert [job.is_over for job in jobs] == [True, False, False], "the first is alone, the others share a sync"
    with somebody_writes(qm):
        jobs.append(lane.submit(lambda one: one.put("Q", b"", persistent=True)))
    ends = time.monotonic() + LIMIT_SECONDS
    while not all(job.is_over for job in jobs):
        assert time.monotonic() < ends, [job.is_over for job in jobs]
        await asyncio.sleep(0)
    assert await qm.depth("Q") == 5


async def test_calls_that_have_waited_are_made_only_a_few_per_turn_of_the_loop(qm: aio.QueueManager) -> None:
    """Once the other writer has ended, the loop makes some of them at a time, and the thread makes others."""
    made: list[tuple[int, int]] = []
    turn = 0

    def put(one: inorder.QueueManager) -> None:
        one.put("Q", b"", persistent=False)
        made.append((threading.get_ident(), turn))

    with somebody_writes(qm):
        calls = [asyncio.ensure_future(qm.run(put, is_brief=True)) for _ in range(10 * brief.TOGETHER_MAX)]
        await asyncio.sleep(0)
    while not all(one.done() for one in calls):
        turn += 1
        await asyncio.sleep(0)
    await asyncio.gather(*calls)
    in_loop = [at for thread, at in made if thread == threading.get_ident()]
    assert len(made) == len(calls)
    assert max(map(in_loop.count, in_loop), default=0) <= brief.TOGETHER_MAX


async def test_the_log_is_copied_in_another_thread(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    threads: list[int] = []
    monkeypatch.setattr(Log, "tidy", lambda log: threads.append(threading.get_ident()))
    monkeypatch.setattr(Log, "note_length", lambda *_: 0)  # before connecting: the store keeps a reference to it
    async with connected(tmp_path / "store.db") as qm:
        store_of(qm).host.database.log.is_long = True
        await putting(qm, persistent=False)(1)
        while not threads:
            await asyncio.sleep(0.001)
        assert threading.get_ident() not in threads


async def test_a_slow_disk_does_not_block_the_loop(qm: aio.QueueManager, monkeypatch: pytest.MonkeyPatch) -> None:
    threads: list[int] = []

    def slowly(descriptor: int) -> None:
        threads.append(threading.get_ident())
        time.sleep(0.002)
        os.fdatasync(descriptor)

    put = putting(qm)
    await put(0)
    monkeypatch.setattr("inorder.stores.sqlite.log.sync_data", slowly)
    for number in range(3):
        await put(number)
    assert threading.get_ident() not in threads[1:], "the first of them could not be known to be slow"
    assert len(threads) == 3


@pytest.mark.parametrize("is_held_up", [False, True])
async def test_an_observer_that_raises_system_exit_blocks_no_call(
    qm: aio.QueueManager, tmp_path: Path, caplog: pytest.LogCaptureFixture, is_held_up: bool
) -> None:
    def leave(event: StoreEvent) -> None:
        raise SystemExit

    with inorder.connect(tmp_path / "store.db") as other, contextlib.ExitStack() as stack:
        stack.callback(other.inspect.observe(leave).cancel)
        put = putting(qm)
        with somebody_writes(qm) if is_held_up else contextlib.nullcontext():
            puts = [asyncio.ensure_future(put(number)) for number in range(3)]
            await asyncio.sleep(0)
        await asyncio.wait_for(asyncio.gather(*puts), LIMIT_SECONDS)
    assert [one.body for one in await qm.get_many("Q", 9)] == [b"0", b"1", b"2"]
    assert "an observer failed" in caplog.text


@pytest.mark.parametrize("is_held", [True, False])
async def test_puts_succeed_if_the_loop_cannot_take_the_lock_of_the_store(
    qm: aio.QueueManager, monkeypatch: pytest.MonkeyPatch, is_held: bool
) -> None:
    put = putting(qm)
    await put(0)
    host = store_of(qm).host

    def fail() -> bool:
        if is_held:
            return False
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    with monkeypatch.context() as patched:
        patched.setattr(host, "hold", fail)
        await asyncio.wait_for(asyncio.gather(*map(put, range(1, 4))), LIMIT_SECONDS)
    assert len(await qm.get_many("Q", 9)) == 4


@pytest.mark.parametrize("is_held_up", [False, True])
@pytest.mark.parametrize("what", ["check", "backup"])
async def test_a_long_operation_is_refused_in_a_brief_call_whether_or_not_the_store_is_busy(
    qm: aio.QueueManager, tmp_path: Path, what: str, is_held_up: bool
) -> None:
    def call(one: inorder.QueueManager) -> None:
        if what == "check":
            one.admin.check()
        else:
            one.admin.backup(tmp_path / "copy.db")

    with somebody_writes(qm) if is_held_up else contextlib.nullcontext():
        asked = asyncio.ensure_future(qm.run(call, is_brief=True))
        await asyncio.sleep(0)
    with pytest.raises(inorder.errors.CallInProgress, match="outside of it"):
        await asked


@in_memory
async def test_a_brief_call_that_is_cancelled_in_time_is_not_made_and_the_calls_around_it_are(
    qm: aio.QueueManager,
) -> None:
    put = putting(qm)
    with somebody_writes(qm):
        tasks = [asyncio.ensure_future(put(number)) for number in range(4)]
        await asyncio.sleep(0)  # the thread has the first call, and waits
        tasks[2].cancel()
        tasks.insert(2, asyncio.ensure_future(qm.run(lambda one: one.put("NONE", b""), is_brief=True)))
        await asyncio.sleep(0)
    found = await asyncio.gather(*tasks, return_exceptions=True)
    assert isinstance(found[2], inorder.errors.UnknownQueue), "a call that fails does so alone"
    assert isinstance(found[3], asyncio.CancelledError)
    assert [one.body for one in await qm.get_many("Q", 9)] == [b"0", b"1", b"3"]


@in_memory
async def test_a_brief_call_does_not_wait_for_a_long_one(qm: aio.QueueManager, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(brief, "HELD_UP_SECONDS", -1.0)
    begun, may_end = threading.Event(), threading.Event()

    def long(one: inorder.QueueManager) -> None:
        begun.set()
        may_end.wait()

    with somebody_writes(qm):
        first = asyncio.ensure_future(qm.run(long, is_brief=True))
        await asyncio.to_thread(begun.wait)  # in the thread, because the loop would have to wait
    await asyncio.wait_for(putting(qm)(1), 60)  # it does not wait for the other
    may_end.set()
    await first


@in_memory
async def test_a_unit_that_a_brief_call_leaves_open_is_not_committed_by_the_next_call(qm: aio.QueueManager) -> None:
    await qm.run(lambda one: one.put("Q", b"left", syncpoint=True), is_brief=True)
    await putting(qm)(1)
    assert [one.body for one in await qm.get_many("Q", 9)] == [b"1"]


@in_memory
async def test_a_brief_call_inside_a_unit_of_work_is_part_of_it(qm: aio.QueueManager) -> None:
    async with qm.unit_of_work() as unit:
        await qm.put("Q", b"1")
        await qm.run(lambda one: one.put("Q", b"2"), is_brief=True)
        await unit.back_out()
    assert await qm.depth("Q") == 0


async def test_a_close_waits_for_the_brief_calls_made_before_it(tmp_path: Path) -> None:
    qm = await aio.connect(tmp_path / "store.db")
    await qm.create_queue("Q")
    put = putting(qm)
    tasks = [asyncio.ensure_future(put(number)) for number in range(3)]
    await asyncio.sleep(0)
    await qm.close()
    await asyncio.gather(*tasks)
    with pytest.raises(inorder.errors.ConnectionClosed):
        await put(4)
    with inorder.connect(tmp_path / "store.db") as one:
        assert one.depth("Q") == 3
