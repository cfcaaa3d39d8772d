"""Leases: units of work that any process with their token may use, until a recorded deadline.

The deadline is a row in the store. A call that finds it passed backs the lease out, in one transaction, and only this
frees its messages (B-32, B-48). A call under the lease checks the same row in its own transaction: at the deadline or
later it is refused, whether the lease has been backed out yet or not. So a message is never free while its old holder
can still act on it.

    time                     a call under it      a call that it blocks
    before the deadline      succeeds             waits
    at the deadline, later   is refused           backs it out, and looks again

All of them use one clock (`Backend.common_time`). If that clock is set forward, leases end early: they are backed out
and their holders are refused, which is safe. If it is set back, a lease would last longer. So a lease never has more
time left than it was given: a call that finds more moves the deadline forward.
"""

from __future__ import annotations

SECONDS_MAX = 86_400.0
LOCK_SECONDS_MAX = 31_536_000.0  # for `browse_and_lock`: a year
SLACK_SECONDS = 1.0  # the clocks of two processors may differ a little


def is_over(ends_at: float, now: float) -> bool:
    """Whether the deadline has come, inclusively."""
    return now >= ends_at


def deadline(ends_at: float, seconds: float, now: float) -> float:
    """The deadline of a lease of this duration: earlier than recorded if the clock was set back since."""
    return now + seconds if ends_at - now > seconds + SLACK_SECONDS else ends_at
