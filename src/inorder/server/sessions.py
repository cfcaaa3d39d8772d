"""Sessions: cookies that any worker can verify, and none needs to remember.

A cookie has the user's name, the value to which the session is bound, and the time of its end. It is signed with
HMAC-SHA256, by a key that the server makes at its start and its workers inherit. So all workers are equal, a restart
ends all sessions, and a cookie of another server is not valid. There is no list of sessions: a log-out deletes the
cookie in the browser, as IBM's does. A copy of the cookie stays valid until its end, unless the user is deleted or gets
another password.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from collections.abc import Callable

PURPOSE = b"inorder session 1\n"  # so that other values signed with this key are not valid as sessions


class Sessions:
    """Makes and reads cookies.

    Args:
        key: at least 32 bytes.
        seconds: that a session lasts.
        now: seconds since 1970.
    """

    def __init__(self, key: bytes, seconds: float, now: Callable[[], float]) -> None:
        assert len(key) >= 32, "a short key can be guessed"
        self._key, self._seconds, self._now = key, seconds, now

    def begin(self, name: str, bound_to: str) -> str:
        """The value of a new cookie."""
        text = json.dumps([name, bound_to, self._now() + self._seconds], separators=(",", ":")).encode()
        return signed(self._key, PURPOSE, text)

    def read(self, cookie: str) -> tuple[str, str] | None:
        """The name and the bound value of a cookie; None if it was not signed with this key, or has expired."""
        found = self._signed(cookie)
        if found is None:
            return None
        name, bound_to, end = found
        now = self._now()  # a session with too much time left began while the clock was ahead
        return (name, bound_to) if now < end <= now + self._seconds else None

    def ends_at(self, cookie: str) -> float:
        """The end of a cookie's session, in seconds since 1970; 0 if it was not signed with this key."""
        found = self._signed(cookie)
        return 0.0 if found is None else found[2]

    def is_over(self, end: float) -> bool:
        """Whether a session that ends then has ended."""
        return self._now() >= end

    def _signed(self, cookie: str) -> tuple[str, str, float] | None:
        """The contents of a cookie, expired or not; None if it was not signed with this key."""
        text = read_signed(self._key, PURPOSE, cookie)
        if text is None:
            return None
        name, bound_to, end = json.loads(text)  # the signature shows that we wrote it
        return str(name), str(bound_to), float(end)


def signed(key: bytes, purpose: bytes, data: bytes) -> str:
    """The value of a cookie with these bytes, which only a server with the key can make."""
    signature = hmac.digest(key, purpose + data, hashlib.sha256)
    return f"{encoded(data)}.{encoded(signature)}"


def read_signed(key: bytes, purpose: bytes, cookie: str) -> bytes | None:
    """The bytes of such a cookie; None if it was not made with this key for this purpose."""
    text, _, signature = cookie.partition(".")
    try:
        data, given = decoded(text), decoded(signature)
    except ValueError:
        return None
    return data if hmac.compare_digest(given, hmac.digest(key, purpose + data, hashlib.sha256)) else None


def encoded(data: bytes) -> str:
    """Bytes as a text for cookies and addresses: base64 without its padding."""
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def decoded(text: str) -> bytes:
    """The bytes of such a text. Raises: ValueError, if it is not one."""
    return base64.b64decode(text.encode("ascii") + b"=" * (-len(text) % 4), altchars=b"-_", validate=True)
