"""The sink inside Spark: put once, in order, in groups; bad rows; and errors as a user sees them."""

from __future__ import annotations

import datetime
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - Spark's custom
from pyspark.sql.datasource import WriterCommitMessage

import inorder
import inorder.spark
from inorder import Flags, QueueCondition
from inorder.errors import StagingGone
from inorder.spark.options import sink_options
from inorder.spark.sink import RowStreamWriter, StreamWriter, TaskMessage

SECONDS_MAX = 240


def write(frame: DataFrame, url: str, mode: str = "append", **options: object) -> None:
    given = {"queue": "Q"} | {name: str(value) for name, value in options.items()}
    frame.write.format("inorder").options(**given).mode(mode).save(url)


def messages(url: str, queue: str = "Q") -> list[inorder.Message]:
    with inorder.connect(url) as qm:
        assert not qm.units()  # nothing is left staged
        return list(qm.browse(queue))


def bodies(url: str, queue: str = "Q") -> list[bytes]:
    return [message.body for message in messages(url, queue)]


def numbers(spark: SparkSession, count: int, partitions: int = 3) -> DataFrame:
    frame = spark.range(0, count, 1, partitions)
    return frame.select(F.format_string("%03d", "id").alias("body"), F.col("id"))


def test_a_data_frame_is_put_in_the_order_of_partitions_and_rows(queues: SparkSession, url: str) -> None:
    write(numbers(queues, 10).drop("id"), url)
    assert bodies(url) == [b"%03d" % n for n in range(10)]


def test_every_field_is_put_as_it_was_given(queues: SparkSession, url: str) -> None:
    when = datetime.datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=datetime.timezone.utc)
    given = [(b"b", 7, b"c", "MQSTR", when, True, "me", 60.0), (b"", None, None, None, None, None, None, None)]
    ddl = "body binary, priority int, correlation_id binary, format string, put_at timestamp, persistent boolean, "
    write(queues.createDataFrame(given, ddl + "user_identifier string, expiry double").coalesce(1), url)
    rich, plain = messages(url)
    assert (rich.body, rich.priority, rich.correlation_id) == (b"b", 7, b"c".ljust(24, b"\0"))
    assert (rich.format, rich.put_at, rich.persistent, rich.user_identifier) == ("MQSTR", when.timestamp(), True, "me")
    assert rich.expiry is not None
    assert 0 < rich.expiry <= 60
    assert (plain.body, plain.priority, plain.format, plain.persistent) == (b"", 0, "", True)
    assert plain.put_at > 0


def test_a_queue_can_be_copied_to_another(queues: SparkSession, url: str) -> None:
    with inorder.connect(url) as qm:
        qm.create_queue("COPY")
        with qm.group("Q") as group:
            group.put(b"1", priority=5)
            group.put(b"2", priority=5)
    source = queues.read.format("inorder").option("queue", "Q").load(url)
    write(source, url, queue="COPY")
    fields = "body priority message_id group_id sequence_number flags put_application_name".split()
    originals, copies = messages(url), messages(url, "COPY")
    assert [[getattr(one, name) for name in fields] for one in copies] == [
        [getattr(one, name) for name in fields] for one in originals
    ]
    assert [one.put_at for one in copies] == pytest.approx([one.put_at for one in originals], rel=0, abs=1e-6)


def test_order_and_groups_by_columns(queues: SparkSession, url: str) -> None:
    frame = numbers(queues, 9).withColumn("customer", F.concat(F.lit("c"), F.col("id") % 2))
    write(frame.withColumn("turn", -F.col("id")).drop("id"), url, orderBy="turn", groupBy="customer")
    found = messages(url)
    assert [message.body for message in found] == [b"%03d" % n for n in range(8, -1, -1)]
    even = [message for message in found if int(message.body) % 2 == 0]
    assert len({message.group_id for message in even}) == 1
    assert len({message.group_id for message in found}) == 2
    assert [message.sequence_number for message in even] == [1, 2, 3, 4, 5]
    assert [bool(message.flags & Flags.LAST_IN_GROUP) for message in even] == [False] * 4 + [True]


def test_a_body_above_the_queue_s_maximum_is_segmented(queues: SparkSession, url: str) -> None:
    with inorder.connect(url) as qm:
        qm.alter_queue("Q", max_length=32)
    write(queues.createDataFrame([("x" * 80,)], "body string"), url)
    assert [message.length for message in messages(url)] == [32, 32, 16]
    with inorder.connect(url) as qm:
        assert qm.get("Q", logical=True, complete=True).body == b"x" * 80


