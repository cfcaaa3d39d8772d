"""The end of a lease that was given 30 seconds at the time 1,000."""

from __future__ import annotations

import pytest

from inorder.rules.leases import SLACK_SECONDS, deadline, is_over

GIVEN_AT, SECONDS = 1000.0, 30.0
ENDS_AT = GIVEN_AT + SECONDS


@pytest.mark.parametrize(
    ("now", "over"),
    [
        (0.0, False),  # the clock was set back
        (GIVEN_AT, False),
        (ENDS_AT - 0.001, False),
        (ENDS_AT, True),
        (ENDS_AT + 0.001, True),
        (1e9, True),  # the clock was set forward: the lease ends early, which is safe
    ],
)
def test_a_lease_is_over_from_its_deadline_on(now: float, over: bool) -> None:
    assert is_over(ENDS_AT, now) is over


@pytest.mark.parametrize(
    ("now", "ends_at"),
    [
        (GIVEN_AT, ENDS_AT),
        (GIVEN_AT + 29.0, ENDS_AT),
        (ENDS_AT + 5.0, ENDS_AT),  # a deadline that has passed is not moved
        (GIVEN_AT - SLACK_SECONDS, ENDS_AT),  # the clocks of two processors differ
        (GIVEN_AT - SLACK_SECONDS - 0.001, GIVEN_AT - SLACK_SECONDS - 0.001 + SECONDS),
        (GIVEN_AT - 3600.0, GIVEN_AT - 3600.0 + SECONDS),  # set back an hour: 30 seconds are left, not 3,630
    ],
)
def test_a_lease_never_has_more_left_than_it_was_given(now: float, ends_at: float) -> None:
    assert deadline(ENDS_AT, SECONDS, now) == pytest.approx(ends_at, abs=1e-9)
