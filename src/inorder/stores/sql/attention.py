"""What a verb looks for at its beginning, and when it need not.

Each queue has a word of bits beside its counters. A bit says that rows of a kind *may* be there: messages that expire,
that are due later, leases, those in the way of someone who waits, marks, readers inside groups, groups, messages that
ask for reports. A verb that writes such a row sets the bit in the same transaction, so that no process can see the row
without it, even if a process dies. While no bit is set a verb asks for the counters alone. The bits of groups, and of
programs that listen for changes, are checked only now and then, because no verb has to know at its beginning which
there are. A bit stays when the last such row has gone: after `LOOKED_FOR` looks of one process in vain a verb that
writes clears it. Two are PostgreSQL's alone: `FRONTS` says how to search there, and is looked for by nobody
(postgresql/fronts.py); while `HEARD` is not set nobody has to be notified (postgresql/watch.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any, Final

EXPIRES, DUE, LEASES, EDGES, MARKS, ENTERED, GROUPS, REPORTS, FRONTS, HEARD = (1 << bit for bit in range(10))
IN_VAIN_MAX: Final = 16
SELDOM: Final = GROUPS | HEARD
QUIET: Final = frozenset(map(sum, product((0, GROUPS), (0, FRONTS), (0, HEARD))))
LOOKED_FOR: Final = 16  # one verb of so many looks whether there is still something of `SELDOM`
# As the statement `queue state and due work` has them.
_BITS: Final = (EXPIRES, DUE, LEASES, EDGES, MARKS, ENTERED, REPORTS, GROUPS, HEARD)


def found(looked_at: Sequence[Any]) -> int:
    """The bits of what was found; `looked_at`: the columns of `queue state and due work` after the counters."""
    times, there = looked_at[:3], looked_at[3:]
    return sum(
        bit for bit, is_there in zip(_BITS, (*(one is not None for one in times), *there), strict=True) if is_there
    )
