"""How much goes in one transaction.

To remove a body the database reads the chain of its pages. The contents of many messages are left, named in the table
`leftover`, and go a step at a time when the verb is over, so that others come between.
"""

from __future__ import annotations

STEP_CONTENTS = 1000
STEP_BYTES = 16 << 20


def fits_one_step(contents: int, size: int) -> bool:
    """Whether so many contents, of `size` bytes in all, may be removed in one transaction; one always may."""
    return contents <= 1 or (contents <= STEP_CONTENTS and size <= STEP_BYTES)
