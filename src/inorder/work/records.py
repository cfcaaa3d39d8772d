"""The record of each worker in its store: its tasks with the numbers of the last minutes, and its schedules.

A worker counts its attempts in memory, and every ten seconds a thread writes them as one object of the store. That is
how other programs, such as the console, see how tasks do. A record names the connection that wrote it: without it, the
worker has ended, and the record means nothing any more. Workers that are killed leave theirs; others delete them later.

A worker on a store elsewhere may not define objects there, and has no record.
"""

from __future__ import annotations

import contextlib
import json
import logging
import threading
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from ..errors import CallerError, InorderError, NotAuthorized, UnknownObject
from ..stores.seam.damage import decodes
from .outcomes import Outcome
from .periodic import Schedule, standings
from .reporting import WorkerEvent

if TYPE_CHECKING:
    from ..client.manager import QueueManager

log = logging.getLogger("inorder.work")

KIND: Final = "worker"
EVERY_SECONDS: Final = 10.0
KEPT_MINUTES: Final = 10
FORGOTTEN_SECONDS: Final = 3600.0
END_SECONDS: Final = 5.0
NOT_COUNTED: Final = (Outcome.RETURNED,)
NOT_FAILED: Final = (Outcome.DONE, Outcome.DISCARDED)


class TaskMinute(NamedTuple):
    """The attempts at a task that ended within one minute.

    Args:
        minute: since 1970.
        ended: how many attempts; failed: how many of them have failed.
        seconds: how long all took together; longest: the longest of them.
    """

    minute: int
    ended: int = 0
    failed: int = 0
    seconds: float = 0.0
    longest: float = 0.0

    def plus(self, other: TaskMinute) -> TaskMinute:
        """Both together, in the minute of this one."""
        return TaskMinute(
            self.minute, self.ended + other.ended, self.failed + other.failed, self.seconds + other.seconds,
            max(self.longest, other.longest),
        )  # fmt: skip


class TaskRecord(NamedTuple):
    """A task of a worker.

    Args:
        minutes: the last ten minutes in which an attempt ended, the newest last.
        running: how many calls run; oldest: for how many seconds the oldest of them has run.
        dead: dead letters since the worker began.
        error, failed_at: the last failure.
        stopped: why the task could not continue; empty: it continues.
    """

    name: str
    queue: str
    minutes: Sequence[TaskMinute] = ()
    running: int = 0
    oldest: float = 0.0
    dead: int = 0
    error: str = ""
    failed_at: float | None = None
    stopped: str = ""


class ScheduleRecord(NamedTuple):
    """A schedule of a worker; instants are seconds since 1970.

    Args:
        last: the instant of the last run; None: there was none.
        next: the next instant; None: there is none.
        is_overdue: whether the next instant has passed.
        error: why the last put failed; empty: it did not.
    """

    name: str
    queue: str
    cron: str
    zone: str
    last: float | None
    next: float | None
    is_overdue: bool
    error: str


class WorkerRecord(NamedTuple):
    """A worker: one process of `inorder work`, or one in a program.

    Args:
        connection: the number of the connection that wrote the record.
        process: its process id on its machine.
        began_at, at: when the worker began, and when it wrote this; seconds since 1970.
    """

    connection: int
    program: str
    process: int
    began_at: float
    at: float
    tasks: Sequence[TaskRecord]
    schedules: Sequence[ScheduleRecord]


@decodes("the record of a worker")
def record_of(text: str) -> WorkerRecord:
    """Reads a record as the store keeps it. It may be a later version's, with more fields. Raises: StoreDamaged."""
    given = json.loads(text)
    for one in given["tasks"]:
        one["minutes"] = [TaskMinute(*each[: len(TaskMinute._fields)]) for each in one["minutes"]]
    tasks, schedules = (
        [kind(**_known(kind, one)) for one in given[name]]
        for name, kind in (("tasks", TaskRecord), ("schedules", ScheduleRecord))
    )
    return WorkerRecord(**{**_known(WorkerRecord, given), "tasks": tasks, "schedules": schedules})


def _known(kind: Any, given: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in given.items() if name in kind._fields}


def text_of(record: WorkerRecord) -> str:
    """The record as the store keeps it."""
    tasks, schedules = ([one._asdict() for one in some] for some in (record.tasks, record.schedules))
    return json.dumps({**record._asdict(), "tasks": tasks, "schedules": schedules})


