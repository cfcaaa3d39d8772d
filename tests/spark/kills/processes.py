"""Drivers as processes: each is started in its own session, may be held at a point, and is killed with all children.

Nothing here sleeps: a test waits for a line in a pipe or for the end of the process, whichever comes first.
"""

from __future__ import annotations

import itertools
import json
import os
import random
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.spark.kills import holding

DRIVER = Path(__file__).with_name("driver.py")
PATIENCE_SECONDS = 180.0
LAST_WORDS = 40  # lines of a driver's log in the text of a failure
NUMBERS = itertools.count(1)


class DriverFailed(Exception):
    """A driver failed; the text has the end of its log, or its answer."""


class Driver:
    """A driver.

    Args:
        folder: for its pipe and its log.
        hold: "POINT:NTH", where one of its processes is held; None: nowhere.
        settings: of Spark.
        environment: of the driver, in addition to this process's own.
    """

    def __init__(
        self,
        folder: Path,
        *,
        hold: str | None = None,
        master: str = "local[2,4]",
        settings: Mapping[str, str] | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        number = next(NUMBERS)
        self._log = folder / f"driver-{number}.log"
        pipe = folder / f"driver-{number}.events"
        os.mkfifo(pipe)
        self._events = os.open(pipe, os.O_RDWR | os.O_NONBLOCK)  # also for writing, so that the pipe never ends
        self._rest = b""
        self._hold = hold
        given = dict(os.environ) if hold is None else holding.environment(f"{hold}:{pipe}")
        given |= {"PYSPARK_PYTHON": sys.executable, "PYTHONUNBUFFERED": "1", "SPARK_LOCAL_IP": "127.0.0.1"}
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                [sys.executable, str(DRIVER), str(pipe), json.dumps({"spark.master": master} | dict(settings or {}))],
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                env=given | dict(environment or {}),
                text=True,
                start_new_session=True,
            )
        self.pid = self._process.pid
        self._end = os.pidfd_open(self.pid)

    def order(self, do: str, **arguments: Any) -> None:
        """Sends an order; the driver obeys it when Spark is ready."""
        assert self._process.stdin is not None
        print(json.dumps({"do": do, **arguments}), file=self._process.stdin, flush=True)

    def ask(self, do: str, **arguments: Any) -> Any:
        """Sends an order, and returns the answer. Raises: DriverFailed."""
        self.order(do, **arguments)
        return self.answer()

    def answer(self) -> Any:
        """Returns the answer to the oldest order. Raises: DriverFailed, the order or the driver failed."""
        what, value = self._told()
        if what != "done":
            raise DriverFailed(value)
        return value

    def held(self) -> int:
        """Waits until one of its processes is held; returns the id of the process."""
        assert self._hold is not None
        point = self._hold.partition(":")[0]
        line = self.line()
        while line.startswith('["ready"'):
            line = self.line()
        if not line.startswith(f"{point} "):
            raise self._trouble(f"came to {line}, and not to {point}")
        return int(line.rpartition(" ")[2])

    def ready(self) -> None:
        """Waits until Spark is ready."""
        what, value = json.loads(self.line())
        assert what == "ready", value

    def line(self, patience: float = PATIENCE_SECONDS) -> str:
        """Returns the next line that it writes. Raises: DriverFailed, it has ended, or wrote nothing for too long."""
        deadline = time.monotonic() + patience
        while b"\n" not in self._rest:
            able, _, _ = select.select([self._events, self._end], [], [], max(0.0, deadline - time.monotonic()))
            if self._events in able:
                self._rest += os.read(self._events, 65536)
            elif self._end in able:
                raise self._trouble("has ended")
            else:
                raise self._trouble(f"has told nothing for {patience:.0f} s")
        line, _, self._rest = self._rest.partition(b"\n")
        return line.decode()

    def _told(self) -> tuple[str, Any]:
        what, value = json.loads(self.line())
        return (what, value) if what != "ready" else self._told()

    def _trouble(self, what: str) -> DriverFailed:
        words = self._log.read_text(encoding="utf-8", errors="replace").splitlines()[-LAST_WORDS:]
        return DriverFailed("\n".join([f"the driver {what}; its last words:", *(f"    {line}" for line in words)]))

    # --- the end

    def members(self) -> list[int]:
        """The living processes of its session: itself, the JVM, all Python workers."""
        return members_of(self.pid)

    def java(self) -> int:
        """The process id of the JVM."""
        found = [pid for pid in self.members() if is_java(pid)]
        assert len(found) == 1, found
        return found[0]

    def kill_worker(self, chance: random.Random) -> None:
        """Kills one of its Python processes with SIGKILL, if it has any: a task, a planner, or their parent."""
        if others := sorted(set(self.members()) - {self.pid, self.java()}):
            kill_and_wait(chance.choice(others))

    def has_ended(self, seconds: float) -> bool:
        """Whether it ends within that time."""
        return bool(select.select([self._end], [], [], seconds)[0])

    def kill(self) -> None:
        """Kills all its processes with SIGKILL, until none is left."""
        kill_session(self.pid)
        self._process.wait()
        assert self.members() == []

    def end(self) -> None:
        """Closes its input, so that it ends; kills it if it is held or does not end."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        if not self._hold:
            self.has_ended(PATIENCE_SECONDS)
        self.kill()
        os.close(self._events)
        os.close(self._end)


def is_java(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/comm").read_text() == "java\n"
    except OSError:  # it has just ended
        return False


def kill_session(leader: int) -> None:
    """Kills all processes of a session with SIGKILL, until none is left."""
    while living := members_of(leader):
        for pid in living:
            kill_and_wait(pid)


def kill_and_wait(pid: int) -> None:
    """Kills a process with SIGKILL, and waits for its end."""
    try:
        fd = os.pidfd_open(pid)
    except ProcessLookupError:  # it has just ended
        return
    try:
        signal.pidfd_send_signal(fd, signal.SIGKILL)
        able, _, _ = select.select([fd], [], [], PATIENCE_SECONDS)
        assert able, f"process {pid} outlives SIGKILL"
    except ProcessLookupError:
        pass
    finally:
        os.close(fd)


def members_of(session: int) -> list[int]:
    """The living processes of a session, which has the id of the process that began it."""
    return [pid for pid, state, of in all_processes() if of == session and state not in "ZX"]


def all_processes() -> Iterator[tuple[int, str, int]]:
    """Id, state and session of each process."""
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
        except OSError:  # it has just ended
            continue
        yield int(path.parent.name), fields[0], int(fields[3])


@contextmanager
def driver(folder: Path, **arguments: Any) -> Iterator[Driver]:
    """A driver that is ended or killed with the block."""
    one = Driver(folder, **arguments)
    try:
        yield one
    except BaseException:
        one.kill()
        raise
    finally:
        one.end()
