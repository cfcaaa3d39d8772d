"""How soon does a waiting process have a message that another one puts, and what does waiting cost?"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path

from benchmarks.children import child, orders
from benchmarks.harness import Bar, Cannot, Contestant, Figures, Question, Ready, Site, percentile
from benchmarks.systems import System
from benchmarks.systems.all import systems_at
from benchmarks.systems.ours import OURS

PAUSE_SECONDS = 0.02  # the waiter has surely begun to wait
WAIT_SECONDS = 5.0
PUTS_MIN = 10


def serve(pipe: Connection, system: type[System], folder: Path, port: int) -> None:
    """A process that waits. Told "wake", it answers how long after its put a message came; told seconds, it waits
    that long for nothing and answers its share of a core."""
    with closing(system(folder, port)) as own:
        for told in orders(pipe):
            if told == "wake":
                body = own.wait(WAIT_SECONDS)
                pipe.send(None if body is None else (time.monotonic_ns() - int(body)) / 1e9)
            else:
                start, used = time.monotonic(), time.process_time()
                own.wait(told)
                pipe.send((time.process_time() - used) / (time.monotonic() - start))


@contextmanager
def opened(folder: Path, *, system: type[System], port: int) -> Iterator[Ready]:
    """A process that waits, and this one, which puts."""
    with closing(system(folder, port)) as own, child(serve, system, folder, port) as waiter:
        own.empty()

        def latency() -> float:
            waiter.order("wake")
            time.sleep(PAUSE_SECONDS)
            own.put(str(time.monotonic_ns()).encode("ascii"))
            waited = waiter.answer(2 * WAIT_SECONDS)
            if waited is None:
                raise Cannot(f"another process did not notice a put within {WAIT_SECONDS:g} s")
            return float(waited)

        def measure(seconds: float) -> Figures:
            ordered = sorted(latency() for _ in range(max(PUTS_MIN, int(seconds / PAUSE_SECONDS / 2))))
            waiter.order(seconds)
            return {
                "p50 ms": percentile(ordered, 0.5) * 1e3,
                "p99 ms": percentile(ordered, 0.99) * 1e3,
                "max ms": ordered[-1] * 1e3,
                "idle % of a core": waiter.answer() * 100,
            }

        yield Ready(measure=measure, settings=own.settings())


def contestants(site: Site) -> list[Contestant]:
    """Every system but the bare statements, which have no wait."""
    return [
        Contestant(
            name=system.name,
            role=system.role,
            open=partial(opened, system=system, port=site.ports.get(system.name, 0)),
        )
        for system in systems_at(site)
        if system.role != "bare"
    ]


QUESTION = Question(
    name="wake_up",
    title="wake-up of a waiting process, and the CPU time of one that waits",
    unit="ms",
    contestants=contestants,
    bars=[
        Bar(figure="p50 ms", of=OURS, first=10, goal=5),
        Bar(figure="idle % of a core", of=OURS, first=1, goal=0.5),
    ],
)
