"""`async def` tasks share one loop; they have attempts, limits and ends as all tasks; their calls join the unit."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest
from tests.helpers.support import LIMIT_SECONDS, bodies
from tests.helpers.working import Heard, at_work, worked

from inorder import Got, Message, QueueManager, Reason, aio
from inorder.errors import ArgumentError, CallerError, ConnectionClosed
from inorder.work import Backoff, Dead, Outcome, Tasks, Worker

pytest.importorskip("msgspec", reason="without inorder[work] tasks have no arguments")
DONE, RETRIED, DEAD, OVERDUE, RETURNED = (
    Outcome.DONE, Outcome.RETRIED, Outcome.DEAD, Outcome.OVERDUE, Outcome.RETURNED,
)  # fmt: skip
AT_ONCE = Backoff(first=0, most=0, jitter=0)
LATER = Backoff(first=60, most=60)


@pytest.fixture
def tasks(qm: QueueManager) -> Tasks:
    qm.create_queue("NEXT")
    return Tasks()


# --- units of work


@pytest.mark.every_store
def test_puts_and_gets_of_an_async_task_are_part_of_the_unit_of_its_message(qm: QueueManager, tasks: Tasks) -> None:
    seen = list[Any]()

    @tasks.task("Q", name="add", backoff=AT_ONCE)
    async def add(number: int, own: aio.QueueManager, message: Message) -> None:
        await own.put("NEXT", b"%d" % number)
        await told.put_async(number)
        seen.append((await own.get("OTHER", wait=600)).body)
        if not message.backout_count:
            raise ValueError("not yet")

    @tasks.task("Q", name="told")
    async def told(number: int) -> None:
        seen.append(number)

    qm.create_queue("OTHER")
    qm.put("OTHER", b"other")
    add.put(3, qm=qm)
    heard = worked(qm, tasks, 3)
    assert heard.outcomes == [RETRIED, DONE, DONE]
    assert seen == [b"other", b"other", 3], "what failed has got and sent nothing"
    assert (bodies(qm, "NEXT"), qm.depth("OTHER"), qm.inspect.units()) == ([b"3"], 0, [])


def test_functions_of_messages_and_of_groups_may_be_async_too(qm: QueueManager, tasks: Tasks) -> None:
    seen = list[Any]()

    @tasks.task("Q")
    async def one(message: Got, own: aio.QueueManager) -> None:
        seen.append((message.body, await own.depth("NEXT")))

    @tasks.task("NEXT", group="list")
    async def several(messages: list[Got]) -> None:
        seen.append([message.body for message in messages])

    with qm.group("NEXT") as group:
        group.put(b"1")
        group.put(b"2")
    worked(qm, tasks)
    qm.put("Q", b"0")
    worked(qm, tasks)
    assert seen == [[b"1", b"2"], (b"0", 0)]
    with pytest.raises(ArgumentError, match="group"):
        tasks.task("OTHER", name="other", group="iterator")(several)


def test_a_unit_committed_by_its_async_task_stays_committed_after_an_error(qm: QueueManager, tasks: Tasks) -> None:
    refused = list[str]()

    @tasks.task("Q")
    async def pack(message: Got, own: aio.QueueManager) -> None:
        with pytest.raises(CallerError) as nested:
            async with own.unit_of_work():
                raise AssertionError
        refused.append(str(nested.value))
        await own.put("NEXT", b"kept")
        await own.commit()
        raise Dead("afterwards")

    qm.put("Q", b"1")
    heard = worked(qm, tasks)
    assert heard.outcomes == [DONE]
    assert "was committed, then: afterwards" in heard.told[0].text
    assert "has a unit of work already" in refused[0]
    assert (bodies(qm, "NEXT"), qm.depth("Q")) == ([b"kept"], 0)


def test_asyncio_tasks_of_a_call_put_apart_from_its_unit_and_end_with_the_worker(
    qm: QueueManager, tasks: Tasks
) -> None:
    left, kept = list[asyncio.Task[Any]](), list[aio.QueueManager]()

    @tasks.task("Q")
    async def pack(message: Got, own: aio.QueueManager) -> None:
        await asyncio.gather(*(own.put("NEXT", b"apart", syncpoint=False) for _ in range(3)))
        with pytest.raises(CallerError, match="started inside"):
            await asyncio.create_task(own.put("NEXT", b"refused"))
        left.append(asyncio.create_task(asyncio.sleep(3600)))
        kept.append(own)
        raise Dead("no")

    @tasks.task("LATE")
    async def late(message: Got) -> None:
        with pytest.raises(ConnectionClosed):
            await kept[0].put("NEXT", b"too late")

    qm.create_queue("LATE")
    qm.put("Q", b"1")
    with at_work(qm, tasks) as (_, heard):
        heard.attempts(1)
        qm.put("LATE", b"1")
        heard.attempts(2)
    assert heard.outcomes == [DEAD, DONE]
    assert bodies(qm, "NEXT") == [b"apart"] * 3
    assert left[0].cancelled(), "the end of the worker ends its loop"


def test_an_async_task_that_loses_its_connection_gets_an_error_for_each_call(qm: QueueManager, tasks: Tasks) -> None:
    @tasks.task("Q", backoff=LATER, attempts=100)  # retried at once until the worker has stopped
    async def pack(message: Got, own: aio.QueueManager) -> None:
        await own.put("NEXT", b"undone")
        await own.run(lambda connection: connection.internals.abandon())
        for call in (own.put("NEXT", b"too late"), own.commit()):
            with pytest.raises(ConnectionClosed):
                await call

    qm.put("Q", b"1")
    heard = worked(qm, tasks)
    assert set(heard.outcomes) == {RETRIED}, "its message is back at once, and is tried again"
    assert heard.told[0].text.startswith("ConnectionClosed")
    assert (qm.depth("Q"), qm.depth("NEXT"), qm.inspect.units()) == (1, 0, [])


# --- attempts


def test_exceptions_of_an_async_task_have_the_same_outcomes_as_of_any_function(qm: QueueManager, tasks: Tasks) -> None:
    @tasks.task("Q", attempts=2, backoff=AT_ONCE, dead_on=UnicodeError)
    async def fail(how: str) -> None:
        raise {"dead": Dead("at once"), "kind": UnicodeError("no"), "cancel": asyncio.CancelledError()}[how]

    for how in ("dead", "kind", "cancel"):
        fail.put(how, qm=qm)
    qm.put("Q", b"[]", properties={"task": fail.name})
    worked(qm, tasks, 5)
    letters = sorted((int(one.why.reason), one.why.error.split(" (")[0]) for one in qm.dead.letters())
    assert letters == [
        (2362, "CancelledError"),
        (2362, "UnicodeError: no"),
        (Reason.TASK_ARGUMENTS, "the arguments do not match the task: expected `object`, got `array`"),
        (65_536, "at once"),
    ]


# --- many at once


def test_async_calls_run_concurrently_on_the_loop_and_a_blocking_task_in_its_thread(
    qm: QueueManager, tasks: Tasks
) -> None:
    running, most, threads = 0, list[int](), set[str]()
    blocks, goes_on = threading.Event(), asyncio.Event()

    @tasks.task("Q", concurrency=3)
    async def wait(message: Got) -> None:
        nonlocal running
        threads.add(threading.current_thread().name)
        running += 1
        most.append(running)
        if running == 3:
            await asyncio.get_running_loop().run_in_executor(None, blocks.wait, LIMIT_SECONDS)
            goes_on.set()
        await goes_on.wait()
        running -= 1

    @tasks.task("NEXT", threads=1)
    def block(message: Got) -> None:
        threads.add(threading.current_thread().name)
        blocks.set()

    qm.put_many("Q", [b""] * 5)
    with at_work(qm, tasks) as (_, heard):
        heard.until(lambda _: True)
        qm.put("NEXT", b"")
        heard.attempts(6)
    assert (heard.outcomes, max(most)) == ([DONE] * 6, 3)
    assert threads == {"inorder work: loop", f"inorder work {block.__module__}.{block.__qualname__}"}


@pytest.mark.parametrize(("named", "word"), [({"threads": 2}, "concurrency"), ({"concurrency": 0}, "1 to 1,000")])
def test_an_async_task_takes_concurrency_and_a_blocking_one_threads(named: dict[str, int], word: str) -> None:
    async def wait(message: Got) -> None: ...

    with pytest.raises(ArgumentError, match=word):
        Tasks().task("Q", **named)(wait)  # type: ignore[call-overload]
    with pytest.raises(ArgumentError, match="threads=NUMBER"):
        Tasks().task("Q", concurrency=2)(lambda message: None)


# --- ended from outside


class Waiting:
    """A task whose calls wait until they are cancelled, and then clean up."""

    def __init__(self, qm: QueueManager, **options: Any) -> None:
        self.tasks, self.began, self.heard = Tasks(), threading.Event(), Heard()
        self.ended, self.seen = threading.Event(), list[str]()
        self.tasks.task("Q", name="wait", concurrency=1, backoff=LATER, **options)(self._wait)
        qm.put("Q", b"1")

    async def _wait(self, message: Got, own: aio.QueueManager) -> None:
        await own.put("NEXT", b"never")
        self.began.set()
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            await asyncio.sleep(0)
            try:
                await own.put("NEXT", b"too late")
            except CallerError as error:
                self.seen.append(type(error).__name__)
            self.ended.set()
            raise


@pytest.mark.parametrize("keeps", [True, False])
def test_the_queues_that_a_call_leaves_open_are_closed_at_its_end(qm: QueueManager, tasks: Tasks, keeps: bool) -> None:
    queues = list[aio.Queue]()

    @tasks.task("Q", concurrency=1)
    async def leaves_open(message: Got, own: aio.QueueManager) -> None:
        queue = await own.open("NEXT", input="exclusive")
        if keeps:
            queues.append(queue)

    qm.put_many("Q", [b"1", b"2"])
    assert worked(qm, tasks, 2).outcomes == [DONE, DONE]
    assert [one.closed for one in queues] == [True, True] * keeps


def test_an_asyncio_task_that_outlives_its_call_can_end_the_block_of_a_queue(qm: QueueManager, tasks: Tasks) -> None:
    ended = threading.Event()

    @tasks.task("Q")
    async def leaves_task(message: Got, own: aio.QueueManager) -> None:
        queue, inside = await own.open("NEXT"), asyncio.Event()

        async def outlive() -> None:
            try:
                async with queue:
                    inside.set()
                    await asyncio.Event().wait()
            finally:
                ended.set()

        left.append(asyncio.create_task(outlive()))
        await inside.wait()

    left = list[asyncio.Task[None]]()
    qm.put("Q", b"1")
    assert worked(qm, tasks, 1).outcomes == [DONE]
    assert ended.wait(LIMIT_SECONDS), "the end of the worker cancels it"


@pytest.mark.every_store
@pytest.mark.parametrize("replaces_threads", [True, False])
def test_an_overdue_async_call_is_cancelled_and_does_not_wear_out_the_worker(
    qm: QueueManager, tasks: Tasks, replaces_threads: bool
) -> None:
    waiting = Waiting(qm, timeout=0.01)
    with Worker(qm, waiting.tasks, log=waiting.heard, replaces_threads=replaces_threads) as worker:
        waiting.heard.attempts(1)
        assert waiting.ended.wait(LIMIT_SECONDS) or not waiting.began.is_set()
        qm.put("Q", b"2")
        waiting.heard.attempts(2)
        assert not worker.is_worn
    assert waiting.heard.outcomes == [OVERDUE, OVERDUE]
    assert set(waiting.seen) <= {"ConnectionClosed"}
    assert (qm.depth("Q"), qm.depth("NEXT"), qm.inspect.units()) == (2, 0, [])


def test_a_stop_cancels_an_async_call_waits_for_its_end_and_returns_its_message(qm: QueueManager, tasks: Tasks) -> None:
    waiting = Waiting(qm)
    worker = qm.worker(waiting.tasks, log=waiting.heard)
    worker.start()
    assert waiting.began.wait(LIMIT_SECONDS)
    assert worker.stop(grace=0) == 1
    assert waiting.ended.is_set(), "the stop has waited for it"
    assert (waiting.heard.outcomes, waiting.seen) == ([RETURNED], ["ConnectionClosed"])
    assert (qm.depth("Q"), qm.depth("NEXT"), qm.inspect.units(), worker.is_busy) == (1, 0, [], False)


@pytest.mark.parametrize("replaces_threads", [True, False])
def test_an_async_call_that_ignores_its_cancellation_is_abandoned(
    qm: QueueManager, tasks: Tasks, replaces_threads: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("inorder.work.lane.CANCEL_SECONDS", 0.01)
    goes_on, heard = threading.Event(), Heard()

    @tasks.task("Q", timeout=0.01, concurrency=1, backoff=LATER)
    async def block(message: Got) -> None:
        goes_on.wait(LIMIT_SECONDS)  # this blocks the loop, too

    qm.put("Q", b"1")
    with Worker(qm, tasks, log=heard, replaces_threads=replaces_threads) as worker:
        heard.attempts(1)
        if replaces_threads:
            qm.put("Q", b"2")
            heard.attempts(2)
        else:
            assert worker.wait(LIMIT_SECONDS), "a worn worker does not end"
        assert worker.is_worn is not replaces_threads
        goes_on.set()
    assert heard.outcomes == [OVERDUE] * (1 + replaces_threads)
