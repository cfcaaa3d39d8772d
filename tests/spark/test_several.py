"""One query on several queues in several stores, call by call: offsets, shares, restarts, changing queues."""

from __future__ import annotations

import json
import pickle
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql.datasource import EqualTo, Filter, GreaterThan, In, InputPartition
from pyspark.sql.streaming.datasource import ReadMaxBytes, ReadMaxRows
from tests.spark.calls import ALL, as_logged, checkpoint_at, taken, with_queues

import inorder
from inorder.errors import (
    CheckpointLost,
    CheckpointTooOld,
    Fenced,
    ObjectInUse,
    OptionsError,
    StoreError,
    UnknownQueue,
    WrongQueueType,
)
from inorder.spark import finish, opening, release
from inorder.spark.opening import open_store
from inorder.spark.options import source_options
from inorder.spark.source import InorderSource
from inorder.spark.source_queues import SourceQueue, fair_shares, packed
from inorder.stores.engine.process import EnginePromises

Row = tuple[str, str, bytes]  # store, queue, body
Reader = Callable[..., Any]


def put(url: str, queue: str, *bodies: bytes) -> None:
    with inorder.connect(with_queues(url, queue)) as qm:
        qm.put_many(queue, bodies)


@pytest.fixture
def stores(tmp_path: Path) -> list[str]:
    """Two stores with the empty queues ORDERS.A and ORDERS.B, and OTHER, which the reader's pattern does not match."""
    return [with_queues(tmp_path / name, "ORDERS.A", "ORDERS.B", "OTHER") for name in ("one.db", "two.db")]


@pytest.fixture
def reader(stores: list[str]) -> Iterator[Reader]:
    made = []

    def make(**options: object) -> Any:
        given = {"url": json.dumps(stores), "queue": "ORDERS.*", "mode": "drain", "application": "archive"}
        source = InorderSource({name: str(value) for name, value in (given | options).items() if value is not None})
        made.append(source.streamReader(source.schema()))
        return made[-1]

    yield make
    for one in made:
        one.stop()


def read(reader: Any, start: Any, end: Any) -> list[list[Row]]:
    """The rows of each task; like a separate process, it has a copy of the reader."""
    parts = [pickle.loads(pickle.dumps(part)) for part in reader.partitions(as_logged(start), as_logged(end))]
    copy = pickle.loads(pickle.dumps(reader))
    return [rows_of(copy, part) for part in parts]


def rows_of(reader: Any, part: Any) -> list[Row]:
    return [
        (Path(row["store"]).stem, row["queue"], row["body"]) for batch in reader.read(part) for row in batch.to_pylist()
    ]


def drained(
    reader: Any, offset: Any = None, limit: Any = ALL, between: Callable[[], None] = lambda: None
) -> tuple[list[list[Row]], Any]:
    """Reads all micro-batches; returns their rows, and the last offset."""
    offset = reader.initialOffset() if offset is None else offset
    found: list[list[Row]] = []
    while (following := reader.latestOffset(as_logged(offset), limit)) != offset:
        if found:
            reader.commit(as_logged(offset))
        found.append([row for part in read(reader, offset, following) for row in part])
        offset = following
        if len(found) == 1:
            between()
    reader.commit(as_logged(offset))
    return found, offset


def depths(*urls: str) -> int:
    total = 0
    for url in urls:
        with inorder.connect(url) as qm:
            total += sum(one.depth for one in qm.inspect.overview())
    return total


# --- drain


def test_each_message_of_each_store_and_queue_is_read_once_in_its_order(stores: list[str], reader: Reader) -> None:
    one, two = stores
    put(one, "ORDERS.A", b"1", b"2")
    put(one, "ORDERS.B", b"3")
    put(two, "ORDERS.A", b"4")
    put(two, "OTHER", b"never")
    (batch,), offset = drained(reader(partitions=2))
    assert sorted(batch) == [
        ("one", "ORDERS.A", b"1"), ("one", "ORDERS.A", b"2"), ("one", "ORDERS.B", b"3"), ("two", "ORDERS.A", b"4"),
    ]  # fmt: skip
    assert depths(*stores) == 1
    assert all(one.keys() == {"claim", "size"} for one in offset["queues"].values())
    assert "one.db" not in json.dumps(offset), "a checkpoint contains no address"


