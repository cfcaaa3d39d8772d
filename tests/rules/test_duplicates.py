"""The verdict on a put under a key, cell by cell (decisions 330, 331)."""

from __future__ import annotations

import pytest

from inorder.errors import InconsistentCall
from inorder.model.message import IN_GROUP, LAST_IN_GROUP, SEGMENT
from inorder.rules.duplicates import DuplicateVerdict, Kept, check_whole, judge, settled
from inorder.rules.grouping import NOTHING_OPEN

MINE, THEIRS = 7, 8


@pytest.mark.parametrize(
    ("kept", "unit", "verdict"),
    [
        (None, None, DuplicateVerdict.PUT),
        (None, MINE, DuplicateVerdict.PUT),
        # It was put, outside of a unit of work or in one that is committed; the time is 100.
        (Kept(None, 100.5), None, DuplicateVerdict.DUPLICATE),
        (Kept(None, 100.5), MINE, DuplicateVerdict.DUPLICATE),
        (Kept(None, 100.0), None, DuplicateVerdict.PUT),
        (Kept(None, 99.0), MINE, DuplicateVerdict.PUT),
        # An open unit of work has put it, at any time.
        (Kept(MINE, 100.5), MINE, DuplicateVerdict.DUPLICATE),
        (Kept(MINE, 99.0), MINE, DuplicateVerdict.DUPLICATE),
        (Kept(THEIRS, 100.5), MINE, DuplicateVerdict.REFUSED),
        (Kept(THEIRS, 99.0), MINE, DuplicateVerdict.REFUSED),
        (Kept(THEIRS, 100.5), None, DuplicateVerdict.REFUSED),
        (Kept(THEIRS, 99.0), None, DuplicateVerdict.REFUSED),
    ],
)
def test_the_verdict_on_a_put_under_a_key_is_as_specified(
    kept: Kept | None, unit: int | None, verdict: DuplicateVerdict
) -> None:
    assert judge(kept, unit, 100.0) is verdict


def test_the_period_of_a_key_starts_again_at_the_commit() -> None:
    assert settled(10.0, 70.0, 500.0) == (500.0, 560.0)


@pytest.mark.parametrize(
    ("before", "after", "is_whole"),
    [(0, 0, True), (IN_GROUP, 0, False), (0, IN_GROUP, False), (SEGMENT, 0, False), (0, SEGMENT, False),
     (LAST_IN_GROUP, LAST_IN_GROUP, True)],
)  # fmt: skip
def test_in_logical_order_a_put_under_a_key_must_contain_whole_groups(before: int, after: int, is_whole: bool) -> None:
    states = [NOTHING_OPEN._replace(flags=flags) for flags in (before, after)]
    if is_whole:
        check_whole(*states)
    else:
        with pytest.raises(InconsistentCall):
            check_whole(*states)
