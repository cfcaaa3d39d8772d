"""Worker processes and their supervisor, which starts them, replaces those that died, and ends them.

A process has died if it ended without being asked by its supervisor, whatever its status: a SIGTERM that is sent to it
alone ends it with status 0, and it is replaced. Only a process all of whose tasks have stopped is not replaced. A
process whose store was replaced or could not be synced ends with status 3: its successor opens the store anew.

The next program that uses the queue backs out the work of a process that died, and raises the messages' backout
count. A process that dies is replaced immediately. Only if its successors also die soon after their start, each is
replaced later than the one before, so that a program that cannot run does not keep the machine busy.

    SIGTERM, SIGINT     each process ends its work, or gives it back, within the grace time
    a second signal     the processes are killed; others back out their work
    its own death       the processes see the other end of a pipe closed, and end by themselves

Functions run in a clean process: standard input is empty, and processes that they fork have the signal handlers of a
new program. Processes that they started and did not end are ended with their process by a SIGTERM, unless they have
their own process group.
"""

from __future__ import annotations

import contextlib
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
from typing import Any, Final, Literal, NamedTuple

from ..rules.retries import Backoff
from .worker import GRACE_SECONDS, SETTLE_SECONDS, Worker

CANNOT_GO_ON: Final = 4  # the status of a process all of whose tasks have stopped: it is not replaced
STORE_LOST: Final = 3  # the status of a process that can no longer use the store, as of every command in that case
HAD_STOPPED: Final = 5  # was asked to end when some of its tasks had already stopped by themselves
FINISHED: Final = 7  # ended because nothing was left to do: it is not replaced
UNREAD: Final = 6  # its output is no longer read: all processes end
WORN_OUT: Final = 75  # ended because one of its calls did not: it is replaced immediately
STEADY_SECONDS: Final = 30.0  # a process that has lived this long did not die at its start
RESTARTS: Final = Backoff(first=0.5, most=30.0)
SLACK_SECONDS: Final = SETTLE_SECONDS + 5.0  # beyond the grace time, before a process is killed
PROCESSES_MAX: Final = 1_000
STOPS: Final = (signal.SIGINT, signal.SIGTERM)
RELOAD_SECONDS: Final = 1.0  # between checks whether the source has changed
POLL_SECONDS: Final = 0.1  # between checks whether all tasks have ended by themselves
PIPE_VARIABLE: Final = "INORDER_WORK_PIPE"  # in the environment of a process: the descriptor of its end of the pipe


class Happened(NamedTuple):
    """An event in the life of a process; `delay`: seconds until its successor starts; `error`: why it did not start."""

    event: Literal["started", "failed", "died", "killed", "reloaded"]
    process: int
    pid: int | None = None
    status: int | None = None
    delay: float = 0.0
    error: str | None = None


class ProcessPlace:
    """The place of a process and its successors: when the next one starts. Times are monotonic.

    Attributes:
        starts_at: when the next one starts; None: one is running, or none is to start.
        deaths: deaths in a row, each soon after the start, except the first.
    """

    def __init__(self) -> None:
        self.deaths = 0
        self.begins()

    def begins(self) -> None:
        """Records that a process starts."""
        self.starts_at: float | None = None
        self._began = time.monotonic()

    def ends(self, *, at_once: bool = False) -> float:
        """Records a death; returns the seconds until the next start: 0, unless predecessors also died soon after their
        start.
        """
        now = time.monotonic()
        self.deaths = 1 if now - self._began >= STEADY_SECONDS else self.deaths + 1
        delay = 0.0 if at_once or self.deaths == 1 else RESTARTS.after(self.deaths - 1, 0.5)
        self.starts_at = now + delay
        return delay

    @property
    def is_due(self) -> bool:
        return self.starts_at is not None and time.monotonic() >= self.starts_at


