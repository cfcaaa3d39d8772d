"""How fast are units of work that get one message and put one?"""

from __future__ import annotations

from benchmarks.bars import bars_of
from benchmarks.harness import Question, Work
from benchmarks.systems import BLOCK, BODY, System
from benchmarks.systems.all import rate_contestants


def work(system: System) -> Work:
    """One unit of work: a get, a put, a commit; the queue keeps 100 messages."""
    system.stock(BLOCK)
    return Work(operation=lambda: system.get_put(BODY))


QUESTION = Question(
    name="get_put",
    title="get 1, put 1, commit",
    unit="units of work/s",
    contestants=lambda site: rate_contestants(site, work),
    bars=bars_of("get_put"),
)
