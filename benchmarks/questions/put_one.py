"""How fast are puts, one by one?"""

from __future__ import annotations

from benchmarks.harness import Bar, Question, Work
from benchmarks.systems import BODY, System
from benchmarks.systems.all import rate_contestants
from benchmarks.systems.bare import BARE
from benchmarks.systems.ours import OURS


def work(system: System) -> Work:
    """One put; what was put is removed after each slice."""
    return Work(operation=lambda: system.put(BODY), after=system.empty)


QUESTION = Question(
    name="put_one",
    title="put, one by one",
    unit="messages/s",
    contestants=lambda site: rate_contestants(site, work),
    bars=[Bar(figure="rate", of=OURS, against=BARE, first=0.7, goal=0.85)],
)
