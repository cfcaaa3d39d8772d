"""Processes that open a store and close it again, over and over, each at its own pace: first, last or in between."""

from __future__ import annotations

import time
from contextlib import ExitStack
from multiprocessing.connection import Connection
from pathlib import Path

from benchmarks.children import Child, child, orders

import inorder

from .report import Report
from .usage import figures_of, files_of, grown, peak, usage

QUEUE = "Q"
SAMPLES = 20
ANSWER_SECONDS = 4 * 3600.0


def serve(pipe: Connection, store: Path) -> None:
    """A process that opens and closes as often as it is told; it answers its use of resources on the way."""
    for count in orders(pipe):
        samples = []
        for number in range(count):
            open_and_close(store)
            if number % max(1, count // SAMPLES) == 0:
                samples.append(usage())
        pipe.send(samples)


def open_and_close(store: Path) -> None:
    with inorder.connect(store, program="soak") as qm:
        qm.put(QUEUE, b"there", persistent=False)
        qm.get(QUEUE)


def run(folder: Path, *, count: int, processes: int = 2) -> Report:
    """Makes this many opens and closes, by all processes together."""
    report, store = Report(name="opens"), folder / "opens.db"
    with inorder.connect(store) as qm:
        qm.create_queue(QUEUE)
    began = time.monotonic()
    with ExitStack() as stack:
        children: list[Child] = [stack.enter_context(child(serve, store)) for _ in range(processes)]
        for each in children:
            each.order(count // processes)
        samples = [each.answer(ANSWER_SECONDS) for each in children]
    seconds = time.monotonic() - began
    report.figures = {
        "opens and closes": count // processes * processes,
        "per second": count / seconds,
        **figures_of("a process", [peak(of_all) for of_all in zip(*samples, strict=True)]),
    }
    for number, each in enumerate(samples):
        report.findings += grown(f"process {number}", each)
    left = files_of(store)
    if left.log_mb or Path(f"{store}-shm").exists():
        report.findings.append(f"all have closed the store, and its log of {left.log_mb:.1f} MB is still there")
    report.figures["store MB at the end"] = left.store_mb
    return report
