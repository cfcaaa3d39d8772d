"""How fast are puts in transactions of 100?"""

from __future__ import annotations

from benchmarks.harness import Bar, Question, Work
from benchmarks.systems import BLOCK, BODY, System
from benchmarks.systems.all import rate_contestants
from benchmarks.systems.bare import BARE
from benchmarks.systems.ours import OURS

BODIES = [BODY] * BLOCK


def work(system: System) -> Work:
    """One put_many of 100; what was put is removed after each slice."""
    return Work(operation=lambda: system.put_many(BODIES), size=BLOCK, after=system.empty)


QUESTION = Question(
    name="put_many",
    title=f"put_many({BLOCK})",
    unit="messages/s",
    contestants=lambda site: rate_contestants(site, work),
    bars=[Bar(figure="rate", of=OURS, against=BARE, first=0.65, goal=0.8)],
)
