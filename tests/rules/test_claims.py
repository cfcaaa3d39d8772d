"""The meaning of each call about claims, and the cutting of claims (rules.claims)."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inorder.errors import CheckpointLost, CheckpointTooOld, Fenced
from inorder.rules.claims import ClaimRecord, Next, check_epoch, next_claim, plan, settle, skip, slices, takes_ahead

NEW = ClaimRecord()
DONE_3 = ClaimRecord(epoch=1, settled=3)
OPEN_4 = ClaimRecord(epoch=1, settled=3, open=True)
PLANNED_4 = ClaimRecord(epoch=1, settled=3, open=True, planned=True)
AHEAD_5 = ClaimRecord(epoch=1, settled=3, open=True, planned=True, ahead=True)
OLD, LOST = CheckpointTooOld, CheckpointLost


def outcome(call: object, *given: object) -> object:
    try:
        return call(*given, "app")  # type: ignore[operator]
    except (CheckpointTooOld, CheckpointLost) as error:
        return type(error)


# The checkpoint says that claims up to `start` are done.
NEXT = [
    #           start: 2    3                     4                      5
    (NEW, {0: Next.TAKE, 1: LOST}),
    (DONE_3, {2: OLD, 3: Next.TAKE, 4: LOST, 5: LOST}),
    (OPEN_4, {2: OLD, 3: Next.GIVE, 4: Next.CONFIRM_AND_TAKE, 5: LOST}),
    (PLANNED_4, {2: OLD, 3: LOST, 4: Next.CONFIRM_AND_TAKE, 5: LOST}),
    (AHEAD_5, {2: OLD, 3: LOST, 4: Next.CONFIRM_AND_GIVE, 5: LOST}),
]


# The claim after `start`, which is being worked on, is to be taken ahead.
AHEAD = [
    (NEW, {0: OLD, 1: LOST}),
    (DONE_3, {2: OLD, 3: OLD, 4: LOST}),
    (OPEN_4, {3: OLD, 4: False, 5: LOST}),
    (PLANNED_4, {3: OLD, 4: True, 5: LOST}),
    (AHEAD_5, {3: OLD, 4: False, 5: LOST}),
]


# The reader wants to work on the claims after `after`, up to `upto`.
PLAN = [
    (NEW, {(0, 0): False, (0, 1): LOST}),
    (DONE_3, {(3, 3): False, (2, 3): OLD, (3, 4): LOST}),
    (OPEN_4, {(4, 4): False, (3, 4): True, (2, 4): LOST, (2, 3): OLD, (4, 5): LOST}),
    (PLANNED_4, {(3, 4): True, (2, 4): LOST, (2, 3): OLD, (4, 5): LOST}),
    (AHEAD_5, {(3, 4): True, (3, 5): LOST, (4, 5): LOST}),
]


# The reader's checkpoint has a claim without messages.
SKIP = [
    (NEW, {1: True, 2: LOST}),
    (DONE_3, {3: False, 4: True, 5: LOST}),
    (OPEN_4, {3: False, 4: LOST, 5: LOST}),
    (AHEAD_5, {3: False, 4: LOST, 6: LOST}),
]


SETTLE = [
    (NEW, {0: False, 1: LOST}),
    (DONE_3, {1: False, 3: False, 4: LOST}),
    (OPEN_4, {3: False, 4: True, 5: LOST}),
    (PLANNED_4, {3: False, 4: True, 5: LOST}),
    (AHEAD_5, {3: False, 4: True, 5: LOST}),
]


ALL: list[tuple[Any, list[Any]]] = [
    (next_claim, NEXT),
    (takes_ahead, AHEAD),
    (plan, PLAN),
    (skip, SKIP),
    (settle, SETTLE),
]
CELLS = [pytest.param(call, *row, id=f"{call.__name__} {row[0]}") for call, table in ALL for row in table]


@pytest.mark.parametrize(("call", "record", "answers"), CELLS)
def test_each_call_about_claims_has_the_specified_meaning(
    call: Any, record: ClaimRecord, answers: dict[Any, object]
) -> None:
    asked = {one: one if isinstance(one, tuple) else (one,) for one in answers}
    assert {one: outcome(call, record, *given) for one, given in asked.items()} == answers


@pytest.mark.parametrize("epoch", [0, 1, 3])
def test_only_the_last_start_of_an_application_may_act(epoch: int) -> None:
    check_epoch(ClaimRecord(epoch=2), 2, "app")
    with pytest.raises(Fenced, match=r"application 'app' was started again.*epoch 2") as caught:
        check_epoch(ClaimRecord(epoch=2), epoch, "app")
    assert caught.value.data == {"application": "app", "epoch": epoch, "current": 2}


# ---- slices

SLICES = [
    #  messages, spans, most, cut
    (0, [], 3, []),
    (5, [], 1, [(1, 5)]),
    (5, [], 2, [(1, 3), (4, 5)]),
    (5, [], 9, [(1, 1), (2, 2), (3, 3), (4, 4), (5, 5)]),
    (6, [(2, 5)], 3, [(1, 5), (6, 6)]),
    (6, [(3, 4)], 3, [(1, 2), (3, 4), (5, 6)]),
    (6, [(1, 3), (2, 4)], 6, [(1, 4), (5, 5), (6, 6)]),
    (6, [(1, 6)], 6, [(1, 6)]),
]


@pytest.mark.parametrize(("messages", "spans", "most", "cut"), SLICES)
def test_a_claim_is_cut_between_groups(
    messages: int, spans: list[tuple[int, int]], most: int, cut: list[tuple[int, int]]
) -> None:
    assert slices(messages, spans, most) == cut


@given(st.data())
def test_slices_cover_everything_once_and_cut_no_group(data: st.DataObject) -> None:
    messages = data.draw(st.integers(1, 40))
    position = st.integers(1, messages)
    spans = data.draw(st.lists(st.tuples(position, position).map(lambda two: (min(two), max(two))), max_size=6))
    most = data.draw(st.integers(1, 8))
    cut = slices(messages, spans, most)
    assert [n for first, last in cut for n in range(first, last + 1)] == list(range(1, messages + 1))
    assert len(cut) <= most
    for first, last in spans:
        assert any(begins <= first and last <= ends for begins, ends in cut)
