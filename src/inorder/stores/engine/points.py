"""Named points in the stores' operations where a test can act, for example crash the process.

A test sets `reached`. Without that, points have no effect.
"""

from __future__ import annotations

from collections.abc import Callable

POINTS = {
    "begun": "a writing transaction has begun",
    "written": "all is written, before COMMIT",
    "committed": "after COMMIT, before the turn is released",
    "before-sync": "before the log is synced for all waiting calls",
    "synced": "the log is on disk, and no caller has its answer",
    "settled": "a unit is settled, its bodies are not yet removed",
    "staged": "rows are staged and on disk, and the caller does not have its answer",
    "delivered": "a batch of a channel is put, and the record of the channel is not yet changed",
    "settled-staging": "the staged rows are put, still in the staging, and not in the ledger",
    "reaping": "in the middle of backing out a dead owner",
    "lease-over": "in the middle of backing out an expired lease",
    "checkpoint": "before the log is copied into the database",
}

# The points of an upgrade, in order; the number of the step is appended to those of a step.
UPGRADE_POINTS = {
    "upgrade-alone": "no other process has the store open or can open it",
    "upgrade-backed-up": "the copy is on disk",
    "upgrade-begun": "the transaction has begun",
    "upgrade-step": "a step has been done",
    "upgrade-checked": "the tables are those of a new store, before COMMIT",
    "upgrade-committed": "after COMMIT",
}


reached: Callable[[str], object] | None = None
"""Set by a test. Called with the name of each point, of `POINTS` or `UPGRADE_POINTS`, that an operation reaches."""


def reach(point: str) -> None:
    """Reports a point in a rare operation. Frequent ones test `reached` themselves, which saves a call."""
    if reached:
        reached(point)
