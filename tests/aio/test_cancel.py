"""A cancel, at whatever step of a call of `inorder.aio` it comes: the call has happened and says so, or has not.

Each piece of work is cancelled at its first step, its second, and so on until it ends before the step comes; in three
moments of each (`tests.helpers.cutting`). Then the queue says what has happened, and everything else goes on. It is
done with free connections, and with one connection that another task uses: tasks that were cancelled while they waited
for it used to leave it taken for ever. Every call there is goes the same way in `aio/test_cancel_calls.py`.
"""

from __future__ import annotations

import asyncio
import contextlib
import io
import sys
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import NamedTuple

import pytest
from tests.helpers.cutting import LIMIT_SECONDS, MOMENTS, Cut, Moment, cut, ended
from tests.helpers.support import Stores, bodies, room_of

from inorder import QueueManager, aio, connect
from inorder.aio.jobs import finished
from inorder.aio.lanes import Lane
from inorder.errors import NotFound
from inorder.stores.seam.protocol import LocalStore

STEPS_MAX = 60
CONFIRM_ID = 1


class Piece(NamedTuple):
    """Work to be cancelled.

    Args:
        work: what the task does.
        before: what is on the queue, `done`: what is when all has happened.
        comes: a message that is put while the work waits.
    """

    work: Callable[[aio.QueueManager], Awaitable[object]]
    before: list[bytes]
    done: list[bytes]
    comes: bool = False


async def unit(qm: aio.QueueManager) -> None:
    async with qm.unit_of_work():
        await qm.get("Q")
        await qm.put("Q", b"2")


async def waiting_unit(qm: aio.QueueManager) -> None:
    async with qm.unit_of_work():
        await qm.get("Q", wait=60)
        await qm.put("Q", b"2")


async def unit_that_waits_for_a_second(qm: aio.QueueManager) -> None:
    async with qm.unit_of_work():
        await qm.put("Q", b"3")
        await qm.get("Q", wait=60)


async def group(qm: aio.QueueManager) -> None:
    async with qm.group("Q") as one:
        await one.put(b"1")
        await one.put(b"2")


async def got_group(qm: aio.QueueManager) -> None:
    assert [message.body async for message in qm.get_group("Q", wait=60)] == [b"1"]


async def handle(qm: aio.QueueManager) -> None:
    async with qm.open("Q") as queue:
        await queue.get(wait=60)


async def brief_put(qm: aio.QueueManager) -> None:
    await qm.run(lambda one: None, is_brief=True)  # connects: the next one is made at once, where that can be
    await qm.run(lambda one: one.put("Q", b"1"), is_brief=True)


async def brief_get(qm: aio.QueueManager) -> None:
    await qm.run(lambda one: None, is_brief=True)
    await qm.run(lambda one: one.internals.get_if("Q", lambda message: None), is_brief=True)


async def browse(qm: aio.QueueManager) -> None:
    assert [message.body async for message in qm.browse("Q")] == [b"1"]


async def stream(qm: aio.QueueManager) -> None:
    await qm.put_stream("Q", io.BytesIO(b"12"), chunk=1)


async def got_stream(qm: aio.QueueManager) -> None:
    await qm.get_stream("Q", io.BytesIO(), wait=60)


PIECES = {
    "put": Piece(lambda qm: qm.put("Q", b"1"), [], [b"1"]),
    "get": Piece(lambda qm: qm.get("Q"), [b"1"], []),
    "get that waits": Piece(lambda qm: qm.get("Q", wait=60), [], [], comes=True),
    "get outside of units": Piece(lambda qm: qm.get("Q", syncpoint=False, wait=60), [b"1"], []),
    "get of many": Piece(lambda qm: qm.get_many("Q", 2, wait=60), [b"1", b"2"], []),
    "get under a confirm id": Piece(lambda qm: qm.get("Q", confirm_id=CONFIRM_ID, wait=60), [b"1"], []),
    "unit": Piece(unit, [b"1"], [b"2"]),
    "unit whose get waits": Piece(waiting_unit, [], [b"2"], comes=True),
    "unit that waits amid": Piece(unit_that_waits_for_a_second, [], [b"3"], comes=True),
    "group": Piece(group, [], [b"1", b"2"]),
    "get of a group": Piece(got_group, [b"1"], []),
    "handle": Piece(handle, [b"1"], []),
    "brief put": Piece(brief_put, [], [b"1"]),
    "brief get": Piece(brief_get, [b"1"], []),
    "browse": Piece(browse, [b"1"], [b"1"]),
    "stream": Piece(stream, [], [b"1", b"2"]),
    "get of a stream": Piece(got_stream, [b"1"], []),
}


