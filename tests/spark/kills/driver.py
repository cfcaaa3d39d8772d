"""A Spark driver that obeys orders, in a process and a session of its own, so that a test can kill it whole.

    python driver.py EVENTS SETTINGS

EVENTS is a named pipe; each line written to it is [what, value]. SETTINGS is JSON: the master, and settings of Spark.
Orders are lines of JSON on the standard input, and each is answered with "done" or "failed".
"""

from __future__ import annotations

import json
import os
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pyspark import TaskContext
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - Spark's custom
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.types import BinaryType

import inorder.spark
from inorder.spark import jobs

TEXT_MAX = 3000  # longer lines could be split: a write to a pipe is atomic up to 4,096 bytes
PATIENCE_SECONDS = 240
SLOW_SECONDS = 60.0


class Orders:
    """Each method is an order with the order's arguments."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self._queries: dict[str, StreamingQuery] = {}

    def drain(self, **arguments: Any) -> dict[str, Any]:
        """Runs the job: drains a queue to Parquet until it is empty, then finishes."""
        ran = jobs.drain(self._spark, **arguments)
        return {"messages": ran.messages, "batches": ran.batches, "confirmed": ran.confirmed}

    def audit(self, **arguments: Any) -> dict[str, int]:
        """Runs the job; returns its counts of messages, groups and errors."""
        found = jobs.audit(self._spark, order="logical", **arguments)
        return {"messages": found.messages, "groups": found.groups, "errors": found.error_count}

    def start(
        self,
        name: str,
        source: dict[str, str],
        sink: str,
        sink_options: dict[str, str],
        checkpoint: str,
        *,
        follow: bool = False,
        fault: str = "",
        flag: str = "",
    ) -> None:
        """Starts a query under this name; a fault is put between source and sink."""
        rows = self._spark.readStream.format("inorder").options(**source).load()
        if fault:
            rows = rows.withColumn("body", FAULTS[fault](rows, flag))
        writer = rows.writeStream.format(sink).options(**sink_options).option("checkpointLocation", checkpoint)
        self._queries[name] = (writer if follow else writer.trigger(availableNow=True)).start()

    def wait(self, name: str) -> int:
        """Waits for the end of the query; returns the number of messages read."""
        query = self._queries.pop(name)
        if not query.awaitTermination(PATIENCE_SECONDS):
            raise TimeoutError(f"query {name} has not ended after {PATIENCE_SECONDS} s")
        return sum(max(0, one.numInputRows) for one in query.recentProgress)

    def run(self, name: str, **arguments: Any) -> int:
        """Starts a query and waits for its end."""
        self.start(name, **arguments)
        return self.wait(name)

    def catch_up(self, name: str) -> None:
        """Waits until a running query has processed everything that is available."""
        self._queries[name].processAllAvailable()

    def stop(self, name: str) -> None:
        self._queries.pop(name).stop()


def raise_once(rows: DataFrame, flag: str) -> Column:
    """The first attempt of the first task that gets there raises in the middle; no later one does."""

    def strike(body: bytes, number: int) -> bytes:
        if number % 10 == 7:
            try:
                Path(flag).touch(exist_ok=False)
            except FileExistsError:
                return bytes(body)
            raise RuntimeError("this task raises, once")
        return bytes(body)

    return F.udf(strike, BinaryType())(rows.body, rows.delivery_number)


def slow_once(rows: DataFrame, flag: str) -> Column:
    """The first attempt of the task with the first message is slow, so that a twin overtakes it; each leaves a flag."""

    def dawdle(body: bytes, number: int) -> bytes:
        context = TaskContext.get()
        assert context is not None
        if number == 1:
            Path(f"{flag}.{context.attemptNumber()}").touch()
            if context.attemptNumber() == 0:
                time.sleep(SLOW_SECONDS)
        return bytes(body)

    return F.udf(dawdle, BinaryType())(rows.body, rows.delivery_number)


FAULTS: dict[str, Callable[[DataFrame, str], Column]] = {"raise once": raise_once, "slow once": slow_once}


def main() -> None:
    with Path(sys.argv[1]).open("w", encoding="utf-8") as events:

        def tell(what: str, value: Any) -> None:
            print(json.dumps([what, value]), file=events, flush=True)

        settings = {
            "spark.driver.memory": "512m",
            "spark.sql.shuffle.partitions": "1",
            "spark.sql.session.timeZone": "UTC",
            "spark.sql.streaming.pollingDelay": "50ms",
        } | json.loads(sys.argv[2])
        builder = SparkSession.builder.appName("a driver that is killed")
        for name, value in settings.items():
            builder = builder.config(name, value)
        spark = builder.getOrCreate()
        spark.sparkContext.setLogLevel("ERROR")
        inorder.spark.register(spark)
        orders = Orders(spark)
        tell("ready", os.getpid())
        for line in sys.stdin:
            order = json.loads(line)
            try:
                answer = getattr(orders, order.pop("do"))(**order)
            except Exception as error:  # noqa: BLE001 - the test is told of every error
                traceback.print_exc()
                tell("failed", f"{type(error).__name__}: {error}"[-TEXT_MAX:])  # the end names the cause
            else:
                tell("done", answer)
        spark.stop()


if __name__ == "__main__":
    main()
