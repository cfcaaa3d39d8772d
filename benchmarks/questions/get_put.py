"""How fast are units of work that get one message and put one?"""

from __future__ import annotations

from benchmarks.harness import Bar, Question, Work
from benchmarks.systems import BLOCK, BODY, System
from benchmarks.systems.all import rate_contestants
from benchmarks.systems.bare import BARE
from benchmarks.systems.ours import OURS


def work(system: System) -> Work:
    """One unit of work: get 1, put 1, commit; the queue keeps 100 messages."""
    system.stock(BLOCK)
    return Work(operation=lambda: system.get_put(BODY))


QUESTION = Question(
    name="get_put",
    title="get 1, put 1, commit",
    unit="units of work/s",
    contestants=lambda site: rate_contestants(site, work),
    bars=[Bar(figure="rate", of=OURS, against=BARE, first=0.6, goal=0.8)],
)
