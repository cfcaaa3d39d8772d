"""The record of each worker in its store: its tasks with the numbers of the last minutes, and its schedules.

A worker counts its attempts in memory, and every ten seconds a thread sends them to the store, where other programs,
such as the console, see them. A record names the connection that sent it: once that has ended, the worker has ended
too, and the record is void. Workers that are killed leave their records; others delete them later.
"""

from __future__ import annotations

import contextlib
import logging
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

from ..errors import CallerError, InorderError, NotAuthorized
from ..model.parameters import as_storable
from ..stores.seam.views import (
    TEXT_MAX,
    WORKER,
    ScheduleRecord,
    TaskMinute,
    TaskRecord,
    WorkerRecord,
    record_of,
)
from .outcomes import Outcome
from .periodic import Schedule, standings
from .reporting import WorkerEvent

if TYPE_CHECKING:
    from ..client.manager import QueueManager

log = logging.getLogger("inorder.work")

EVERY_SECONDS: Final = 10.0
KEPT_MINUTES: Final = 10
NOT_FAILED: Final = (Outcome.DONE, Outcome.DISCARDED)


def worker_records(qm: QueueManager) -> list[WorkerRecord]:
    """The records of the workers that are connected now, by program and process."""
    connected = {one.connection for one in qm.inspect.connections()}
    with qm._session:
        found = [record_of(one.attributes) for one in qm._store.objects(WORKER)]
    return sorted((one for one in found if one.connection in connected), key=lambda one: (one.program, one.process))


class WorkerTally:
    """Counts the events of a worker. Any thread may count; the caller has a lock."""

    def __init__(self, tasks: Iterable[tuple[str, str]]) -> None:
        self._tasks = {name: TaskRecord(name, queue) for name, queue in tasks}
        self._failing: dict[str, str] = {}

    def count(self, event: WorkerEvent, now: float) -> None:
        """Counts an event."""
        text = _kept(event.text)
        if event.schedule:
            self._failing[event.schedule] = text if event.run is None else ""
            return
        one = self._tasks.get(event.task)
        if one is None:  # a message of a queue with several tasks, and of none of these
            return
        if event.kind == "stopped":
            one = one._replace(stopped=text)
        ended = event.ended
        if ended is not None and ended.outcome is not Outcome.RETURNED:
            failed = ended.outcome not in NOT_FAILED
            minute = TaskMinute(int(now // 60), 1, int(failed), round(event.seconds, 6), round(event.seconds, 6))
            one = one._replace(minutes=_with(one.minutes, minute), dead=one.dead + (ended.outcome is Outcome.DEAD))
            if failed:
                one = one._replace(error=text, failed_at=now)
        self._tasks[event.task] = one

    def tasks(self, now: float, running: Iterable[tuple[str, float]]) -> Iterator[TaskRecord]:
        """The tasks, with the calls that run: the name of the task of each, and for how many seconds."""
        calls = list(running)
        for name, one in self._tasks.items():
            ages = [seconds for task, seconds in calls if task == name]
            recent = [minute for minute in one.minutes if minute.minute > now // 60 - KEPT_MINUTES]
            yield one._replace(minutes=recent, running=len(ages), oldest=round(max(ages, default=0.0), 3))

    def failing(self, schedule: Schedule) -> str:
        """Why the last put of a schedule failed; empty if it did not."""
        return self._failing.get(schedule.name, "")


def _kept(text: str) -> str:
    """An error text, shortened for a record."""
    return as_storable(text)[:TEXT_MAX]


def _with(minutes: Sequence[TaskMinute], minute: TaskMinute) -> list[TaskMinute]:
    if minutes and minutes[-1].minute == minute.minute:
        return [*minutes[:-1], minutes[-1].plus(minute)]
    return [*minutes, minute][-KEPT_MINUTES:]


class RecordWriter:
    """The thread that sends the record of a worker to its store.

    Args:
        connect: opens its connection.
        make: makes the record, with the number of that connection.
        every: seconds between two records.
    """

    def __init__(
        self,
        connect: Callable[[], QueueManager],
        make: Callable[[int, Sequence[ScheduleRecord]], WorkerRecord],
        schedules: Sequence[Schedule],
        failing: Callable[[Schedule], str],
        *,
        every: float = EVERY_SECONDS,
    ) -> None:
        self._connect, self._make, self._every = connect, make, every
        self._schedules, self._failing = schedules, failing
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="inorder work: record", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def end(self, seconds: float) -> None:
        """Ends the thread, which has the record deleted, and waits so long for that."""
        self._over.set()
        if self._thread.ident is not None:
            self._thread.join(seconds)

    def _run(self) -> None:
        qm: Any = None
        try:
            while not self._over.wait(self._every):
                try:
                    qm = qm or self._connect()
                    _note(qm, self._make(qm.internals.owner, self._standings(qm)))
                except NotAuthorized as error:  # by a server: the user lacks an authority on a queue
                    log.info("this worker has no record in the store: %s", error)
                    return
                except InorderError as error:
                    log.info("the record of this worker could not be stored: %s", error)
                    _close(qm)
                    qm = None
            if qm is not None:
                with contextlib.suppress(InorderError):
                    _note(qm, None)
        finally:
            _close(qm)

    def _standings(self, qm: QueueManager) -> list[ScheduleRecord]:
        found = []
        for one in self._schedules:
            try:
                [standing] = standings(qm, [one])
                last, due, is_overdue, error = standing.last, standing.next, standing.overdue, self._failing(one)
            except CallerError as wrong:  # its queue does not exist
                last, due, is_overdue, error = None, None, False, _kept(str(wrong))
            found.append(ScheduleRecord(one.name, one.queue, one.cron, one.zone, last, due, is_overdue, error))
        return found


def _note(qm: QueueManager, record: WorkerRecord | None) -> None:
    with qm._session:
        qm._store.note_worker(qm.internals.owner, record)


def _close(qm: Any) -> None:
    if qm is not None:
        with contextlib.suppress(InorderError):
            qm.internals.abandon()
