"""Staged rows are invisible and limited, and they expire; the ledger makes sure that they are put once (spark 3)."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
from tests.helpers.staged import IN, KEY, LAST, LASTS, Writer, joined, key, letters, shape
from tests.helpers.support import drained, snapshot, told, waiting

from inorder import ArgumentError, CallerError, Flags, QueueManager, Reason, UnknownQueue, connect
from inorder.errors import Fenced, InconsistentCall, NotFound, NotOpenFor, QueueDeleted, StagingGone, UnitExists
from inorder.model.options import OpenOptions
from inorder.stores.seam.records import LedgerKey, Noted, Settled, Staged, StageRequest
from inorder.testing import ManualClock
from inorder.testing.stores import RestartableStore


@pytest.fixture
def writer(store: RestartableStore, qm: QueueManager) -> Writer:
    return Writer(store, qm)


def test_a_staged_row_cannot_be_found_by_its_unique_id(writer: Writer) -> None:
    writer.qm.put("Q", b"first")
    (first,) = writer.browsed()
    assert first.uid is not None
    writer.stage("one", letters("ab"))
    numbers = range(first.uid.number + 1, first.uid.number + 20)
    for number in numbers:
        with pytest.raises(NotFound):
            writer.qm.delete("Q", first.uid._replace(number=number))
    writer.settle("one")
    _, *staged = writer.browsed()
    assert [one.uid and one.uid.number in numbers for one in staged] == [True, True]


def test_a_settle_wakes_a_waiting_reader_and_notifies_a_listener(writer: Writer) -> None:
    reader = writer.qm.connect(program="reader")
    heard: list[bytes] = []
    writer.qm.listen("Q", lambda arrival: heard.append(arrival.message_id))
    call = waiting(reader, lambda: reader.get("Q", wait=600).body)
    writer.stage("one", letters("ab"))
    call.sleeps(reader)
    writer.settle("one")
    assert call.result() == b"a"
    told(writer.qm)
    assert len(heard) in (1, 2), "the reader may have taken the first one before"
    reader.close()


@pytest.mark.every_store
def test_an_operator_sees_a_staging_as_a_unit(writer: Writer, clock: ManualClock) -> None:
    writer.stage("one", letters("ab"))
    (unit,) = writer.qm.inspect.units()
    assert (unit.kind, unit.name, unit.queue, unit.program.name) == ("staging", "one", "Q", "test")
    assert (unit.started_at, unit.puts, unit.gets, unit.locks) == (clock.now(), 2, 0, 0)
    inspect = writer.qm.inspect
    assert (inspect.status("Q").uncommitted, inspect.order_view("Q").unresolved_puts) == (0, 0), "in nobody's way"


@pytest.mark.every_store
def test_a_staging_outlives_its_connection_and_a_restart(writer: Writer, store: RestartableStore) -> None:
    other = Writer(store, writer.qm.connect(program="other"))
    other.stage("one", letters("ab"), group_key=[1, 1])
    other.qm.close()
    store.restart()
    again = Writer(store, connect(store, program="again"))
    again.counts["one"] = 2
    assert [unit.puts for unit in again.qm.inspect.units()] == [2]
    assert again.settle("one").messages == 2
    assert shape(again) == [("a", 1, IN), ("b", 2, IN | LAST)]


def refused(writer: Writer, error: type[Exception], *names: str) -> None:
    before = snapshot(writer.qm)
    with pytest.raises(error):
        writer.settle(*names)
    assert snapshot(writer.qm) == before


@pytest.mark.every_store
def test_deleting_a_queue_deletes_its_stagings_and_its_ledger(writer: Writer) -> None:
    writer.qm.create_queue("R")
    handle = writer.handle("R")
    writer.put(letters("a"), queue="R")
    writer.stage("r", letters("ab"), queue="R")
    drained(writer.qm, "R")
    writer.qm.close_queue("R")
    writer.store.close(handle)
    writer.qm.delete_queue("R")
    assert writer.qm.inspect.units() == []
    refused(writer, StagingGone, "r")
    writer.qm.create_queue("R")
    assert writer.store.in_ledger("R", KEY) is None


def test_closing_a_temporary_queue_deletes_the_rows_staged_for_it(writer: Writer) -> None:
    writer.qm.create_queue("M", type="model", shareable=True, default_input="shared")
    made = writer.qm.open("M", output=True, dynamic_name="T")
    writer.stage("t", letters("ab"), queue="T")
    with pytest.raises(ArgumentError, match="row 1: persistent"):
        writer.stage("t", letters("ab"), queue="T", persistent=[False, True])
    made.close()
    assert writer.qm.inspect.units() == []
    with pytest.raises(QueueDeleted):
        writer.stage("t", letters("ab"), queue="T")


def test_a_staging_is_for_one_queue_that_is_open_for_output(writer: Writer) -> None:
    handle = writer.store.open(writer.qm.internals.owner, "Q", OpenOptions(browse=True)).handle
    with pytest.raises(NotOpenFor):
        writer.store.stage(StageRequest(handle, "one", 1, {"body": [b""]}, LASTS))
    writer.qm.create_queue("R")
    writer.stage("one", letters("a"))
    with pytest.raises(UnitExists):
        writer.stage("one", letters("b"), queue="R")
    writer.counts["one"] = 1
    assert writer.settle("one").messages == 1


@pytest.mark.parametrize("count", [0, 1, 3])
def test_a_missing_staging_or_one_with_another_count_fails_the_settle(writer: Writer, count: int) -> None:
    writer.stage("one", letters("ab"))
    refused(writer, StagingGone, "one", "two")
    writer.counts["one"] = count
    refused(writer, StagingGone, "one")
    writer.counts["one"] = 2
    assert writer.settle("one").messages == 2


@pytest.mark.every_store
def test_an_expired_staging_cannot_be_settled_whether_or_not_it_was_removed(writer: Writer, clock: ManualClock) -> None:
    writer.stage("one", letters("ab"), lasts=10.0)
    writer.stage("two", letters("c"), lasts=20.0)
    clock.advance(10.0)
    with pytest.raises(StagingGone, match="'one' does not exist"):
        writer.settle("one")
    assert [unit.name for unit in writer.qm.inspect.units()] == ["one", "two"], "nobody has tidied up"
    writer.store.discard_expired(1000)
    assert [unit.name for unit in writer.qm.inspect.units()] == ["two"]
    refused(writer, StagingGone, "one")
    assert writer.settle("two").messages == 1


@pytest.mark.parametrize("tidied", [False, True])
def test_each_request_extends_a_staging_and_one_after_its_expiry_starts_a_new_staging(
    writer: Writer, clock: ManualClock, tidied: bool
) -> None:
    for _ in range(2):
        for name in ("one", "kept"):
            writer.stage(name, letters("a"), lasts=10.0)
        clock.advance(9.0)
        writer.store.discard_expired(1000)
    assert writer.settle("kept", key=key(1)).messages == 2
    clock.advance(1.0)
    if tidied:
        writer.store.discard_expired(1000)
    writer.stage("one", letters("b"), lasts=10.0)
    refused(writer, StagingGone, "one")
    writer.counts["one"] = 1
    writer.settle("one")
    assert joined(writer) == "aab"


@pytest.mark.every_store
def test_a_second_settle_under_a_key_drops_what_is_staged(writer: Writer, clock: ManualClock) -> None:
    writer.put(letters("ab"))
    noted = writer.store.in_ledger("Q", KEY)
    assert noted == Noted(clock.now(), messages=2)
    clock.advance(1.0)
    writer.stage("again", letters("ab"))
    assert writer.settle("again") == Settled(already=True, messages=0)
    assert (joined(writer), writer.qm.inspect.units(), writer.store.in_ledger("Q", KEY)) == ("ab", [], noted)


def test_a_repeated_settle_needs_no_room_and_only_one_of_its_stagings(writer: Writer) -> None:
    writer.put(letters("ab"))
    refused(writer, StagingGone, "again")
    writer.qm.alter_queue("Q", put_allowed=False, max_depth=1)
    writer.stage("again", letters("ab"))
    writer.counts["again"] = 7
    assert writer.settle("again", "lost") == Settled(already=True, messages=0)


def test_another_key_is_another_batch(writer: Writer) -> None:
    writer.put(letters("a"))
    for other in (LedgerKey("app", "query", "1"), LedgerKey("app", "other", "0"), LedgerKey("b", "query", "0")):
        assert writer.put(letters("b"), key=other).messages == 1
    assert joined(writer) == "abbb"


def test_a_batch_without_a_name_is_not_recorded_in_the_ledger(writer: Writer) -> None:
    nobody = LedgerKey("", "", "")
    for _ in range(2):
        assert writer.put(letters("a"), key=nobody).messages == 1
    assert writer.store.in_ledger("Q", nobody) is None


@pytest.mark.every_store
@pytest.mark.parametrize(("query", "oldest"), [("query", 5), ("", 0)])
def test_the_ledger_keeps_only_the_newest_batches_of_a_streaming_query(
    writer: Writer, monkeypatch: pytest.MonkeyPatch, query: str, oldest: int
) -> None:
    monkeypatch.setattr("inorder.stores.engine.staging.LEDGER_BATCHES_MAX", 3)
    writer.put([], key=LedgerKey("app", "other", "x"))
    for batch in range(8):
        writer.put([], key=key(batch, query))
    noted = [batch for batch in range(8) if writer.store.in_ledger("Q", key(batch, query)) is not None]
    assert noted == list(range(oldest, 8))
    assert writer.store.in_ledger("Q", LedgerKey("app", "other", "x")) is not None


@pytest.mark.every_store
def test_the_last_batch_of_a_query_is_known(writer: Writer) -> None:
    last = writer.store.last_settled
    assert last("Q", "app", "query") == ""
    writer.put([], key=key(7, "query"))
    writer.put([], key=key(3, "query"))
    writer.put([], key=LedgerKey("app", "other", "x"))
    writer.qm.create_queue("A", type="alias", base_queue="Q")
    assert (last("Q", "app", "query"), last("A", "app", "query"), last("Q", "app", "other")) == ("3", "3", "x")
    with pytest.raises(UnknownQueue):
        last("NONE", "app", "query")


@pytest.mark.every_store
def test_only_one_of_two_writers_that_continue_after_the_same_batch_can_put(writer: Writer) -> None:
    settle = writer.store.settle_staging
    for name in ("first", "late", "again"):
        writer.stage(name, letters("ab"))
    assert settle(key(0, "query"), [Staged("first", 2)], "") == Settled(already=False, messages=2)
    with pytest.raises(
        Fenced, match="the last batch in the ledger is '0', but this writer continues after ''"
    ) as fenced:
        settle(key(1, "query"), [Staged("late", 2)], "")
    assert fenced.value.data == {"application": "app", "last": "0", "after": ""}
    assert [unit.name for unit in writer.qm.inspect.units()] == ["late", "again"]
    assert settle(key(0, "query"), [Staged("again", 2)], "") == Settled(already=True, messages=0), "it was this one"
    assert settle(key(1, "query"), [Staged("late", 2)], "0") == Settled(already=False, messages=2)
    assert joined(writer) == "abab"


def test_unchecked_sequence_numbers_are_kept_as_given(writer: Writer) -> None:
    given: dict[str, Any] = {
        "group_id": [b"g"] * 3,
        "sequence_number": [5, 2, 2],
        "flags": [IN] * 3,
        "body": letters("abc"),
    }
    writer.store.stage(StageRequest(writer.handle(), "as it is", 3, given, LASTS, checks_numbers=False))
    assert writer.store.settle_staging(KEY, [Staged("as it is", 3)]).messages == 3
    assert [(one.sequence_number, one.body) for one in writer.browsed()] == [(5, b"a"), (2, b"b"), (2, b"c")]
    writer.store.stage(StageRequest(writer.handle(), "both", 3, given, LASTS, checks_numbers=False))
    writer.store.stage(StageRequest(writer.handle(), "both", 3, given, LASTS))
    with pytest.raises(InconsistentCall):
        writer.store.settle_staging(key(1), [Staged("both", 6)])


SEGMENT = int(Flags.SEGMENT)
G = b"G".ljust(24, b"\0")


BAD_VALUES: list[tuple[str, dict[str, list[Any]], Reason, str]] = [
    ("body", {"body": [b"", None]}, Reason.ARGUMENT_ERROR, "row 1: body must be bytes"),
    ("priority bool", {"priority": [1, True]}, Reason.PRIORITY_ERROR, "row 1: priority .* not True"),
    ("expiry nan", {"expiry": [1.0, math.nan]}, Reason.EXPIRY_ERROR, "row 1: expiry"),
    ("request", {"message_type": [8, 1]}, Reason.MISSING_REPLY_TO_Q, "row 1: a request"),
    ("format surrogate", {"format": ["", "\ud800"]}, Reason.MD_ERROR, "row 1: format"),
    ("message_id", {"message_id": [b"x" * 25, None]}, Reason.MD_ERROR, "row 0: message_id must be bytes"),
    ("persistent", {"persistent": [True, 1]}, Reason.PERSISTENCE_ERROR, "row 1: persistent"),
    ("flags", {"flags": [32, 0]}, Reason.MSG_FLAGS_ERROR, "row 0: flags"),
    (
        "original_length",
        {"message_type": [8, 4], "original_length": [5, 0]},
        Reason.ORIGINAL_LENGTH_ERROR,
        "row 1: original_length",
    ),
    ("expiry", {"delay": [None, 5.0], "expiry": [1.0, 4.0]}, Reason.EXPIRY_ERROR, "row 1: expiry must be at least"),
    ("empty segment", {"flags": [0, SEGMENT], "body": [b"", b""]}, Reason.SEGMENT_LENGTH_ZERO, "row 1: only the last"),
    (
        "end of a segment",
        {"flags": [SEGMENT, 0], "offset": [999_999_999, 0]},
        Reason.OFFSET_ERROR,
        "row 0: offset must be at most 999,999,998, because the segment has 1 bytes",
    ),
    ("key of another type", {"group_key": [1, (1,)]}, Reason.ARGUMENT_ERROR, "row 1: group_key must be an int of 64"),
    ("key nan", {"order_key": [math.nan, 1]}, Reason.ARGUMENT_ERROR, "row 0: order_key"),
    ("key too large", {"order_key": [2**63, 1]}, Reason.ARGUMENT_ERROR, "row 0: order_key"),
    ("key bool", {"order_key": [1, True]}, Reason.ARGUMENT_ERROR, "row 1: order_key"),
    ("key surrogate", {"group_key": ["\ud800", None]}, Reason.ARGUMENT_ERROR, "row 0: group_key"),
    (
        "both groups",
        {"group_key": [None, 1], "group_id": [G, G]},
        Reason.ARGUMENT_ERROR,
        "row 1: group_id must be None",
    ),
    ("both flags", {"group_key": [1, 1], "flags": [1, IN]}, Reason.ARGUMENT_ERROR, "row 1: flags must be without"),
    ("both numbers", {"group_key": [1, 1], "sequence_number": [1, 2]}, Reason.ARGUMENT_ERROR, "row 1: sequence_number"),
    ("column", {"prioritty": [1, 1]}, Reason.ARGUMENT_ERROR, "did you mean priority"),
    ("length of a column", {"priority": [1]}, Reason.ARGUMENT_ERROR, "priority must be a column of 2 values, not 1"),
]


@pytest.mark.parametrize(("what", "columns", "reason", "text"), BAD_VALUES, ids=[line[0] for line in BAD_VALUES])
def test_a_bad_value_is_named_with_its_row(
    writer: Writer, what: str, columns: dict[str, Any], reason: Reason, text: str
) -> None:
    request = StageRequest(writer.handle(), "one", 2, {"body": letters("ab"), **columns}, LASTS)
    before = snapshot(writer.qm)
    with pytest.raises(CallerError, match=text) as raised:
        writer.store.stage(request)
    assert raised.value.reason == reason
    assert snapshot(writer.qm) == before


def staging(**change: Any) -> Callable[[Writer], object]:
    request = StageRequest(0, "one", 1, {"body": [b""]}, LASTS)._replace(**change)
    return lambda writer: writer.store.stage(request._replace(handle=writer.handle()))


def settling(key: LedgerKey, *stagings: Staged) -> Callable[[Writer], object]:
    return lambda writer: writer.store.settle_staging(key, list(stagings))


BAD_CALLS: list[tuple[Callable[[Writer], object], str]] = [
    (staging(name=""), "name"),
    (staging(count=-1), "count"),
    (staging(count=True), "count"),
    (staging(columns={"priority": [1]}), "columns"),
    (staging(lasts=0.0), "lasts"),
    (settling(LedgerKey("a", "q", 1)), "batch"),  # type: ignore[arg-type]
    (settling(LedgerKey(None, "q", "1")), "application"),  # type: ignore[arg-type]
    (settling(LedgerKey("a", "\ud800", "1")), "query"),
    (settling(KEY, Staged("", 1)), "stagings"),
    (settling(KEY, Staged("x", -1)), "stagings"),
    (settling(KEY, Staged("x", 1), Staged("x", 1)), "stagings"),
]


@pytest.mark.parametrize(("call", "argument"), BAD_CALLS, ids=[f"{n} {line[1]}" for n, line in enumerate(BAD_CALLS)])
def test_a_bad_call_names_its_argument(writer: Writer, call: Callable[[Writer], object], argument: str) -> None:
    with pytest.raises(ArgumentError) as raised:
        call(writer)
    assert raised.value.data["argument"] == argument
