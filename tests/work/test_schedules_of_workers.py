"""Schedules that a worker runs beside its tasks, or alone: puts, reports, retries, and ends."""

from __future__ import annotations

import threading
from datetime import datetime, timezone
from typing import Any

import pytest
from tests.helpers.support import LIMIT_SECONDS, bodies
from tests.helpers.working import Heard, at_work

from inorder import Message, QueueManager
from inorder.errors import ArgumentError
from inorder.testing import ManualClock
from inorder.testing.stores import RestartableStore
from inorder.work import Schedule, Tasks, WorkerEvent
from inorder.work.periodic import Periodic, standings

pytest.importorskip("cronsim", reason="without inorder[work] there are no schedules")
HOUR = 3600.0
BEGIN = datetime(2026, 3, 1, 0, 30, tzinfo=timezone.utc).timestamp()


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(BEGIN)


@pytest.fixture
def tasks(qm: QueueManager, clock: ManualClock) -> Tasks:
    """Tasks with a schedule whose second run is due at once."""
    tasks = Tasks()

    @tasks.periodic("0 * * * *", queue="Q", name="hourly")
    def hourly(due: datetime) -> bytes:
        return due.strftime("%d %H:%M").encode()

    Periodic(qm, tasks.schedules).put_due()  # the schedule is seen for the first time
    clock.advance(HOUR)
    return tasks


def puts(heard: Heard) -> list[WorkerEvent]:
    return [one for one in heard.told if one.kind == "put"]


def trouble(heard: Heard) -> list[str]:
    return [one.text for one in heard.told if one.kind == "trouble"]


@pytest.mark.parametrize("has_task", [False, True])
def test_a_worker_puts_due_messages_and_processes_them_if_it_has_a_task(
    qm: QueueManager, tasks: Tasks, has_task: bool
) -> None:
    seen = list[bytes]()
    if has_task:
        tasks.task("Q", name="see")(lambda message: seen.append(message.body))
    with at_work(qm, tasks) as (worker, heard):
        heard.until(lambda heard: bool(puts(heard)))
        heard.attempts(int(has_task))
        assert worker.is_busy
    (event,) = puts(heard)
    assert (event.schedule, event.task, event.queue, event.seconds) == ("hourly", "", "Q", HOUR / 2)
    assert (seen if has_task else bodies(qm)) == [b"01 01:00"]
    assert qm.inspect.units() == []


