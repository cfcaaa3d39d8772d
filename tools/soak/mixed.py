"""Processes that do all kinds of work on one store while its clock is set.

Every act removes its puts and frees its holds, so that nothing may grow. A wait without an answer takes the requested
time, whatever the clock is set to.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from multiprocessing.connection import Connection
from pathlib import Path
from typing import NamedTuple

from benchmarks.children import Child, child, orders
from benchmarks.harness import Cannot, percentile

import inorder
from inorder import Match, NoMessageAvailable, QueueManager
from inorder.errors import NotFound
from inorder.stores.sqlite import SqliteStore

from .report import Report
from .shifted import ShiftedClock
from .usage import LOG_MB_MAX, Files, Usage, figures_of, files_of, grown, peak, usage

BUSY, GROUPS, CONFIRMED = "BUSY", "GROUPS", "CONFIRMED"
SAMPLES = 40
ROUNDS_MIN = 12
HOUR = 3600.0
WAIT_SECONDS = 0.05
WAIT_SECONDS_MORE = 5.0  # a wait that ends this much later was lengthened, not only served late
GRACE_SECONDS = 30.0
BLOCK = 20
BEHIND, AHEAD = (0.45, 0.55), (0.65, 0.75)  # the times at which the clock is wrong, as parts of the run


class Work(NamedTuple):
    """The answer of a process: its samples, its number of rounds, and the seconds of its waits without a message."""

    samples: list[Usage]
    rounds: int
    waited: list[float]


class Worker:
    """One process at work."""

    def __init__(self, qm: QueueManager, chance: random.Random) -> None:
        self.qm, self.chance = qm, chance
        self.waited: list[float] = []
        self.acts: dict[str, Callable[[], object]] = {
            act.__name__: act
            for act in (
                self.one,
                self.many,
                self.unit,
                self.group,
                self.confirm,
                self.lock,
                self.browse,
                self.wait_in_vain,
                self.expire,
                self.connect,
                self.look,
            )
        }

    def body(self) -> bytes:
        return bytes(self.chance.choice((100, 100, 100, 1000, 30_000)))

    def one(self) -> None:
        self.qm.put(BUSY, self.body(), persistent=self.chance.random() < 0.7)
        with suppress(NoMessageAvailable):
            self.qm.get(BUSY)

    def many(self) -> None:
        self.qm.put_many(BUSY, [self.body() for _ in range(BLOCK)])
        with suppress(NoMessageAvailable):
            self.qm.get_many(BUSY, BLOCK)

    def unit(self) -> None:
        """Runs a unit, committed or backed out, that leaves the depth as it was."""
        with suppress(NoMessageAvailable), self.qm.unit_of_work() as block:
            self.qm.get(BUSY)
            self.qm.put(BUSY, self.body())
            if self.chance.random() < 0.3:
                block.back_out()

    def group(self) -> None:
        with self.qm.unit_of_work(), self.qm.group(GROUPS) as group:
            for _ in range(3):
                group.put(self.body())
        with suppress(NoMessageAvailable):
            for _ in self.qm.get_group(GROUPS):
                pass

    def confirm(self) -> None:
        confirm_id = self.chance.getrandbits(62) | 1
        self.qm.confirm_put(CONFIRMED, self.qm.put(CONFIRMED, self.body(), confirm_id=confirm_id).uid)
        with suppress(NoMessageAvailable):
            uid = self.qm.get(CONFIRMED, confirm_id=confirm_id).uid
            assert uid is not None
            self.qm.confirm_get(CONFIRMED, uid, confirm_id=confirm_id)

    def lock(self) -> None:
        locked = self.qm.browse_and_lock(BUSY, most=3)
        if locked.messages:
            with suppress(NotFound):  # all of them have expired
                self.qm.admin.release_lock(BUSY, locked.lock_id)

    def browse(self) -> None:
        for _ in zip(self.qm.browse(BUSY), range(5), strict=False):
            pass

    def wait_in_vain(self) -> None:
        began = time.monotonic()
        with suppress(NoMessageAvailable):
            self.qm.get(BUSY, match=Match(correlation_id=b"nobody"), wait=WAIT_SECONDS)
        self.waited.append(time.monotonic() - began)

    def expire(self) -> None:
        self.qm.put(BUSY, self.body(), expiry=self.chance.choice((0.1, 1.0, 600.0)))
        with suppress(NoMessageAvailable):
            self.qm.get(BUSY)

    def connect(self) -> None:
        with self.qm.connect() as other, other.open(BUSY, input="shared", output=True):
            other.put(BUSY, self.body(), syncpoint=True)
            other.back_out()

    def look(self) -> None:
        self.qm.inspect.status(BUSY)
        self.qm.inspect.overview()

    def work(self, seconds: float) -> Work:
        """Runs rounds in which each act comes once, in random order."""
        names, began, rounds = list(self.acts), time.monotonic(), 0
        samples: list[Usage] = []
        self.waited = []
        while (elapsed := time.monotonic() - began) < seconds or rounds < ROUNDS_MIN:
            if elapsed >= len(samples) * seconds / SAMPLES:
                samples.append(usage())
            self.chance.shuffle(names)
            for name in names:
                self.acts[name]()
            rounds += 1
        samples.append(usage())
        return Work(samples, rounds, self.waited)


def serve(pipe: Connection, store: Path, clock: Path, seed: int) -> None:
    """A process that works for the number of seconds that it is told."""
    with inorder.connect(SqliteStore(store, clock=ShiftedClock(clock)), program="soak") as qm:
        worker = Worker(qm, random.Random(seed))
        pipe.send("ready")
        for seconds in orders(pipe):
            pipe.send(worker.work(seconds))


def run(folder: Path, *, seconds: float, processes: int = 4, jump: float = HOUR, seed: int = 1) -> Report:
    """Works for this many seconds.

    Args:
        jump: in the middle the clock is this many seconds behind for a while, and later ahead; 0: it stays right.
    """
    report, store, clock = Report(name="mixed"), folder / "mixed.db", ShiftedClock(folder / "clock")
    with inorder.connect(store) as qm:
        for queue in (BUSY, GROUPS, CONFIRMED):
            qm.create_queue(queue)
    with ExitStack() as stack:
        children: list[Child] = [
            stack.enter_context(child(serve, store, folder / "clock", seed + number)) for number in range(processes)
        ]
        for each in children:
            each.answer()
        for each in children:
            each.order(seconds)
        files = _set_the_clock(clock, store, seconds, jump)
        works, deadline = list[Work](), time.monotonic() + GRACE_SECONDS
        for number, each in enumerate(children):
            try:
                works.append(each.answer(max(0.0, deadline - time.monotonic())))
            except Cannot:
                report.findings.append(f"process {number} did not come to an end: a wait was lengthened by the clock?")
    for number, work in enumerate(works):
        report.findings += grown(f"process {number}", work.samples)
    if works:
        _tell(report, works, files)
    return report


def _set_the_clock(clock: ShiftedClock, store: Path, seconds: float, jump: float) -> list[Files]:
    """Sets the clock at its times while the others work, and measures the files all along."""
    files, began = list[Files](), time.monotonic()
    while (elapsed := time.monotonic() - began) < seconds or len(files) < 2:
        part = elapsed / seconds
        clock.set(-jump if BEHIND[0] <= part < BEHIND[1] else jump if AHEAD[0] <= part < AHEAD[1] else 0.0)
        files.append(files_of(store))
        time.sleep(seconds / SAMPLES)
    clock.set(0.0)
    return files


def _tell(report: Report, works: list[Work], files: list[Files]) -> None:
    waited = sorted(seconds for work in works for seconds in work.waited)
    short = sum(seconds < WAIT_SECONDS for seconds in waited)
    long = sum(seconds > WAIT_SECONDS + WAIT_SECONDS_MORE for seconds in waited)
    half = len(files) // 2
    report.figures = {
        "rounds of all acts": sum(work.rounds for work in works),
        "waits in vain": len(waited),
        "p99 of them ms": percentile(waited, 0.99) * 1e3 if waited else 0,
        "longest of them ms": waited[-1] * 1e3 if waited else 0,
        "waits cut short": short,
        "waits lengthened": long,
        "log MB, first half": max(each.log_mb for each in files[:half]),
        "log MB, second half": max(each.log_mb for each in files[half:]),
        "store MB, first half": max(each.store_mb for each in files[:half]),
        "store MB, second half": max(each.store_mb for each in files[half:]),
        "shared MB": max(each.shared_mb for each in files),
        **figures_of("a process", [peak(several) for several in zip(*(w.samples for w in works), strict=False)]),
    }
    if short:
        report.findings.append(f"{short:,} of {len(waited):,} waits were over before their {WAIT_SECONDS:g} s")
    if long:
        report.findings.append(f"{long:,} of {len(waited):,} waits were {WAIT_SECONDS_MORE:g} s late or more")
    if report.figures["log MB, second half"] > LOG_MB_MAX:
        report.findings.append(f"the log grew to {report.figures['log MB, second half']:.1f} MB")
