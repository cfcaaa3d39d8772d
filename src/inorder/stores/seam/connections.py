"""Named connections to other stores, as they are stored: objects of the kind `connection`."""

from __future__ import annotations

import json
from typing import Final, NamedTuple

from .damage import decodes

CONNECTION: Final = "connection"  # the kind of objects


class Connection(NamedTuple):
    """How another store is reached, at the other end of channels or as the owner of synchronous remote queues.

    Args:
        name: 1 to 48 characters out of A-Z a-z 0-9 . / _ %
        location: the path or URL of the store. It has no password: others can read it.
        user: that the server of the store must know this side as; empty: any.
    """

    name: str
    location: str
    user: str = ""


@decodes("a connection")
def read_connection(text: str) -> Connection:
    """Reads a stored connection. Raises: StoreDamaged."""
    return Connection(*(str(json.loads(text)[name]) for name in Connection._fields))
