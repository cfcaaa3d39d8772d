"""Compares syncs inside the write lock with each commit, and syncs after it, by one leader for all that wait.

Bare APSW puts one row of 1 KiB in each transaction, which counts when it is on disk. Four ways::

    full, busy handler   synchronous=FULL; writers meet in SQLite's busy handler
    full, record lock    synchronous=FULL; writers queue up at a POSIX record lock first
    group, flock         synchronous=NORMAL; writers queue up at a flock, sync the log after it, one for all
    group, record lock   the same at a record lock

each with one process and with eight, on the disk as it is and with a millisecond added to each sync, as on disks
without a cache that survives power loss. `make bench` writes the table into docs/explanation/durability.md;
``python -m benchmarks.group_commit [SECONDS [FOLDER]]`` prints it. SECONDS is the time for each cell.
"""

from __future__ import annotations

import fcntl
import mmap
import multiprocessing
import os
import platform
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.queues import Queue
from multiprocessing.synchronize import Barrier
from pathlib import Path
from typing import Final

import apsw

from benchmarks import pages
from benchmarks.machine import file_system

BODY: Final = bytes(range(256)) * 4
CHECKPOINT_PAGES: Final = 4_000
COMMITTED, SYNCED = 0, 1
SECONDS: Final = 1.5
HEAD: Final = (
    "| way | added to a sync, ms | processes | puts/s | median, ms | p99.9, ms | longest, ms | least/mean |",
    "|---|--:|--:|--:|--:|--:|--:|--:|",
)


def no_lock(descriptor: int, operation: int) -> None:
    """Takes no lock, so that the writers wait in SQLite's busy handler."""


LOCKS: Final[dict[str, Callable[[int, int], object]]] = {"none": no_lock, "record": fcntl.lockf, "flock": fcntl.flock}


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """A way to write."""

    name: str
    group: bool
    lock: str


WAYS: Final = (
    Way(name="full, busy handler", group=False, lock="none"),
    Way(name="full, record lock", group=False, lock="record"),
    Way(name="group, flock", group=True, lock="flock"),
    Way(name="group, record lock", group=True, lock="record"),
)


class Writer:
    """The connection of one process, with the shared state: two locks, and two numbers in mapped memory."""

    def __init__(self, folder: Path, way: Way, added_s: float) -> None:
        self._way = way
        self._added_s = added_s
        self._connection = apsw.Connection(str(folder / "store.db"))
        self._connection.set_busy_timeout(60_000)
        self._connection.execute("PRAGMA journal_mode = WAL")
        self._connection.execute(f"PRAGMA synchronous = {'NORMAL' if way.group else 'FULL'}")
        self._connection.wal_autocheckpoint(CHECKPOINT_PAGES)
        self._turn = os.open(folder / "turn", os.O_RDWR | os.O_CREAT, 0o600)
        self._leader = os.open(folder / "leader", os.O_RDWR | os.O_CREAT, 0o600)
        self._log = os.open(folder / "store.db-wal", os.O_RDWR)
        shared = os.open(folder / "shared", os.O_RDWR)
        self._words = memoryview(mmap.mmap(shared, 4096)).cast("Q")

    def put(self) -> None:
        """Puts one message, and returns when it is on disk."""
        with self._locked(self._turn):
            self._connection.execute("BEGIN IMMEDIATE")
            self._connection.execute("INSERT INTO message (body) VALUES (?)", (BODY,))
            if not self._way.group:
                time.sleep(self._added_s)  # before SQLite's own sync, so that its lock is held as long
            self._connection.execute("COMMIT")
            if not self._way.group:
                return
            self._words[COMMITTED] += 1
            number = self._words[COMMITTED]
        if self._words[SYNCED] < number:
            self._sync(number)

    def _sync(self, number: int) -> None:
        with self._locked(self._leader):
            if self._words[SYNCED] < number:
                last = self._words[COMMITTED]
                os.fdatasync(self._log)
                time.sleep(self._added_s)
                self._words[SYNCED] = last

    @contextmanager
    def _locked(self, descriptor: int) -> Iterator[None]:
        act = LOCKS[self._way.lock]
        act(descriptor, fcntl.LOCK_EX)
        try:
            yield
        finally:
            act(descriptor, fcntl.LOCK_UN)


