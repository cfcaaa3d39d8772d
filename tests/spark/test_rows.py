"""A data frame's columns as columns of messages: those that fit, those that are cast, and rows that are refused."""

from __future__ import annotations

import datetime
import math
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.types import ArrayType, DataType, IntegerType, MapType, StringType, StructType
from tests.spark.calls import schema

from inorder.arrow.columns import COLUMNS, chunks, kept
from inorder.errors import OptionsError
from inorder.rules.staged_columns import STAGED_COLUMNS
from inorder.spark.options import SinkOptions
from inorder.spark.rows import check_columns, judge
from inorder.spark.schema import fitted_schema

TEXT, NUMBERS = StringType(), ArrayType(IntegerType())


def sink(**more: Any) -> SinkOptions:
    return SinkOptions(stores=("/data/store.db",), queue="Q", **more)


def batch(**columns: pa.Array) -> pa.RecordBatch:
    given = {"body": pa.array([b"b"] * len(next(iter(columns.values()))))} | columns
    return pa.record_batch(list(given.values()), names=list(given))


def faults(given: pa.RecordBatch, **more: Any) -> list[tuple[int, str]]:
    return [(fault.row, fault.why) for fault in judge(given, sink(**more)).faults]


def properties(of: DataType, key: DataType = TEXT) -> StructType:
    return schema(body="binary", properties=MapType(key, of))


def test_the_columns_are_those_that_can_be_staged() -> None:
    assert set(COLUMNS) == set(STAGED_COLUMNS) - {"group_key", "order_key", "transmission"}


@pytest.mark.parametrize(
    "given",
    [
        schema(body="string", priority="byte"),
        schema(body="binary", expiry="float", delay="integer", put_at="timestamp", persistent="boolean"),
        properties(TEXT),
        properties(schema(string="string", long="long", double="double", boolean="boolean")),
        properties(schema(long="integer")),
        schema(queue="string", claim="long", number="long", group_position=schema(rank="integer"), body="binary"),
    ],
    ids=StructType.simpleString,
)
def test_columns_that_fit_are_accepted(given: StructType) -> None:
    check_columns(given, sink())


@pytest.mark.parametrize(
    ("given", "more", "told"),
    [
        (schema(text="string"), {}, r"the column 'text' is not a field of a message; drop it, .drop\('text'\)"),
        (schema(body="binary", priorty="integer"), {}, "did you mean priority"),
        (schema(priority="integer"), {}, "has no column 'body', it has priority: a message needs one. Name it so"),
        (schema(body=schema(a="integer")), {}, "is struct<a:int>, which a message's body cannot be: cast it to string"),
        (schema(body="binary", priority="string"), {}, "a message's priority cannot be: cast it to int"),
        (schema(body="binary", expiry="decimal(5,1)"), {}, "'expiry' is decimal"),
        (schema(body="binary", message_id="string"), {}, "make it binary: unhex"),
        (schema(body="binary", put_at="string"), {}, "cast it to timestamp"),
        (schema(body="binary", properties="string"), {}, "which a message's properties cannot be: make it a map"),
        (properties(TEXT, IntegerType()), {}, "make it a map of texts"),
        (properties(NUMBERS), {}, "make it a map of texts"),
        (properties(schema(colour="string")), {}, "make it a map of texts"),
        (schema(body="binary", persistent="integer"), {}, "cast it to boolean"),
        (schema(body="string", value="string"), {}, "it must be body, "),  # Kafka's columns, as the next two
        (schema(body="string", key="string"), {}, "it must be group_id, "),
        (schema(body="string", topic="string"), {}, "it must be left out"),
        (schema(body="binary", day="date"), {"order_by": "days"}, "orderBy names a column 'days'.*did you mean day"),
        (schema(body="binary"), {"group_by": "customer"}, "groupBy names a column 'customer'.*there are body"),
        (schema(body="binary", o=NUMBERS), {"order_by": "o"}, "'o' is array<int>, which cannot order or group"),
        (schema(body="binary", g="integer", group_id="binary"), {"group_by": "g"}, "already has group_id: drop it"),
    ],
)
def test_columns_that_do_not_fit_are_refused_with_the_remedy(
    given: StructType, more: dict[str, str], told: str
) -> None:
    with pytest.raises(OptionsError, match=told):
        check_columns(given, sink(**more))


