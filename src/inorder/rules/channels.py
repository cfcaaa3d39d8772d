"""Channels: whether a batch is the next one, was already received, or is impossible (C-1).

A channel sends numbered batches 1, 2, 3 ... The receiver keeps one record for each sender, which advances by exactly
one in the transaction that puts a batch. Each arriving batch is compared with this record:

    the number after the last one                it is next
    the last number, the same digest             it was received: the answer was lost
    the last number, another digest              sequence error: one side was restored to an older state
    any other number                             sequence error: a batch is missing, or is an old one
    any number, an older epoch                   fenced: another run of the channel has begun since
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

from ..errors import Fenced, SequenceError
from ..model.attribute import names_in
from ..model.attributes import QueueAttributes

CHANNEL = "channel "  # followed by the channel's name: the application name of a channel
HOPS_MAX = 32
HOPS = "xqh.hops"
"""The property that counts the queue managers that a message has passed; it is removed where the message arrives."""


COLLECTS: Final = ":"
"""Stands between a store-and-forward queue and the queue manager that collects from it, in the name of its channel."""


def collecting(queue: str, manager: str) -> str:
    """Returns the name of the channel by which a queue manager collects from a store-and-forward queue (K-3).

    No definition can have this name. At the home server it stands for the run; at the collecting side, for the
    home-server queue.
    """
    return f"{queue}{COLLECTS}{manager}"


def collects(channel: str, transmission_queue: str, find: Callable[[str], QueueAttributes | None]) -> bool:
    """Whether a channel of this name collects from this transmission queue, which then belongs to a store-and-forward
    queue and is for the queue manager in the channel's name.
    """
    queue, _, manager = channel.partition(COLLECTS)
    found = find(queue) if manager == transmission_queue else None
    return found is not None and manager in names_in(found.targets)


def name_of_sender(channel: str) -> str:
    """Returns the name by which a receiver knows the channel."""
    return channel.partition(COLLECTS)[0]


class Last(NamedTuple):
    """The last batch that was received; number 0: none yet."""

    number: int = 0
    epoch: int = 0
    digest: bytes = b""


def check_epoch(last: Last, epoch: int, channel: str) -> None:
    """Raises Fenced if another run of the channel has begun after the caller's."""
    if epoch < last.epoch:
        raise Fenced(
            f"channel {channel} is run by another process: the receiver knows epoch {last.epoch}, this run has {epoch}",
            application=channel,
            epoch=epoch,
            current=last.epoch,
        )


def check_unchanged(last: Last, seen: Last, after: Last, channel: str) -> None:
    """Raises Fenced if the receiver's record is neither as a reset has read it nor as the reset leaves it."""
    if last not in (seen, after):
        raise Fenced(
            f"channel {channel} cannot be reset to batch {after.number + 1}: meanwhile a run of it has begun, or has "
            "brought a batch",
            application=channel,
            epoch=after.epoch,
            current=last.epoch,
        )


def was_done(last: Last, number: int, epoch: int, digest: bytes, channel: str) -> bool:
    """Whether this batch was received already; if not, it is the next one. Raises SequenceError, Fenced."""
    check_epoch(last, epoch, channel)
    if number == last.number + 1:
        return False
    if number == last.number and digest == last.digest:
        return True
    why = "it differs from the received batch of this number"
    if number != last.number:
        why = "batches between them are missing" if number > last.number else "it is older than that one"
    raise SequenceError(
        f"channel {channel} brings batch {number}, but the receiver's last one is {last.number}: {why}. One side was "
        "restored to an older state, or deleted; find the missing and duplicate messages, then reset the channel",
        channel=channel,
        number=number,
        expected=last.number + 1,
    )


def check_agreement(last: Last, number: int, *, is_open: bool, channel: str) -> None:
    """Checks that a sender that has confirmed `number` can continue with a receiver.

    With `is_open` the receiver may have one batch more. Raises SequenceError.
    """
    if last.number == number or (is_open and last.number == number + 1):
        return
    raise SequenceError(
        f"channel {channel} has confirmed batch {number}, but the receiver's last one is {last.number}: one side was "
        "restored to an older state, or deleted; find the missing and duplicate messages, then reset the channel",
        channel=channel,
        number=number + 1,
        expected=last.number + 1,
    )
