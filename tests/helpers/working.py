"""A worker's events, awaited with a time limit."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator

from inorder import QueueManager
from inorder.work import Outcome, Tasks, Worker, WorkerEvent

from .support import LIMIT_SECONDS


class Heard:
    def __init__(self) -> None:
        self.told: list[WorkerEvent] = []
        self._changed = threading.Condition()

    def __call__(self, event: WorkerEvent) -> None:
        with self._changed:
            self.told.append(event)
            self._changed.notify_all()

    @property
    def outcomes(self) -> list[Outcome]:
        return [one.ended.outcome for one in self.told if one.ended is not None]

    @property
    def events(self) -> list[str]:
        return [one.kind for one in self.told if one.kind != "attempt"]

    def until(self, so: Callable[[Heard], bool]) -> None:
        with self._changed:
            assert self._changed.wait_for(lambda: so(self), LIMIT_SECONDS), f"the worker has said: {self.told}"

    def attempts(self, count: int) -> None:
        self.until(lambda heard: len(heard.outcomes) >= count)


@contextlib.contextmanager
def at_work(qm: QueueManager, tasks: Tasks, *, threads: int = 1) -> Iterator[tuple[Worker, Heard]]:
    """Runs a worker inside the block; yields the worker and its events."""
    heard = Heard()
    worker = qm.worker(tasks, threads=threads, log=heard)
    with worker:
        yield worker, heard
    assert not worker.is_busy


def worked(qm: QueueManager, tasks: Tasks, attempts: int = 1) -> Heard:
    """Runs a worker until it has made this number of attempts; returns its events."""
    with at_work(qm, tasks) as (_, heard):
        heard.attempts(attempts)
    return heard


def dead_letter_queue(qm: QueueManager) -> None:
    qm.create_queue("DEAD")
    qm.admin.alter_manager(dead_letter_queue="DEAD")
