"""Processes that put on one queue at the same time, and statistics of their latencies."""

from __future__ import annotations

import time
from array import array
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from itertools import chain
from multiprocessing.connection import Connection
from pathlib import Path

from benchmarks.children import Child, child, orders
from benchmarks.harness import Figures, Ready, percentile
from benchmarks.systems import BODY, System

START_SECONDS = 0.05  # from the order to the common start


def serve(pipe: Connection, system: type[System], folder: Path, port: int) -> None:
    """Runs a process that puts. An order is a start on the machine's clock, and seconds; the answer, latencies."""
    with closing(system(folder, port)) as own:
        pipe.send("ready")
        for start, seconds in orders(pipe):
            time.sleep(max(0.0, start - time.monotonic()))
            pipe.send(latencies(own, start + seconds))


def latencies(system: System, end: float) -> array[float]:
    """Puts until the end; returns the seconds of each put."""
    taken = array("d")
    now = time.monotonic()
    while now < end:
        system.put(BODY)
        before, now = now, time.monotonic()
        taken.append(now - before)
    return taken


def figures(answers: Sequence[Sequence[float]], seconds: float) -> Figures:
    """Returns the rate of all, the smallest share relative to the mean, and latencies in milliseconds."""
    ordered = sorted(chain.from_iterable(answers))
    mean = len(ordered) / len(answers)
    return {
        "rate": len(ordered) / seconds,
        "smallest share / mean": min(len(answer) for answer in answers) / mean,
        "p50 ms": percentile(ordered, 0.5) * 1e3,
        "p99 ms": percentile(ordered, 0.99) * 1e3,
        "p99.9 ms": percentile(ordered, 0.999) * 1e3,
        "max ms": ordered[-1] * 1e3,
    }


@contextmanager
def opened(folder: Path, *, system: type[System], port: int, processes: int) -> Iterator[Ready]:
    """Runs processes on one queue, which is emptied after each measure."""
    with closing(system(folder, port)) as own, ExitStack() as stack:
        own.empty()
        children: list[Child] = [stack.enter_context(child(serve, system, folder, port)) for _ in range(processes)]
        for each in children:
            each.answer()

        def measure(seconds: float) -> Figures:
            for each in children:
                each.order((time.monotonic() + START_SECONDS, seconds))
            answers = [each.answer() for each in children]
            own.empty()
            return figures(answers, seconds)

        yield Ready(measure=measure, settings=own.settings())
