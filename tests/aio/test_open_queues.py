"""An open queue of `inorder.aio` that several tasks use: each call belongs to its task, however other tasks end."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from tests.aio.test_manager import in_use
from tests.helpers.support import LIMIT_SECONDS, bodies

from inorder import Got, Queue, QueueManager, aio
from inorder.aio.jobs import LaneJob
from inorder.aio.lanes import Lane
from inorder.client.unit_of_work import UnitOfWork
from inorder.errors import ConnectionBroken, ConnectionClosed, UnitOfAnother
from inorder.stores.seam.protocol import LocalStore


async def test_a_cancelled_get_of_a_closed_queue_leaves_the_connection_to_its_task(
    store: LocalStore, qm: QueueManager
) -> None:
    async with aio.connect(store, connections=1) as one:
        closed, goes_on = await one.open("Q"), threading.Event()
        await closed.close()

        async def opens() -> None:
            async with one.open("Q"):
                pass

        calls: list[asyncio.Task[Any]] = []
        for call in (one._shared.on(closed._lane, "", lambda: goes_on.wait(LIMIT_SECONDS)), opens(), closed.get()):
            calls.append(asyncio.create_task(call))
            await asyncio.sleep(0)
        calls[-1].cancel()
        await asyncio.wait(calls[-1:])
        goes_on.set()
        await asyncio.gather(*calls[:-1])
        await in_use(one, 0)


async def test_opening_a_queue_raises_connection_broken_if_the_connection_is_lost_meanwhile(
    store: LocalStore, qm: QueueManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    submit, over = Lane.submit, threading.Event()

    def lose(_: QueueManager) -> None:
        raise ConnectionBroken("lost")

    def submit_two(lane: Lane, call: Callable[[QueueManager], Any]) -> LaneJob[Any]:
        monkeypatch.undo()
        job = submit(lane, call)
        submit(lane, lose)
        lane._jobs.put(over.set)  # runs after the loop was told of both
        assert over.wait(LIMIT_SECONDS)
        return job

    async with aio.connect(store) as one:
        monkeypatch.setattr(Lane, "submit", submit_two)
        with pytest.raises(ConnectionBroken):
            await one.open("Q")
        await in_use(one, 0)


async def test_the_get_of_another_task_opens_no_unit_for_the_task_that_opened_the_queue(
    one: aio.QueueManager, qm: QueueManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    loop, begun, goes_on, settle = asyncio.get_running_loop(), asyncio.Event(), threading.Event(), UnitOfWork.__exit__

    def held_up(*given: Any) -> None:
        loop.call_soon_threadsafe(begun.set)
        assert goes_on.wait(LIMIT_SECONDS)
        settle(*given)

    qm.put_many("Q", [b"1", b"2"])
    async with one.open("Q") as queue:
        monkeypatch.setattr(UnitOfWork, "__exit__", held_up)
        gets = [asyncio.create_task(queue.get())]
        await begun.wait()
        gets.append(asyncio.create_task(queue.get()))
        await asyncio.create_task(one.put("Q", b"3"))
        goes_on.set()
        assert [(await get).body for get in gets] == [b"1", b"2"]
    assert bodies(qm) == [b"3"]


@pytest.mark.parametrize("call", ["put", "get"])
async def test_a_call_that_waited_for_a_connection_does_not_join_a_unit_begun_meanwhile(
    one: aio.QueueManager, qm: QueueManager, call: str
) -> None:
    async with one.open("Q") as queue:
        await one.put("Q", b"1")
        goes_on = threading.Event()
        busy = asyncio.create_task(queue._shared.on(queue._lane, "", lambda: goes_on.wait(LIMIT_SECONDS)))
        await asyncio.sleep(0)
        asyncio.get_running_loop().call_soon(goes_on.set)
        later: list[asyncio.Task[object]] = []
        asyncio.get_running_loop().call_soon(
            lambda: later.append(asyncio.create_task(queue.put(b"3") if call == "put" else queue.get()))
        )
        await queue.put(b"2", syncpoint=True)
        with pytest.raises(UnitOfAnother):
            await later[0]
        await busy
        await one.back_out()
    assert bodies(qm) == [b"1"]


async def opened_by_a_task(one: aio.QueueManager) -> tuple[aio.Queue, Callable[[], Awaitable[None]]]:
    """A queue that another task has open, and a function that ends this task."""
    opened, ends = asyncio.get_running_loop().create_future(), asyncio.Event()

    async def opens() -> None:
        opened.set_result(await one.open("Q"))
        await ends.wait()

    async def end() -> None:
        ends.set()
        await opening
        await asyncio.sleep(0)  # the ended task is cleaned up now

    opening = asyncio.create_task(opens())
    return await opened, end


async def test_the_end_of_a_task_does_not_back_out_what_another_gets_from_its_queue(
    one: aio.QueueManager, qm: QueueManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, goes_on = asyncio.Event(), threading.Event()
    loop, get = asyncio.get_running_loop(), Queue.get

    def held_up(*given: Any) -> Got:
        loop.call_soon_threadsafe(begun.set)
        assert goes_on.wait(LIMIT_SECONDS)
        return get(*given)

    qm.put("Q", b"1")
    queue, end_task = await opened_by_a_task(one)
    monkeypatch.setattr(Queue, "get", held_up)
    getting = asyncio.create_task(queue.get())
    await begun.wait()
    await end_task()
    goes_on.set()
    assert (await getting).body == b"1"
    assert bodies(qm) == []
    await queue.close()
    await in_use(one, 0)


async def test_a_queue_whose_connection_was_lost_does_not_disturb_a_later_task(
    store: LocalStore, qm: QueueManager
) -> None:
    def lose(_: QueueManager) -> None:
        raise ConnectionBroken("lost")

    async with aio.connect(store, connections=1) as one:
        queue = await one.open("Q")
        with pytest.raises(ConnectionBroken):
            await one.run(lose)

        async def other() -> None:
            async with one.unit_of_work():
                await one.put("Q", b"1")
                begun.set()
                await goes_on.wait()

        begun, goes_on = asyncio.Event(), asyncio.Event()
        work = asyncio.create_task(other())
        await begun.wait()
        for call in (queue.close, queue.get, lambda: queue.put(b"2")):
            with pytest.raises(ConnectionClosed):
                await call()
        goes_on.set()
        await work
    assert bodies(qm) == [b"1"]


async def test_an_empty_group_is_a_unit_of_its_task(one: aio.QueueManager, qm: QueueManager) -> None:
    qm.put("Q", b"1")
    async with one.open("Q") as queue:
        with contextlib.suppress(ZeroDivisionError):
            async with one.group("Q"):
                for call in (queue.get, lambda: queue.put(b"2")):
                    with pytest.raises(UnitOfAnother):
                        await asyncio.create_task(call())
                assert (await one.get("Q")).body == b"1"
                raise ZeroDivisionError
    assert bodies(qm) == [b"1"]


@pytest.mark.parametrize("how", ["queue", "name", "open"])
async def test_a_task_started_by_another_at_its_end_does_not_join_the_unit_of_that(
    one: aio.QueueManager, qm: QueueManager, how: str
) -> None:
    left: list[object] = []
    calls: list[asyncio.Task[object]] = []

    async def opens_and_puts() -> None:
        async with one.open("Q") as queue:
            await queue.put(b"2")

    async def leaves_a_unit_open() -> None:
        queue, group = await one.open("Q"), one.get_group("G")
        left.extend((queue, group, await anext(group)))
        call = {"queue": queue.put(b"2"), "name": one.put("Q", b"2"), "open": opens_and_puts()}
        calls.append(asyncio.create_task(call.pop(how)))
        for other in call.values():
            other.close()

    qm.create_queue("G")
    qm.put("G", b"1")
    await asyncio.create_task(leaves_a_unit_open())
    await calls[0]
    left.clear()
    await in_use(one, 0)
    assert bodies(qm) == [b"2"]
    assert bodies(qm, "G") == [b"1"]


async def test_a_waiting_get_stays_on_the_connection_of_its_queue_after_the_opening_task_ends(
    one: aio.QueueManager, qm: QueueManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    loop, get, threads, tried = asyncio.get_running_loop(), Queue.get, set[int](), asyncio.Event()

    def noted(*given: Any) -> Got:
        threads.add(threading.get_ident())
        loop.call_soon_threadsafe(tried.set)
        return get(*given)

    queue, end_task = await opened_by_a_task(one)
    monkeypatch.setattr(Queue, "get", noted)
    getting = asyncio.create_task(queue.get(wait=LIMIT_SECONDS))
    await tried.wait()
    await end_task()
    qm.put("Q", b"1")
    assert (await getting).body == b"1"
    assert len(threads) == 1
