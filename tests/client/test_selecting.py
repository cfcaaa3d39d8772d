"""Attributes by our names, MQ's names and MQ's numbers, as MQINQ returns and MQSET accepts them."""

from __future__ import annotations

import enum
from typing import Any

import pytest

from inorder import QueueManager
from inorder.errors import ArgumentError, GetInhibited, PutInhibited, Reason
from inorder.model.selecting import BY_MQ, OURS


class Selectors(enum.IntEnum):
    """Selectors as an MQ language binding defines them."""

    INHIBIT_PUT = 10


def test_inquire_returns_each_value_under_the_selector_that_was_given(qm: QueueManager) -> None:
    qm.alter_queue("Q", max_depth=7)
    assert qm.inquire("Q", "MaxQDepth", 15, "max_depth") == {"MaxQDepth": 7, 15: 7, "max_depth": 7}
    assert list(qm.inquire("Q", 15, "max_depth", "MaxQDepth")) == [15, "max_depth", "MaxQDepth"]


def test_mq_selectors_return_mq_values(qm: QueueManager) -> None:
    qm.alter_queue("Q", get_allowed=False, delivery="fifo", index_type="group_id", description="orders")
    qm.put("Q", b"1")
    assert qm.inquire("Q", "InhibitGet", 10, "QType", 16, 57, "DefPersistence", 2016, "QDesc", 3, 18) == {
        "InhibitGet": 1, 10: 0, "QType": 1, 16: 1, 57: 5, "DefPersistence": 1, 2016: "Q", "QDesc": "orders", 3: 1,
        18: 1,
    }  # fmt: skip
    assert qm.inquire("Q", "get_allowed", "type") == {"get_allowed": False, "type": "local"}


def test_every_mq_selector_can_be_inquired(qm: QueueManager) -> None:
    told = qm.inquire("Q", *BY_MQ, *OURS)
    assert told.keys() == BY_MQ.keys() | OURS
    assert qm.inquire("Q").keys() == OURS
    names = [word for word in BY_MQ if isinstance(word, str)]
    numbers = [word for word in BY_MQ if isinstance(word, int)]
    assert [told[name] for name in names] == [told[number] for number in numbers]
    assert not any(isinstance(told[word], bool) for word in BY_MQ)


def test_models_and_aliases_can_be_inquired_with_mq_selectors_too(qm: QueueManager) -> None:
    qm.create_queue("M", type="model")
    qm.create_queue("A", type="alias", base_queue="Q")
    qm.put("A", b"1")
    found = qm.inquire("M", 20, "DefinitionType", "Shareability", 4)
    assert found == {20: 2, "DefinitionType": 3, "Shareability": 0, 4: 4}
    assert qm.inquire("A", 20, 2002, "CurrentQDepth") == {20: 3, 2002: "Q", "CurrentQDepth": 1}
    with pytest.raises(ArgumentError) as raised:
        qm.inquire("M", 15, 3)
    assert (raised.value.reason, raised.value.value) == (2068, 3)


@pytest.mark.parametrize("selector", [0, 10**30, True, 15.0, b"QName", ["max_depth"]])
def test_an_unknown_selector_is_2067(qm: QueueManager, selector: Any) -> None:
    with pytest.raises(ArgumentError) as raised:
        qm.inquire("Q", "max_depth", selector)
    assert (raised.value.reason, raised.value.argument) == (Reason.SELECTOR_ERROR, "selector")
    assert "3, 4, 5" in str(raised.value.allowed)


@pytest.mark.parametrize("changes", [{9: 1}, {"InhibitGet": 1}, {"get_allowed": False}])
@pytest.mark.parametrize("by_keyword", [True, False])
def test_gets_can_be_inhibited_by_our_name_mqs_name_and_mqs_number(
    qm: QueueManager, changes: dict[Any, Any], by_keyword: bool
) -> None:
    qm.put("Q", b"1")
    handle = qm.open("Q")
    if by_keyword and 9 not in changes:
        handle.set(**changes)
    else:
        handle.set(changes)
    with pytest.raises(GetInhibited):
        handle.get()
    handle.set({9: 0})
    assert handle.get().body == b"1"


def test_a_mapping_and_keywords_go_together(qm: QueueManager) -> None:
    handle = qm.open("Q")
    handle.set({Selectors.INHIBIT_PUT: 1}, get_allowed=False)
    assert qm.inquire("Q", 9, 10) == {9: 1, 10: 1}
    handle.set({9: 0}, InhibitPut=0)
    assert qm.inquire("Q", "get_allowed", "put_allowed") == {"get_allowed": True, "put_allowed": True}
    handle.set({})
    handle.set()
    handle.set({"put_allowed": False})
    with pytest.raises(PutInhibited):
        handle.put(b"1")


@pytest.mark.parametrize("value", [2, True, "1"])
@pytest.mark.parametrize("selector", ["InhibitGet", 9])
def test_a_bad_value_for_an_mq_selector_is_2020(qm: QueueManager, selector: Any, value: Any) -> None:
    with pytest.raises(ArgumentError) as raised:
        qm.open("Q").set({selector: value})
    assert (raised.value.reason, raised.value.argument, raised.value.value) == (2020, "InhibitGet", value)
    assert "0 (get_allowed=True) or 1 (get_allowed=False)" in str(raised.value)
    assert qm.attributes("Q").get_allowed


@pytest.mark.parametrize(
    "changes",
    [
        {15: 5}, {"MsgDeliverySequence": 7}, {"CurrentQDepth": 0}, {99: 1}, {True: 1}, {"Colour": 1},
        {"get_allowed": True, 9: 1}, {"InhibitGet": 1, 9: 1},
    ],
)  # fmt: skip
def test_selectors_that_cannot_be_set_are_2067(qm: QueueManager, changes: dict[Any, Any]) -> None:
    before = qm.attributes("Q")
    with pytest.raises(ArgumentError, match="2067"):
        qm.open("Q").set(changes)
    assert qm.attributes("Q") == before


def test_changes_must_be_a_mapping(qm: QueueManager) -> None:
    handle: Any = qm.open("Q")
    for changes in ([9, 1], "InhibitGet", 9, None):
        with pytest.raises(ArgumentError, match="changes must be a mapping"):
            handle.set(changes)
