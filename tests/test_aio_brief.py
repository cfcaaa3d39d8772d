"""Brief calls of tasks: made together, promised together, and each for itself."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

import inorder
from inorder import aio
from inorder.aio import brief
from inorder.errors import IN_MEMORY

TASKS = 16
Put = Callable[[int], Awaitable[object]]


def putting(qm: aio.QueueManager, *, persistent: bool = True) -> Put:
    def put(number: int) -> Awaitable[object]:
        body = str(number).encode()
        return qm.run(lambda one: one.put("Q", body, persistent=persistent), is_brief=True)

    return put


def in_tasks(path: Path | str, work: Callable[[aio.QueueManager], Awaitable[None]]) -> None:
    async def main() -> None:
        async with aio.connect(path, connections=2) as qm:
            await qm.create_queue("Q")
            await qm.run(lambda one: None, is_brief=True)  # connects
            await work(qm)

    asyncio.run(main())


@pytest.fixture
def syncs(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Grows with each sync of the log."""
    found: list[int] = []

    def sync(descriptor: int) -> None:
        found.append(descriptor)
        os.fdatasync(descriptor)

    monkeypatch.setattr("inorder.stores.sqlite.log.sync_data", sync)
    return found


def test_puts_that_come_together_share_a_sync(tmp_path: Path, syncs: list[int]) -> None:
    async def work(qm: aio.QueueManager) -> None:
        put = putting(qm)
        await put(-1)  # opens the queue, and reserves numbers
        before = len(syncs)
        await asyncio.gather(*map(put, range(TASKS)))
        assert len(syncs) <= before + 2  # the first does not wait for the others
        assert [int(one.body) for one in await qm.get_many("Q", 100)] == list(range(-1, TASKS))

    in_tasks(tmp_path / "store.db", work)


def test_an_answer_comes_when_its_put_is_on_disk(tmp_path: Path, syncs: list[int]) -> None:
    async def work(qm: aio.QueueManager) -> None:
        put = putting(qm)
        for number in range(3):
            before = len(syncs)
            await put(number)
            assert len(syncs) > before

    in_tasks(tmp_path / "store.db", work)


def test_what_cannot_be_brought_to_disk_is_answered_by_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, syncs: list[int]
) -> None:
    def fail(descriptor: int) -> None:
        raise OSError(5, "Input/output error")

    async def main() -> None:
        qm = await aio.connect(tmp_path / "store.db")
        await qm.create_queue("Q")
        put, passing = putting(qm), putting(qm, persistent=False)
        await put(-1)
        monkeypatch.setattr("inorder.stores.sqlite.log.sync_data", fail)
        found = await asyncio.gather(*map(put, range(3)), passing(3), return_exceptions=True)
        assert [type(one) for one in found[:3]] == [inorder.StoreError] * 3, found
        assert isinstance(found[3], inorder.PutResult), found
        await qm.abandon()

    asyncio.run(main())


def test_each_call_fails_alone() -> None:
    async def work(qm: aio.QueueManager) -> None:
        put = putting(qm)
        wrong = qm.run(lambda one: one.put("NONE", b""), is_brief=True)
        found = await asyncio.gather(put(1), wrong, put(2), return_exceptions=True)
        assert [type(one) for one in found] == [inorder.PutResult, inorder.errors.UnknownQueue, inorder.PutResult]
        assert await qm.depth("Q") == 2

    in_tasks(IN_MEMORY, work)


def test_a_cancelled_call_has_not_happened_and_its_neighbours_have() -> None:
    async def work(qm: aio.QueueManager) -> None:
        put = putting(qm)
        tasks = [asyncio.ensure_future(put(number)) for number in range(3)]
        await asyncio.sleep(0)  # they are submitted, and not handed over yet
        tasks[1].cancel()
        found = await asyncio.gather(*tasks, return_exceptions=True)
        assert isinstance(found[1], asyncio.CancelledError)
        assert [one.body for one in await qm.get_many("Q", 9)] == [b"0", b"2"]

    in_tasks(IN_MEMORY, work)


def test_nobody_joins_behind_a_call_that_takes_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(brief, "HELD_UP_SECONDS", -1.0)
    begun, may_end = threading.Event(), threading.Event()

    def long(one: inorder.QueueManager) -> None:
        begun.set()
        may_end.wait()

    async def work(qm: aio.QueueManager) -> None:
        first = asyncio.ensure_future(qm.run(long, is_brief=True))
        await asyncio.to_thread(begun.wait)
        await putting(qm)(1)  # it does not wait for the other
        may_end.set()
        await first

    in_tasks(IN_MEMORY, work)


def test_what_a_brief_call_leaves_open_is_not_open_for_the_next() -> None:
    async def work(qm: aio.QueueManager) -> None:
        await qm.run(lambda one: one.put("Q", b"left", syncpoint=True), is_brief=True)
        await putting(qm)(1)
        assert [one.body for one in await qm.get_many("Q", 9)] == [b"1"]

    in_tasks(IN_MEMORY, work)


def test_a_brief_call_inside_a_unit_of_work_is_part_of_it() -> None:
    async def work(qm: aio.QueueManager) -> None:
        async with qm.unit_of_work() as unit:
            await qm.put("Q", b"1")
            await qm.run(lambda one: one.put("Q", b"2"), is_brief=True)
            await unit.back_out()
        assert await qm.depth("Q") == 0

    in_tasks(IN_MEMORY, work)


def test_brief_calls_that_were_made_before_a_close_are_over_after_it(tmp_path: Path) -> None:
    async def main() -> None:
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

    asyncio.run(main())
