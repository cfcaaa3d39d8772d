"""The sink: puts once, in order, in groups; bad rows; errors as users see them. Most tests call it as Spark does."""

from __future__ import annotations

import datetime
import json
import math
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import WriterCommitMessage
from pyspark.sql.types import DoubleType, MapType, Row, StringType, StructType
from tests.spark.calls import on, schema, with_queues
from tests.tiers import gate

import inorder
import inorder.spark
from inorder import Feedback, QueueCondition, Report
from inorder.errors import CallerError, OptionsError, StagingGone
from inorder.spark.options import sink_options
from inorder.spark.sink import BatchWriter, RowStreamWriter, StreamWriter, TaskMessage

BODIES = schema(body="binary")
TO, TO_INT, TO_VOID = (schema(body="binary", to=kind) for kind in ("string", "integer", "void"))


def write(frame: DataFrame, url: str, mode: str = "append", **options: str) -> None:
    frame.write.format("inorder").options(queue="Q", **options).mode(mode).save(url)


def messages(url: str, queue: str = "Q") -> list[inorder.Message]:
    with inorder.connect(url) as qm:
        assert not qm.inspect.units()  # nothing is left staged
        return list(qm.browse(queue))


def row(spark: SparkSession, *more: str) -> DataFrame:
    return spark.range(1).selectExpr("'1' AS body", *more)


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


Act = Callable[[SparkSession, str], object]


@gate
@pytest.mark.parametrize(
    ("act", "told"),
    [
        (lambda spark, url: write(row(spark, "id"), url), "the column 'id' is not a field of a message"),
        (lambda spark, url: write(row(spark), url, badRows="queue:NO"), "there is no queue 'NO'"),
        (lambda spark, url: write(row(spark), url, mode="overwrite"), "the sink appends"),
    ],
)
def test_mistakes_are_refused_with_the_remedy(queues: SparkSession, url: str, act: Act, told: str) -> None:
    with pytest.raises(PySparkException, match=told):
        act(queues, url)
    assert on(url) == []


# --- the writers, call by call


def batch_writer(url: str, kinds: StructType = BODIES, **options: str) -> BatchWriter:
    return BatchWriter(sink_options({"url": url, "queue": "Q"} | options, "batch write"), kinds)


def stream_writer(url: str, kind: type[Any] = StreamWriter) -> Any:
    return kind(sink_options({"url": url, "queue": "Q"}, "stream write"), BODIES)


def task(writer: Any, *given: bytes, partition: int = 0) -> TaskMessage:
    """The message of a task, with the query and the batch, which Spark's context has only inside a task."""
    rows: Any = [Row(body=body) for body in given]
    if not isinstance(writer, RowStreamWriter):
        rows = [pa.record_batch({"body": pa.array(given, pa.binary())})]
    told = writer.write(iter(rows))
    assert isinstance(told, TaskMessage)
    told.query, told.batch, told.partition = "query", "0", partition
    return told


def test_a_transaction_is_put_once_even_without_rows(url: str) -> None:
    for name, given, depth in (("monday", b"1", 1), ("monday", b"2", 1), ("tuesday", b"3", 2)):
        writer = batch_writer(url, transaction=name, application="load")
        writer.commit([task(writer, given)])
        assert len(on(url)) == depth
    told = inorder.spark.transaction_time(url, "Q", "monday", "load")
    assert told is not None
    assert told.tzinfo is datetime.timezone.utc
    assert inorder.spark.transaction_time(url, "Q", "monday", "other") is None
    empty = batch_writer(url, transaction="empty", application="load")
    empty.commit([])
    assert inorder.spark.transaction_time(url, "Q", "empty", "load") is not None
    empty.commit([task(empty, b"4")])
    assert on(url) == [b"1", b"3"]


def test_a_message_that_asks_for_reports_is_put_and_its_arrival_is_reported(url: str) -> None:
    with_queues(url, "REPORTS")
    asked = int(Report.COA | Report.COD | Report.EXPIRATION)
    rows = pa.record_batch({"body": [b"1"], "report": [asked], "reply_to_queue": ["REPORTS"]})
    writer = batch_writer(url, schema(body="binary", report="integer", reply_to_queue="string"))
    writer.commit([writer.write(iter([rows]))])
    assert [(message.body, message.report) for message in messages(url)] == [(b"1", asked)]
    assert [message.feedback for message in messages(url, "REPORTS")] == [Feedback.COA]


PRIORITIES = schema(body="binary", priority="integer")
BAD = pa.record_batch({"body": pa.array([b"good", None, b"below", b"above"]), "priority": pa.array([3, 4, -1, 99])})


def test_a_bad_row_fails_the_batch_with_its_number_and_fault(url: str) -> None:
    with pytest.raises(
        CallerError, match=r"row 2 of partition 0 is not a message: body must not be null; it may be empty \(and 1 more"
    ):
        batch_writer(url, PRIORITIES).write(iter([BAD]))
    assert on(url) == []


