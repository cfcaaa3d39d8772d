"""One thread that works on a queue: it gets a message, calls its task, commits or backs out, and repeats."""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Final

from ..client.defining import local_attributes
from ..client.manager import QueueManager
from ..client.unit_of_work import UnitOfWork
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
    Reason,
    StoreError,
    WaitEnded,
)
from ..model.message import Got
from ..rules.retries import Backoff, Later, failure_of
from . import attempts, results
from .attempts import AttemptVerdict, OrderStops, TakenMessages
from .dispatch import LaneTasks
from .limits import LaneLimits, Withheld
from .outcomes import Ended, Outcome
from .reporting import WorkerEvent, WorkerOfThreads
from .tasks import ATTEMPTS_MAX

if TYPE_CHECKING:
    from .looping import AsyncCall

log = logging.getLogger("inorder.work")

PAUSE_SECONDS: Final = 1.0  # before a queue that inhibits gets is tried again
TROUBLE: Final = Backoff(first=0.5, most=30.0, jitter=0.5)  # before a store or target in trouble is tried again
CANCEL_SECONDS: Final = 5.0  # for a cancelled `async def` function to end
SAID_SECONDS: Final = 600.0  # the same trouble is not logged again within this time
NOTHING = (NoMessageAvailable, OrderPending, WaitEnded)


def in_own_thread(end: Callable[[], object]) -> threading.Thread:
    """Begins the end of a call in another thread, because the store may take long to answer. If no thread can begin,
    such as at the end of the process, this one ends the call.
    """
    thread = threading.Thread(target=end, name="inorder work: end", daemon=True)
    try:
        thread.start()
    except RuntimeError:
        end()
    return thread


