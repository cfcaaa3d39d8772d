"""How fast are destructive gets, one by one?"""

from __future__ import annotations

from benchmarks.bars import bars_of
from benchmarks.harness import Question, Work
from benchmarks.systems import STOCK, System
from benchmarks.systems.all import rate_contestants


def work(system: System) -> Work:
    """One get; its messages are put before each slice."""
    system.stock(STOCK)
    return Work(operation=system.get, before=system.stock, most=STOCK)


QUESTION = Question(
    name="get_one",
    title="get, one by one",
    unit="messages/s",
    contestants=lambda site: rate_contestants(site, work, memory=True),
    bars=bars_of("get_one"),
)
