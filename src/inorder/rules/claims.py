"""Claims: what an application that reads a queue in batches holds, and what each call about them means.

An *application* reads a queue in numbered claims 1, 2, 3 ... (seed 004's get-unconfirmed, held by a named unit). It
keeps a checkpoint of its own, in which it writes a claim's number before it works on the claim, and once more when the
work is done. Between the two it may die at any moment, so every call says where the checkpoint stands, and the
queue manager's record is compared with it:

    settled     the last claim that is over: confirmed, or released; its number never returns
    open        the claim after it, if there is one: its messages are held
    planned     the application has begun to work on the open claim: its checkpoint knows it
    ahead       the claim after the open one, if there is one: taken while the application works on the open claim,
                before it has asked for it. It is never planned, and it is returned if the application dies

A call for the next claim says that all before it are done. A reader that starts takes a higher *epoch*; calls with an
older one are refused, so that two can never work on one record.

A claim that is over may hold its messages a while longer: where the next one was taken ahead, the call that asks for
it only notes that the one before is done, and the messages go with the next `settle`. So at most two claims hold
messages: the one that goes and the open one, or the open one and the one ahead.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from ..errors import CheckpointLost, CheckpointTooOld, Fenced


class ClaimRecord(NamedTuple):
    """Where an application stands on a queue.

    Args:
        epoch: of its last start.
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
    """What a call for the next claim is answered with."""

    TAKE = "take messages"
    CONFIRM_AND_TAKE = "confirm the open claim, then take messages"
    CONFIRM_AND_GIVE = "the open claim is over, and the one that was taken ahead is given"
    GIVE = "give the open claim again: the caller died before its checkpoint knew it"


RELEASE = "`inorder claim release`, or release_claims, returns the messages of the open claim to their places"


def check_epoch(record: ClaimRecord, epoch: int, application: str) -> None:
    """Raises: Fenced, somebody has started after the caller."""
    if epoch != record.epoch:
        raise Fenced(
            f"application {application!r} was started again after this reader: it is at epoch {record.epoch}, this "
            f"reader has {epoch}. Only one reader of a queue may run under one application; stop one of the two, or "
            "give it an application name of its own",
            application=application,
            epoch=epoch,
            current=record.epoch,
        )


def next_claim(record: ClaimRecord, start: int, application: str) -> Next:
    """What to do when the checkpoint says that all claims up to `start` are done.

    Raises:
        CheckpointTooOld: it does not know claims that are over.
        CheckpointLost: the open claim is being worked on by a checkpoint that is not this one; or the checkpoint knows
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
            f"claim {record.settled + 1} of application {application!r} is being worked on, and the checkpoint does "
            "not know it: it was lost, or is another one. Go on with the checkpoint that knows it; if there is none, "
            f"{RELEASE}, and they are read again",
            application=application,
            claim=record.settled + 1,
        )
    if start == record.settled + 1 and record.open:
        return Next.CONFIRM_AND_GIVE if record.ahead else Next.CONFIRM_AND_TAKE
    raise _unknown(application, start, record)


def takes_ahead(record: ClaimRecord, start: int, application: str) -> bool:
    """Whether the claim behind the open one, which is `start`, may be taken now: the work on that one has begun, and
    none was taken ahead.

    Raises: CheckpointTooOld, claim `start` is over; CheckpointLost, the queue never gave it.
    """
    if start <= record.settled:
        raise _too_old(application, start, record.settled)
    if not record.open or start != record.settled + 1:
        raise _unknown(application, start, record)
    return record.planned and not record.ahead


def plan(record: ClaimRecord, after: int, upto: int, application: str) -> bool:
    """Whether there is something to read in the claims behind `after` up to `upto`: nothing, or the open claim.

    Raises: CheckpointTooOld, the claim is over; CheckpointLost, it is not one that can be read now.
    """
    if upto == after:
        return False
    if upto <= record.settled:
        raise CheckpointTooOld(
            f"claim {upto} of application {application!r} is over: it was confirmed or released, and its messages "
            "cannot be read under it any more. The checkpoint is older than the queue; begin with a new one",
            application=application,
            claim=upto,
            settled=record.settled,
        )
    if not record.open or upto != record.settled + 1 or after != record.settled:
        raise _unknown(application, upto, record)
    return True


def skip(record: ClaimRecord, upto: int, application: str) -> bool:
    """Whether claim `upto`, which holds no messages, is the next one and becomes over; if it is over there is nothing
    to do.

    Raises: CheckpointLost, another claim is open, or that one is not the next.
    """
    if upto > record.settled + (not record.open):
        raise _unknown(application, upto, record)
    return upto > record.settled


def settle(record: ClaimRecord, upto: int, application: str) -> bool:
    """Whether confirming all claims up to `upto` confirms the open one; if it is over already there is nothing to do.

    Raises: CheckpointLost, the queue never gave that claim.
    """
    if upto <= record.settled:
        return False
    if record.open and upto == record.settled + 1:
        return True
    raise _unknown(application, upto, record)


def _too_old(application: str, start: int, settled: int) -> CheckpointTooOld:
    return CheckpointTooOld(
        f"the checkpoint of application {application!r} ends with claim {start}, but claims up to {settled} are over: "
        "it is too old. Go on with the newest checkpoint, or begin with a new one, which reads what is left",
        application=application,
        claim=start,
        settled=settled,
    )


def _unknown(application: str, claim: int, record: ClaimRecord) -> CheckpointLost:
    last = record.settled + record.open
    return CheckpointLost(
        f"the checkpoint of application {application!r} knows claim {claim}, but the queue gave no more than {last}: "
        "it is the checkpoint of another queue or application, or the store was put back to an older state. "
        "Begin with a new checkpoint",
        application=application,
        claim=claim,
        last=last,
    )


def slices(messages: int, spans: Iterable[tuple[int, int]], most: int) -> Sequence[tuple[int, int]]:
    """Cuts positions 1 to `messages` into at most `most` slices of about one size, never inside a span.

    Args:
        spans: the first and last position of each group.

    Returns:
        First and last position of each slice, in order; none is empty.
    """
    size = max(1, -(-messages // max(1, most)))
    uncut: list[list[int]] = []  # stretches of groups that overlap, merged
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
