"""A unit of work belongs to its thread and its asyncio task: others may end it, but not put or get in it."""

from __future__ import annotations

import asyncio
import gc
import io
import subprocess
import sys
import threading
from collections.abc import Callable, Generator, Iterator
from typing import Any

import pytest
from tests.helpers.support import LIMIT_SECONDS, Call, Stores, bodies, put_group

import inorder
from inorder import NoMessageAvailable, QueueManager, connect
from inorder.errors import CallerError, UnitOfAnother
from inorder.model.message import IN_GROUP

Opening = Callable[[QueueManager], object]
OPENINGS: dict[str, Opening] = {
    "a block": lambda qm: qm.unit_of_work().__enter__(),
    "a put": lambda qm: qm.put("Q", b"mine", syncpoint=True),
    "a get": lambda qm: qm.get("Q", syncpoint=True),
    "a get if persistent": lambda qm: qm.get("Q", syncpoint_if_persistent=True),
    "a group": lambda qm: qm.group("Q").__enter__(),
}
JOINING: dict[str, Opening] = {
    "put": lambda qm: qm.put("Q", b"x", syncpoint=True),
    "put_many": lambda qm: qm.put_many("Q", [b"x", b"y"], syncpoint=True),
    "get": lambda qm: qm.get("Q", syncpoint=True),
    "get that waits": lambda qm: qm.get("Q", syncpoint=True, wait=inorder.FOREVER),
    "get if persistent": lambda qm: qm.get("Q", syncpoint_if_persistent=True),
    "get_many": lambda qm: qm.get_many("Q", 2, syncpoint=True),
    "get_group": lambda qm: list(qm.get_group("Q")),
    "put_stream": lambda qm: qm.put_stream("Q", io.BytesIO(b"x")),
    "get_stream": lambda qm: qm.get_stream("Q", io.BytesIO()),
    "group": lambda qm: qm.group("Q").__enter__(),
    "a put through a handle": lambda qm: qm.open("Q").put(b"x", syncpoint=True),
}
IN_A_BLOCK: dict[str, Opening] = {  # calls without a syncpoint option
    "put": lambda qm: qm.put("Q", b"x"),
    "get": lambda qm: qm.get("Q", wait=inorder.FOREVER),
    "put_many": lambda qm: qm.put_many("Q", [b"x"]),
    "get_many": lambda qm: qm.get_many("Q", 2),
}


@pytest.fixture
def qm(qm: QueueManager) -> Iterator[QueueManager]:
    qm.put_many("Q", [b"1", b"2"])
    yield qm
    qm.back_out()


def elsewhere(act: Callable[[], object]) -> Any:
    """Makes a call on another thread; returns its result."""
    return Call(act).result()


def refused(act: Callable[[], object]) -> UnitOfAnother:
    """Makes a call on another thread; returns its error."""
    error = Call(act).error()
    assert isinstance(error, UnitOfAnother), error
    return error


# ---- threads


@pytest.mark.parametrize("opening", OPENINGS.values(), ids=OPENINGS)
def test_calls_that_would_join_the_unit_of_another_thread_are_refused(qm: QueueManager, opening: Opening) -> None:
    for call in (*JOINING.values(), *(IN_A_BLOCK.values() if opening is OPENINGS["a block"] else ())):
        kept = opening(qm)
        units = qm.inspect.units()
        error = refused(lambda call=call: call(qm))  # type: ignore[misc]
        assert (error.reason, error.thread, error.task) == (9021, "MainThread", None)
        assert qm.inspect.units() == units
        call(qm)  # its own thread may
        qm.back_out()
        assert bodies(qm) == [b"1", b"2"]
        del kept
    assert "thread 'MainThread' has a unit of work open" in str(error)
    assert "qm.connect()" in str(error)
    assert isinstance(error, CallerError)


def test_calls_that_take_effect_at_once_may_be_made_by_any_thread(qm: QueueManager) -> None:
    """Such a call is not part of the unit, and is not backed out with it."""

    def act() -> None:
        qm.put("Q", b"at once", syncpoint=False)
        result = qm.put("Q", b"confirmed", confirm_id=7)
        assert result.uid is not None
        qm.confirm_put("Q", result.uid, confirm_id=7)
        assert qm.get("Q", syncpoint=False).body == b"1"
        assert bodies(qm) == [b"2", b"at once", b"confirmed"]
        assert qm.depth("Q") == 4  # the uncommitted message counts

    with qm.unit_of_work() as unit:
        qm.put("Q", b"mine")
        elsewhere(act)
        unit.back_out()
    assert bodies(qm) == [b"2", b"at once", b"confirmed"]