@pytest.mark.parametrize("connections", ["free", "busy"])
@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.parametrize("what", PIECES)
def test_a_call_that_is_cancelled_has_happened_and_says_so_or_has_not(
    stores: Stores, what: str, moment: Moment, connections: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = stores.make()
    with connect(store) as onlooker:
        onlooker.create_queue("Q")
        for step in range(1, STEPS_MAX):
            with contextlib.suppress(NotFound):
                onlooker.undo("Q", CONFIRM_ID)
            onlooker.admin.clear_queue("Q")
            for body in PIECES[what].before:
                onlooker.put("Q", body)
            with cut(monkeypatch, step, moment) as one:
                has_ended = ended(_cancelled(store, onlooker, PIECES[what], one, is_busy=connections == "busy"))
            if has_ended:
                assert step > 1, "it was never cancelled"
                return
    raise AssertionError(f"{what} has {STEPS_MAX} steps, or does not come to its end")


@contextlib.asynccontextmanager
async def used(lane: Lane) -> AsyncIterator[None]:
    """Another task makes a call on a lane, until those that the block starts wait for it, as far as they need it."""
    go_on = threading.Event()

    async def use() -> None:
        async with lane:
            await finished(lane.submit(lambda _: go_on.wait(LIMIT_SECONDS), is_revocable=False))

    other = asyncio.create_task(use())
    try:
        await asyncio.sleep(0)
        yield
        for _ in range(TURNS):
            await asyncio.sleep(0)
    finally:
        go_on.set()
        await other


@contextlib.asynccontextmanager
async def only_lane_used(qm: aio.QueueManager) -> AsyncIterator[None]:
    async with used(await qm._shared.lanes.borrow()):
        yield


async def _cancelled(store: LocalStore, onlooker: QueueManager, piece: Piece, one: Cut, *, is_busy: bool) -> bool:
    """Whether the work ended before it could be cancelled."""
    has_said = False

    async def work() -> None:
        nonlocal has_said
        await piece.work(qm)
        has_said = True
        await asyncio.sleep(60)  # here the cancel comes that was too late for the call

    async with aio.connect(store, connections=1 if is_busy else 2) as qm:
        async with only_lane_used(qm) if is_busy else contextlib.nullcontext():
            task = asyncio.create_task(one.cutting(work()))
        if piece.comes:
            while not (task.done() or qm._shared._watches or _waits(qm, onlooker)):
                await asyncio.sleep(0.001)
            onlooker.put("Q", b"1")
        while not (task.done() or (has_said and not one.came)):
            await asyncio.sleep(0.001)
        was_earlier = not task.done()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        while qm.connections_in_use:  # what the task has left is closed in the thread
            await asyncio.sleep(0.001)
        found = bodies(onlooker)
        left = [b"1"] if piece.comes else piece.before
        assert found == (piece.done if has_said else left), f"{'done' if has_said else 'cancelled'}: {found}"
        assert not onlooker.inspect.units() or "confirm" in {unit.kind for unit in onlooker.inspect.units()}
        await qm.put("Q", b"goes on", priority=9)  # everything does
        assert (await qm.get("Q", wait=60)).body == b"goes on"
    return was_earlier


def _waits(qm: aio.QueueManager, onlooker: QueueManager) -> bool:
    """Whether a call waits in its thread."""
    owners = {lane.connection.internals.owner for lane in qm._shared.lanes.all if lane.connection is not None}
    return any(room_of(onlooker).is_asleep(owner) for owner in owners)


TURNS = 5


@pytest.mark.skipif(sys.version_info < (3, 11), reason="asyncio.timeout is of Python 3.11")
def test_a_time_limit_that_comes_too_late_for_a_call_is_over_with_its_block(
    stores: Stores, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The answer is there, no TimeoutError is raised, and no cancel comes after the block."""
    store = stores.make()
    with connect(store) as onlooker:
        onlooker.create_queue("Q")
        onlooker.put("Q", b"1")

        async def work() -> bytes:
            async with aio.connect(store) as qm, asyncio.timeout(None) as limit:  # type: ignore[attr-defined]
                one.cancel = lambda: limit.reschedule(0)  # type: ignore[method-assign]
                message = await qm.get("Q")
            assert limit.expired()
            for _ in range(5):  # a cancel that was still on its way would come now
                await asyncio.sleep(0)
            return message.body

        with cut(monkeypatch, COMMIT, "begun") as one:
            assert ended(one.cutting(work())) == b"1"
        assert one.came is False
        assert bodies(onlooker) == []


COMMIT = 3  # the third thing that a thread does for a task that connects and gets
