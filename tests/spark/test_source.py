"""The source: batches that browse, streams inside Spark, and errors as users see them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - Spark's custom
from pyspark.sql.datasource import EqualTo, Filter, GreaterThan, In, IsNotNull, IsNull
from pyspark.sql.types import StructType
from tests.helpers.support import until
from tests.spark.calls import depth, held, on, properties_on, put, put_properties, run_to_end, schema, with_queues
from tests.tiers import gate

import inorder
import inorder.spark
from inorder import Flags
from inorder.errors import InorderError, OptionsError
from inorder.spark.source import InorderSource

Start = Callable[[SparkSession, str], object]


def read(spark: SparkSession, url: str, **options: object) -> DataFrame:
    given = {"queue": "Q"} | {name: str(value) for name, value in options.items()}
    return spark.read.format("inorder").options(**given).load(url)


def bodies(frame: DataFrame) -> list[Any]:
    return [row.body for row in frame.select("body").collect()]


def stream(spark: SparkSession, url: str, folder: Path, **options: object) -> list[bytes]:
    """Runs a query once, to its end; returns the bodies in the sink by delivery number."""
    given = {"queue": "Q"} | {name: str(value) for name, value in options.items()}
    source = spark.readStream.format("inorder").options(**given).load(url)
    run_to_end(source, "parquet", folder, path=str(folder / "out"))
    return bodies(spark.read.parquet(str(folder / "out")).orderBy("delivery_number"))


# --- a batch read, call by call


def batch(url: str, *, chosen: StructType | None = None, **options: object) -> list[dict[str, Any]]:
    """The rows of all tasks, one task after the other."""
    source = InorderSource({"url": url, "queue": "Q"} | {name: str(value) for name, value in options.items()})
    reader = source.reader(chosen or source.schema())
    return [row for part in reader.partitions() for found in reader.read(part) for row in found.to_pylist()]  # type: ignore[union-attr]


def column(rows: list[dict[str, Any]], name: str = "body") -> list[Any]:
    return [row[name] for row in rows]


def test_a_batch_browses_in_the_order_of_the_queue(url: str) -> None:
    put(url, b"low 1", b"low 2", priority=1)
    put(url, b"high 1", b"high 2", priority=8)
    rows = batch(url)
    assert column(rows) == [b"high 1", b"high 2", b"low 1", b"low 2"]
    assert column(rows, "delivery_number") == [1, 2, 3, 4]
    assert batch(url, partitions=4) == rows
    assert depth(url) == 4


def test_a_batch_in_logical_order_has_groups_together_and_segments_joined(url: str) -> None:
    with inorder.connect(url) as qm, qm.open("Q", output=True) as a, qm.open("Q", output=True) as b, qm.unit_of_work():
        a.put(b"a1", flags=inorder.Flags.IN_GROUP, logical=True)
        b.put(b"b ", flags=inorder.Flags.SEGMENT, logical=True)
        a.put(b"a2", flags=inorder.Flags.LAST_IN_GROUP, logical=True)
        b.put(b"joined", flags=inorder.Flags.LAST_SEGMENT, logical=True)
    assert column(batch(url)) == [b"a1", b"b ", b"a2", b"joined"]
    assert column(batch(url, order="logical")) == [b"a1", b"a2", b"b ", b"joined"]
    joined = batch(url, order="logical", joinSegments="true", body="string")
    assert column(joined) == ["a1", "a2", "b joined"]
    heads = [tuple(head.values()) for head in column(joined, "group_position")]
    assert heads[0] == heads[1] < heads[2]


def test_a_strict_batch_ends_before_a_pending_message(url: str) -> None:
    assert batch(url) == []
    put(url, b"1")
    with inorder.connect(url) as qm:
        qm.put("Q", b"pending", syncpoint=True)
        put(url, b"2")
        assert column(batch(url)) == [b"1", b"2"]
        assert column(batch(url, readOrder="strict")) == [b"1"]


def test_columns_may_be_chosen_by_the_schema(url: str) -> None:
    put(url, b"1", priority=5)
    assert batch(url, chosen=schema(priority="integer", body="binary")) == [{"priority": 5, "body": b"1"}]
    for name, kind, told in (
        ("prio", "integer", "no column 'prio'; did you mean priority"),
        ("body", "string", "body is binary, not string: .*option body=string gives text"),
    ):
        with pytest.raises(OptionsError, match=told):
            batch(url, chosen=schema(**{name: kind}))


def test_a_pushed_filter_is_applied_and_one_on_the_length_is_left_to_spark(url: str) -> None:
    put(url, b"1", b"2", priority=3, correlation_id=b"c")
    put(url, b"3", priority=7, flags=Flags.IN_GROUP, group_id=b"g", sequence_number=2)
    taken: list[tuple[Filter, list[bytes]]] = [
        (GreaterThan(("priority",), 3), [b"3"]),
        (In(("priority",), (3, 4)), [b"1", b"2"]),
        (EqualTo(("correlation_id",), b"c".ljust(24, b"\0")), [b"1", b"2"]),
        (IsNull(("correlation_id",)), [b"3"]),
        (IsNotNull(("correlation_id",)), [b"1", b"2"]),
        (GreaterThan(("sequence_number",), 1), [b"3"]),
    ]
    for one, found in taken:
        source = InorderSource({"url": url, "queue": "Q", "pushdown": "true"})
        reader = source.reader(source.schema())
        left = EqualTo(("length",), 1)
        assert list(reader.pushFilters([one, left])) == [left]
        rows = [row for part in reader.partitions() for got in reader.read(part) for row in got.to_pylist()]  # type: ignore[union-attr]
        assert column(rows) == found


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"queue": "QQ"}, "there is no queue 'QQ'; did you mean Q?"),
        ({"url": "nowhere.db"}, "there is no store at .*create the queue manager first with"),
        ({"mode": "drain", "application": "a"}, "spark.read cannot drain a queue"),
    ],
)
def test_a_read_that_is_not_possible_is_refused_with_the_remedy(
    url: str, options: dict[str, object], told: str
) -> None:
    with pytest.raises(InorderError, match=told):
        batch(**{"url": url} | options)  # type: ignore[arg-type]


# --- inside Spark


def test_a_read_with_pushed_filters_gives_the_same_rows(queues: SparkSession, url: str) -> None:
    put(url, b"1", b"2", priority=3, correlation_id=b"c")
    put(url, b"3", priority=7)
    assert read(queues, url, partitions=2).schema == inorder.spark.spark_schema()
    wanted = bytearray(b"c".ljust(24, b"\0"))
    conditions = [F.col("priority").isin(3, 4), F.col("correlation_id") == F.lit(wanted), F.col("length") < 0]
    plain = [bodies(read(queues, url).where(condition)) for condition in conditions]
    assert plain == [[b"1", b"2"], [b"1", b"2"], []]
    with pytest.raises(PySparkException, match=r"filterPushdown\.enabled"):
        bodies(read(queues, url, pushdown="true"))
    queues.conf.set("spark.sql.python.filterPushdown.enabled", "true")
    try:
        assert [bodies(read(queues, url, pushdown="true").where(one)) for one in conditions] == plain
    finally:
        queues.conf.unset("spark.sql.python.filterPushdown.enabled")


def test_messages_taken_ahead_return_when_the_query_is_stopped(queues: SparkSession, url: str, folder: Path) -> None:
    put(url, *[b"%d" % n for n in range(6)])
    given = {"queue": "Q", "mode": "drain", "application": "a", "maxMessagesPerTrigger": "2"}
    writer = queues.readStream.format("inorder").options(**given).load(url).writeStream.format("noop")
    query = writer.option("checkpointLocation", str(folder / "checkpoint")).trigger(processingTime="1 hour").start()
    try:
        until(lambda: held(url) == [1, 2], "the second claim to be taken ahead")
    finally:
        query.stop()
    until(lambda: held(url) == [1], "the claim taken ahead to return after the stop")


@pytest.mark.parametrize("first", [0, 10], ids=["an empty batch", "ten messages"])
def test_a_new_checkpoint_loses_nothing_in_a_folder_that_was_written(
    queues: SparkSession, url: str, folder: Path, first: int
) -> None:
    """Spark's file sink silently skips a batch whose number the folder has."""
    drained = {"mode": "drain", "application": "a"}
    put(url, *[b"%d" % n for n in range(first)])
    assert len(stream(queues, url, folder, **drained)) == first
    put(url, *[b"later"] * 10)
    (folder / "checkpoint").rename(folder / "lost")
    with pytest.raises(PySparkException, match="allowNewCheckpoint=true"):
        stream(queues, url, folder, **drained)
    assert depth(url) == 10
    (folder / "out").rename(folder / "earlier")
    assert stream(queues, url, folder, **drained, allowNewCheckpoint="true") == [b"later"] * 10


