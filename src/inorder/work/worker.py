"""Threads that get messages and call functions, each on its own connection; their end; their time limits.

Each task has its own threads, *lanes*: a lane waits for one queue. One more thread, the *keeper*, does what a lane
cannot do itself: it ends calls that take too long, and lanes that do not end in time. Each such call is ended in a
further thread, because a server may not answer.

A thread cannot be killed. Instead a call that is over its time limit loses its connection: its unit of work is backed
out, the message returns with the error and a back-off, and nothing that the function does through the connection
afterwards has an effect. The function itself may run on. If processes can be replaced (`inorder work`), `is_worn`
then says that this process should be: it finishes its other work, and ends. Otherwise another thread takes the place
of the lost one.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final

from ..errors import CallerError, InorderError, StoreError, bad_argument
from ..model.options import check_function, check_instance, check_whole
from ..rules.retries import Failure
from ..stores.seam.views import ScheduleRecord, WorkerRecord
from .creating import DEFAULT_QUEUE, create_queue
from .dispatch import shared
from .lane import WorkerLane, in_own_thread
from .leftovers import Leftovers
from .limits import LIMITS
from .records import EVERY_SECONDS, RecordWriter, WorkerTally
from .reporting import WorkerEvent, to_log
from .tasks import FROM_ZERO, THREADS_MAX, Task, Tasks
from .timekeeper import Timekeeper

if TYPE_CHECKING:
    from ..client.manager import QueueManager
    from .looping import TaskLoop

log = logging.getLogger("inorder.work")

TICK_SECONDS: Final = 0.02  # between checks by the keeper, while it has something to check
STORE_SECONDS: Final = 1.0  # between checks whether the store can still be used
GRACE_SECONDS: Final = 30.0
SETTLE_SECONDS: Final = 5.0  # after it, for work that is being given up, committed or reported


class Worker:
    """Calls functions with the messages of queues, and puts the messages of schedules; made by `QueueManager.worker`.

    A call that exceeds its task's `timeout` loses its connection: the message returns to its queue, and the function,
    which cannot be killed, runs on without effect on any queue. Another thread takes its place; `inorder work` replaces
    the process.

    Attributes:
        stopped: the tasks and schedules that could not continue, by name, each with the reason.
        is_worn: whether a call exceeded its time, so that its thread may still be running.
        lost: the error that stopped the whole worker: its program must close the store, or end, to use it again.
        is_burst: whether it ends by itself as soon as no message is ready and no call runs.
        attempts: in a burst, how many attempts it has reported.
        record_seconds: seconds between two records of it in the store (`inorder.work.records`).
    """

    record_seconds = EVERY_SECONDS

    def __init__(
        self,
        qm: QueueManager,
        tasks: Tasks,
        *,
        threads: int = 1,
        log: Callable[[WorkerEvent], object] | None = None,
        replaces_threads: bool = True,
        tries_again: bool = True,
        burst: bool = False,
    ) -> None:
        check_instance("tasks", tasks, Tasks, "Tasks")
        check_whole("threads", threads, 1, THREADS_MAX)
        if not tasks:
            raise bad_argument("tasks", tasks, "Tasks with at least one function or schedule")
        check_function("log", log, "something that can be called with a WorkerEvent")
        self.qm, self.stopped, self.is_worn = qm, dict[str, str](), False
        self.lost: InorderError | None = None
        self._tasks = list(tasks)
        self._log, self._replaces_threads = log or to_log, replaces_threads
        self._again = {task.name for task in tasks} if tries_again else set[str]()
        self._began_at = qm.internals.clock.now()
        self._reporting = threading.Lock()
        self.ends = threading.Event()
        self._changed = threading.Condition()
        self._is_over, self._checks_at = False, 0.0
        self._keeper = threading.Thread(target=self._keep, name="inorder work", daemon=True)
        work = [(one.without_waits() if burst else one, one.calls_at_once(threads)) for one in shared(tasks)]
        self._lanes = [WorkerLane(self, one) for one, count in work for _ in range(count)]
        self.is_burst, self.attempts, self._resting = burst, 0, 0
        self._timekeeper = Timekeeper(self, tasks.schedules) if tasks.schedules and not burst else None
        self._leftovers = Leftovers(self, tasks)
        self._tally = WorkerTally((task.name, task.queue) for task in tasks)
        self._record = RecordWriter(
            qm.connect, self._recorded, tasks.schedules, self._tally.failing, every=self.record_seconds
        )
        self._watches = any(task.timeout for task in tasks)
        self.loop: TaskLoop | None = None

    # --- calls from outside

    def start(self) -> None:
        """Starts the threads, and makes the queues TASKS and TASKS.LIMITS if tasks use them.

        Raises CallerError if the worker was started before; as `create_queue`.
        """
        if self._keeper.ident is not None:
            raise CallerError("the worker was started before: create another one")
        own = [DEFAULT_QUEUE] * any(task.queue == DEFAULT_QUEUE for task in self._tasks)
        own += [LIMITS] * any(task.limits for task in self._tasks)
        if own:
            with self.qm.connect() as qm:
                for name in own:
                    create_queue(qm, name)
        if any(task.is_async for task in self._tasks):
            from .looping import TaskLoop  # noqa: PLC0415 - only workers with async functions load it

            self.loop = TaskLoop()
        self._keeper.start()
        with self._changed:  # a burst must not end before all have begun
            for lane in list(self._lanes):
                lane.start()
        if self._timekeeper is not None:
            self._timekeeper.start()
        if self._leftovers and not self.is_burst:
            self._leftovers.thread.start()
        if not self.is_burst:
            self._record.start()

    def stop(self, grace: float = GRACE_SECONDS) -> int:
        """Ends the work: no more messages are got, and running calls may end within the grace time.

        Calls that have not ended then are given back: their connection is ended, and they are backed out and use up an
        attempt. Work that is being committed, backed out or reported at that moment has 5 seconds more. If a server
        does not answer in that time, the messages return when it does, or when its connection ends.

        Args:
            grace: seconds, 0 to 99,999,999.9.

        Returns: how many calls were given back; their functions may run on, without effect on any queue.

        Raises ArgumentError; CallerError if a function or a log of this worker calls it, in a thread that it waits for.
        """
        FROM_ZERO.check("grace", grace)
        if threading.current_thread() in self._threads():
            raise CallerError("a worker must be stopped by a thread that is not its own: set an event for one")
        self.ends.set()
        self._nudge()
        if not self.wait(grace):
            self._give_back(f"the worker was stopped, and this call had not ended {grace:g} s later")
        ends_at = time.monotonic() + SETTLE_SECONDS
        if not self.wait(SETTLE_SECONDS):
            log.warning("threads of a worker have not ended: their later reports may be lost")
        with self._changed:
            self._is_over = True
            self._changed.notify_all()
        ends = [self._leftovers.end, self._record.end]
        loop, self.loop = self.loop, None
        if loop is not None:
            ends.append(loop.end)
        for end in ends:
            end(max(0.0, ends_at - time.monotonic()))
        return sum(lane.is_given_back for lane in self._lanes)

    def _give_back(self, why: str) -> None:
        """Ends the calls that have not ended, each in a thread of its own."""
        ends: list[Callable[[], object]] = [partial(lane.give_back, why) for lane in self._lanes if lane.is_at_work]
        if self._timekeeper is not None:
            ends.append(self._timekeeper.give_back)
        for end in ends:
            in_own_thread(end)

    def wait(self, timeout: float | None = None) -> bool:
        """Waits until every task and the schedules have ended; returns whether they have, within this many seconds."""
        with self._changed:
            return self._changed.wait_for(lambda: not self.is_busy, timeout)

    def _threads(self) -> list[threading.Thread]:
        keepers = [self._leftovers.thread]
        keepers += [] if self._timekeeper is None else [self._timekeeper.thread]
        return [self._keeper, *keepers, *(lane.thread for lane in self._lanes)]

    @property
    def is_busy(self) -> bool:
        """Whether a thread works, or waits for a message or for the next run."""
        keeper = self._timekeeper
        return any(lane.is_at_work for lane in self._lanes) or (keeper is not None and keeper.is_at_work)

    def __enter__(self) -> Worker:
        self.start()
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        self.stop()

    def __repr__(self) -> str:
        return f"<worker of {len(self._lanes)} threads{', stopping' if self.ends.is_set() else ''}>"

    # --- for lanes

    def report(self, event: WorkerEvent, *, is_repeated: bool = False) -> None:
        """Reports an event to observers of the store, and to the log unless it is repeated."""
        if event.ended is not None and self.is_burst:
            with self._changed:
                self.attempts += 1
                self._resting = 0  # all look again
                self._changed.notify_all()
        if self.qm.internals.is_observed:
            self.qm.internals.tell(*_observed(event))
        with self._reporting:
            self._tally.count(event, self.qm.internals.clock.now())
            if is_repeated:
                return
            try:
                self._log(event)
            except BaseException:  # it must not end the reporting thread
                log.exception("an event of the worker could not be logged")

    def _recorded(self, connection: int, schedules: Sequence[ScheduleRecord]) -> WorkerRecord:
        now = self.qm.internals.clock.now()
        running = [call for lane in list(self._lanes) if (call := lane.running) is not None]
        with self._reporting:
            tasks = list(self._tally.tasks(now, running))
        return WorkerRecord(connection, self.qm.inspect.program, os.getpid(), self._began_at, now, tasks, schedules)

    def may_try_again(self, task: Task, failure: Failure | None) -> bool:
        """Whether a message that stays on its queue, and has used up its attempts, gets one more.

        It does if the last attempt was before this worker started: an operator who starts a worker wants it tried.
        """
        if (
            failure is not None and self._began_at <= failure.time <= self.qm.internals.clock.now()
        ):  # if later, a clock was ahead
            return False
        with self._reporting:
            is_first = task.name in self._again
            self._again.discard(task.name)
            return is_first

    def stop_task(self, task: Task, why: str) -> None:
        """Stops all lanes of a task that cannot continue."""
        with self._reporting:
            is_first = self.stopped.setdefault(task.name, why) is why
        if is_first:
            self.report(WorkerEvent("stopped", task.queue, task=task.name, text=why))
        self._nudge()

    def lose_store(self, error: InorderError) -> None:
        """Stops every task and the schedules: only a program that opens the store anew can use it."""
        with self._reporting:
            self.lost = self.lost or error
        for task in self._tasks:
            self.stop_task(task, str(error))
        self._nudge()

    def replace(self, lane: WorkerLane, *, has_ended: bool = False) -> None:
        """Replaces a lost lane, or marks the process as worn, unless the lane's thread has ended."""
        if not self._replaces_threads and not has_ended:
            self.is_worn = True
        elif not self.ends.is_set():
            fresh = WorkerLane(self, lane.tasks)
            with self._changed:  # `wait` must not see both lanes idle
                self._lanes[self._lanes.index(lane)] = fresh
                fresh.start()

    def lane_ends(self) -> None:
        with self._changed:
            self._end_burst()
            self._changed.notify_all()

    def looks_again(self, attempts: int) -> bool:
        """Whether a lane that has found no message continues; in a burst after another lane has ended an attempt.

        Args:
            attempts: as it was before the lane looked: a message that was put since then belongs to a later one.
        """
        if not self.is_burst:
            return True
        with self._changed:
            if self.attempts == attempts:
                self._resting += 1
                self._end_burst()
            self._changed.wait_for(lambda: self.ends.is_set() or self.attempts != attempts)
            return not self.ends.is_set()

    def _end_burst(self) -> None:
        if self.is_burst and self._resting >= sum(lane.is_at_work for lane in self._lanes):
            self.ends.set()
            self._changed.notify_all()

    # --- the keeper

    def _keep(self) -> None:
        while True:
            with self._changed:
                if self._is_over:
                    return
                self._changed.wait(TICK_SECONDS if self._has_to_look else STORE_SECONDS)
            for lane in list(self._lanes):
                try:
                    lane.end_overdue()
                except Exception:
                    log.exception("a call of %s is past its time, and could not be ended", lane.task.name)
            self._check_store()
            self._end_waits()

    def _check_store(self) -> None:
        """Checks the store: threads that only wait would keep a store open in which a sync of another process has
        failed.
        """
        if self.lost is not None or time.monotonic() < self._checks_at:
            return
        self._checks_at = time.monotonic() + STORE_SECONDS
        try:
            self.qm.admin.check_store()
        except StoreError as error:
            self.lose_store(error)
        except InorderError:  # the program has closed its connection
            return

    @property
    def _has_to_look(self) -> bool:
        return self._watches or self.ends.is_set() or any(lane.is_at_work and not lane.goes_on for lane in self._lanes)

    def _nudge(self) -> None:
        """Wakes the keeper, which wakes lanes that only wait, so that they check whether they are to end."""
        with self._changed:
            self._changed.notify_all()

    def _end_waits(self) -> None:
        for lane in list(self._lanes):
            lane.end_wait()
        if self._timekeeper is not None:
            self._timekeeper.end_wait()


def _observed(event: WorkerEvent) -> tuple[str, Mapping[str, float], Mapping[str, object]]:
    """An event as observers of the store get it: its name, its numbers, and its subject."""
    about = {"task": event.task, "schedule": event.schedule, "queue": event.queue, "error": event.text}
    ended = event.ended
    if ended is None:
        return "worker", {"seconds": event.seconds}, {**about, "kind": event.kind}
    del about["schedule"]
    return (
        "attempt",
        {"seconds": event.seconds, "delay": ended.delay},
        {**about, "outcome": ended.outcome.value, "attempt": ended.attempt},
    )
