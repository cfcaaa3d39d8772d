"""Calls that another thread ends, at their time limit or at a stop: each is reported once and commits nothing."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest
from tests.helpers.elsewhere import proxied
from tests.helpers.support import LIMIT_SECONDS
from tests.helpers.working import Heard, worked

from inorder import Message, QueueManager, connect
from inorder.client.internals import Internals
from inorder.work import Backoff, Outcome, Tasks, Worker, WorkerEvent, attempts
from inorder.work import worker as worker_module
from inorder.work.lane import WorkerLane
from inorder.work.processes import WORN_OUT, serve


class Endless:
    """A task whose calls are overdue and run until `goes_on` is set; `reported`: an overdue call was reported."""

    def __init__(self, timeout: float | None = 0.01) -> None:
        self.tasks, self.thread = Tasks(), threading.current_thread()
        self.began, self.reported, self.goes_on = threading.Event(), threading.Event(), threading.Event()
        self.tasks.task("Q", name="wait", timeout=timeout, backoff=Backoff(first=60, most=60))(self._wait)

    def _wait(self, message: Message) -> None:
        self.thread = threading.current_thread()
        self.began.set()
        assert self.goes_on.wait(LIMIT_SECONDS)

    def thread_ends(self) -> bool:
        """Lets the function return. Returns whether its thread has ended."""
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
    assert (qm.depth("Q"), qm.inspect.units()) == (1, [])


def test_a_process_asks_for_its_replacement_however_long_the_end_of_a_call_takes(qm: QueueManager) -> None:
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
    status = serve(Watched(qm, endless.tasks, log=log, replaces_threads=False), LIMIT_SECONDS)
    has_looked.set()
    endless.goes_on.set()
    assert status == WORN_OUT, "no process takes the place of this one"


def test_a_stop_does_not_return_before_an_overdue_call_is_reported(
    qm: QueueManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    endless, heard = Endless(), Heard()
    is_given_up, stop_waits = threading.Event(), threading.Event()

    def given_up(self: Internals, *, give_up: Any = Internals.give_up, **how: Any) -> None:
        is_given_up.set()
        assert stop_waits.wait(LIMIT_SECONDS)
        give_up(self, **how)

    class Watched(Worker):
        def wait(self, timeout: float | None = None) -> bool:
            stop_waits.set()
            return super().wait(timeout)

    monkeypatch.setattr(Internals, "give_up", given_up)
    qm.put("Q", b"1")
    worker = Watched(qm, endless.tasks, log=heard)
    worker.start()
    assert is_given_up.wait(LIMIT_SECONDS)
    assert worker.stop(grace=0) == 0
    reported = heard.outcomes
    stop_waits.set()
    endless.goes_on.set()
    assert reported == [Outcome.OVERDUE], "a process would have ended without the report"


def test_calls_that_are_over_their_time_are_ended_side_by_side(
    qm: QueueManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    tasks, heard, goes_on = Tasks(), Heard(), threading.Event()
    both_run, both_end = threading.Barrier(2), threading.Barrier(2)

    @tasks.task("Q", threads=2, timeout=0.01, backoff=Backoff(first=60))
    def wait(message: Message) -> None:
        both_run.wait(LIMIT_SECONDS)
        goes_on.wait(LIMIT_SECONDS)

    def given_up(self: Internals, *, give_up: Any = Internals.give_up, **how: Any) -> None:
        both_end.wait(LIMIT_SECONDS)
        give_up(self, **how)

    monkeypatch.setattr(Internals, "give_up", given_up)
    qm.put_many("Q", [b"1", b"2"])
    with Worker(qm, tasks, log=heard, replaces_threads=False):
        heard.attempts(2)
        goes_on.set()
    assert not both_end.broken, "a call that ends slowly held up the other one"
    assert (heard.outcomes, qm.depth("Q"), qm.inspect.units()) == ([Outcome.OVERDUE] * 2, 2, [])


@pytest.mark.parametrize("timeout", [0.01, None])
def test_a_call_is_ended_also_if_no_thread_can_begin(
    qm: QueueManager, monkeypatch: pytest.MonkeyPatch, timeout: float | None
) -> None:
    """From Python 3.12 on no thread begins while functions of `atexit` run."""
    endless, heard = Endless(timeout), Heard()

    def start(self: threading.Thread, *, start: Any = threading.Thread.start) -> None:
        if self.name == "inorder work: end":
            raise RuntimeError("can't create new thread at interpreter shutdown")
        start(self)

    monkeypatch.setattr(threading.Thread, "start", start)
    qm.put("Q", b"1")
    with Worker(qm, endless.tasks, log=heard, replaces_threads=False) as worker:
        assert endless.began.wait(LIMIT_SECONDS)
        if timeout is None:
            assert worker.stop(grace=0) == 1
        else:
            heard.attempts(1)
    assert heard.outcomes == [Outcome.RETURNED if timeout is None else Outcome.OVERDUE]
    assert (qm.depth("Q"), qm.inspect.units()) == (1, [])
    assert endless.thread_ends()


def test_a_stop_ends_in_time_though_the_server_of_the_store_no_longer_answers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("websockets", reason="without inorder[remote] there are no stores elsewhere")
    monkeypatch.setattr(worker_module, "SETTLE_SECONDS", 0.1)
    endless, heard = Endless(timeout=None), Heard()
    endless.tasks.task("OTHER", name="other")(lambda message: None)  # its thread waits for a message
    endless.tasks.periodic("0 0 1 1 *", queue="OTHER", name="yearly")(lambda due: b"1")
    with connect(tmp_path / "there.db") as there, proxied(monkeypatch, tmp_path / "credentials", there) as [proxy]:
        there.create_queue("Q")
        there.create_queue("OTHER")
        there.put("Q", b"1")
        with connect(f"http://127.0.0.1:{proxy.port}") as qm:
            worker = Worker(qm, endless.tasks, log=heard)
            worker.start()
            assert endless.began.wait(LIMIT_SECONDS)
            proxy.freeze()
            stopping = threading.Thread(target=worker.stop, args=(0,), daemon=True)
            stopping.start()
            stopping.join(LIMIT_SECONDS)
            has_ended = not stopping.is_alive()
            proxy.thaw()
            assert has_ended
            heard.attempts(1)  # later, when the server answers
            assert endless.thread_ends()
        assert heard.outcomes == [Outcome.RETURNED]
        assert [(one.body, one.backout_count) for one in there.browse("Q")] == [(b"1", 1)]


def test_a_call_that_ends_while_it_is_given_up_commits_nothing(
    qm: QueueManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    endless, heard, comes_late = Endless(), Heard(), threading.Event()

    def given_up(self: Internals, *, give_up: Any = Internals.give_up, **how: Any) -> None:
        endless.goes_on.set()
        assert comes_late.wait(LIMIT_SECONDS)
        give_up(self, **how)

    class Noting:
        """A lock that sets `comes_late` when a thread has to wait for it."""

        def __init__(self) -> None:
            self._lock = threading.Lock()

        def __enter__(self) -> None:
            if not self._lock.acquire(blocking=False):
                comes_late.set()
                self._lock.acquire()

        def __exit__(self, *_: object) -> None:
            self._lock.release()

    monkeypatch.setattr(Internals, "give_up", given_up)
    qm.put("Q", b"1")
    worker = Worker(qm, endless.tasks, log=heard, replaces_threads=False)
    for lane in worker._lanes:
        monkeypatch.setattr(lane, "_lock", Noting())
        monkeypatch.setattr(lane, "_close", comes_late.set)  # its thread ends, so it did not wait
    worker.start()
    heard.attempts(1)
    worker.stop()
    assert heard.outcomes == [Outcome.OVERDUE]
    assert (qm.depth("Q"), qm.inspect.units()) == (1, []), "what is reported as overdue was committed"


def test_no_call_begins_after_a_stop_and_its_message_keeps_its_attempts(
    qm: QueueManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    tasks, heard, calls = Tasks(), Heard(), list[Message]()
    is_taken, is_stopped = threading.Event(), threading.Event()

    def take(*given: Any, take: Any = attempts.take) -> Any:
        taken = take(*given)
        is_taken.set()
        assert is_stopped.wait(LIMIT_SECONDS)
        return taken

    def give_back(self: WorkerLane, why: str, *, give_back: Any = WorkerLane.give_back) -> None:
        give_back(self, why)
        is_stopped.set()

    monkeypatch.setattr(attempts, "take", take)
    monkeypatch.setattr(WorkerLane, "give_back", give_back)
    tasks.task("Q", name="see", attempts=1)(calls.append)
    qm.put("Q", b"1")
    worker = Worker(qm, tasks, log=heard)
    worker.start()
    assert is_taken.wait(LIMIT_SECONDS)
    worker.stop(grace=0)
    for lane in worker._lanes:
        lane.thread.join(LIMIT_SECONDS)
    assert (calls, worker.is_busy) == ([], False)
    assert [(one.kind, one.ended and one.ended[:1], one.ended and one.ended.attempt) for one in heard.told] == [
        ("attempt", (Outcome.RETURNED,), 0)
    ]
    assert [(one.body, one.backout_count) for one in qm.browse("Q")] == [(b"1", 0)]
    assert worked(qm, tasks).outcomes == [Outcome.DONE]


def test_the_end_of_a_thread_is_never_missed(qm: QueueManager) -> None:
    """A thread that has said that it ends may stay alive for a while, and nothing wakes the stop a second time."""
    tasks, goes_on = Tasks(), threading.Event()
    tasks.task("Q", name="see")(lambda message: None)

    class Slow(Worker):
        def lane_ends(self) -> None:
            super().lane_ends()
            goes_on.wait(2 * LIMIT_SECONDS)

    worker = Slow(qm, tasks)
    worker.start()
    stopping = threading.Thread(target=worker.stop, args=(2 * LIMIT_SECONDS,), daemon=True)
    stopping.start()
    stopping.join(LIMIT_SECONDS)
    has_ended = not stopping.is_alive()
    goes_on.set()
    assert has_ended, "a stop waits out its grace time though nothing is at work"
