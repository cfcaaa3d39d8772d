"""The record of a worker: counted in memory, written as an object of the store, deleted with its connection."""

from __future__ import annotations

import json
import math
import os
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

import inorder
from inorder import Got, QueueManager
from inorder.errors import ArgumentError, NotAuthorized
from inorder.stores.seam.views import (
    WORKER,
    ScheduleRecord,
    TaskMinute,
    TaskRecord,
    WorkerRecord,
    record_of,
    text_of,
)
from inorder.testing import ManualClock
from inorder.testing.remote import the_server
from inorder.work import Backoff, Tasks, Worker, records
from inorder.work.records import worker_records

from ..helpers.support import LIMIT_SECONDS
from ..helpers.working import at_work, dead_letter_queue

LATER = Backoff(first=3600, most=3600, jitter=0)


def objects(qm: QueueManager) -> int:
    with qm._session:
        return len(qm._store.objects(WORKER))


def until(qm: QueueManager, so: Callable[[WorkerRecord], bool]) -> WorkerRecord:
    """Waits until the worker has written a record that fits, and returns it."""
    end = threading.Event()
    timer = threading.Timer(LIMIT_SECONDS, end.set)
    timer.start()
    try:
        while not end.wait(0.01):
            found = worker_records(qm)
            if found and so(found[0]):
                return found[0]
    finally:
        timer.cancel()
    raise AssertionError(found)


@pytest.fixture(autouse=True)
def _often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Worker, "record_seconds", 0.02)


def test_a_worker_records_the_state_of_its_tasks_and_schedules(qm: QueueManager) -> None:
    dead_letter_queue(qm)
    tasks, goes_on = Tasks(), threading.Event()

    @tasks.task("Q", name="pack", backoff=LATER, attempts=2)
    def pack(message: Got) -> None:
        if message.body == b"bad":
            raise ValueError("no such article")
        if message.body == b"slow":
            goes_on.wait(LIMIT_SECONDS)

    tasks.periodic("0 0 1 1 *", queue="Q", name="yearly")(lambda due: b"new year")
    qm.put_many("Q", [b"good", b"bad", b"slow"])
    with at_work(qm, tasks) as (_, heard):
        heard.attempts(2)
        found = until(qm, lambda one: one.tasks[0].running == 1 and one.schedules[0].next is not None)
        goes_on.set()
        [task], [schedule] = found.tasks, found.schedules
        total = task.minutes[0]
        for one in task.minutes[1:]:
            total = total.plus(one)
        assert (task.name, task.queue, total.ended, total.failed, task.dead) == ("pack", "Q", 2, 1, 0)
        assert task.error.startswith("ValueError: no such article")
        assert task.stopped == ""
        assert 0 < total.longest <= total.duration
        assert task.oldest > 0
        assert (schedule.name, schedule.queue, schedule.cron, schedule.error) == ("yearly", "Q", "0 0 1 1 *", "")
        assert schedule.last is None, "it has not run yet"
        assert schedule.next is not None
        assert qm.internals.clock.now() < schedule.next
        heard.attempts(3)
    assert objects(qm) == 0, "it ends with the worker"


def test_the_first_record_of_a_worker_deletes_those_of_ended_connections(qm: QueueManager, clock: ManualClock) -> None:
    left = WorkerRecord(999_999, "killed", 1, clock.now(), clock.now(), [], [])
    with qm._session:
        qm._store.define_object(WORKER, "left", text_of(left))
    assert worker_records(qm) == []
    tasks = Tasks()
    tasks.task("Q", name="see")(lambda message: None)
    with at_work(qm, tasks):
        until(qm, lambda one: True)
        assert objects(qm) == 1
        with at_work(qm, tasks):
            until(qm, lambda one: objects(qm) == 2)
            assert len(worker_records(qm)) == 2


