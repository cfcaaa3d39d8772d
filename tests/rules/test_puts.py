"""A whole put: the plan of one message, and of several that follow each other in one request."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from inorder import Flags, InconsistentCall, Message, PutInhibited, PutOptions, Reason
from inorder.attributes import define_manager, define_queue
from inorder.rules.grouping import NOTHING_OPEN
from inorder.rules.puts import Program, PutCircumstances, plan_put, plan_puts

LOGICAL = PutOptions(logical=True)


def circumstances(**queue: Any) -> PutCircumstances:
    return PutCircumstances(
        queue=define_queue("Q", **queue),
        manager=define_manager(name="QM"),
        program=Program("user", "program"),
        in_unit=False,
        unit_open=False,
        now=1.7e9,
        new_number=itertools.count(1).__next__,
    )


MESSAGES = [
    Message(b"alone"),
    Message(b"alone, with all a put replaces", priority=12, expiry=5.0, persistent=False, message_id=b"id"),
    Message(b"first", flags=Flags.IN_GROUP),
    Message(b"second, in pieces" * 9, flags=Flags.IN_GROUP | Flags.SEGMENTATION_ALLOWED),
    Message(b"last", flags=Flags.LAST_IN_GROUP),
    Message(b"alone again"),
]


@pytest.mark.parametrize(
    "options", [LOGICAL, PutOptions(), PutOptions(context="set_identity", new_correlation_id=True)]
)
def test_puts_of_one_request_are_puts_one_after_another(options: PutOptions) -> None:
    one_by_one, state, at = [], NOTHING_OPEN, circumstances(max_length=64)
    for message in MESSAGES:
        one_by_one.append(plan_put(message, options, state, at))
        state = one_by_one[-1].state
    assert plan_puts(MESSAGES, options, NOTHING_OPEN, circumstances(max_length=64)) == one_by_one


def test_r2_7_the_first_that_contradicts_ends_the_request() -> None:
    messages = [Message(b"first", flags=Flags.IN_GROUP), Message(b"in no group")]
    with pytest.raises(InconsistentCall) as raised:
        plan_puts(messages, LOGICAL, NOTHING_OPEN, circumstances())
    assert raised.value.reason is Reason.INCOMPLETE_GROUP


def test_r2_3_where_puts_are_inhibited_only_no_put_is_accepted() -> None:
    at = circumstances(put_allowed=False)
    assert plan_puts([], LOGICAL, NOTHING_OPEN, at) == []
    with pytest.raises(PutInhibited):
        plan_puts([Message(b"")], LOGICAL, NOTHING_OPEN, at)
