"""Waiting gets of tasks: which are woken, which are served, and that no wake-up is lost."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from tests.aio.test_manager import in_use, watched
from tests.helpers.support import Stores, bodies, memory_alone
from tests.helpers.waking import BROWSING, WAKING

from inorder import FOREVER, Match, NoMessageAvailable, OrderPending, QueueManager, UnknownQueue, aio, connect
from inorder.errors import ConnectionClosed, GetInhibited, QueueDeleted, QueueManagerStopping
from inorder.stores.seam.protocol import LocalStore
from inorder.testing import ManualClock


@pytest.mark.parametrize("what", BROWSING)
async def test_a_waiting_get_is_woken_by(one: aio.QueueManager, qm: QueueManager, what: str) -> None:
    before, how, act = WAKING[what]
    names: dict[str, Any] = {"qm": qm}
    exec(before, names)
    task = asyncio.create_task(one.get("Q", wait=FOREVER, **how))
    await watched(one)
    assert one.connections_in_use == 0  # it waits without a connection
    await asyncio.to_thread(exec, act, names)
    assert (await task).body == b"2"


async def test_a_put_between_the_first_look_and_the_wait_of_a_task_is_not_missed(
    one: aio.QueueManager, qm: QueueManager
) -> None:
    """Puts come at all moments between the first look and the sleep."""
    for number in range(60):
        task = asyncio.create_task(one.get("Q", wait=FOREVER))
        for _ in range(number // 2):
            await asyncio.sleep(0)
        qm.put("Q", b"%d" % number)
        assert (await task).body == b"%d" % number


async def test_many_waiting_tasks_need_few_threads_and_each_gets_one_message(
    one: aio.QueueManager, qm: QueueManager
) -> None:
    threads = threading.active_count()
    tasks = [asyncio.create_task(one.get("Q", wait=FOREVER)) for _ in range(200)]
    await watched(one, waiters=200)
    assert threading.active_count() <= threads + 4  # two connections, one that watches, and PostgreSQL's listener
    qm.put_many("Q", [b"%d" % number for number in range(200)])
    found = await asyncio.gather(*tasks)
    assert Counter(message.body for message in found) == Counter(b"%d" % number for number in range(200))


async def test_a_task_that_names_a_message_is_served_before_others_that_have_waited_longer(
    one: aio.QueueManager, qm: QueueManager
) -> None:
    early = asyncio.create_task(one.get("Q", wait=FOREVER))
    await watched(one)
    late = asyncio.create_task(one.get("Q", wait=FOREVER, match=Match(message_id=b"m")))
    await watched(one, waiters=2)
    qm.put("Q", b"1", message_id=b"m")
    assert (await late).body == b"1"  # R3.27
    qm.put("Q", b"2", message_id=b"m")
    assert (await early).body == b"2"


@pytest.mark.parametrize("match", [Match(), Match(message_id=b"m")], ids=["the same", "another"])
@pytest.mark.parametrize("looks", ["get", "awaited"])
async def test_a_task_that_has_the_only_connection_does_not_wait_for_one_that_needs_it(
    store: LocalStore, qm: QueueManager, match: Match, looks: str
) -> None:
    async with aio.connect(store, connections=1) as one:

        async def looked() -> bytes:
            return (await one.get("Q", match=match)).body

        async def by_look() -> bytes:
            return await one.awaited("Q", looked, wait=FOREVER, key="k", match=match)

        async def without() -> bytes:
            return await by_look() if looks == "awaited" else (await one.get("Q", wait=FOREVER, match=match)).body

        async def holder() -> bytes:
            async with one.open("Q") as queue:
                return await by_look() if looks == "awaited" else (await queue.get(wait=FOREVER)).body

        needs = asyncio.create_task(without())
        await watched(one)
        has = asyncio.create_task(holder())
        await watched(one, waiters=2)
        qm.put("Q", b"1", message_id=b"m")
        assert await has == b"1"
        qm.put("Q", b"2", message_id=b"m")
        assert await needs == b"2"


async def test_a_cancelled_waiting_get_leaves_the_message_to_the_next_one(
    one: aio.QueueManager, qm: QueueManager
) -> None:
    for moment in range(12):
        first, second = (asyncio.create_task(one.get("Q", wait=FOREVER)) for _ in range(2))
        await watched(one, waiters=2)
        qm.put("Q", b"1")
        for _ in range(moment):
            await asyncio.sleep(0.0002)
        first.cancel()
        done = await asyncio.gather(first, return_exceptions=True)
        if isinstance(done[0], BaseException):
            assert (await second).body == b"1"
        else:
            qm.put("Q", b"2")
            assert (await second).body == b"2"


async def test_the_end_of_a_delay_and_the_end_of_a_lease_wake_a_waiting_get(
    one: aio.QueueManager, qm: QueueManager
) -> None:
    qm.put("Q", b"delayed", delay=0.2)
    assert (await one.get("Q", wait=FOREVER)).body == b"delayed"
    qm.put("Q", b"leased")
    qm.browse_and_lock("Q", lease=0.2)
    assert (await one.get("Q", wait=FOREVER)).body == b"leased"


async def test_waits_are_timed_by_the_clock_of_the_store(stores: Stores) -> None:
    clock = ManualClock()
    store = stores.make(clock)
    with connect(store) as qm:
        qm.create_queue("Q")
        async with aio.connect(store, connections=2) as one:
            tasks = [asyncio.create_task(one.get("Q", wait=30)) for _ in range(3)]
            await watched(one, waiters=3)
            clock.advance(31)
            assert {type(end) for end in await asyncio.gather(*tasks, return_exceptions=True)} == {NoMessageAvailable}
            qm.put("Q", b"1", syncpoint=True)
            qm.put("Q", b"2", syncpoint=False)
            task = asyncio.create_task(one.get("Q", wait=30, read_order="strict"))
            await watched(one)
            clock.advance(31)
            with pytest.raises(OrderPending):
                await task


async def test_a_wait_that_is_ended_raises_an_error_with_the_reason(one: aio.QueueManager, qm: QueueManager) -> None:
    qm.create_queue("M", type="model", definition_type="temporary_dynamic")

    async def waits(queue: str = "Q") -> asyncio.Task[Any]:
        task = asyncio.create_task(one.get(queue, wait=FOREVER))
        await watched(one, queue)
        return task

    task = await waits()
    qm.alter_queue("Q", get_allowed=False)
    with pytest.raises(GetInhibited):
        await task
    qm.alter_queue("Q", get_allowed=True)
    maker = qm.connect()
    task = await waits(maker.open("M", output=True).name)  # the queue is deleted at the end of its maker's connection
    maker.close()
    with pytest.raises((QueueDeleted, UnknownQueue)):
        await task
    with pytest.raises(UnknownQueue):
        await one.get("NONE", wait=FOREVER)
    task = await waits()
    await asyncio.to_thread(qm.admin.stop)
    with pytest.raises(QueueManagerStopping):
        await task


async def test_closing_ends_the_waiting_calls_and_backs_out_their_units(store: LocalStore, qm: QueueManager) -> None:
    one = await aio.connect(store)
    qm.put("Q", b"1")

    async def in_a_unit() -> None:
        async with one.unit_of_work():
            await one.get("Q")
            await one.get("Q", wait=FOREVER)  # waits in its thread

    tasks: list[asyncio.Task[Any]] = [asyncio.create_task(in_a_unit())]
    while bodies(qm):
        await asyncio.sleep(0.001)
    tasks.append(asyncio.create_task(one.get("Q", wait=FOREVER)))
    await watched(one)
    await one.close()
    ends = await asyncio.gather(*tasks, return_exceptions=True)
    assert isinstance(ends[1], ConnectionClosed)
    assert isinstance(ends[0], Exception)
    assert bodies(qm) == [b"1"]  # the open unit was backed out


async def test_units_that_have_nothing_yet_wait_without_a_connection(one: aio.QueueManager, qm: QueueManager) -> None:
    async def worker() -> bytes:
        async with one.unit_of_work():
            message = await one.get("Q", wait=FOREVER)
            await one.put("Q", b"done", priority=0)
        return message.body

    tasks = [asyncio.create_task(worker()) for _ in range(20)]
    await watched(one, waiters=20)
    await in_use(one, 0)
    qm.put_many("Q", [b"%d" % number for number in range(20)], priority=5)
    assert await asyncio.gather(*tasks)
    assert len(bodies(qm)) == 20


@memory_alone
async def test_a_watch_that_no_task_needs_ends_after_some_time(
    one: aio.QueueManager, qm: QueueManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("inorder.aio.waiting.KEPT_SECONDS", 0.05)
    task = asyncio.create_task(one.get("Q", wait=FOREVER))
    await watched(one)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    while one._shared._watches:
        await asyncio.sleep(0.001)
    qm.put("Q", b"1")
    assert (await one.get("Q", wait=FOREVER)).body == b"1"


# ---- looks that are made of several calls


def taking(one: aio.QueueManager, *queues: str) -> Callable[[], Awaitable[list[bytes]]]:
    """A look that gets a message from each of the queues, or none."""

    async def look() -> list[bytes]:
        async with one.unit_of_work():
            return await one.run(lambda each: [each.get(queue).body for queue in queues])

    return look


async def test_a_look_is_repeated_until_it_finds_something(one: aio.QueueManager, qm: QueueManager) -> None:
    qm.create_queue("R")
    task = asyncio.create_task(one.awaited("R", taking(one, "Q", "R"), wait=FOREVER))
    await watched(one, "R")
    assert one.connections_in_use == 0  # it waits without a connection
    qm.put("R", b"r")  # the look finds nothing on Q, and gets nothing
    await watched(one, "R")
    qm.put("Q", b"q")
    qm.put("R", b"s")
    assert await task == [b"q", b"r"]
    with pytest.raises(NoMessageAvailable):
        await one.awaited("Q", taking(one, "Q"))
    with pytest.raises(NoMessageAvailable):
        await one.awaited("Q", taking(one, "Q"), wait=0.05)
    assert bodies(qm, "R") == [b"s"]


async def test_looks_with_one_key_are_made_one_at_a_time(one: aio.QueueManager, qm: QueueManager) -> None:
    looked: list[int] = []

    def look(number: int) -> Callable[[], Awaitable[list[bytes]]]:
        take = taking(one, "Q")

        async def counted() -> list[bytes]:
            looked.append(number)
            return await take()

        return counted

    tasks = [asyncio.create_task(one.awaited("Q", look(n), wait=FOREVER, key="same")) for n in range(20)]
    await watched(one, waiters=20)
    before = len(looked)
    qm.put("Q", b"1", message_id=b"other")
    done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    await watched(one, waiters=19)
    assert len(done) == 1
    # on a busy machine wake-ups may be late or double, with a look each; if all the others looked, it would be 19
    assert len(looked) - before < 10, "the rest did not look, for the one who did found what there was"
    qm.put_many("Q", [b"%d" % number for number in range(19)])
    await asyncio.gather(*tasks)
