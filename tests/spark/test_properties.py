"""Properties through Spark: out of a queue as a map, asked by it, and back onto a queue as they were."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812 - Spark's custom

import inorder
from inorder import QueueCondition
from inorder.model.properties import PropertyValue
from inorder.spark.jobs import dump, load, replay

GIVEN: dict[str, PropertyValue] = {
    "colour": "red\n",
    "key": b"\0\xff",
    "note": None,
    "order.count": 2**53 + 1,
    "paid": True,
    "weight": -0.0,
}


def put(url: str) -> list[str | None]:
    with inorder.connect(url) as qm:
        qm.create_queue("COPY")
        qm.put("Q", b"1", properties=GIVEN)
        qm.put("Q", b"2")
        qm.put("Q", b"3", properties={"colour": "blue", "order.count": 3})
    return texts(url, "Q")


def texts(url: str, queue: str) -> list[str | None]:
    with inorder.connect(url) as qm:
        return [message.properties.text for message in qm.browse(queue)]


def test_they_are_a_map_that_spark_can_ask_and_come_back_as_they_were(queues: SparkSession, url: str) -> None:
    wanted = put(url)
    rows = queues.read.format("inorder").option("queue", "Q").load(url)
    found = rows.where("properties['colour'].string = 'blue' AND properties['order.count'].long < 5").collect()
    assert [row.body for row in found] == [b"3"]
    rows.write.format("inorder").option("queue", "COPY").mode("append").save(url)
    assert texts(url, "COPY") == wanted
    plain = queues.createDataFrame([(b"4", "red")], "body binary, colour string")
    (
        plain.select("body", F.create_map(F.lit("colour"), "colour").alias("properties"))
        .write.format("inorder").option("queue", "COPY").mode("append").save(url)
    )  # fmt: skip
    assert texts(url, "COPY")[-1] == '{"colour":"red"}'


def test_an_archive_keeps_them_and_a_dump_says_that_it_cannot(queues: SparkSession, url: str, folder: Path) -> None:
    wanted = put(url)
    rows = queues.read.format("inorder").option("queue", "Q").load(url)
    rows.write.parquet(str(folder / "archive"))
    assert replay(queues, folder / "archive", url, "COPY", transaction="1").messages == 3
    assert texts(url, "COPY") == wanted
    with pytest.raises(QueueCondition, match="properties: the format cannot store them"):
        dump(queues, folder / "archive", folder / "texts")
    assert dump(queues, folder / "archive", folder / "texts", leave_out_properties=True) == 3
    with inorder.connect(url) as qm:
        qm.create_queue("LOADED")
    assert load(queues, folder / "texts", url, "LOADED", format="dmpmqmsg").messages == 3
    assert texts(url, "LOADED") == [None] * 3
    rows.drop("properties").write.parquet(str(folder / "old"))  # as before messages had them
    assert replay(queues, folder / "old", url, "LOADED", transaction="1").messages == 3
    assert texts(url, "LOADED") == [None] * 6
