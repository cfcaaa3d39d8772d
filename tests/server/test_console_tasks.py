"""The page of tasks, which combines the records of workers by task, schedule and process."""

from __future__ import annotations

import httpx
from tests.server.conftest import Served, serving, somebody, with_role
from tests.server.test_console_acting import acts, send
from tests.server.test_console_pages import one as words_of

import inorder
from inorder.server.console.listing import uid_text
from inorder.stores.seam.views import WORKER, ScheduleRecord, TaskMinute, TaskRecord, WorkerRecord, text_of

HOSTILE = "<b>hostile</b>"


def write(qm: inorder.QueueManager, name: str, *tasks: TaskRecord, schedules: list[ScheduleRecord]) -> None:
    """Writes a record as a worker with this connection does."""
    now = qm.internals.clock.now()
    text = text_of(WorkerRecord(qm.internals.owner, name, 77, now - 90, now, tasks, schedules))
    with qm._session:
        qm._store.define_object(WORKER, name, text)


def test_tasks_of_several_workers_are_combined(served: Served, qm: inorder.QueueManager) -> None:
    now = qm.internals.clock.now()
    minute = int(now // 60)
    qm.put_many("Q1", [b"1", b"2"])
    runs = ScheduleRecord("nightly", "Q1", "30 2 * * *", "Europe/Berlin", now - 60, now + 60, False, "")
    late = ScheduleRecord("hourly", "Q1", "0 * * * *", "UTC", None, now - 60, True, HOSTILE)
    many = [TaskMinute(minute, 10, 1, 1.0, 0.5), TaskMinute(minute - 30, 999, 999, 1.0, 1.0)]
    write(qm, "one", TaskRecord("pack", "Q1", many, 1, 65.0, 2, HOSTILE, now - 5), schedules=[runs, late])
    write(qm, "two", TaskRecord("pack", "Q1", [TaskMinute(minute, 10, 0, 3.0, 2.5)], 1), schedules=[runs])
    write(qm, "three", TaskRecord("ship", "Q1", stopped="an order is stuck"), schedules=[])
    text = words_of(served, "tasks")
    assert "pack Q1 2 now 2 for 1 min 5 s 2.0 1 5 % 200 ms 2.5 s 2 <b>hostile</b> 5 s ago" in text
    assert "ship stopped Q1" in text
    assert "an order is stuck" in text
    assert "hourly Q1 0 * * * * UTC" in text
    assert text.count("nightly") == 1
    assert "on time" in text
    assert text.index("Workers") < text.index("one 77 1 min 30 s pack")


def test_a_worker_whose_connection_has_ended_is_not_shown(served: Served, qm: inorder.QueueManager) -> None:
    with qm.connect() as own:
        write(own, "killed", TaskRecord("pack", "Q1"), schedules=[])
    assert "No connected worker" in words_of(served, "tasks")


@serving(somebody("ann", "browse"))
async def test_the_page_needs_the_authority_display(client: httpx.AsyncClient) -> None:
    assert (await client.get("/console/tasks")).status_code == 403


def fail(qm: inorder.QueueManager) -> None:
    """Leaves a message that waits ten minutes for its next attempt, and the record of a qm."""
    qm.put("Q1", b"1")
    with qm.unit_of_work() as unit:
        qm.get("Q1")
        unit.back_out(delay=600, error="no room")
    write(qm, "one", TaskRecord("pack", "Q1"), schedules=[])


def waits(qm: inorder.QueueManager) -> bool:
    return [one.state for one in qm.inspect.look("Q1")] == ["delayed"]


async def test_failed_work_is_tried_again_by_hand(
    client: httpx.AsyncClient, served: Served, qm: inorder.QueueManager
) -> None:
    fail(qm)
    assert "Retry now" in (await client.get("/console/tasks")).text
    done = await send(client, "tasks", queue="Q1")
    assert (done.status_code, done.headers["location"]) == (303, "/console/tasks")
    assert not waits(qm)
    page = (await client.get("/console/tasks")).text
    assert "1 message of Q1 made available for the next attempt." in page
    assert "<button>Retry now" not in page
    assert acts(served)[0][1:] == ("retry", "Q1", "done", 1)
    refused = await send(client, "tasks", queue=HOSTILE)
    assert refused.status_code == 404
    assert HOSTILE not in refused.text


def page_of(qm: inorder.QueueManager) -> str:
    [one] = qm.inspect.look("Q1")
    assert one.message.uid is not None
    return f"queue/Q1/message/{uid_text(one.message.uid)}"


async def test_one_message_is_tried_again_by_hand(
    client: httpx.AsyncClient, served: Served, qm: inorder.QueueManager
) -> None:
    fail(qm)
    page = page_of(qm)
    assert "Retry now" in (await client.get(f"/console/{page}")).text
    done = await send(client, page)
    assert (done.status_code, done.headers["location"]) == (303, "/console/queue/Q1")
    assert not waits(qm)
    assert "The message was made available for its next attempt." in (await client.get("/console/queue/Q1")).text
    assert acts(served)[0][1:] == ("retry", "Q1", "done", 1)
    assert "Retry now" not in (await client.get(f"/console/{page}")).text
    await send(client, page)
    assert "The message was not waiting for its next attempt." in (await client.get("/console/queue/Q1")).text
    assert (await send(client, "queue/Q1/message/nonsense")).status_code == 404


@serving(with_role("reader"))
async def test_a_reader_cannot_retry(client: httpx.AsyncClient, qm: inorder.QueueManager) -> None:
    fail(qm)
    for page, control in (("tasks", "<button>Retry now"), (page_of(qm), "Retry now")):
        assert control not in (await client.get(f"/console/{page}")).text
        assert (await send(client, page, queue="Q1")).status_code == 403
    assert waits(qm)
