"""One life of a worker, from its start to its violent end.

A worker is a fork of a process that has imported all it needs, so a life costs little more than its work.
Its end is a kill at a random moment, or at a named point inside the store's transactions
(`inorder.stores.engine.points`); on PostgreSQL also the loss of its connections, which the server ends at a random
moment, or all of them by a crash.
"""

from __future__ import annotations

import functools
import json
import os
import random
import select
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from threading import Barrier
from typing import TYPE_CHECKING, NamedTuple, NoReturn

from inorder.stores.engine.points import POINTS as ALL_POINTS

from . import awaiting, carried, crash_points, worker
from .acts import Finding
from .history import History

if TYPE_CHECKING:
    from tests.stores.postgresql.server import Server

LIFE_SECONDS_MAX = 0.4
START_SECONDS_MAX = 60.0
POINT_SECONDS_MAX = 1.5  # by then the worker has reached its point, or will not reach it
LOST_SECONDS_MAX = 60.0  # by then it has noticed that its connection is lost
STEPS_MAX = 1_000_000
NTH = (1, 3, 10, 40)
AWAITING_SHARE = 0.25  # of all lives
# Workers stage nothing, and carry nothing: carriers do (`carried_round`).
POINTS = [point for point in ALL_POINTS if point not in ("staged", "settled-staging", "delivered")]
RARE, NTH_OF_RARE = ("reaping", "checkpoint"), (1, 1, 2)  # points that a worker comes to a few times

# The ends of a life, besides a point.
RANDOM = "random moment"
TERMINATED = "backend terminated"
CRASHED = "server stopped at once"
LOST = "connection lost"
ENDS = (RANDOM, *POINTS)
ENDS_ON_SERVER = (*(end for end in ENDS if end != "checkpoint"), TERMINATED, TERMINATED)


class Life(NamedTuple):
    """One life of a worker: its name, its seed, and its end: a point, at the nth time that the worker reaches it, or
    one of the ends above, after this many seconds.

    Args:
        role: the role of a worker between two queue managers, a key of `carried.WORKERS`.
        awaits: whether its work is done by several tasks (`awaiting`).
    """

    name: str
    seed: int
    end: str
    nth: int
    seconds: float
    role: str = ""
    awaits: bool = False


def lives_of(
    chance: random.Random, round_name: str, workers: int, lives: int, *, on_server: bool = False
) -> Iterator[list[Life]]:
    """The plan of a round: the lives of each worker."""
    for number in range(workers):
        ends = [chance.choice(ENDS_ON_SERVER if on_server else ENDS) for _ in range(lives)]
        yield [
            Life(
                name=f"r{round_name}-w{number}-l{life}",
                seed=chance.getrandbits(32),
                end=end,
                nth=chance.choice(NTH_OF_RARE if end in RARE else NTH),
                seconds=chance.uniform(0, LIFE_SECONDS_MAX),
                awaits=chance.random() < AWAITING_SHARE,
            )
            for life, end in enumerate(ends)
        ]


def lives_of_crash(chance: random.Random, round_name: str, workers: int) -> list[list[Life]]:
    """The plan of a round in which the server is stopped at once: one life of each worker."""
    names = [f"r{round_name}-w{number}-l0" for number in range(workers)]
    return [[Life(name, chance.getrandbits(32), CRASHED, 1, 0)] for name in names]


class Parent:
    """The parent of workers, one after another: it has imported all they need, and they are its forks."""

    def __init__(self) -> None:
        command = [sys.executable, "-m", "tools.proof.lives"]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._in, self._out = self._process.stdin, self._process.stdout

    def bear(self, store: Path | str, round_folder: Path, life: Life) -> int:
        """Begins a life; returns the id of its process. `told` then reports that it is at work, and how it ended."""
        self._in.write(json.dumps([str(store), str(round_folder), life]).encode() + b"\n")
        return int(self._out.readline())

    def told(self, seconds: float) -> str | None:
        """The next report: "at work", or the exit status; None: nothing in this many seconds."""
        if not select.select([self._out], [], [], seconds)[0]:
            return None
        return self._out.readline().decode().strip()

    def close(self) -> None:
        """Begins no more lives."""
        self._in.close()
        self._process.wait()
        self._out.close()


