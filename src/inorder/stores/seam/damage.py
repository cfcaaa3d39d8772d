"""Reports data in a store that inorder cannot have written, as `StoreDamaged` with the value and its place.

A disk may return wrong bytes, and rows may be changed by hand. Backends check data when they read it. This module
checks texts that only inorder writes, and references between records.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from datetime import datetime, timezone
from typing import Final, TypeVar

from ...errors import StoreDamaged

T = TypeVar("T")

# The exceptions of Python code that decodes a corrupt value.
DECODING: Final = (ValueError, TypeError, LookupError, AttributeError, ArithmeticError, RecursionError)
SHOWN_MAX: Final = 200


def damaged(where: str, wrong: object, **data: object) -> StoreDamaged:
    """Returns the error for damage at a place in the store. The caller's text is shortened."""
    return StoreDamaged(
        f"{where}: {wrong!s:.{SHOWN_MAX}}. `inorder check` lists what is wrong; restore the store from a backup.",
        reason=None,
        where=where,
        **data,
    )


def only(found: Sequence[T], where: str) -> T:
    """Returns the one record that another one refers to. Raises: StoreDamaged."""
    if len(found) != 1:
        raise damaged(where, f"others refer to it, but it {'is missing' if not found else 'exists more than once'}")
    return found[0]


def utc(seconds: float) -> datetime:
    """Returns a stored time as a date. Raises: StoreDamaged, if there is no such date."""
    try:
        return datetime.fromtimestamp(seconds, timezone.utc)
    except (ValueError, OverflowError, OSError) as error:
        raise damaged("a time", f"{seconds!r} s since 1970 is not a date") from error


def decodes(where: str) -> Callable[[Callable[[str], T]], Callable[[str], T]]:
    """Decorates a function that decodes a text that inorder wrote: if it fails, the store is damaged at `where`."""

    def decorated(decode: Callable[[str], T]) -> Callable[[str], T]:
        @functools.wraps(decode)
        def call(text: str) -> T:
            try:
                return decode(text)
            except DECODING as error:
                raise damaged(where, f"{text!r:.80} cannot be read ({error!r:.100})") from error

        return call

    return decorated
