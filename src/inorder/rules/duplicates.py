"""Puts under a key of the caller's: a put that is repeated while the key is kept does nothing.

The key belongs to the queue, and for messages that go on from there to where they go. What a put meets:

    nobody has the key, or its time is over     it puts, and has the key
    what has the key is on the queue, or was    nothing is put: a duplicate
    its own unit of work has the key            nothing is put: both would be committed, or neither
    another unit of work has the key            it is refused: that unit may still be backed out

The last line keeps the promise. A put that passed for a duplicate of one that is then backed out would leave no message
at all; one that went on would leave two where both are committed.
"""

from __future__ import annotations

from enum import Enum, auto
from typing import NamedTuple

from ..errors import InconsistentCall, Reason
from .grouping import GroupState


class Kept(NamedTuple):
    """A key that a queue keeps.

    Args:
        unit: the unit of work that has put under it and is not settled; None: it is.
        expires_at: when the key is free again, once the unit is settled; seconds since 1970.
    """

    unit: int | None
    expires_at: float


class DuplicateVerdict(Enum):
    """What becomes of a put under a key."""

    PUT = auto()
    DUPLICATE = auto()
    REFUSED = auto()


def judge(kept: Kept | None, unit: int | None, now: float) -> DuplicateVerdict:
    """What becomes of a put.

    Args:
        kept: what is known of its key; None: nothing.
        unit: the unit of work that it is part of, if that has put or got anything so far.
    """
    if kept is None:
        return DuplicateVerdict.PUT
    if kept.unit is not None:
        return DuplicateVerdict.DUPLICATE if kept.unit == unit else DuplicateVerdict.REFUSED
    return DuplicateVerdict.DUPLICATE if now < kept.expires_at else DuplicateVerdict.PUT


def settled(put_at: float, expires_at: float, now: float) -> tuple[float, float]:
    """When messages count as put whose unit is committed now, and until when their key is kept."""
    return now, now + (expires_at - put_at)


def check_whole(before: GroupState, after: GroupState) -> None:
    """In logical order a key names whole groups: one that lacked a member could not be finished.

    Raises: InconsistentCall 2241, the call goes on with a group or leaves one open.
    """
    if any(state.group_open or state.message_open for state in (before, after)):
        raise InconsistentCall(
            "deduplicate in logical order needs whole groups in one call: put_many, from the first message to the last",
            reason=Reason.INCOMPLETE_GROUP,
        )
