"""Random secrets and their hashes; loaded by the first call that needs one, for it loads a library of ciphers."""

from __future__ import annotations

import hashlib
import hmac
import secrets

TOKEN_BYTES = 32


def new_secret() -> str:
    """A text of 256 random bits."""
    return secrets.token_urlsafe(TOKEN_BYTES)


def new_name(count: int) -> str:
    """A name of so many random bytes, in hex."""
    return secrets.token_hex(count)


def hashed(secret: str) -> str:
    """SHA-256 of any text, in hex: of a random one it tells nothing."""
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()


def is_hash_of(kept: str, secret: str) -> bool:
    """Whether that is the hash of this one; how long the answer takes does not say how near it is."""
    return hmac.compare_digest(hashed(secret), kept)
