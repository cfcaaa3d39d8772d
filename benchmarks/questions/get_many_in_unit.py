"""How fast are gets of 100 in a unit of work, with its commit?"""

from __future__ import annotations

from benchmarks.harness import Bar, Question, Work
from benchmarks.systems import BLOCK, System
from benchmarks.systems.all import rate_contestants
from benchmarks.systems.bare import BARE
from benchmarks.systems.ours import OURS


def work(system: System) -> Work:
    """One unit of work of 100 gets."""
    return Work(
        operation=lambda: system.get_many_in_unit(BLOCK),
        size=BLOCK,
        before=lambda count: system.stock(count * BLOCK),
    )


QUESTION = Question(
    name="get_many_in_unit",
    title=f"get_many({BLOCK}) in a unit, commit",
    unit="messages/s",
    contestants=lambda site: rate_contestants(site, work),
    bars=[Bar(figure="rate", of=OURS, against=BARE, first=0.6, goal=0.8)],
)
