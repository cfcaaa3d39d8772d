"""`inorder.aio` has the calls of a connection, with their signatures; tasks act under leases."""

from __future__ import annotations

import asyncio
import inspect
import subprocess
import sys
from functools import partial
from typing import Any

import pytest

import inorder
from inorder import QueueManager, aio
from inorder.aio import calls
from inorder.client import admin, bulk, dead_letters, inspection, users

# The class for tasks, the class whose calls it makes, and the calls that it leaves out.
KINDS: list[tuple[type, type, set[str]]] = [
    (
        aio.QueueManager,
        QueueManager,
        {
            *("listen", "serve"),  # they call the program from threads, which cannot await
            "end_waits",  # tasks are cancelled instead
            "worker",  # it calls functions in threads of its own
        },
    ),
    (aio.Queue, inorder.Queue, set()),
    (aio.GroupWriter, inorder.GroupWriter, set()),
    (aio.UnitOfWork, inorder.UnitOfWork, set()),
    (calls.Admin, admin.Admin, set()),
    (calls.Accounts, users.Accounts, {"acting", "on_behalf_of"}),  # blocks around calls of one connection
    (calls.Bulk, bulk.Bulk, set()),
    (calls.DeadLetters, dead_letters.DeadLetters, set()),
    (calls.Inspect, inspection.Inspect, {"hook", "observe"}),  # as `listen`
]


@pytest.mark.parametrize(("ours", "theirs", "left_out"), KINDS, ids=lambda one: getattr(one, "__name__", ""))
def test_tasks_have_the_calls_of_a_connection_with_their_signatures(
    ours: type, theirs: type, left_out: set[str]
) -> None:
    names = {name for name in dir(theirs) if not name.startswith("_") and callable(getattr(theirs, name))}
    assert {name for name in names if not hasattr(ours, name)} == left_out
    for name in names - left_out - {"put_stream"}:  # it passes its keywords on
        call = getattr(ours, name)
        if inspect.iscoroutinefunction(call) and theirs not in (inorder.GroupWriter, inorder.UnitOfWork):
            assert inspect.signature(call).parameters == inspect.signature(getattr(theirs, name)).parameters, name


async def test_type_checkers_know_what_a_call_takes_and_returns() -> None:
    """Mypy checks this test, too, and reports `type: ignore` comments that it does not need."""

    async with aio.connect() as qm:
        await qm.create_queue("Q", max_depth=5)
        depth: int = await qm.depth("Q")
        assert depth == 0
        with pytest.raises(inorder.ArgumentError):
            await qm.put("Q", b"", prio=1)  # type: ignore[call-arg]
        with pytest.raises(inorder.ArgumentError):
            await qm.alter_queue("Q", max_depth="5")  # type: ignore[arg-type]


async def test_names_of_0_1_0_still_work_with_a_warning() -> None:
    async with aio.connect() as qm:
        old: Any = qm
        await qm.create_queue("Q")
        with pytest.warns(DeprecationWarning, match="create_queue"):
            await old.create_alias("A", base_queue="Q")
        with pytest.warns(DeprecationWarning, match="admin.manager_attributes"):
            assert (await old.manager_attributes()).name == "INORDER"
        with pytest.warns(DeprecationWarning, match="inspect.look"):
            assert await old.look("Q") == []
        async with qm.open("Q", browse=True) as queue:
            old = queue
            with (
                pytest.warns(DeprecationWarning, match="qm.admin.release_lock"),
                pytest.raises(inorder.errors.NotFound),
            ):
                await old.release_lock(7)


async def test_tasks_can_work_under_one_lease_on_any_connection() -> None:
    async with aio.connect(connections=2) as qm:
        await qm.create_queue("Q")
        lease = await qm.lease(seconds=60)
        puts = [partial(inorder.QueueManager.put, queue="Q", body=str(n).encode()) for n in range(8)]
        await asyncio.gather(*(lease.run(put) for put in puts))
        same = await qm.resume_lease(lease.token)
        found = (same.name, [unit.puts for unit in await qm.inspect.units()], await qm.depth("Q"))
        assert found == (lease.name, [8], 8)
        assert await same.extend(30) < lease.ends_at
        await same.commit()
        assert sorted(one.body for one in await qm.get_many("Q", 10)) == [str(n).encode() for n in range(8)]
        for act in (lease.commit(), lease.back_out(), lease.run(lambda one: one.depth("Q")), lease.extend(5)):
            with pytest.raises(inorder.errors.LeaseOver):
                await act


async def test_a_task_with_a_unit_of_work_cannot_enter_a_lease() -> None:
    async with aio.connect() as qm:
        await qm.create_queue("Q")
        lease = await qm.lease()
        async with qm.unit_of_work():
            await qm.put("Q", b"1")
            with pytest.raises(inorder.CallerError, match="2128"):
                await lease.run(lambda one: one.put("Q", b"2"))
        await lease.back_out()
        assert await qm.depth("Q") == 1


def test_inorder_alone_loads_neither_asyncio_nor_the_hashing_of_passwords() -> None:
    late = ("inorder.aio", "asyncio", "argon2", "inorder.support.passwords")
    code = f"import sys, inorder; print([name for name in sys.modules if name.startswith({late})])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"
