"""Worker processes, and the one that supervises them: it starts them, replaces those that died, and ends them.

A process has died if it ended though its supervisor did not ask it to, whatever its status: a SIGTERM that somebody
sends to it alone ends it with status 0, and the number of processes stays the same. Only a process all of whose tasks
have stopped is not replaced. One whose store was replaced or could not be synced ends with status 3: the process that
takes its place opens the store anew.

The work of a process that died is backed out by the next program that looks at the queue, with one more in its backout
count. A process that dies soon after its start is replaced later each time, so that a program that cannot run does not
keep the machine busy; one that has run for a while is replaced at once.

    SIGTERM, SIGINT     each process ends its work, or gives it back, within the grace time
    a second one        the processes are killed; others back out what they held
    its own death       the processes see that nobody holds the other end of their standard input, and end by themselves
"""

from __future__ import annotations

import math
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from queue import Empty, SimpleQueue
from types import FrameType
from typing import Final, Literal, NamedTuple

from ..rules.retries import Backoff
from .worker import GRACE_SECONDS, SETTLE_SECONDS, Worker

CANNOT_GO_ON: Final = 4  # the status of a process all of whose tasks have stopped: it is not replaced
STORE_LOST: Final = 3  # of one that can use the store no more, as of each command that has trouble with it
WORN_OUT: Final = 75  # of one that ended because a call in it would not: it is replaced at once
STEADY_SECONDS: Final = 30.0  # a process that has lived so long did not die at its start
RESTARTS: Final = Backoff(first=0.5, most=30.0)
SLACK_SECONDS: Final = SETTLE_SECONDS + 5.0  # beyond the grace time, before a process is killed
PROCESSES_MAX: Final = 1_000
STOPS: Final = (signal.SIGINT, signal.SIGTERM)
POLL_SECONDS: Final = 0.1  # between looks whether all tasks have ended by themselves


class Happened(NamedTuple):
    """What became of a process; `delay`: seconds until another takes its place; `error`: why it was not started."""

    event: Literal["started", "failed", "died", "killed"]
    process: int
    pid: int | None = None
    status: int | None = None
    delay: float = 0.0
    error: str | None = None


