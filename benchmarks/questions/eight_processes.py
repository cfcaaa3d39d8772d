"""How fast are puts by eight processes at once, how large is the share of each, and how long can a put take?"""

from __future__ import annotations

from functools import partial

from benchmarks.at_once import opened
from benchmarks.bars import bars_of
from benchmarks.harness import Bar, Contestant, Question, Site
from benchmarks.systems.all import systems_at
from benchmarks.systems.ours import OURS

PROCESSES = 8


def contestants(site: Site) -> list[Contestant]:
    """Returns every system with eight processes, and us and the limit also with one."""
    return [
        Contestant(
            name=named(system.name, processes),
            role=system.role,
            open=partial(opened, system=system, port=site.ports.get(system.name, 0), processes=processes),
        )
        for system in systems_at(site)
        if system.role != "bare"
        for processes in ((PROCESSES, 1) if system.role != "peer" else (PROCESSES,))
    ]


def named(system: str, processes: int) -> str:
    """Returns the name of a contestant."""
    return system if processes == PROCESSES else f"{system}, one process"


QUESTION = Question(
    name="eight_processes",
    title="eight processes putting one by one",
    unit="messages/s",
    contestants=contestants,
    bars=[
        *bars_of("eight_processes"),
        Bar(figure="rate", of=OURS, against=named(OURS, 1), first=1.5, goal=1.5),
        Bar(figure="p99.9 ms", of=OURS, first=50, goal=50),
        Bar(figure="max ms", of=OURS, first=250, goal=250),
    ],
)
