"""Named points in a channel's run, where a test can interfere: hold the process, and kill it.

A test sets `reached`; otherwise nothing happens.
"""

from __future__ import annotations

from collections.abc import Callable

POINTS = {
    "taken": "the channel is taken, and the receiver has not been asked",
    "bound": "the receiver knows of the run, and nothing is claimed",
    "claimed": "a batch is claimed, and none of it has been sent",
    "sending": "it has been read, and is about to be sent",
    "received": "the receiver has put it, and it is not confirmed",
    "confirmed": "all batches are confirmed, and no message is left",
}
FAST_POINTS = {
    "removed": "non-persistent messages are off the transmission queue, and none of them has been sent",
    "passed": "the receiver has put them, outside of the batches",
}


reached: Callable[[str], object] | None = None
"""Called with the name of a point when a run reaches it, if a test has set it: one of `POINTS`, or on a fast channel of
`FAST_POINTS`.
"""


def at(point: str) -> None:
    """Says that a run has reached a point."""
    if reached:
        reached(point)
