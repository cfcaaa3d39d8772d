"""Source, sink and jobs on a store that has a server, with Spark on this machine alone."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812 - Spark's custom
from tests.spark.calls import put

import inorder
from inorder.cli import main
from inorder.spark import finish, jobs, transaction_time

SECONDS_MAX = 240


@pytest.fixture(params=["in_postgresql", "at_server"])
def url(request: pytest.FixtureRequest) -> str:
    """The URL of a store with a queue Q."""
    return str(request.getfixturevalue(request.param))


def drain_to(spark: SparkSession, url: str, folder: Path, **options: str) -> None:
    """One run of a query to its end: what is on Q is put to COPY."""
    given = {"queue": "Q", "mode": "drain", "application": "copy", "partitions": "2"} | options
    source = spark.readStream.format("inorder").options(**given).load(url)
    copies = source.select("body", "group_id", "sequence_number", "flags", "delivery_number")
    sink = copies.writeStream.format("inorder").options(queue="COPY", url=url, orderBy="delivery_number")
    query = sink.option("checkpointLocation", str(folder / "checkpoint")).trigger(availableNow=True).start()
    assert query.awaitTermination(SECONDS_MAX)


def test_a_stream_goes_from_queue_to_queue_exactly_once_over_a_restart(
    queues: SparkSession, url: str, folder: Path
) -> None:
    with inorder.connect(url) as qm:
        qm.create_queue("COPY")
        for number in range(20):
            with qm.group("Q") as group:
                for member in range(3):
                    group.put(b"%d.%d" % (number, member))
        due = [message.body for message in qm.browse("Q")]
    drain_to(queues, url, folder, maxMessagesPerTrigger="21", order="logical")
    put(url, b"later")
    drain_to(queues, url, folder, maxMessagesPerTrigger="21", order="logical")
    finish(url, "Q", "copy", str(folder / "checkpoint"))
    with inorder.connect(url) as qm:
        assert [message.body for message in qm.browse("COPY")] == [*due, b"later"]
        assert (qm.depth("Q"), qm.inspect.units(), qm.admin.check()) == (0, [], [])


def test_a_batch_is_written_once_under_its_name_and_read_side_by_side(queues: SparkSession, url: str) -> None:
    rows = queues.range(0, 1000, 1, 4).select(F.format_string("%04d", "id").alias("body"))
    for _ in range(2):
        writer = rows.write.format("inorder").options(queue="Q", orderBy="body", transaction="monday")
        writer.mode("append").save(url)
    assert transaction_time(url, "Q", "monday") is not None
    found = queues.read.format("inorder").options(queue="Q", partitions="4", body="string").load(url)
    assert found.rdd.getNumPartitions() == 4
    parts = found.select("body", F.spark_partition_id().alias("part")).collect()
    assert sorted(row.body for row in parts) == [f"{number:04}" for number in range(1000)]
    assert len({row.part for row in parts}) == 4


def test_the_commands_of_jobs_take_a_url(
    queues: SparkSession, url: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source, archive, back = folder / "source", folder / "archive", folder / "back"
    source.mkdir()
    for name in ("a", "b"):
        (source / name).write_text(f"{name} 1\n{name} 2\n")

    def run(*arguments: str) -> dict[str, Any]:
        assert main(["pipeline", *arguments, "--json"]) == 0, capsys.readouterr()
        told: dict[str, Any] = json.loads(capsys.readouterr().out.splitlines()[-1])
        return told

    load = ("load", str(source), "Q", "--format", "files", "--transaction", "one", "--store", url)
    assert [run(*load)["already"] for _ in range(2)] == [False, True]
    assert run("drain", "Q", str(archive), "--store", url)["messages"] == 6
    assert main(["claim", "finish", "Q", "drain", "--checkpoint", str(archive / "_checkpoint"), "--store", url]) == 0
    capsys.readouterr()
    assert run("reorder", str(archive), str(folder / "ordered"))["groups"] == 2
    assert run("replay", str(folder / "ordered"), "Q", "--transaction", "two", "--store", url)["messages"] == 6
    with inorder.connect(url) as qm:
        assert len(list(jobs.unload_queue(qm, "Q", back))) == 2
        assert qm.depth("Q") == 0
    assert {path.name: path.read_text() for path in back.iterdir()} == {"a": "a 1\na 2\n", "b": "b 1\nb 2\n"}
