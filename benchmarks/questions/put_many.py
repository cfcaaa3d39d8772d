"""How fast are puts in transactions of 100?"""

from __future__ import annotations

from benchmarks.bars import bars_of
from benchmarks.harness import Question, Work
from benchmarks.systems import BLOCK, BODY, System
from benchmarks.systems.all import rate_contestants

BODIES = [BODY] * BLOCK


def work(system: System) -> Work:
    """One put_many of 100; all messages are removed at the end."""
    return Work(operation=lambda: system.put_many(BODIES), size=BLOCK, end=system.empty)


QUESTION = Question(
    name="put_many",
    title=f"put_many({BLOCK})",
    unit="messages/s",
    contestants=lambda site: rate_contestants(site, work, memory=True),
    bars=bars_of("put_many"),
)