def worker_records(qm: QueueManager) -> list[WorkerRecord]:
    """The records of the workers that are connected now, by program and process."""
    connected = {one.connection for one in qm.inspect.connections()}
    with qm._session:
        found = [record_of(one.attributes) for one in qm._store.objects(KIND)]
    return sorted((one for one in found if one.connection in connected), key=lambda one: (one.program, one.process))


class WorkerTally:
    """Counts the events of a worker. Any thread may count; the caller has a lock."""

    def __init__(self, tasks: Iterable[tuple[str, str]]) -> None:
        self._tasks = {name: TaskRecord(name, queue) for name, queue in tasks}
        self._failing: dict[str, str] = {}

    def count(self, event: WorkerEvent, now: float) -> None:
        """Counts an event."""
        if event.schedule:
            self._failing[event.schedule] = event.text if event.run is None else ""
            return
        one = self._tasks.get(event.task)
        if one is None:  # several tasks of a queue, for a message of none of them
            return
        if event.kind == "stopped":
            one = one._replace(stopped=event.text)
        ended = event.ended
        if ended is not None and ended.outcome not in NOT_COUNTED:
            failed = ended.outcome not in NOT_FAILED
            minute = TaskMinute(int(now // 60), 1, int(failed), round(event.seconds, 6), round(event.seconds, 6))
            one = one._replace(minutes=_with(one.minutes, minute), dead=one.dead + (ended.outcome is Outcome.DEAD))
            if failed:
                one = one._replace(error=event.text, failed_at=now)
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


def _with(minutes: Sequence[TaskMinute], minute: TaskMinute) -> list[TaskMinute]:
    if minutes and minutes[-1].minute == minute.minute:
        return [*minutes[:-1], minutes[-1].plus(minute)]
    return [*minutes, minute][-KEPT_MINUTES:]


class RecordWriter:
    """The thread that writes the record of a worker.

    Args:
        connect: opens its connection.
        make: makes the record, with the number of that connection.
        every: seconds between two writes.
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
        self._name, self._before = uuid.uuid4().hex, ""
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="inorder work: record", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def end(self) -> None:
        """Ends the thread, which deletes the record."""
        self._over.set()
        if self._thread.ident is not None:
            self._thread.join(END_SECONDS)

    def _run(self) -> None:
        qm: Any = None
        try:
            while not self._over.wait(self._every):
                try:
                    qm = qm or self._connect()
                    self.write(qm)
                except NotAuthorized as error:  # the store is elsewhere
                    log.info("this worker has no record in the store: %s", error)
                    return
                except InorderError as error:
                    log.info("the record of this worker could not be written: %s", error)
                    _close(qm)
                    qm, self._before = None, ""
                    self._name = uuid.uuid4().hex  # the one before has the number of a connection that has ended
            if self._before:
                with contextlib.suppress(InorderError), qm._session:
                    qm._store.delete_object(KIND, self._name)
        finally:
            _close(qm)

    def write(self, qm: QueueManager) -> None:
        """Writes the record, and deletes those of workers that ended long ago. Raises: as a put."""
        text = text_of(self._make(qm.internals.owner, self._standings(qm)))
        is_first = not self._before
        with qm._session:
            if is_first:
                qm._store.define_object(KIND, self._name, text)
            else:
                qm._store.alter_object(KIND, self._name, self._before, text)
        self._before = text
        if is_first:
            _forget_others(qm)

    def _standings(self, qm: QueueManager) -> list[ScheduleRecord]:
        found = []
        for one in self._schedules:
            try:
                [standing] = standings(qm, [one])
                last, due, is_overdue, error = standing.last, standing.next, standing.overdue, self._failing(one)
            except CallerError as wrong:  # its queue does not exist
                last, due, is_overdue, error = None, None, False, str(wrong)
            found.append(ScheduleRecord(one.name, one.queue, one.cron, one.zone, last, due, is_overdue, error))
        return found


def _forget_others(qm: QueueManager) -> None:
    connected, now = {one.connection for one in qm.inspect.connections()}, qm.internals.clock.now()
    with qm._session:
        for row in qm._store.objects(KIND):
            one = record_of(row.attributes)
            if one.connection not in connected and one.at < now - FORGOTTEN_SECONDS:
                with contextlib.suppress(UnknownObject):  # another worker has deleted it
                    qm._store.delete_object(KIND, row.name)


def _close(qm: Any) -> None:
    if qm is not None:
        with contextlib.suppress(InorderError):
            qm.internals.abandon()
