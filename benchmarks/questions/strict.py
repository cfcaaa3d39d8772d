"""What does a strict reader cost while no unit of work is pending?"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Literal

import inorder
from benchmarks.harness import Bar, Contestant, Figures, Question, Ready, Work, rate
from benchmarks.systems import BLOCK, BODY
from benchmarks.systems.ours import QUEUE, open_queue, settings_of

Order = Literal["strict", "relaxed"]


def works(qm: inorder.QueueManager, order: Order) -> dict[str, Work]:
    """Returns the work of each figure."""

    def stock(count: int) -> None:
        qm.put_many(QUEUE, [BODY] * count)

    return {
        "get": Work(operation=lambda: qm.get(QUEUE, read_order=order), before=stock),
        "get_many(100)": Work(
            operation=lambda: qm.get_many(QUEUE, BLOCK, read_order=order),
            size=BLOCK,
            before=lambda count: stock(count * BLOCK),
        ),
    }


@contextmanager
def opened(folder: Path, *, order: Order) -> Iterator[Ready]:
    """Opens a queue with a reader of this order."""
    with open_queue(folder) as qm:
        own = works(qm, order)

        def measure(seconds: float) -> Figures:
            return {figure: rate(work, seconds / len(own)) for figure, work in own.items()}

        yield Ready(measure=measure, settings=settings_of(qm))


def contestants() -> list[Contestant]:
    """Returns a strict and a relaxed reader."""
    orders: tuple[Order, ...] = ("strict", "relaxed")
    return [Contestant(name=order, role="ours", open=partial(opened, order=order)) for order in orders]


QUESTION = Question(
    name="strict",
    title="strict against relaxed reader, nothing pending",
    unit="messages/s",
    contestants=lambda site: contestants(),
    bars=[
        Bar(figure=figure, of="strict", against="relaxed", first=0.7, goal=0.9) for figure in ("get", "get_many(100)")
    ],
)