class Child(ProcessPlace):
    """One of the processes, with its predecessors in the same place."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.number, self.starts_at = number, 0.0
        self.process: subprocess.Popen[bytes] | None = None
        self.is_reloaded = False
        self.pipe: int | None = None  # the pipe that the process sees closed when this process dies


class Supervisor:
    """Keeps a number of processes running.

    Args:
        command: makes the arguments of a process from its number, from 1, and whether it replaces one that died.
        environment: variables that it has in addition to this process's.
        count: the number of processes.
        grace: seconds in which they must end.
        log: called with each event.
        has_changed: called every second; if it returns True, the processes end in the grace time, and others replace
            them.
    """

    def __init__(
        self,
        command: Callable[[int, bool], Sequence[str]],
        *,
        environment: Mapping[str, str],
        count: int,
        grace: float = GRACE_SECONDS,
        log: Callable[[Happened], object],
        has_changed: Callable[[], bool] | None = None,
    ) -> None:
        self._command, self._environment, self._grace, self._log = command, environment, grace, log
        self._children = [Child(number) for number in range(1, count + 1)]
        self._heard: SimpleQueue[Child | int] = SimpleQueue()  # a process that has died, or a signal
        self._ends_at: float | None = None
        self._could_not_go_on = False
        self._has_changed, self._looks_at = has_changed, time.monotonic()

    def run(self) -> bool:
        """Runs until all have ended; returns whether no task stopped by itself, and all output was read.

        Must be called in the main thread, which gets signals.
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
                    self._reload()
                    continue
                if isinstance(heard, Child):
                    self._buried(heard)
                else:
                    self._end()

    @contextmanager
    def _signals(self) -> Iterator[None]:
        def heard(number: int, _: FrameType | None) -> None:
            self._heard.put(number)

        before = {number: signal.signal(number, heard) for number in STOPS}
        try:
            yield
        finally:
            self._kill()
            _set_handlers(before)

    # --- starts

    def _start_due(self) -> None:
        for child in self._children:
            if child.is_due:
                self._start(child)

    def _start(self, child: Child) -> None:
        child.begins()
        try:
            theirs, child.pipe = os.pipe()
            try:
                process = child.process = subprocess.Popen(
                    self._command(child.number, child.deaths > 0),
                    stdin=subprocess.DEVNULL,
                    env={**os.environ, **self._environment, PIPE_VARIABLE: str(theirs)},
                    pass_fds=(theirs,),
                    start_new_session=True,  # the terminal's signals come only to this process
                )
            finally:
                os.close(theirs)
        except OSError as error:  # the system has no room for one now, for example
            _close_pipe(child)
            self._log(Happened("failed", child.number, delay=child.ends(), error=error.strerror or str(error)))
            return
        self._log(Happened("started", child.number, process.pid))
        _start_deaf(threading.Thread(target=self._await, args=(child, process), daemon=True))

    def _await(self, child: Child, process: subprocess.Popen[bytes]) -> None:
        if hasattr(os, "waitid"):  # until the process is reaped, no other group can have its number
            with contextlib.suppress(ChildProcessError):  # the main thread has reaped it
                os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
                _end_group(process.pid)
        process.wait()
        self._heard.put(child)

    # --- ends

    def _buried(self, child: Child) -> None:
        """Handles the end of a process: another replaces it, unless it must not be replaced."""
        process, child.process = child.process, None
        assert process is not None
        _close_pipe(child)
        status = process.returncode
        if status == CANNOT_GO_ON or (status == HAD_STOPPED and self._ends_at is not None):
            self._could_not_go_on = True
        if status == UNREAD:
            self.reader_has_gone()
        if self._ends_at is not None or (status in (CANNOT_GO_ON, FINISHED) and not child.is_reloaded):
            return
        if child.is_reloaded:
            child.is_reloaded = False
            child.ends(at_once=True)
            return
        self._log(Happened("died", child.number, process.pid, status, child.ends(at_once=status == WORN_OUT)))

    def reader_has_gone(self) -> None:
        """Ends all processes, as a first signal does, because the output of one of them is no longer read."""
        self._could_not_go_on = True
        if self._ends_at is None:
            self._end()

    def _end(self) -> None:
        """Handles a signal: the first one asks the processes to end, the second one kills them."""
        if self._ends_at is not None:
            self._kill()
            return
        self._ends_at = time.monotonic() + self._grace + SLACK_SECONDS
        for child in self._children:
            child.starts_at = None
            if child.process is not None:
                child.process.send_signal(signal.SIGTERM)

    def _reload(self) -> None:
        """Asks the processes to end, after a change of the source; they are replaced at once."""
        if self._has_changed is None or time.monotonic() < self._looks_at:
            return
        self._looks_at = time.monotonic() + RELOAD_SECONDS
        if self._ends_at is not None or not self._has_changed():
            return
        for child in self._children:
            if child.process is None:  # it could not run, or has just died: perhaps it can run now
                child.deaths, child.starts_at = 0, time.monotonic()
            else:
                child.is_reloaded = True
                self._log(Happened("reloaded", child.number, child.process.pid))
                child.process.send_signal(signal.SIGTERM)

    def _kill_late(self) -> None:
        if self._ends_at is not None and time.monotonic() >= self._ends_at:
            self._ends_at = math.inf  # killing it again does not help
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
        elif self._has_changed is not None:
            times.append(self._looks_at)
        left = min(times, default=math.inf) - time.monotonic()
        return None if left == math.inf else max(0.0, left)