def main() -> None:
    for name in ("inorder.stores.sqlite", "inorder.stores.postgresql"):
        with suppress(ImportError):
            import_module(name)
    for line in sys.stdin:
        store, round_folder, life = json.loads(line)
        pid = os.fork()
        if not pid:
            _live(store, Path(round_folder), Life(*life))
        print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), flush=True)


def _live(store: str, round_folder: Path, life: Life) -> NoReturn:
    status = 1
    try:
        os.write(1, b"%d\n" % os.getpid())
        with (round_folder / f"{life.name}.err").open("wb") as complaint:
            os.dup2(complaint.fileno(), 2)
        if life.end in crash_points.POINTS:
            crash_points.reach(crash_points.kill_at(f"{life.end}:{life.nth}"))
        at_work, history = functools.partial(os.write, 1, b"at work\n"), round_folder / f"{life.name}.jsonl"
        if life.role:
            status = carried.work(Path(store), history, life.seed, life.role, at_work)
        else:
            work = awaiting.work if life.awaits else worker.work
            status = work(store, history, life.seed, STEPS_MAX, at_work)
    except BaseException:  # noqa: BLE001 - it must not continue as its parent
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(status)


def live(
    parent: Parent,
    store: Path | str,
    round_folder: Path,
    life: Life,
    server: Server | None = None,
    crashes: Callable[[], object] | None = None,
    may_lose: bool = False,
) -> tuple[str, list[Finding]]:
    """Runs one life to its violent end; returns the end, and its complaints before that.

    Args:
        crashes: called when it is at work; it returns when the server has crashed.
        may_lose: whether it may end before that, because it has lost its connection.
    """
    pid = parent.bear(store, round_folder, life)
    told = parent.told(START_SECONDS_MAX)
    if crashes is not None:
        crashes()
    if told is None:  # the worker is neither at work nor dead
        os.kill(pid, signal.SIGKILL)
        parent.told(LOST_SECONDS_MAX)
        return life.end, [Finding("worker", f"{life.name} was not at work after {START_SECONDS_MAX} s: it waits")]
    if life.end == TERMINATED:
        assert server is not None
        time.sleep(life.seconds)
        server.terminate_backends(f"application_name LIKE 'inorder {pid}: %'")
    end, is_lost = life.end, life.end in (TERMINATED, CRASHED)
    status: str | None = told
    if told == "at work":
        status = parent.told(
            LOST_SECONDS_MAX if is_lost else POINT_SECONDS_MAX if life.end in crash_points.POINTS else life.seconds
        )
    if status is None:
        os.kill(pid, signal.SIGKILL)
        status = parent.told(LOST_SECONDS_MAX)
        end = end if is_lost else RANDOM
    if status == str(worker.LOST_STATUS if is_lost else -signal.SIGKILL):
        return end, []
    if may_lose and status == str(worker.LOST_STATUS):
        return LOST, []
    complaint = (round_folder / f"{life.name}.err").read_text()[-2000:]
    return end, [Finding("worker", f"{life.name} ended with status {status}: {complaint}")]


class Crash:
    """The moment at which a server crashes, when all workers are at work on it.

    Args:
        goes: crashes it; returns when it, or its replacement, is running.
        history: the server's history, which records the crash.
        workers: the number of workers.
        seconds: the time for which they work before.
    """

    def __init__(self, goes: Callable[[], object], history: Path, workers: int, seconds: float) -> None:
        self._goes, self._history, self._seconds = goes, History(history), seconds
        self._at_work = Barrier(workers, self._happen, START_SECONDS_MAX * 2)

    def happen(self) -> None:
        """Called by each worker's thread; returns after the crash."""
        self._at_work.wait()

    def _happen(self) -> None:
        time.sleep(self._seconds)
        self._history.do("crash", self._goes)
        self._history.close()


if __name__ == "__main__":
    main()
