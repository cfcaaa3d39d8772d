"""Observes a store when all other processes are dead, ends their named units, and records the contents.

    python -m tools.proof.observer STORE HISTORY --seed 7

It writes a history like every other process: puts on each queue (first, so that it gets the next numbers and ids),
the units that it found, how it settled them, then everything that can be seen. The first observer of a store makes the
queues.
"""

from __future__ import annotations

import argparse
import random
from functools import partial
from pathlib import Path
from typing import Any

import inorder
from inorder import Message, QueueManager
from inorder.client.inspection import Unit

from .history import History, Told
from .labels import Label
from .worker import QUEUES, create_queues, told_message, told_puts


def observe(qm: QueueManager, history: History, chance: random.Random, name: str, draws: int = 1) -> None:
    """Writes the end of a round. Afterwards no unit is left, and every message can be seen.

    Args:
        draws: how many messages it puts on each queue.
    """
    create_queues(qm)
    for group, queue in enumerate(QUEUES):
        _draw(qm, history, queue, [Label(name, group * draws + serial) for serial in range(1, draws + 1)])
    for queue in QUEUES:
        list(qm.browse(queue))  # a reader notices the dead processes, and backs out their work
    found = qm.inspect.units()
    _tell_units(qm, history, "found")
    for unit in found:
        _end_unit(qm, history, chance, unit)
    _tell_units(qm, history, "left")
    for queue in QUEUES:
        history.do("seen", partial(_see, qm, queue), dict, queue=queue)


def _tell_units(qm: QueueManager, history: History, when: str) -> None:
    def told(units: list[Unit]) -> Told:
        return {"units": [[unit.kind, unit.name, unit.queue, unit.puts, unit.gets, unit.locks] for unit in units]}

    history.do("units", qm.inspect.units, told, when=when)


def _end_unit(qm: QueueManager, history: History, chance: random.Random, unit: Unit) -> None:
    name, queue = unit.name, unit.queue
    if unit.kind == "prepared":
        outcome: Any = chance.choice(("commit", "back_out"))
        history.do("settle", lambda: qm.settle(name, outcome), name=name, outcome=outcome)
    elif unit.kind == "confirm":
        history.do("undo", lambda: qm.undo(queue, int(name)), queue=queue, confirm_id=int(name))
    elif unit.kind == "lock":
        history.do("release", lambda: qm.admin.release_lock(queue, int(name)), queue=queue)


def _draw(qm: QueueManager, history: History, queue: str, labels: list[Label]) -> None:
    history.do(
        "put",
        lambda: qm.put_many(queue, [label.body(0) for label in labels]),
        told_puts,
        queue=queue,
        labels=[str(label) for label in labels],
        unit=0,
        priority=0,
        persistent=True,
    )


def _see(qm: QueueManager, queue: str) -> Told:
    messages: list[Message] = list(qm.browse(queue))
    return {"messages": [told_message(message) for message in messages], "depth": qm.depth(queue)}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("store")
    parser.add_argument("history", type=Path)
    parser.add_argument("--seed", type=int, required=True)
    asked = parser.parse_args()
    with inorder.connect(asked.store, program="observer") as qm:
        observe(qm, History(asked.history), random.Random(asked.seed), f"observer-{asked.history.parent.name}")


if __name__ == "__main__":
    main()