def test_a_schedule_that_fails_stops_nothing_and_is_reported_once(
    qm: QueueManager, tasks: Tasks, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("inorder.work.periodic.RETRY_SECONDS", 0.0)
    tries = threading.Semaphore(0)
    fails = True

    @tasks.periodic("0 * * * *", queue="Q", name="failing")
    def failing(due: datetime) -> bytes:
        tries.release()
        if fails:
            raise KeyError("price")
        return b"at last"

    tasks.add(Schedule(name="late", cron="0 * * * *", queue="Q"))
    Periodic(qm, tasks.schedules).put_due()
    clock.advance(HOUR)
    with at_work(qm, tasks) as (worker, heard):
        for _ in range(3):
            assert tries.acquire(timeout=LIMIT_SECONDS)
        heard.until(lambda heard: len(puts(heard)) == 2)
        assert not worker.stopped
        fails = False
        heard.until(lambda heard: len(puts(heard)) == 3)
    assert len(trouble(heard)) == 1
    assert trouble(heard)[0].startswith("KeyError: 'price' (test_schedules_of_workers.py:")
    assert b"at last" in bodies(qm)


def test_observers_get_each_put_and_each_failed_try(
    qm: QueueManager, tasks: Tasks, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("inorder.work.periodic.RETRY_SECONDS", 0.0)
    changed, events = threading.Condition(), list[Any]()

    def observe(event: Any) -> None:
        if event.name == "inorder.worker":
            with changed:
                events.append(event)
                changed.notify_all()

    def until(count: int) -> None:
        with changed:
            assert changed.wait_for(lambda: len(events) >= count, LIMIT_SECONDS), events

    qm.inspect.observe(observe)
    qm.alter_queue("Q", put_allowed=False)
    with at_work(qm, tasks):
        until(2)
        qm.alter_queue("Q", put_allowed=True)
        with changed:
            assert changed.wait_for(lambda: events[-1].metadata["kind"] == "put", LIMIT_SECONDS), events
    assert {one.metadata["kind"] for one in events[:2]} == {"trouble"}
    put = events[-1]
    assert (put.metadata["schedule"], put.metadata["queue"], put.measurements["seconds"]) == ("hourly", "Q", HOUR / 2)


def test_a_stop_abandons_a_body_function_that_does_not_end_and_puts_nothing(
    qm: QueueManager, clock: ManualClock
) -> None:
    tasks, began, goes_on = Tasks(), threading.Event(), threading.Event()

    @tasks.periodic("0 * * * *", queue="Q", name="endless")
    def endless(due: datetime) -> Message:
        began.set()
        goes_on.wait(LIMIT_SECONDS)
        return Message(b"too late")

    Periodic(qm, tasks.schedules).put_due()
    clock.advance(HOUR)
    worker = qm.worker(tasks, log=Heard())
    worker.start()
    assert began.wait(LIMIT_SECONDS)
    worker.stop(grace=0)
    assert not worker.is_busy
    goes_on.set()
    assert worker._timekeeper is not None
    worker._timekeeper.thread.join(LIMIT_SECONDS)
    assert (qm.depth("Q"), qm.inspect.units()) == (0, [])
    assert [one.overdue for one in standings(qm, tasks.schedules)] == [True]


def test_a_thread_that_connects_while_the_worker_stops_puts_nothing(
    qm: QueueManager, tasks: Tasks, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    began, goes_on = threading.Event(), threading.Event()

    def connect(self: QueueManager, *, connect: Any = QueueManager.connect) -> Any:
        began.set()
        assert goes_on.wait(LIMIT_SECONDS)
        return connect(self)

    clock.advance(HOUR)
    depth = qm.depth("Q")
    worker = qm.worker(tasks, log=Heard())
    monkeypatch.setattr(QueueManager, "connect", connect)
    worker.start()
    assert began.wait(LIMIT_SECONDS)
    worker.stop(grace=0)
    goes_on.set()
    assert worker._timekeeper is not None
    worker._timekeeper.thread.join(LIMIT_SECONDS)
    assert (qm.depth("Q"), qm.inspect.units()) == (depth, [])


def test_a_queue_manager_that_stops_stops_schedules(qm: QueueManager, tasks: Tasks, store: RestartableStore) -> None:
    worker = qm.worker(tasks, log=Heard())
    with qm.connect() as operator:
        operator.admin.stop()
    worker.start()
    assert worker.wait(LIMIT_SECONDS), "the schedules go on though the queue manager is stopping"
    assert worker.stopped.keys() == {"hourly"}
    worker.stop()


# --- registering


def test_names_of_tasks_and_schedules_must_be_unique(tasks: Tasks) -> None:
    def nightly(due: datetime) -> bytes:
        return b""

    alone = Tasks()
    assert not alone
    alone.periodic("0 0 * * *", queue="Q")(nightly)
    assert alone
    assert [one.name for one in alone.schedules] == [f"{__name__}.{nightly.__qualname__}"]
    with pytest.raises(ArgumentError, match="name"):
        alone.periodic("0 0 * * *", queue="Q", name="")
    tasks.task("Q", name="see")(lambda message: None)
    assert (len(tasks), len(tasks.schedules), repr(tasks)) == (1, 1, "<tasks: see, hourly>")
    for name in ("see", "hourly", ""):
        with pytest.raises(ArgumentError, match="name"):
            tasks.add(Schedule(name=name, cron="* * * * *", queue="Q"))
    for name in ("see", "hourly"):
        with pytest.raises(ArgumentError, match="name"):
            tasks.task("R", name=name)(lambda message: None)
    twice = Schedule(name="twice", cron="* * * * *", queue="Q")
    with pytest.raises(ArgumentError, match="name"):
        tasks.add(twice, twice)
    with pytest.raises(ArgumentError, match="schedules"):
        tasks.add("nightly")  # type: ignore[arg-type]
    assert len(tasks.schedules) == 1
