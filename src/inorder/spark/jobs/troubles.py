"""Extracts the original error from Spark's exceptions, without the tracebacks that Spark wraps around it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from ...errors import QueueCondition, Reason

# The last line of a worker's traceback: one of our errors, its text, and its reason code.
OWN = re.compile(r"inorder\.[\w.]*errors\.\w+: (.*?) \[(\d+) [A-Z_0-9]+\]", re.DOTALL)
LABEL = re.compile(r"^\[[A-Z0-9_.]+\] *| *SQLSTATE: \w+\.?")  # added by Spark around a sentence
CALLED = re.compile(r"^(?:\w+: )?An error occurred while calling \S+\n: ")  # added by py4j around Java's exception

# Ordinary trouble, by a pattern in Spark's text; the first match counts. \1 is its first group.
ORDINARY = (
    (
        "OutOfMemoryError",
        "Spark's memory is full: give it more, such as 8g, with --driver-memory, or driver_memory= in a program",
        Reason.RESOURCE_PROBLEM,
    ),
    (
        "No space left on device",
        "a disk is full: make room in the target, and in Spark's folder for temporary files (SPARK_LOCAL_DIRS)",
        Reason.RESOURCE_PROBLEM,
    ),
    (
        r"(\S+) is not a Parquet file|reading file (\S+)\. Could not read footer",
        r"\1\2 is not a Parquet file, or is incomplete: restore it from a copy, or remove it",
        Reason.FORMAT_ERROR,
    ),
    (
        r"mkdir of (?:file:)?(\S+) failed|Mkdirs failed to create (?:file:)?(\S+)",
        r"\1\2 cannot be created: name a folder in which this user may write",
        Reason.RESOURCE_PROBLEM,
    ),
    (r"PATH_NOT_FOUND\] Path does not exist: (\S+)\.", r"\1 does not exist", Reason.RESOURCE_PROBLEM),
    (r"UNABLE_TO_INFER_SCHEMA", "the archive has no Parquet files", Reason.FORMAT_ERROR),
    (r"Py4JNetworkError|Answer from Java side is empty", "Spark's JVM has ended by itself", Reason.UNEXPECTED_ERROR),
)


@contextmanager
def told_plainly() -> Iterator[None]:
    """A block in which Spark works. Raises QueueCondition with text and reason of the error that a worker raised."""
    try:
        yield
    except (PySparkException, Py4JError) as trouble:
        text, reason = plain(f"{type(trouble).__name__}: {trouble}" if isinstance(trouble, Py4JError) else str(trouble))
        raise QueueCondition(text, reason=reason) from trouble


def plain(text: str) -> tuple[str, Reason]:
    """Our own error in a text of Spark's; otherwise ordinary trouble, or the first line of the text."""
    found = OWN.search(text)
    if found is not None:
        return found[1], Reason(int(found[2]))
    for pattern, told, reason in ORDINARY:
        if (found := re.search(pattern, text)) is not None:
            return found.expand(told), reason
    first = next((line.strip() for line in CALLED.sub("", text).splitlines() if line.strip()), "Spark gave no reason")
    return LABEL.sub("", first), Reason.UNEXPECTED_ERROR