def test_a_limit_is_shared_so_that_a_deep_queue_does_not_starve_the_others(stores: list[str], reader: Reader) -> None:
    put(stores[0], "ORDERS.A", *[b"deep"] * 50)
    put(stores[1], "ORDERS.B", *[b"low"] * 3)
    first, *others = drained(reader(), limit=ReadMaxRows(10))[0]
    assert Counter(body for _, _, body in first) == {b"deep": 7, b"low": 3}
    assert [len(one) for one in others] == [10, 10, 10, 10, 3]


def test_a_limit_below_the_number_of_queues_serves_them_in_turn(stores: list[str], reader: Reader) -> None:
    for url in stores:
        for name in ("ORDERS.A", "ORDERS.B"):
            put(url, name, b"x", b"y")
    batches, _ = drained(reader(), limit=ReadMaxRows(1))
    assert [len(one) for one in batches] == [1] * 8
    assert len({(store, queue) for batch in batches[:4] for store, queue, _ in batch}) == 4
    put(stores[0], "ORDERS.A", b"12345", b"12345")
    put(stores[1], "ORDERS.A", b"12345", b"12345")
    end = reader(allowNewCheckpoint="true")
    assert [len(one) for one in drained(end, limit=ReadMaxBytes(10))[0]] == [2, 2]


def test_a_limit_of_bytes_is_shared_according_to_the_previous_content_of_the_queues(
    stores: list[str], reader: Reader
) -> None:
    put(stores[0], "ORDERS.A", *[b"a deep one"] * 50)
    put(stores[1], "ORDERS.B", *[b"low"] * 3)
    one = reader()
    (first, second, *_), _ = drained(one, limit=ReadMaxBytes(100), between=lambda: put(stores[1], "ORDERS.B", b"low"))
    assert Counter(body for _, _, body in first) == {b"a deep one": 5, b"low": 3}
    assert Counter(body for _, _, body in second) == {b"a deep one": 9, b"low": 1}


def test_claims_that_spark_never_logged_are_given_again_and_logged_ones_read_again(
    stores: list[str], reader: Reader
) -> None:
    put(stores[0], "ORDERS.A", b"1", b"2")
    put(stores[1], "ORDERS.B", b"3")
    first = reader()
    start, end = taken(first)
    put(stores[0], "ORDERS.B", b"later")
    second = reader(partitions=3)
    again = second.latestOffset(start, ALL)
    assert {key: again["queues"][key] for key in end["queues"]} == end["queues"]
    before = read(second, start, again)
    third = reader(partitions=3)
    assert read(third, start, again) == before
    assert (second.reportLatestOffset()["redelivered"], third.reportLatestOffset()["redelivered"]) == (0, 4)
    third.commit(again)
    assert depths(*stores) == 0
    with pytest.raises(Fenced, match="was started again after this reader"):
        second.partitions(start, again)


