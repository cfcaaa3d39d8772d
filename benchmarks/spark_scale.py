"""How the jobs on archives grow: the same work at 0.1, 1 and 10 million messages of 200 bytes.

    python -m benchmarks.spark_scale --sizes 100000 1000000 --parent /var/tmp --json scale.json

Needs the extras inorder[spark] and inorder[report] (an audit without pictures counts less), and Java 17. Spark itself
makes the archives: ten lines of messages interleaved, nine of them groups of ten, one of messages in no group. Starting
Spark and making the archives are reported apart.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as all of Spark's documents do

from inorder.spark.jobs import audit, reorder
from inorder.spark.schema import spark_schema

JOBS = ("reorder", "audit")
SIZES = (100_000, 1_000_000, 10_000_000)
BODY_BYTES = 200
LINES = 10  # interleaved
GROUP_SIZE = 10
DRIVER_MEMORY = "4g"
PUTS_PER_SECOND = 2_000
STARTED_AT = "2024-05-01 00:00:00"


def session(folder: Path) -> SparkSession:
    """Returns a session with two cores and the memory of the goal; Spark spills into `folder`."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    made = (
        SparkSession.builder.master("local[2]")
        .appName("inorder scale")
        .config("spark.driver.memory", DRIVER_MEMORY)
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.local.dir", str(folder / "spark"))
        .getOrCreate()
    )
    made.sparkContext.setLogLevel("ERROR")
    return made


