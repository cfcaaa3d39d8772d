"""A small run of sink and source, Spark's only one in `make test`."""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812 - Spark's custom
from tests.spark.calls import run_to_end, with_queues

import inorder


def drain(spark: SparkSession, url: str, folder: Path) -> None:
    """Runs a query once, which moves all messages from Q to COPY."""
    options = {"queue": "Q", "mode": "drain", "application": "archive", "partitions": "2"}
    source = spark.readStream.format("inorder").options(**options).load(url)
    copies = source.select("body", "group_id", "sequence_number", "flags")
    run_to_end(copies, "inorder", folder, queue="COPY", url=url)


def test_groups_are_put_and_drained_in_order_and_once(queues: SparkSession, url: str, folder: Path) -> None:
    with_queues(url, "COPY")
    ids = queues.range(0, 9, 1, 3)
    numbers = ids.select(F.format_string("%03d", "id").alias("body"), (-F.col("id")).alias("turn"))
    rows = numbers.withColumn("customer", F.concat(F.lit("c"), F.col("turn") % 2))
    sink = rows.write.format("inorder").options(queue="Q", orderBy="turn", groupBy="customer")
    sink.mode("append").save(url)
    with inorder.connect(url) as qm:
        put = list(qm.browse("Q"))
    assert [message.body for message in put] == [b"%03d" % n for n in range(8, -1, -1)]
    assert len({message.group_id for message in put}) == 2
    drain(queues, url, folder)
    with inorder.connect(url) as qm:
        qm.put("Q", b"later")
    drain(queues, url, folder)
    with inorder.connect(url) as qm:
        copies = list(qm.browse("COPY"))
        (account,) = qm.bulk.claims()
        assert (qm.depth("Q"), account.open, account.epoch) == (0, None, 2)
    assert [message.body for message in copies] == [*(message.body for message in put), b"later"]
    assert [message.group_id for message in copies[:-1]] == [message.group_id for message in put]
    assert [message.sequence_number for message in copies[:-1]] == [message.sequence_number for message in put]
