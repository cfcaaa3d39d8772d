"""Named points of a channel's run, at which a test may have something happen: a process is held, and killed.

A test sets `reached`; otherwise nothing happens.
"""

from __future__ import annotations

from collections.abc import Callable

POINTS = {
    "taken": "the channel is taken, and the receiver has not been asked",
    "bound": "the receiver knows of the run, nothing is claimed",
    "claimed": "a batch is claimed, and nothing of it has gone",
    "sending": "it has been read, and is about to go",
    "received": "the receiver has put it, and it is not confirmed",
    "confirmed": "all that was sent is confirmed, and nothing more is there",
}


reached: Callable[[str], object] | None = None
"""Called, if a test has set it, when a run has come to a point, one of `POINTS`, with its name."""
