"""Kills workers on a store with SIGKILL, over and over, and checks after each round what they had been promised.

    python -m tools.proof.crash --kills 3000 --seconds 1800

In a round some workers run at once, each in several lives, and every life ends with a kill: at a random moment, or at
a named point inside the store's transactions (`inorder.stores.points`). While one is dead the others go on, and
notice. When all are dead the observer opens the store, as after a restart, and the checker judges the round. A store
lives for some rounds. The plan follows from the seed; when a kill falls is the machine's.
"""

from __future__ import annotations

import argparse
import random
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from inorder.stores.points import POINTS as ALL_POINTS

from . import crash_points
from .acts import Finding
from .checker import OBSERVER, ROUNDS, URL, check_round, check_store, run_observer, store_of, told
from .history import read_folder
from .order import Known

LIFE_SECONDS_MAX = 0.4
START_SECONDS_MAX = 60.0
POINT_SECONDS_MAX = 1.5  # by then the worker has come to its point, or does not come to it
STEPS_MAX = 1_000_000
ROUNDS_OF_STORE = 8
RANDOM = "random moment"
NTH = (1, 3, 10, 40)
POINTS = [point for point in ALL_POINTS if point not in ("staged", "settled-staging")]  # workers stage nothing
RARE, NTH_OF_RARE = ("reaping", "checkpoint"), (1, 1, 2)  # points that a worker comes to a few times


class Life(NamedTuple):
    """One life of a worker: its name, its seed, and where or when it is killed."""

    name: str
    seed: int
    point: str | None
    nth: int
    seconds: float


@dataclass
class Report:
    """What a run did and found.

    Attributes:
        kills: how many, by point; `RANDOM` for those at no point.
        promises: how many calls were acknowledged, and so were checked.
        kept: the folder of the store at which promises were broken, if any were.
    """

    seed: int
    kills: Counter[str] = field(default_factory=Counter)
    promises: int = 0
    findings: list[Finding] = field(default_factory=list)
    kept: Path | None = None

    def __str__(self) -> str:
        kills = ", ".join(f"{point}: {count}" for point, count in sorted(self.kills.items()))
        kept = f"\nthe store and its histories are in {self.kept}" if self.kept else ""
        missed = ", ".join(point for point in POINTS if point not in self.kills) or "none"
        what = f"{self.promises:,} promises, {self.kills.total():,} kills ({kills}; points never reached: {missed})"
        return f"seed {self.seed}: {what}\n{told(self.findings, as_json=False)}{kept}"


def lives_of(chance: random.Random, round_name: str, workers: int, lives: int) -> Iterator[list[Life]]:
    """The plan of a round: the lives of each worker."""
    for worker in range(workers):
        points = [chance.choice((None, *POINTS)) for _ in range(lives)]
        yield [
            Life(
                name=f"r{round_name}-w{worker}-l{life}",
                seed=chance.getrandbits(32),
                point=point,
                nth=chance.choice(NTH_OF_RARE if point in RARE else NTH),
                seconds=chance.uniform(0, LIFE_SECONDS_MAX),
            )
            for life, point in enumerate(points)
        ]


def live(store: Path | str, round_folder: Path, life: Life) -> tuple[str, list[Finding]]:
    """Runs one life to its violent end; where it was killed, and what it complained of before that."""
    environment = crash_points.environment(f"{life.point}:{life.nth}") if life.point else None
    history, complaint = round_folder / f"{life.name}.jsonl", round_folder / f"{life.name}.err"
    asked = ["-m", "tools.proof.worker", store, history, "--seed", life.seed, "--steps", STEPS_MAX]
    with complaint.open("wb") as stderr:
        worker = subprocess.Popen(
            [sys.executable, *map(str, asked)], env=environment, stdout=subprocess.PIPE, stderr=stderr
        )
    assert worker.stdout is not None
    with worker.stdout:
        if not select.select([worker.stdout], [], [], START_SECONDS_MAX)[0]:  # it is neither at work nor dead
            worker.kill()
            worker.wait()
            return RANDOM, [Finding("worker", f"{life.name} was not at work after {START_SECONDS_MAX} s: it waits")]
        worker.stdout.readline()
    killed_at = life.point or RANDOM
    try:
        worker.wait(POINT_SECONDS_MAX if life.point else life.seconds)
    except subprocess.TimeoutExpired:
        worker.kill()
        worker.wait()
        killed_at = RANDOM
    if worker.returncode == -signal.SIGKILL:
        return killed_at, []
    text = f"{life.name} ended with status {worker.returncode}: {complaint.read_text()[-2000:]}"
    return killed_at, [Finding("worker", text)]


