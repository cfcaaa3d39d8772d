"""Pairs of processes that wait for each other in turn: every wait is answered by another process's put.

A message says when it was about to be put, on the clock that all processes of the machine share, so that whoever waited
knows how long it took: the put, the wake-up and the get.
"""

from __future__ import annotations

import time
from array import array
from contextlib import ExitStack
from itertools import chain
from multiprocessing.connection import Connection
from pathlib import Path

from benchmarks.children import Child, child, orders
from benchmarks.harness import percentile

import inorder

from .report import Report

WAIT_SECONDS = 30.0  # an answer that takes longer is lost
ANSWER_SECONDS = 4 * 3600.0


def serve(pipe: Connection, store: Path, begins: bool, own: str, other: str) -> None:
    """One of a pair: told how often, it waits on its own queue and puts on the other; latencies, and what is wrong."""
    with inorder.connect(store, program="soak") as qm:
        for count in orders(pipe):
            pipe.send(play(qm, count, begins=begins, own=own, other=other))


def play(
    qm: inorder.QueueManager, count: int, *, begins: bool, own: str, other: str
) -> tuple[array[float], str | None]:
    taken = array("d")
    for number in range(count):
        if begins:
            _put(qm, other, number)
        try:
            found, _, began = qm.get(own, wait=WAIT_SECONDS).body.partition(b" ")
        except inorder.NoMessageAvailable:
            return taken, f"{own}: wait {number:,} was not answered within {WAIT_SECONDS:g} s"
        taken.append((time.monotonic_ns() - int(began)) / 1e9)
        if int(found) != number:
            return taken, f"{own}: wait {number:,} was answered with message {int(found):,}"
        if not begins:
            _put(qm, other, number)
    return taken, None


def _put(qm: inorder.QueueManager, queue: str, number: int) -> None:
    qm.put(queue, b"%d %d" % (number, time.monotonic_ns()))


def run(folder: Path, *, waits: int, pairs: int = 2) -> Report:
    """So many waits of all processes together."""
    report, store, each_count = Report(name="ping-pong"), folder / "ping-pong.db", waits // (2 * pairs)
    with inorder.connect(store) as qm:
        for number in range(pairs):
            qm.create_queue(f"PING.{number}")
            qm.create_queue(f"PONG.{number}")
    began = time.monotonic()
    with ExitStack() as stack:
        children: list[Child] = []
        for number in range(pairs):
            ping, pong = f"PING.{number}", f"PONG.{number}"
            children.append(stack.enter_context(child(serve, store, True, pong, ping)))
            children.append(stack.enter_context(child(serve, store, False, ping, pong)))
        for each in children:
            each.order(each_count)
        answers = [each.answer(ANSWER_SECONDS) for each in children]
    report.findings += [wrong for _, wrong in answers if wrong is not None]
    ordered = sorted(chain.from_iterable(taken for taken, _ in answers))
    report.figures = {
        "waits answered": len(ordered),
        "waits lost": each_count * 2 * pairs - len(ordered),
        "per second": len(ordered) / (time.monotonic() - began),
    }
    if ordered:
        for name, share in (("p50 ms", 0.5), ("p99 ms", 0.99), ("longest ms", 1.0)):
            report.figures[name] = percentile(ordered, share) * 1e3
    return report
