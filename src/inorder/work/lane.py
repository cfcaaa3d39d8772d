"""One thread that works on one task: it gets a message, calls the function, commits or backs out, and repeats."""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections.abc import Iterable
from typing import Any, Final, Protocol

from ..client.manager import QueueManager
from ..errors import (
    CallInProgress,
    ConnectionBroken,
    ConnectionClosed,
    GetInhibited,
    InorderError,
    NoMessageAvailable,
    OrderDeadlock,
    OrderPending,
    OutcomeUnknown,
    StoreError,
    WaitEnded,
)
from ..model.message import Got
from ..rules.retries import Backoff, Failure, failure_of
from . import attempts
from .attempts import AttemptVerdict, Ended, OrderStops, Outcome, TakenMessages
from .reporting import WorkerEvent
from .tasks import ATTEMPTS_MAX, Task

log = logging.getLogger("inorder.work")

PAUSE_SECONDS: Final = 1.0  # before a queue that inhibits gets is tried again
TROUBLE: Final = Backoff(first=0.5, most=30.0, jitter=0.5)  # before a store or target in trouble is tried again
SAID_SECONDS: Final = 600.0  # the same trouble is not logged again within this time
NOTHING = (NoMessageAvailable, OrderPending, WaitEnded)


class LaneOwner(Protocol):
    """The calls that a lane makes on its worker."""

    qm: Any
    ends: threading.Event
    is_worn: bool
    stopped: dict[str, str]

    def report(self, event: WorkerEvent, *, is_repeated: bool = False) -> None: ...
    def may_try_again(self, task: Task, failure: Failure | None) -> bool: ...
    def stop_task(self, task: Task, why: str) -> None: ...
    def lose_store(self, error: InorderError) -> None: ...
    def replace(self, lane: Any) -> None: ...
    def lane_ends(self) -> None: ...


