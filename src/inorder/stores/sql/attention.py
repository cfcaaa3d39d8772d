"""Attention bits: they let an operation skip checks at its beginning.

Each queue has a word of bits next to its counters. A bit says that rows of a kind *may* exist: messages that expire or
that are due later, leases, connections that block a waiting call, marks, readers inside groups, groups, messages that
ask for reports. An operation that writes such a row sets the bit in the same transaction, so that no process can see
the row without the bit, even if a process dies. While no bit is set, an operation reads only the counters. The bits of
groups, and of programs that listen for changes, are checked only now and then, because no operation needs an exact
answer at its beginning. A bit stays after the last such row has gone: after `LOOKED_FOR` fruitless checks by one
process, an operation that writes clears it. Two bits are only PostgreSQL's: `FRONTS` says how to search there and is
never checked (postgresql/fronts.py); while `HEARD` is not set, no program has to be notified (postgresql/watch.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any, Final

EXPIRES, DUE, LEASES, EDGES, MARKS, ENTERED, GROUPS, REPORTS, FRONTS, HEARD = (1 << bit for bit in range(10))
IN_VAIN_MAX: Final = 16
SELDOM: Final = GROUPS | HEARD
QUIET: Final = frozenset(map(sum, product((0, GROUPS), (0, FRONTS), (0, HEARD))))
LOOKED_FOR: Final = 16  # one operation of this many checks the bits of `SELDOM`
# In the order of the columns of `queue state and due work`.
_BITS: Final = (EXPIRES, DUE, LEASES, EDGES, MARKS, ENTERED, REPORTS, GROUPS, HEARD)


def found(looked_at: Sequence[Any]) -> int:
    """Returns the bits of the rows found; `looked_at`: the columns of `queue state and due work` after the counters."""
    times, there = looked_at[:3], looked_at[3:]
    return sum(
        bit for bit, is_there in zip(_BITS, (*(one is not None for one in times), *there), strict=True) if is_there
    )
