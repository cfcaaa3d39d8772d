"""The plan of a put: of one message, and of several in one request."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from inorder import ArgumentError, Flags, Message, PutOptions, Reason
from inorder.model.attributes import define_manager, define_queue
from inorder.rules.grouping import NOTHING_OPEN
from inorder.rules.puts import Program, PutCircumstances, PutPlan

LOGICAL = PutOptions(logical=True)


def at() -> PutCircumstances:
    return PutCircumstances(in_unit=False, unit_open=False, now=1.7e9, new_number=itertools.count(1).__next__)


def plan(options: PutOptions, **queue: Any) -> PutPlan:
    return PutPlan(options, define_queue("Q", **queue), define_manager(name="QM"), Program("user", "program"))


MESSAGES = [
    Message(b"alone"),
    Message(b"alone, with all a put replaces", priority=12, expiry=5.0, persistent=False, message_id=b"id"),
    Message(b"first", flags=Flags.IN_GROUP),
    Message(b"second, in pieces" * 9, flags=Flags.IN_GROUP | Flags.SEGMENTATION_ALLOWED),
    Message(b"last", flags=Flags.LAST_IN_GROUP),
    Message(b"alone again"),
]


ALL_OPTIONS = [
    LOGICAL,
    PutOptions(),
    PutOptions(context="none"),
    PutOptions(context="set_identity", new_correlation_id=True),
    PutOptions(context="set_all", new_message_id=True),
]


@pytest.mark.parametrize("options", ALL_OPTIONS)
def test_several_puts_in_one_request_equal_the_same_puts_one_after_another(options: PutOptions) -> None:
    state, meets = NOTHING_OPEN, at()
    arriving: list[Any] = []
    results: list[Any] = []
    split: dict[int, int] = {}
    for nth, message in enumerate(MESSAGES):
        one = plan(options, max_length=64).puts([message], state, meets)
        arriving += one.arriving
        results += one.results
        if one.split:
            split[nth] = one.split[0]
        state = one.state
    assert plan(options, max_length=64).puts(MESSAGES, NOTHING_OPEN, at()) == (arriving, results, state, split)
    assert split, "one is in pieces"


@pytest.mark.parametrize("options", ALL_OPTIONS)
@pytest.mark.parametrize("persistent", [False, True])
def test_a_body_alone_is_put_like_a_message_without_given_fields(options: PutOptions, persistent: bool) -> None:
    one = plan(options, default_priority=3, default_persistence=persistent, expiry=9.0)
    assert one.puts([b"body"], NOTHING_OPEN, at()) == one.puts([Message(b"body")], NOTHING_OPEN, at())


def test_the_default_expiry_of_a_queue_may_not_end_before_the_delay() -> None:
    short = plan(PutOptions(), expiry=4.0)
    with pytest.raises(ArgumentError, match="at most 4 seconds, after which messages on Q expire") as raised:
        short.puts([Message(b"", delay=5)], NOTHING_OPEN, at())
    assert raised.value.reason is Reason.EXPIRY_ERROR
    for message in (Message(b"", delay=4), Message(b"", delay=5, expiry=9)):
        assert short.puts([message], NOTHING_OPEN, at()).arriving


def test_a_body_alone_outside_logical_order_warns_of_the_open_group() -> None:
    in_group = plan(LOGICAL).puts([Message(b"first", flags=Flags.IN_GROUP)], NOTHING_OPEN, at())
    (result,) = plan(PutOptions()).puts([b"body"], in_group.state, at()).results
    assert result.warning is Reason.INCOMPLETE_GROUP
