"""The put and get tables, consistency and completeness, case by case and as properties."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inorder.errors import InconsistentCall, MatchError, Reason
from inorder.model.fields import NUMBER_MAX
from inorder.model.message import IN_GROUP, LAST_IN_GROUP, LAST_SEGMENT, NO_ID, SEGMENT, SEGMENTATION_ALLOWED, Message
from inorder.model.options import GetOptions, Match
from inorder.rules.grouping import (
    NOTHING_OPEN,
    PUT_TABLE,
    GroupState,
    Members,
    check_put,
    has_what_it_needs,
    number_put,
    state_after,
    wanted,
)

G = b"G".ljust(24, b"\0")
FIELD = b"F".ljust(24, b"\0")
NEW = b"N".ljust(24, b"\0")
GROUP_OPEN = GroupState(G, 3, 0, 10, IN_GROUP, persistent=True, in_unit=False, logical=True)
MESSAGE_OPEN = GroupState(G, 1, 20, 10, SEGMENT, persistent=True, in_unit=False, logical=True)
BOTH_OPEN = GroupState(G, 3, 20, 10, IN_GROUP | SEGMENT, persistent=True, in_unit=False, logical=True)


def put(state: GroupState, flags: int, *, logical: bool) -> tuple[bytes, int, int]:
    message = Message(b"body", flags=flags, group_id=FIELD, sequence_number=7, offset=70)
    return number_put(state, message, logical=logical, new_id=lambda: NEW)


# row, state, flags, logical order -> group id, sequence number, offset
PUT_ROWS = [
    ("P1", NOTHING_OPEN, 0, True, (NO_ID, 1, 0)),
    ("P2", NOTHING_OPEN, SEGMENTATION_ALLOWED, True, (NEW, 1, 0)),
    ("P3", NOTHING_OPEN, SEGMENT, True, (NEW, 1, 0)),
    ("P4", MESSAGE_OPEN, SEGMENT, True, (G, 1, 30)),
    ("P5", NOTHING_OPEN, IN_GROUP, True, (NEW, 1, 0)),
    ("P6", GROUP_OPEN, LAST_IN_GROUP, True, (G, 4, 0)),
    ("P7", BOTH_OPEN, IN_GROUP | LAST_SEGMENT, True, (G, 3, 30)),
    ("P8", BOTH_OPEN, 0, False, (NO_ID, 1, 0)),
    ("P9", BOTH_OPEN, SEGMENTATION_ALLOWED, False, (FIELD, 1, 0)),
    ("P10", BOTH_OPEN, SEGMENT, False, (FIELD, 1, 70)),
    ("P11", BOTH_OPEN, IN_GROUP, False, (FIELD, 7, 0)),
    ("P12", BOTH_OPEN, IN_GROUP | SEGMENT, False, (FIELD, 7, 70)),
]


@pytest.mark.parametrize(("row", "state", "flags", "logical", "expected"), PUT_ROWS)
def test_a_put_is_numbered_by_its_row(
    row: str, state: GroupState, flags: int, logical: bool, expected: tuple[bytes, int, int]
) -> None:
    assert put(state, flags, logical=logical) == expected, row


def test_every_row_of_the_put_table_is_tried_and_no_put_falls_between_them() -> None:
    """Whatever the checks let through has exactly one row."""
    assert [row for row, *_ in PUT_ROWS] == [row.name for row in PUT_TABLE]
    flag_sets = [sum(chosen) for chosen in product((0, 1), (0, 2), (0, 4), (0, 8), (0, 16))]
    for state, flags, logical in product((NOTHING_OPEN, GROUP_OPEN, MESSAGE_OPEN, BOTH_OPEN), flag_sets, (0, 1)):
        try:
            check_put(state, Message(flags=flags), logical=bool(logical), persistent=True, in_unit=False)
        except InconsistentCall:
            assert logical
            continue
        assert len(put(state, flags, logical=bool(logical))) == 3


@given(st.data())
def test_a_group_put_in_logical_order_is_contiguous(data: st.DataObject) -> None:
    """Any lawful sequence of flags gives sequence numbers 1..n, and offsets that follow each other."""
    state, seen = NOTHING_OPEN, []
    sizes = data.draw(st.lists(st.lists(st.integers(1, 50), min_size=1, max_size=4), min_size=1, max_size=5))
    for n, pieces in enumerate(sizes):
        group = LAST_IN_GROUP if n == len(sizes) - 1 else IN_GROUP
        for m, size in enumerate(pieces):
            whole = len(pieces) == 1 and data.draw(st.booleans())
            segment = 0 if whole else LAST_SEGMENT if m == len(pieces) - 1 else SEGMENT
            message = Message(bytes(size), flags=group | segment)
            assert check_put(state, message, logical=True, persistent=False, in_unit=False) is None
            numbers = number_put(state, message, logical=True, new_id=lambda: NEW)
            placed = message.with_values(**numbers._asdict())
            state = state_after(placed, in_unit=False, logical=True)
            seen.append((numbers.sequence_number, numbers.offset))
    assert not state.group_open
    assert not state.message_open
    assert seen == [(n + 1, sum(pieces[:m])) for n, pieces in enumerate(sizes) for m in range(len(pieces))]


# state, flags, persistent, in a unit -> the reason in logical order
CONTRADICTIONS = [
    (GROUP_OPEN, 0, True, False, Reason.INCOMPLETE_GROUP),
    (MESSAGE_OPEN, 0, True, False, Reason.INCOMPLETE_MSG),
    (MESSAGE_OPEN, SEGMENT | IN_GROUP, True, False, Reason.INCOMPLETE_MSG),
    (BOTH_OPEN, IN_GROUP, True, False, Reason.INCOMPLETE_MSG),
    (BOTH_OPEN, LAST_IN_GROUP | SEGMENT, True, False, Reason.INCOMPLETE_MSG),
    (BOTH_OPEN, 0, True, False, Reason.INCOMPLETE_MSG),
    (GROUP_OPEN, IN_GROUP, False, False, Reason.INCONSISTENT_PERSISTENCE),
    (GROUP_OPEN, IN_GROUP, True, True, Reason.INCONSISTENT_UOW),
    (GROUP_OPEN, IN_GROUP, False, True, Reason.INCONSISTENT_PERSISTENCE),
    (GROUP_OPEN, 0, False, True, Reason.INCOMPLETE_GROUP),
    (BOTH_OPEN, 0, False, True, Reason.INCOMPLETE_MSG),
]


@pytest.mark.parametrize(("state", "flags", "persistent", "in_unit", "reason"), CONTRADICTIONS)
def test_a_put_that_contradicts_is_refused_in_logical_order_and_warned_of_after_it(
    state: GroupState, flags: int, persistent: bool, in_unit: bool, reason: Reason
) -> None:
    message = Message(b"x", flags=flags)
    with pytest.raises(InconsistentCall) as refused:
        check_put(state, message, logical=True, persistent=persistent, in_unit=in_unit)
    assert refused.value.reason is reason
    warning = check_put(state, message, logical=False, persistent=persistent, in_unit=in_unit)
    assert warning is (Reason.INCOMPLETE_MSG if state.message_open else Reason.INCOMPLETE_GROUP)
    physical = state._replace(logical=False)
    assert check_put(physical, message, logical=False, persistent=persistent, in_unit=in_unit) is None


@pytest.mark.parametrize("flags", [IN_GROUP, LAST_IN_GROUP, IN_GROUP | SEGMENT])
def test_the_last_number_of_a_group_is_999_999_999(flags: int) -> None:
    full = GROUP_OPEN._replace(sequence_number=NUMBER_MAX)
    with pytest.raises(ValueError, match="sequence_number") as refused:
        number_put(full, Message(b"x", flags=flags), logical=True, new_id=lambda: NEW)
    assert refused.value.reason is Reason.MSG_SEQ_NUMBER_ERROR  # type: ignore[attr-defined]


def test_the_last_byte_of_a_logical_message_is_999_999_999() -> None:
    near = MESSAGE_OPEN._replace(offset=NUMBER_MAX - 14, length=10)
    message = Message(b"1234", flags=SEGMENT)
    assert number_put(near, message, logical=True, new_id=lambda: NEW).offset == NUMBER_MAX - 4
    with pytest.raises(ValueError, match="offset") as refused:
        number_put(near, Message(b"12345", flags=SEGMENT), logical=True, new_id=lambda: NEW)
    assert refused.value.reason is Reason.OFFSET_ERROR  # type: ignore[attr-defined]


def test_a_get_looks_for_what_its_row_says() -> None:
    logical, physical = GetOptions(logical=True), GetOptions(match=Match(sequence_number=2))
    assert wanted(NOTHING_OPEN, logical).heads  # G1
    assert wanted(MESSAGE_OPEN, logical).member == (G, 1, 30)  # G2
    assert wanted(GROUP_OPEN, logical).member == (G, 4, 0)  # G3
    assert wanted(BOTH_OPEN, logical).member == (G, 3, 30)  # G4
    found = wanted(BOTH_OPEN, physical)  # G5
    assert (found.heads, found.member, found.match) == (False, None, physical.match)


def test_completeness_is_asked_of_groups_and_messages_before_they_are_entered() -> None:
    for state, option, needs in [
        (NOTHING_OPEN, "all_messages", "group"),
        (NOTHING_OPEN, "all_segments", "segments"),
        (NOTHING_OPEN, "complete", "segments"),
        (GROUP_OPEN, "all_messages", "nothing"),
        (GROUP_OPEN, "all_segments", "segments"),
        (MESSAGE_OPEN, "all_messages", "nothing"),
        (MESSAGE_OPEN, "all_segments", "nothing"),
    ]:
        options = GetOptions(logical=True, **{option: True})  # type: ignore[arg-type]
        assert wanted(state, options).needs == needs, (state, option)


def test_criteria_that_cannot_hold_are_refused_at_once() -> None:
    for state, match in [
        (NOTHING_OPEN, Match(sequence_number=2)),
        (NOTHING_OPEN, Match(offset=1)),
        (GROUP_OPEN, Match(group_id=FIELD)),
        (GROUP_OPEN, Match(sequence_number=3)),
        (BOTH_OPEN, Match(offset=20)),
    ]:
        with pytest.raises(MatchError):
            wanted(state, GetOptions(logical=True, match=match))


messages = st.lists(st.lists(st.integers(1, 20), min_size=1, max_size=4), min_size=1, max_size=4)


def group_of(sizes: list[list[int]]) -> list[Message]:
    members = []
    for n, pieces in enumerate(sizes):
        group = IN_GROUP | (LAST_IN_GROUP if n == len(sizes) - 1 else 0)
        for m, size in enumerate(pieces):
            last = LAST_SEGMENT if m == len(pieces) - 1 else 0
            flags = group | (SEGMENT | last if len(pieces) > 1 else 0)
            message = Message(bytes(size), flags=flags, group_id=G, sequence_number=n + 1, offset=sum(pieces[:m]))
            members.append(message)
    return members


@given(messages, st.randoms(use_true_random=False))
def test_a_whole_group_is_complete_in_any_order_of_arrival(sizes: list[list[int]], random: object) -> None:
    members = group_of(sizes)
    random.shuffle(members)  # type: ignore[attr-defined]
    assert Members(members).group_is_complete()
    for message in members:
        assert has_what_it_needs(message, "group", lambda _: Members(members))
        assert has_what_it_needs(message, "segments", lambda _: Members(members))


@given(messages, st.data())
def test_a_group_that_lacks_any_one_piece_is_incomplete(sizes: list[list[int]], data: st.DataObject) -> None:
    members = group_of(sizes)
    missing = members.pop(data.draw(st.integers(0, len(members) - 1)))
    there = Members(members)
    assert not there.group_is_complete()
    for message in members:
        assert not has_what_it_needs(message, "group", lambda _: there)
        same = message.sequence_number == missing.sequence_number
        assert has_what_it_needs(message, "segments", lambda _: there) is not same


def test_of_two_messages_in_one_place_of_a_group_the_first_counts() -> None:
    one = Message(b"one", flags=IN_GROUP | LAST_IN_GROUP, group_id=G)
    two = Message(b"two", flags=IN_GROUP, group_id=G)
    assert Members([one, two]).group_is_complete()
    assert not Members([two, one]).group_is_complete()