def test_the_old_group_id_may_be_the_key_of_new_groups() -> None:
    again = {"group_by": "group_id", "order_by": "sequence_number"}
    check_columns(schema(body="binary", group_id="binary", sequence_number="integer"), sink(**again))
    judged = judge(batch(group_id=pa.array([b"g"]), sequence_number=pa.array([3]), flags=pa.array([9])), sink(**again))
    found = {name: column.to_pylist() for name, column in judged.columns.items()}
    assert found == {"body": [b"b"], "flags": [1], "group_key": [b"g"], "order_key": [3]}
    given = batch(g=pa.array([1, 1]), flags=pa.array([2, 6]))
    ((row, why),) = faults(given, group_by="g")
    assert (row, "joinSegments=true" in why) == (0, True)


BEFORE_1970 = datetime.datetime(1969, 1, 1, tzinfo=datetime.timezone.utc)


@pytest.mark.parametrize(
    ("name", "good", "bad", "told"),
    [
        ("priority", [0, 9, 10, 999_999_999, None], -1, "priority must be an integer from 0 to 999,999,999, not -1"),
        ("coded_character_set_id", [-4, 1208], -5, "-4 to 2,147,483,647"),
        ("message_type", [8, 4, 65536, None], 7, "message_type must be 1, 2, 4, 8, or 65,536 to 999,999,999"),
        (
            "expiry",
            [0.1, 60, math.inf, None],
            0.0,
            "expiry must be a number of seconds from 0.1 to 99,999,999.9, or infinity",
        ),
        ("expiry", [60], 2**53 + 1, "expiry must be a number of seconds from 0.1 to 99,999,999.9, or infinity"),
        ("report", [0], 4, "report must be a sum of report options, without activity reports (4), not 4"),
        ("put_at", [None], BEFORE_1970, "where it is a number, not '1969-01-01 00:00:00.000000Z'"),
        ("delay", [0.0, 5.5], -1.0, "seconds from 0 to"),
        ("format", ["", "MQSTR", "12345678"], "123456789", "at most 8 characters"),
        ("message_id", [b"", b"x" * 24], b"x" * 25, "bytes (at most 24)"),
    ],
)
def test_a_value_that_no_message_can_have_is_a_bad_row(name: str, good: list[Any], bad: Any, told: str) -> None:
    kind = pa.array([*good, bad]).type
    given = batch(**{name: pa.array([*good, bad], kind)})
    ((row, why),) = faults(given)
    assert row == len(good)
    assert told in why


STRUCT = pa.struct([("string", pa.string()), ("long", pa.int64())])


@pytest.mark.parametrize(
    ("kind", "value", "text"),
    [
        (pa.string(), "red", '"red"'),
        (pa.float64(), 3.0, "3.0"),
        (pa.bool_(), True, "true"),
        (pa.binary(), b"\0", '["00"]'),
        (pa.int64(), None, "null"),
        (STRUCT, {"string": "3", "long": None}, '"3"'),
        (STRUCT, {"string": None, "long": 2**60}, str(2**60)),
        (STRUCT, {"string": None, "long": None}, "null"),
    ],
    ids=str,
)
def test_properties_are_of_the_type_that_the_map_says(kind: pa.DataType, value: Any, text: str) -> None:
    given = batch(properties=pa.array([[("a", value)], None, []], pa.map_(pa.string(), kind)))
    judged = judge(given, sink())
    assert judged.columns["properties"].to_pylist() == [f'{{"a":{text}}}', None, None]
    assert [dict(one) for one in kept(judged)["properties"]][1:] == [{}, {}]
    assert not judged.faults


