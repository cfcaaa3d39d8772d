"""The life-cycle table, compared with lifecycle A.3 and its extension to units of work."""

from __future__ import annotations

import pytest

from inorder.rules.lifecycle import (
    REFUSALS,
    TABLE,
    Event,
    Presented,
    State,
    StepAnswer,
    adds_backout,
    becomes_visible,
    changes,
    step,
)

# A.3 of the specification: PU, U, L, GU and BGU are the states of A-6, 0 is absent.
# `-` the call does not see the message, `E` refused, `i` ignored, `w` ignored with a warning, `=` no change.
SPECIFIED = """
event                       lock    0    PU   U    L    GU   BGU
put                         none    U    E    E    E    E    E
put, held                   none    PU   E    E    E    E    E
put again with resend       none    U    U    i    i    i    i
put again with resend, held none    PU   PU   i    i    i    i
confirm put                 none    w    U    i    i    i    i
get                         none    -    -    0    -    -    -
get                         right   .    .    .    0    .    .
get                         other   -    -    -    -    -    -
get, held                   none    -    -    GU   -    -    -
get, held                   right   .    .    .    BGU  .    .
get, held                   other   -    -    -    -    -    -
confirm get                 none    w    E    E    E    0    0
browse                      none    -    -    =    -    -    -
browse and lock             none    -    -    L    -    -    -
unlock                      none    E    E    E    E    E    E
unlock                      right   .    .    .    U    .    .
unlock                      other   E    E    E    E    E    E
delete                      none    E    E    0    E    E    E
delete                      right   .    .    .    0    .    .
delete                      other   E    E    E    E    E    E
unit confirmed              none    -    U    -    -    0    0
unit backed out             none    -    0    -    -    U    L
lock undone                 none    -    -    -    U    -    -
get and lock undone         none    -    -    -    -    -    U
lease over                  none    -    -    -    U    -    GU
expiry time reached         none    -    0    0    0    0    0
restart                     none    -    =    =    =    =    =
"""
NAMES = dict(zip("0 PU U L GU BGU".split(), State, strict=True))
LOCKS = {"none": Presented.NONE, "right": Presented.RIGHT, "other": Presented.OTHER}
ANSWERS = {"-": {StepAnswer.UNSEEN}, "i": {StepAnswer.IGNORED}, "w": {StepAnswer.IGNORED_WARNING}, "E": set(REFUSALS)}


def specified_cells() -> list[tuple[Event, Presented, State, str]]:
    cells = []
    for line in SPECIFIED.strip().splitlines()[1:]:
        *event, lock, c0, c1, c2, c3, c4, c5 = line.split()
        for state, cell in zip(State, (c0, c1, c2, c3, c4, c5), strict=True):
            if cell != ".":  # a lock that holds the message can be presented only where it is locked
                cells.append((Event(" ".join(event)), LOCKS[lock], state, cell))
    return cells


@pytest.mark.parametrize(("event", "lock", "state", "cell"), specified_cells())
def test_the_table_matches_the_specification(event: Event, lock: Presented, state: State, cell: str) -> None:
    answer, to = step(state, event, lock)
    if cell in NAMES:
        assert (answer, to) == (StepAnswer.DONE, NAMES[cell])
    elif cell == "=":
        assert (answer, to) == (StepAnswer.DONE, None)
    else:
        assert answer in ANSWERS[cell]
        assert to is None


def test_the_table_is_complete() -> None:
    assert set(TABLE) == {(event, state) for event in Event for state in State}
    for answer, to in (one for cell in TABLE.values() for one in cell):
        assert answer is StepAnswer.DONE or to is None
        assert answer in REFUSALS or "refused" not in answer.value
    assert {event for event, *_ in specified_cells()} == set(Event), "add the new event to SPECIFIED"


def test_a_message_becomes_visible_by_its_put_and_not_again_by_an_undone_get_or_lock() -> None:
    assert becomes_visible(State.ABSENT, State.UNLOCKED)
    assert becomes_visible(State.PUT_UNCONFIRMED, State.UNLOCKED)
    assert not becomes_visible(State.GET_UNCONFIRMED, State.UNLOCKED)
    assert not becomes_visible(State.LOCKED, State.UNLOCKED)


def test_only_an_undone_get_counts_as_a_back_out() -> None:
    counted = {(a, b) for a in State for b in State if adds_backout(a, b)}
    got, returned = (State.GET_UNCONFIRMED, State.BROWSE_GET_UNCONFIRMED), (State.UNLOCKED, State.LOCKED)
    assert counted == {(a, b) for a in got for b in returned}


def test_changes_are_the_steps_of_the_table_that_lead_to_another_state() -> None:
    steps = {(state, one.to) for (_, state), cell in TABLE.items() for one in cell if one.to not in (None, state)}
    assert set(changes()) == steps
    assert changes()[State.LOCKED, State.UNLOCKED] == ["unlock, with its lock", "lock undone", "lease over"]
