"""What the JVMs of Spark begin with in tests: they live for seconds, and would spend most of them on their beginning.

So only the quick compiler works, one thread collects, and the classes of Spark come from a file in which Java keeps
them as it has read them (class data sharing): a session begins in half the time. The file is made once for each Java
and Spark, in build/; that takes half a minute.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

import pyspark

BUILD: Final = Path(__file__).parents[2] / "build"
SHORT_LIFE: Final = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
SETTINGS: Final = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.shuffle.partitions": "2",
}
SECONDS_MAX: Final = 300
# It loads what most tests load: rows of Python, files, a shuffle, a stream.
LOADING: Final = """
import sys
from pyspark.sql import SparkSession

spark = SparkSession.builder.master("local[2]").getOrCreate()
rows = spark.createDataFrame([(number, b"body", str(number)) for number in range(9)], "a long, b binary, c string")
folder = sys.argv[1]
rows.write.parquet(f"{folder}/one")
read = spark.readStream.schema(rows.schema).parquet(f"{folder}/one")
written = read.writeStream.option("checkpointLocation", f"{folder}/log").trigger(availableNow=True)
written.start(f"{folder}/two").awaitTermination()
spark.read.parquet(f"{folder}/two").groupBy("c").count().orderBy("c").collect()
jvm = spark.sparkContext._gateway.proc
spark.stop()
jvm.stdin.close()
jvm.wait()
"""


def arguments(folder: Path, classes: Path | None) -> str:
    """What PYSPARK_SUBMIT_ARGS is to be, so that sessions have our settings where they name no others.

    Args:
        folder: where the file of settings is to be.
        classes: the file of classes; None: there is none.
    """
    java = SHORT_LIFE if classes is None else f"{SHORT_LIFE} -XX:SharedArchiveFile={classes} -Xlog:cds=off"
    settings = SETTINGS | {"spark.driver.extraJavaOptions": java, "spark.executor.extraJavaOptions": java}
    file = folder / "spark.properties"
    file.write_text("".join(f"{name} {value}\n" for name, value in settings.items()))
    return f"--properties-file {file} pyspark-shell"


def classes_file(*, makes: bool) -> Path | None:
    """The file of classes for this Java and this Spark; None: there is none, and it is not to be made."""
    java = shutil.which("java", path=f"{os.environ['JAVA_HOME']}/bin" if "JAVA_HOME" in os.environ else None)
    assert java is not None, "Spark needs Java"
    real = Path(java).resolve()
    of = hashlib.sha256(f"{real} {real.stat().st_mtime_ns} {pyspark.__file__} {pyspark.__version__}".encode())
    file = BUILD / f"spark-classes-{of.hexdigest()[:16]}.jsa"
    if makes and not file.exists():
        BUILD.mkdir(exist_ok=True)
        with (BUILD / "spark-classes.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not file.exists():
                _make(file)
    return file if file.exists() else None


def _make(file: Path) -> None:
    for other in BUILD.glob("spark-classes-*.jsa"):
        other.unlink()
    folder = BUILD / "spark-classes"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    made = folder / "made.jsa"
    java = f"spark.driver.extraJavaOptions={SHORT_LIFE} -XX:ArchiveClassesAtExit={made} -Xlog:cds=off"
    given = {"PYSPARK_PYTHON": sys.executable, "PYSPARK_SUBMIT_ARGS": f'--conf "{java}" pyspark-shell'}
    subprocess.run(
        [sys.executable, "-c", LOADING, folder],
        env=os.environ | given,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        timeout=SECONDS_MAX,
        check=True,
    )
    made.rename(file)
    shutil.rmtree(folder)
