"""Handles stored times that lie in the future: the old clock was ahead, or the present one is behind.

The two cases cannot be distinguished. So code that depends on such a time does what is safe in both; the page on
durability has the list.
"""

from __future__ import annotations

from typing import Final

DIFFER_SECONDS: Final = 60.0  # the largest tolerated difference between the clocks of several machines


def is_ahead(kept: float, now: float) -> bool:
    """Whether a time that was kept lies in the future by more than clocks may differ; both are seconds since 1970."""
    return kept > now + DIFFER_SECONDS
