"""How many log-ins may fail: a bucket for each user and each address, which fills by failures and drains by time.

A log-in is counted before it is tried, and forgiven if it succeeds: so those that run at once in several servers are
bounded too. Where one bucket has no room the log-in is refused, nothing is counted, and the answer says for how long.

A bucket that has drained is forgotten. There are at most `BUCKETS_MAX`: what has none of its own then shares one, by
kind, so an attacker who makes up names or addresses fills that, and not the store.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, Literal, NamedTuple

Kind = Literal["user", "address"]
BUCKETS_MAX: Final = 1000


class FailureLimit(NamedTuple):
    """So many failures at once, and one more after each so many seconds."""

    failures: int
    seconds: float


LIMITS: Final[Mapping[str, FailureLimit]] = MappingProxyType(
    {"user": FailureLimit(5, 30.0), "address": FailureLimit(20, 6.0)}
)


class Bucket(NamedTuple):
    """How many failures counted, and when that was; seconds since 1970."""

    level: float = 0.0
    at: float = 0.0


def level(bucket: Bucket, limit: FailureLimit, now: float) -> float:
    """How many failures count now; a clock that was set back a little takes nothing off.

    A full bucket drains in `failures * seconds`. One that lies in the future by more was filled when a clock was ahead:
    nothing in it counts, or a user would be shut out until that time.
    """
    if bucket.at - now > limit.failures * limit.seconds:
        return 0.0
    return max(0.0, bucket.level - max(0.0, now - bucket.at) / limit.seconds)


def wait(bucket: Bucket, limit: FailureLimit, now: float) -> float:
    """For how many seconds no log-in may be tried; 0: one may."""
    over = level(bucket, limit, now) + 1.0 - limit.failures
    return max(0.0, over * limit.seconds)


def counted(bucket: Bucket, limit: FailureLimit, now: float) -> Bucket:
    """After a log-in that may fail."""
    return Bucket(level(bucket, limit, now) + 1.0, now)


def forgiven(bucket: Bucket, limit: FailureLimit, now: float) -> Bucket:
    """After it has succeeded."""
    return Bucket(max(0.0, level(bucket, limit, now) - 1.0), now)


def empty_at(bucket: Bucket, limit: FailureLimit) -> float:
    """When nothing counts any more."""
    return bucket.at + bucket.level * limit.seconds


def key_of(kind: Kind, name: str) -> str:
    """How a bucket is called."""
    return f"{kind}:{name}"


def shared_key(key: str) -> str:
    """The bucket of what has no room for one of its own."""
    return f"{key.partition(':')[0]}:"


def limit_of(key: str) -> FailureLimit:
    """The limit of a bucket, by its name."""
    return LIMITS[key.partition(":")[0]]
