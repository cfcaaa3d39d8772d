"""Puts with a deduplication key: a put that is repeated while the queue remembers its key does nothing.

The key belongs to the queue, or, for messages to another queue manager, to the destination. A put finds one of these:

    no message has the key, or it has expired    it puts, and takes the key
    a committed put has the key                  nothing is put: a duplicate
    its own unit of work has the key             nothing is put: both would be committed, or neither
    another unit of work has the key             it is refused: that unit may still be backed out

The last case matters. If the put were taken for a duplicate and the other unit then backed out, no message would be
left; if it put, and both were committed, there would be two.
"""

from __future__ import annotations

from enum import Enum, auto
from typing import NamedTuple

from ..errors import InconsistentCall, Reason
from .grouping import GroupState


class Kept(NamedTuple):
    """A key that a queue remembers.

    Args:
        unit: the unit of work that put under this key, if it is not settled; None: it is.
        expires_at: when the key becomes free again after the unit is settled; seconds since 1970.
    """

    unit: int | None
    expires_at: float


class DuplicateVerdict(Enum):
    """How a put under a key ends."""

    PUT = auto()
    DUPLICATE = auto()
    REFUSED = auto()


def judge(kept: Kept | None, unit: int | None, now: float) -> DuplicateVerdict:
    """Decides a put under a key.

    Args:
        kept: the key as the queue remembers it; None: it does not.
        unit: the put's unit of work, if it has put or got anything so far.
    """
    if kept is None:
        return DuplicateVerdict.PUT
    if kept.unit is not None:
        return DuplicateVerdict.DUPLICATE if kept.unit == unit else DuplicateVerdict.REFUSED
    return DuplicateVerdict.DUPLICATE if now < kept.expires_at else DuplicateVerdict.PUT


def settled(put_at: float, expires_at: float, now: float) -> tuple[float, float]:
    """For messages whose unit is committed now: the time at which they count as put, and the expiry of their key."""
    return now, now + (expires_at - put_at)


def check_whole(before: GroupState, after: GroupState) -> None:
    """In logical order a key is for whole groups: a group that lacked a member could not be completed.

    Raises InconsistentCall 2241 if the call continues a group or leaves one open.
    """
    if any(state.group_open or state.message_open for state in (before, after)):
        raise InconsistentCall(
            "deduplicate in logical order needs whole groups in one call: put_many, from the first message to the last",
            reason=Reason.INCOMPLETE_GROUP,
        )
