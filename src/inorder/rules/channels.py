"""Channels: which batch is next, which was there before, and which cannot be (C-1).

A channel brings numbered batches 1, 2, 3 ... The receiver keeps one record for each sender, which advances by exactly
one in the transaction that puts a batch. What comes is compared with it:

    the number behind the last one               it is next
    the last number, the same digest             it was done: the answer was lost
    the last number, another digest              sequence error: somebody was put back to an older state
    any other number                             sequence error: a batch is missing, or was here long ago
    any number, an older epoch                   fenced: another run of the channel has begun since
"""

from __future__ import annotations

from typing import NamedTuple

from ..errors import Fenced, SequenceError

CHANNEL = "channel "  # and its name: the application of a channel, among those that claim
HOPS_MAX = 32
HOPS = "xqh.hops"
"""The property of a message on its way that counts the queue managers behind it; it goes where the message arrives."""


class Last(NamedTuple):
    """The last batch that came; number 0: none has."""

    number: int = 0
    epoch: int = 0
    digest: bytes = b""


def check_epoch(last: Last, epoch: int, channel: str) -> None:
    """Raises: Fenced, another run of the channel has begun after the caller's."""
    if epoch < last.epoch:
        raise Fenced(
            f"channel {channel} is carried by somebody else: the receiver knows epoch {last.epoch}, this run has "
            f"{epoch}",
            application=channel,
            epoch=epoch,
            current=last.epoch,
        )


def was_done(last: Last, number: int, epoch: int, digest: bytes, channel: str) -> bool:
    """Whether a batch is the last one, which was done; if not it is next. Raises: SequenceError, Fenced."""
    check_epoch(last, epoch, channel)
    if number == last.number + 1:
        return False
    if number == last.number and digest == last.digest:
        return True
    why = "it has other messages than the one of this number that came"
    if number != last.number:
        why = "batches between them are missing" if number > last.number else "it is older than that"
    raise SequenceError(
        f"channel {channel} brings batch {number}, the receiver has had {last.number}: {why}. One side was put back "
        "to an older state, or deleted; find out which messages are missing or there twice, then reset the channel",
        channel=channel,
        number=number,
        expected=last.number + 1,
    )


def check_agreement(last: Last, number: int, *, is_open: bool, channel: str) -> None:
    """Whether a sender that has confirmed `number` can go on with a receiver; `is_open`: one more may be there.

    Raises: SequenceError.
    """
    if last.number == number or (is_open and last.number == number + 1):
        return
    raise SequenceError(
        f"channel {channel} has confirmed batch {number}, the receiver has had {last.number}: one side was put back to "
        "an older state, or deleted; find out which messages are missing or there twice, then reset the channel",
        channel=channel,
        number=number + 1,
        expected=last.number + 1,
    )
