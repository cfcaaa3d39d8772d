"""The source inside Spark: batches that browse, streams that browse and drain, and errors as a user sees them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - Spark's custom
from tests.support import until

import inorder
import inorder.bulk
import inorder.spark

SECONDS_MAX = 240
Start = Callable[[SparkSession, str], object]


def put(url: str, *bodies: bytes, **fields: Any) -> None:
    with inorder.connect(url) as qm:
        qm.put_many("Q", bodies, **fields)


def read(spark: SparkSession, url: str, **options: object) -> DataFrame:
    given = {"queue": "Q"} | {name: str(value) for name, value in options.items()}
    return spark.read.format("inorder").options(**given).load(url)


def bodies(frame: DataFrame) -> list[Any]:
    return [row.body for row in frame.select("body").collect()]


def stream(spark: SparkSession, url: str, folder: Path, **options: object) -> list[bytes]:
    """One run of a query to its end; what the sink has then, by delivery number."""
    given = {"queue": "Q"} | {name: str(value) for name, value in options.items()}
    source = spark.readStream.format("inorder").options(**given).load(url)
    writer = source.writeStream.format("parquet").option("checkpointLocation", str(folder / "checkpoint"))
    query = writer.trigger(availableNow=True).start(str(folder / "out"))
    assert query.awaitTermination(SECONDS_MAX)
    return bodies(spark.read.parquet(str(folder / "out")).orderBy("delivery_number"))


def streaming(spark: SparkSession, url: str, **options: str) -> None:
    source = spark.readStream.format("inorder").options(**{"queue": "Q"} | options).load(url)
    query = source.writeStream.format("noop").trigger(availableNow=True).start()
    try:
        query.awaitTermination(SECONDS_MAX)
    finally:
        query.stop()


def test_a_batch_browses_in_the_order_of_the_places(queues: SparkSession, url: str) -> None:
    put(url, b"low 1", b"low 2", priority=1)
    put(url, b"high 1", b"high 2", priority=8)
    frame = read(queues, url)
    assert bodies(frame) == [b"high 1", b"high 2", b"low 1", b"low 2"]
    assert frame.schema == inorder.spark.spark_schema()
    split = read(queues, url, partitions=4)
    assert split.rdd.getNumPartitions() == 4
    assert bodies(split) == bodies(frame)
    assert [row[0] for row in split.select("delivery_number").collect()] == [1, 2, 3, 4]
    with inorder.connect(url) as qm:
        assert qm.depth("Q") == 4


def test_a_batch_in_logical_order_has_groups_together_and_segments_joined(queues: SparkSession, url: str) -> None:
    with inorder.connect(url) as qm, qm.open("Q", output=True) as a, qm.open("Q", output=True) as b, qm.unit_of_work():
        a.put(b"a1", flags=inorder.Flags.IN_GROUP, logical=True)
        b.put(b"b ", flags=inorder.Flags.SEGMENT, logical=True)
        a.put(b"a2", flags=inorder.Flags.LAST_IN_GROUP, logical=True)
        b.put(b"joined", flags=inorder.Flags.LAST_SEGMENT, logical=True)
    assert bodies(read(queues, url)) == [b"a1", b"b ", b"a2", b"joined"]
    assert bodies(read(queues, url, order="logical")) == [b"a1", b"a2", b"b ", b"joined"]
    joined = read(queues, url, order="logical", joinSegments="true", body="string")
    assert bodies(joined) == ["a1", "a2", "b joined"]
    heads = [tuple(row[0]) for row in joined.select("group_position").collect()]
    assert heads[0] == heads[1] < heads[2]


def test_an_empty_queue_gives_no_rows(queues: SparkSession, url: str) -> None:
    assert bodies(read(queues, url)) == []


def test_a_strict_batch_ends_before_what_is_pending(queues: SparkSession, url: str) -> None:
    put(url, b"1")
    with inorder.connect(url) as qm:
        qm.put("Q", b"pending", syncpoint=True)
        put(url, b"2")
        assert bodies(read(queues, url)) == [b"1", b"2"]
        assert bodies(read(queues, url, readOrder="strict")) == [b"1"]


def test_columns_may_be_chosen_by_the_schema(queues: SparkSession, url: str) -> None:
    put(url, b"1", priority=5)
    reader = queues.read.format("inorder").option("queue", "Q")
    assert [tuple(row) for row in reader.schema("priority int, body binary").load(url).collect()] == [(5, b"1")]
    for schema, told in (
        ("prio int", "no column 'prio'; did you mean priority"),
        ("body string", "body is binary, not string: .*option body=string gives text"),
    ):
        with pytest.raises(PySparkException, match=told):
            reader.schema(schema).load(url).collect()


def test_filters_are_applied_before_rows_reach_spark(queues: SparkSession, url: str) -> None:
    put(url, b"1", b"2", priority=3, correlation_id=b"c")
    put(url, b"3", priority=7)
    wanted = bytearray(b"c".ljust(24, b"\0"))
    conditions = [F.col("priority") > 3, F.col("priority").isin(3, 4), F.col("correlation_id") == F.lit(wanted)]
    conditions += [F.col("correlation_id").isNull(), (F.col("priority") == 3) & (F.col("length") > 0)]
    plain = [bodies(read(queues, url).where(condition)) for condition in conditions]
    assert plain == [[b"3"], [b"1", b"2"], [b"1", b"2"], [b"3"], [b"1", b"2"]]
    with pytest.raises(PySparkException, match=r"filterPushdown\.enabled"):
        bodies(read(queues, url, pushdown="true"))
    queues.conf.set("spark.sql.python.filterPushdown.enabled", "true")
    try:
        assert [bodies(read(queues, url, pushdown="true").where(one)) for one in conditions] == plain
    finally:
        queues.conf.unset("spark.sql.python.filterPushdown.enabled")


def test_a_browsing_stream_goes_on_from_its_token(queues: SparkSession, url: str, folder: Path) -> None:
    put(url, b"1", b"2", b"3")
    assert stream(queues, url, folder, maxMessagesPerTrigger=2) == [b"1", b"2", b"3"]
    put(url, b"4")
    assert stream(queues, url, folder) == [b"1", b"2", b"3", b"4"]
    with inorder.connect(url) as qm:
        assert qm.depth("Q") == 4


def test_a_drain_goes_on_where_it_stopped_and_each_message_comes_once(
    queues: SparkSession, url: str, folder: Path
) -> None:
    drained = {"mode": "drain", "application": "archive", "partitions": 2}
    put(url, b"1", b"2", b"3")
    assert stream(queues, url, folder, maxMessagesPerTrigger=2, **drained) == [b"1", b"2", b"3"]
    put(url, b"4", b"5")
    assert stream(queues, url, folder, **drained) == [b"1", b"2", b"3", b"4", b"5"]
    with inorder.connect(url) as qm:
        (account,) = qm.claims()
        assert (qm.depth("Q"), account.settled, account.open, account.epoch) == (0, 3, None, 2)


def test_what_was_taken_ahead_returns_when_the_query_is_stopped(queues: SparkSession, url: str, folder: Path) -> None:
    put(url, *[b"%d" % n for n in range(6)])
    given = {"queue": "Q", "mode": "drain", "application": "a", "maxMessagesPerTrigger": "2"}
    writer = queues.readStream.format("inorder").options(**given).load(url).writeStream.format("noop")
    query = writer.option("checkpointLocation", str(folder / "checkpoint")).trigger(processingTime="1 hour").start()

    def held() -> list[int]:
        with inorder.connect(url) as qm:
            return [claim.number for one in qm.claims() for claim in one.held]

    try:
        until(lambda: held() == [1, 2], "the second claim to be taken ahead")
    finally:
        query.stop()
    until(lambda: held() == [1], "the claim taken ahead to return after the stop", 20)


def test_a_drain_by_whole_groups_leaves_what_is_not_all_there(queues: SparkSession, url: str, folder: Path) -> None:
    with inorder.connect(url) as qm, qm.group("Q") as group:
        group.put(b"a1")
        group.put(b"a2")
    put(url, b"b1", flags=inorder.Flags.IN_GROUP, group_id=b"b")
    whole = {"order": "logical", "completeGroups": "true", "maxMessagesPerTrigger": 1}
    assert stream(queues, url, folder, mode="drain", application="archive", **whole) == [b"a1", b"a2"]
    with inorder.connect(url) as qm:
        assert qm.depth("Q") == 1


def test_a_lost_checkpoint_and_a_release_as_a_user_sees_them(queues: SparkSession, url: str, folder: Path) -> None:
    put(url, b"1", b"2")
    drained = {"mode": "drain", "application": "archive"}
    with inorder.connect(url) as qm, qm.open("Q", input="shared") as queue:
        reader = inorder.bulk.ClaimReader(queue, "archive")
        reader.begin()
        reader.claim(0)
        reader.plan(0, 1)
    with pytest.raises(PySparkException, match="release_claims, returns the messages of the open claim"):
        stream(queues, url, folder / "fresh", **drained)
    inorder.spark.release(url, "Q", "archive")
    assert stream(queues, url, folder / "again", **drained) == [b"1", b"2"]
    checkpoint = str(folder / "again" / "checkpoint")
    assert inorder.spark.finish(url, "Q", "archive", checkpoint) == 0


def test_a_second_query_under_one_application_ends_the_first(queues: SparkSession, url: str, folder: Path) -> None:
    drained = {"mode": "drain", "application": "archive", "queue": "Q"}
    source = queues.readStream.format("inorder").options(**drained).load(url)
    writer = source.writeStream.format("parquet").option("checkpointLocation", str(folder / "first"))
    first = writer.start(str(folder / "first out"))
    try:
        first.processAllAvailable()
        streaming(queues, url, **drained)
        put(url, b"1")
        with pytest.raises(PySparkException, match="was started again after this reader"):
            first.awaitTermination(SECONDS_MAX)
    finally:
        first.stop()
    assert stream(queues, url, folder, mode="drain", application="archive") == [b"1"]


@pytest.mark.parametrize(
    ("start", "told"),
    [
        (lambda spark, url: read(spark, url, queue="QQ"), "there is no queue 'QQ'; did you mean Q?"),
        (lambda spark, url: read(spark, f"{url}.not"), "there is no store at .*make the queue manager first with"),
        (lambda spark, url: read(spark, ":memory:"), "lives in one process"),
        (lambda spark, url: read(spark, url, partition=3), "no option 'partition' for a batch read; did you mean part"),
        (lambda spark, url: read(spark, url, partitions=0), "option partitions must be an integer from 1 to 10,000"),
        (lambda spark, url: read(spark, url, mode="drain", application="a").count(), "spark.read cannot drain a queue"),
        (lambda spark, url: read(spark, url, mode="drain"), "mode=drain needs option application"),
        (lambda spark, url: read(spark, url, maxMessagesPerTrigger=3).count(), "a batch read takes all that is there"),
        (lambda spark, url: streaming(spark, url, mode="drain"), "mode=drain needs option application"),
        (lambda spark, url: streaming(spark, url, readOrder="relaxed"), "always strict"),
    ],
)
def test_mistakes_are_told_with_the_remedy(queues: SparkSession, url: str, start: Start, told: str) -> None:
    with pytest.raises(PySparkException, match=told):
        start(queues, url)


def test_a_file_that_is_no_store_is_left_as_it_is(queues: SparkSession, folder: Path) -> None:
    foreign = folder / "notes.txt"
    foreign.write_text("not a store, and long enough to have a header of its own")
    with pytest.raises(PySparkException, match=r"9014|not an inorder store|STORE_FOREIGN"):
        read(queues, str(foreign))
    assert foreign.read_text().startswith("not a store")


def test_a_body_that_is_no_text_is_named_to_the_user(queues: SparkSession, url: str) -> None:
    put(url, b"\xff")
    with pytest.raises(PySparkException, match="is not UTF-8: byte 0xff at 0"):
        bodies(read(queues, url, body="string"))
