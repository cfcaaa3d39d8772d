"""Staging: rows stay outside their queue until one settle puts them all, in order, in groups, once (spark 3).

`tests/scenarios/staging.txt` has the cases that fit into a table.
"""

from __future__ import annotations

import math
from typing import Any

import pytest
from tests.helpers.staged import IN, LAST, Writer, joined, key, letters, shape
from tests.helpers.support import bodies, drained, snapshot

from inorder import Flags, Message, MessageType, QueueManager, Reason, connect
from inorder.errors import ArgumentError, InconsistentCall, MessageTooBig, QueueFull
from inorder.model.attributes import OrderRule
from inorder.model.fields import LATER, Transmission
from inorder.rules.puts import make_id
from inorder.rules.staged_columns import STAGED_COLUMNS
from inorder.stores.seam.records import Settled
from inorder.testing import ManualClock
from inorder.testing.stores import RestartableStore

SEGMENT, LAST_SEGMENT = int(Flags.SEGMENT), int(Flags.LAST_SEGMENT)
G = b"G".ljust(24, b"\0")
H = b"H".ljust(24, b"\0")


@pytest.fixture
def writer(store: RestartableStore, qm: QueueManager) -> Writer:
    return Writer(store, qm)


# ---- the put


ORDERS = [
    ("partition, then row", [("abc", None), ("de", None)], "abcde"),
    ("the order of the call", [("de", None), ("abc", None)], "deabc"),
    ("an order key over all", [("abc", [3, 1, 5]), ("de", [2, 4])], "bdaec"),
    ("equal keys by partition and row", [("abc", [2, 1, 1]), ("de", [1, 1])], "bcdea"),
    ("null first", [("abc", [1, None, 0]), ("de", [None, -1])], "bdeca"),
    ("numbers before texts before bytes", [("abc", ["x", b"", 2]), ("de", [1.5, ""])], "dceab"),
    ("texts by code point", [("abcd", ["é", "z", "Z", "\U0001f600"])], "cbad"),
    ("numbers as numbers", [("abcd", [2**53 + 1, float(2**53), -0.5, -math.inf])], "dcba"),
    ("a partition without keys", [("abc", None), ("de", [-1, 1])], "abcde"),
]


@pytest.mark.every_store
@pytest.mark.parametrize(("what", "stagings", "expected"), ORDERS, ids=[line[0] for line in ORDERS])
def test_staged_rows_are_put_in_the_order_of_their_keys_partitions_and_rows(
    writer: Writer, what: str, stagings: list[tuple[str, list[Any] | None]], expected: str
) -> None:
    for n, (text, keys) in enumerate(stagings):
        columns: dict[str, Any] = {} if keys is None else {"order_key": keys}
        writer.stage(f"{n}", letters(text), **columns)
    writer.settle(*(f"{n}" for n in range(len(stagings))))
    assert joined(writer) == expected


NUMBERS = [("put", [(2, 0), (3, 0), (4, 0), (5, 0)]), ("prepare", [(2, 0), (2, 1), (2, 2), (2, 3)])]


@pytest.mark.parametrize(("order", "expected"), [*NUMBERS, ("commit", NUMBERS[1][1])])
@pytest.mark.parametrize("columns", [{}, {"order_key": [1, 2]}, {"group_key": [1, None]}], ids=str)
def test_staged_messages_draw_a_number_each_or_one_for_all_by_the_order_of_the_queue(
    writer: Writer, order: OrderRule, expected: list[tuple[int, int]], columns: dict[str, Any]
) -> None:
    writer.qm.alter_queue("Q", order=order)
    writer.qm.put("Q", b"before")
    writer.stage("1", letters("ab"), **columns)
    writer.stage("2", letters("cd"), **columns)
    writer.settle("1", "2")
    writer.qm.put("Q", b"after")
    places = [message.place for message in writer.browsed()]
    assert [place and place[1:] for place in places] == [(1, 0), *expected, (expected[-1][0] + 1, 0)]


BY_PRIORITY = [({}, "cdab"), ({"delivery": "fifo"}, "abcd"), ({"index_type": "group_id"}, "cdab")]