def test_a_fault_found_only_by_the_store_is_reported_with_its_rows(url: str) -> None:
    given: dict[str, list[Any]] = {"body": [b"1234"], "message_type": [4], "flags": [2], "original_length": [2]}
    rows = pa.record_batch({**given, "group_id": [b"g"]})
    numbers = dict.fromkeys(("message_type", "flags", "original_length"), "integer")
    with pytest.raises(CallerError, match=r"among rows 1 to 1 of partition 0: .*original_length"):
        batch_writer(url, schema(body="binary", **numbers, group_id="binary")).write(iter([rows]))
    assert on(url) == []


def test_bad_rows_go_to_the_queue_for_bad_rows(url: str, caplog: pytest.LogCaptureFixture) -> None:
    with_queues(url, "BAD")
    writer = batch_writer(url, PRIORITIES, badRows="queue:BAD")
    writer.commit([writer.write(iter([BAD]))])
    assert on(url) == [b"above", b"good"]
    told = [json.loads(body) for body in on(url, "BAD")]
    assert [(one["row_number"], one["error"]) for one in told] == [
        (2, "body must not be null; it may be empty"),
        (3, "priority must be an integer from 0 to 999,999,999, not -1"),
    ]
    assert told[1]["row"] == {"body": {"base64": "YmVsb3c="}, "priority": -1}
    assert "1 messages on Q have a priority above 9, which counts as 9" in caplog.text
    assert "2 rows were not messages, and went to BAD" in caplog.text


def test_times_beyond_those_of_python_make_a_bad_row_that_shows_them(url: str) -> None:
    with_queues(url, "BAD")
    kinds = schema(body="string", put_at="timestamp", day="date")
    columns = {
        "put_at": pa.array([253_402_300_800_000_000], pa.timestamp("us", "UTC")),
        "day": pa.array([2_932_897], pa.date32()),
    }
    rows = pa.record_batch({"body": ["x"], **columns})
    with pytest.raises(CallerError, match=r"put_at must be .*, not '10000-01-01 00:00:00\.000000Z'"):
        batch_writer(url, kinds, orderBy="day").write(iter([rows]))
    writer = batch_writer(url, kinds, orderBy="day", badRows="queue:BAD")
    writer.commit([writer.write(iter([rows]))])
    [told] = map(json.loads, on(url, "BAD"))
    assert told["row"] == {"body": "x", "put_at": "10000-01-01 00:00:00.000000Z", "day": "10000-01-01"}


def test_a_bad_row_is_valid_json_even_with_infinite_numbers_and_nan(url: str) -> None:
    with_queues(url, "BAD")
    kinds = schema(body="string", at="double", properties=MapType(StringType(), DoubleType()))
    row = {
        "body": ["x"],
        "at": [math.nan],
        "properties": pa.array([[("low", -math.inf)]], pa.map_(pa.string(), pa.float64())),
    }
    writer = batch_writer(url, kinds, orderBy="at", badRows="queue:BAD")
    writer.commit([writer.write(iter([pa.record_batch(row)]))])
    [body] = on(url, "BAD")
    told = json.loads(body, parse_constant=pytest.fail)
    assert told["row"] == {"body": "x", "at": "nan", "properties": [["low", "-inf"]]}


def rows_for(*targets: str | None, prefix: str = "") -> pa.RecordBatch:
    """A row for each target, with its number in the body."""
    numbered = [f"{prefix}{number}".encode() for number in range(1, len(targets) + 1)]
    return pa.record_batch({"body": pa.array(numbered, pa.binary()), "to": pa.array(targets, pa.string())})


def test_each_row_goes_to_the_queue_that_its_column_names(url: str) -> None:
    with_queues(url, "A", "B", "BAD")
    with_queues(url, "MODEL", type="model")
    writer = batch_writer(url, TO, queueColumn="to", transaction="monday", badRows="queue:BAD")
    given = rows_for("A", "B", None, "A", "NOWHERE", "MODEL", "")
    writer.commit([writer.write(iter([given])), writer.write(iter([rows_for("B", prefix="second ")]))])
    assert [on(url, name) for name in ("A", "B", "Q")] == [[b"1", b"4"], [b"2", b"second 1"], [b"3"]]
    told = [json.loads(body) for body in on(url, "BAD")]
    assert [one["row_number"] for one in told] == [5, 6, 7]
    assert told[0]["error"].startswith("to names no queue to put on: there is no queue 'NOWHERE'")
    assert told[2]["error"] == "to names no queue to put on: it is empty, and only null means that of option queue"
    writer.commit([writer.write(iter([rows_for("Q", "A")]))])  # a repeat, whose rows name other queues
    assert [len(on(url, name)) for name in ("A", "B", "Q", "BAD")] == [2, 2, 1, 3]
    strict = batch_writer(url, TO, queueColumn="to")
    with pytest.raises(CallerError, match=r"row 2 of partition 0 is not a message: to names no queue .* 'NOWHERE'"):
        strict.write(iter([rows_for("A", "NOWHERE")]))
    assert on(url) == [b"3"]  # nothing is left staged


