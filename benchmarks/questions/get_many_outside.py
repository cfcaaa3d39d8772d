"""How fast are gets of 100 outside a unit of work?"""

from __future__ import annotations

from benchmarks.harness import Bar, Question, Work
from benchmarks.systems import BLOCK, System
from benchmarks.systems.all import rate_contestants
from benchmarks.systems.bare import BARE
from benchmarks.systems.ours import OURS


def work(system: System) -> Work:
    """One get_many of 100."""
    return Work(
        operation=lambda: system.get_many(BLOCK),
        size=BLOCK,
        before=lambda count: system.stock(count * BLOCK),
    )


QUESTION = Question(
    name="get_many_outside",
    title=f"get_many({BLOCK}) outside a unit",
    unit="messages/s",
    contestants=lambda site: rate_contestants(site, work),
    bars=[Bar(figure="rate", of=OURS, against=BARE, first=0.6, goal=0.8)],
)
