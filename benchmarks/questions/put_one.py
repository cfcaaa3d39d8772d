"""How fast are puts, one by one?"""

from __future__ import annotations

from benchmarks.bars import bars_of
from benchmarks.harness import Question, Work
from benchmarks.systems import BODY, System
from benchmarks.systems.all import rate_contestants


def work(system: System) -> Work:
    """One put; all messages are removed at the end."""
    return Work(operation=lambda: system.put(BODY), end=system.empty)


QUESTION = Question(
    name="put_one",
    title="put, one by one",
    unit="messages/s",
    contestants=lambda site: rate_contestants(site, work, memory=True),
    bars=bars_of("put_one"),
)
