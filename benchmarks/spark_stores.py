"""One query over several stores: processor for each message, and for planning a micro-batch over many queues.

    python -m benchmarks.spark_stores [--messages 160000] [--rounds 3] [--json FILE]

The same messages of 1 KiB lie on 16 queues in 1, 4 and 16 stores. Spark drains and browses them into its sink `noop`,
one after the other in each round, in another order each time; what counts is the median of the ratios to one store.
`parts` are the calls that Spark makes, in this process without Spark: so they are those of inorder alone. Planning is
done in this process, too: all calls between two micro-batches, over 1,000 queues in 20 stores with 10 messages each.

Seconds of processor are those of this process, Spark's JVM and all workers.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import tempfile
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
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
PLANNED = (20, 50, 10)  # stores, queues in each, messages in each
WAYS = ("drain", "browse")

Source = Mapping[str, str]


def fill(folder: Path, stores: int, queues: int, messages: int) -> Source:
    """Makes stores with that many queues and messages in each. Returns the options that name them all."""
    folder.mkdir()
    urls = [str(folder / f"{number}.db") for number in range(stores)]
    for url in urls:
        with inorder.connect(url) as qm:
            for number in range(queues):
                qm.create_queue(f"Q.{number}")
                for at in range(0, messages, 1_000):
                    qm.put_many(f"Q.{number}", [BODY] * min(1_000, messages - at))
    return {"url": json.dumps(urls), "queue": "Q.*", "partitions": "2"}


def draining(source: Source) -> Source:
    """The options of a drain of these queues."""
    return {**source, "mode": "drain", "application": "benchmark", "maxMessagesPerTrigger": str(PER_BATCH)}


def in_spark(spark: SparkSession, source: Source, way: str, folder: Path) -> None:
    """Reads everything into Spark's sink that forgets it."""
    if way == "browse":
        spark.read.format("inorder").options(**source).load().write.format("noop").mode("append").save()
        return
    rows = spark.readStream.format("inorder").options(**draining(source)).load()
    query = rows.writeStream.format("noop").option("checkpointLocation", str(folder / "checkpoint"))
    query.trigger(availableNow=True).start().awaitTermination()


def in_parts(source: Source, way: str, messages: int) -> None:
    """Makes the calls that Spark would make, one after the other."""
    if way == "browse":
        browse = InorderSource(dict(source))
        reader = browse.reader(browse.schema())
        found = sum(batch.num_rows for part in reader.partitions() for batch in reader.read(part))
    else:
        found = sum(rows for rows, _ in micro_batches(source, PER_BATCH, messages // PER_BATCH))
    assert found == messages, (found, messages)


def micro_batches(source: Source, most: int, count: int) -> list[tuple[int, float]]:
    """Drains some micro-batches. Returns the messages of each, and the seconds of processor without reading them."""
    drain = InorderSource(dict(draining(source)))
    reader: Any = drain.streamReader(drain.schema())
    offset, found = reader.initialOffset(), []
    for _ in range(count):
        began = time.process_time()
        following = reader.latestOffset(offset, ReadMaxRows(most))
        if found:  # Spark asks for the next micro-batch before it commits the last one
            reader.commit(offset)
        parts = reader.partitions(offset, following)
        planned = time.process_time() - began
        rows = sum(batch.num_rows for part in parts for batch in reader.read(part))
        found.append((rows, planned))
        offset = following
    reader.commit(offset)
    reader.stop()
    return found


def measured(work: Callable[[], None], clock: Callable[[], float], messages: int) -> float:
    """Microseconds of processor for each message."""
    began = clock()
    work()
    return (clock() - began) / messages * 1e6


def one_round(spark: SparkSession, number: int, messages: int) -> dict[str, float]:
    """All ways over all numbers of stores."""
    costs = {}
    for turn in range(len(STORES)):
        stores = STORES[(turn + number) % len(STORES)]
        with tempfile.TemporaryDirectory(prefix="inorder-bench-") as name:
            folder = Path(name)
            source = fill(folder / "stores", stores, QUEUES // stores, messages // QUEUES)
            again = fill(folder / "again", stores, QUEUES // stores, messages // QUEUES)
            for way in reversed(WAYS):  # a drain leaves nothing

                def through(way: str = way, source: Source = source, folder: Path = folder) -> None:
                    in_spark(spark, source, way, folder)

                def parts(way: str = way, source: Source = again) -> None:
                    in_parts(source, way, messages)

                costs[f"{way}, {stores} stores"] = measured(through, processor_seconds, messages)
                costs[f"{way} in parts, {stores} stores"] = measured(parts, time.process_time, messages)
    return costs


def planning() -> dict[str, float]:
    """Seconds of processor for a micro-batch with one message of each queue, and for one without messages."""
    stores, queues, messages = PLANNED
    with tempfile.TemporaryDirectory(prefix="inorder-bench-") as name:
        source = fill(Path(name) / "stores", stores, queues, messages)
        found = micro_batches(source, stores * queues, messages + 1)
    assert [rows for rows, _ in found] == [stores * queues] * messages + [0]
    costs = [cost for _, cost in found]
    return {"first": costs[0], "later": statistics.median(costs[1:-1]), "idle": costs[-1]}


def report(rounds: list[dict[str, float]], planned: Mapping[str, float], messages: int) -> dict[str, Any]:
    """The medians, and those of the ratios to one store."""
    return {
        "messages": messages,
        "planning_s": planned,
        "us": {name: statistics.median(one[name] for one in rounds) for name in sorted(rounds[0])},
        "ratios": {
            name: statistics.median(one[name] / one[f"{name.partition(',')[0]}, 1 stores"] for one in rounds)
            for name in sorted(rounds[0])
        },
    }


def table(found: Mapping[str, Any]) -> str:
    """The results for people."""
    lines = ["| | us of processor a message | of one store |", "|---|---|---|"]
    lines += [f"| {name} | {cost:.1f} | {found['ratios'][name]:.2f} |" for name, cost in found["us"].items()]
    planned = ", ".join(f"{name} {cost:.2f} s" for name, cost in found["planning_s"].items())
    return "\n".join([*lines, f"Planning a micro-batch over {PLANNED[0] * PLANNED[1]:,} queues: {planned}"])


def main() -> None:
    """The command."""
    root = str(Path(__file__).parents[1])
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [root, os.environ.get("PYTHONPATH")]))  # for the workers
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--messages", type=int, default=160_000, help="a multiple of 40,000")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    planned = planning()
    with ExitStack() as stack:
        spark = stack.enter_context(jobs.session("benchmark"))
        register(spark)
        one_round(spark, 0, PER_BATCH)  # warms up
        rounds = []
        for number in range(given.rounds):
            rounds.append(one_round(spark, number, given.messages))
            print(json.dumps(rounds[-1]), flush=True)
    found = report(rounds, planned, given.messages)
    print(table(found))
    if given.json:
        given.json.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
