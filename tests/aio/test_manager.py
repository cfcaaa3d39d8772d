"""`inorder.aio`: tasks share a few connections, and each acts as if it had its own."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
import threading
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

import pytest
from tests.helpers.cutting import ended
from tests.helpers.support import bodies, memory_alone

from inorder import FOREVER, Match, Queue, QueueManager, Reason, aio, errors
from inorder.aio.lanes import Lane
from inorder.client.session import Session
from inorder.stores.seam.protocol import LocalStore


async def in_use(qm: aio.QueueManager, count: int) -> None:
    """Waits until this number of connections is in use."""
    while qm.connections_in_use != count:
        await asyncio.sleep(0.001)


async def watched(qm: aio.QueueManager, queue: str = "Q", waiters: int = 1) -> None:
    """Waits until this number of tasks wait for a queue, and its thread watches it."""
    while True:
        watch = qm._shared._watches.get(queue)
        if watch is not None and watch._is_watching and not watch._round and watch._looking is None:
            lines = [len(line) for line in watch._lines.values()]
            if (
                sum(lines) == waiters
                and not watch._is_told
                and not any(line[0].has_news for line in watch._lines.values())
            ):
                return
        await asyncio.sleep(0.001)


# ---- calls


async def test_connect_can_be_awaited_or_used_in_async_with(store: LocalStore, qm: QueueManager) -> None:
    one = await aio.connect(store)
    await one.put("Q", b"1")
    async with one.connect(connections=1) as another:
        assert (await another.get("Q")).body == b"1"
    await one.close()
    await one.close()
    with pytest.raises(errors.ArgumentError, match="connections"):
        aio.connect(store, connections=0)
    with pytest.raises(errors.ConnectionClosed):
        await one.put("Q", b"2")


Pause = Callable[[], Awaitable[None]]


async def is_closed_inside(one: aio.QueueManager, work: Callable[[Pause], Coroutine[None, None, None]]) -> None:
    """Closes the connection while the work pauses inside its block, which must then raise ConnectionClosed."""
    inside, has_closed = asyncio.Event(), asyncio.Event()

    async def pause() -> None:
        inside.set()
        await has_closed.wait()

    working = asyncio.create_task(work(pause))
    await inside.wait()
    await one.close()
    has_closed.set()
    with pytest.raises(errors.ConnectionClosed, match="backed out"):
        await working


async def test_a_block_raises_connection_closed_if_another_task_has_closed_the_connection(
    store: LocalStore, qm: QueueManager
) -> None:
    one = await aio.connect(store)
    unit = one.unit_of_work()

    async def work(pause: Pause) -> None:
        async with unit:
            await one.put("Q", b"1")
            await pause()

    await is_closed_inside(one, work)
    assert (unit.status, qm.depth("Q")) == ("backed out", 0)


async def test_a_loop_over_a_group_raises_connection_closed_if_another_task_has_closed_the_connection(
    store: LocalStore, qm: QueueManager
) -> None:
    """The messages are on the queue again, so the loop must not end as if they had been got."""
    one = await aio.connect(store)
    qm.put("Q", b"1")

    async def work(pause: Pause) -> None:
        async for _ in one.get_group("Q"):
            await pause()

    await is_closed_inside(one, work)
    assert qm.depth("Q") == 1


async def test_a_whole_group_raises_connection_closed_if_another_task_has_closed_the_connection(
    store: LocalStore, qm: QueueManager
) -> None:
    one = await aio.connect(store)

    async def work(pause: Pause) -> None:
        async with one.group("Q") as group:
            await group.put(b"1", last=True)
            await pause()

    await is_closed_inside(one, work)
    assert qm.depth("Q") == 0


async def test_the_exit_of_a_block_waits_for_the_running_call_and_also_works_after_the_end(qm: QueueManager) -> None:
    lane, gate, seen = Lane(qm.connect), threading.Event(), list[str]()
    await lane.call(lambda _: None)
    lane.post(gate.wait)
    await asyncio.sleep(0)  # the thread gets it
    ended = lane.end(commits=False)
    leaving = asyncio.create_task(lane.exit(lambda: seen.append(threading.current_thread().name)))
    await asyncio.sleep(0)
    assert not seen
    gate.set()
    await leaving
    assert ended.is_over
    await lane.exit(lambda: seen.append("here"))
    assert seen == ["inorder aio", "here"]


async def test_an_exception_through_the_block_backs_out(store: LocalStore, qm: QueueManager) -> None:
    async def work() -> None:
        async with aio.connect(store) as one:
            await one.put("Q", b"1", syncpoint=True)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await work()
    assert bodies(qm) == []


async def test_closing_commits_the_unit_of_the_task_that_closes(store: LocalStore, qm: QueueManager) -> None:
    async with aio.connect(store) as one:
        await one.put("Q", b"1", syncpoint=True)  # R5.6
    assert bodies(qm) == [b"1"]


# ---- units of work


async def test_a_unit_belongs_to_its_task_and_other_tasks_can_put_beside_it(
    one: aio.QueueManager, qm: QueueManager
) -> None:
    begun, told = asyncio.Event(), asyncio.Event()

    async def unit() -> None:
        async with one.unit_of_work():
            await one.put("Q", b"in the unit")
            begun.set()
            await told.wait()

    task = asyncio.create_task(unit())
    await begun.wait()
    await one.put("Q", b"beside it")
    assert bodies(qm) == [b"beside it"]
    told.set()
    await task
    assert sorted(bodies(qm)) == [b"beside it", b"in the unit"]


async def test_a_call_of_a_task_that_was_started_in_a_unit_is_refused(one: aio.QueueManager, qm: QueueManager) -> None:
    async with one.unit_of_work():
        await one.put("Q", b"1")
        with pytest.raises(errors.UnitOfAnother) as refused:
            await asyncio.create_task(one.put("Q", b"2"))
        assert refused.value.data["task"] == asyncio.current_task().get_name()  # type: ignore[union-attr]
        await asyncio.create_task(one.put("Q", b"3", syncpoint=False))  # it is explicitly outside of the unit
        assert await asyncio.create_task(one.depth("Q")) == 2
    assert sorted(bodies(qm)) == [b"1", b"3"]


async def test_a_task_started_in_a_unit_may_open_its_own_unit(one: aio.QueueManager, qm: QueueManager) -> None:
    async def inner() -> None:
        async with one.unit_of_work():
            await one.put("Q", b"inner")

    with contextlib.suppress(ZeroDivisionError):
        async with one.unit_of_work():
            await one.put("Q", b"outer")
            await asyncio.create_task(inner())
            raise ZeroDivisionError
    assert bodies(qm) == [b"inner"]


async def test_a_unit_cannot_be_nested_settled_twice_or_entered_again(one: aio.QueueManager, qm: QueueManager) -> None:
    async with one.unit_of_work() as unit:
        await one.put("Q", b"1")
        with pytest.raises(errors.CallerError) as refused:
            async with one.unit_of_work():
                pass
        assert refused.value.reason is Reason.UOW_IN_PROGRESS
        await unit.commit()
        await one.put("Q", b"2")  # outside of any unit
        with pytest.raises(errors.UnitNotFound):
            await unit.back_out()
    assert unit.status == "committed"
    with pytest.raises(errors.CallerError):
        await unit.__aenter__()
    async with one.unit_of_work() as empty:
        pass
    assert empty.status == "committed"
    assert bodies(qm) == [b"1", b"2"]


async def test_a_unit_that_a_task_leaves_open_is_backed_out_when_the_task_ends(
    one: aio.QueueManager, qm: QueueManager
) -> None:
    async def leaves() -> None:
        await one.put("Q", b"1", syncpoint=True)
        assert one.connections_in_use == 1
        await one.put("Q", b"2", syncpoint=True)
        assert one.connections_in_use == 1

    await asyncio.create_task(leaves())
    await in_use(one, 0)
    assert bodies(qm) == []


async def test_a_unit_without_a_block_is_settled_by_task_or_by_name(one: aio.QueueManager, qm: QueueManager) -> None:
    await one.put("Q", b"1", syncpoint=True)
    await one.commit()
    await one.put("Q", b"2", syncpoint=True)
    await one.back_out()
    async with one.unit_of_work() as unit:
        await one.put("Q", b"3")
        await unit.prepare("P")
    assert unit.status == "prepared"
    await one.settle("P", "commit")
    assert one.connections_in_use == 0
    assert bodies(qm) == [b"1", b"3"]


# ---- groups, loops, handles


async def test_a_group_is_put_and_got_whole(one: aio.QueueManager, qm: QueueManager) -> None:
    async with one.group("Q") as group:
        for number in range(250):  # more than is fetched at once
            await group.put(b"%d" % number)
    found = [message async for message in one.get_group("Q", wait=10)]
    assert [message.body for message in found] == [b"%d" % number for number in range(250)]
    assert {message.group_id for message in found} == {group.group_id}
    assert one.connections_in_use == 0
    assert bodies(qm) == []


async def test_a_loop_over_a_group_that_is_left_early_backs_the_group_out(
    one: aio.QueueManager, qm: QueueManager
) -> None:
    with qm.group("Q") as group:
        group.put(b"1")
        group.put(b"2")
    async for _ in one.get_group("Q"):
        break
    await in_use(one, 0)
    async with contextlib.aclosing(one.get_group("Q")) as loop:
        assert (await loop.__anext__()).body == b"1"
    assert one.connections_in_use == 0
    assert [(message.body, message.backout_count) for message in qm.browse("Q")] == [(b"1", 2), (b"2", 2)]


async def test_a_browse_has_a_token_to_continue_from_and_frees_its_connection(
    one: aio.QueueManager, qm: QueueManager
) -> None:
    qm.put_many("Q", [b"1", b"2", b"3"])
    async for message in (browsing := one.browse("Q", read_order="strict")):
        if message.body == b"2":
            break
    assert one.connections_in_use == 1
    token = browsing.token
    await browsing.aclose()
    assert one.connections_in_use == 0
    assert [message.body async for message in one.browse("Q", after=token)] == [b"3"]
    async for _ in one.browse("Q"):
        break
    gc.collect()
    await in_use(one, 0)  # a loop that is dropped is closed


async def test_the_browse_loop_of_an_ended_task_is_closed_whether_or_not_its_queue_was(
    one: aio.QueueManager, qm: QueueManager
) -> None:
    qm.put_many("Q", [b"1", b"2"])
    kept: list[object] = []

    async def leaves(*, closes: bool) -> aio.Queue:
        queue, browsing = await one.open("Q"), one.browse("Q")
        kept.append(browsing)
        assert (await browsing.__anext__()).body == b"1"
        if closes:
            await queue.close()
        return queue

    kept.append(await asyncio.create_task(leaves(closes=True)))
    await in_use(one, 0)
    queue = await asyncio.create_task(leaves(closes=False))
    await queue.put(b"3")  # an open queue stays open
    assert one.connections_in_use == 1
    await queue.close()
    await in_use(one, 0)


async def test_an_open_queue_keeps_its_connection_and_its_cursor(one: aio.QueueManager, qm: QueueManager) -> None:
    qm.put_many("Q", [b"1", b"2", b"3"])
    async with one.open("Q", browse=True, input="as_queue") as queue:
        assert [(await queue.browse_first()).body, (await queue.browse_next()).body] == [b"1", b"2"]
        with pytest.raises(errors.NotOpenFor):
            await queue.put(b"4")
        other = [await asyncio.create_task(queue.browse_next())]  # any task may use it
        assert other[0].body == b"3"
        assert (await queue.get()).body == b"1"
        with pytest.raises(errors.NoMessageAvailable):
            await queue.browse_next(wait=0.01)
    assert queue.closed
    assert one.connections_in_use == 0
    queue = await one.open("Q")
    await queue.close()
    dropped = await one.open("Q")
    del dropped
    await in_use(one, 0)


async def test_a_unit_whose_beginning_was_cancelled_has_not_begun(one: aio.QueueManager, qm: QueueManager) -> None:
    async with one.open("Q") as queue:
        unit, goes_on = one.unit_of_work(), threading.Event()

        async def enters() -> None:
            async with unit:
                await queue.put(b"1")

        busy = asyncio.create_task(queue._shared.on(queue._lane, "", goes_on.wait))
        entering = asyncio.current_task()
        assert entering is not None
        await asyncio.sleep(0)
        asyncio.get_running_loop().call_soon(entering.cancel)
        with pytest.raises(asyncio.CancelledError):
            await enters()
        if hasattr(entering, "uncancel"):
            entering.uncancel()
        goes_on.set()
        await busy
        assert (unit.status, bodies(qm)) == ("new", [])
        await enters()
        assert (unit.status, bodies(qm)) == ("committed", [b"1"])


async def test_an_open_queue_of_another_task_cannot_be_used_in_a_unit(one: aio.QueueManager, qm: QueueManager) -> None:
    async with one.open("Q") as queue:

        async def other() -> None:
            async with one.unit_of_work():
                await one.put("Q", b"1")
                with pytest.raises(errors.CallerError) as refused:
                    await queue.put(b"2")
                assert refused.value.reason is Reason.UOW_NOT_AVAILABLE

        await asyncio.create_task(other())
        async with one.unit_of_work() as unit:  # but its puts are part of a unit of the task that opened it
            await queue.put(b"3")
            await unit.back_out()
    assert bodies(qm) == [b"1"]


async def test_an_open_queue_whose_task_has_ended_is_still_open(one: aio.QueueManager) -> None:
    async def opens() -> aio.Queue:
        return await one.open("Q")

    queue = await asyncio.create_task(opens())
    await queue.put(b"1")
    assert (await queue.get(wait=10)).body == b"1"
    assert one.connections_in_use == 1
    await queue.close()
    assert one.connections_in_use == 0


async def test_clearing_and_deleting_a_queue_close_the_handles_of_our_own_calls(
    one: aio.QueueManager, qm: QueueManager
) -> None:
    qm.close_queue("Q")
    await asyncio.gather(*(one.put("Q", b"1") for _ in range(4)))
    waits = asyncio.create_task(one.get("Q", wait=FOREVER, match=Match(message_id=b"none")))
    await watched(one)
    with pytest.raises(errors.ObjectInUse):
        await one.admin.clear_queue("Q")
    waits.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await waits
    assert await one.admin.clear_queue("Q") == 4
    await one.delete_queue("Q")


@pytest.mark.parametrize("is_look", [False, True])
async def test_tasks_take_turns_at_a_queue_that_is_opened_exclusively(
    one: aio.QueueManager, qm: QueueManager, is_look: bool
) -> None:
    qm.create_queue("ALONE", default_input="exclusive")
    qm.put_many("ALONE", [b"1", b"2", b"3"])

    async def look() -> bytes:
        async with one.unit_of_work():
            return await one.run(lambda each: each.get("ALONE").body)

    async def get() -> bytes:
        return await one.awaited("ALONE", look) if is_look else (await one.get("ALONE", syncpoint=False)).body

    async with one.unit_of_work():
        await one.put("Q", b"x")
        assert await asyncio.create_task(get()) == b"1"  # on one connection
    async with one.unit_of_work():
        await one.put("Q", b"y")
        assert await (asyncio.create_task(get()) if is_look else get()) == b"2"  # on the other, perhaps
    assert await get() == b"3"


# ---- requests


async def test_requests_are_answered_by_any_of_several_tasks(one: aio.QueueManager) -> None:
    async def serve() -> None:
        while True:
            async with one.unit_of_work():
                request = await one.get("Q", wait=FOREVER)
                await one.reply(request, request.body * 2)

    async def twice() -> None:
        request = await one.get("Q", wait=600)
        await one.reply(request, b"1")
        await one.reply(request, b"2")

    servers = [asyncio.create_task(serve()) for _ in range(5)]
    replies = await asyncio.gather(*(one.request("Q", b"%d" % number, timeout=600) for number in range(20)))
    assert [reply.body for reply in replies] == [b"%d" % number * 2 for number in range(20)]
    for server in servers:
        server.cancel()
    await asyncio.gather(*servers, return_exceptions=True)
    several = one.replies("Q", b"who?", timeout=600, count=2)
    answering = asyncio.create_task(twice())
    assert [reply.body async for reply in several] == [b"1", b"2"]
    await answering
    with pytest.raises(errors.NoMessageAvailable) as late:
        await one.request("Q", b"nobody", timeout=0.05)
    assert late.value.data["timeout"] == 0.05
    assert [reply.body async for reply in one.replies("Q", b"who?", timeout=0.05)] == []


# ---- loops and processes


def test_a_connection_can_be_used_only_in_its_event_loop(store: LocalStore, qm: QueueManager) -> None:
    async def make() -> aio.QueueManager:
        return await aio.connect(store)

    async def use(one: aio.QueueManager) -> None:
        with pytest.raises(errors.CallerError, match="event loop"):
            await one.put("Q", b"1")

    one = ended(make())
    ended(use(one))


@memory_alone  # the child reports by its exit status
async def test_a_call_in_a_forked_child_raises_forked_connection(one: aio.QueueManager) -> None:
    if (child := os.fork()) == 0:
        try:
            await one.put("Q", b"1")
        except errors.ForkedConnection:
            os._exit(7)
        os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7


async def test_a_unit_of_work_begins_after_one_whose_back_out_failed(
    one: aio.QueueManager, qm: QueueManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        monkeypatch.undo()
        raise errors.StoreError("the disk is full")

    with contextlib.suppress(ZeroDivisionError):
        async with one.unit_of_work():
            await one.put("Q", b"1")
            monkeypatch.setattr(Session, "settle", fail)
            raise ZeroDivisionError
    async with one.unit_of_work():
        await one.put("Q", b"2")
    await in_use(one, 0)
    assert bodies(qm) == [b"2"]


async def test_a_garbage_collected_browse_loop_is_closed_in_the_thread_of_its_connection(
    one: aio.QueueManager, qm: QueueManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed_by, close = set[int](), Queue.close

    def noted(*given: Any, **named: Any) -> object:
        closed_by.add(threading.get_ident())
        return close(*given, **named)

    qm.put("Q", b"1")
    loop = one.browse("Q")
    await anext(loop)
    monkeypatch.setattr(Queue, "close", noted)
    cycle: list[object] = [loop]
    cycle.append(cycle)
    del loop, cycle
    gc.collect()
    await in_use(one, 0)
    assert closed_by
    assert threading.get_ident() not in closed_by


async def test_a_connection_is_given_back_also_if_the_unit_that_its_task_has_left_cannot_be_backed_out(
    one: aio.QueueManager, qm: QueueManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        monkeypatch.undo()
        raise errors.StoreError("the disk is full")

    async def leave_it_open() -> None:
        await one.put("Q", b"1", syncpoint=True)
        monkeypatch.setattr(QueueManager, "back_out", fail)

    await asyncio.create_task(leave_it_open())
    await in_use(one, 0)
    await one.put("Q", b"2")
    assert bodies(qm) == [b"2"]