class WorkerLane:
    """A thread and its connection.

    While the function runs, the lane or another thread (the keeper, or one that stops the worker) may decide how
    the attempt ends: the first to take `_lock`. If it is another thread, the lane is *lost*. The other thread ends the
    connection before it releases the lock, so that the lane can no longer commit. A call of an `async def` function is
    then cancelled, and its thread ends with it; if the function takes long to end, its thread is abandoned as well.

    Attributes:
        tasks: the tasks whose messages it gets.
        task: the task of its present or last message.
        is_given_back: whether its call is given back.
        is_at_work: whether it works, or waits for work. A lost lane is at work until its attempt is reported and the
            worker has replaced it; otherwise the process could look idle, and end before that.
    """

    def __init__(self, worker: WorkerOfThreads, tasks: LaneTasks) -> None:
        self.tasks, self.task, self._worker = tasks, tasks.first, worker
        self.thread = threading.Thread(target=self._run, name=f"inorder work {tasks.name}", daemon=True)
        self._lock = threading.Lock()
        self._qm: QueueManager | None = None
        self._called: TakenMessages | None = None  # the messages of the running call
        self._awaited: AsyncCall | None = None  # the running call of an `async def` function
        self._cancelled_at: float | None = None  # when that was cancelled
        self._began = 0.0
        self._is_lost = self._is_shut = self.is_given_back = False
        self._ender = threading.Thread()  # ends an overdue call
        self._troubles = 0  # in a row
        self._said = dict[str, float]()  # when each trouble was last logged
        self._limits = LaneLimits() if any(one.limits for one in tasks.tasks) else None
        self.is_at_work = False

    def start(self) -> None:
        self.is_at_work = True
        self.thread.start()

    @property
    def goes_on(self) -> bool:
        """Whether it gets another message."""
        worker = self._worker
        return not (self._is_lost or worker.ends.is_set() or worker.is_worn or self.tasks.first.name in worker.stopped)

    @property
    def running(self) -> tuple[str, float] | None:
        """The name of the task that it calls, and for how many seconds; None: it calls none."""
        taken, began = self._called, self._began
        return None if taken is None else (self.task.name, time.monotonic() - began)

    # --- for the keeper

    def end_wait(self) -> None:
        """Ends its wait for a message, so that it checks whether to continue."""
        qm = self._qm
        if qm is not None and self._called is None and not self.goes_on:
            with contextlib.suppress(InorderError):
                qm.end_waits()

    def end_overdue(self) -> None:
        """Ends a call that is over its time limit, in a thread of its own."""
        if self._is_overdue and not self._ender.is_alive():
            self._ender = in_own_thread(self._end_overdue)

    @property
    def _is_overdue(self) -> bool:
        """Whether its call is over its time limit, or was cancelled and has not ended in time."""
        now, limit, cancelled_at = time.monotonic(), self.task.timeout, self._cancelled_at
        if cancelled_at is not None:
            return now >= cancelled_at + CANCEL_SECONDS
        return limit is not None and self._called is not None and not self._is_lost and now >= self._began + limit

    def _end_overdue(self) -> None:
        """Ends the call, and replaces the lane unless its thread ends by itself."""
        with self._lock:
            if not self._is_overdue:
                return
            taken = self._called if self._cancelled_at is None else None
            self._cancelled_at = None
            if taken is not None:
                delay = self.task.backoff.after(taken.first.backout_count + 1, 0.5)
                text = f"the call took longer than {self.task.timeout:g} s"
                verdict = AttemptVerdict(Outcome.OVERDUE, text, delay)
                ends_by_itself = self._lose(verdict)
        if taken is not None:
            self._report(taken.first, verdict)
            if ends_by_itself:
                return
        self._worker.replace(self)
        self._end()

    def give_back(self, why: str) -> None:
        """Ends a running call and prevents another."""
        verdict = AttemptVerdict(Outcome.RETURNED, why)
        with self._lock:
            self._is_shut = True
            taken = self._called
            if taken is None or self._is_lost:
                return
            self.is_given_back = True
            ends_by_itself = self._lose(verdict)
        self._report(taken.first, verdict)
        if not ends_by_itself:
            self._end()

    def _lose(self, verdict: AttemptVerdict) -> bool:
        """Ends the connection of the running call; returns whether the call is cancelled, so that its thread ends."""
        assert self._qm is not None
        self._is_lost = True
        try:
            self._qm.internals.give_up(delay=verdict.delay, error=verdict.error)
        except Exception:
            log.exception("a connection could not be ended; its messages are backed out later")
        if self._awaited is None:
            return False
        self._cancelled_at = time.monotonic()
        self._awaited.cancel()
        return True

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
                    before = self._worker.attempts
                    trouble = self._work(self._qm)
                    self._troubles = self._troubles + 1 if trouble else 0
                    if trouble is None and not self._finds_more(before):
                        return
                    if trouble:
                        self._pause(trouble, TROUBLE.after(self._troubles, 0.5))
                except InorderError as error:
                    if self._is_lost:
                        return
                    self._troubles += 1
                    self._heed(error)
                except OrderStops as error:
                    self._stop_tasks(str(error))
                except Exception as error:
                    log.exception("a thread of %s has failed", self.tasks.name)
                    self._stop_tasks(f"its thread has failed: {error!r}")
        finally:
            self._close()
            with self._lock:
                is_cancelled, self._cancelled_at = self._cancelled_at is not None, None
            if is_cancelled:
                self._worker.replace(self, has_ended=True)
            if is_cancelled or not self._is_lost:
                self._end()

    def _finds_more(self, before: int) -> bool:
        """Whether to try again after a get that found nothing.

        Args:
            before: the attempts that the worker had reported before that get.
        """
        limits = self._limits
        if limits is not None and limits.looks_again():
            return True
        if not self._worker.looks_again(before):
            return False
        if limits is not None and self._worker.attempts != before:
            limits.forget()
        return True

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
            self._stop_tasks(str(error))

    def _stop_tasks(self, why: str) -> None:
        for one in self.tasks.tasks:
            self._worker.stop_task(one, why)

    def _pause(self, text: str, seconds: float) -> None:
        now = time.monotonic()
        self._said = {said: at for said, at in self._said.items() if now < at + SAID_SECONDS}
        is_repeated = text in self._said
        self._said.setdefault(text, now)
        event = WorkerEvent("trouble", self.task.queue, task=self.tasks.name, text=text)
        self._worker.report(event, is_repeated=is_repeated)
        self._worker.ends.wait(seconds)

    def _close(self) -> None:
        qm, self._qm = self._qm, None
        if qm is not None:
            with contextlib.suppress(InorderError):
                qm.internals.abandon()

    # --- one message or group

    def _work(self, qm: QueueManager) -> str | None:
        """Gets and handles one message or group; returns the trouble because of which it is retried without an attempt,
        or ""; None: there was no message.

        Raises OrderStops; and as a get, a commit.
        """
        taken = called = None
        try:
            with qm.unit_of_work() as unit:
                options = self.tasks.first.options
                options = options if self._limits is None else self._limits.choice(options)
                taken = attempts.take(qm, self.tasks.first, options)
                self._began = time.monotonic()
                task = self.tasks.task_of(taken.first)
                self.task = task or self.tasks.first
                unit.task = self.task.name
                try:
                    verdict = self._settled_before(qm, taken, is_known=task is not None)
                    held = self._held(qm, taken.first) if verdict is None and self.task.limits else None
                    if held is not None:
                        return self._put_back(unit, held)
                    if verdict is None:
                        verdict = called = self._call(qm, unit, taken)
                    if verdict is None:
                        return ""  # another thread has ended the attempt
                    if not verdict.is_failure and unit.status == "open":
                        unit.commit()
                except (*attempts.TROUBLES, *attempts.TARGETS) as error:  # those: no permit can be put now
                    verdict = attempts.in_trouble(error, self._delay)
                was_open = unit.status == "open"
                if verdict.is_failure and was_open:
                    attempts.back_out(unit, taken.first, verdict)
        except NOTHING:
            return None
        except InorderError as error:
            if taken is not None and called is not None:  # no effect: ending the connection backs it out
                self._report(taken.first, attempts.not_settled(called, error))
            raise
        if verdict.is_trouble and was_open and verdict.outcome is Outcome.RETRIED:
            return verdict.error
        verdict = attempts.as_settled(verdict, unit.status)
        if not verdict.is_failure or verdict.outcome not in (Outcome.DEAD, Outcome.DISCARDED):
            self._keep_and_report(qm, taken.first, verdict, called)
            return ""
        return self._finish_and_report(qm, taken.first, verdict)

    def _held(self, qm: QueueManager, first: Got) -> Withheld | None:
        """Takes the permits of the call; None: it has them."""
        assert self._limits is not None
        may_pass = local_attributes(qm, self.task.queue).read_order == "relaxed"
        return self._limits.held(qm, self.task, first, may_pass=may_pass)

    def _put_back(self, unit: UnitOfWork, held: Withheld) -> str:
        """Puts back a message that has no permit; this uses up no attempt."""
        unit._put_off(Later(held.hidden, counts=False))
        if held.pause:
            self._worker.ends.wait(held.pause)
        return ""

    def _keep_and_report(
        self, qm: QueueManager, first: Got, verdict: AttemptVerdict, called: AttemptVerdict | None
    ) -> None:
        """Keeps the error of a call that failed after the function itself had committed; then reports."""
        try:
            if self.task.arguments and called is not None and called.is_failure and not verdict.is_failure:
                results.keep_end(qm, first, verdict.outcome, called.error, 0)
        finally:
            self._report(first, verdict)

    def _finish_and_report(self, qm: QueueManager, first: Got, verdict: AttemptVerdict) -> str:
        ended: AttemptVerdict | None = verdict._replace(outcome=Outcome.RETRIED)  # if it is still there after this
        try:
            finished = self._finish(qm, first, verdict)
            if not finished:
                ended = verdict if finished is None else None
            return finished or ""
        finally:
            if ended is not None:
                self._report(first, ended)

    @property
    def _delay(self) -> float:
        """Seconds before a message in trouble may be read again: longer than the pause, so that other messages have a
        turn.
        """
        return 2 * TROUBLE.after(self._troubles + 1, 0.5)

    def _settled_before(self, qm: QueueManager, taken: TakenMessages, *, is_known: bool) -> AttemptVerdict | None:
        """Sets aside or removes, in the open unit, a message that was given up, has no attempts left, or should have
        no task. None: call the function.
        """
        first = taken.first
        if is_known and not first.backout_count:
            return None
        why = attempts.decided(first)
        if why is None and not is_known:
            text = self.tasks.why_unknown(first)
            if self.tasks.unknown == "retry":
                return attempts.left_to_others(text, first, qm.internals.clock.now())
            why = AttemptVerdict(Outcome.DEAD, text, reason=Reason.TASK_UNKNOWN, is_failure=False)
        if why is None:
            if first.backout_count < attempts.attempts_of(qm, self.task):
                return None
            why = AttemptVerdict(Outcome.DEAD, attempts.why_exhausted(first), is_failure=False)
        if why.outcome is Outcome.DEAD and local_attributes(qm, self.task.queue).read_order == "required":
            if self._worker.may_try_again(self.task, failure_of(first)):
                return None
            raise OrderStops(attempts.why_stopped(self.task, first, first.backout_count, why.error))
        self._carry_out(qm, (first,) if self.task.group is None else taken.given, why)
        return why

    def _call(self, qm: QueueManager, unit: UnitOfWork, taken: TakenMessages) -> AttemptVerdict | None:
        """Calls the function; None if another thread has decided the attempt."""
        failure: BaseException | None = None
        with self._lock:
            if self._is_shut:
                text = "the worker was stopped before this call began"
                return AttemptVerdict(Outcome.RETURNED, text, is_trouble=True)
            self._called = taken
            if self.task.is_async:
                self._awaited = self._async_call(qm, unit, taken)
        try:
            value = attempts.call(qm, self.task, taken) if self._awaited is None else self._awaited.run()
            if self.task.arguments is not None:
                results.keep_result(qm, unit, self.task.name, self.task.arguments, taken.first, value)
        except BaseException as error:  # noqa: BLE001 - whatever it is, it is what became of the attempt
            failure = error
        with self._lock:
            self._called = self._awaited = None
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

    def _async_call(self, qm: QueueManager, unit: UnitOfWork, taken: TakenMessages) -> AsyncCall:
        loop, task = self._worker.loop, self.task
        assert loop is not None, "the worker makes one if a task needs it"
        return loop.call(qm, unit, lambda connection: attempts.call_async(connection, task, taken))

    def _finish(self, qm: QueueManager, first: Got, verdict: AttemptVerdict) -> str | None:
        """Gets a backed-out message again without calling the function, and makes it a dead letter or removes it.

        Returns: None if that is done; the trouble because of which it is retried; "" if another reader has it, which
        then carries out the decision and reports it.
        """
        is_required = local_attributes(qm, self.task.queue).read_order == "required"
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
            how = f": {verdict.error}\n{verdict.trace}" if verdict.trace else ""
            log.info("another thread got message %s, and reports it%s", first.message_id.hex(), how)
            return ""
        return None

    def _carry_out(self, qm: QueueManager, messages: Iterable[Got], why: AttemptVerdict) -> None:
        """In the unit that got the messages: makes them dead letters, or lets the commit remove them."""
        whole = list(messages) if self.task.arguments else messages
        if why.outcome is Outcome.DEAD:
            attempts.set_aside(qm, self.task, whole, why)
        else:
            for _ in whole:
                pass
        if isinstance(whole, list):
            results.keep_end(qm, whole[0], why.outcome, why.error, why.reason)

    def _report(self, first: Got, verdict: AttemptVerdict) -> None:
        counts = (verdict.is_failure and not verdict.is_trouble) or verdict.outcome is Outcome.DONE
        attempt = first.backout_count + counts
        ended = Ended(
            verdict.outcome,
            first.message_id,
            first.group_id,
            attempt,
            verdict.delay,
            verdict.error,
            verdict.trace,
            verdict.reason if verdict.outcome is Outcome.DEAD else 0,
        )
        seconds = time.monotonic() - self._began
        is_unknown = verdict.outcome is Outcome.UNKNOWN or verdict.reason == Reason.TASK_UNKNOWN
        name = self.tasks.name if is_unknown else self.task.name
        self._worker.report(
            WorkerEvent("attempt", self.task.queue, task=name, text=verdict.error, ended=ended, seconds=seconds)
        )
