"""One query over several stores: processor for each message, and for planning a micro-batch over many queues.

    python -m benchmarks.spark_stores [--messages 160000] [--rounds 3] [--json FILE]

The same messages of 1 KiB lie on 16 queues in 1, 4 and 16 stores. Spark drains and browses them into Parquet, in each
round in another order of stores; the result is the median of the ratios to one store. The same on empty queues is the
fixed cost of a query; it is reported by itself and is no part of the cost of a message.

`in parts` are the calls that Spark makes, in this process without Spark, so they are those of inorder alone. Planning
is done in this process, too: all calls between two micro-batches, over 1,000 queues in 20 stores with 4 messages each.

Seconds of processor are those of this process, Spark's JVM and all workers. The file of --json is the input of
`benchmarks.spark_machines`.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql.streaming.datasource import ReadMaxRows

import inorder
from inorder.spark import jobs, register
from inorder.spark.source import InorderSource

from .spark_fixed import processor_seconds

STORES = (1, 4, 16)
QUEUES = 16  # in all stores together
PER_BATCH = 40_000  # so that there are several micro-batches
BODY = os.urandom(1024)
PLANNED = (20, 50, 4)  # stores, queues in each, messages in each
WAYS = ("browse", "drain")  # drain comes last because it leaves no messages

Source = Mapping[str, str]
Figures = dict[str, float]


def fill(folder: Path, stores: int, queues: int, messages: int) -> Source:
    """Makes stores with this many queues, and messages in each queue. Returns the options that name all of them."""
    folder.mkdir()
    urls = [str(folder / f"{number}.db") for number in range(stores)]
    for url in urls:
        with inorder.connect(url) as qm:
            for number in range(queues):
                qm.create_queue(f"Q.{number}")
                for at in range(0, messages, 1_000):
                    qm.put_many(f"Q.{number}", [BODY] * min(1_000, messages - at))
    return {"url": json.dumps(urls), "queue": "Q.*", "partitions": "2"}


def draining(source: Source, application: str) -> Source:
    """Returns the options of a drain of these queues."""
    return {**source, "mode": "drain", "application": application, "maxMessagesPerTrigger": str(PER_BATCH)}


def in_spark(spark: SparkSession, source: Source, way: str, folder: Path) -> float:
    """Reads everything into Parquet, in a new folder. Returns the seconds of processor."""
    folder.mkdir()
    began = processor_seconds()
    if way == "browse":
        spark.read.format("inorder").options(**source).load().write.parquet(str(folder / "out"))
    else:
        rows = spark.readStream.format("inorder").options(**draining(source, folder.name)).load()
        query = rows.writeStream.format("parquet").option("checkpointLocation", str(folder / "checkpoint"))
        query.trigger(availableNow=True).start(str(folder / "out")).awaitTermination()
    return processor_seconds() - began


class Batch:
    """A micro-batch in this process, with the messages and the seconds of processor of its calls."""

    def __init__(self, rows: int, planned: float, read: float) -> None:
        self.rows, self.planned, self.read = rows, planned, read


def micro_batches(source: Source, most: int, count: int) -> list[Batch]:
    """Drains some micro-batches with the calls that Spark makes."""
    drain = InorderSource(dict(draining(source, "parts")))
    reader: Any = drain.streamReader(drain.schema())
    offset = reader.initialOffset()
    found: list[Batch] = []
    for _ in range(count):
        began = time.process_time()
        following = reader.latestOffset(offset, ReadMaxRows(most))
        if found:  # Spark asks for the next micro-batch before it commits the last one
            reader.commit(offset)
        parts = reader.partitions(offset, following)
        planned = time.process_time() - began
        rows = sum(batch.num_rows for part in parts for batch in reader.read(part))
        found.append(Batch(rows, planned, time.process_time() - began - planned))
        offset = following
    reader.commit(offset)
    reader.stop()
    return found


def browsed(source: Source, messages: int) -> float:
    """Browses all messages with the calls that Spark makes. Returns the seconds of processor."""
    batch = InorderSource(dict(source))
    began = time.process_time()
    reader = batch.reader(batch.schema())
    rows = sum(one.num_rows for part in reader.partitions() for one in reader.read(part))  # type: ignore[union-attr]
    assert rows == messages, rows
    return time.process_time() - began


def one_round(spark: SparkSession, number: int, messages: int) -> dict[str, Figures]:
    """Runs all ways with all numbers of stores. Returns microseconds for each message, and seconds for each query."""
    costs: Figures = {}
    fixed: Figures = {}
    for turn in range(len(STORES)):
        stores = STORES[(turn + number) % len(STORES)]
        with tempfile.TemporaryDirectory(prefix="inorder-bench-") as name:
            folder = Path(name)
            source = fill(folder / "stores", stores, QUEUES // stores, messages // QUEUES)
            whole = {way: in_spark(spark, source, way, folder / way) for way in WAYS}
            for way, seconds in whole.items():
                fixed[f"{way}, {stores}"] = empty = in_spark(spark, source, way, folder / f"{way}-empty")
                costs[f"{way}, {stores}"] = (seconds - empty) / messages * 1e6
            source = fill(folder / "again", stores, QUEUES // stores, messages // QUEUES)
            seconds = browsed(source, messages)
            found = micro_batches(source, PER_BATCH, messages // PER_BATCH + 1)
            fixed[f"browse in parts, {stores}"] = empty = browsed(source, 0)
            costs[f"browse in parts, {stores}"] = (seconds - empty) / messages * 1e6
            assert sum(one.rows for one in found) == messages, [one.rows for one in found]
            costs[f"claim and confirm in parts, {stores}"] = sum(one.planned for one in found) / messages * 1e6
            costs[f"read in parts, {stores}"] = sum(one.read for one in found) / messages * 1e6
    return {"us": costs, "fixed_s": fixed}


def planning() -> Figures:
    """Returns the processor seconds for a micro-batch with one message of each queue, and for one without messages."""
    stores, queues, messages = PLANNED
    with tempfile.TemporaryDirectory(prefix="inorder-bench-") as name:
        found = micro_batches(fill(Path(name) / "stores", stores, queues, messages), stores * queues, messages + 2)
    assert [one.rows for one in found] == [stores * queues] * messages + [0, 0]
    costs = [one.planned for one in found]
    return {"first": costs[0], "later": statistics.median(costs[1:-2]), "least": min(costs[1:-2]), "idle": costs[-1]}


def report(rounds: list[dict[str, Figures]], planned: Figures, messages: int) -> dict[str, Any]:
    """Returns the medians of the costs, and of the ratios to one store."""

    def ratio(costs: Figures, name: str) -> float:
        return costs[name] / costs[f"{name.rpartition(', ')[0]}, {STORES[0]}"]

    us, fixed = ([one[key] for one in rounds] for key in ("us", "fixed_s"))
    return {
        "messages": messages,
        "rounds": len(rounds),
        "load": os.getloadavg()[0],
        "planning_s": planned,
        "us": {name: statistics.median(one[name] for one in us) for name in us[0]},
        "ratios": {name: statistics.median(ratio(one, name) for one in us) for name in us[0]},
        "fixed_s": {name: statistics.median(one[name] for one in fixed) for name in fixed[0]},
    }


def table(found: Mapping[str, Any]) -> str:
    """Returns the results as text."""
    lines = ["| way, stores | us of processor a message | of one store | seconds a query |", "|---|---|---|---|"]
    for name, cost in sorted(found["us"].items()):
        fixed = f"{found['fixed_s'][name]:.1f}" if name in found["fixed_s"] else ""
        lines.append(f"| {name} | {cost:.1f} | {found['ratios'][name]:.2f} | {fixed} |")
    planned = ", ".join(f"{name} {cost:.2f} s" for name, cost in found["planning_s"].items())
    return "\n".join([*lines, f"Planning a micro-batch over {PLANNED[0] * PLANNED[1]:,} queues: {planned}"])


def main() -> None:
    """Runs the command."""
    root = str(Path(__file__).parents[1])
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [root, os.environ.get("PYTHONPATH")]))  # for the workers
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--messages", type=int, default=160_000, help="a multiple of 40,000")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    with jobs.session("benchmark") as spark:
        register(spark)
        one_round(spark, 0, PER_BATCH)  # warms up
        rounds = []
        for number in range(given.rounds):
            rounds.append(one_round(spark, number, given.messages))
            print(json.dumps(rounds[-1]), flush=True)
    found = report(rounds, planning(), given.messages)
    print(table(found))
    if given.json:
        given.json.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
