"""Housekeeping: discards expired messages and the like, in bounded steps.

Every call discards expired messages on the queue that it uses. For unused queues there is `tidy`, which runs when a
connection opens, and when one to a store in the same process closes. Programs can call it more often.
"""

from __future__ import annotations

from ..stores.seam.protocol import Store

STEP_MESSAGES = 1000


def tidy(store: Store, limit: int = STEP_MESSAGES) -> int:
    """Discards up to `limit` expired messages on all queues; their expiry hooks are called (R6.2, A-36).

    It also drops stagings whose time is over, and up to `limit` expired keys of puts.

    Returns: how many it discarded; fewer than `limit` means that none is left.
    """
    return store.discard_expired(limit)
