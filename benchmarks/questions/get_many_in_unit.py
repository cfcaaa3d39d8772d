"""How fast are gets of 100 in a unit of work, with its commit?"""

from __future__ import annotations

from benchmarks.bars import bars_of
from benchmarks.harness import Question, Work
from benchmarks.systems import BLOCK, STOCK, System
from benchmarks.systems.all import rate_contestants


def work(system: System) -> Work:
    """One unit of work of 100 gets."""
    system.stock(STOCK)
    return Work(
        operation=lambda: system.get_many_in_unit(BLOCK),
        size=BLOCK,
        before=lambda count: system.stock(count * BLOCK),
        most=STOCK,
    )


QUESTION = Question(
    name="get_many_in_unit",
    title=f"get_many({BLOCK}) in a unit, commit",
    unit="messages/s",
    contestants=lambda site: rate_contestants(site, work, memory=True),
    bars=bars_of("get_many_in_unit"),
)
