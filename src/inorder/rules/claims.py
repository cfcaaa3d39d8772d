"""Claims: the messages that an application holds while it reads a queue in batches, and the calls about them.

An *application* reads a queue in numbered claims 1, 2, 3 ... (seed 004's get-unconfirmed, held by a named unit). It
keeps its own checkpoint, and writes a claim's number there before it works on the claim, and again when the work is
done. It may die at any moment in between, so every call contains the checkpoint's position, and the queue manager
compares that with its record:

    settled     the last claim that is over: confirmed, or released; its number is never used again
    open        the claim after it, if there is one: its messages are held
    planned     the application has begun to work on the open claim: its checkpoint contains the claim
    ahead       the claim after the open one, if there is one: taken while the application works on the open claim,
                before the application asked for it. It is never planned, and is returned if the application dies

A call for the next claim says that all earlier ones are done. A reader that starts takes a higher *epoch*; calls with
an older one are refused, so that two readers can never use one record.

The messages of a claim that is over may stay a while longer: if the next claim was taken ahead, the call for it only
records that the earlier one is done, and the next `settle` removes the messages. So at most two claims hold messages:
the finished one and the open one, or the open one and the one ahead.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from ..errors import CheckpointLost, CheckpointTooOld, Fenced


class ClaimRecord(NamedTuple):
    """How far an application has read a queue.

    Args:
        epoch: the epoch of its last start.
        settled: the last claim that is over, 0 if none is.
        open: whether the claim `settled + 1` is open.
        planned: whether that one is planned.
        ahead: whether the claim `settled + 2` was taken ahead.
    """

    epoch: int = 0
    settled: int = 0
    open: bool = False
    planned: bool = False
    ahead: bool = False


class Next(enum.Enum):
    """The answer to a call for the next claim."""

    TAKE = "take messages"
    CONFIRM_AND_TAKE = "confirm the open claim, then take messages"
    CONFIRM_AND_GIVE = "finish the open claim, and give the one that was taken ahead"
    GIVE = "give the open claim again: the caller died before its checkpoint contained it"


RELEASE = "`inorder claim release`, or release_claims, returns the messages of the open claim to their places"


def check_epoch(record: ClaimRecord, epoch: int, application: str) -> None:
    """Raises Fenced if another reader has started after the caller."""
    if epoch != record.epoch:
        raise Fenced(
            f"application {application!r} was started again after this reader: it is at epoch {record.epoch}, this "
            f"reader has {epoch}. Only one reader of a queue may run under one application name; stop one of the two, "
            "or give it another application name",
            application=application,
            epoch=epoch,
            current=record.epoch,
        )


def next_claim(record: ClaimRecord, start: int, application: str) -> Next:
    """Decides a call for the next claim whose checkpoint says that all claims up to `start` are done.

    Raises:
        CheckpointTooOld: if the checkpoint lacks claims that are over.
        CheckpointLost: if another checkpoint has begun to work on the open claim, or if this one contains
            claims that the queue never gave.
    """
    if start < record.settled:
        raise _too_old(application, start, record.settled)
    if start == record.settled:
        if not record.open:
            return Next.TAKE
        if not record.planned:
            return Next.GIVE
        raise CheckpointLost(
            f"claim {record.settled + 1} of application {application!r} is in progress, but this checkpoint does not "
            "contain it: it was lost, or is another one. Continue with the one that contains it; if there is none, "
            f"{RELEASE}, and they are read again",
            application=application,
            claim=record.settled + 1,
        )
    if start == record.settled + 1 and record.open:
        return Next.CONFIRM_AND_GIVE if record.ahead else Next.CONFIRM_AND_TAKE
    raise _unknown(application, start, record)


def takes_ahead(record: ClaimRecord, start: int, application: str) -> bool:
    """Whether the next claim may be taken ahead: work on the open one, `start`, has begun, and none was taken ahead.

    Raises CheckpointTooOld if claim `start` is over; CheckpointLost if the queue never gave it.
    """
    if start <= record.settled:
        raise _too_old(application, start, record.settled)
    if not record.open or start != record.settled + 1:
        raise _unknown(application, start, record)
    return record.planned and not record.ahead


def plan(record: ClaimRecord, after: int, upto: int, application: str) -> bool:
    """Whether the claims after `after` up to `upto` have messages to read: those of the open claim, or none.

    Raises CheckpointTooOld if the claim is over; CheckpointLost if it cannot be read now.
    """
    if upto == after:
        return False
    if upto <= record.settled:
        raise CheckpointTooOld(
            f"claim {upto} of application {application!r} is over: it was confirmed or released, and its messages "
            "can no longer be read under it. The checkpoint is older than the queue; begin with a new one",
            application=application,
            claim=upto,
            settled=record.settled,
        )
    if not record.open or upto != record.settled + 1 or after != record.settled:
        raise _unknown(application, upto, record)
    return True


def skip(record: ClaimRecord, upto: int, application: str) -> bool:
    """Whether to skip claim `upto`, which holds no messages and is the next one; False if it is over.

    Raises CheckpointLost if another claim is open, or `upto` is not the next one.
    """
    if upto > record.settled + (not record.open):
        raise _unknown(application, upto, record)
    return upto > record.settled


def settle(record: ClaimRecord, upto: int, application: str) -> bool:
    """Whether confirming all claims up to `upto` confirms the open one; False if it is over.

    Raises CheckpointLost if the queue never gave that claim.
    """
    if upto <= record.settled:
        return False
    if record.open and upto == record.settled + 1:
        return True
    raise _unknown(application, upto, record)


def _too_old(application: str, start: int, settled: int) -> CheckpointTooOld:
    return CheckpointTooOld(
        f"the checkpoint of application {application!r} ends with claim {start}, but claims up to {settled} are over: "
        "it is too old. Continue with the newest checkpoint, or begin a new one, which reads the remaining messages",
        application=application,
        claim=start,
        settled=settled,
    )


def _unknown(application: str, claim: int, record: ClaimRecord) -> CheckpointLost:
    last = record.settled + record.open
    return CheckpointLost(
        f"the checkpoint of application {application!r} knows claim {claim}, but the queue gave no more than {last}: "
        "it is the checkpoint of another queue or application, or the store was restored to an older state. "
        "Begin with a new checkpoint and a new output",
        application=application,
        claim=claim,
        last=last,
    )


def slices(messages: int, spans: Iterable[tuple[int, int]], most: int) -> Sequence[tuple[int, int]]:
    """Cuts positions 1 to `messages` into at most `most` slices of similar size, never inside a span.

    Args:
        spans: the first and last position of each group.

    Returns:
        First and last position of each slice, in order; none is empty.
    """
    size = max(1, -(-messages // max(1, most)))
    uncut: list[list[int]] = []  # runs of overlapping groups, merged
    for first, last in sorted(spans):
        if uncut and first <= uncut[-1][1]:
            uncut[-1][1] = max(uncut[-1][1], last)
        else:
            uncut.append([first, last])
    found: list[tuple[int, int]] = []
    first, stretch = 1, iter(uncut)
    current = next(stretch, None)
    while first <= messages:
        last = min(messages, first + size - 1)
        while current is not None and current[1] <= last:
            current = next(stretch, None)
        if current is not None and current[0] <= last:
            last = current[1]
        found.append((first, last))
        first = last + 1
    return found
