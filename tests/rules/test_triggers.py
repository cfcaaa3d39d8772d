"""The table of trigger types (mq-semantics R4.9, between P-2), written from the rule, and the body of MQTM."""

from __future__ import annotations

from typing import Any

import pytest

from inorder.errors import ArgumentError
from inorder.model.attributes import define_queue
from inorder.rules.triggers import SeenQueue, TriggerMessage, due, needed

INTERVAL = 60.0
NOTHING = SeenQueue(came=0, back=0, groups=0, there=0, has_reader=False, quiet=1.0, was_released=False)

# type, effects of an operation and the state after it, number of trigger messages that are due
TABLE: list[tuple[str, dict[str, Any], int]] = [
    ("none", {"came": 1, "there": 1}, 0),
    ("first", {"came": 1, "there": 1}, 1),
    ("first", {"came": 3, "there": 3}, 1),
    ("first", {"came": 1, "there": 2}, 0),
    ("first", {"came": 1, "there": 2, "quiet": 59.9}, 0),
    ("first", {"came": 1, "there": 2, "quiet": 60.0}, 1),
    ("first", {"came": 1, "there": 1, "has_reader": True}, 0),
    ("first", {"came": 1, "there": 2, "quiet": 60.0, "has_reader": True}, 0),
    ("first", {"came": 1, "there": 0}, 0),  # it is delayed
    ("first", {"was_released": True, "there": 1}, 1),
    ("first", {"was_released": True, "there": 0}, 0),
    ("first", {"was_released": True, "there": 1, "has_reader": True}, 0),
    ("first", {"there": 1, "quiet": 1e9}, 0),  # time alone triggers nothing
    ("first", {"back": 1, "there": 1}, 1),  # got by a reader that has ended, and backed out
    ("first", {"back": 1, "there": 2}, 0),
    ("first", {"back": 1, "there": 2, "quiet": 60.0}, 1),
    ("first", {"came": 1, "back": 1, "there": 2}, 1),
    ("first", {"back": 1, "there": 1, "has_reader": True}, 0),
    ("every", {"came": 1, "there": 1}, 1),
    ("every", {"came": 3, "there": 9, "has_reader": True}, 3),
    ("every", {"was_released": True, "there": 9}, 0),
    ("every", {"back": 2, "there": 9}, 0),
    ("depth", {"came": 1, "there": 4}, 0),
    ("depth", {"came": 1, "there": 5}, 1),
    ("depth", {"came": 3, "there": 7}, 1),
    ("depth", {"came": 1, "there": 5, "has_reader": True}, 0),
    ("depth", {"was_released": True, "there": 5}, 1),
    ("depth", {"there": 5}, 0),
    ("depth", {"back": 1, "there": 5}, 1),
    ("depth", {"back": 1, "there": 4}, 0),
    ("group", {"came": 4, "groups": 0}, 0),
    ("group", {"came": 4, "groups": 2, "has_reader": True}, 2),
    ("group", {"was_released": True, "there": 4}, 0),
    ("group", {"back": 4, "there": 4}, 0),
]


@pytest.mark.parametrize(("kind", "seen", "expected"), TABLE)
def test_as_many_trigger_messages_are_due_as_the_rule_says(kind: Any, seen: dict[str, Any], expected: int) -> None:
    queue = define_queue("Q", trigger_control=True, trigger_type=kind, trigger_depth=5)
    assert due(queue, INTERVAL, NOTHING._replace(**seen)) == expected


def test_no_trigger_message_is_due_while_gets_are_inhibited() -> None:
    queue = define_queue("Q", trigger_control=True, trigger_type="every", get_allowed=False)
    assert due(queue, INTERVAL, NOTHING._replace(came=1, there=1)) == 0


@pytest.mark.parametrize(("kind", "expected"), [("first", 3), ("depth", 5), ("every", 0), ("group", 0), ("none", 0)])
def test_no_more_is_counted_than_the_type_needs(kind: Any, expected: int) -> None:
    assert needed(define_queue("Q", trigger_type=kind, trigger_depth=5), 2) == expected


def test_the_body_of_a_trigger_message_is_mqtm() -> None:
    said = TriggerMessage(
        queue="ORDERS",
        process="SERVE",
        trigger_data="now",
        application_type=6,
        application_id="/bin/serve",
        environment_data="&",
        user_data="of all",
    )
    body = said.to_bytes()
    assert len(body) == 684  # MQTM_LENGTH_1
    assert body[:8] == b"TM  \1\0\0\0"
    assert body[8:56] == b"ORDERS".ljust(48)
    assert body[56:104] == b"SERVE".ljust(48)
    assert body[104:168] == b"now".ljust(64)
    assert body[168:172] == b"\6\0\0\0"
    assert body[172:428] == b"/bin/serve".ljust(256)
    assert body[428:556] == b"&".ljust(128)
    assert body[556:] == b"of all".ljust(128)
    assert TriggerMessage.from_bytes(body) == said


def test_a_text_that_is_too_long_in_bytes_ends_with_a_whole_character() -> None:
    body = TriggerMessage(queue="Q", trigger_data="ä" * 40).to_bytes()
    assert TriggerMessage.from_bytes(body).trigger_data == "ä" * 32
    body = TriggerMessage(queue="Q", trigger_data="a" + "ä" * 40).to_bytes()
    assert TriggerMessage.from_bytes(body).trigger_data == "a" + "ä" * 31


GOOD = TriggerMessage(queue="Q").to_bytes()


@pytest.mark.parametrize("body", [b"", GOOD[:-1], b"XX" + GOOD[2:], GOOD[:4] + b"\2" + GOOD[5:], GOOD[:-1] + b"\xff"])
def test_a_body_that_is_not_mqtm_is_refused(body: bytes) -> None:
    with pytest.raises(ArgumentError, match="body must be a trigger message"):
        TriggerMessage.from_bytes(body)
