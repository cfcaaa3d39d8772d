"""Places: effective priority, numbers, the relaxed choice, the cursor."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inorder.model.attributes import define_queue
from inorder.model.message import IN_GROUP, LAST_IN_GROUP, Message, Place
from inorder.rules.ordering import UNSET, Moment, draws_number, effective_priority, first

# delivery, the queue's default, index type, the message -> the effective priority
PLACEMENTS = [
    ("priority", 0, "none", Message(priority=4), 4),
    ("priority", 3, "none", Message(), 3),
    ("priority", 0, "none", Message(priority=12), 9),
    ("fifo", 0, "none", Message(priority=9), 0),
    ("fifo", 5, "none", Message(priority=9), 5),
    ("priority", 0, "group_id", Message(priority=0, flags=IN_GROUP), 2),
    ("priority", 0, "group_id", Message(priority=1, flags=LAST_IN_GROUP), 2),
    ("priority", 0, "group_id", Message(priority=3, flags=IN_GROUP), 3),
    ("priority", 0, "group_id", Message(priority=1, flags=IN_GROUP, sequence_number=2), 1),
    ("priority", 0, "group_id", Message(priority=1, flags=IN_GROUP, offset=10), 1),
    ("priority", 0, "group_id", Message(priority=1), 1),
    ("fifo", 1, "group_id", Message(priority=0, flags=IN_GROUP), 1),
]


@pytest.mark.parametrize(("delivery", "default", "index", "message", "expected"), PLACEMENTS)
def test_effective_priority_at_arrival(
    delivery: str, default: int, index: str, message: Message, expected: int
) -> None:
    queue = define_queue("Q", delivery=delivery, default_priority=default, index_type=index)
    assert effective_priority(queue, message) == expected


@pytest.mark.parametrize(
    ("order", "drawn_at"),
    [("put", "put prepare commit"), ("prepare", "prepare commit"), ("commit", "commit")],
)
def test_the_order_rule_says_when_the_number_is_drawn(order: str, drawn_at: str) -> None:
    assert {moment for moment in Moment if draws_number(order, moment)} == {
        Moment[moment.upper()] for moment in drawn_at.split()
    }


@dataclass(frozen=True)
class Thing:
    place: Place


places = st.builds(Place, st.integers(-9, 0), st.integers(1, 50), st.integers(0, 3))


@given(st.sets(places), st.none() | places)
def test_the_relaxed_choice_is_the_earliest_behind(found: set[Place], after: Place | None) -> None:
    chosen = first([Thing(place) for place in found], after)
    behind = sorted(place for place in found if after is None or place > after)
    assert (chosen.place if chosen else None) == (behind[0] if behind else None)


def test_within_a_group_the_cursor_moves_and_its_anchor_stays() -> None:
    head, member = Place(0, 5, 0), Place(0, 2, 0)
    on_head = UNSET.moved(head, 1, logical=True, head=True)
    on_member = on_head.moved(member, 2, logical=True, head=False)
    assert on_member.place == member
    assert on_member.behind(logical=True) == head
    assert UNSET.behind(logical=True) is None


def test_a_physical_cursor_looks_behind_its_own_place() -> None:
    cursor = UNSET.moved(Place(0, 5, 0), 1, logical=False, head=False)
    assert cursor.behind(logical=False) == Place(0, 5, 0)
