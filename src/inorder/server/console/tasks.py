"""Tasks, schedules and the workers that run them, from the records that workers keep in the store."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import reduce
from typing import Any, Final, NamedTuple

from starlette.responses import Response

from ...client.manager import QueueManager
from ...errors import InorderError
from ...stores.seam.views import QueueView, ScheduleRecord, TaskMinute, TaskRecord, WorkerRecord
from ...work.records import KEPT_MINUTES, worker_records
from . import forms
from .acting import noted, refused
from .labels import counted
from .page import Page, Visit

FAILED: Final = "JMSXDeliveryCount > 1"  # selects messages that have had an attempt


class TaskRow(NamedTuple):
    """A task in all of its workers.

    Args:
        view: its queue; None: no queue has this name, or it is an alias.
        ended, failed, mean, longest: values for the last minutes; durations in seconds, None without an attempt.
        per_minute: attempts in each of the last minutes, the newest last; failures: those that failed.
        record: running calls, dead letters and the newest error of all workers.
    """

    record: TaskRecord
    view: QueueView | None
    workers: int
    ended: int
    failed: int
    mean: float | None
    longest: float | None
    per_minute: Sequence[int]
    failures: Sequence[int]


def rows(workers: Iterable[WorkerRecord], queues: Mapping[str, QueueView], now: float) -> Iterator[TaskRow]:
    """The tasks by name."""
    found: dict[tuple[str, str], list[TaskRecord]] = {}
    for worker in workers:
        for task in worker.tasks:
            found.setdefault((task.name, task.queue), []).append(task)
    for key in sorted(found):
        yield _row(found[key], queues.get(key[1]), int(now // 60))


def _row(tasks: Sequence[TaskRecord], view: QueueView | None, now: int) -> TaskRow:
    minutes = [
        reduce(
            TaskMinute.plus,
            (each for one in tasks for each in one.minutes if each.minute == minute),
            TaskMinute(minute),
        )
        for minute in range(now - KEPT_MINUTES + 1, now + 1)
    ]
    total = reduce(TaskMinute.plus, minutes)
    latest = max(tasks, key=lambda one: one.failed_at or 0.0)
    record = latest._replace(
        running=sum(one.running for one in tasks),
        oldest=max(one.oldest for one in tasks),
        dead=sum(one.dead for one in tasks),
        stopped=next((one.stopped for one in tasks if one.stopped), ""),
    )
    return TaskRow(
        record=record, view=view, workers=len(tasks), ended=total.ended, failed=total.failed,
        mean=total.duration / total.ended if total.ended else None, longest=total.longest if total.ended else None,
        per_minute=[one.ended for one in minutes], failures=[one.failed for one in minutes],
    )  # fmt: skip


def schedules_of(workers: Iterable[WorkerRecord]) -> list[ScheduleRecord]:
    """The schedules by name: each as reported by the worker with its latest run, with an error of any worker."""
    found: dict[tuple[str, str], ScheduleRecord] = {}
    for one in (schedule for worker in workers for schedule in worker.schedules):
        known = found.setdefault((one.name, one.queue), one)
        newest = max(known, one, key=lambda each: each.last or 0.0)
        found[one.name, one.queue] = newest._replace(error=known.error or one.error)
    return [found[key] for key in sorted(found)]


async def show(visit: Visit) -> Mapping[str, Any]:
    """GET tasks: the tasks, the schedules and their workers."""
    visit.query()

    def look(qm: QueueManager) -> tuple[list[WorkerRecord], list[QueueView]]:
        return worker_records(qm), list(qm.inspect.overview())

    workers, queues = await visit.context.qm.run(look)
    now = time.time()
    return {
        "rows": list(rows(workers, {one.name: one for one in queues}, now)),
        "schedules": schedules_of(workers),
        "workers": workers,
        "now": now,
        "minutes": KEPT_MINUTES,
        "failed": FAILED,
    }


async def act(visit: Visit) -> Response:
    """POST tasks: makes messages of a queue that wait for their next attempt available."""
    queue = visit.text("queue")
    visit.demand("get", queue)
    try:
        found = await noted(visit, "retry", queue, lambda qm: qm.admin.retry_now(queue))
    except InorderError as error:
        return refused(visit, error, await show(visit))
    return forms.done(visit, f"{counted(found)} of {queue} made available for the next attempt.", "tasks")


PAGES: Final = (
    Page(path="tasks", title="Tasks", authority="display", template="tasks.html", show=show, act=act, menu="Tasks",
         is_live=True),
)  # fmt: skip
