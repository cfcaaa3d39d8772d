"""How much memory does a process need at a depth of a million messages of 1 KiB?"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path

from benchmarks.children import child, memory_mb, orders
from benchmarks.harness import Bar, Contestant, Figures, Question, Ready, Site
from benchmarks.systems import BLOCK, BODY, System
from benchmarks.systems.all import IN_MEMORY, systems_at
from benchmarks.systems.ours import OURS

DEEP = 1_000_000
CALLS = 1000


def serve(pipe: Connection, system: type[System], folder: Path, depth: int) -> None:
    """Runs a process that fills the queue, and works on it at each order."""
    empty = memory_mb("VmHWM")
    with closing(system(folder, 0)) as own:
        own.stock(depth)
        filled = memory_mb("VmHWM")
        for _ in orders(pipe):
            for _ in range(CALLS):
                own.get()
                own.put(BODY)
            own.get_many_in_unit(BLOCK)
            own.stock(BLOCK)
            now, most = memory_mb("VmRSS"), memory_mb("VmHWM")
            pipe.send({"resident MB": now, "most MB": most, "most MB, filling": filled, "MB before it opened": empty})


@contextmanager
def opened(folder: Path, *, system: type[System], depth: int) -> Iterator[Ready]:
    """Starts a child that fills its queue."""
    with child(serve, system, folder, depth) as worker, closing(system(folder, 0)) as own:

        def measure(seconds: float) -> Figures:
            worker.order("work")
            figures: Figures = worker.answer()
            return figures

        yield Ready(measure=measure, settings=own.settings())


def contestants(site: Site) -> list[Contestant]:
    """Returns us and the limit, if they take part."""
    return [
        Contestant(name=system.name, role=system.role, open=partial(opened, system=system, depth=site.scaled(DEEP)))
        for system in systems_at(site)
        if system.role in IN_MEMORY
    ]


QUESTION = Question(
    name="memory",
    title=f"resident memory at a depth of {DEEP:,} x 1 KiB",
    unit="MB",
    contestants=contestants,
    rounds_max=2,
    bars=[Bar(figure="most MB", of=OURS, first=200, goal=120)],
)
