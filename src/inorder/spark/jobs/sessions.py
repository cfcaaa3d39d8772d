"""A Spark session for a job that is run by itself."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from os import PathLike
from pathlib import Path

from pyspark.sql import SparkSession

STANDARD_ERROR = 2


@contextmanager
def session(
    name: str, *, driver_memory: str = "2g", java_options: str = "", log: str | PathLike[str] | None = None
) -> Iterator[SparkSession]:
    """The session that runs already, that of `spark-submit`, or one on all cores of this machine.

    A session that begins here ends with the block. Workers get the Python that runs now, unless PYSPARK_PYTHON says
    which.

    Args:
        name: what Spark calls the application.
        driver_memory, java_options: of a JVM that is started now; ignored where one runs already.
        log: the file to which such a JVM and its workers add what they would write to standard error; None: there.
    """
    running = SparkSession.getActiveSession()
    if running is not None:
        yield running
        return
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = (
        SparkSession.builder.appName(name)
        .config("spark.driver.memory", driver_memory)
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.session.timeZone", "UTC")
    )
    if java_options:  # an empty text would take back what spark-defaults or PYSPARK_SUBMIT_ARGS say
        builder = builder.config("spark.driver.extraJavaOptions", java_options)
    with _errors_into(log):
        begun = builder.getOrCreate()
    begun.sparkContext.setLogLevel("ERROR")
    try:
        yield begun
    finally:
        begun.stop()


@contextmanager
def _errors_into(log: str | PathLike[str] | None) -> Iterator[None]:
    """A block in which processes that begin have this file as their standard error.

    Java warns and Spark greets before any setting of theirs is read.
    """
    if log is None:
        yield
        return
    sys.stderr.flush()
    kept = os.dup(STANDARD_ERROR)
    try:
        with Path(log).open("ab") as file:
            os.dup2(file.fileno(), STANDARD_ERROR)
        yield
    finally:
        os.dup2(kept, STANDARD_ERROR)
        os.close(kept)