def _start_deaf(thread: threading.Thread) -> None:
    """Starts a thread that gets no signals, so that each of them interrupts the main thread.

    Otherwise the system may give two simultaneous signals to another thread. Then Python calls no handler until the
    main thread runs again, and the main thread waits here for the handlers.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, STOPS)  # a thread inherits its starter's mask
    try:
        thread.start()
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _close_pipe(child: Child) -> None:
    pipe, child.pipe = child.pipe, None
    if pipe is not None:
        os.close(pipe)


def _end_group(group: int) -> None:
    """Ends the processes that functions have started in a process; harmless if there are none."""
    with contextlib.suppress(ProcessLookupError, PermissionError):  # macOS: the group has no living process
        os.killpg(group, signal.SIGTERM)


def serve(worker: Worker, grace: float, unread: threading.Event | None = None) -> int:
    """Runs one of the processes: works until a signal comes, or its supervisor has died; returns its exit status.

    Args:
        unread: set when the output of the process is no longer read.

    A call that has not ended by then is given back, and `leave` ends the process in the middle of it.
    """
    asked, unread = threading.Event(), unread or threading.Event()
    before = {number: signal.signal(number, lambda *_: asked.set()) for number in STOPS}
    _reset_in_forks(before)
    _watch_supervisor(asked)
    worker.start()
    try:
        while not asked.is_set() and not unread.is_set() and not worker.wait(0):
            asked.wait(POLL_SECONDS)
    finally:
        worker.stop(grace)
        _set_handlers(before)
        before.clear()
    if worker.lost is not None:
        return STORE_LOST
    if unread.is_set():
        return UNREAD
    if worker.is_worn and not asked.is_set():
        return WORN_OUT
    if not worker.stopped:
        return FINISHED if worker.is_burst and not asked.is_set() else 0
    return HAD_STOPPED if asked.is_set() else CANNOT_GO_ON


def _set_handlers(handlers: Mapping[signal.Signals, Any]) -> None:
    for number, handler in handlers.items():
        signal.signal(number, handler)


def _reset_in_forks(handlers: Mapping[signal.Signals, Any]) -> None:
    """Gives these handlers to all processes forked from now on, so that a signal ends them as it ends any program.

    Signals between the fork and this are blocked meanwhile: the handler of this process would swallow them.
    """
    mask = threading.local()

    def begin() -> None:
        mask.before = signal.pthread_sigmask(signal.SIG_BLOCK, STOPS)

    def end() -> None:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask.before)

    def end_in_child() -> None:
        _set_handlers(handlers)
        end()

    os.register_at_fork(before=begin, after_in_parent=end, after_in_child=end_in_child)


def _watch_supervisor(asked: threading.Event) -> None:
    """Sets the event when the pipe from the supervisor closes, which means that it has died.

    The descriptor is read without a lock of Python's, which a process forked by a function could never take.
    """
    given = os.environ.pop(PIPE_VARIABLE, None)
    if given is None:  # this process was not started by a supervisor
        return
    pipe = int(given)
    os.set_inheritable(pipe, False)

    def read() -> None:
        while os.read(pipe, 1):
            pass
        asked.set()

    threading.Thread(target=read, daemon=True).start()


def leave(status: int) -> None:
    """Ends this process, even if a function still runs in it, and the processes that its functions have started."""
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            stream.flush()
    if os.getpgrp() == os.getpid():  # the group has no other member
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        _end_group(os.getpid())
    os._exit(status)
