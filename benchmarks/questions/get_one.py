"""How fast are destructive gets, one by one?"""

from __future__ import annotations

from benchmarks.harness import Bar, Question, Work
from benchmarks.systems import System
from benchmarks.systems.all import rate_contestants
from benchmarks.systems.bare import BARE
from benchmarks.systems.ours import OURS


def work(system: System) -> Work:
    """One get; what it needs is put before each slice."""
    return Work(operation=system.get, before=system.stock)


QUESTION = Question(
    name="get_one",
    title="get, one by one, destructive",
    unit="messages/s",
    contestants=lambda site: rate_contestants(site, work),
    bars=[Bar(figure="rate", of=OURS, against=BARE, first=0.7, goal=0.85)],
)
