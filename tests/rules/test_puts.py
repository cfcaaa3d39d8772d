"""A whole put: the plan of one message, and of several that follow each other in one request."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import pytest

from inorder import Flags, InconsistentCall, Message, PutInhibited, PutOptions, Reason
from inorder.attributes import define_manager, define_queue
from inorder.rules.grouping import NOTHING_OPEN
from inorder.rules.puts import Planned, Program, PutCircumstances, PutPlan

LOGICAL = PutOptions(logical=True)


def put_all(messages: Sequence[Message], plans: Iterable[PutPlan]) -> list[Planned]:
    """What becomes of these puts, each from the state that the one before left."""
    at = PutCircumstances(in_unit=False, unit_open=False, now=1.7e9, new_number=itertools.count(1).__next__)
    planned: list[Planned] = []
    for message, plan in zip(messages, plans, strict=False):
        planned.append(plan.put(message, planned[-1].state if planned else NOTHING_OPEN, at))
    return planned


def new_plans(options: PutOptions, **queue: Any) -> Iterator[PutPlan]:
    """A plan of its own for each put."""
    while True:
        program = Program("user", "program")
        yield PutPlan(options, define_queue("Q", **queue), define_manager(name="QM"), program)


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
def test_one_plan_serves_all_puts_with_its_options(options: PutOptions) -> None:
    one = next(new_plans(options, max_length=64))
    assert put_all(MESSAGES, itertools.repeat(one)) == put_all(MESSAGES, new_plans(options, max_length=64))


@pytest.mark.parametrize("options", ALL_OPTIONS)
@pytest.mark.parametrize("persistent", [False, True])
def test_a_body_alone_is_put_as_a_message_that_says_the_defaults(options: PutOptions, persistent: bool) -> None:
    """A body alone takes a short way: the long one, which a number in no group forces, gives the same."""
    attributes = {"default_priority": 3, "default_persistence": persistent, "expiry": 9.0}
    short = put_all([Message(b"body")], new_plans(options, **attributes))
    long = put_all([Message(b"body", sequence_number=2)], new_plans(options, **attributes))
    assert short == long


def test_r2_7_the_first_that_contradicts_ends_the_request() -> None:
    messages = [Message(b"first", flags=Flags.IN_GROUP), Message(b"in no group")]
    with pytest.raises(InconsistentCall) as raised:
        put_all(messages, new_plans(LOGICAL))
    assert raised.value.reason is Reason.INCOMPLETE_GROUP


def test_r2_3_where_puts_are_inhibited_no_put_is_accepted() -> None:
    with pytest.raises(PutInhibited):
        put_all([Message(b"")], new_plans(LOGICAL, put_allowed=False))
