"""Limits the contents that one transaction deletes.

To delete a body, the database reads the chain of its pages. So the contents of many messages are first only listed in
the table `leftover`, and deleted in steps after the operation, so that other processes can work in between.
"""

from __future__ import annotations

STEP_CONTENTS = 1000
STEP_BYTES = 16 << 20


def fits_one_step(contents: int, size: int) -> bool:
    """Whether one transaction may delete this many contents of `size` bytes in all; one content always fits."""
    return contents <= 1 or (contents <= STEP_CONTENTS and size <= STEP_BYTES)
