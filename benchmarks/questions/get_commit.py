"""How fast are gets of one message in a unit of work, each with its commit?"""

from __future__ import annotations

from benchmarks.bars import bars_of
from benchmarks.harness import Question, Work
from benchmarks.systems import STOCK, System
from benchmarks.systems.all import rate_contestants


def work(system: System) -> Work:
    """One unit of work with one get."""
    system.stock(STOCK)
    return Work(operation=lambda: system.get_many_in_unit(1), before=system.stock, most=STOCK)


QUESTION = Question(
    name="get_commit",
    title="get in a unit, commit, one by one",
    unit="messages/s",
    contestants=lambda site: rate_contestants(site, work, memory=True),
    bars=bars_of("get_commit"),
)
