"""The supervisor of worker processes, with processes that end when the test says so; the status of a worker process."""

from __future__ import annotations

import errno
import os
import signal
import sys
from unittest.mock import Mock

import pytest
from tests.helpers.support import LIMIT_SECONDS

from inorder import QueueManager
from inorder.work import Tasks, Worker
from inorder.work.processes import CANNOT_GO_ON, HAD_STOPPED, Happened, Supervisor, serve


def test_a_process_that_is_killed_for_being_late_is_killed_and_reported_once() -> None:
    """It takes its time, even to be killed: its memory is large, say, or it waits for a disk."""
    said, process = list[Happened](), Mock(pid=4711, poll=Mock(return_value=None))
    supervisor = Supervisor(lambda *_: [], environment={}, count=1, grace=0, log=said.append)
    (child,) = supervisor._children
    child.process, child.starts_at = process, None
    supervisor._ends_at = 0.0
    assert supervisor._time_left() == 0
    supervisor._kill_late()
    assert supervisor._time_left() is None, "it must wait for the end of the process, and not ask over and over"
    supervisor._kill_late()
    assert (process.kill.call_count, [one.event for one in said]) == (1, ["killed"])


def test_a_process_that_the_system_cannot_start_is_tried_again() -> None:
    """Its program is not there at first."""
    said, commands = list[Happened](), [[os.devnull + "/none"], [sys.executable, "-c", "import signal; signal.pause()"]]

    def log(happened: Happened) -> None:
        said.append(happened)
        if happened.event == "started":
            signal.raise_signal(signal.SIGTERM)

    supervisor = Supervisor(lambda *_: commands.pop(0), environment={}, count=1, grace=60, log=log)
    assert supervisor.run()
    failed, started = said
    assert (failed.event, failed.process, failed.pid) == ("failed", 1, None)
    assert failed.error == os.strerror(errno.ENOTDIR), "the reason of the system, in its words"
    assert (started.event, started.process) == ("started", 1)


@pytest.mark.parametrize(("others", "status"), [(False, CANNOT_GO_ON), (True, HAD_STOPPED)])
def test_the_status_of_a_process_says_that_a_task_has_stopped(qm: QueueManager, others: bool, status: int) -> None:
    tasks = Tasks()
    tasks.task("NOWHERE", name="lost")(lambda message: None)
    if others:
        tasks.task("Q", name="see")(lambda message: signal.raise_signal(signal.SIGTERM))
    worker = Worker(qm, tasks, log=lambda event: qm.put("Q", b"1") if event.kind == "stopped" and others else None)
    assert serve(worker, LIMIT_SECONDS) == status
    assert list(worker.stopped) == ["lost"]