@pytest.mark.parametrize("options", [{"queueColumn": "to"}, {"badRows": "queue:A"}])
def test_a_transaction_name_used_by_another_write_on_one_of_the_queues_is_refused(
    url: str, options: dict[str, str]
) -> None:
    with_queues(url, "A")
    before = batch_writer(url, queue="A", transaction="monday")
    before.commit([task(before, b"before")])
    writer = batch_writer(url, TO if "queueColumn" in options else BODIES, transaction="monday", **options)
    given = rows_for("Q", "A") if "queueColumn" in options else pa.record_batch({"body": pa.array([b"1", None])})
    told = writer.write(iter([given]))
    with pytest.raises(OptionsError, match="has transaction monday on queue A, from a write whose option queue was"):
        writer.commit([told])
    writer.abort([told])
    assert (on(url), on(url, "A")) == ([], [b"before"])


def test_a_transaction_name_used_by_another_write_is_refused_for_a_remote_queue_too(url: str) -> None:
    with_queues(url, "A")
    with_queues(url, "PARIS", usage="transmission")
    with_queues(url, "FAR", type="remote", remote_queue="THERE", remote_manager="PARIS")
    for _ in range(2):
        one = batch_writer(url, TO, queue="A", queueColumn="to", transaction="monday")
        one.commit([one.write(iter([rows_for("A", "FAR")]))])
    other = batch_writer(url, TO, queueColumn="to", transaction="monday")
    told = other.write(iter([rows_for("Q", "FAR")]))
    with pytest.raises(OptionsError, match="has transaction monday on queue FAR, from a write whose option queue was"):
        other.commit([told])
    other.abort([told])
    assert [len(on(url, name)) for name in ("A", "PARIS", "Q")] == [1, 1, 0]


def test_groups_are_made_within_each_queue(url: str) -> None:
    with_queues(url, "A")
    kinds = schema(body="binary", to="string", k="string", n="integer")
    writer = batch_writer(url, kinds, queueColumn="to", groupBy="k", orderBy="n")
    given = {"body": [b"3", b"1", b"2"], "to": ["A", "A", "Q"], "k": ["x", "x", "x"], "n": [3, 1, 2]}
    writer.commit([writer.write(iter([pa.record_batch(given)]))])
    assert [(one.sequence_number, one.body) for one in messages(url, "A")] == [(1, b"1"), (2, b"3")]
    assert [(one.sequence_number, one.body) for one in messages(url)] == [(1, b"2")]


@pytest.mark.parametrize(
    ("kinds", "options", "told"),
    [
        (BODIES, {"queueColumn": "to"}, "option queueColumn names a column 'to', which the data frame does not have"),
        (TO_INT, {"queueColumn": "to"}, "option queueColumn names the column 'to', which is int: cast it to string"),
        (TO_VOID, {"queueColumn": "to"}, "option queueColumn names the column 'to', which is void: cast it to string"),
        (BODIES, {"queue": "A,B"}, "a write names one queue; for several, option queueColumn"),
        (BODIES, {"storeColumn": "at"}, "option storeColumn names a column 'at', which the data frame does not have"),
    ],
)
def test_several_queues_can_be_named_only_by_an_existing_string_column(
    url: str, kinds: StructType, options: dict[str, str], told: str
) -> None:
    with pytest.raises(OptionsError, match=told):
        batch_writer(url, kinds, **options)


@pytest.mark.parametrize("kind", [StreamWriter, RowStreamWriter])
def test_a_repeated_batch_is_dropped(url: str, kind: type[Any]) -> None:
    writer = stream_writer(url, kind)
    for _ in range(2):
        second, first = task(writer, b"2", partition=1), task(writer, b"1")
        writer.commit([second, first], 0)
        assert on(url) == [b"1", b"2"]
    writer.commit([task(writer, b"3")], 1)
    assert on(url) == [b"1", b"2", b"3"]


def test_a_task_that_never_reported_fails_the_commit(url: str) -> None:
    writer = stream_writer(url)
    told = task(writer, b"1")
    with pytest.raises(QueueCondition, match="1 of 2 tasks did not report their staged rows: nothing was put"):
        writer.commit([told, None], 0)
    writer.abort([told, None], 0)
    writer.abort([told, None], 0)
    assert on(url) == []
    with pytest.raises(StagingGone):
        writer.commit([told], 0)


def test_rows_of_a_losing_task_attempt_are_not_put(url: str) -> None:
    writer = stream_writer(url)
    loser, winner = task(writer, b"1"), task(writer, b"1")
    writer.commit([winner], 0)
    with inorder.connect(url) as qm:
        assert [unit.kind for unit in qm.inspect.units()] == ["staging"]
    writer.abort([loser], 0)
    assert on(url) == [b"1"]


def test_a_spark_that_does_not_name_the_query_is_refused(url: str) -> None:
    writer = stream_writer(url)
    told = task(writer, b"1")
    told.query = ""
    with pytest.raises(OptionsError, match=r"PySpark 4\.3 or later, or foreachBatch"):
        writer.commit([told], 0)
    nothing: list[WriterCommitMessage | None] = []
    writer.commit(nothing, 0)
    writer.abort([told], 0)
    assert on(url) == []
