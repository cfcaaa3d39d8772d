"""How fast does a channel carry messages between two files, beside a local copy of the same batches?"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import inorder
from benchmarks.harness import RATE, Bar, Contestant, Figures, Question, Ready, Work, rate
from benchmarks.systems import BLOCK, BODY
from benchmarks.systems.ours import QUEUE, open_queue, open_store, settings_of
from inorder import channels

BATCHES = 20  # in one run: a channel connects at its beginning
CHANNEL, COPY = "a channel", "get_many and put_many in a unit"


def carried(qm: inorder.QueueManager) -> Work:
    """Runs of a channel, some batches each."""

    def run() -> None:
        left = BATCHES

        def ends(_: float) -> bool:
            nonlocal left
            left -= 1
            return not left

        channels.run_channel(qm, "TO.THERE", wait=ends)

    def stock(count: int) -> None:
        qm.put_many(QUEUE, [BODY] * (count * BATCHES * BLOCK), manager="THERE")

    return Work(operation=run, size=BATCHES * BLOCK, before=stock)


def copied(qm: inorder.QueueManager) -> Work:
    """The same from queue to queue of one file."""

    def run() -> None:
        for _ in range(BATCHES):
            with qm.unit_of_work():
                qm.put_many("COPY", qm.get_many(QUEUE, BLOCK))

    def stock(count: int) -> None:
        qm.put_many(QUEUE, [BODY] * (count * BATCHES * BLOCK))

    return Work(operation=run, size=BATCHES * BLOCK, before=stock)


@contextmanager
def between_two_files(folder: Path) -> Iterator[Ready]:
    """Two stores, and a channel from the one to the other."""
    there = folder / "there.db"
    with open_store(folder) as qm, inorder.connect(there, name="THERE") as other:
        other.create_queue(QUEUE)
        qm.create_queue("THERE", usage="transmission")
        channels.define_channel(qm, "TO.THERE", transmission_queue="THERE", connection=str(there), batch_size=BLOCK)
        work = carried(qm)
        yield Ready(measure=partial(_measure, work), settings=settings_of(qm))


@contextmanager
def in_one_file(folder: Path) -> Iterator[Ready]:
    """Two queues."""
    with open_queue(folder) as qm, open_queue(folder, "COPY"):
        yield Ready(measure=partial(_measure, copied(qm)), settings=settings_of(qm))


def _measure(work: Work, seconds: float) -> Figures:
    return {RATE: rate(work, seconds)}


QUESTION = Question(
    name="channel",
    title="a channel between two files, beside a local copy, batches of 100",
    unit="messages/s",
    contestants=lambda site: [
        Contestant(name=CHANNEL, role="ours", open=between_two_files),
        Contestant(name=COPY, role="ours", open=in_one_file),
    ],
    bars=[Bar(figure=RATE, of=CHANNEL, against=COPY, first=0.5, goal=0.7)],
)
