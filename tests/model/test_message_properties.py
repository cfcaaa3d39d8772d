"""Properties on every way that a message goes: they come back as they were given, each of its type."""

from __future__ import annotations

import io
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.helpers.support import fresh_manager
from tests.rules.test_message_properties import NAMES, VALUES
from tests.tiers import EVERY

from inorder import Flags, Message, QueueManager, Reason
from inorder.client.bulk import BULK_COLUMNS, BulkBrowser, ClaimReader, LedgerKey, Stager
from inorder.errors import PropertyNotAvailable
from inorder.model.properties import NO_PROPERTIES, Properties, PropertyValue

GIVEN: dict[str, PropertyValue] = {
    "colour": "red\n,]",
    "digits": "3",
    "key": b"\0\xff",
    "note": None,
    "order.count": 2**53 + 1,
    "paid": True,
    "weight": -0.0,
}
TEXT = Properties(GIVEN).text
PROPERTIES = BULK_COLUMNS.index("properties")


def text_of(message: Message) -> str | None:
    """All that can be told apart: types, and each bit of a float."""
    return message.properties.text


def test_they_are_a_mapping_on_the_message(qm: QueueManager) -> None:
    qm.put("Q", b"x", properties=GIVEN)
    message = qm.get("Q")
    assert dict(message.properties) == GIVEN
    assert text_of(message) == TEXT
    assert message.properties["order.count"] == 2**53 + 1
    with pytest.raises(PropertyNotAvailable, match="colour"):
        message.properties["color"]


def test_a_message_without_them_has_none(qm: QueueManager) -> None:
    none: list[Mapping[str, PropertyValue]] = [{}, NO_PROPERTIES, Properties({})]
    for properties in none:
        qm.put("Q", b"x", properties=properties)
        assert qm.get("Q").properties is NO_PROPERTIES


def test_every_way_to_read_brings_them(qm: QueueManager) -> None:
    qm.put_many("Q", [Message(b"%d" % n, properties={**GIVEN, "n": n}) for n in range(3)])
    qm.put("Q", b"3")
    wanted = [Properties({**GIVEN, "n": n}).text for n in range(3)] + [None]
    handle = qm.open("Q", browse=True)
    assert list(map(text_of, qm.browse("Q"))) == wanted
    assert text_of(handle.browse_first(buffer=0, accept_truncated=True)) == wanted[0]
    assert [text_of(sight.message) for sight in qm.inspect.look("Q")] == wanted
    assert [text_of(sight.message) for sight in qm.inspect.look("Q", preview=0)] == wanted
    with qm.unit_of_work() as unit:
        assert list(map(text_of, qm.get_many("Q", 9))) == wanted
        unit.back_out()
    assert [text_of(qm.get("Q")) for _ in range(4)] == wanted


def test_every_way_to_put_takes_them(qm: QueueManager) -> None:
    handle = qm.open("Q", output=True)
    handle.put(b"x", properties=GIVEN)
    handle.put_many([b"x", Message(b"x", properties={"other": 1})], properties=GIVEN)
    qm.put("Q", Message(b"x").replace(properties=GIVEN))
    qm.put_json("Q", {"a": 1}, properties=GIVEN)
    qm.put("Q", next(iter(qm.browse("Q"))), context="set_all")
    with qm.unit_of_work(), qm.group("Q") as group:
        group.put(b"x", properties=GIVEN)
    assert list(map(text_of, qm.browse("Q"))) == [TEXT] * 7


def test_claims_and_surveys_bring_their_texts(qm: QueueManager) -> None:
    qm.put("Q", b"1")
    qm.put("Q", b"2", properties=GIVEN)
    with qm.open("Q", browse=True) as queue:
        browser = BulkBrowser(queue)
        found = [row for one in browser.survey().stretches for page in browser.read(one) for row in page]
    assert [row[PROPERTIES] for row in found] == [None, TEXT]
    with qm.open("Q", input="shared") as queue:
        reader = ClaimReader(queue, "archive")
        reader.begin()
        reader.claim(0)
        (part,) = reader.plan(0, 1)
        assert [row[PROPERTIES] for page in reader.read(part) for row in page] == [None, TEXT]