def test_minutes_are_summed_and_bounded() -> None:
    minutes = [TaskMinute(1, 1, 1, 0.5, 0.5)]
    for minute in (1, *range(2, 20)):
        minutes = records._with(minutes, TaskMinute(minute, 2, 0, 1.0, 0.75))
        if minute == 1:
            assert minutes == [TaskMinute(1, 3, 1, 1.5, 0.75)]
    assert [one.minute for one in minutes] == [*range(20 - records.KEPT_MINUTES, 20)]


def test_fields_of_a_later_version_are_ignored() -> None:
    task = TaskRecord("pack", "Q", [TaskMinute(7, 1, 0, 0.5, 0.5)])
    schedule = ScheduleRecord("nightly", "Q", "0 0 * * *", "UTC", None, None, False, "")
    record = WorkerRecord(1, "p", 2, 3.0, 4.0, [task], [schedule])
    later = json.loads(text_of(record))
    for one in (later, *later["tasks"], *later["schedules"]):
        one["later"] = 1
    later["tasks"][0]["minutes"][0].append(1)
    assert record_of(json.dumps(later)) == record


RECORD = WorkerRecord(7, "p", 2, 3.0, 4.0, [TaskRecord("pack", "Q", [TaskMinute(7, 1)])], [])


@pytest.mark.parametrize(
    ("wrong", "named"),
    [
        (RECORD._replace(at=math.inf), "at must be a number from 0 to"),
        (RECORD._replace(process=-1), "process must be a number from 0 to"),
        (RECORD._replace(began_at=math.nan), "began_at must be a number from 0 to"),
        (RECORD._replace(program="p" * 501), "program must be a text of at most 500 characters"),
        (RECORD._replace(program="\ud800"), "program must be a text"),
        (RECORD._replace(tasks=[TaskRecord("a", "Q")] * 1_001), "tasks must be at most 1,000"),
        (RECORD._replace(tasks=[TaskRecord("a", "Q", [TaskMinute(1, -2)])]), "ended must be a number from 0 to"),
        (RECORD._replace(tasks=[]), "record must be that of a worker with a task or a schedule"),
        (
            RECORD._replace(tasks=[TaskRecord("a", "Q", error="e" * 500, stopped="s" * 500)] * 1_000),
            "record must be at most 1,048,576",
        ),
    ],
    ids=range(9),
)
def test_a_record_with_a_value_that_no_worker_has_is_refused(qm: QueueManager, wrong: WorkerRecord, named: str) -> None:
    owner = qm.internals.owner
    with qm._session:
        qm._store.note_worker(owner, RECORD)
        with pytest.raises(ArgumentError, match=named):
            qm._store.note_worker(owner, wrong)
    assert worker_records(qm) == [RECORD._replace(connection=owner)], "it is that of this connection"


def test_a_worker_on_a_server_may_record_only_tasks_of_queues_that_it_may_get_from(tmp_path: Path) -> None:
    tasks = Tasks()
    tasks.task("Q", name="pack")(lambda message: None)
    tasks.periodic("0 0 1 1 *", queue="Q", name="yearly")(lambda due: b"new year")
    server = the_server(os.getpid())
    with inorder.connect(tmp_path / "qm.db") as here:
        here.create_queue("Q")
        here.create_queue("R")
        here.accounts.create_user("packer", roles=["application"], queues={"Q": ["get", "put", "inquire"]})
        token = here.accounts.create_token("packer", "test")
        with server.serving(str(tmp_path / "qm.db"), here) as administrators:
            server.admit(token, administrators)
            with inorder.connect(server.url, token=token) as there, at_work(there, tasks):
                found = until(here, lambda one: one.schedules[0].next is not None)
                assert ([one.name for one in found.tasks], found.schedules[0].name) == (["pack"], "yearly")
                forged = found._replace(tasks=[TaskRecord("pack", "R")])
                with there.connect() as another, another._session, pytest.raises(NotAuthorized, match="get from R"):
                    another._store.note_worker(0, forged)
            assert objects(here) == 0, "it ends with the worker"