def test_claims_that_may_not_be_on_disk_are_an_error_and_are_given_again(
    stores: list[str], reader: Reader, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(stores[0], "ORDERS.A", b"1")
    put(stores[0], "ORDERS.B", b"2")
    one = reader()
    start = one.initialOffset()

    def fail(self: EnginePromises) -> None:
        raise StoreError("the disk is gone")

    with monkeypatch.context() as patched:
        patched.setattr(EnginePromises, "keep", fail)
        with pytest.raises(StoreError, match="the disk is gone"):
            one.latestOffset(start, ALL)
    end = one.latestOffset(start, ALL)
    assert {entry["claim"] for entry in end["queues"].values()} == {1}
    assert sorted(body for part in read(one, start, end) for _, _, body in part) == [b"1", b"2"]


def test_queues_may_be_created_and_deleted_between_micro_batches(stores: list[str], reader: Reader) -> None:
    one = reader()
    put(stores[0], "ORDERS.A", b"1")
    _, offset = drained(one)
    with inorder.connect(stores[0]) as qm:
        qm.delete_queue("ORDERS.A")
    put(stores[0], "ORDERS.NEW", b"2")
    put(stores[0], "ORDERS.A", b"3")  # another queue of that name
    (batch,), end = drained(one, offset)
    assert sorted(body for _, _, body in batch) == [b"2", b"3"]
    assert len(end["queues"]) == 2
    assert offset["queues"].keys().isdisjoint(end["queues"])


def test_a_missing_queue_whose_messages_spark_needs_is_an_error(stores: list[str], reader: Reader) -> None:
    put(stores[0], "ORDERS.A", b"1")
    one = reader()
    start, end = taken(one)
    elsewhere = reader(url=json.dumps(stores[1:]))
    with pytest.raises(CheckpointLost, match=r"messages of queue 'ORDERS\.A', which was deleted, or whose store"):
        elsewhere.partitions(start, end)


@pytest.mark.parametrize("is_made_again", [False, True])
def test_a_plan_fails_if_its_queue_was_deleted_after_the_claim(
    stores: list[str], reader: Reader, *, is_made_again: bool
) -> None:
    put(stores[0], "ORDERS.A", b"1")
    one = reader()
    start, end = taken(one)
    with inorder.connect(stores[0]) as qm:
        qm.bulk.release_claims("ORDERS.A", "archive")
        qm.get("ORDERS.A")
        with pytest.raises(ObjectInUse):
            qm.delete_queue("ORDERS.A")
        one.stop()  # before this it cannot be deleted
        qm.delete_queue("ORDERS.A")
        if is_made_again:
            qm.create_queue("ORDERS.A")
    with pytest.raises(CheckpointLost, match=r"messages of queue 'ORDERS\.A', which was deleted, or whose store"):
        one.partitions(start, end)


def test_an_available_now_run_reads_no_message_put_after_its_preparation(stores: list[str], reader: Reader) -> None:
    put(stores[0], "ORDERS.A", b"1")
    one = reader()
    start = one.initialOffset()
    one.prepareForTriggerAvailableNow()
    put(stores[0], "ORDERS.A", b"2")
    put(stores[1], "ORDERS.B", b"3")
    put(stores[1], "ORDERS.C", b"4")
    assert drained(one, start)[0] == [[("one", "ORDERS.A", b"1")]]
    assert depths(*stores) == 3


def test_another_checkpoint_is_refused(stores: list[str], reader: Reader) -> None:
    put(stores[0], "ORDERS.A", b"1")
    old = reader()
    early = old.initialOffset()
    _, offset = drained(old, early)
    fresh = reader()
    with pytest.raises(CheckpointLost, match=r"has drained queue 'ORDERS\.A' before .* set option allowNewCheckpoint"):
        fresh.latestOffset(fresh.initialOffset(), ALL)
    put(stores[0], "ORDERS.A", b"2")
    with pytest.raises(CheckpointLost, match="has drained queue"):  # an old copy of the checkpoint
        fresh.latestOffset({name: one for name, one in early.items() if name != "initial"}, ALL)
    allowed = reader(allowNewCheckpoint="true")
    (batch,), later = drained(allowed)
    assert [body for _, _, body in batch] == [b"2"]
    with pytest.raises(CheckpointTooOld):
        allowed.latestOffset(offset, ALL)
    with pytest.raises(OptionsError, match="belongs to application 'archive', but this query drains as 'other'"):
        reader(application="other").latestOffset(later, ALL)
    with pytest.raises(OptionsError, match="not from a stream that drains several queues"):
        allowed.latestOffset({"queue": "ORDERS.A", "application": "archive", "claim": 1, "made": 1, "size": 1}, ALL)


def test_a_first_batch_without_messages_is_remembered(stores: list[str], reader: Reader) -> None:
    one = reader()
    start, end = taken(one)
    assert end != start
    assert one.partitions(start, as_logged(end)) == []
    put(stores[1], "ORDERS.B", b"1")
    (batch,), _ = drained(one, end)
    assert [body for _, _, body in batch] == [b"1"]
    fresh = reader()
    with pytest.raises(CheckpointLost):
        fresh.latestOffset(fresh.initialOffset(), ALL)


def test_the_queue_of_a_first_batch_without_messages_may_be_deleted(stores: list[str], reader: Reader) -> None:
    _, end = drained(reader())
    name = next(iter(end["queues"])).partition("@")[0]
    with inorder.connect(stores[0]) as qm:
        qm.delete_queue(name)
    put(stores[1], "ORDERS.B", b"1")
    (batch,), _ = drained(reader(), end)
    assert [body for _, _, body in batch] == [b"1"]


def test_the_lag_counts_the_waiting_messages_of_all_queues(stores: list[str], reader: Reader) -> None:
    put(stores[0], "ORDERS.A", *[b"x"] * 5)
    put(stores[1], "ORDERS.B", *[b"x"] * 2)
    put(stores[1], "OTHER", b"x")
    one = reader()
    assert (one.reportLatestOffset()["lag"], one.reportLatestOffset()["read"]) == (7, 4)
    one.latestOffset(one.initialOffset(), ReadMaxRows(4))
    assert one.reportLatestOffset()["lag"] == 3


def test_a_stopped_query_can_be_finished_or_released(stores: list[str], reader: Reader, tmp_path: Path) -> None:
    put(stores[0], "ORDERS.A", b"1", b"2")
    put(stores[0], "ORDERS.B", b"3")
    put(stores[1], "ORDERS.B", b"4", b"5", b"6")
    one = reader()
    start, end = taken(one)
    read(one, start, end)
    checkpoint = checkpoint_at(tmp_path / "checkpoint", end)
    both = json.dumps(stores)
    assert finish(stores[0], "ORDERS.A", "archive", checkpoint) == 2, "one queue"
    assert finish(stores[0], "ORDERS.*", "archive", checkpoint) == 1, "the rest of a store"
    assert finish(both, "ORDERS.*", "another", checkpoint) == 0, "the checkpoint is of another application"
    assert release(both, "ORDERS.A", "another") == 0, "it has no claims"
    assert depths(*stores) == 3
    assert release(both, "ORDERS.*", "archive") == 3
    with pytest.raises(CheckpointLost, match="knows claim 2, but the queue gave no more than 1"):
        finish(both, "ORDERS.*", "archive", checkpoint_at(tmp_path / "later", later(end)))


def later(end: Any) -> Any:
    """An offset that knows one more claim of each queue."""
    return end | {"queues": {key: one | {"claim": one["claim"] + 1} for key, one in end["queues"].items()}}


# --- browse


def test_a_stream_that_browses_shows_each_message_once(stores: list[str], reader: Reader) -> None:
    put(stores[0], "ORDERS.A", b"1", b"2", b"3")
    put(stores[1], "ORDERS.A", b"4")
    one = reader(mode="browse", application=None)
    batches, offset = drained(one, limit=ReadMaxRows(2))
    assert [len(batch) for batch in batches] == [2, 2]
    put(stores[1], "ORDERS.A", b"5")
    put(stores[1], "ORDERS.C", b"6")
    another = reader(mode="browse", application=None)
    more, _ = drained(another, as_logged(offset))
    assert sorted(body for batch in batches + more for _, _, body in batch) == [b"%d" % n for n in range(1, 7)]
    assert depths(*stores) == 6


def test_a_batch_reads_all_queues_in_as_many_tasks_as_asked(stores: list[str]) -> None:
    for number, url in enumerate(stores):
        put(url, "ORDERS.A", *[b"%d" % number] * 6)
        put(url, "ORDERS.B", b"%d" % number)
    given = {"paths": json.dumps(stores), "queue": "ORDERS.A,ORDERS.B", "partitions": "3"}
    source = InorderSource(given)
    batch = source.reader(source.schema())
    parts = batch.partitions()
    rows = [rows_of(batch, part) for part in parts]
    assert len(parts) == 3
    assert sum(map(len, rows)) == 14
    assert depths(*stores) == 14


def test_a_plan_of_a_batch_opens_each_store_once_and_checks_the_names_again(
    stores: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    source = InorderSource({"url": json.dumps(stores), "queue": "ORDERS.A,ORDERS.B"})
    schema = source.schema()
    opened: list[str] = []

    def open_and_note(url: str, application: str) -> inorder.QueueManager:
        opened.append(url)
        return open_store(url, application)

    monkeypatch.setattr(opening, "open_store", open_and_note)
    source.reader(schema).partitions()
    assert sorted(opened) == stores
    for url in stores:
        with inorder.connect(url) as qm:
            qm.delete_queue("ORDERS.A")
    with pytest.raises(UnknownQueue, match=r"no local queue of any of 2 stores is named ORDERS\.A; did you mean"):
        source.reader(schema).partitions()


def test_a_filter_on_store_or_queue_leaves_the_others_unread(
    stores: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    for url in stores:
        put(url, "ORDERS.A", b"a")
        put(url, "ORDERS.B", b"b")
    caplog.set_level("INFO", "inorder.spark.source")
    source = InorderSource({"url": json.dumps(stores), "queue": "ORDERS.*", "pushdown": "true", "partitions": "9"})
    for filters, left in (([EqualTo(("queue",), "ORDERS.A")], 2), ([In(("store",), (stores[1],))], 2)):
        batch: Any = source.reader(source.schema())
        others: list[Filter] = [GreaterThan(("put_at",), 1)]
        assert list(batch.pushFilters(filters + others)) == others
        assert "that Spark applies: GreaterThan(attribute=('put_at',)" in caplog.text
        parts = batch.partitions()
        assert len(parts) == left
        assert len([row for part in parts for row in rows_of(batch, part)]) == left


def test_a_limit_of_bytes_is_shared_among_queues_that_have_new_messages(stores: list[str], reader: Reader) -> None:
    for url in stores:
        put(url, "ORDERS.A", b"12345")
        put(url, "ORDERS.B", b"12345")
    one = reader(mode="browse", application=None)
    _, offset = drained(one)
    put(stores[1], "ORDERS.B", *[b"12345"] * 20)
    batches, _ = drained(one, offset, limit=ReadMaxBytes(100))
    assert len(batches) == 1, "the queues without news leave it all"


# --- options and the choice of queues


def test_a_pattern_leaves_out_system_dead_letter_transmission_and_alias_queues(
    stores: list[str], reader: Reader
) -> None:
    with inorder.connect(stores[0]) as qm:
        qm.create_queue("DEAD")
        qm.admin.alter_manager(dead_letter_queue="DEAD")
        qm.create_queue("SYSTEM.X")
        qm.create_queue("XMIT", usage="transmission")
        qm.create_queue("AN.ALIAS", type="alias", base_queue="OTHER")
        for name in ("DEAD", "SYSTEM.X"):
            qm.put(name, name.encode())
    assert drained(reader(queue="*"))[0] == [[]]
    assert drained(reader(queue="*,DEAD", application="b"))[0] == [[("one", "DEAD", b"DEAD")]]
    assert drained(reader(queue="SYSTEM.*", application="c"))[0] == [[("one", "SYSTEM.X", b"SYSTEM.X")]]
    with pytest.raises(WrongQueueType, match=r"AN\.ALIAS is not a local queue but of type alias: .* here OTHER"):
        reader(queue="AN.ALIAS,DEAD")


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (
            {"queue": "ORDERS.X,OTHER"},
            r"no local queue of any of 2 stores is named ORDERS\.X; did you mean .*ORDERS\.A",
        ),
        ({"queue": "NOTHING*"}, r"no local queue of any of 2 stores is named NOTHING\*"),
    ],
)
def test_a_name_that_no_store_has_is_refused_before_the_query_begins(
    reader: Reader, options: dict[str, str], told: str
) -> None:
    with pytest.raises(UnknownQueue, match=told):
        reader(**options)


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"queue": "A*B"}, r"option queue must be names of 1 to 48 characters .* not 'A\*B'"),
        ({"queue": "A,,B"}, "separated by commas"),
        ({"queue": "A,A"}, "option queue names 'A' 2 times"),
        ({"url": '["/a.db", "/a.db"]'}, "option url names '/a.db' 2 times"),
        ({"url": '["/a.db"'}, "a store, or a JSON list of stores"),
        ({"url": '["/a.db", ":memory:"]'}, "queue manager in memory exists in one process"),
        ({"queue": "A,B", "prefetch": "true"}, "option prefetch has no meaning for several queues"),
    ],
)
def test_wrong_lists_of_queues_and_stores_are_refused(given: dict[str, str], told: str) -> None:
    with pytest.raises(inorder.InorderError, match=told):
        source_options({"url": "/a.db", "queue": "Q", "mode": "drain", "application": "a"} | given, "stream read")