def test_a_block_that_another_thread_begins_is_2128_with_the_remedy(qm: QueueManager) -> None:
    with qm.unit_of_work():
        assert refused(lambda: qm.unit_of_work().__enter__()).reason == 2128


@pytest.mark.parametrize("how", ["commit", "back_out", "prepare"])
def test_any_thread_may_settle_the_unit_and_then_a_new_one_can_be_opened(qm: QueueManager, how: str) -> None:
    with qm.unit_of_work() as unit:
        qm.put("Q", b"mine")
        elsewhere(lambda: qm.prepare("P") if how == "prepare" else getattr(qm, how)())
        assert unit.status != "open"
        qm.put("Q", b"after")  # outside any unit
    if how == "prepare":
        qm.settle("P", "commit")
    assert sorted(bodies(qm)) == sorted([b"1", b"2", b"after", *([] if how == "back_out" else [b"mine"])])
    with qm.unit_of_work():
        refused(lambda: qm.put("Q", b"x"))


def test_a_block_or_a_connection_may_end_in_another_thread(qm: QueueManager) -> None:
    unit = qm.unit_of_work().__enter__()
    qm.put("Q", b"3")
    elsewhere(lambda: unit.__exit__(None, None, None))
    assert (unit.status, bodies(qm)) == ("committed", [b"1", b"2", b"3"])
    other = qm.connect()
    other.put("Q", b"4", syncpoint=True)
    elsewhere(other.close)
    assert bodies(qm) == [b"1", b"2", b"3", b"4"]


def test_a_group_may_end_in_another_thread(qm: QueueManager) -> None:
    group = qm.group("Q").__enter__()
    group.put(b"3")
    refused(lambda: group.put(b"x"))
    elsewhere(lambda: group.__exit__(None, None, None))
    assert [message.group_status for message in qm.browse("Q")] == ["no", "no", "last"]


def test_a_generator_may_be_collected_by_another_thread(qm: QueueManager) -> None:
    class Circle:
        def __init__(self) -> None:
            self.loop: Generator[Any, None, None] = qm.get_group("Q")
            self.itself = self

    def work(manager: QueueManager) -> Generator[None, None, None]:
        with manager.unit_of_work():
            manager.put("Q", b"x")
            yield

    circle: Any = Circle()
    next(circle.loop)
    del circle
    elsewhere(gc.collect)
    assert bodies(qm) == [b"1", b"2"]
    steps = work(qm)
    next(steps)
    box = [steps]
    del steps
    elsewhere(box.clear)  # drops its last reference
    assert (bodies(qm), qm.inspect.units()) == ([b"1", b"2"], [])


def test_a_loop_over_a_group_can_continue_in_another_thread(qm: QueueManager) -> None:
    qm.get_many("Q", 2)
    put_group(qm, b"a", b"b", b"c")
    loop = qm.get_group("Q")
    assert next(loop).body == b"a"
    assert [message.body for message in elsewhere(lambda: list(loop))] == [b"b", b"c"]
    assert qm.depth("Q") == 0


def test_any_thread_may_continue_a_unit_that_an_ended_thread_left_open(qm: QueueManager) -> None:
    call = Call(lambda: qm.put("Q", b"3", syncpoint=True))
    call.result()
    qm.put("Q", b"4", syncpoint=True)
    elsewhere(lambda: qm.put("Q", b"5", syncpoint=True))
    qm.commit()
    assert bodies(qm) == [b"1", b"2", b"3", b"4", b"5"]


def test_a_call_that_opens_no_unit_does_not_make_its_thread_the_owner(qm: QueueManager) -> None:
    qm.create_queue("R")
    with pytest.raises(NoMessageAvailable):
        qm.get("R", syncpoint=True)
    qm.put_many("R", [], syncpoint=True)
    qm.put("R", b"light", persistent=False)
    qm.get("R", syncpoint_if_persistent=True)
    go_on, opened = threading.Event(), threading.Event()

    def act() -> None:
        qm.put("Q", b"3", syncpoint=True)
        opened.set()
        go_on.wait(LIMIT_SECONDS)
        qm.commit()

    call = Call(act)
    assert opened.wait(LIMIT_SECONDS)
    with pytest.raises(UnitOfAnother) as raised:
        qm.put("Q", b"x", syncpoint=True)
    assert raised.value.thread.startswith("Thread-")
    go_on.set()
    call.result()
    assert bodies(qm) == [b"1", b"2", b"3"]


def test_a_refused_call_leaves_handles_groups_and_streams_unchanged(qm: QueueManager) -> None:
    stream = io.BytesIO(b"data")
    with qm.unit_of_work():
        qm.put("Q", b"3", flags=IN_GROUP, logical=True)
        refused(lambda: qm.put("Q", b"x", flags=IN_GROUP, logical=True))
        refused(lambda: qm.put_stream("Q", stream))
        for _ in range(3):
            refused(lambda: qm.group("Q").__enter__())
        assert (stream.tell(), qm.inspect.status("Q").open_output_count) == (0, 1)
        assert qm.put("Q", b"4", flags=IN_GROUP, logical=True).sequence_number == 2


