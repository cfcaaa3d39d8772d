"""Registers the format "inorder" with a session, and checks that Spark's Python can serve it."""

from __future__ import annotations

import shutil
import subprocess
import sys
from typing import TYPE_CHECKING, Any

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from ..errors import OptionsError
from .source import FORMAT, InorderSource

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PROBE = "import sys, inorder.spark; print(*sys.version_info[:2])"
PROBE_SECONDS_MAX = 120
REMEDY = (
    "Set it before the first session: os.environ['PYSPARK_PYTHON'] = sys.executable, or start with "
    "PYSPARK_PYTHON=/path/to/python, a Python that has inorder[spark]"
)


def register(spark: SparkSession) -> None:
    """Registers `spark.read.format("inorder")` and the other formats with a session. Harmless when repeated.

    Makes the session the active one of this thread, in which Spark looks for the format of a write. So call it in each
    thread that writes.

    Raises OptionsError, with the remedy, if Spark would start its Python workers with another interpreter, which cannot
    serve the format (they would only fail to connect back).
    """
    command = _worker_python(spark)
    if command is not None:
        check_python(command)
    if not _is_known(spark):
        spark.dataSource.register(InorderSource)
    spark.createDataFrame([], "body binary")  # makes the session active


def _is_known(spark: Any) -> bool:
    """Whether Spark has found the package `pyspark_inorder`, or it was registered before: Spark warns if it is
    registered twice.
    """
    try:
        return bool(spark._jsparkSession.sessionState().dataSourceManager().dataSourceExists(FORMAT))
    except (PySparkException, Py4JError, AttributeError):  # a session of Spark Connect has no JVM here
        return False


def _worker_python(spark: Any) -> str | None:
    """The interpreter of the session's workers; None if it is set elsewhere, as with Spark Connect."""
    try:
        return str(spark.sparkContext.pythonExec)
    except (PySparkException, AttributeError):  # a session of Spark Connect has no context
        return None


def check_python(command: str) -> None:
    """Raises OptionsError if this interpreter does not exist, has another version, or lacks `inorder[spark]`."""
    found = shutil.which(command)
    if found is None:
        raise OptionsError(f"Spark's Python workers would be started with {command!r}, which does not exist. {REMEDY}")
    if found == sys.executable:
        return
    begins = f"Spark's Python workers would be started with {found}, which"
    try:
        told = subprocess.run(
            [found, "-c", PROBE], check=False, capture_output=True, text=True, timeout=PROBE_SECONDS_MAX
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise OptionsError(f"{begins} does not start: {error}. {REMEDY}") from error
    if told.returncode:
        last = told.stderr.strip().splitlines()[-1:] or [f"it ended with {told.returncode}"]
        raise OptionsError(f"{begins} cannot import inorder.spark: {last[0]}. {REMEDY}")
    theirs, ours = ".".join(told.stdout.split()), ".".join(map(str, sys.version_info[:2]))
    if theirs != ours:
        raise OptionsError(f"{begins} is Python {theirs}, and this is {ours}. {REMEDY}")
