"""How fast are gets of 100 outside a unit of work?"""

from __future__ import annotations

from benchmarks.bars import bars_of
from benchmarks.harness import Question, Work
from benchmarks.systems import BLOCK, STOCK, System
from benchmarks.systems.all import rate_contestants


def work(system: System) -> Work:
    """One get_many of 100."""
    system.stock(STOCK)
    return Work(
        operation=lambda: system.get_many(BLOCK),
        size=BLOCK,
        before=lambda count: system.stock(count * BLOCK),
        most=STOCK,
    )


QUESTION = Question(
    name="get_many_outside",
    title=f"get_many({BLOCK}) outside a unit",
    unit="messages/s",
    contestants=lambda site: rate_contestants(site, work, memory=True),
    bars=bars_of("get_many_outside"),
)
