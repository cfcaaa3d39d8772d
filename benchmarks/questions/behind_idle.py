"""Are gets slower on PostgreSQL while a transaction elsewhere keeps removed rows, so that vacuum must wait?"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path

from benchmarks.bars import POSTGRESQL
from benchmarks.harness import RATE, Bar, Contestant, Figures, Question, Ready, Site, rate
from benchmarks.questions import get_one
from benchmarks.systems import BLOCK, System
from benchmarks.systems.all import systems_named
from benchmarks.systems.ours import OURS_ON_POSTGRESQL as OURS
from benchmarks.systems.postgresql import connected

GOT = 100_000
BEHIND, SLOWER = f"{OURS}, behind an idle transaction", 0.7


@contextmanager
def opened(folder: Path, *, system: type[System], port: int, got: int) -> Iterator[Ready]:
    """Begins a transaction that stays idle, and gets this many messages after it."""
    with closing(system(folder, port)) as own, connected(port) as idle:
        if got:
            idle.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
            idle.execute("SELECT 1")
        for _ in range(0, got, BLOCK):
            own.stock(BLOCK)
            own.get_many(BLOCK)
        work = get_one.work(own)

        def measure(seconds: float) -> Figures:
            return {RATE: rate(work, seconds)}

        yield Ready(measure=measure, settings=own.settings())


def contestants(site: Site) -> list[Contestant]:
    """Returns us, with such a transaction and without."""
    if POSTGRESQL not in site.ports:
        return []
    return [
        Contestant(
            name=name,
            role="peer",
            open=partial(opened, system=system, port=site.ports[POSTGRESQL], got=site.scaled(GOT) if is_behind else 0),
        )
        for system in systems_named(["inorder-on-postgresql"])
        for name, is_behind in ((system.name, False), (f"{system.name}, behind an idle transaction", True))
    ]


QUESTION = Question(
    name="behind_idle_on_postgresql",
    title=f"get, one by one, when {GOT:,} were got since an idle transaction began, on PostgreSQL",
    unit="messages/s",
    contestants=contestants,
    bars=[Bar(figure=RATE, of=BEHIND, against=OURS, first=SLOWER, goal=SLOWER)],
)
