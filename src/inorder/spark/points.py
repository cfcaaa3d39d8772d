"""Named points in the source and the sink, where a test can interfere: hold the process, and kill it.

A test sets `reached`; otherwise nothing happens.
"""

from __future__ import annotations

from collections.abc import Callable

POINTS = {
    "next": "the planner asks for the next offset; the batches before are in Spark's commit log",
    "claimed": "a claim is taken or returned, and Spark does not know it",
    "logged": "Spark's offset log knows the claim; it is not planned",
    "planned": "the claim is planned, nothing is read",
    "reading": "a task has read a page of a slice",
    "staged": "a task of the sink has staged its rows",
    "confirming": "tasks read the next claim, and the messages of the one before are about to be removed",
    "confirmed": "they are removed, and nothing is taken ahead",
    "ahead": "the next claim is taken ahead, and Spark has not asked for it",
    "settled first": "the sink has put a batch in the first of several stores",
    "settled": "the sink has put a batch, and Spark does not know it",
}


reached: Callable[[str], object] | None = None
"""Called with the name of a point, one of `POINTS`, when a process reaches it, if a test has set it."""


def at(point: str) -> None:
    """Says that this process has reached a point."""
    if reached:
        reached(point)
