"""Many simultaneous puts, by processes and by threads of one process: the slowest puts, and the share of each."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from pathlib import Path

from benchmarks.at_once import figures, latencies, opened
from benchmarks.harness import Figures
from benchmarks.systems.ours import Ours

from .report import Report

P99_MS_MAX = 50.0


def run(folder: Path, *, seconds: float, processes: int = 8, threads: int = 32) -> Report:
    """Runs the processes for this many seconds, then the threads."""
    report = Report(name="fair")
    for kind, found in (
        (f"{processes} processes", among_processes(folder / "processes", seconds, processes)),
        (f"{threads} threads", among_threads(folder / "threads", seconds, threads)),
    ):
        report.figures.update({f"{kind}: {name}": value for name, value in found.items()})
        if found["p99 ms"] > P99_MS_MAX:
            report.findings.append(f"{kind}: p99 of a put is {found['p99 ms']:.1f} ms, above {P99_MS_MAX:g} ms")
    return report


def among_processes(folder: Path, seconds: float, processes: int) -> Figures:
    folder.mkdir()
    with opened(folder, system=Ours, port=0, processes=processes) as ready:
        return ready.measure(seconds)


def among_threads(folder: Path, seconds: float, threads: int) -> Figures:
    """Measures puts by threads, each with its own connection."""
    folder.mkdir()
    with ExitStack() as stack:
        systems = [stack.enter_context(closing(Ours(folder))) for _ in range(threads)]
        start = threading.Barrier(threads)

        def put(own: Ours) -> list[float]:
            start.wait()
            return list(latencies(own, time.monotonic() + seconds))

        with ThreadPoolExecutor(threads) as pool:
            return figures(list(pool.map(put, systems)), seconds)
