"""Kills workers on a store with SIGKILL, over and over, and checks after each round their acknowledged calls.

    python -m tools.proof.crash --kills 3000 --seconds 1800

In a round some workers run at once, each in several lives, and every life ends violently (`lives`). While one is dead
the others continue, and notice. When all are dead the observer opens the store, as after a restart, and the checker
judges the round. A store is used for some rounds. After every third one comes a round in which the workers put, carry
and read between two queue managers (`carried_round`), in other stores. On PostgreSQL the server is stopped at once and
started again in some rounds. The plan follows from the seed; the moments of the kills depend on the machine.
"""

from __future__ import annotations

import argparse
import random
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from . import carried_round
from .acts import Finding
from .checker import OBSERVER, ROUNDS, URL, check_round, check_store, run_observer, store_of, told
from .history import read_folder
from .lives import ENDS, Crash, Life, Parent, live, lives_of, lives_of_crash
from .order import Known

if TYPE_CHECKING:
    from tests.stores.postgresql.server import Server

ROUNDS_OF_STORE = 8
BETWEEN = 3  # rounds of a store before one between two queue managers
CRASHES = 0.15  # the share of rounds with a crash, if the store is on a server
CRASH_SECONDS_MAX = 1.0
ALL_ENDS = dict.fromkeys((*ENDS, *carried_round.ENDS["carrier"]))
TOLD_SECONDS = 30.0  # between two lines of progress


class Plan(NamedTuple):
    """The plan of a round: the parents, with one worker at a time; the workers' lives; and the server, if any."""

    parents: list[Parent]
    lives: int
    server: Server | None


@dataclass
class Report:
    """The results of a run.

    Attributes:
        kills: the number of kills by each end of a life.
        promises: the number of acknowledged calls, which were checked.
        kept: the folder of the store with broken promises, if any.
    """

    seed: int
    kills: Counter[str] = field(default_factory=Counter)
    promises: int = 0
    findings: list[Finding] = field(default_factory=list)
    kept: Path | None = None

    def __str__(self) -> str:
        kills = ", ".join(f"{point}: {count}" for point, count in sorted(self.kills.items()))
        kept = f"\nthe store and its histories are in {self.kept}" if self.kept else ""
        missed = ", ".join(point for point in ALL_ENDS if point not in self.kills) or "none"
        what = f"{self.promises:,} promises, {self.kills.total():,} kills ({kills}; never: {missed})"
        return f"seed {self.seed}: {what}\n{told(self.findings, as_json=False)}{kept}"


def run_round(report: Report, folder: Path, known: Known, chance: random.Random, plan: Plan) -> None:
    """Runs one round on the store in `folder`: kills, then the observer, then the judgement."""
    number = len(list((folder / ROUNDS).iterdir()))
    round_folder, server = folder / ROUNDS / f"{number:04}", plan.server
    round_folder.mkdir()
    crash: Crash | None = None
    if not number:  # the first round has no workers: its observer makes the queues
        lives = []
    elif server is not None and chance.random() < CRASHES:
        lives = lives_of_crash(chance, round_folder.name, len(plan.parents))
        goes, seconds = partial(server.restart, "immediate"), chance.uniform(0, CRASH_SECONDS_MAX)
        crash = Crash(goes, round_folder / "server.jsonl", len(plan.parents), seconds)
    else:
        lives = list(lives_of(chance, round_folder.name, len(plan.parents), plan.lives, on_server=server is not None))

    def live_all(parent: Parent, of_worker: list[Life]) -> list[tuple[str, list[Finding]]]:
        store, crashes = store_of(folder), crash.happen if crash else None
        return [live(parent, store, round_folder, life, server, crashes) for life in of_worker]

    with ThreadPoolExecutor(max_workers=max(1, len(plan.parents))) as slots:
        for ends in slots.map(live_all, plan.parents, lives):
            for end, findings in ends:
                report.kills[end] += 1
                report.findings += findings
    report.findings += run_observer(store_of(folder), round_folder, chance.getrandbits(32))
    if (round_folder / OBSERVER).exists():
        calls = read_folder(round_folder)
        report.promises += sum(call.outcome == "promised" for call in calls)
        report.findings += check_round(calls, known)
        report.findings += check_store(store_of(folder))


def run_between(report: Report, folder: Path, chance: random.Random, plan: Plan) -> None:
    """Runs one round between two queue managers; its stores are removed if all promises were kept."""
    folder.mkdir()
    url = None if plan.server is None else plan.server.url()
    kills, calls, findings = carried_round.run_round(folder, chance, plan.parents, plan.lives, url)
    report.kills += kills
    report.promises += sum(call.outcome == "promised" for call in calls)
    report.findings += findings
    if not findings:
        carried_round.remove(folder)


def run(
    *,
    kills: int,
    seed: int,
    workers: int = 4,
    lives: int = 3,
    seconds: float = float("inf"),
    parent: Path | None = None,
    server: Server | None = None,
    tell: Callable[[str], object] = lambda _: None,
) -> Report:
    """Kills until the number of kills is reached, the time is over, or a promise was broken.

    Args:
        server: the PostgreSQL server for the stores; None: they are files.
        tell: called now and then with the progress.
    """
    chance, report, plan = random.Random(seed), Report(seed), Plan([Parent() for _ in range(workers)], lives, server)
    began = told_at = time.monotonic()
    while not report.findings and report.kills.total() < kills and time.monotonic() < began + seconds:
        folder, known = Path(tempfile.mkdtemp(prefix="crash-", dir=parent)), Known()
        (folder / ROUNDS).mkdir()
        if server is not None:
            (folder / URL).write_text(f"{server.url()}?schema={folder.name.replace('-', '_')}")
        for number in range(1 + ROUNDS_OF_STORE):
            run_round(report, folder, known, chance, plan)
            if number % BETWEEN == 1 and not report.findings:
                run_between(report, folder / f"between-{number}", chance, plan)
            now, done = time.monotonic(), report.kills.total()
            if now > told_at + TOLD_SECONDS:
                told_at = now
                tell(f"{done:,} of {kills:,} kills, {done * 60 / (now - began):.0f} a minute; {report.promises:,} kept")
            if report.findings or done >= kills or now >= began + seconds:
                break
        if report.findings:
            report.kept = folder
        else:
            remove(folder)
    for one in plan.parents:
        one.close()
    return report


def remove(folder: Path) -> None:
    """Removes a store whose promises were kept, with its histories."""
    store = store_of(folder)
    if isinstance(store, str):
        from inorder.stores.postgresql import drop, parse  # noqa: PLC0415 - a proof of files does without

        drop(parse(store))
    shutil.rmtree(folder)


def run_on_server(**asked: Any) -> Report:
    """Runs the same on a PostgreSQL server that it starts."""
    from tests.stores.postgresql.server import Server  # noqa: PLC0415 - only a checkout with the tests has it

    with Server() as server:
        report = run(**asked, server=server)
        if report.kept is not None:  # the server goes with this process
            (report.kept / "store.sql").write_text(server.dump(report.kept.name.replace("-", "_")))
        return report


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--kills", type=int, default=3000)
    parser.add_argument("--seconds", type=float, default=3600.0, help="ends after this time in any case")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().getrandbits(32))
    parser.add_argument("--store", choices=("sqlite", "postgresql"), default="sqlite", help="the kind of the stores")
    asked = vars(parser.parse_args())
    kills = run if asked.pop("store") == "sqlite" else run_on_server
    report = kills(**asked, tell=lambda line: print(line, file=sys.stderr, flush=True))
    print(report)
    return 1 if report.findings else 0


if __name__ == "__main__":
    sys.exit(main())