@pytest.mark.parametrize(("attributes", "expected"), BY_PRIORITY, ids=str)
def test_the_attributes_of_the_queue_at_the_settle_decide_the_place_by_priority(
    writer: Writer, attributes: dict[str, Any], expected: str
) -> None:
    writer.stage("one", letters("abcd"), priority=[0, None, 9, 12])
    writer.qm.alter_queue("Q", **attributes)
    writer.settle("one")
    ranks = [message.place[0] for message in writer.browsed() if message.place]
    assert ranks == sorted(ranks)
    assert sorted(message.priority or 0 for message in writer.browsed()) == [0, 0, 9, 12]
    assert joined(writer) == expected


def test_a_group_head_of_low_priority_is_placed_as_priority_2_where_groups_are_indexed(writer: Writer) -> None:
    writer.qm.alter_queue("Q", index_type="group_id")
    writer.put(letters("ab"), group_key=[1, 1], priority=[0, 0])
    assert [message.place and message.place.rank for message in writer.browsed()] == [-2, 0]


def test_an_empty_settle_or_undo_changes_nothing(writer: Writer) -> None:
    before = snapshot(writer.qm)
    assert writer.settle() == Settled(already=False, messages=0)
    assert writer.store.undo_staging([]) == 0
    assert snapshot(writer.qm) == before


# ---- the messages


def test_values_that_are_not_given_are_the_same_as_in_a_put(writer: Writer, clock: ManualClock) -> None:
    writer.qm.alter_queue("Q", default_priority=3, expiry=50.0)
    writer.put([b"staged"])
    writer.qm.put("Q", b"put")
    staged, put = (dict(message.fields()) for message in writer.browsed())
    differ = {name for name in staged if staged[name] != put[name]}
    assert differ == {"body", "length", "message_id", "token", "uid", "place"}


def test_the_original_lengths_are_as_in_a_put(writer: Writer) -> None:
    """R1.12: a segment has the length of its own data; a report keeps the length that it was given."""
    rows: dict[str, Any] = {
        "message_type": [8, 8, 4],
        "flags": [int(Flags.SEGMENT), 0, int(Flags.SEGMENT)],
        "group_id": [G, None, b"H".ljust(24, b"\0")],
        "original_length": [3, 3, 9],
    }
    writer.put([b"12345"] * 3, **rows)
    assert [one.original_length for one in writer.browsed()] == [5, -1, 9]


def test_the_default_expiry_may_not_end_before_the_delay(writer: Writer) -> None:
    writer.qm.alter_queue("Q", expiry=4.0)
    with pytest.raises(ArgumentError, match="row 1: delay must be at most 4 seconds"):
        writer.put([b"1", b"2"], delay=[4.0, 5.0])


EVERYTHING: dict[str, Any] = {
    "report": 64, "message_type": 2, "expiry": 30.0, "feedback": 7, "encoding": 273, "coded_character_set_id": 819,
    "format": "MQSTR", "priority": 8, "persistent": False, "message_id": b"M" * 24, "correlation_id": b"C" * 24,
    "reply_to_queue": "R", "reply_to_queue_manager": "QM", "user_identifier": "user", "accounting_token": b"A" * 32,
    "application_identity_data": "identity", "put_application_type": 28, "put_application_name": "name",
    "put_at": 12345.5, "application_origin_data": "orig", "group_id": G, "sequence_number": 5, "flags": IN,
    "properties": {"colour": "red", "count": 2**60, "key": b"\0\xff", "none": None, "one": 1.0, "yes": True},
    "transmission": Transmission("Q2", "QM2"), "body": b"body",
}  # fmt: skip


@pytest.mark.every_store
def test_every_column_is_kept(writer: Writer) -> None:
    writer.qm.alter_queue("Q", usage="transmission")
    given: dict[str, Any] = {name: [value] for name, value in EVERYTHING.items() if name != "body"}
    writer.put([b"body"], **given, original_length=[-1], offset=[0], delay=[0.0])
    (message,) = writer.browsed()
    assert {name: getattr(message, name) for name in EVERYTHING} == EVERYTHING
    assert set(STAGED_COLUMNS) == {*EVERYTHING, "original_length", "offset", "delay", "group_key", "order_key", *LATER}


