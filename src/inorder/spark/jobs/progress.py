"""Reports the progress of a running job."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from threading import Event
from typing import NamedTuple

from pyspark.sql import DataFrame, SparkSession

from ..tally import FOLDER, added_up

LOOK_SECONDS = 1.0  # between two checks


class Progress(NamedTuple):
    """The progress of a run.

    Args:
        messages: how many messages this run has done.
        size: their bytes.
        seconds: the time since it began.
        batch: for `drain`: the number of the last finished micro-batch; None: the job has no batches.
        total: how many messages the run will have done at its end; None: the job does not know.
    """

    messages: int
    size: int
    seconds: float
    batch: int | None = None
    total: int | None = None


Tell = Callable[[Progress], object]


@contextmanager
def told(spark: SparkSession, tell: Tell | None, rows: DataFrame | None = None) -> Iterator[None]:
    """A block in which Spark's tasks write: a thread calls `tell` once a second until the block ends.

    If the block ends without error, the last call has the figures of all tasks. An exception from `tell` ends the
    calls, and is raised when the block has ended.

    Args:
        rows: the messages that will be written, which are counted if `tell` is given; None: counting them would take
            too long.
    """
    if tell is None:
        yield
        return
    total = None if rows is None else rows.count()
    context, over = spark.sparkContext, Event()
    with (
        tempfile.TemporaryDirectory(prefix="inorder-progress-", ignore_cleanup_errors=True) as folder,
        ThreadPoolExecutor(1, thread_name_prefix="inorder-progress") as pool,
    ):
        context.setLocalProperty(FOLDER, folder)
        telling = pool.submit(look_until, over.wait, lambda: added_up(folder), tell, total)
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
    total: int | None = None,
    *,
    clock: Callable[[], float] = time.monotonic,
) -> None:
    """Checks, reports and waits, until `wait` says that the work is over; then once more."""
    began, is_over = clock(), False
    while not is_over:
        is_over = wait(LOOK_SECONDS)
        tell(Progress(*look(), clock() - began, total=total))
