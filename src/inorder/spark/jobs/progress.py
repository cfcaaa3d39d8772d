"""How far a job is, while it works."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from threading import Event
from typing import NamedTuple

from pyspark.sql import SparkSession

from ..tally import FOLDER, added_up

LOOK_SECONDS = 1.0  # between two looks


class Progress(NamedTuple):
    """How far a run is.

    Args:
        messages: done by this run.
        size: bytes of them.
        seconds: since it began.
        batch: of `drain`: the number of the last micro-batch that is done; None: the job has no batches.
    """

    messages: int
    size: int
    seconds: float
    batch: int | None = None


Tell = Callable[[Progress], object]


@contextmanager
def told(spark: SparkSession, tell: Tell | None) -> Iterator[None]:
    """A block in which Spark's tasks write: `tell` is called once a second, by a thread that ends with the block.

    If the block ends well, the last call has the figures of all tasks. What `tell` raises ends the telling, and is
    raised when the block has ended.
    """
    if tell is None:
        yield
        return
    context, over = spark.sparkContext, Event()
    with (
        tempfile.TemporaryDirectory(prefix="inorder-progress-", ignore_cleanup_errors=True) as folder,
        ThreadPoolExecutor(1, thread_name_prefix="inorder-progress") as pool,
    ):
        context.setLocalProperty(FOLDER, folder)
        telling = pool.submit(look_until, over.wait, lambda: added_up(folder), tell)
        try:
            yield
        finally:
            over.set()
            context.setLocalProperty(FOLDER, "")
        telling.result()


def look_until(
    wait: Callable[[float], bool],
    look: Callable[[], tuple[int, int]],
    tell: Tell,
    *,
    clock: Callable[[], float] = time.monotonic,
) -> None:
    """Looks and tells, and waits between two looks, until `wait` says that the work is over; then once more."""
    began, is_over = clock(), False
    while not is_over:
        is_over = wait(LOOK_SECONDS)
        tell(Progress(*look(), clock() - began))
