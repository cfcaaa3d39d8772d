"""A client that connects again names its previous connection, which is ended before the new one begins (decision 742).

The client has noticed a loss that the server may not have noticed yet. A repeated call must not find the locks, the
messages and the exclusive opens of the old connection, or overtake a call of it that still runs.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Callable
from typing import Final

NUMBER_BYTES: Final = 8
PROOF_BYTES: Final = 16


class Resumable:
    """The connections of a worker by their numbers in the store.

    Args:
        key: the server's key, which all its workers have.

    Attributes:
        ends: ends a connection; blocks.
    """

    def __init__(self, key: bytes) -> None:
        self._key = key
        self.ends: dict[int, Callable[[], None]] = {}

    def secret(self, number: int, user: str) -> bytes:
        """Returns the secret with which a client names the connection of that number."""
        name = number.to_bytes(NUMBER_BYTES, "big")
        return name + hmac.digest(self._key, b"inorder store" + name + user.encode(), hashlib.sha256)[:PROOF_BYTES]

    def number_of(self, secret: bytes) -> int:
        """Returns the number of the connection that a secret names; 0: it names none."""
        return int.from_bytes(secret[:NUMBER_BYTES], "big") if len(secret) == NUMBER_BYTES + PROOF_BYTES else 0

    def end_of(self, secret: bytes, user: str) -> Callable[[], None] | None:
        """Returns the call that ends the connection named by a secret, if it belongs to this worker and this user."""
        number = self.number_of(secret)
        is_genuine = hmac.compare_digest(secret, self.secret(number, user))
        return self.ends.get(number) if is_genuine else None
