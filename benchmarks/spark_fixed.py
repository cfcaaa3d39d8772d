"""The cost of Spark before the first row: drains of an empty queue and of a short one, in seconds.

    python -m benchmarks.spark_fixed [--messages 10000] [--rounds 5] [--json FILE]

For comparison, with as many rows, written into folders by queue and date: `spark.read.parquet`, a batch; Spark's own
file stream over the same Parquet, which ends when it has read all files; and the least stream with a source in Python,
which generates the same columns. So the file stream shows the cost of Spark's streaming, the least stream the cost with
Python, and the difference between the drain and that stream the cost of inorder. Each has its own session. Its first
run is reported separately from later ones, because in it Spark starts Python and compiles.

Seconds of processor are those of this process, Spark's JVM and all workers.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import get_context
from pathlib import Path
from typing import TypeVar

from pyspark.sql import DataFrame, SparkSession

from inorder.spark import jobs, register
from inorder.spark.jobs.drain import with_date
from inorder.spark.schema import spark_schema

from .spark_least import PARTITIONS, LeastSource
from .spark_read import fill

TICK = os.sysconf("SC_CLK_TCK")
T = TypeVar("T")
Figures = dict[str, float]


def processor_seconds() -> float:
    """Returns the seconds of this process and all its descendants, including those that have ended."""
    parents, times = {}, {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text(encoding="utf-8").rpartition(")")[2].split()
            except OSError:  # it has ended
                continue
            parents[int(entry.name)] = int(fields[1])
            times[int(entry.name)] = sum(map(int, fields[11:15]))
    total, level = 0, [os.getpid()]
    while level:
        total += sum(times[each] for each in level)
        level = [each for each, parent in parents.items() if parent in level]
    return total / TICK


def make_rows(folder: Path, count: int) -> None:
    """Writes Parquet with the columns and rows of a queue, for the ways that have no queue."""
    with _session() as spark:
        store = folder / "store.db"
        fill(store, "Q", count)
        frame = with_date(spark.read.format("inorder").options(queue="Q").load(str(store)))
        frame.repartition(PARTITIONS).write.parquet(str(folder / "rows"))


def run(way: str, folder: Path, count: int, times: int) -> list[Figures]:
    """Runs one way several times, in its own session."""
    with _session() as spark:
        return [_measured(spark, WAYS[way](spark, folder, count), folder / "out", count) for _ in range(times)]


@contextmanager
def _session() -> Iterator[SparkSession]:
    with jobs.session("benchmark") as spark:
        register(spark)
        spark.dataSource.register(LeastSource)
        yield spark


def _measured(spark: SparkSession, work: Callable[[Path], object], target: Path, count: int) -> Figures:
    shutil.rmtree(target, ignore_errors=True)
    processor, began = processor_seconds(), time.perf_counter()
    work(target)
    taken = {"seconds": time.perf_counter() - began, "processor": processor_seconds() - processor}
    found = spark.read.parquet(str(target)).count() if count else 0
    assert found == count, (found, count)
    return taken


def _batch(spark: SparkSession, folder: Path, count: int) -> Callable[[Path], object]:
    del count
    rows = str(folder / "rows")
    return lambda to: spark.read.parquet(rows).write.partitionBy("queue", "date").parquet(str(to))


def _file_stream(spark: SparkSession, folder: Path, count: int) -> Callable[[Path], object]:
    del count
    rows = str(folder / "rows")
    schema = spark_schema("binary").add("date", "date")
    return lambda to: _stream(spark.readStream.schema(schema).parquet(rows), to)


def _least_stream(spark: SparkSession, folder: Path, count: int) -> Callable[[Path], object]:
    del folder
    return lambda to: _stream(with_date(spark.readStream.format("least").options(rows=count).load()), to)


def _stream(rows: DataFrame, target: Path) -> None:
    writer = rows.writeStream.format("parquet").partitionBy("queue", "date")
    told = writer.options(path=str(target), checkpointLocation=str(target / "_checkpoint"))
    told.trigger(availableNow=True).start().awaitTermination()


def _drain(spark: SparkSession, folder: Path, count: int) -> Callable[[Path], object]:
    store = folder / f"{uuid.uuid4()}.db"
    fill(store, "Q", count)
    return lambda to: jobs.drain(spark, store, "Q", to, partitions=PARTITIONS)


WAYS: dict[str, Callable[[SparkSession, Path, int], Callable[[Path], object]]] = {
    "read.parquet": _batch,
    "file stream": _file_stream,
    "least stream of Python": _least_stream,
    "drain": _drain,
}


def main() -> None:
    """Runs each way."""
    root = str(Path(__file__).parents[1])
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [root, os.environ.get("PYTHONPATH")]))  # for the workers
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # installed packages are not compiled anew in each process
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--messages", type=int, nargs="*", default=[0, 10_000])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    report: dict[str, dict[str, dict[str, Figures]]] = {}
    for count in given.messages:
        with tempfile.TemporaryDirectory(prefix="inorder-bench-") as name:
            folder = Path(name)
            _apart(make_rows, folder, count)
            found = {way: _apart(run, way, folder, count, given.rounds + 1) for way in WAYS}
            report[str(count)] = {way: _summed(runs) for way, runs in found.items()}
    print(_table(report))
    if given.json:
        given.json.write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")


def _apart(work: Callable[..., T], *given: object) -> T:
    """Returns the result of the call, made in its own process."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(work, *given).result()


def _summed(runs: Sequence[Figures]) -> dict[str, Figures]:
    """Returns the first run, and the median and the minimum of each figure of later ones."""
    later = runs[1:]
    return {
        "first": runs[0],
        "later": {name: statistics.median(one[name] for one in later) for name in runs[0]},
        "least": {name: min(one[name] for one in later) for name in runs[0]},
    }


def _table(report: Mapping[str, Mapping[str, Mapping[str, Figures]]]) -> str:
    lines = ["| messages | into Parquet | first run | processor | later runs | processor | least | processor |"]
    lines += ["|---" * 8 + "|"]
    for count, ways in report.items():
        for way, told in ways.items():
            cells = " | ".join(f"{told[which]['seconds']:.2f} s | {told[which]['processor']:.2f} s" for which in told)
            lines.append(f"| {int(count):,} | {way} | {cells} |")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
