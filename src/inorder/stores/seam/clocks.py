"""A time that was kept lies in the future: its clock was ahead, or the one that is asked now is behind.

Nothing tells the two apart. So what goes by such a time does what is safe in both cases: the page on durability has
the list.
"""

from __future__ import annotations

from typing import Final

DIFFER_SECONDS: Final = 60.0  # by so much the clocks of several machines may differ


def is_ahead(kept: float, now: float) -> bool:
    """Whether a time that was kept lies in the future by more than clocks may differ; both are seconds since 1970."""
    return kept > now + DIFFER_SECONDS
