"""`inorder.aio` has the calls of a connection, with their signatures; tasks act under leases."""

from __future__ import annotations

import asyncio
import inspect
import subprocess
import sys
from functools import partial

import pytest

import inorder
from inorder import QueueManager, aio


def test_signatures_are_those_of_the_calls_that_do_not_wait() -> None:
    for ours, theirs in ((aio.QueueManager, QueueManager), (aio.Queue, inorder.Queue)):
        for name, call in inspect.getmembers(ours, inspect.iscoroutinefunction):
            if not name.startswith("_") and name not in ("put_stream", "begin", "run", "awaited"):
                original = inspect.signature(getattr(theirs, name))
                assert inspect.signature(call).parameters == original.parameters, name


def test_type_checkers_know_what_a_call_takes_and_returns() -> None:
    """mypy reads this, too, and says which of these comments it does not need."""

    async def main() -> None:
        async with aio.connect() as qm:
            await qm.create_queue("Q", max_depth=5)
            depth: int = await qm.depth("Q")
            assert depth == 0
            with pytest.raises(inorder.ArgumentError):
                await qm.put("Q", b"", prority=1)  # type: ignore[call-arg]
            with pytest.raises(inorder.ArgumentError):
                await qm.alter_queue("Q", max_depth="5")  # type: ignore[arg-type]

    asyncio.run(main())


NOT_FOR_TASKS = {
    QueueManager: {
        *("listen", "hook", "observe"),  # they call the program from threads: for them is a connection without tasks
        "serve",  # it calls a function that cannot await: a task gets and replies in a unit of work
        *("watch", "end_waits"),  # a task is cancelled
        *("dead_letters", "replay", "discard_dead"),  # an operator's, who looks through a queue
        *("worker", "give_up", "tell"),  # a worker calls functions in threads of its own; these are for it
        "get_if",  # its function is called while nobody else can write: `run`
        "promises",  # for a thread that makes calls for several others: `run` does it for brief calls
        "open_growing",
        *("acting", "on_behalf_of"),  # blocks around calls of one connection
    },
    inorder.Queue: {
        *("opened_for", "given", "checked_for", "go_on", "withdraw", "take_group", "browse_on", "get_if"),
    },
    inorder.GroupWriter: set[str](),
    inorder.UnitOfWork: set[str](),
}


@pytest.mark.parametrize(
    "ours", [aio.QueueManager, aio.Queue, aio.GroupWriter, aio.UnitOfWork], ids=lambda kind: kind.__name__
)
def test_every_call_of_a_connection_is_there_for_tasks(ours: type) -> None:
    theirs = getattr(inorder, ours.__name__)
    calls = {name for name in dir(theirs) if not name.startswith("_") and callable(getattr(theirs, name))}
    assert {name for name in calls if not hasattr(ours, name)} == NOT_FOR_TASKS[theirs]


def test_tasks_act_under_a_lease_whichever_connection_they_have() -> None:
    async def main() -> None:
        async with aio.connect(connections=2) as qm:
            await qm.create_queue("Q")
            lease = await qm.lease(seconds=60)
            puts = [partial(inorder.QueueManager.put, queue="Q", body=str(n).encode()) for n in range(8)]
            await asyncio.gather(*(lease.run(put) for put in puts))
            same = await qm.resume_lease(lease.token)
            assert (same.name, [unit.puts for unit in await qm.units()], await qm.depth("Q")) == (lease.name, [8], 8)
            assert await same.extend(30) < lease.ends_at
            await same.commit()
            assert sorted(one.body for one in await qm.get_many("Q", 10)) == [str(n).encode() for n in range(8)]
            for act in (lease.commit(), lease.back_out(), lease.run(lambda one: one.depth("Q")), lease.extend(5)):
                with pytest.raises(inorder.errors.LeaseOver):
                    await act

    asyncio.run(main())


def test_a_task_with_a_unit_of_work_enters_no_lease() -> None:
    async def main() -> None:
        async with aio.connect() as qm:
            await qm.create_queue("Q")
            lease = await qm.lease()
            async with qm.unit_of_work():
                await qm.put("Q", b"1")
                with pytest.raises(inorder.CallerError, match="2128"):
                    await lease.run(lambda one: one.put("Q", b"2"))
            await lease.back_out()
            assert await qm.depth("Q") == 1

    asyncio.run(main())


def test_inorder_alone_loads_no_asyncio() -> None:
    code = "import sys, inorder; print([name for name in sys.modules if name.startswith(('inorder.aio', 'asyncio'))])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"
