"""Limits failed log-ins: each user and each address has a bucket that failures fill and time drains.

A log-in is counted before it is tried, and the count is undone if it succeeds; so log-ins that run at the same time in
several servers are limited too. If a bucket has no room, the log-in is refused, nothing is counted, and the answer says
how long to wait.

An empty bucket is deleted. There are at most `BUCKETS_MAX`; after that, new names or addresses share one bucket of
their kind. So an attacker who makes up names or addresses fills that bucket, and not the store.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, Literal, NamedTuple

Kind = Literal["user", "address"]
BUCKETS_MAX: Final = 1000


class FailureLimit(NamedTuple):
    """The number of failures allowed in a burst, and the seconds after which one more is allowed."""

    failures: int
    seconds: float


LIMITS: Final[Mapping[str, FailureLimit]] = MappingProxyType(
    {"user": FailureLimit(5, 30.0), "address": FailureLimit(20, 6.0)}
)


class Bucket(NamedTuple):
    """The number of failures that counted at a time; seconds since 1970."""

    level: float = 0.0
    at: float = 0.0


def level(bucket: Bucket, limit: FailureLimit, now: float) -> float:
    """The number of failures that count now; a clock that was set back a little removes none.

    A full bucket drains in `failures * seconds`. If the bucket's time is further in the future than this, it was filled
    by a clock that was ahead. Nothing in it counts then; otherwise the user would be shut out until that time.
    """
    if bucket.at - now > limit.failures * limit.seconds:
        return 0.0
    return max(0.0, bucket.level - max(0.0, now - bucket.at) / limit.seconds)


def wait(bucket: Bucket, limit: FailureLimit, now: float) -> float:
    """Seconds to wait before the next log-in attempt; 0: none."""
    over = level(bucket, limit, now) + 1.0 - limit.failures
    return max(0.0, over * limit.seconds)


def counted(bucket: Bucket, limit: FailureLimit, now: float) -> Bucket:
    """The bucket with one more failure, before a log-in is tried."""
    return Bucket(level(bucket, limit, now) + 1.0, now)


def forgiven(bucket: Bucket, limit: FailureLimit, now: float) -> Bucket:
    """The bucket after that log-in has succeeded."""
    return Bucket(max(0.0, level(bucket, limit, now) - 1.0), now)


def empty_at(bucket: Bucket, limit: FailureLimit) -> float:
    """When the bucket will be empty."""
    return bucket.at + bucket.level * limit.seconds


def key_of(kind: Kind, name: str) -> str:
    """The key of a bucket."""
    return f"{kind}:{name}"


def shared_key(key: str) -> str:
    """The key of the shared bucket, for names beyond the limit of buckets."""
    return f"{key.partition(':')[0]}:"


def limit_of(key: str) -> FailureLimit:
    """The limit of a bucket, by its key."""
    return LIMITS[key.partition(":")[0]]
