"""Housekeeping: what time makes necessary, in bounded steps.

Every call discards what has expired on the queue it touches. What lies on queues that nobody touches is found
here: `tidy` is called when a connection opens and closes, and by programs that want it oftener.
"""

from __future__ import annotations

from ..stores.seam.protocol import Store

STEP_MESSAGES = 1000


def tidy(store: Store, limit: int = STEP_MESSAGES) -> int:
    """Discards up to `limit` expired messages on all queues; their expiry hooks are called (R6.2, A-36).

    Stagings whose time is over go too, and up to `limit` keys of puts.

    Returns: how many it discarded; fewer than `limit` means that none is left.
    """
    return store.discard_expired(limit)
