"""Contents whose messages are gone, removed a step at a time, so that others come between.

To remove a body the database reads the chain of its pages. A verb that removes few and short ones does so at once; the
contents of more are left, named in the table `leftover`, and whoever left them removes them when the verb is over.
"""

from __future__ import annotations

from .reach import Reach
from .statements import by_id, statement

LEAVE_CONTENT = by_id("leave content")
SOME_LEFTOVERS = statement("some leftovers")
REMOVE_CONTENT = by_id("remove content")
FORGET_LEFTOVERS = by_id("forget leftovers")

STEP_CONTENTS = 1000
STEP_BYTES = 16 << 20


def fits_one_step(contents: int, size: int) -> bool:
    """Whether so many contents, of `size` bytes in all, may be removed in one transaction; one always may."""
    return contents <= 1 or (contents <= STEP_CONTENTS and size <= STEP_BYTES)


def remove_some(reach: Reach) -> bool:
    """One step; whether there is more."""
    step: list[int] = []
    removed = 0
    some = reach.execute(SOME_LEFTOVERS, (STEP_CONTENTS,)).fetchall()
    for number, size in some:
        removed += size
        if not fits_one_step(len(step) + 1, removed):
            break
        step.append(number)
    reach.execute_each(REMOVE_CONTENT, step)
    reach.change_each(FORGET_LEFTOVERS, step)
    return len(step) == STEP_CONTENTS or len(step) < len(some)
