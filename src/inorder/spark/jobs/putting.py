"""The put of `load` and `replay`."""

from __future__ import annotations

import tempfile
from pathlib import Path

from pyspark.sql import DataFrame


def put(rows: DataFrame, **options: str) -> bool:
    """Puts rows in one step, with the options of the sink. Returns whether their transaction was committed before, also
    if that happened since the job began: then nothing was put.
    """
    with tempfile.TemporaryDirectory(prefix="inorder-report-") as folder:
        report = Path(folder) / "already"
        rows.write.format("inorder").options(report=str(report), **options).mode("append").save()
        return report.exists()
