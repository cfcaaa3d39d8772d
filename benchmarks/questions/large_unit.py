"""How long does it take to settle a unit of a hundred thousand messages, and how long do others wait meanwhile?"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path

from benchmarks.children import child, orders
from benchmarks.harness import Bar, Contestant, Figures, Question, Ready, Site
from benchmarks.systems import BODY, FILL_BLOCK
from benchmarks.systems.ours import OURS, QUEUE, Ours, open_queue, settings_of

HELD = 100_000
OTHER = "OTHER"


def serve(pipe: Connection, folder: Path) -> None:
    """Runs a process that puts on another queue; it answers each order with the seconds of its longest recent put."""
    with open_queue(folder, OTHER) as qm:
        longest = 0.0
        while True:
            start = time.monotonic()
            qm.put(OTHER, BODY)
            qm.get(OTHER)
            longest = max(longest, time.monotonic() - start)
            if pipe.poll():
                if next(orders(pipe), None) is None:
                    return
                pipe.send(longest)
                longest = 0.0


@contextmanager
def opened(folder: Path, *, held: int) -> Iterator[Ready]:
    """Opens a process with large units of work, beside one that works on another queue."""
    with closing(Ours(folder)) as own, child(serve, folder) as other:

        def asked() -> float:
            other.order("longest")
            return float(other.answer())

        def settled() -> tuple[float, float]:
            asked()
            start = time.monotonic()
            own.qm.commit()
            return time.monotonic() - start, asked()

        def measure(seconds: float) -> Figures:
            blocks = range(0, held, FILL_BLOCK)
            for _ in blocks:
                own.qm.put_many(QUEUE, [BODY] * FILL_BLOCK, syncpoint=True)
            puts, beside_puts = settled()
            for _ in blocks:
                own.qm.get_many(QUEUE, FILL_BLOCK, syncpoint=True)
            gets, beside_gets = settled()
            return {
                "puts s": puts,
                "gets s": gets,
                "longest put and get of another ms": max(beside_puts, beside_gets) * 1e3,
            }

        yield Ready(measure=measure, settings=settings_of(own.qm))


def contestants(site: Site) -> list[Contestant]:
    """Returns only us."""
    held = site.scaled(HELD)
    return [Contestant(name=OURS, role="ours", open=partial(opened, held=held))]


QUESTION = Question(
    name="large_unit",
    title=f"commit of a unit of {HELD:,} puts, and of as many gets",
    unit="s",
    contestants=contestants,
    rounds_max=3,
    bars=[Bar(figure=figure, of=OURS, first=3, goal=1) for figure in ("puts s", "gets s")],
)
