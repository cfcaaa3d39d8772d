"""Default handles that no call uses are closed, if somebody asks for that now and then."""

from __future__ import annotations

import asyncio
from pathlib import Path

import inorder
from inorder import QueueManager, aio


def opened(qm: QueueManager) -> list[str]:
    """The queues that somebody has open."""
    return sorted(opening.name for one in qm.inspect.connections() for opening in one.opened)


def test_what_no_call_has_used_is_closed(qm: QueueManager) -> None:
    qm.create_queue("R")
    qm.put("Q", b"1")
    qm.put("R", b"1")
    qm.internals.close_unused_queues()  # both have been used
    assert opened(qm) == ["Q", "R"]
    qm.put("R", b"2")
    qm.internals.close_unused_queues()
    assert opened(qm) == ["R"]
    qm.internals.close_unused_queues()
    assert opened(qm) == []
    assert qm.get("Q").body == b"1"


def test_what_would_be_missed_stays_open(qm: QueueManager) -> None:
    qm.put("Q", b"1", flags=inorder.Flags.IN_GROUP, logical=True)
    with qm.open("Q", browse=True):
        for _ in range(3):
            qm.internals.close_unused_queues()
        assert opened(qm) == ["Q", "Q"]
    second = qm.put("Q", b"2", flags=inorder.Flags.LAST_IN_GROUP, logical=True)
    assert second.sequence_number == 2


def test_a_queue_that_was_deleted_is_let_go(qm: QueueManager) -> None:
    other = qm.connect()
    other.put("Q", b"1")
    other.internals.close_unused_queues()
    other.internals.close_unused_queues()
    qm.delete_queue("Q", purge=True)
    other.internals.close_unused_queues()
    assert opened(qm) == []


async def test_tasks_let_go_of_what_none_of_them_uses(tmp_path: Path) -> None:
    async with aio.connect(tmp_path / "store.db", connections=2) as qm:
        await qm.create_queue("Q")
        await asyncio.gather(*(qm.put("Q", b"") for _ in range(8)))
        await qm.run(lambda one: one.put("Q", b""), is_brief=True)
        assert await qm.run(opened)
        for _ in range(2):
            await qm.internals.close_unused_queues()
        assert await qm.run(opened) == []
        await qm.put("Q", b"")
