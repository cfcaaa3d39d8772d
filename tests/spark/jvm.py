"""Settings of Spark's JVMs in tests, which live for seconds and would spend most of them starting.

So only the quick compiler works, and one thread collects garbage.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

SHORT_LIFE: Final = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
SETTINGS: Final = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.shuffle.partitions": "2",
    "spark.driver.extraJavaOptions": SHORT_LIFE,
    "spark.executor.extraJavaOptions": SHORT_LIFE,
    "spark.python.authenticate.socketTimeout": "300s",  # the default of 15 s is too short on a busy machine
}


def arguments(folder: Path) -> str:
    """The value of PYSPARK_SUBMIT_ARGS that gives sessions these settings unless they choose others.

    Args:
        folder: for the file of settings.
    """
    file = folder / "spark.properties"
    file.write_text("".join(f"{name} {value}\n" for name, value in SETTINGS.items()))
    return f"--properties-file {file} pyspark-shell"