def test_staged_rows_keep_them(qm: QueueManager) -> None:
    with qm.open("Q", output=True) as queue:
        stager = Stager(queue, "s", lasts=60)
        stager.stage(3, {"body": [b"1", b"2", b"3"], "properties": [GIVEN, None, Properties.from_text(TEXT)]})
        stager.stage(1, {"body": [b"4"]})
    qm.bulk.settle_staging(LedgerKey("load", "", "1"), [stager.staged])
    assert list(map(text_of, qm.browse("Q"))) == [TEXT, None, TEXT, None]


def test_a_staged_row_with_bad_ones_is_named(qm: QueueManager) -> None:
    with qm.open("Q", output=True) as queue, pytest.raises(Exception, match=r"row 1: .*'1a'") as raised:
        Stager(queue, "s", lasts=60).stage(2, {"body": [b"1", b"2"], "properties": [{"a": 1}, {"1a": 1}]})
    assert raised.value.reason == Reason.PROPERTY_NAME_ERROR  # type: ignore[attr-defined]


@pytest.mark.parametrize("is_staged", [False, True], ids=["put", "staged"])
def test_of_a_message_that_is_split_the_first_segment_has_them(qm: QueueManager, is_staged: bool) -> None:
    qm.create_queue("SHORT", max_length=16)
    fields: Any = {"flags": Flags.SEGMENTATION_ALLOWED, "properties": GIVEN}
    if is_staged:
        with qm.open("SHORT", output=True) as queue:
            stager = Stager(queue, "s", lasts=60)
            stager.stage(1, {"body": [bytes(40)], **{name: [value] for name, value in fields.items()}})
        qm.bulk.settle_staging(LedgerKey("load", "", "1"), [stager.staged])
    else:
        qm.put("SHORT", bytes(40), **fields)
    assert list(map(text_of, qm.browse("SHORT"))) == [TEXT, None, None]
    whole = qm.get("SHORT", logical=True, complete=True)
    assert (whole.length, text_of(whole)) == (40, TEXT)


def test_of_a_stream_the_first_segment_has_them(qm: QueueManager) -> None:
    qm.put_stream("Q", io.BytesIO(bytes(30)), chunk=10, properties=GIVEN)
    assert list(map(text_of, qm.browse("Q"))) == [TEXT, None, None]
    assert text_of(qm.get_stream("Q", io.BytesIO())) == TEXT
    qm.put_stream("Q", io.BytesIO(bytes(30)), chunk=10, as_group=True, most=20, properties=GIVEN)
    assert list(map(text_of, qm.browse("Q"))) == [TEXT, None, TEXT]


def test_a_group_that_is_read_over_several_units_of_work(qm: QueueManager) -> None:
    with qm.unit_of_work(), qm.group("Q") as group:
        group.put(b"1", properties=GIVEN)
        group.put(b"2", properties={"n": 2})
    handle = qm.open("Q", input="shared")
    with qm.unit_of_work():
        assert text_of(handle.get(logical=True)) == TEXT
    with qm.unit_of_work():
        assert text_of(handle.get(logical=True)) == '{"n":2}'
    assert qm.admin.check() == []


def test_what_is_wrong_with_one_of_many_puts_none(qm: QueueManager) -> None:
    with pytest.raises(Exception, match="'a'") as raised:
        qm.put_many("Q", [Message(b"1"), b"2"], properties={"a": 2**63})
    assert raised.value.reason == Reason.PROPERTY_TYPE_ERROR  # type: ignore[attr-defined]
    assert qm.depth("Q") == 0


def test_as_large_as_they_may_be(qm: QueueManager) -> None:
    for size in (1, 65_536 - 8):
        qm.put("Q", b"", properties={"a": "x" * size})
        assert qm.admin.check() == []
        assert qm.get("Q").properties["a"] == "x" * size


@pytest.mark.parametrize("store", EVERY)
def test_any_properties_survive_a_queue(store: str) -> None:
    with fresh_manager(store) as qm:
        qm.create_queue("Q")

        @given(st.dictionaries(NAMES, VALUES))
        def holds(properties: dict[str, PropertyValue]) -> None:
            qm.put("Q", b"x", properties=properties)
            assert text_of(next(iter(qm.browse("Q")))) == text_of(qm.get("Q")) == Properties(properties).text

        holds()