def test_none_is_the_default_in_every_column_but_the_body(writer: Writer) -> None:
    nothing: dict[str, Any] = {name: [None] for name in STAGED_COLUMNS if name != "body"}
    writer.put([b"1"], **nothing)
    writer.put([b"1"], key=key(2))
    one, two = ([value for name, value in message.fields()] for message in writer.browsed())
    changed = [name for name, a, b in zip(Message.FIELDS, one, two, strict=True) if a != b]
    assert changed == ["message_id", "token", "uid", "place"]


def test_staged_values_are_normalized_as_in_a_message(writer: Writer) -> None:
    writer.put(
        [b"1", bytearray(b"2"), memoryview(b"3")],  # type: ignore[list-item]
        format=["MQSTR   ", "", None],
        correlation_id=[b"short", bytes(24), bytearray(b"x")],
        message_type=[MessageType.REPLY, 8, None],
        put_at=[1, 2.5, None],
        flags=[Flags.NONE, 0, None],
    )
    found = writer.browsed()
    assert [message.format for message in found] == ["MQSTR", "", ""]
    seen = [message.correlation_id for message in found]
    assert seen == [b"short".ljust(24, b"\0"), bytes(24), b"x".ljust(24, b"\0")]
    assert [type(message.message_type) for message in found] == [int] * 3
    assert [type(message.put_at) for message in found] == [float] * 3
    assert [message.body for message in found] == [b"1", b"2", b"3"]


def test_a_staged_message_has_its_own_unique_id_and_can_be_deleted_by_it(writer: Writer) -> None:
    writer.put(letters("ab"))
    first, second = writer.browsed()
    assert first.uid is not None
    assert second.uid is not None
    assert first.message_id == make_id("TEST", first.uid.number) != second.message_id
    handle = writer.qm.open("Q", input="shared", browse=True)
    writer.qm.delete("Q", second.uid)
    assert drained(writer.qm) == [b"a"]
    handle.close()


@pytest.mark.every_store
def test_nonpersistent_messages_survive_a_restart_only_while_they_are_staged(
    writer: Writer, store: RestartableStore
) -> None:
    writer.stage("one", letters("ab"), persistent=[True, False])
    store.restart()
    qm = connect(store, program="again")
    later = Writer(store, qm)
    later.counts["one"] = 2
    later.settle("one")
    assert bodies(qm) == letters("ab")
    store.restart()
    assert bodies(connect(store, program="again")) == letters("a")


# ---- groups


@pytest.mark.every_store
def test_keys_of_different_types_make_different_groups(writer: Writer) -> None:
    writer.put(letters("abcd"), group_key=[1, "1", b"1", 1.0])
    assert len({message.group_id for message in writer.browsed()}) == 3


def test_a_group_has_the_message_id_of_its_first_message(writer: Writer) -> None:
    writer.put(letters("abc"), group_key=[1, 2, 1], order_key=[3, 2, 1])
    by_body = {message.body: message for message in writer.browsed()}
    assert by_body[b"c"].group_id == by_body[b"c"].message_id == by_body[b"a"].group_id


@pytest.mark.every_store
def test_given_sequence_numbers_are_kept_and_may_continue_those_of_an_earlier_batch(writer: Writer) -> None:
    writer.put(letters("ab"), group_id=[G, G], sequence_number=[2, 1], flags=[IN, IN])
    writer.put(letters("cd"), key=key(1), group_id=[G, G], sequence_number=[3, 4], flags=[IN, LAST])
    assert shape(writer) == [("b", 1, IN), ("a", 2, IN), ("c", 3, IN), ("d", 4, IN | LAST)]


WRONG_NUMBERS = [
    ("a gap", {"sequence_number": [1, 3]}, "after message 1 comes message 3"),
    ("a repeat", {"sequence_number": [2, 2]}, "message 2 comes twice"),
    (
        "a gap between segments",
        {"sequence_number": [1, 1], "offset": [0, 5], "flags": [IN | SEGMENT, IN | LAST_SEGMENT]},
        "a segment of message 1 is at offset 5, not at 1",
    ),
    (
        "a message that begins in the middle",
        {"sequence_number": [1, 2], "offset": [0, 5], "flags": [IN, IN | LAST_SEGMENT]},
        "message 2 has no first segment",
    ),
    (
        "a segment twice",
        {"sequence_number": [1, 1], "offset": [5, 5], "flags": [IN | SEGMENT, IN | SEGMENT]},
        "message 1 at offset 5 comes twice",
    ),
]


