"""Gives a job that runs by itself a Spark session."""

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
    """Uses the running session, or that of `spark-submit`, or starts one on all cores of this machine.

    A session that is started here ends with the block. Workers use the Python that runs now, unless PYSPARK_PYTHON
    names another.

    Args:
        name: the name of the application in Spark.
        driver_memory, java_options: for a JVM that is started now; ignored if one is already running.
        log: a file that receives the standard error of such a JVM and its workers; None: standard error.
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
    if java_options:  # an empty text would override spark-defaults or PYSPARK_SUBMIT_ARGS
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
    """A block in which new processes have this file as their standard error.

    Java and Spark write messages before they read any setting.
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
