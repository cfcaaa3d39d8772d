"""A proof in one process: workers on threads and one store in memory, whose histories end at random lines.

A worker "dies" where its history can no longer be written: before a call, or between the call and its promise. So the
checker gets the histories that killed processes leave, without processes.
"""

from __future__ import annotations

import random
from pathlib import Path

from tests.helpers.support import Call
from tools.proof.history import History, Line
from tools.proof.observer import observe
from tools.proof.worker import Worker, create_queues

import inorder
from inorder import QueueManager

LIVES = 3


class Died(BaseException):
    """Stands for the death of a process."""


class MortalHistory(History):
    """A history that fails after `last` lines."""

    def __init__(self, path: Path, last: int) -> None:
        super().__init__(path)
        self._left = last

    def write(self, line: Line) -> None:
        self._left -= 1
        if self._left < 0:
            raise Died
        super().write(line)


def live(root: QueueManager, path: Path, seed: float, lines: int) -> None:
    """One life of a worker, which ends at the last line of its history."""
    history = MortalHistory(path, lines)
    qm = root.connect(program=path.stem)
    worker = Worker(qm, history, random.Random(seed), path.stem)
    try:
        while True:
            worker.step()
    except Died:
        qm.internals.abandon()
    finally:
        history.close()


def rehearse(folder: Path, seed: int, rounds: int = 2, workers: int = 3, lines_max: int = 150) -> list[Path]:
    """Runs some rounds, each of them ended by an observer, and returns their folders."""
    chance = random.Random(seed)
    folders = [folder / f"{number:04}" for number in range(rounds)]
    with inorder.connect() as root:
        create_queues(root)
        for round_folder in folders:
            round_folder.mkdir(parents=True)
            plans = [
                [
                    (f"r{round_folder.name}-w{worker}-l{life}", chance.random(), chance.randint(10, lines_max))
                    for life in range(LIVES)
                ]
                for worker in range(workers)
            ]

            def live_all(plan: list[tuple[str, float, int]], round_folder: Path = round_folder) -> None:
                for name, of_life, lines in plan:
                    live(root, round_folder / f"{name}.jsonl", of_life, lines)

            for call in [Call(lambda plan=plan: live_all(plan)) for plan in plans]:  # type: ignore[misc]
                call.result()
            with root.connect(program="observer") as qm:
                history = History(round_folder / "observer.jsonl")
                observe(qm, history, chance, f"observer-{round_folder.name}")
                history.close()
    return folders
