"""A Spark session for a job that is run by itself."""

from __future__ import annotations

from pyspark.sql import SparkSession


def session(name: str, *, driver_memory: str = "2g") -> SparkSession:
    """The session of `spark-submit`, or one on all cores of this machine.

    Args:
        name: what Spark calls the application.
        driver_memory: of a JVM that is started now; ignored where one runs already.
    """
    return (
        SparkSession.builder.appName(name)
        .config("spark.driver.memory", driver_memory)
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.session.timeZone", "UTC")
        .getOrCreate()
    )
