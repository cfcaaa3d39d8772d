"""Places of groups that the scenario tables cannot express; the relaxed choice; deadlocks."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inorder.model.attributes import define_queue
from inorder.model.message import IN_GROUP, LAST_IN_GROUP, Message, Place
from inorder.rules.ordering import effective_priority, first, is_deadlocked

# delivery, the queue's default, the message -> the effective priority (the rest: tests/scenarios/priority_and_fifo.txt)
PLACEMENTS = [
    ("priority", 0, Message(priority=0, flags=IN_GROUP), 2),
    ("priority", 0, Message(priority=1, flags=LAST_IN_GROUP), 2),
    ("priority", 0, Message(priority=3, flags=IN_GROUP), 3),
    ("priority", 0, Message(priority=1, flags=IN_GROUP, sequence_number=2), 1),
    ("priority", 0, Message(priority=1, flags=IN_GROUP, offset=10), 1),
    ("priority", 0, Message(priority=1), 1),
    ("fifo", 1, Message(priority=0, flags=IN_GROUP), 1),
]


@pytest.mark.parametrize(("delivery", "default", "message", "expected"), PLACEMENTS)
def test_the_first_message_of_a_group_is_placed_at_priority_2_or_higher(
    delivery: str, default: int, message: Message, expected: int
) -> None:
    queue = define_queue("Q", delivery=delivery, default_priority=default, index_type="group_id")
    assert effective_priority(queue, message) == expected


@dataclass(frozen=True)
class Thing:
    place: Place


places = st.builds(Place, st.integers(-9, 0), st.integers(1, 50), st.integers(0, 3))


@given(st.sets(places), st.none() | places)
def test_the_relaxed_choice_is_the_earliest_message_after_the_given_place(
    found: set[Place], after: Place | None
) -> None:
    chosen = first([Thing(place) for place in found], after)
    behind = sorted(place for place in found if after is None or place > after)
    assert (chosen.place if chosen else None) == (behind[0] if behind else None)


# for each waiting reader, and each level: those for which it waits (the rest: tests/scenarios/strict_deadlock.txt)
@pytest.mark.parametrize(
    ("waits", "stuck"),
    [
        ({1: [{2}, {3}], 2: [{1}]}, False),  # 1 can go on at another level
        ({1: [{2, 3}], 2: [{1}]}, True),  # 1 needs both
        ({1: [{2}], 2: [{3}], 3: [{2}]}, True),  # 1 waits for a cycle of others
    ],
)
def test_b31_a_reader_that_can_never_proceed_is_deadlocked(waits: dict[int, list[set[int]]], stuck: bool) -> None:
    assert is_deadlocked(1, {one: [frozenset(level) for level in levels] for one, levels in waits.items()}) is stuck