@pytest.mark.every_store
@pytest.mark.parametrize(("what", "columns", "text"), WRONG_NUMBERS, ids=[line[0] for line in WRONG_NUMBERS])
def test_given_sequence_numbers_must_be_consecutive(
    writer: Writer, what: str, columns: dict[str, list[int]], text: str
) -> None:
    given: dict[str, Any] = {"group_id": [H, H], "flags": [IN, IN], **columns}
    for cut in (2, 1):  # in one staging, then in two
        writer.counts.clear()
        writer.stage("1", letters("ab")[:cut], **{name: values[:cut] for name, values in given.items()})
        writer.stage("2", letters("ab")[cut:], **{name: values[cut:] for name, values in given.items()})
        before = snapshot(writer.qm)
        with pytest.raises(InconsistentCall, match=text) as raised:
            writer.settle("1", "2")
        assert raised.value.data["group_id"] == H
        assert snapshot(writer.qm) == before
        assert writer.store.undo_staging(["1", "2"]) == 2


# ---- segments


def test_a_body_that_is_too_long_is_split(writer: Writer) -> None:
    writer.qm.alter_queue("Q", max_length=32)
    body = bytes(range(70))
    assert writer.put([b"short", body, b"end"]).messages == 5
    pieces = writer.browsed()[1:4]
    found = [(len(one.body), one.offset, one.flags) for one in pieces]
    assert found == [(32, 0, SEGMENT), (32, 32, SEGMENT), (6, 64, SEGMENT | LAST_SEGMENT)]
    assert {one.group_id for one in pieces} == {pieces[0].message_id}
    assert len({one.message_id for one in pieces}) == 3
    with writer.qm.unit_of_work():
        got = [writer.qm.get("Q", logical=True, complete=True).body for _ in range(3)]
    assert got == [b"short", body, b"end"]


@pytest.mark.every_store
def test_segments_of_a_message_share_its_sequence_number(writer: Writer) -> None:
    writer.qm.alter_queue("Q", max_length=16)
    writer.stage("1", [b"x" * 20, b"y"], group_key=[1, 1], order_key=[2, 1])
    writer.stage("2", [b"z" * 40], group_key=[1], order_key=[3])
    assert writer.settle("1", "2").messages == 6
    found = sorted(writer.browsed(), key=lambda one: (one.sequence_number, one.offset))
    assert [(one.body[:1], one.sequence_number, one.offset, bool(one.flags & LAST)) for one in found] == [
        (b"y", 1, 0, False), (b"x", 2, 0, False), (b"x", 2, 16, False), (b"z", 3, 0, True), (b"z", 3, 16, True),
        (b"z", 3, 32, True),
    ]  # fmt: skip
    with writer.qm.unit_of_work():
        assert [one.body for one in writer.qm.get_group("Q")] == [b"y", b"x" * 20, b"z" * 40]


def test_headers_that_do_not_fit_are_refused_with_the_row(writer: Writer) -> None:
    writer.qm.alter_queue("Q", max_length=32)
    with pytest.raises(MessageTooBig, match="row 1: the message of 500 bytes cannot be split") as raised:
        writer.stage("one", [b"", b"x" * 500], format=["", "MQDEAD"])
    assert raised.value.reason == Reason.MSG_TOO_BIG_FOR_Q
    assert writer.qm.inspect.units() == []


def test_only_segments_may_exceed_the_maximum_depth(writer: Writer) -> None:
    writer.qm.alter_queue("Q", max_length=16, max_depth=2)
    writer.stage("three", letters("abc"))
    with pytest.raises(QueueFull):
        writer.settle("three")
    writer.store.undo_staging(["three"])
    assert writer.put([b"x" * 40, b"y"]).messages == 4
    assert writer.qm.depth("Q") == 4
