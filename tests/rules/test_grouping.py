"""Properties of the put table; the scenario tables have its cases."""

from __future__ import annotations

from itertools import product

from hypothesis import given
from hypothesis import strategies as st

from inorder.errors import InconsistentCall
from inorder.model.message import IN_GROUP, LAST_IN_GROUP, LAST_SEGMENT, NO_ID, SEGMENT, Message
from inorder.rules.grouping import NOTHING_OPEN, GroupState, check_put, number_put, state_after

G = b"G".ljust(24, b"\0")
FIELD = b"F".ljust(24, b"\0")
NEW = b"N".ljust(24, b"\0")
GROUP_OPEN = GroupState(G, 3, 0, 10, IN_GROUP, persistent=True, in_unit=False, logical=True)
MESSAGE_OPEN = GroupState(G, 1, 20, 10, SEGMENT, persistent=True, in_unit=False, logical=True)
BOTH_OPEN = GroupState(G, 3, 20, 10, IN_GROUP | SEGMENT, persistent=True, in_unit=False, logical=True)


def put(state: GroupState, flags: int, *, logical: bool) -> tuple[bytes, int, int]:
    message = Message(b"body", flags=flags, group_id=FIELD, sequence_number=7, offset=70)
    return number_put(state, message, logical=logical, new_id=lambda: NEW)


def test_every_accepted_put_has_a_row_of_the_put_table() -> None:
    """Each put that passes the checks has exactly one row. `tests/scenarios/put_groups.txt` has all rows."""
    assert put(NOTHING_OPEN, 0, logical=True) == (NO_ID, 1, 0)
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
    """Any valid sequence of flags gives sequence numbers 1..n and consecutive offsets."""
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