def make_archive(spark: SparkSession, messages: int, folder: Path) -> None:
    """Makes an archive without faults, delivered in physical order."""
    rows = spark.range(messages)
    line, step = F.col("id") % LINES, F.floor(F.col("id") / LINES)
    sequence = (step % GROUP_SIZE + 1).cast("int")
    group = F.floor(step / GROUP_SIZE) * LINES + line
    # The archive ends inside some groups: their last message there counts as the last one of the group.
    is_last = (sequence == GROUP_SIZE) | (F.col("id") + LINES >= messages)
    grouped = line != LINES - 1
    made: dict[str, Column] = {
        "queue": F.lit("ORDERS"),
        "rank": F.lit(0),
        "number": F.col("id") + 1,
        "ordinal": F.lit(0),
        "delivery_number": F.col("id") + 1,
        "report": F.lit(0),
        "message_type": F.lit(8),
        "feedback": F.lit(0),
        "encoding": F.lit(546),
        "coded_character_set_id": F.lit(1208),
        "format": F.lit("MQSTR"),
        "priority": F.lit(0),
        "persistent": F.lit(True),
        "message_id": F.unhex(F.substring(F.sha2(F.col("id").cast("string"), 256), 1, 48)),
        "put_at": F.timestamp_micros(
            F.unix_micros(F.lit(STARTED_AT).cast("timestamp")) + F.col("id") * (1_000_000 // PUTS_PER_SECOND)
        ),
        "group_id": F.when(grouped, F.unhex(F.substring(F.sha2(group.cast("string"), 256), 1, 48))),
        "sequence_number": F.when(grouped, sequence).otherwise(1),
        "offset": F.lit(0),
        "flags": F.when(grouped, F.when(is_last, 24).otherwise(8)).otherwise(0),
        "original_length": F.lit(-1),
        "body": F.substring(F.repeat(F.sha2(F.col("id").cast("string"), 512), 2), 1, BODY_BYTES).cast("binary"),
        "length": F.lit(BODY_BYTES),
        "backout_count": F.lit(0),
        "uid_origin": F.lit("QM"),
        "uid_number": F.col("id") + 1,
    }
    schema = spark_schema()
    columns = [made.get(field.name, F.lit(None)).cast(field.dataType).alias(field.name) for field in schema.fields]
    dated = rows.select(*columns).withColumn("date", F.to_date("put_at"))
    dated.write.partitionBy("queue", "date").parquet(str(folder))


def seconds(work: Callable[[], object]) -> float:
    """Returns the seconds that the work takes."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def process_of(spark: SparkSession) -> Path:
    """Returns the folder in /proc of Spark's JVM."""
    jvm = spark.sparkContext._jvm
    assert jvm is not None, "the session has no gateway to its JVM"
    return Path("/proc", str(jvm.java.lang.ProcessHandle.current().pid()))


def processor_s(spark: SparkSession) -> float:
    """Returns the processor seconds of Spark's JVM, which other programs on the machine do not distort."""
    fields = (process_of(spark) / "stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def peak_memory_mb(spark: SparkSession) -> float:
    """Returns the peak of the resident memory of Spark's JVM."""
    status = (process_of(spark) / "status").read_text(encoding="utf-8")
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM")) / 1024


def check(rows: DataFrame, messages: int) -> None:
    """Checks that the result is complete."""
    last = rows.agg(F.max("logical_position"), F.count_distinct("logical_position")).first()
    assert last is not None, "an aggregate without keys has one row"
    assert tuple(last) == (messages, messages), last


def measure(spark: SparkSession, messages: int, folder: Path, tell: Callable[[str], None]) -> Any:
    """Measures one size: makes the archive, runs the jobs, removes their output."""
    folder.mkdir(parents=True)
    archive = folder / "archive"
    result: dict[str, Any] = {"messages": messages, "load_before": os.getloadavg()[0]}
    result["make_s"] = seconds(lambda: make_archive(spark, messages, archive))
    tell(f"{messages:,}: archive made in {result['make_s']:.1f} s")
    work: dict[str, Callable[[], object]] = {
        "reorder": lambda: reorder(spark, str(archive), folder / "logical", progress=tell),
        "audit": lambda: audit(spark, str(archive), folder / "audited", progress=tell),
    }
    for job, run in work.items():
        before = processor_s(spark)
        result[f"{job}_s"] = seconds(run)
        result[f"{job}_cpu_s"] = processor_s(spark) - before
        result[f"{job}_per_s"] = messages / result[f"{job}_s"]
        tell(f"{messages:,}: {job} {result[f'{job}_s']:.1f} s, {result[f'{job}_per_s']:,.0f} messages/s")
    check(spark.read.parquet(str(folder / "logical")), messages)
    result["peak_memory_mb"] = peak_memory_mb(spark)
    shutil.rmtree(folder)
    return result


def table(results: list[Any]) -> str:
    """Returns the results as text."""
    heads = " ".join(f"{job + ' s':>10} {'cpu s':>7} {job + '/s':>10}" for job in JOBS)
    lines = [f"{'messages':>12} {'make s':>8} {heads}"]
    lines[0] += f" {'peak MB':>9} {'load':>6}"
    for result in results:
        cells = " ".join(
            f"{result[f'{job}_s']:>10.1f} {result[f'{job}_cpu_s']:>7.0f} {result[f'{job}_per_s']:>10,.0f}"
            for job in JOBS
        )
        lines.append(
            f"{result['messages']:>12,} {result['make_s']:>8.1f} {cells} {result['peak_memory_mb']:>9,.0f} "
            f"{result['load_before']:>6.1f}"
        )
    return "\n".join(lines)


def main() -> None:
    """Runs the command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", nargs="+", type=int, default=SIZES, metavar="MESSAGES")
    parser.add_argument("--parent", type=Path, default=Path("/var/tmp"), help="on a disk with room for five archives")
    parser.add_argument("--json", type=Path)
    chosen = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="inorder-scale-", dir=chosen.parent))

    begun = time.perf_counter()

    def tell(text: str) -> None:
        print(f"{time.perf_counter() - begun:7.1f} s  {text}", file=sys.stderr, flush=True)

    try:
        spark = session(folder)
        spark.range(1).count()
        start_s = time.perf_counter() - begun
        results = [measure(spark, size, folder / str(size), tell) for size in chosen.sizes]
        spark.stop()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    print(f"start of Spark: {start_s:.1f} s; driver memory {DRIVER_MEMORY}, local[2]")
    print(table(results))
    if chosen.json:
        chosen.json.write_text(json.dumps({"start_s": start_s, "results": results}, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
