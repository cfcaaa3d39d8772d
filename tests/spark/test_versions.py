"""Reads and writes of the PySpark that is installed, and the refusal of those that it lacks.

`make nightly` runs this file on each version from 4.0 on (`tools/spark_versions.py`).
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

pytest.importorskip("pyspark", reason="needs the extra inorder[spark]")

import pyspark
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

import inorder
from inorder.errors import OptionsError
from inorder.spark.source import InorderSource
from inorder.spark.versions import FILTERS_SINCE, STREAMS_SINCE, VERSION

SECONDS_MAX = 240
FOUND = ".".join(map(str, VERSION))


def put(url: str, *bodies: bytes) -> None:
    with inorder.connect(url) as qm:
        qm.put_many("Q", bodies)


def test_a_batch_is_read_and_written(queues: SparkSession, url: str) -> None:
    put(url, b"1", b"2")
    with inorder.connect(url) as qm:
        qm.create_queue("COPY")
    rows = queues.read.format("inorder").options(queue="Q").load(url)
    rows.select("body").write.format("inorder").options(queue="COPY", transaction="once").mode("append").save(url)
    with inorder.connect(url) as qm:
        assert [message.body for message in qm.browse("COPY")] == [b"1", b"2"]


def test_a_stream_is_written(queues: SparkSession, url: str, folder: Path) -> None:
    queues.range(5).selectExpr("CAST(id AS STRING) AS body").write.parquet(str(folder / "rows"))
    rows = queues.readStream.schema("body STRING").parquet(str(folder / "rows"))
    writer = rows.writeStream.format("inorder").options(queue="Q", url=url)
    query = writer.option("checkpointLocation", str(folder / "checkpoint")).trigger(availableNow=True).start()
    assert query.awaitTermination(SECONDS_MAX)
    with inorder.connect(url) as qm:
        assert sorted(message.body for message in qm.browse("Q")) == [b"0", b"1", b"2", b"3", b"4"]


def refused(work: Callable[[], object], what: str, since: tuple[int, ...]) -> None:
    """Fails unless the error says what an older version lacks, and what to install."""
    wanted = ".".join(map(str, since))
    says = f"{what} needs PySpark {wanted} or later, this is {FOUND}: pip install 'pyspark>={wanted}'"
    with pytest.raises((OptionsError, PySparkException)) as caught:
        work()
    assert says in str(caught.value)


def test_filters_are_pushed_down_or_refused(queues: SparkSession, url: str) -> None:
    put(url, b"1", b"2")
    queues.conf.set("spark.sql.python.filterPushdown.enabled", "true")
    try:
        rows = queues.read.format("inorder").options(queue="Q", pushdown="true").load(url).where("priority = 0")
        if VERSION >= FILTERS_SINCE:
            assert rows.count() == 2
        else:
            refused(rows.count, "option pushdown", FILTERS_SINCE)
    finally:
        queues.conf.unset("spark.sql.python.filterPushdown.enabled")


def test_a_stream_from_a_queue_runs_or_is_refused(queues: SparkSession, url: str, folder: Path) -> None:
    put(url, b"1", b"2")
    options = {"queue": "Q", "mode": "drain", "application": "archive"}

    def drain() -> None:
        rows = queues.readStream.format("inorder").options(**options).load(url)
        writer = rows.writeStream.format("noop").option("checkpointLocation", str(folder / "checkpoint"))
        writer.trigger(availableNow=True).start().awaitTermination(SECONDS_MAX)

    if VERSION >= STREAMS_SINCE:
        drain()
        with inorder.connect(url) as qm:
            (account,) = qm.bulk.claims()
            assert qm.depth("Q") + account.delivered == 2, "the last batch may be confirmed by the next start"
    else:
        refused(drain, "a stream from a queue", STREAMS_SINCE)
        source = InorderSource({"url": url} | options)
        refused(lambda: source.streamReader(source.schema()), "a stream from a queue", STREAMS_SINCE)
        with inorder.connect(url) as qm:
            assert qm.depth("Q") == 2


def test_this_is_the_version_that_the_tests_are_meant_for() -> None:
    """`tools/spark_versions.py` puts it first in the path."""
    for folder in Path(pyspark.__file__).parents:
        if folder.parent.name == "pyspark" and folder.parent.parent.name == "build":
            assert folder.name == FOUND