class Child:
    """One of the processes, and those that came before it in its place."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.process: subprocess.Popen[bytes] | None = None
        self.began = 0.0
        self.deaths = 0  # soon after the start, one after another
        self.starts_at: float | None = 0.0  # None: it runs, or is not to run again


class Supervisor:
    """Keeps so many processes at work.

    Args:
        command: the arguments of a process, by its number from 1, and whether it takes the place of one that died.
        environment: what it has besides this process's.
        count: how many.
        grace: seconds that they have to end.
        log: called with what became of them.
    """

    def __init__(
        self,
        command: Callable[[int, bool], Sequence[str]],
        *,
        environment: Mapping[str, str],
        count: int,
        grace: float = GRACE_SECONDS,
        log: Callable[[Happened], object],
    ) -> None:
        self._command, self._environment, self._grace, self._log = command, environment, grace, log
        self._children = [Child(number) for number in range(1, count + 1)]
        self._heard: SimpleQueue[Child | int] = SimpleQueue()  # who has died, or a signal
        self._ends_at: float | None = None
        self._could_not_go_on = False

    def run(self) -> bool:
        """Runs until all have ended; returns whether none of them stopped by itself. For the main thread, which gets
        signals.
        """
        with self._signals():
            while True:
                self._start_due()
                if not any(child.process or child.starts_at is not None for child in self._children):
                    return not self._could_not_go_on
                try:
                    heard = self._heard.get(timeout=self._time_left())
                except Empty:
                    self._kill_late()
                    continue
                if isinstance(heard, Child):
                    self._buried(heard)
                else:
                    self._end()

    @contextmanager
    def _signals(self) -> Iterator[None]:
        def heard(number: int, frame: FrameType | None) -> None:
            del frame
            self._heard.put(number)

        before = {number: signal.signal(number, heard) for number in STOPS}
        try:
            yield
        finally:
            self._kill()
            for number, handler in before.items():
                signal.signal(number, handler)

    # --- beginnings

    def _start_due(self) -> None:
        for child in self._children:
            if child.starts_at is not None and child.starts_at <= time.monotonic():
                self._start(child)

    def _start(self, child: Child) -> None:
        child.starts_at, child.began = None, time.monotonic()
        try:
            process = child.process = subprocess.Popen(
                self._command(child.number, child.deaths > 0),
                stdin=subprocess.PIPE,  # its end shows that this process has died
                env={**os.environ, **self._environment},
                start_new_session=True,  # the terminal's signals come to this process alone
            )
        except OSError as error:  # the system has no room for one now, say
            delay = self._start_again(child)
            self._log(Happened("failed", child.number, delay=delay, error=error.strerror or str(error)))
            return
        self._log(Happened("started", child.number, process.pid))
        _start_deaf(threading.Thread(target=self._await, args=(child, process), daemon=True))

    def _await(self, child: Child, process: subprocess.Popen[bytes]) -> None:
        process.wait()
        self._heard.put(child)

    # --- ends

    def _buried(self, child: Child) -> None:
        """A process has ended: another takes its place, unless it must not be replaced."""
        process, child.process = child.process, None
        assert process is not None
        assert process.stdin is not None
        process.stdin.close()
        status = process.returncode
        if status == CANNOT_GO_ON:
            self._could_not_go_on = True
        if self._ends_at is not None or status == CANNOT_GO_ON:
            return
        delay = self._start_again(child, at_once=status == WORN_OUT)
        self._log(Happened("died", child.number, process.pid, status, delay))

    @staticmethod
    def _start_again(child: Child, *, at_once: bool = False) -> float:
        """Has another process take its place; in how many seconds."""
        lived = time.monotonic() - child.began
        child.deaths = 1 if lived >= STEADY_SECONDS else child.deaths + 1
        delay = 0.0 if at_once or lived >= STEADY_SECONDS else RESTARTS.after(child.deaths, 0.5)
        child.starts_at = time.monotonic() + delay
        return delay

    def _end(self) -> None:
        """A signal: the first one asks, the second one kills."""
        if self._ends_at is not None:
            self._kill()
            return
        self._ends_at = time.monotonic() + self._grace + SLACK_SECONDS
        for child in self._children:
            child.starts_at = None
            if child.process is not None:
                child.process.send_signal(signal.SIGTERM)

    def _kill_late(self) -> None:
        if self._ends_at is not None and time.monotonic() >= self._ends_at:
            self._ends_at = math.inf  # it ends when it ends: to kill it again does not help
            self._kill()

    def _kill(self) -> None:
        for child in self._children:
            if child.process is not None and child.process.poll() is None:
                child.process.kill()
                self._log(Happened("killed", child.number, child.process.pid))

    def _time_left(self) -> float | None:
        times = [child.starts_at for child in self._children if child.starts_at is not None]
        if self._ends_at is not None:
            times.append(self._ends_at)
        left = min(times, default=math.inf) - time.monotonic()
        return None if left == math.inf else max(0.0, left)


def _start_deaf(thread: threading.Thread) -> None:
    """Starts a thread that gets no signals, so that each interrupts the main thread.

    Of two that come together the system may give both to another thread. Then Python calls no handler until the main
    thread does something again, and that waits here for what the handlers bring.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, STOPS)  # a thread begins with the mask of the one that starts it
    try:
        thread.start()
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def serve(worker: Worker, grace: float) -> int:
    """One of the processes: works until a signal comes, or its supervisor has died; its exit status.

    A call that has not ended by then is given back, and the process ends in the middle of it: by `leave`.
    """
    asked = threading.Event()
    before = {number: signal.signal(number, lambda *_: asked.set()) for number in STOPS}
    threading.Thread(target=_until_alone, args=(asked,), daemon=True).start()
    worker.start()
    try:
        while not asked.is_set() and not worker.wait(0):
            asked.wait(POLL_SECONDS)
    finally:
        worker.stop(grace)
        for number, handler in before.items():
            signal.signal(number, handler)
    if worker.lost is not None:
        return STORE_LOST
    if worker.is_worn and not asked.is_set():
        return WORN_OUT
    return CANNOT_GO_ON if worker.stopped and not asked.is_set() else 0


def _until_alone(asked: threading.Event) -> None:
    """Standard input is a pipe from the supervisor of this process: it ends with that."""
    if sys.stdin is not None:
        while sys.stdin.buffer.read(1):
            pass
    asked.set()


def leave(status: int) -> None:
    """Ends this process, even if a function that nobody waits for still runs."""
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            stream.flush()
    os._exit(status)
