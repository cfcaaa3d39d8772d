"""A Spark session for a job that is run by itself."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from pyspark.sql import SparkSession


@contextmanager
def session(name: str, *, driver_memory: str = "2g", java_options: str = "") -> Iterator[SparkSession]:
    """The session that runs already, that of `spark-submit`, or one on all cores of this machine.

    A session that begins here ends with the block. Workers get the Python that runs now, unless PYSPARK_PYTHON says
    which.

    Args:
        name: what Spark calls the application.
        driver_memory, java_options: of a JVM that is started now; ignored where one runs already.
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
    begun = builder.getOrCreate()
    begun.sparkContext.setLogLevel("ERROR")
    try:
        yield begun
    finally:
        begun.stop()
