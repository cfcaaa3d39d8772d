"""Passwords of users: hashed and compared by argon2-cffi, which the extra `inorder[server]` installs.

The rest of the package only knows hashes. A hash contains its cost parameters, so hashes from releases with other
parameters can be compared.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import Any, Final

from ..errors import bad_argument
from .advice import not_installed

LENGTH_MIN: Final = 8
LENGTH_MAX: Final = 1024


def hashed(password: str) -> str:
    """Hashes a password, for `create_user` and `alter_user`.

    Args:
        password: 8 to 1,024 characters.

    Raises ArgumentError, without the password in its text; CallerError if argon2-cffi is not installed.
    """
    if not isinstance(password, str) or not LENGTH_MIN <= len(password) <= LENGTH_MAX:
        raise bad_argument("password", "...", f"a text of {LENGTH_MIN} to {LENGTH_MAX:,} characters")
    try:
        password.encode()
    except UnicodeEncodeError:
        raise bad_argument("password", "...", "a text in UTF-8") from None
    found: str = _hasher().hash(password)
    return found


def verifier(password: str) -> Callable[[str | None], bool]:
    """Makes a function for `identify` that checks whether a hash is that of this password.

    Without a hash it takes equally long and returns False, so that its duration does not reveal whether a user exists.
    """

    def verify(kept: str | None) -> bool:
        argon2, hasher = _library(), _hasher()
        try:
            is_right = bool(hasher.verify(kept or _of_nobody(), password[: LENGTH_MAX + 1]))
        except (argon2.exceptions.VerificationError, argon2.exceptions.InvalidHashError, UnicodeEncodeError):
            return False
        return is_right and kept is not None

    return verify


@cache
def _of_nobody() -> str:
    return hashed(secrets.token_hex())


@cache
def _hasher() -> Any:
    return _library().PasswordHasher()


def _library() -> Any:
    try:
        return import_module("argon2")
    except ModuleNotFoundError as missing:
        raise not_installed("passwords need argon2-cffi", "server", missing) from missing
