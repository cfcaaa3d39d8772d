"""The requests and answers of the operations on channels: values only."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Literal, NamedTuple

from ...errors import ObjectInUse
from ...model.attributes import MESSAGE_LENGTH_MAX
from ...model.message import Message
from .records import Claim

BODY_PIECE_MAX: Final = 2**22
"""Bytes of a piece; shorter bodies travel with their batch."""
BODIES_MAX: Final = MESSAGE_LENGTH_MAX
"""Bytes of all bodies of a batch that travel in pieces; the others travel with it."""


HomeServerStatus = Literal["inactive", "triggered", "running", "paused", "waiting", "stopped"]
"""The status of a home-server queue (K-3).

inactive: no program collects.
triggered: a collection was asked for, and has not begun.
running: a program is connected to the home server.
paused: a message cannot be put here yet; the program tries again.
waiting: a program waits for a trigger.
stopped: the connection was lost or could not be made, or a message could not be put: only a trigger starts it again.
"""


class Sender(NamedTuple):
    """The sender of a channel, identified permanently (C-1).

    Args:
        identifier: of its store.
        incarnation: distinguishes its transmission queue from earlier ones of the same name.
        manager: the name of its queue manager.
    """

    identifier: str
    incarnation: int
    channel: str
    manager: str


class ChannelBatch(NamedTuple):
    """Messages that a channel delivers, to be put together.

    Args:
        number: one more than that of the previous batch; 0: the messages travel outside the batches. The receiver then
            keeps no record of them, discards those that it can neither put nor make dead letters, and puts them twice
            if they are sent twice.
        epoch: of the sender's claims.
        digest: of the unique ids of the messages, as they were claimed (`channels.sides.digest`).
        messages: as they were on the transmission queue, each with its `transmission`.
        vetoed: the positions of messages that an exit rejects.
        attempts: the number of earlier tries that failed because a message could not be put.
        to_dead_letters: whether a message that cannot be put becomes a dead letter; if false, the whole batch fails.
        held: the positions of messages whose bodies have arrived before, piece by piece.
    """

    sender: Sender
    number: int
    epoch: int
    digest: bytes
    messages: Sequence[Message]
    vetoed: frozenset[int] = frozenset()
    attempts: int = 0
    to_dead_letters: bool = False
    held: frozenset[int] = frozenset()


class Receipt(NamedTuple):
    """The result of a batch.

    Args:
        already: it had arrived before, and nothing was done.
        put, buried, discarded: numbers of messages; buried ones are dead letters.
    """

    already: bool
    put: int = 0
    buried: int = 0
    discarded: int = 0


class Received(NamedTuple):
    """A receiver's record of a sender: the last batch that arrived. Number 0: none has."""

    sender: Sender
    number: int
    epoch: int
    messages: int
    digest: bytes
    received_at: float


class Carrying(NamedTuple):
    """One run of a channel at the sender, and where it begins.

    Args:
        number: of the last confirmed batch.
        settled: the number of the last settled claim.
        is_open: a claim is open, so the receiver may already have the next batch.
        is_reset: an operator has set the number, and the receiver has yet to take it.
    """

    sender: Sender
    epoch: int
    number: int
    settled: int
    is_open: bool
    is_reset: bool = False


class NextBatch(NamedTuple):
    """The claim that a channel is to send next.

    Args:
        claim: None: there are no messages for a batch, or the channel must stop.
        stop: how an operator stopped it; empty: it was not stopped.
        fast: non-persistent messages to send outside the batch. They are no longer on the queue.
    """

    claim: Claim | None
    stop: str
    fast: Sequence[Message] = ()


class ChannelNow(NamedTuple):
    """The state of a channel at the sender (C-6).

    Args:
        status: "inactive", "starting", "running", "retrying", "paused", "stopping", "stopped"; of a home-server queue
            also "triggered" and "waiting", see `HomeServerStatus`.
        stop: how an operator stopped it: "quiesce", "force", "terminate"; empty: it was not stopped.
        number: of the last confirmed batch.
        in_doubt: messages of the next batch, which has been sent but not confirmed.
        waiting: messages on the transmission queue.
        oldest_put_at: when the oldest of them was put; None: there is none.
        messages, size: of all confirmed batches, and of the messages sent outside of them.
        sent_at: when the last of these were confirmed or sent; None: never.
        short_retries, long_retries: failed attempts since it last sent something.
        reason, error: the present trouble; 0 and empty: none.
        nonpersistent_speed: "fast" if non-persistent messages travel outside the batches in its last run, else
            "normal".
    """

    name: str
    queue: str
    status: str
    stop: str
    number: int
    in_doubt: int
    waiting: int
    oldest_put_at: float | None
    messages: int
    size: int
    sent_at: float | None
    short_retries: int
    long_retries: int
    reason: int
    error: str
    changed_at: float
    nonpersistent_speed: str = "normal"

    def check_free(self) -> None:
        """Raises: ObjectInUse 2042, it runs or has a batch in doubt, so its definition must stay."""
        if self.in_doubt or self.status not in ("inactive", "stopped"):
            what = "has a batch in doubt: resolve it" if self.in_doubt else "runs: stop it"
            raise ObjectInUse(f"channel {self.name} {what} first", channel=self.name)


class BodyPiece(NamedTuple):
    """A piece of a body of a channel's next batch.

    Args:
        batch: the digest of the batch.
        position: of the message in the batch.
        digest: SHA-256 of the whole body.
        size: bytes of the whole body.
        first: how many bytes of the body come before the piece.
        data: at most `BODY_PIECE_MAX` bytes; empty: only to ask how many bytes have arrived.
    """

    batch: bytes
    position: int
    digest: bytes
    size: int
    first: int
    data: bytes
