"""Named points inside the stores' verbs, at which a test may have something happen: a crash, mostly.

A test sets `reached`; otherwise nothing happens.
"""

from __future__ import annotations

from collections.abc import Callable

POINTS = {
    "begun": "a writing transaction has begun",
    "written": "all is written, before COMMIT",
    "committed": "after COMMIT, before the turn is released",
    "before-sync": "before the log is synced for those who wait",
    "synced": "the log is on disk, nobody has been told",
    "settled": "a unit is settled, its bodies are not yet removed",
    "staged": "rows are staged and on disk, the caller has not been told",
    "delivered": "a batch of a channel is put, and the record of the channel is as before",
    "settled-staging": "what was staged is put, it is still staged and not in the ledger",
    "reaping": "in the middle of backing out a dead owner",
    "checkpoint": "before the log is copied into the database",
}


reached: Callable[[str], object] | None = None
"""Called, if a test has set it, when a verb has come to a point, one of `POINTS`, with its name."""
