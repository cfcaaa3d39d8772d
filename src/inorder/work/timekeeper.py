"""The thread of a worker that puts the messages of schedules, on its own connection.

A failure of one schedule is reported once, until the schedule succeeds or fails differently, and tried again each
second: it stops neither the other schedules nor the tasks. If the connection is lost, or the store is in trouble, the
thread connects again, later each time.
"""

from __future__ import annotations

import contextlib
import logging
import threading
from collections.abc import Sequence
from typing import Any

from ..errors import ConnectionBroken, ConnectionClosed, InorderError, OutcomeUnknown, StoreError
from .attempts import said
from .lane import TROUBLE
from .periodic import Periodic, Schedule, ScheduledRun
from .reporting import WorkerEvent, WorkerOfThreads

log = logging.getLogger("inorder.work")


class Timekeeper:
    """A thread and its connection.

    Attributes:
        is_at_work: whether it waits for the next run, or puts one.
    """

    def __init__(self, worker: WorkerOfThreads, schedules: Sequence[Schedule]) -> None:
        self._worker, self._schedules = worker, schedules
        self.thread = threading.Thread(target=self._run, name="inorder work: schedules", daemon=True)
        self._wakes = threading.Event()
        self._qm: Any = None
        self.is_at_work = self._is_lost = False
        self._failing: dict[Schedule, str] = {}  # with the error that was reported

    def start(self) -> None:
        self.is_at_work = True
        self.thread.start()

    @property
    def goes_on(self) -> bool:
        """Whether it does another round."""
        worker = self._worker
        return not (self._is_lost or worker.ends.is_set() or worker.is_worn or worker.lost)

    # --- for the worker and its keeper

    def end_wait(self) -> None:
        """If it is to end, wakes it so that it ends now, not when the next run is due."""
        if not self.goes_on:
            self._wakes.set()

    def give_back(self) -> None:
        """Ends a put that has not ended by itself: its function may run on, but can no longer put anything."""
        if self.is_at_work:
            self._is_lost = True
            self._close()
            self.is_at_work = False

    # --- the thread

    def _run(self) -> None:
        troubles, periodic = 0, None
        try:
            while self.goes_on:
                try:
                    if periodic is None:
                        periodic = self._connect()
                    if self._is_lost:  # before it had a connection that could be ended
                        return
                    seconds = periodic.look()
                    self._failing = {one: text for one, text in self._failing.items() if one in periodic.failing}
                    troubles = 0
                except (StoreError, ConnectionBroken, ConnectionClosed, OutcomeUnknown) as error:
                    if error.data.get("must_reopen"):
                        self._worker.lose_store(error)
                        break
                    periodic, troubles = None, troubles + 1
                    self._close()
                    if not self._is_lost:
                        self._report_all(error)
                    seconds = TROUBLE.after(troubles, 0.5)
                self._wakes.wait(seconds)
            if self._worker.lost is not None and not self._is_lost:
                self._stop(str(self._worker.lost))
        except Exception as error:
            if not isinstance(error, InorderError):
                log.exception("the thread of the schedules has failed")
            if not self._is_lost:
                self._stop(str(error) or repr(error))
        finally:
            self._close()
            self.is_at_work = False
            self._worker.lane_ends()

    def _connect(self) -> Periodic:
        self._qm = self._worker.qm.connect()
        return Periodic(self._qm, self._schedules, on_put=self._put, on_failure=self._failed)

    def _close(self) -> None:
        qm, self._qm = self._qm, None
        if qm is not None:
            with contextlib.suppress(InorderError):
                qm.internals.abandon()

    # --- reports

    def _put(self, run: ScheduledRun) -> None:
        one = run.schedule
        self._worker.report(
            WorkerEvent("put", one.queue, schedule=one.name, run=run, seconds=max(0.0, run.put_at - run.due))
        )

    def _failed(self, one: Schedule, error: BaseException) -> None:
        text = str(error) if isinstance(error, InorderError) else said(error)
        is_repeated = self._failing.get(one) == text
        self._failing[one] = text
        self._worker.report(WorkerEvent("trouble", one.queue, schedule=one.name, text=text), is_repeated=is_repeated)

    def _report_all(self, error: InorderError) -> None:
        for one in self._schedules:
            self._failed(one, error)

    def _stop(self, why: str) -> None:
        """Ends the schedules, which cannot continue; the tasks continue if they can."""
        for one in self._schedules:
            if self._worker.stopped.setdefault(one.name, why) is why:
                self._worker.report(WorkerEvent("stopped", one.queue, schedule=one.name, text=why))