def test_properties_are_a_map_that_spark_can_query_and_write_back_unchanged(queues: SparkSession, url: str) -> None:
    wanted = put_properties(url)
    rows = read(queues, url)
    found = rows.where("properties['colour'].string = 'blue' AND properties['order.count'].long < 5").collect()
    assert [row.body for row in found] == [b"3"]
    plain = queues.createDataFrame([(b"4", "red")], "body binary, colour string")
    for written in rows, plain.select("body", F.create_map(F.lit("colour"), "colour").alias("properties")):
        written.write.format("inorder").option("queue", "COPY").mode("append").save(url)
    assert properties_on(url, "COPY") == [*wanted, '{"colour":"red"}']


def test_a_view_of_sql_is_read_and_written_and_statements_that_cannot_work_are_refused(
    queues: SparkSession, url: str
) -> None:
    with_queues(url, "R")
    sql = queues.sql
    sql(f"CREATE OR REPLACE TEMPORARY VIEW orders USING inorder OPTIONS (url '{url}', queue 'Q')")
    sql("INSERT INTO orders (body, priority) VALUES (X'31', 3), (X'32', 5)")
    assert [row.priority for row in sql("SELECT priority FROM orders WHERE body = X'32'").collect()] == [5]
    with pytest.raises(PySparkException, match="the sink appends"):
        sql("INSERT OVERWRITE orders (body) VALUES (X'34')")
    with pytest.raises(PySparkException, match="Use CREATE TEMPORARY VIEW"):
        sql(f"CREATE TABLE orders_table USING inorder OPTIONS (url '{url}', queue 'Q')")
    sql("CREATE TABLE orders_table (body STRING, queue STRING) USING inorder")  # Spark does not call the source
    try:
        with pytest.raises(PySparkException, match="Use CREATE TEMPORARY VIEW"):
            sql("SELECT * FROM orders_table").collect()
        place = f"url = '{url}', queue = 'Q'"
        found = sql(f"SELECT body FROM orders_table WITH ({place}, body = 'string') ORDER BY body")
        assert found.collect() == [("1",), ("2",)]
        sql(f"INSERT INTO orders_table WITH ({place}, queueColumn = 'queue') VALUES ('3', 'R')")
    finally:
        sql("DROP TABLE orders_table")
    assert on(url, "R") == [b"3"]
    assert len(on(url)) == 2


@gate
@pytest.mark.parametrize(
    ("start", "told"),
    [
        (lambda spark, url: read(spark, url, queue="QQ"), "there is no queue 'QQ'; did you mean Q?"),
        (lambda spark, url: read(spark, url, mode="drain", application="a").count(), "spark.read cannot drain a queue"),
        (lambda spark, url: stream(spark, url, Path(f"{url}.out"), readOrder="relaxed"), "always strict"),
    ],
)
def test_mistakes_are_refused_with_the_remedy(queues: SparkSession, url: str, start: Start, told: str) -> None:
    with pytest.raises(PySparkException, match=told):
        start(queues, url)
