"""Random secrets and their hashes. Loaded by the first call that needs one, because it loads a library of ciphers."""

from __future__ import annotations

import hashlib
import hmac
import secrets

TOKEN_BYTES = 32


def new_secret() -> str:
    """Makes a text of 256 random bits."""
    return secrets.token_urlsafe(TOKEN_BYTES)


def hashed(secret: str) -> str:
    """SHA-256 of a text, in hex. The hash of a random text does not reveal it."""
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()


def is_hash_of(kept: str, secret: str) -> bool:
    """Whether this is the hash of the secret; the duration does not reveal how close it is."""
    return hmac.compare_digest(hashed(secret), kept)
