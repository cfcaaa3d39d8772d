"""What goes wrong inside Spark, in one line. The texts are those that Spark has raised."""

from __future__ import annotations

import pytest

from inorder.errors import Reason
from inorder.spark.jobs.troubles import plain

CALLING = "Py4JJavaError: An error occurred while calling o82.start.\n: "


@pytest.mark.parametrize(
    ("text", "told", "reason"),
    [
        (
            CALLING + "java.io.IOException: mkdir of file:/proc/x/_spark_metadata failed\n\tat org.apache.hadoop.A.b",
            "/proc/x/_spark_metadata cannot be created: name a folder in which this user may write",
            Reason.RESOURCE_PROBLEM,
        ),
        (
            CALLING + "org.apache.spark.SparkException: Job aborted: java.io.IOException: Mkdirs failed to create "
            "file:/proc/f/_temporary/0 (exists=false, cwd=file:/tmp)\n\tat org.apache.spark.A.b",
            "/proc/f/_temporary/0 cannot be created: name a folder in which this user may write",
            Reason.RESOURCE_PROBLEM,
        ),
        (
            CALLING + "java.lang.IllegalStateException: it is too late\n\tat org.apache.spark.A.b",
            "java.lang.IllegalStateException: it is too late",
            Reason.UNEXPECTED_ERROR,
        ),
        ("Py4JError: the gateway is closed", "Py4JError: the gateway is closed", Reason.UNEXPECTED_ERROR),
        ("", "Spark gave no reason", Reason.UNEXPECTED_ERROR),
    ],
)
def test_trouble_is_told_by_its_cause(text: str, told: str, reason: Reason) -> None:
    assert plain(text) == (told, reason)
