"""Leases: units of work that any process may act under which shows their token, until a deadline that is recorded.

A lease never ends because somebody thinks that it has. Its deadline is a row; a call that finds it passed backs the
lease out, in one transaction, and only this makes its messages free (B-32, B-48). An act under the lease looks at the
same row in its own transaction: at the deadline or later it is refused, be the lease backed out yet or not. So there is
no moment at which a message is free and its old holder can still act.

    time                     an act under it      a call that finds it in the way
    before the deadline      happens              waits
    at the deadline, later   is refused           backs it out, and looks again

All of them go by one clock (`Backend.common_time`). If that is set forward, leases end early: they are backed out and
their holders are refused, which is safe. If it is set back, a lease would last longer by as much. So it never has more
left than it was given: a call that finds more brings the deadline forward.
"""

from __future__ import annotations

SECONDS_MAX = 86_400.0
LOCK_SECONDS_MAX = 31_536_000.0  # of `browse_and_lock`: a year
SLACK_SECONDS = 1.0  # clocks of two processors may differ a little


def is_over(ends_at: float, now: float) -> bool:
    """Whether the deadline has come, inclusively."""
    return now >= ends_at


def deadline(ends_at: float, seconds: float, now: float) -> float:
    """When a lease ends that was given so many seconds: earlier than recorded if the clock was set back since."""
    return now + seconds if ends_at - now > seconds + SLACK_SECONDS else ends_at
