"""Both streams, call by call: offsets, limits, restarts, fencing, lost checkpoints."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pyspark.sql.streaming.datasource import ReadMaxBytes, ReadMaxFiles, ReadMaxRows, ReadMinRows
from tests.spark.calls import ALL, Make, as_logged, checkpoint_at, depth, put, put_group, read, taken, with_queues

import inorder
from inorder import GetOptions, QueueCondition
from inorder.client.bulk import BulkBrowser, ClaimReader
from inorder.errors import CheckpointLost, Fenced, InorderError, NotFound, OptionsError
from inorder.rules.ordering import UNSET
from inorder.spark import finish, release
from inorder.spark.opening import made_at


def make_anew(url: str) -> None:
    with inorder.connect(url) as qm:
        qm.delete_queue("Q", purge=True)
        qm.create_queue("Q")


# --- drain


def test_the_lag_counts_the_messages_not_yet_given_to_spark(url: str, drain: Make) -> None:
    put(url, *[b"x"] * 10)
    reader = drain()
    start = reader.initialOffset()
    assert reader.reportLatestOffset()["lag"] == 10
    first = reader.latestOffset(start, ReadMaxRows(4))
    told = reader.reportLatestOffset()
    assert {name: told[name] for name in first} == {**first, "size": 0}
    assert (told["lag"], told["claimed"], told["confirmed"], told["pending"]) == (6, 4, 0, 0)
    assert told["oldest"] >= 0
    assert read(reader, start, first) == [[b"x"] * 4]
    put(url, b"y")
    second = reader.latestOffset(first, ReadMaxRows(4))
    assert reader.reportLatestOffset()["lag"] == 3, "what is done, and what is taken ahead, is on the queue still"
    reader.commit(as_logged(first))
    read(reader, first, second)
    third = reader.latestOffset(second, ALL)
    assert (reader.reportLatestOffset()["lag"], reader.reportLatestOffset()["claim"]) == (0, third["claim"])


def test_the_initial_offset_changes_nothing(url: str, drain: Make) -> None:
    reader, twin = drain(), drain()
    end = reader.latestOffset(reader.initialOffset(), ALL)
    twin.initialOffset()
    assert reader.latestOffset(end, ALL) == end
    with inorder.connect(url) as qm:
        assert [one.epoch for one in qm.bulk.claims()] == [1]
        assert qm.inspect.status("Q").open_input_count == 1, "the twin has opened nothing that stays"


def test_each_kind_of_limit_is_obeyed(url: str, drain: Make) -> None:
    put(url, *[b"12345"] * 10)
    reader = drain(maxMessagesPerTrigger=2, maxBytesPerTrigger=5)
    assert reader.getDefaultReadLimit() == ReadMaxRows(2)
    assert drain(maxBytesPerTrigger=5).getDefaultReadLimit() == ReadMaxBytes(5)
    assert drain().getDefaultReadLimit() == ALL
    offset = reader.initialOffset()
    found = []
    for limit in (ReadMaxRows(2), ReadMaxBytes(2), ALL):
        following = reader.latestOffset(offset, limit)
        found.append(sum(map(len, read(reader, offset, following))))
        offset = following
    assert found == [1, 1, 8]
    for other in (ReadMinRows(5), ReadMaxFiles(5)):
        with pytest.raises(OptionsError, match="maxMessagesPerTrigger and maxBytesPerTrigger"):
            reader.latestOffset(offset, other)


def test_a_query_continues_from_a_checkpoint_of_0_1_0(url: str, drain: Make) -> None:
    put(url, b"1", b"2", b"3")
    with inorder.connect(url) as qm:
        written = {"queue": "Q", "application": "archive", "claim": 0, "made": made_at(qm, "Q"), "size": 0}
        earlier = ClaimReader(qm.open("Q", input="shared"), "archive")
        earlier.begin()
        earlier.claim(0, most=2)
        earlier.plan(0, 1)
    start, end = written | {"initial": True}, written | {"claim": 1, "size": 2}
    reader = drain()
    assert read(reader, start, end) == [[b"1", b"2"]]
    following = reader.latestOffset(as_logged(end), ALL)
    assert following == written | {"claim": 2, "size": 1}
    assert read(reader, end, following) == [[b"3"]]
    reader.commit(as_logged(following))
    assert depth(url) == 0


def test_a_batch_that_spark_logged_is_read_again_after_a_restart(url: str, drain: Make) -> None:
    put(url, *[b"%d" % n for n in range(7)])
    first = drain(partitions=3)
    start, end = taken(first)
    slices = read(first, start, end)
    assert [len(part) for part in slices] == [3, 3, 1]
    assert read(drain(partitions=3), start, end) == slices


@pytest.mark.parametrize("mode", ["drain", "browse"])
def test_rows_are_numbered_over_the_life_of_an_application(url: str, made: Make, mode: str) -> None:
    put(url, *[b"x"] * 7)
    reader = made(partitions=2, mode=mode, **({"application": "archive"} if mode == "drain" else {}))
    offset, found = reader.initialOffset(), []
    for _ in range(2):
        following = reader.latestOffset(offset, ReadMaxRows(4))
        for part in reader.partitions(offset, following):
            for batch in reader.read(part):
                found += batch.select(["claim", "delivery_number"]).to_pylist()
        offset = following
    assert [row["delivery_number"] for row in found] == list(range(1, 8))
    assert [row["claim"] for row in found] == ([1] * 4 + [2] * 3 if mode == "drain" else [None] * 7)


def test_groups_are_taken_whole_and_never_cut(url: str, drain: Make) -> None:
    put_group(url, b"a1", b"a2", b"a3")
    put(url, b"s")
    put_group(url, b"b1", b"b2")
    put(url, b"c1", flags=inorder.Flags.IN_GROUP, group_id=b"c", sequence_number=1)
    reader = drain(order="logical", completeGroups="true", partitions=8)
    start, first = taken(reader, ReadMaxRows(1))
    assert read(reader, start, first) == [[b"a1", b"a2", b"a3"]]
    second = reader.latestOffset(first, ALL)
    assert read(reader, first, second) == [[b"s"], [b"b1", b"b2"]]
    assert reader.latestOffset(second, ALL) == second
    assert depth(url) == 1


def test_a_later_start_ends_an_earlier_one(url: str, drain: Make) -> None:
    put(url, b"1")
    old = drain()
    start, end = taken(old)
    (part,) = old.partitions(start, end)
    new = drain()
    assert read(new, start, end) == [[b"1"]]
    for call in (
        lambda: old.latestOffset(end, ALL),
        lambda: old.partitions(start, end),
        lambda: old.commit(end),
        lambda: list(old.read(part)),
    ):
        with pytest.raises(Fenced, match="was started again after this reader"):
            call()
    new.commit(end)
    assert depth(url) == 0


def test_a_query_without_its_checkpoint_is_refused_until_its_claims_are_released(url: str, drain: Make) -> None:
    put(url, b"1", b"2")
    reader = drain()
    start, end = taken(reader, ReadMaxRows(1))
    reader.partitions(start, end)
    fresh = drain()
    with pytest.raises(CheckpointLost, match="release"):
        fresh.latestOffset(fresh.initialOffset(), ALL)
    assert release(url, "Q", "archive") == 1
    again = drain(allowNewCheckpoint="true")
    start = again.initialOffset()
    assert read(again, start, again.latestOffset(start, ALL)) == [[b"1", b"2"]]


@pytest.mark.parametrize("messages", [(), (b"1",)], ids=["first batch empty", "first batch full"])
def test_a_new_checkpoint_is_refused_once_an_earlier_one_has_a_batch(
    url: str, drain: Make, messages: tuple[bytes, ...]
) -> None:
    """Spark runs its first batch even without messages, so the sink then knows its number."""
    put(url, *messages)
    earlier = drain()
    start, end = taken(earlier)
    assert read(earlier, start, end) == [[body] for body in messages]
    assert earlier.latestOffset(as_logged(end), ALL) == end
    put(url, b"2")
    fresh = drain()
    with pytest.raises(CheckpointLost, match=r"write to a new output, and set option allowNewCheckpoint=true"):
        fresh.latestOffset(as_logged(fresh.initialOffset()), ALL)
    with inorder.connect(url) as qm:
        assert [one.epoch for one in qm.bulk.claims()] == [1], "the earlier query goes on"
    assert read(earlier, end, earlier.latestOffset(as_logged(end), ALL)) == [[b"2"]]


def test_an_option_allows_a_new_checkpoint(url: str, drain: Make) -> None:
    put(url, b"1")
    earlier = drain()
    earlier.commit(taken(earlier)[1])
    put(url, b"2")
    start, end = taken(drain(allowNewCheckpoint="true"))
    assert read(drain(), start, end) == [[b"2"]], "a batch that Spark has logged needs the option no more"
    assert drain().latestOffset(as_logged(end), ALL) == end


@pytest.mark.parametrize("is_read", [True, False], ids=["the sink reads it", "the sink passes over it"])
def test_an_empty_first_batch_stays_empty_over_restarts(url: str, drain: Make, is_read: bool) -> None:
    _, end = taken(drain())
    put(url, b"1")
    after_death = drain()
    if is_read:
        assert read(after_death, after_death.initialOffset(), end) == []
        assert read(after_death, after_death.initialOffset(), end) == [], "planned once more"
    after_death.commit(as_logged(end))
    assert read(after_death, end, after_death.latestOffset(as_logged(end), ALL)) == [[b"1"]]


def test_an_empty_first_batch_that_spark_never_logged_is_forgotten(url: str, drain: Make) -> None:
    taken(drain())
    put(url, b"1")
    after_death = drain()
    start, end = taken(after_death)
    assert read(after_death, start, end) == [[b"1"]]


def test_finish_accepts_a_checkpoint_with_only_an_empty_batch(url: str, drain: Make, folder: Path) -> None:
    _, end = taken(drain())
    put(url, b"1")
    assert finish(url, "Q", "archive", checkpoint_at(folder / "checkpoint", end)) == 0
    assert depth(url) == 1


def test_a_checkpoint_of_another_query_is_refused(url: str, made: Make, drain: Make) -> None:
    put(url, b"1")
    browsed = made().initialOffset()
    drained = drain().initialOffset()
    with pytest.raises(OptionsError, match="not from a stream that drains"):
        drain().latestOffset(browsed, ALL)
    with pytest.raises(OptionsError, match="not from a stream that browses"):
        made().latestOffset(drained, ALL)
    with pytest.raises(OptionsError, match=r"belongs to queue 'Q' and application 'archive'.*drains 'Q' as 'other'"):
        made(mode="drain", application="other").latestOffset(drained, ALL)
    assert depth(url) == 1


def test_an_alias_is_drained_and_finished_as_its_base_queue(url: str, drain: Make, folder: Path) -> None:
    with_queues(url, "A", type="alias", base_queue="Q")
    put(url, b"1")
    reader = drain(queue="A")
    start, end = taken(reader)
    assert read(reader, start, end) == [[b"1"]]
    assert finish(url, "A", "archive", checkpoint_at(folder / "checkpoint", end)) == 1
    assert drain(queue="A").initialOffset()["claim"] == end["claim"]


def test_finish_confirms_the_batches_in_spark_s_commit_log(url: str, drain: Make, folder: Path) -> None:
    put(url, b"1", b"2")
    reader = drain()
    start, end = taken(reader, ReadMaxRows(1))
    reader.partitions(start, end)
    unsure = checkpoint_at(folder / "unsure", end, committed=False)
    assert finish(url, "Q", "archive", unsure) == 0
    assert depth(url) == 2
    done = checkpoint_at(folder / "done", end)
    assert finish(url, "Q", "archive", done) == 1
    assert finish(url, "Q", "archive", done) == 0
    assert depth(url) == 1


def test_finish_refuses_a_folder_that_is_not_a_checkpoint_of_the_query(url: str, drain: Make, folder: Path) -> None:
    drain().latestOffset(drain().initialOffset(), ALL)
    with pytest.raises(OptionsError, match="is not a checkpoint of a streaming query"):
        finish(url, "Q", "archive", str(folder))
    other = checkpoint_at(folder / "other", drain().initialOffset() | {"application": "x"})
    with pytest.raises(OptionsError, match="did not drain queue 'Q' as 'archive'"):
        finish(url, "Q", "archive", other)
    (folder / "other/offsets/0").unlink()
    with pytest.raises(CheckpointLost, match="there are no offsets of it"):
        finish(url, "Q", "archive", other)
    with pytest.raises(NotFound):
        release(url, "Q", "nobody")


# --- browse


def test_a_browsing_stream_misses_nothing_and_repeats_nothing(url: str, made: Make) -> None:
    put(url, b"1", b"2", b"3")
    reader = made()
    start = reader.initialOffset()
    assert start == made().initialOffset()
    first = reader.latestOffset(start, ReadMaxRows(2))
    assert read(reader, start, first) == [[b"1", b"2"]]
    assert read(made(), start, first) == [[b"1", b"2"]]
    put(url, b"high", priority=9)
    after_restart = made()
    second = after_restart.latestOffset(as_logged(first), ALL)
    assert read(after_restart, first, second) == [[b"high"], [b"3"]]
    assert after_restart.latestOffset(second, ALL) == second
    assert read(after_restart, second, second) == []
    assert depth(url) == 4


def test_a_browsing_query_continues_from_a_checkpoint_of_0_1_0(url: str, made: Make) -> None:
    put(url, b"1", b"2")
    with inorder.connect(url) as qm, qm.open("Q", browse=True) as queue:
        browser = BulkBrowser(queue)
        found = browser.survey(GetOptions(read_order="strict"), most=1)
        first = browser.token(found.cursor)
        start = {"queue": "Q", "token": browser.token(UNSET), "shown": 0, "since": 0, "stretches": "[]"}
    end = start | {"token": first, "shown": 1, "stretches": json.dumps(found.stretches)}
    reader = made()
    assert read(reader, start, end) == [[b"1"]]
    following = reader.latestOffset(as_logged(end), ALL)
    assert following.keys() == end.keys()
    assert read(reader, end, following) == [[b"2"]]


def test_a_browsing_stream_stops_before_pending_messages(url: str, made: Make) -> None:
    with inorder.connect(url) as qm:
        qm.put("Q", b"1", syncpoint=True)
        put(url, b"2")
        reader = made()
        start = reader.initialOffset()
        assert reader.latestOffset(start, ALL) == start
        qm.commit()
        assert read(reader, start, reader.latestOffset(start, ALL)) == [[b"1", b"2"]]


def test_an_available_now_run_that_browses_ends(url: str, made: Make) -> None:
    put(url, b"1")
    reader = made()
    reader.prepareForTriggerAvailableNow()
    put(url, b"2")
    start, end = taken(reader)
    assert read(reader, start, end) == [[b"1"]]
    assert reader.latestOffset(end, ALL) == end


def test_a_browsing_checkpoint_is_refused_after_its_queue_was_recreated(url: str, made: Make) -> None:
    put(url, b"1")
    reader = made()
    start, end = taken(reader)
    parts = reader.partitions(start, end)
    reader.stop()
    make_anew(url)
    with pytest.raises(QueueCondition, match="deleted and created again"):
        made().latestOffset(end, ALL)
    with pytest.raises(QueueCondition, match="deleted and created again"):
        list(made().read(parts[0]))


def test_offsets_that_do_not_follow_each_other_are_refused(url: str, made: Make) -> None:
    put(url, b"1", b"2")
    reader = made()
    start, first = taken(reader, ReadMaxRows(1))
    second = reader.latestOffset(first, ALL)
    with pytest.raises(OptionsError, match="has lost an offset"):
        reader.partitions(start, second)


def test_an_unordered_queue_has_no_browsing_stream(url: str, made: Make) -> None:
    with_queues(url, "U", read_order="unordered")
    reader = made(queue="U")
    with pytest.raises(InorderError, match="unordered"):
        reader.latestOffset(reader.initialOffset(), ALL)


def test_a_recreated_queue_refuses_the_old_checkpoint_and_accepts_a_new_one(url: str, drain: Make) -> None:
    put(url, b"1")
    reader = drain()
    end = reader.latestOffset(reader.initialOffset(), ALL)
    reader.commit(end)
    reader.stop()
    make_anew(url)
    put(url, b"2")
    with pytest.raises(CheckpointLost, match="an earlier queue 'Q', which was deleted"):
        drain().latestOffset(end, ALL)
    fresh = drain()
    assert read(fresh, fresh.initialOffset(), fresh.latestOffset(fresh.initialOffset(), ALL)) == [[b"2"]]


def test_a_task_that_finds_another_store_at_its_path_is_refused(url: str, drain: Make, folder: Path) -> None:
    """As on another machine of a cluster, where the path names another file."""
    put(url, b"1")
    reader = drain()
    start = reader.initialOffset()
    (task,) = reader.partitions(start, reader.latestOffset(start, ALL))
    other = with_queues(folder / "other.db", "Q")
    with inorder.connect(other) as qm:
        there = ClaimReader(qm.open("Q", input="shared"), "archive")
        there.begin()
    ((source, part),) = task.parts
    task.parts = [(source._replace(url=other), part)]
    with pytest.raises(QueueCondition, match=r"leads to another queue Q .* run Spark there"):
        list(drain().read(task))