def run_round(report: Report, folder: Path, known: Known, chance: random.Random, workers: int, lives: int) -> None:
    """One round on the store in `folder`: kills, then the observer, then the judgement."""
    number = len(list((folder / ROUNDS).iterdir()))
    round_folder = folder / ROUNDS / f"{number:04}"
    round_folder.mkdir()
    plan = list(lives_of(chance, round_folder.name, workers, lives)) if number else []

    def live_all(of_worker: list[Life]) -> list[tuple[str, list[Finding]]]:
        return [live(store_of(folder), round_folder, life) for life in of_worker]

    with ThreadPoolExecutor(max_workers=max(1, workers)) as slots:
        for ends in slots.map(live_all, plan):
            for killed_at, findings in ends:
                report.kills[killed_at] += 1
                report.findings += findings
    report.findings += run_observer(store_of(folder), round_folder, chance.getrandbits(32))
    if (round_folder / OBSERVER).exists():
        calls = read_folder(round_folder)
        report.promises += sum(call.outcome == "promised" for call in calls)
        report.findings += check_round(calls, known)
        report.findings += check_store(store_of(folder))


def run(
    *,
    kills: int,
    seed: int,
    workers: int = 4,
    lives: int = 3,
    seconds: float = float("inf"),
    parent: Path | None = None,
    server: str | None = None,
) -> Report:
    """Kills until there were enough, the time is over, or a promise was broken.

    Args:
        server: the URL of a PostgreSQL database in which the stores lie, instead of files.
    """
    chance, report, deadline = random.Random(seed), Report(seed), time.monotonic() + seconds
    while not report.findings and report.kills.total() < kills and time.monotonic() < deadline:
        folder, known = Path(tempfile.mkdtemp(prefix="crash-", dir=parent)), Known()
        (folder / ROUNDS).mkdir()
        if server is not None:
            (folder / URL).write_text(f"{server}?schema={folder.name.replace('-', '_')}")
        for _ in range(1 + ROUNDS_OF_STORE):  # the first has no workers: its observer makes the queues
            run_round(report, folder, known, chance, workers, lives)
            if report.findings or report.kills.total() >= kills or time.monotonic() >= deadline:
                break
        if report.findings:
            report.kept = folder
        else:
            remove(folder)
    return report


def remove(folder: Path) -> None:
    """A store whose promises were kept, with its histories."""
    store = store_of(folder)
    if isinstance(store, str):
        from inorder.stores.postgresql import drop, parse  # noqa: PLC0415 - a proof of files does without

        drop(parse(store))
    shutil.rmtree(folder)


def run_on_server(**asked: Any) -> Report:
    """The same on a PostgreSQL server of its own."""
    from tests.postgresql.server import Server  # noqa: PLC0415 - it is there where the tests are

    with Server() as server:
        return run(**asked, server=server.url())


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--kills", type=int, default=3000)
    parser.add_argument("--seconds", type=float, default=3600.0, help="ends after this time, whatever was done")
    parser.add_argument("--workers", type=int, default=4, help="processes at once")
    parser.add_argument("--lives", type=int, default=3, help="lives of each worker in a round")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().getrandbits(32))
    parser.add_argument("--store", choices=("sqlite", "postgresql"), default="sqlite", help="where the stores lie")
    asked = vars(parser.parse_args())
    report = run(**asked) if asked.pop("store") == "sqlite" else run_on_server(**asked)
    print(report)
    return 1 if report.findings else 0


if __name__ == "__main__":
    sys.exit(main())
