"""How fast are complete groups got, in logical order, among a thousand interleaved ones?"""

from __future__ import annotations

from benchmarks.harness import Bar, Question, Work
from benchmarks.systems import System
from benchmarks.systems.all import rate_contestants
from benchmarks.systems.bare import BARE
from benchmarks.systems.ours import OURS

GROUPS = 1000
MEMBERS = 10


def work(system: System) -> Work:
    """One group of 10 in one unit of work."""
    return Work(
        operation=system.get_group,
        size=MEMBERS,
        before=lambda count: system.stock_groups(count, MEMBERS),
        slice=GROUPS,
    )


QUESTION = Question(
    name="get_group",
    title=f"get_group ({MEMBERS} messages) in logical order among {GROUPS:,} interleaved groups",
    unit="messages/s",
    contestants=lambda site: rate_contestants(site, work, bare=True),
    bars=[Bar(figure="rate", of=OURS, against=BARE, first=0.8, goal=0.8)],
)
