"""Properties are returned as they were given, each of its type, by every way to put and to read."""

from __future__ import annotations

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.helpers.support import fresh_manager
from tests.rules.test_message_properties import NAMES, VALUES
from tests.tiers import EVERY

from inorder import Message, QueueManager
from inorder.model.properties import Properties, PropertyValue

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


def text_of(message: Message) -> str | None:
    """The stored text, which differs for each type and each bit of a float."""
    return message.properties.text


def test_every_way_to_read_returns_the_properties(qm: QueueManager) -> None:
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


def test_every_way_to_put_accepts_properties(qm: QueueManager) -> None:
    handle = qm.open("Q", output=True)
    handle.put(b"x", properties=GIVEN)
    handle.put_many([b"x", Message(b"x", properties={"other": 1})], properties=GIVEN)
    qm.put("Q", Message(b"x").replace(properties=GIVEN))
    qm.put_json("Q", {"a": 1}, properties=GIVEN)
    qm.put("Q", next(iter(qm.browse("Q"))), context="set_all")
    with qm.unit_of_work(), qm.group("Q") as group:
        group.put(b"x", properties=GIVEN)
    assert list(map(text_of, qm.browse("Q"))) == [TEXT] * 7
    qm.put("Q", b"", properties={"a": "x" * (65_536 - 8)})  # the longest that is allowed
    assert qm.admin.check() == []


def test_the_first_segment_of_a_stream_has_the_properties(qm: QueueManager) -> None:
    qm.put_stream("Q", io.BytesIO(bytes(30)), chunk=10, properties=GIVEN)
    assert list(map(text_of, qm.browse("Q"))) == [TEXT, None, None]
    assert text_of(qm.get_stream("Q", io.BytesIO())) == TEXT
    qm.put_stream("Q", io.BytesIO(bytes(30)), chunk=10, as_group=True, most=20, properties=GIVEN)
    assert list(map(text_of, qm.browse("Q"))) == [TEXT, None, TEXT]


@pytest.mark.parametrize("store", EVERY)
def test_any_properties_survive_a_queue(store: str) -> None:
    with fresh_manager(store) as qm:
        qm.create_queue("Q")

        @given(st.dictionaries(NAMES, VALUES))
        def holds(properties: dict[str, PropertyValue]) -> None:
            qm.put("Q", b"x", properties=properties)
            assert text_of(next(iter(qm.browse("Q")))) == text_of(qm.get("Q")) == Properties(properties).text

        holds()