@pytest.mark.parametrize(
    ("kind", "pairs", "told"),
    [
        (pa.string(), [("1a", "x")], "the name of a property must be"),
        (pa.float64(), [("a", float("nan"))], "property 'a' must be a finite number"),
        (pa.int64(), [("a", 1), ("a.b", 2)], "does not continue another"),
        (pa.string(), [("a", "x" * 2**16)], "properties must be at most 65,536 bytes"),
        (STRUCT, [("a", {"string": "x", "long": 1})], "the property 'a' has several values: string, long"),
    ],
)
def test_properties_that_no_message_can_have_are_a_bad_row(kind: pa.DataType, pairs: list[Any], told: str) -> None:
    ((row, why),) = faults(batch(properties=pa.array([None, pairs], pa.map_(pa.string(), kind))))
    assert row == 1
    assert told in why


def test_a_body_must_not_be_null_and_may_be_empty() -> None:
    given = pa.record_batch([pa.array(["", None, "ü"])], names=["body"])
    assert faults(given) == [(1, "body must not be null; it may be empty")]
    assert judge(given, sink()).columns["body"].to_pylist() == [b"", None, "ü".encode()]


def test_a_request_needs_a_queue_for_the_reply() -> None:
    given = batch(message_type=pa.array([1, 1, 8, 1]), reply_to_queue=pa.array(["R", "", None, None]))
    assert [row for row, _ in faults(given)] == [1, 3]
    assert [row for row, _ in faults(batch(report=pa.array([0, 1, None])))] == [1]


def test_times_become_seconds_and_keys_become_values_that_a_store_can_sort() -> None:
    when = datetime.datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=datetime.timezone.utc)
    given = batch(put_at=pa.array([when]), day=pa.array([when.date()]), flag=pa.array([True]))
    columns = judge(given, sink(order_by="put_at", group_by="day")).columns
    assert columns["put_at"].to_pylist() == [when.timestamp()]
    assert columns["order_key"].to_pylist() == [round(when.timestamp() * 1e6)]
    assert columns["group_key"].to_pylist() == [(when.date() - datetime.date(1970, 1, 1)).days]
    assert judge(given, sink(order_by="flag")).columns["order_key"].to_pylist() == [1]
    ((row, why),) = faults(batch(weight=pa.array([1.5, float("nan")])), order_by="weight")
    assert (row, why) == (1, "weight is not a number (NaN), which cannot order or group messages")


def test_a_time_may_be_in_any_year_to_9999() -> None:
    years = [1970, 2255, 2256, 9999]
    whens = [datetime.datetime(year, 12, 31, 23, 59, 59, tzinfo=datetime.timezone.utc) for year in years]
    judged = judge(batch(put_at=pa.array(whens, pa.timestamp("us", "UTC"))), sink())
    assert (judged.faults, judged.columns["put_at"].to_pylist()) == ([], [when.timestamp() for when in whens])


def test_good_rows_are_kept_and_columns_of_nulls_are_left_out() -> None:
    given = batch(priority=pa.array([1, -1, 3]), format=pa.array([None, None, None], pa.string()))
    assert kept(judge(given, sink())) == {"body": [b"b", b"b"], "priority": [1, 3]}
    assert kept(judge(batch(priority=pa.array([-1])), sink())) == {}


def test_chunks_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    given = batch(priority=pa.array(range(10)))
    monkeypatch.setattr("inorder.arrow.columns.CHUNK_ROWS", 4)
    assert [chunk.num_rows for chunk in chunks(given)] == [4, 4, 2]
    monkeypatch.setattr("inorder.arrow.columns.CHUNK_BYTES", 1)
    assert [chunk.num_rows for chunk in chunks(given)] == [1] * 10
    assert not list(chunks(given.slice(0, 0)))


def test_a_schema_with_kafkas_columns_is_refused_with_ours() -> None:
    with pytest.raises(OptionsError, match="no column 'value'; it must be body, "):
        fitted_schema(schema(value="string"), "string")
