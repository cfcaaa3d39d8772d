"""Rows of a store as record batches: the values are those of `Message`, and segments are joined as by a get."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from typing import Any

import pytest
from tests.helpers.support import put_group

from inorder import Flags, GetOptions, Message, QueueCondition, QueueManager
from inorder.arrow import pages as arrow
from inorder.arrow.pages import Origin, batches, joined
from inorder.arrow.properties import FIELD_OF
from inorder.arrow.schema import DESCRIPTOR, arrow_schema
from inorder.client.bulk import BULK_COLUMNS, BulkBrowser, BulkPage
from inorder.model.message import NO_ID

ORIGIN = Origin("Q", None, 100)
LOGICAL = GetOptions(logical=True)


def pages_of(qm: QueueManager, options: GetOptions = LOGICAL) -> list[BulkPage]:
    with qm.open("Q", browse=True) as queue:
        browser = BulkBrowser(queue)
        return [page for stretch in browser.survey(options).stretches for page in browser.read(stretch)]


def rows_of(pages: Sequence[BulkPage], **how: Any) -> list[dict[str, Any]]:
    return [row for batch in batches(pages, ORIGIN, **how) for row in batch.to_pylist()]


FIELDS = ("string", "long", "double", "boolean", "binary")


def as_pairs_of(message: Message) -> list[tuple[str, Any]] | None:
    """The properties as a row of Arrow has them."""
    pairs = [
        (name, None if value is None else dict.fromkeys(FIELDS) | {FIELD_OF[type(value)]: value})
        for name, value in message.properties.items()
    ]
    return pairs or None


def as_column(name: str, message: Message) -> object:
    value = getattr(message, name)
    if name in ("correlation_id", "group_id") and value == NO_ID:
        return None
    if name == "accounting_token" and value == bytes(32):
        return None
    if name == "properties":
        return as_pairs_of(message)
    if name == "put_at":
        return datetime.datetime.fromtimestamp(round(value * 1e6) / 1e6, datetime.timezone.utc)
    return None if name == "expiry" and value == float("inf") else value


def test_every_field_has_the_value_of_the_message(qm: QueueManager) -> None:
    qm.put("Q", b"plain")
    qm.put(
        "Q",
        b"rich",
        priority=7,
        expiry=60,
        correlation_id=b"c",
        reply_to_queue="R",
        message_type=1,
        format="MQSTR",
        persistent=False,
        coded_character_set_id=1208,
        properties={"a": "x", "b.c": 2**60, "d": 1.5, "e": True, "f": b"\0\xff", "g": None},
    )
    put_group(qm, b"in a group")
    messages = {message.message_id: message for message in qm.browse("Q")}
    rows = rows_of(pages_of(qm))
    assert len(rows) == 3
    for row in rows:
        message = messages[row["message_id"]]
        assert {name: row[name] for name, _ in DESCRIPTOR} == {name: as_column(name, message) for name, _ in DESCRIPTOR}
        assert (row["rank"], row["number"], row["ordinal"]) == message.place
        assert tuple(row["group_position"].values()) == message.place
        assert message.uid == (row["uid_origin"], row["uid_number"])
        assert (row["body"], row["length"], row["backout_count"]) == (message.body, message.length, 0)
        assert (row["queue"], row["claim"]) == ("Q", None)


def test_the_columns_are_those_of_the_schema_in_both_kinds_of_body(qm: QueueManager) -> None:
    qm.put("Q", "grüße".encode())
    (batch,) = batches(pages_of(qm), ORIGIN)
    assert batch.schema.equals(arrow_schema())
    (batch,) = batches(pages_of(qm), ORIGIN, body="string")
    assert batch.schema.equals(arrow_schema("string"))
    assert batch.column("body").to_pylist() == ["grüße"]


def test_a_body_that_is_not_utf_8_is_refused_with_its_message_id(qm: QueueManager) -> None:
    qm.put_many("Q", [b"good", b"bad\xff"])
    bad = list(qm.browse("Q"))[1]
    with pytest.raises(QueueCondition, match=r"is not UTF-8: byte 0xff at 3\. Read with body=binary") as refused:
        rows_of(pages_of(qm), body="string")
    assert refused.value.message_id == bad.message_id
    assert bad.message_id.hex() in str(refused.value)


def put_segments(qm: QueueManager, *bodies: bytes, **fields: Any) -> None:
    with qm.open("Q", output=True) as queue, qm.unit_of_work():
        for body in bodies:
            last = Flags.LAST_SEGMENT if body is bodies[-1] else Flags.SEGMENT
            queue.put(body, flags=last, logical=True, **fields)


def test_segments_are_joined_as_a_get_of_the_complete_message_joins_them(qm: QueueManager) -> None:
    qm.put("Q", b"before")
    put_segments(qm, b"one ", b"two ", b"three")
    qm.put("Q", b"after")
    rows = rows_of(pages_of(qm), join=True)
    messages = list(qm.browse("Q", logical=True, complete=True))
    shown = ("body", "length", "flags", "offset", "sequence_number", "original_length", "message_id")
    assert [[row[name] for name in shown] for row in rows] == [[getattr(m, name) for name in shown] for m in messages]
    assert [row["body"] for row in rows] == [b"before", b"one two three", b"after"]


def test_a_joined_message_has_the_properties_of_its_first_segment(qm: QueueManager) -> None:
    with qm.open("Q", output=True) as queue, qm.unit_of_work():
        queue.put(b"1", flags=Flags.SEGMENT, logical=True, properties={"colour": "red"})
        queue.put(b"2", flags=Flags.LAST_SEGMENT, logical=True, properties={"colour": "blue"})
    (row,) = rows_of(pages_of(qm), join=True)
    (whole,) = qm.browse("Q", logical=True, complete=True)
    assert (row["body"], dict(whole.properties)) == (b"12", {"colour": "red"})
    assert row["properties"] == as_pairs_of(whole)


def test_a_message_is_joined_across_pages(qm: QueueManager) -> None:
    put_segments(qm, b"one ", b"two ", b"three")
    qm.put("Q", b"after")
    rows = [row for page in pages_of(qm) for row in page]
    body = BULK_COLUMNS.index("body")
    whole = [b"one two three", b"after"]
    for at in range(len(rows) + 1):
        assert [row[body] for page in joined(map(BulkPage.of_rows, (rows[:at], rows[at:]))) for row in page] == whole


def test_where_the_character_set_changes_a_new_row_begins(qm: QueueManager) -> None:
    with qm.open("Q", output=True) as queue, qm.unit_of_work():
        queue.put(b"1", flags=Flags.SEGMENT, logical=True, coded_character_set_id=819)
        queue.put(b"2", flags=Flags.SEGMENT, logical=True, coded_character_set_id=1208)
        queue.put(b"3", flags=Flags.LAST_SEGMENT, logical=True, coded_character_set_id=1208)
    assert [row["body"] for row in rows_of(pages_of(qm), join=True)] == [b"1", b"23"]


def test_pages_without_segments_are_passed_on_unchanged(qm: QueueManager) -> None:
    qm.put_many("Q", [b"1", b"2"])
    pages = pages_of(qm)
    assert all(given is taken for given, taken in zip(pages, joined(pages), strict=True))


def test_batches_are_bounded_in_rows_and_in_bytes(qm: QueueManager, monkeypatch: pytest.MonkeyPatch) -> None:
    qm.put_many("Q", [b"12345"] * 7)
    monkeypatch.setattr(arrow, "BATCH_ROWS", 3)
    assert [batch.num_rows for batch in batches(pages_of(qm), ORIGIN)] == [3, 3, 1]
    assert [row["delivery_number"] for row in rows_of(pages_of(qm))] == [*range(101, 108)], "after 100 before them"
    monkeypatch.setattr(arrow, "BATCH_BYTES", 11)
    assert [batch.num_rows for batch in batches(pages_of(qm), ORIGIN)] == [2, 2, 2, 1]
    monkeypatch.setattr(arrow, "BATCH_BYTES", 1)
    assert [batch.num_rows for batch in batches(pages_of(qm), ORIGIN)] == [1] * 7


def test_a_member_whose_head_is_missing_has_no_group_position(qm: QueueManager) -> None:
    qm.put("Q", b"2", group_id=b"g", sequence_number=2, flags=Flags.IN_GROUP)
    (row,) = rows_of(pages_of(qm, GetOptions()))
    assert row["group_position"] is None
    assert row["group_id"] == b"g".ljust(24, b"\0")
