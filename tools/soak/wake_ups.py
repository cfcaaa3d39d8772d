"""Requests and replies between processes that are killed and stopped all the time: every wait is woken.

A client puts a request and waits for the reply with its correlation id; a server waits for requests, in a unit of work,
so that a request returns if its server is killed. No process checks by itself while it waits: after a lost wake-up a
wait never ends. A notice that a killed process could not give is given by the next process that has the turn, such as
its replacement.

The queues of all pairs share their bits of the bell, so that each put wakes processes that it does not concern.
"""

from __future__ import annotations

import multiprocessing
import os
import random
import signal
import time
from array import array
from collections import Counter
from ctypes import c_uint64
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

from benchmarks.harness import percentile

import inorder
from inorder.stores.sqlite import watch
from inorder.stores.sqlite.bell import QUEUE_BITS

from .report import Report

LOST_SECONDS = 60.0  # a round that takes longer is lost; a busy machine that starts processes may delay one
KILL_SHARE = 0.3  # of all interruptions; the others are stops
PAUSE_SECONDS = (0.02, 0.3)  # between two interruptions
STOP_SECONDS = (0.0, 0.03)

CONTEXT = multiprocessing.get_context("forkserver")


def _never_look() -> None:
    watch.DEAD_CHECK_SECONDS = 1e6


def request(path: Path, pair: int, answered: Any) -> None:
    """A client that runs until it is killed, and counts its answers."""
    _never_look()
    with inorder.connect(path, program="soak") as qm:
        while True:
            number = answered[pair]
            own = os.urandom(24)  # a killed client may have left a reply
            qm.put(f"REQUEST.{pair}", b"", correlation_id=own, persistent=number % 2 == 0)
            qm.get(f"REPLY.{pair}", match=inorder.Match(correlation_id=own), wait=inorder.FOREVER)
            answered[pair] = number + 1


def reply(path: Path, pair: int) -> None:
    _never_look()
    with inorder.connect(path, program="soak") as qm:
        while True:
            asked = qm.get(f"REQUEST.{pair}", wait=inorder.FOREVER, syncpoint=True)
            qm.put(
                f"REPLY.{pair}", b"", correlation_id=asked.correlation_id, persistent=asked.persistent, syncpoint=True
            )
            qm.commit()


class Pairs:
    """Clients and servers, each of which can be killed and is then replaced."""

    def __init__(self, path: Path, pairs: int) -> None:
        self.answered = CONTEXT.RawArray(c_uint64, pairs)
        self._starts = [
            start for pair in range(pairs) for start in ((request, (path, pair, self.answered)), (reply, (path, pair)))
        ]
        self._processes = [self._started(number) for number in range(len(self._starts))]

    def _started(self, number: int) -> BaseProcess:
        act, given = self._starts[number]
        process: BaseProcess = CONTEXT.Process(target=act, args=given, daemon=True)
        process.start()
        return process

    def interrupt(self, chance: random.Random) -> str:
        """Kills or stops one of them; returns a description."""
        number = chance.randrange(len(self._processes))
        process, who = self._processes[number], ("clients", "servers")[number % 2]
        assert process.pid is not None
        if chance.random() < KILL_SHARE:
            _end(process)
            self._processes[number] = self._started(number)
            return f"{who} killed"
        os.kill(process.pid, signal.SIGSTOP)
        time.sleep(chance.uniform(*STOP_SECONDS))
        os.kill(process.pid, signal.SIGCONT)
        return f"{who} stopped"

    @property
    def dead(self) -> int:
        """The number of processes that have ended by themselves, which must not happen."""
        return sum(process.exitcode is not None for process in self._processes)

    def end(self) -> None:
        for process in self._processes:
            _end(process)


def _end(process: BaseProcess) -> None:
    process.kill()
    process.join()
    process.close()


def run(folder: Path, *, rounds: int, pairs: int = 2, seed: int | None = None) -> Report:
    """Runs this many rounds of all pairs together."""
    seed = random.randrange(1 << 32) if seed is None else seed
    report, path, chance, done = Report(name="wake-ups"), folder / "wake-ups.db", random.Random(seed), Counter[str]()
    slowest = array("d", [0.0] * pairs)
    with inorder.connect(path) as qm:
        for pair in range(pairs):
            for name in (f"REQUEST.{pair}", f"REPLY.{pair}", *(f"OTHER.{pair}.{n}" for n in range(QUEUE_BITS - 2))):
                qm.create_queue(name)
        began, each = time.monotonic(), Pairs(path, pairs)
        try:
            seen = [(0, began)] * pairs
            while sum(each.answered) < rounds and not report.findings:
                time.sleep(chance.uniform(*PAUSE_SECONDS))
                done[each.interrupt(chance)] += 1
                if each.dead:
                    report.findings.append("a process ended by itself; its error is above")
                for pair, (count, since) in enumerate(seen):
                    now = time.monotonic()
                    slowest[pair] = max(slowest[pair], now - since)
                    if each.answered[pair] != count:
                        seen[pair] = each.answered[pair], now
                    elif now - since > LOST_SECONDS:
                        report.findings.append(f"pair {pair}: round {count:,} has not ended after {LOST_SECONDS:g} s")
        finally:
            each.end()
    answered = sum(each.answered)
    report.figures = {
        "rounds answered": answered,
        "per second": answered / (time.monotonic() - began),
        "longest without an answer, seconds": percentile(sorted(slowest), 1.0),
        **{name: done[name] for name in sorted(done)},
        "seed": seed,
    }
    return report
