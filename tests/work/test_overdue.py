"""While a call that is past its time is given up its worker is busy: else a process would end before it is reported."""

from __future__ import annotations

import os
import sys
import threading
from contextlib import ExitStack

import pytest
from tests.support import LIMIT_SECONDS

from inorder import Message, QueueManager
from inorder.work import Backoff, Outcome, Tasks, Worker, WorkerEvent
from inorder.work.processes import WORN_OUT, serve


class Endless:
    """A task whose calls go on until `goes_on`, each past its time; `reported`: an overdue one is."""

    def __init__(self) -> None:
        self.tasks, self.thread = Tasks(), threading.current_thread()
        self.began, self.reported, self.goes_on = threading.Event(), threading.Event(), threading.Event()
        self.tasks.task("Q", name="wait", timeout=0.01, backoff=Backoff(first=60, most=60))(self._wait)

    def _wait(self, message: Message) -> None:
        self.thread = threading.current_thread()
        self.began.set()
        assert self.goes_on.wait(LIMIT_SECONDS)

    def thread_ends(self) -> bool:
        """Lets the function return; whether its thread has ended."""
        assert self.began.wait(LIMIT_SECONDS)  # it may be overdue before it begins
        self.goes_on.set()
        self.thread.join(LIMIT_SECONDS)
        return not self.thread.is_alive()


@pytest.mark.parametrize("replaces_threads", [True, False])
def test_a_worker_is_busy_until_an_overdue_call_is_reported(qm: QueueManager, replaces_threads: bool) -> None:
    endless, seen = Endless(), list[bool]()

    def log(event: WorkerEvent) -> None:
        if event.ended is not None and event.ended.outcome is Outcome.OVERDUE:
            seen.extend([worker.wait(0), worker.is_worn, endless.thread_ends(), worker.wait(0), worker.is_worn])
            endless.reported.set()

    qm.put("Q", b"1")
    worker = Worker(qm, endless.tasks, log=log, replaces_threads=replaces_threads)
    with worker:
        assert endless.reported.wait(LIMIT_SECONDS)
        if not replaces_threads:
            assert worker.wait(LIMIT_SECONDS), "a worn worker does not end"
    assert seen == [False, False, True, False, False], "waits must not end, nor is it worn, before the report has ended"
    assert (worker.is_worn, worker.is_busy) == (not replaces_threads, False)
    assert (qm.depth("Q"), qm.units()) == (1, [])


def test_a_process_asks_for_another_one_however_long_the_end_of_a_call_takes(
    qm: QueueManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    endless, has_looked = Endless(), threading.Event()

    class Watched(Worker):
        def wait(self, timeout: float | None = None) -> bool:
            is_over = super().wait(timeout)
            if endless.reported.is_set() and not is_over:
                has_looked.set()
            return is_over

    def log(event: WorkerEvent) -> None:
        if event.ended is not None and event.ended.outcome is Outcome.OVERDUE:
            endless.reported.set()
            has_looked.wait(LIMIT_SECONDS)

    qm.put("Q", b"1")
    with ExitStack() as stack:
        reading, writing = os.pipe()
        monkeypatch.setattr(sys, "stdin", stack.enter_context(os.fdopen(reading)))
        stack.enter_context(os.fdopen(writing, "w"))  # closed first: what reads the other end ends
        status = serve(Watched(qm, endless.tasks, log=log, replaces_threads=False), LIMIT_SECONDS)
        has_looked.set()
        endless.goes_on.set()
    assert status == WORN_OUT, "no process takes the place of this one"
