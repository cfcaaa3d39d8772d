"""What goes wrong inside Spark, told as it was raised there, without the tracebacks that Spark wraps around it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from ...errors import QueueCondition, Reason

# The last line of a worker's traceback: one of our errors, with its text up to the reason code.
OWN = re.compile(r"inorder\.[\w.]*errors\.\w+: (.*?\[\d+ [A-Z_0-9]+\])", re.DOTALL)


@contextmanager
def told_plainly() -> Iterator[None]:
    """A block in which Spark works. Raises: QueueCondition, with the text of what was raised in a worker."""
    try:
        yield
    except (PySparkException, Py4JError) as trouble:
        raise QueueCondition(plain(str(trouble)), reason=Reason.UNEXPECTED_ERROR) from trouble


def plain(text: str) -> str:
    """The text of our own error in a text of Spark's; if there is none, the first line of Spark's."""
    found = OWN.findall(text)
    if found:
        return str(found[0])
    return next((line.strip() for line in text.splitlines() if line.strip()), "Spark gave no reason")