def work(folder: Path, way: Way, added_s: float, seconds: float, start: Barrier, times: Queue[list[float]]) -> None:
    """Runs in its own process: puts until the time is over, and sends the seconds of each put."""
    writer = Writer(folder, way, added_s)
    taken: list[float] = []
    start.wait()
    now = time.perf_counter()
    end = now + seconds
    while now < end:
        writer.put()
        before, now = now, time.perf_counter()
        taken.append(now - before)
    times.put(taken)


def measure(way: Way, processes: int, added_s: float, seconds: float, where: Path) -> list[list[float]]:
    """Returns the seconds of each put, by process, in a new store."""
    context = multiprocessing.get_context("spawn")
    with tempfile.TemporaryDirectory(dir=where) as name:
        folder = Path(name)
        (folder / "shared").write_bytes(bytes(4096))
        keeper = apsw.Connection(str(folder / "store.db"))  # keeps the log until all have opened it
        keeper.execute("PRAGMA journal_mode = WAL")
        keeper.execute("CREATE TABLE message (id INTEGER PRIMARY KEY, body BLOB)")
        start = context.Barrier(processes)
        times: Queue[list[float]] = context.Queue()
        workers = [
            context.Process(target=work, args=(folder, way, added_s, seconds, start, times), daemon=True)
            for _ in range(processes)
        ]
        for worker in workers:
            worker.start()
        taken = [times.get() for _ in workers]
        for worker in workers:
            worker.join()
        keeper.close()
    return taken


def row(way: Way, processes: int, added_s: float, seconds: float, taken: list[list[float]]) -> str:
    """Returns a line of the table: the rate, waits in milliseconds, and the slowest process's share of the mean."""
    every = sorted(each for process in taken for each in process)
    waits = [every[len(every) // 2], every[int(len(every) * 0.999)], every[-1]]
    least = min(map(len, taken)) * processes / len(every)
    shown = " | ".join(f"{wait * 1000:.1f}" for wait in waits)
    return f"| {way.name} | {added_s * 1000:g} | {processes} | {len(every) / seconds:,.0f} | {shown} | {least:.2f} |"


def part(seconds: float, where: Path, tell: Callable[[str], object]) -> str:
    """Measures all cells. Returns the table in Markdown, and a line about the machine."""
    rows = []
    for added_s in (0.0, 0.001):
        for processes in (1, 8):
            for way in WAYS:
                tell(f"{way.name}, processes: {processes}, added: {added_s * 1000:g} ms")
                rows.append(row(way, processes, added_s, seconds, measure(way, processes, added_s, seconds, where)))
    machine = (
        f"{os.cpu_count()} cores, {platform.system()} {platform.release()}, {file_system(where).split()[0]}, "
        f"Python {platform.python_version()}, APSW {apsw.apsw_version()} with its SQLite {apsw.sqlite_lib_version()}; "
        f"{seconds:g} s a cell, once each: a difference of a quarter means nothing."
    )
    return "\n".join([*HEAD, *rows, "", machine])


def write_page(where: Path, tell: Callable[[str], object]) -> None:
    """Measures, and writes the table into the page."""
    pages.rewrite(pages.DURABILITY, part(SECONDS, where, tell))


def main(arguments: list[str]) -> None:
    """Prints the table."""
    seconds = float(arguments[0]) if arguments else SECONDS
    where = Path(arguments[1]) if len(arguments) > 1 else Path(tempfile.gettempdir())
    print(part(seconds, where, lambda words: print(words, file=sys.stderr)))


if __name__ == "__main__":
    main(sys.argv[1:])
