"""Named points of the source and the sink, at which a test may have something happen: a process is held, and killed.

A test sets `reached`; otherwise nothing happens.
"""

from __future__ import annotations

from collections.abc import Callable

POINTS = {
    "next": "the planner asks for the next offset; of the batches before, Spark's commit log knows",
    "claimed": "a claim is taken or given, and Spark does not know it",
    "logged": "Spark's offset log knows the claim; it is not planned",
    "planned": "the claim is planned, nothing is read",
    "reading": "a task has read a page of a slice",
    "staged": "a task of the sink has staged its rows",
    "confirming": "tasks read the next claim, and the messages of the one before are about to be removed",
    "confirmed": "they are removed, and nothing is taken ahead",
    "ahead": "the next claim is taken ahead, and Spark has not asked for it",
    "settled": "the sink has put a batch, and Spark does not know it",
}


reached: Callable[[str], object] | None = None
"""Called, if a test has set it, when a process has come to a point, one of `POINTS`, with its name."""
