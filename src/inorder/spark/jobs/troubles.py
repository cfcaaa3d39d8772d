"""What goes wrong inside Spark, told as it was raised there, without the tracebacks that Spark wraps around it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from ...errors import QueueCondition, Reason

# The last line of a worker's traceback: one of our errors, its text, and its reason code.
OWN = re.compile(r"inorder\.[\w.]*errors\.\w+: (.*?) \[(\d+) [A-Z_0-9]+\]", re.DOTALL)


@contextmanager
def told_plainly() -> Iterator[None]:
    """A block in which Spark works. Raises: QueueCondition, with text and reason of what was raised in a worker."""
    try:
        yield
    except (PySparkException, Py4JError) as trouble:
        text, reason = plain(str(trouble))
        raise QueueCondition(text, reason=reason) from trouble


def plain(text: str) -> tuple[str, Reason]:
    """Our own error in a text of Spark's; if there is none, the first line of Spark's."""
    found = OWN.search(text)
    if found is not None:
        return found[1], Reason(int(found[2]))
    first = next((line.strip() for line in text.splitlines() if line.strip()), "Spark gave no reason")
    return first, Reason.UNEXPECTED_ERROR