def test_a_store_and_its_copy_are_refused_together(stores: list[str], reader: Reader, tmp_path: Path) -> None:
    copy = str(tmp_path / "copy.db")
    with inorder.connect(stores[0]) as qm:
        qm.admin.backup(copy)
    with pytest.raises(OptionsError, match="names one store twice, or a store and its copy"):
        reader(url=json.dumps([stores[0], copy])).initialOffset()


# --- shares


def test_shares_are_equal_and_unused_parts_go_to_the_others() -> None:
    assert fair_shares({"a": 100, "b": 2, "c": 100}, 22, {}) == {"a": 10, "b": 2, "c": 10}
    assert fair_shares({"a": 5, "b": 5}, 2**62, {}) == {"a": 5, "b": 5}
    assert fair_shares({"a": 5, "b": 5, "c": 5}, 2, {"a": 1}) == {"b": 1, "c": 1}
    assert fair_shares({}, 2, {}) == {}


def test_a_thousand_parts_are_divided_evenly_and_always_the_same_way() -> None:
    sizes = {f"Q{number}": 1 + number % 7 for number in range(1000)}
    parts = [(SourceQueue("", name, 0), InputPartition(name), size) for name, size in sizes.items()]
    tasks = packed(parts, 8)
    loads = [sum(sizes[one.queue] for one, _ in task.parts) for task in tasks]
    assert len(tasks) == 8
    assert max(loads) - min(loads) <= 7
    assert [task.parts for task in packed(parts, 8)] == [task.parts for task in tasks]