# ---- asyncio tasks: two callers on one thread


async def test_a_put_of_another_task_does_not_join_the_unit(qm: QueueManager) -> None:
    qm.get_many("Q", 2)
    inside, go_on = asyncio.Event(), asyncio.Event()

    async def work() -> None:
        with qm.unit_of_work() as unit:
            qm.put("Q", b"mine")
            inside.set()
            await go_on.wait()
            qm.put("Q", b"mine too")
            unit.back_out()

    async def put() -> None:
        await inside.wait()
        try:
            with pytest.raises(UnitOfAnother, match="task 'worker' of thread 'MainThread'") as raised:
                qm.put("Q", b"its own")
            assert (raised.value.task, raised.value.thread) == ("worker", "MainThread")
            qm.put("Q", b"at once", syncpoint=False)
        finally:
            go_on.set()
        await asyncio.sleep(0)

    await asyncio.gather(asyncio.create_task(work(), name="worker"), put())
    qm.put("Q", b"its own")
    assert bodies(qm) == [b"at once", b"its own"]


async def test_a_callback_of_the_event_loop_does_not_join_the_unit_of_the_task(qm: QueueManager) -> None:
    qm.get_many("Q", 2)
    refusals: list[Exception] = []

    def put() -> None:
        try:
            qm.put("Q", b"x")
        except UnitOfAnother as error:
            refusals.append(error)

    with qm.unit_of_work():
        asyncio.get_running_loop().call_soon(put)
        await asyncio.sleep(0)
    assert len(refusals) == 1


def test_tasks_that_run_inside_a_block_belong_to_it(qm: QueueManager) -> None:
    """No task opened the unit, so each task in its thread is part of it."""

    async def put(body: bytes) -> None:
        qm.put("Q", body)

    async def main() -> None:
        await asyncio.gather(put(b"3"), put(b"4"))

    with qm.unit_of_work():
        asyncio.run(main())
    assert bodies(qm) == [b"1", b"2", b"3", b"4"]


def test_the_unit_of_a_finished_task_still_belongs_to_its_thread(qm: QueueManager) -> None:
    async def begin() -> None:
        qm.put("Q", b"3", syncpoint=True)

    loop = asyncio.new_event_loop()
    task = loop.create_task(begin())
    loop.run_until_complete(task)
    loop.close()
    error = refused(lambda: qm.put("Q", b"x", syncpoint=True))
    assert (error.thread, error.task) == ("MainThread", None)
    qm.put("Q", b"4", syncpoint=True)
    qm.commit()
    assert bodies(qm) == [b"1", b"2", b"3", b"4"]


def test_a_unit_does_not_keep_its_task_alive(stores: Stores) -> None:
    with connect(stores.make()) as qm:
        qm.create_queue("Q")
        loop = asyncio.new_event_loop()

        async def begin() -> None:
            qm.put("Q", b"1", syncpoint=True)
            await asyncio.sleep(LIMIT_SECONDS)

        task = loop.create_task(begin())
        loop.run_until_complete(asyncio.sleep(0))
        with pytest.raises(UnitOfAnother):  # the task may continue at any time
            qm.put("Q", b"2", syncpoint=True)
        task.cancel()
        loop.run_until_complete(asyncio.gather(task, return_exceptions=True))
        loop.close()
        del task
        gc.collect()
        qm.put("Q", b"2", syncpoint=True)
        qm.commit()
        assert bodies(qm) == [b"1", b"2"]


WITHOUT_ASYNCIO = """
import sys
import inorder
with inorder.connect({store!r}) as qm:
    qm.create_queue("Q")
    with qm.unit_of_work():
        qm.put("Q", b"1")
        qm.get("Q", syncpoint=False) if qm.depth("Q") > 1 else None
    assert qm.get("Q", syncpoint=True).body == b"1"
    qm.commit()
assert "asyncio" not in sys.modules
class Unfinished: pass
sys.modules["asyncio"] = Unfinished  # another thread is in the middle of importing it
with inorder.connect() as qm, qm.unit_of_work():
    qm.create_queue("Q")
    qm.put("Q", b"1")
"""


@pytest.mark.parametrize("store", [":memory:", "file.db"])
def test_a_unit_of_work_imports_no_asyncio(store: str, tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    program = WITHOUT_ASYNCIO.format(store=store)
    subprocess.run([sys.executable, "-c", program], check=True)