class WorkerLane:
    """A thread and its connection.

    While the function runs, the lane or another thread (the keeper, or one that stops the worker) may decide how
    the attempt ends: the first to take `_lock`. If it is another thread, the lane is *lost*. The other thread ends the
    connection before it releases the lock, so that the lane can no longer commit.

    Attributes:
        is_at_work: whether it works, or waits for work. A lost lane is at work until its attempt is reported and the
            worker has replaced it; otherwise the process could look idle, and end before that.
    """

    def __init__(self, worker: LaneOwner, task: Task) -> None:
        self.task, self._worker = task, worker
        self.thread = threading.Thread(target=self._run, name=f"inorder work {task.name}", daemon=True)
        self._lock = threading.Lock()
        self._qm: QueueManager | None = None
        self._called: TakenMessages | None = None  # the messages of the running call
        self._began = 0.0
        self._is_lost = self._is_shut = False
        self._troubles = 0  # in a row
        self._said = dict[str, float]()  # when each trouble was last logged
        self.is_at_work = False

    def start(self) -> None:
        self.is_at_work = True
        self.thread.start()

    @property
    def goes_on(self) -> bool:
        """Whether it gets another message."""
        worker = self._worker
        return not (self._is_lost or worker.ends.is_set() or worker.is_worn or self.task.name in worker.stopped)

    # --- for the keeper

    def end_wait(self) -> None:
        """Ends its wait for a message, so that it checks whether to continue."""
        qm = self._qm
        if qm is not None and self._called is None and not self.goes_on:
            with contextlib.suppress(InorderError):
                qm.end_waits()

    def end_overdue(self) -> None:
        """Ends a call that is over its time limit, and replaces the lane."""
        limit = self.task.timeout
        with self._lock:
            taken = self._called
            if limit is None or taken is None or self._is_lost or time.monotonic() < self._began + limit:
                return
            delay = self.task.backoff.after(taken.first.backout_count + 1, 0.5)
            verdict = AttemptVerdict(Outcome.OVERDUE, f"the call took longer than {limit:g} s", delay)
            self._lose(verdict)
        self._report(taken.first, verdict)
        self._worker.replace(self)
        self._end()

    def give_back(self, why: str) -> bool:
        """Ends a running call and prevents another; returns whether one was running."""
        verdict = AttemptVerdict(Outcome.RETURNED, why)
        with self._lock:
            self._is_shut = True
            taken = self._called
            if taken is None or self._is_lost:
                return False
            self._lose(verdict)
        self._report(taken.first, verdict)
        self._end()
        return True

    def _lose(self, verdict: AttemptVerdict) -> None:
        assert self._qm is not None
        self._is_lost = True
        try:
            self._qm.internals.give_up(delay=verdict.delay, error=verdict.error)
        except Exception:
            log.exception("a connection could not be ended; its messages are backed out later")

    def _end(self) -> None:
        self.is_at_work = False
        self._worker.lane_ends()

    # --- the thread

    def _run(self) -> None:
        try:
            while self.goes_on:
                try:
                    if self._qm is None:
                        self._qm = self._worker.qm.connect()
                    trouble = self._work(self._qm)
                    self._troubles = self._troubles + 1 if trouble else 0
                    if trouble:
                        self._pause(trouble, TROUBLE.after(self._troubles, 0.5))
                except InorderError as error:
                    if self._is_lost:
                        return
                    self._troubles += 1
                    self._heed(error)
                except OrderStops as error:
                    self._worker.stop_task(self.task, str(error))
                except Exception as error:
                    log.exception("a thread of %s has failed", self.task.name)
                    self._worker.stop_task(self.task, f"its thread has failed: {error!r}")
        finally:
            self._close()
            if not self._is_lost:
                self._end()

    def _heed(self, error: InorderError) -> None:
        """Handles an error in one of the lane's own calls."""
        if isinstance(error, GetInhibited):
            self._pause(str(error), PAUSE_SECONDS)
        elif isinstance(error, OrderDeadlock):
            self._pause(str(error), TROUBLE.after(self._troubles, 0.5))
        elif error.data.get("must_reopen"):
            self._worker.lose_store(error)
        elif isinstance(error, StoreError | ConnectionBroken | ConnectionClosed | CallInProgress | OutcomeUnknown):
            self._close()
            self._pause(str(error), TROUBLE.after(self._troubles, 0.5))
        else:
            self._worker.stop_task(self.task, str(error))

    def _pause(self, text: str, seconds: float) -> None:
        now = time.monotonic()
        self._said = {said: at for said, at in self._said.items() if now < at + SAID_SECONDS}
        is_repeated = text in self._said
        self._said.setdefault(text, now)
        event = WorkerEvent("trouble", self.task.queue, task=self.task.name, text=text)
        self._worker.report(event, is_repeated=is_repeated)
        self._worker.ends.wait(seconds)

    def _close(self) -> None:
        qm, self._qm = self._qm, None
        if qm is not None:
            with contextlib.suppress(InorderError):
                qm.internals.abandon()

    # --- one message or group

    def _work(self, qm: QueueManager) -> str:
        """Gets and handles one message or group; returns the trouble because of which it is retried without an attempt,
        or "".

        Raises OrderStops; and as a get, a commit.
        """
        taken = called = None
        try:
            with qm.unit_of_work() as unit:
                unit.task = self.task.name
                taken = attempts.take(qm, self.task)
                self._began = time.monotonic()
                try:
                    verdict = self._settled_before(qm, taken)
                    if verdict is None:
                        verdict = called = self._call(qm, taken)
                    if verdict is None:
                        return ""  # another thread has ended the attempt
                    if not verdict.is_failure and unit.status == "open":
                        unit.commit()
                except attempts.TROUBLES as error:
                    verdict = attempts.in_trouble(error, self._delay)
                was_open = unit.status == "open"
                if verdict.is_failure and was_open:
                    attempts.back_out(unit, taken.first, verdict)
        except NOTHING:
            return ""
        except InorderError as error:
            if taken is not None and called is not None:  # no effect: ending the connection backs it out
                self._report(taken.first, attempts.not_settled(called, error))
            raise
        if verdict.is_trouble and was_open:
            return verdict.error
        verdict = attempts.as_settled(verdict, unit.status)
        if not verdict.is_failure or verdict.outcome not in (Outcome.DEAD, Outcome.DISCARDED):
            self._report(taken.first, verdict)
            return ""
        ended = verdict._replace(outcome=Outcome.RETRIED)  # if it still exists, the next reader reports the rest
        try:
            finished = self._finish(qm, taken.first, verdict)
            if finished is None:
                ended = verdict
            return finished or ""
        finally:
            self._report(taken.first, ended)

    @property
    def _delay(self) -> float:
        """Seconds before a message in trouble may be read again: longer than the pause, so that others have a turn."""
        return 2 * TROUBLE.after(self._troubles + 1, 0.5)

    def _settled_before(self, qm: QueueManager, taken: TakenMessages) -> AttemptVerdict | None:
        """Sets aside or removes, in the open unit, a message that was given up or has no attempts left. None: call the
        function.
        """
        first = taken.first
        if not first.backout_count:
            return None
        why = attempts.decided(first)
        if why is None:
            if first.backout_count < attempts.attempts_of(qm, self.task):
                return None
            why = AttemptVerdict(Outcome.DEAD, attempts.why_exhausted(first), is_failure=False)
        if why.outcome is Outcome.DEAD and attempts.local(qm, self.task.queue).read_order == "required":
            if self._worker.may_try_again(self.task, failure_of(first)):
                return None
            raise OrderStops(attempts.why_stopped(self.task, first, first.backout_count, why.error))
        self._carry_out(qm, (first,) if self.task.group is None else taken.given, why)
        return why

    def _call(self, qm: QueueManager, taken: TakenMessages) -> AttemptVerdict | None:
        """Calls the function; None if another thread has decided the attempt."""
        failure: BaseException | None = None
        with self._lock:
            if self._is_shut:
                return AttemptVerdict(Outcome.RETURNED, "the worker was stopped before this call began")
            self._called = taken
        try:
            attempts.call(qm, self.task, taken)
        except BaseException as error:  # noqa: BLE001 - whatever it is, it is what became of the attempt
            failure = error
        with self._lock:
            self._called = None
            if self._is_lost:
                return None
        if failure is None:
            return attempts.WELL_DONE
        now = qm.internals.clock.now()
        trouble = attempts.judge_trouble(self.task, failure, taken.first, now, self._delay)
        if trouble is not None:
            return trouble
        try:
            most = attempts.attempts_of(qm, self.task)
        except InorderError:  # connection lost: the next getter knows whether attempts are left
            most = ATTEMPTS_MAX
        verdict = attempts.judge(self.task, failure, taken.first.backout_count + 1, most)
        return verdict._replace(since=attempts.since_of(failure, taken.first, now))

    def _finish(self, qm: QueueManager, first: Got, verdict: AttemptVerdict) -> str | None:
        """Gets a backed-out message again without calling the function, and makes it a dead letter or removes it.

        Returns: None if that is done; the trouble because of which it is retried; "" if another reader has it.
        """
        is_required = attempts.local(qm, self.task.queue).read_order == "required"
        if is_required and verdict.outcome is Outcome.DEAD:
            raise OrderStops(attempts.why_stopped(self.task, first, first.backout_count + 1, verdict.error))
        try:
            with qm.unit_of_work() as unit:
                try:
                    self._carry_out(qm, attempts.taken_again(qm, self.task, first), verdict)
                    unit.commit()
                except attempts.TROUBLES as error:
                    trouble = attempts.in_trouble(error, self._delay)
                    attempts.back_out(unit, first, trouble)
                    return trouble.error
        except NOTHING:
            log.info("another reader has message %s, and handles it", first.message_id.hex())
            return ""
        return None

    def _carry_out(self, qm: QueueManager, messages: Iterable[Got], why: AttemptVerdict) -> None:
        """In the unit that got the messages: makes them dead letters, or lets the commit remove them."""
        if why.outcome is Outcome.DEAD:
            attempts.set_aside(qm, self.task, messages, why)
        else:
            for _ in messages:
                pass

    def _report(self, first: Got, verdict: AttemptVerdict) -> None:
        attempt = first.backout_count + (verdict.is_failure or verdict.outcome is Outcome.DONE)
        ended = Ended(
            verdict.outcome, first.message_id, first.group_id, attempt, verdict.delay, verdict.error, verdict.trace
        )
        seconds = time.monotonic() - self._began
        self._worker.report(
            WorkerEvent(
                "attempt", self.task.queue, task=self.task.name, text=verdict.error, ended=ended, seconds=seconds
            )
        )