def test_a_transaction_is_put_once(queues: SparkSession, url: str) -> None:
    for _ in range(2):
        write(numbers(queues, 4).drop("id"), url, transaction="monday", application="load")
        assert len(bodies(url)) == 4
    write(numbers(queues, 4).drop("id"), url, transaction="tuesday", application="load")
    assert len(bodies(url)) == 8
    told = inorder.spark.transaction_time(url, "Q", "monday", "load")
    assert told is not None
    assert abs(told - datetime.datetime.now(datetime.timezone.utc)) < datetime.timedelta(minutes=5)
    assert inorder.spark.transaction_time(url, "Q", "monday", "other") is None


def test_a_transaction_without_rows_is_one_too(queues: SparkSession, url: str) -> None:
    write(numbers(queues, 0).drop("id"), url, transaction="empty")
    assert inorder.spark.transaction_time(url, "Q", "empty") is not None
    write(numbers(queues, 4).drop("id"), url, transaction="empty")
    assert bodies(url) == []


def bad_rows(spark: SparkSession) -> DataFrame:
    rows = [(b"good", 3), (None, 4), (b"below", -1), (b"above", 99)]
    return spark.createDataFrame(rows, "body binary, priority int").coalesce(1)


def test_a_bad_row_fails_the_batch_and_is_named(queues: SparkSession, url: str) -> None:
    with pytest.raises(
        PySparkException, match="row 2 of partition 0 is not a message: body is null; an empty one is good"
    ):
        write(bad_rows(queues), url)
    assert bodies(url) == []


def test_what_the_store_alone_can_see_is_told_with_the_rows(queues: SparkSession, url: str) -> None:
    rows = [(b"1234", 4, 2, b"g", 2)]
    ddl = "body binary, message_type int, flags int, group_id binary, original_length int"
    with pytest.raises(PySparkException, match=r"among rows 1 to 1 of partition 0: .*original_length"):
        write(queues.createDataFrame(rows, ddl).coalesce(1), url)
    assert bodies(url) == []


def test_bad_rows_go_to_the_queue_that_takes_them(queues: SparkSession, url: str) -> None:
    with inorder.connect(url) as qm:
        qm.create_queue("BAD")
    write(bad_rows(queues), url, badRows="queue:BAD")
    assert bodies(url) == [b"above", b"good"]
    told = [json.loads(body) for body in bodies(url, "BAD")]
    assert [(one["row_number"], one["error"]) for one in told] == [
        (2, "body is null; an empty one is good"),
        (3, "priority is -1, and must be 0 to 999,999,999"),
    ]
    assert told[1]["row"] == {"body": {"base64": "YmVsb3c="}, "priority": -1}


def test_sequence_numbers_of_the_caller_must_have_no_gap(queues: SparkSession, url: str) -> None:
    rows = [(b"1", b"g", 1, 8), (b"3", b"g", 3, 24)]
    frame = queues.createDataFrame(rows, "body binary, group_id binary, sequence_number int, flags int")
    with pytest.raises(PySparkException, match="after message 1 comes message 3"):
        write(frame, url)
    assert bodies(url) == []


def test_a_queue_that_is_full_takes_nothing(queues: SparkSession, url: str) -> None:
    with inorder.connect(url) as qm:
        qm.alter_queue("Q", max_depth=3)
    with pytest.raises(PySparkException, match="pass its limit of 3"):
        write(numbers(queues, 4).drop("id"), url)
    assert bodies(url) == []


def test_a_stream_is_put_batch_by_batch_and_each_once(queues: SparkSession, url: str, folder: Path) -> None:
    (folder / "in").mkdir()
    checkpoint = folder / "checkpoint"

    def run() -> None:
        source = queues.readStream.schema("body string").option("maxFilesPerTrigger", 1).json(str(folder / "in"))
        writer = source.writeStream.format("inorder").options(queue="Q", url=url)
        query = writer.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True).start()
        assert query.awaitTermination(SECONDS_MAX)

    for name in ("1", "2"):
        (folder / "in" / name).write_text(json.dumps({"body": name}))
    run()
    assert sorted(bodies(url)) == [b"1", b"2"]
    newest = max(
        (path for path in (checkpoint / "commits").iterdir() if path.name.isdigit()), key=lambda one: int(one.name)
    )
    newest.unlink()  # as if the driver had died between the sink's commit and Spark's own
    newest.with_name(f".{newest.name}.crc").unlink()
    run()
    assert sorted(bodies(url)) == [b"1", b"2"]
    (folder / "in" / "3").write_text(json.dumps({"body": "3"}))
    run()
    assert sorted(bodies(url)) == [b"1", b"2", b"3"]


