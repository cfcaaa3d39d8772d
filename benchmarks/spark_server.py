"""Sink and drain of one queue, in a file or in PostgreSQL, with Spark on this machine or on a cluster.

    python -m benchmarks.spark_server orders.db
    python -m benchmarks.spark_server 'postgresql://me@host/db?schema=bench' --master spark://host:7077

A first round with a tenth of the messages starts whatever is started once, and is not counted. The store is left empty.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812 - Spark's custom

import inorder
from inorder.spark import jobs, register

QUEUE = "BENCH"
BODY_BYTES = 1024


def session(master: str, folder: Path) -> SparkSession:
    """Returns a session whose driver is on the loopback."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    made = (
        SparkSession.builder.master(master)
        .appName("inorder on a server")
        .config("spark.driver.memory", "2g")
        .config("spark.executor.memory", "1g")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.local.dir", str(folder / "spark"))
        .getOrCreate()
    )
    made.sparkContext.setLogLevel("ERROR")
    register(made)
    return made


def measured(spark: SparkSession, store: str, messages: int, tasks: int, folder: Path) -> dict[str, float]:
    """Returns the seconds of the sink, and of the drain into Parquet."""
    rows = spark.range(0, messages, 1, tasks).select(F.rpad(F.col("id").cast("string"), BODY_BYTES, "x").alias("body"))
    began = time.perf_counter()
    rows.write.format("inorder").options(queue=QUEUE).mode("append").save(store)
    put = time.perf_counter()
    with inorder.connect(store) as qm:
        assert qm.depth(QUEUE) == messages
    ready = time.perf_counter()
    drained = jobs.drain(spark, store, QUEUE, folder, order="physical", partitions=tasks)
    assert drained.messages == messages
    return {"sink": put - began, "drain": time.perf_counter() - ready}


def main() -> int:
    """Prints the seconds and rates of each round."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("store")
    parser.add_argument("--master", default="local[2]")
    parser.add_argument("--messages", type=int, default=200_000)
    parser.add_argument("--tasks", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--parent", help="the folder in which a temporary one is made")
    given = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="inorder-spark-server-", dir=given.parent))
    try:
        with inorder.connect(given.store) as qm, suppress(inorder.ObjectExists):
            qm.create_queue(QUEUE, max_depth=10 * given.messages)
        spark = session(given.master, folder)
        measured(spark, given.store, given.messages // 10, given.tasks, folder / "warm")
        for number in range(given.rounds):
            seconds = measured(spark, given.store, given.messages, given.tasks, folder / str(number))
            rates = {f"{what}_rate": given.messages / taken for what, taken in seconds.items()}
            print(json.dumps({"master": given.master, "load": os.getloadavg()[0], **seconds, **rates}), flush=True)
        spark.stop()
        with inorder.connect(given.store) as qm:
            qm.delete_queue(QUEUE)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
