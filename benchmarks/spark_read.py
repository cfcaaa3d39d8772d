"""A queue read by Spark into Parquet, beside the bare statement that reads the same file: rows per second, as ratios.

    python -m benchmarks.spark_read [--messages 500000] [--rounds 3] [--json FILE] [--served]
    python -m benchmarks.spark_read --decode [--messages 200000] [--rounds 3]

The bare reader is a data source that sends one statement over the store's tables, with the same columns, for each of
as many ranges of keys, and returns Arrow batches: no search, no order of priorities, no limits, no claims. In each
round one session writes both to Parquet, one after the other; the result is the median of the ratios.

With --served there are further ways: the same file, and the drain of a second queue in it, through the URL of
`inorder serve` on the loopback, beside the file itself.

With --decode the same rows become Arrow batches in this process, without Spark: microseconds of processor a message.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from itertools import chain
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

import inorder
from inorder import Flags, GetOptions, Message
from inorder.arrow.pages import Origin, batches
from inorder.client.bulk import BulkBrowser, ClaimReader
from inorder.spark import jobs, register

from .questions.over_http import of_store
from .spark_bare import PARTITIONS, BareReader, BareSource

SIZE, GROUP = 1024, 10
SERVED = "served: "  # the prefix of the ways through a server
GROUPS, ORIGIN = GetOptions(logical=True, all_messages=True), Origin("Q", None, 0)


def fill(path: Path, queue: str, count: int) -> None:
    """Puts messages in groups, with hundreds of groups interleaved."""
    body = os.urandom(SIZE)
    with inorder.connect(path) as qm:
        qm.create_queue(queue)
        for at in range(0, count, 1000):
            qm.put_many(queue, [_member(at, number, body) for number in range(1000)])


def _member(at: int, number: int, body: bytes) -> Message:
    """Of 1,000 messages, in 100 groups of 10, all first members come first, then all second ones."""
    sequence = number // 100 + 1
    flags = Flags.IN_GROUP | (Flags.LAST_IN_GROUP if sequence == GROUP else Flags.NONE)
    return Message(body, group_id=b"%d" % (at + number % 100), sequence_number=sequence, flags=flags)


class Round:
    """One store, which is read in each way."""

    def __init__(self, spark: SparkSession, folder: Path, count: int, *, served: bool) -> None:
        self._spark, self._folder, self._count, self._served = spark, folder, count, served
        self.path = folder / "store.db"

    def rate(self, work: Callable[[Path], object]) -> float:
        target = self._folder / "out"
        shutil.rmtree(target, ignore_errors=True)
        began = time.perf_counter()
        work(target)
        rate = self._count / (time.perf_counter() - began)
        found = self._spark.read.parquet(str(target)).count()
        assert found == self._count, (found, self._count)
        return rate

    def _ways(self, store: str, queue: str) -> dict[str, Callable[[Path], object]]:
        def browse(order: str) -> DataFrame:
            options = {"queue": "Q", "order": order, "partitions": str(PARTITIONS)}
            return self._spark.read.format("inorder").options(**options).load(store)

        return {
            "browse, physical": lambda to: browse("physical").write.parquet(str(to)),
            "browse, logical": lambda to: browse("logical").write.parquet(str(to)),
            "drain": lambda to: jobs.drain(self._spark, store, queue, to, partitions=PARTITIONS),
        }

    def run(self, *, served_first: bool) -> dict[str, float]:
        """Returns the rates of all ways. The file and the server take turns; `served_first`: the server begins."""
        spark = self._spark
        rates = {"bare": self.rate(lambda to: spark.read.format("bare").load(str(self.path)).write.parquet(str(to)))}
        ways = self._ways(str(self.path), "Q")
        if not self._served:
            return rates | {name: self.rate(way) for name, way in ways.items()}
        fill(self.path, "COPY", self._count)
        with closing(of_store(self._folder)) as server:
            host, port = server.address
            file = Path(os.environ["INORDER_CREDENTIALS"])  # this process and Spark's workers read it
            file.touch(mode=0o600)
            file.write_text(f"[{host}:{port}]\ntoken = {server.token}\n", encoding="utf-8")
            self.rate(ways["browse, physical"])  # the first read of a store starts what later reads need
            for name, way in self._ways(f"http://{host}:{port}", "COPY").items():
                pair = [(name, ways[name]), (SERVED + name, way)]
                rates |= {key: self.rate(one) for key, one in (reversed(pair) if served_first else pair)}
        return rates


class Decoding:
    """One store, which is read into Arrow batches in this process in each way."""

    def __init__(self, path: Path, count: int) -> None:
        self._path, self._count = path, count

    def run(self) -> dict[str, float]:
        """Returns the microseconds of processor for each message."""
        bare = BareReader({"path": str(self._path)})
        costs = {"bare": self._cost(batch for part in bare.partitions() for batch in bare.read(part))}
        with inorder.connect(self._path) as qm:
            with qm.open("Q", browse=True) as queue:
                browser = BulkBrowser(queue)
                for name, options in (("browse, physical", GetOptions()), ("browse, logical", GROUPS)):
                    stretches = browser.survey(options, slices=PARTITIONS).stretches
                    costs[name] = self._cost(batches(chain.from_iterable(map(browser.read, stretches)), ORIGIN))
            with qm.open("Q", input="shared") as queue:
                reader = ClaimReader(queue, "benchmark")
                begun = reader.begin().settled
                claim = reader.claim(begun, GROUPS)
                assert claim is not None
                parts = reader.plan(begun, claim.number, PARTITIONS)
                costs["claim"] = self._cost(batches(chain.from_iterable(map(reader.read, parts)), ORIGIN))
            qm.bulk.release_claims("Q", "benchmark")
        return costs

    def _cost(self, found: Iterable[pa.RecordBatch]) -> float:
        began = time.process_time()
        rows = sum(int(batch.num_rows) for batch in found)
        assert rows == self._count, (rows, self._count)
        return (time.process_time() - began) / rows * 1e6


def decode(messages: int, rounds: int) -> dict[str, float]:
    """Fills a store in memory, and returns the best round of each way."""
    with tempfile.TemporaryDirectory(prefix="inorder-bench-", dir="/dev/shm") as folder:
        path = Path(folder) / "store.db"
        fill(path, "Q", messages)
        found = [Decoding(path, messages).run() for _ in range(rounds)]
    return {way: min(one[way] for one in found) for way in found[0]}


def main() -> None:
    """Runs the rounds."""
    root = str(Path(__file__).parents[1])
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [root, os.environ.get("PYTHONPATH")]))  # for the workers
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--messages", type=int, default=500_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--served", action="store_true")
    parser.add_argument("--decode", action="store_true")
    given = parser.parse_args()
    if given.decode:
        for way, cost in decode(given.messages, given.rounds).items():
            print(f"{way:20} {cost:6.2f} us of processor a message")
        return
    with tempfile.TemporaryDirectory(prefix="inorder-bench-") as home:
        os.environ["INORDER_CREDENTIALS"] = f"{home}/credentials"
        rounds = _rounds(given.messages, given.rounds, served=given.served)
    report = _report(rounds, given.messages)
    print(_table(report))
    if given.json:
        given.json.write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")


def _rounds(messages: int, count: int, *, served: bool) -> list[dict[str, float]]:
    with jobs.session("benchmark", driver_memory="2g") as spark:
        register(spark)
        spark.dataSource.register(BareSource)
        rounds = []
        for number in range(-1, count):  # the first round warms up
            with tempfile.TemporaryDirectory(prefix="inorder-bench-") as folder:
                some = min(messages, 20_000) if number < 0 else messages
                one = Round(spark, Path(folder), some, served=served)
                fill(one.path, "Q", some)
                rates = one.run(served_first=bool(number % 2))
            if number >= 0:
                rounds.append(rates)
                print(f"round {number}: " + ", ".join(f"{name} {rate:,.0f}/s" for name, rate in rates.items()))
    return rounds


def _report(rounds: Sequence[Mapping[str, float]], messages: int) -> dict[str, Any]:
    ways = list(rounds[0])
    return {
        "messages": messages,
        "rates": {way: statistics.median(one[way] for one in rounds) for way in ways},
        "ratios": {way: statistics.median(one[way] / one["bare"] for one in rounds) for way in ways},
        "of_file": {
            way: statistics.median(one[way] / one[way.removeprefix(SERVED)] for one in rounds)
            for way in ways
            if way.startswith(SERVED)
        },
    }


def _table(report: Mapping[str, Any]) -> str:
    lines = ["| into Parquet | messages/s | of the bare read | of the file |", "|---|---|---|---|"]
    for way, rate in sorted(report["rates"].items(), key=lambda one: one[0].removeprefix(SERVED)):
        of_file = f"{report['of_file'][way]:.2f}" if way in report["of_file"] else ""
        lines.append(f"| {way} | {rate:,.0f} | {report['ratios'][way]:.2f} | {of_file} |")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
