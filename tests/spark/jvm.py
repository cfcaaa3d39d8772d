"""What the JVMs of Spark begin with in tests: they live for seconds, and would spend most of them on their beginning.

So only the quick compiler works, and one thread collects.
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
    "spark.python.authenticate.socketTimeout": "300s",  # 15 s is too little where much else runs
}


def arguments(folder: Path) -> str:
    """What PYSPARK_SUBMIT_ARGS is to be, so that sessions have our settings where they name no others.

    Args:
        folder: where the file of settings is to be.
    """
    file = folder / "spark.properties"
    file.write_text("".join(f"{name} {value}\n" for name, value in SETTINGS.items()))
    return f"--properties-file {file} pyspark-shell"
