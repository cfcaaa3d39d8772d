"""The limit on failed log-ins, as histories of one bucket: the second of each attempt, and its wait."""

from __future__ import annotations

import pytest

from inorder.rules.log_ins import (
    LIMITS,
    Bucket,
    FailureLimit,
    counted,
    empty_at,
    forgiven,
    key_of,
    level,
    limit_of,
    shared_key,
    wait,
)

LIMIT = FailureLimit(3, 10.0)


@pytest.mark.parametrize(
    "tries",
    [
        [(0, 0), (0, 0), (0, 0), (0, 10), (9, 1), (10, 0), (10, 10)],  # three at once, then one each ten seconds
        [(0, 0), (5, 0), (10, 0), (15, 0), (20, 0), (25, 5)],  # half of them drain meanwhile
        [(0, 0), (0, 0), (0, 0), (1000, 0), (1000, 0), (1000, 0), (1000, 10)],  # all drain, and no more than all
        [(30, 0), (30, 0), (30, 0), (0, 10), (15, 10), (40, 0)],  # a clock that is set back drains nothing
        [(10**8, 0), (10**8, 0), (10**8, 0), (0, 0), (0, 0), (0, 0), (0, 10)],  # a clock that was ahead does no harm
    ],
)
def test_the_wait_of_a_log_in_follows_from_the_attempts_before_it(tries: list[tuple[int, int]]) -> None:
    bucket = Bucket()
    for now, seconds in tries:
        assert wait(bucket, LIMIT, now) == pytest.approx(seconds), (now, bucket)
        if not seconds:
            bucket = counted(bucket, LIMIT, now)


def test_a_successful_log_in_is_no_longer_counted_and_earlier_failures_still_are() -> None:
    bucket = Bucket()
    for _ in range(100):
        assert wait(bucket, LIMIT, 0.0) == 0.0
        bucket = forgiven(counted(bucket, LIMIT, 0.0), LIMIT, 0.0)
    assert bucket.level == 0.0
    failed = counted(bucket, LIMIT, 0.0)
    assert forgiven(counted(failed, LIMIT, 0.0), LIMIT, 0.0).level == 1.0
    assert forgiven(Bucket(), LIMIT, 0.0).level == 0.0


def test_a_bucket_is_empty_at_the_predicted_time() -> None:
    bucket = counted(counted(Bucket(), LIMIT, 100.0), LIMIT, 100.0)
    assert empty_at(bucket, LIMIT) == 120.0
    assert level(bucket, LIMIT, 119.0) > 0.0 == level(bucket, LIMIT, 120.0)


def test_names_without_room_share_one_bucket_of_their_kind() -> None:
    assert shared_key(key_of("user", "a:b")) == "user:"
    assert shared_key(key_of("address", "::1")) == "address:"
    assert limit_of("user:") == limit_of(key_of("user", "x")) == LIMITS["user"] != LIMITS["address"]