Act = Callable[[SparkSession, str], object]


@pytest.mark.parametrize(
    ("act", "told"),
    [
        (lambda spark, url: write(numbers(spark, 1), url), "the column 'id' is not a field of a message"),
        (lambda spark, url: write(numbers(spark, 1).drop("id"), url, queue="QQ"), "no queue 'QQ'; did you mean Q"),
        (lambda spark, url: write(numbers(spark, 1).drop("id"), f"{url}.not"), "there is no store at"),
        (lambda spark, url: write(numbers(spark, 1).drop("id"), url, oderBy="id"), "'oderby'.*did you mean orderBy"),
        (lambda spark, url: write(numbers(spark, 1).drop("id"), url, orderBy="id"), "orderBy names a column 'id'"),
        (lambda spark, url: write(numbers(spark, 1).drop("id"), url, badRows="queue:NO"), "there is no queue 'NO'"),
        (lambda spark, url: write(numbers(spark, 1).drop("id"), url, mode="overwrite"), "the sink appends"),
        (lambda spark, url: write(numbers(spark, 1).drop("id"), url, stagingExpiry=1), "seconds from 60"),
    ],
)
def test_mistakes_are_told_with_the_remedy(queues: SparkSession, url: str, act: Act, told: str) -> None:
    with pytest.raises(PySparkException, match=told):
        act(queues, url)
    assert bodies(url) == []


# --- the writers as Spark calls them, call by call


def stream_writer(spark: SparkSession, url: str, kind: type[Any] = StreamWriter) -> Any:
    schema = spark.createDataFrame([], "body binary").schema
    return kind(sink_options({"url": url, "queue": "Q"}, "stream write"), schema)


def task(writer: Any, spark: SparkSession, *given: bytes, partition: int = 0) -> TaskMessage:
    """What a task of a query's batch tells; outside a task Spark's context has neither, so they are set here."""
    frame = spark.createDataFrame([(body,) for body in given], "body binary")
    told = writer.write(
        iter(frame.collect()) if isinstance(writer, RowStreamWriter) else iter(frame.toArrow().to_batches())
    )
    assert isinstance(told, TaskMessage)
    told.query, told.batch, told.partition = "query", "0", partition
    return told


@pytest.mark.parametrize("kind", [StreamWriter, RowStreamWriter])
def test_a_batch_that_comes_again_is_dropped(queues: SparkSession, url: str, kind: type[Any]) -> None:
    writer = stream_writer(queues, url, kind)
    for _ in range(2):
        second, first = task(writer, queues, b"2", partition=1), task(writer, queues, b"1")
        writer.commit([second, first], 0)
        assert bodies(url) == [b"1", b"2"]
    writer.commit([task(writer, queues, b"3")], 1)
    assert bodies(url) == [b"1", b"2", b"3"]


def test_a_task_that_never_reported_fails_the_commit(queues: SparkSession, url: str) -> None:
    writer = stream_writer(queues, url)
    told = task(writer, queues, b"1")
    with pytest.raises(QueueCondition, match="1 of 2 tasks did not say what they had staged: nothing was put"):
        writer.commit([told, None], 0)
    writer.abort([told, None], 0)
    writer.abort([told, None], 0)
    assert bodies(url) == []
    with pytest.raises(StagingGone):
        writer.commit([told], 0)


def test_losers_leave_nothing_that_is_put(queues: SparkSession, url: str) -> None:
    writer = stream_writer(queues, url)
    loser, winner = task(writer, queues, b"1"), task(writer, queues, b"1")
    writer.commit([winner], 0)
    with inorder.connect(url) as qm:
        assert [unit.kind for unit in qm.units()] == ["staging"]
    writer.abort([loser], 0)
    assert bodies(url) == [b"1"]


def test_a_spark_that_does_not_tell_the_query_is_refused(queues: SparkSession, url: str) -> None:
    writer = stream_writer(queues, url)
    told = task(writer, queues, b"1")
    told.query = ""
    with pytest.raises(inorder.OptionsError, match=r"PySpark 4\.3 or later, or foreachBatch"):
        writer.commit([told], 0)
    nothing: list[WriterCommitMessage | None] = []
    writer.commit(nothing, 0)
    writer.abort([told], 0)
    assert bodies(url) == []
