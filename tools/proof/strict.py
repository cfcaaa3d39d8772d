"""A strict reader that runs all the time while other processes write (lifecycle B-53).

    python -m tools.proof.strict writer STORE HISTORY --queue BY_PUT --seed 7 --seconds 2
    python -m tools.proof.strict getter STORE HISTORY --queue BY_PUT
    python -m tools.proof.strict browser STORE HISTORY --queue BY_PUT

A writer puts in units of work, which it commits, backs out, or prepares and settles later. A reader reads up to the
message that marks the end. Each writes its history.
"""

from __future__ import annotations

import argparse
import random
import time
from pathlib import Path
from typing import Any

import inorder
from inorder import QueueManager

from .history import History
from .labels import Label
from .worker import told_messages, told_puts

END = Label("end", 1)
PRIORITIES = (0, 0, 0, 5)
READER_SECONDS_MAX = 60.0  # with writers at work nothing takes that long


class Writer:
    """Puts on one queue, in units of work and outside them."""

    def __init__(self, qm: QueueManager, history: History, chance: random.Random, name: str, queue: str) -> None:
        self.qm, self.history, self.chance, self.name, self.queue = qm, history, chance, name, queue
        self._serial = self._units = 0
        self._prepared: list[str] = []

    def step(self) -> None:
        """Makes a single put or a unit of work, or settles a prepared one."""
        what = self.chance.random()
        if what < 0.2:
            self._put(0)
        elif what < 0.4 and self._prepared:
            self._settle(self._prepared.pop(self.chance.randrange(len(self._prepared))))
        else:
            self._unit_of_work()

    def finish(self) -> None:
        """Settles all prepared units, so that no reader waits for them forever."""
        while self._prepared:
            self._settle(self._prepared.pop())

    def _put(self, unit: int) -> None:
        self._serial += 1
        label, priority = Label(self.name, self._serial), self.chance.choice(PRIORITIES)
        put_message(self.qm, self.history, self.queue, label, unit=unit, priority=priority)

    def _unit_of_work(self) -> None:
        self._units += 1
        unit, name = self._units, f"{self.name}-{self._units}"
        with self.qm.unit_of_work() as block:
            for _ in range(self.chance.randint(1, 4)):
                self._put(unit)
            end = self.chance.choice(("commit", "commit", "back_out", "prepare"))
            if end == "prepare":
                self.history.do("prepare", lambda: block.prepare(name), unit=unit, name=name)
                self._prepared.append(name)
            else:
                self.history.do(end, getattr(block, end), unit=unit)

    def _settle(self, name: str) -> None:
        outcome: Any = self.chance.choice(("commit", "back_out"))
        self.history.do("settle", lambda: self.qm.settle(name, outcome), name=name, outcome=outcome)


def put_message(
    qm: QueueManager, history: History, queue: str, label: Label, *, unit: int = 0, priority: int = 0
) -> None:
    """Puts one message, in the open unit of work if there is one."""
    history.do(
        "put",
        lambda: [qm.put(queue, label.body(0), priority=priority)],
        told_puts,
        queue=queue,
        labels=[str(label)],
        unit=unit,
        priority=priority,
        persistent=True,
    )


def read(qm: QueueManager, history: History, queue: str, kind: str) -> None:
    """Reads strictly, by gets or by one browse, until the message that ends it."""
    asked: Any = {"read_order": "strict", "wait": READER_SECONDS_MAX}
    with qm.open(queue) as handle:
        call: Any = handle.get if kind == "getter" else handle.browse_next
        what = "get" if kind == "getter" else "browse"
        end = None
        while end != str(END):
            told = history.do(
                what, lambda: [call(**asked)], told_messages, queue=queue, unit=0, strict=kind == "getter"
            )
            if told is None:
                raise TimeoutError(f"a strict {kind} of {queue} was given nothing for {READER_SECONDS_MAX} s")
            end = told["messages"][0][0]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("role", choices=("writer", "getter", "browser"))
    parser.add_argument("store")
    parser.add_argument("history", type=Path)
    parser.add_argument("--queue", required=True)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=1.0, help="how long a writer writes")
    asked = parser.parse_args()
    with inorder.connect(asked.store, program=asked.history.stem) as qm:
        history = History(asked.history)
        if asked.role != "writer":
            read(qm, history, asked.queue, asked.role)
            return
        writer = Writer(qm, history, random.Random(asked.seed), asked.history.stem, asked.queue)
        deadline = time.monotonic() + asked.seconds
        while time.monotonic() < deadline:
            writer.step()
        writer.finish()


if __name__ == "__main__":
    main()
