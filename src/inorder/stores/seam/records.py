"""The requests and answers of a store's verbs: values only."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, NamedTuple

from ...model.fields import GIVEN
from ...model.message import Got, Message, UniqueId
from ...model.options import GetOptions, Match, OpenOptions, PutOptions
from ...rules.grouping import GroupState
from ...rules.lifecycle import Event
from ...rules.ordering import Cursor, Pending
from ...rules.puts import Program, PutResult

Outcome = Literal["commit", "back_out"]


# --- handles, puts and gets


class Opened(NamedTuple):
    """An open handle.

    Args:
        handle: its id.
        name: the queue as opened; a model gives a new one.
        queue: the local queue that this is or stands for: the one whose changes matter.
        incarnation: names that queue since it was created: a browse token of another one is not taken (B-41).
    """

    handle: int
    name: str
    queue: str
    options: OpenOptions
    incarnation: int


class PutRequest(NamedTuple):
    """Messages to put through one handle, in this order, all or none; one without a descriptor is its body only."""

    handle: int
    messages: Sequence[Message | bytes]
    options: PutOptions
    state: GroupState
    in_unit: bool


class PutOutcome(NamedTuple):
    """What was put, and where the handle stands now."""

    results: Sequence[PutResult]
    state: GroupState


class GetRequest(NamedTuple):
    """Gets or browses through one handle, as if called one after another.

    Args:
        most: how many messages at most; the answer ends before the first that cannot be had, and after the
            first that has a warning.
        one_group: end after the message that ends its group.
    """

    handle: int
    options: GetOptions
    state: GroupState
    cursor: Cursor
    syncpoint: bool
    most: int = 1
    one_group: bool = False


class Rest(NamedTuple):
    """What a unit of work has got of a large group, and nobody has read yet; to be read before the unit is settled.

    Args:
        unit: what holds it, `ended` how many units of work the connection had before.
        messages: how many.
        group_id, sequence_number: of the message behind which it is.
        got_at: when it was got; seconds since 1970.
    """

    unit: int
    ended: int
    messages: int
    group_id: bytes
    sequence_number: int
    got_at: float


class GetOutcome(NamedTuple):
    """What was got, and where the handle stands now.

    Args:
        rest: of a large group that was got whole: what is still to be read.
        before_unit: where the handle stood before the first message that the unit of work took, if any did.
        withheld: of a strict call that was given nothing: what withholds the first message (B-11).
        pending: of a strict call that was given nothing: the first pending message, withholding or not (B-26).
        is_far: the search has asked its selector as often as it may, and has not come to an end; nothing was done.
    """

    messages: Sequence[Got]
    state: GroupState
    cursor: Cursor
    before_unit: GroupState | None = None
    rest: Rest | None = None
    withheld: Pending | None = None
    pending: Pending | None = None
    is_far: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class LockRequest:
    """A browse and lock of everything that matches now (A-12, A-13).

    Args:
        most: so many messages at most, the first in queue order; None: all.
        lease: seconds after which the lock id ends by itself; None: never (A-19).
    """

    handle: int
    match: Match
    confirm_id: int
    most: int | None = None
    lease: float | None = None


class Locked(NamedTuple):
    """What a browse and lock locked, under which lock id."""

    messages: list[Got]
    lock_id: int


@dataclass(frozen=True, slots=True, kw_only=True)
class OneMessage:
    """A confirmed call about one message: confirm put, confirm get, unlock, delete (A-10, A-12).

    Args:
        lock_id: the lock presented; 0: none.
        confirm_id: if given it must be the one that holds the message (A-11); 0: any.
    """

    handle: int
    event: Event
    uid: UniqueId
    lock_id: int = 0
    confirm_id: int = 0


# --- claims and surveys

BULK_COLUMNS: Final = (
    *"rank number ordinal group_rank group_number group_ordinal delivery".split(),
    *(name for name, field in GIVEN.items() if field.remains),
    *"body length backout_count uid_origin uid_number".split(),
)
"""The columns of a row that is read in bulk, in this order.

The place; the place of the head of its group (its own if it is in none; None if the head is not on the queue, or of a
claim: not in the claim, so that it reads the same each time); `delivery`, its position in what is read; then the fields
of `Message`, the properties as the text that a store keeps (`Properties.from_text`). None stands for an unlimited
expiry, and for no correlation id, group id, accounting token, properties or transmission.
"""

BulkRow = tuple[Any, ...]
PAGE_ROWS, PAGE_BYTES = 8192, 8 * 2**20  # rows and bytes of bodies that are read at once


class Claimer(NamedTuple):
    """One start of an application's reader of a queue.

    Args:
        handle: open for input.
        epoch: as `begin_claims` gave it; calls with an older one than the last are refused.
        delivers: what it confirms has reached its reader, and COD reports it; False: it goes on to another queue.
    """

    handle: int
    application: str
    epoch: int
    delivers: bool = True


class ClaimStart(NamedTuple):
    """Where a reader begins.

    Args:
        settled: the last claim that is over; 0: none is.
        horizon: the highest number drawn on the queue so far.
    """

    epoch: int
    settled: int
    horizon: int


class ClaimRequest(NamedTuple):
    """The next claim.

    Args:
        start: claims up to this one are done; the one that is open is confirmed first. With `ahead`: the open one.
        options: `read_order`; in physical order nothing else; with `logical` also `complete` (the pieces of a logical
            message are taken together) and `all_messages` (whole groups only).
        most, most_bytes: so many messages, and bytes of bodies, at most; at least one message is taken. With
            `all_messages` a group that is larger is taken whole.
        horizon: nothing above this number is taken; None: there is no such bound.
        ahead: the claim behind the open one is taken before the reader asks for it.
    """

    claimer: Claimer
    start: int
    options: GetOptions
    most: int
    most_bytes: int
    horizon: int | None = None
    ahead: bool = False


class Claim(NamedTuple):
    """A claim that holds messages.

    Args:
        number: 1, 2, 3 ...; a released one's number does not return.
        messages, size: how many, and how many bytes of bodies.
        delivered: messages of all claims before it.
        more: the limits with which it was taken have left messages behind.
        planned: the reader has begun to work on it.
        started_at: seconds since 1970.
    """

    number: int
    messages: int
    size: int
    delivered: int
    more: bool
    planned: bool
    started_at: float


class Claims(NamedTuple):
    """What an operator sees of one application's claims on one queue.

    Args:
        program: who started last.
        settled: the last claim that is over.
        delivered: messages of claims that are over.
        held: the claims that hold messages, by number: `settled` while its messages are being removed, the open claim
            behind it, and the one behind that, if it was taken ahead.
    """

    queue: str
    application: str
    program: Program
    epoch: int
    settled: int
    delivered: int
    held: tuple[Claim, ...]

    @property
    def open(self) -> Claim | None:
        """The claim that the application reads, or is about to."""
        return next((one for one in self.held if one.number == self.settled + 1), None)


class Slice(NamedTuple):
    """A part of a claim: positions `first` to `last`, counted from 1; `delivered` messages came before the claim."""

    claim: int
    first: int
    last: int
    delivered: int


class SurveyRequest(NamedTuple):
    """What a browse would show next.

    Args:
        handle: open for browse.
        options: `read_order`; with `logical` whole groups only.
        cursor: where the browse stands; only a strict one's levels are looked at.
        most, most_bytes: as in `ClaimRequest`.
        slices: in about how many stretches.
        horizon: nothing above this number is shown.
    """

    handle: int
    options: GetOptions
    cursor: Cursor
    most: int
    most_bytes: int
    slices: int
    horizon: int | None = None


class Stretch(NamedTuple):
    """Messages of one level that follow each other, or groups by their heads.

    Args:
        first, last: number and ordinal of the first and the last message or head.
        messages: how many, members of groups counted.
    """

    logical: bool
    rank: int
    first: tuple[int, int]
    last: tuple[int, int]
    messages: int


class Survey(NamedTuple):
    """What was there.

    Args:
        cursor: where a strict browse stands when it has shown all of it.
        stretches: in order.
        horizon: the highest number drawn on the queue so far.
    """

    cursor: Cursor
    messages: int
    stretches: Sequence[Stretch]
    horizon: int


# --- stagings

UNIT_NAME_LENGTH_MAX = 256  # characters of the name of a unit, an application or a query
BATCH_LENGTH_MAX = 2000  # characters of a batch's name, which may be the token of a browse
LEDGER_BATCHES_MAX = 1000  # of one streaming query on one queue; older ones are forgotten


class StageRequest(NamedTuple):
    """Rows to stage under a name; what is staged under one name goes to one queue.

    Args:
        handle: opened for output.
        name: of the staging, unique in the store; it begins with the first request.
        count: rows in this request, 0 or more.
        columns: by names out of `rules.staged_columns.STAGED_COLUMNS`, each with `count` values. A column that is
            missing, and None in any but `body`, is the put's default; `body` must be there. As context the caller's
            columns stand, as in a put that sets all context. Properties are mappings. `group_key` and `order_key`: int
            of 64 bits, float, str or bytes; None: in no group, and first in the order.
        lasts: seconds from now until the staging expires, above 0; each request sets it again.
        checks_numbers: whether the numbers in the caller's own groups must follow each other when they are put.
        arrives: whether they come for the first time: COA is reported; else they were on another queue before.
    """

    handle: int
    name: str
    count: int  # type: ignore[assignment]  # a method of tuples that nobody misses
    columns: Mapping[str, Sequence[Any]]
    lasts: float
    checks_numbers: bool = True
    arrives: bool = True


class Staged(NamedTuple):
    """A staging as its writer knows it: its name, and how many rows it staged in all."""

    name: str
    count: int  # type: ignore[assignment]  # a method of tuples that nobody misses


class LedgerKey(NamedTuple):
    """Names a batch for ever, on each queue.

    Args:
        application: who writes.
        query: of a streaming query; empty for a transaction of an application (a load).
        batch: the number of the batch, or the name of the transaction; empty: the settle is not noted.
    """

    application: str
    query: str
    batch: str


class Noted(NamedTuple):
    """What the ledger has under a key.

    Args:
        at: when it was settled, seconds since 1970.
        messages: put by it; a body that was split counts as its segments.
    """

    at: float
    messages: int


class Settled(NamedTuple):
    """What a settle did.

    Args:
        already: the ledger had the key, for every queue concerned: the stagings were dropped.
        messages: put by this call; a body that was split counts as its segments.
    """

    already: bool
    messages: int


# --- leases


class Leased(NamedTuple):
    """A lease that is not over.

    Args:
        user: whose it is.
        ends_at: when it is backed out by itself, seconds since 1970.
        seconds: with how many it was begun or extended last.
    """

    name: str
    user: str
    ends_at: float
    seconds: float


# --- who came through a server


class Act(NamedTuple):
    """An act that cannot be taken back, done by a user through a server.

    Args:
        id: names it for ever.
        at: when it began, seconds since 1970.
        user, address: who, and from where.
        act: what it was, such as "clear".
        queue: on which queue; empty: it was about the queue manager.
        outcome: "done", "failed"; "begun": it goes on, or the server was killed in the middle and nobody knows.
        messages: how many it was about; None: that is not known.
        error: why it failed.
    """

    id: int
    at: float
    user: str
    address: str
    act: str
    queue: str
    outcome: str
    messages: int | None
    error: str


# --- channels


class Sender(NamedTuple):
    """The sender of a channel, identified for ever (C-1).

    Args:
        identifier: of its store.
        incarnation: the number of the transmission queue since it was made.
        manager: the name of its queue manager.
    """

    identifier: str
    incarnation: int
    channel: str
    manager: str


class ChannelBatch(NamedTuple):
    """Messages that a channel brings, to be put all together.

    Args:
        number: one more than that of the batch before.
        epoch: of the sender's claims.
        digest: of the unique ids of the messages, as they were claimed (`channels.sides.digest`).
        messages: as they lay on the transmission queue, each with its `transmission`.
        vetoed: the positions of those that an exit does not let pass.
        attempts: how often it was tried before, and a message could not be put.
        to_dead_letters: a message that cannot be put is a dead letter now; else nothing of the batch happens.
    """

    sender: Sender
    number: int
    epoch: int
    digest: bytes
    messages: Sequence[Message]
    vetoed: frozenset[int] = frozenset()
    attempts: int = 0
    to_dead_letters: bool = False


class Receipt(NamedTuple):
    """What a batch has come to.

    Args:
        already: it was there before, and nothing was done.
        put, buried, discarded: how many messages.
    """

    already: bool
    put: int = 0
    buried: int = 0
    discarded: int = 0


class Received(NamedTuple):
    """What a receiver knows of a sender: its last batch that has arrived; number 0: none has."""

    sender: Sender
    number: int
    epoch: int
    messages: int
    digest: bytes
    received_at: float


class Carrying(NamedTuple):
    """One run of a channel at its sender's, and where it begins.

    Args:
        number: of the last batch that was confirmed.
        settled: the last claim that is over.
        is_open: a claim is open: the batch that is next may be at the receiver's.
    """

    sender: Sender
    epoch: int
    number: int
    settled: int
    is_open: bool


class NextBatch(NamedTuple):
    """What a channel has claimed to send.

    Args:
        claim: None: there is nothing, or the channel is to stop.
        stop: how an operator has stopped it; empty: nobody has.
    """

    claim: Claim | None
    stop: str


class ChannelNow(NamedTuple):
    """What a channel does at its sender's (C-6).

    Args:
        status: "inactive", "starting", "running", "retrying", "paused", "stopping", "stopped".
        stop: how an operator has stopped it: "quiesce", "force", "terminate"; empty: nobody has.
        number: of the last batch that was confirmed; in_doubt: messages of the next one, which is on its way.
        waiting: messages on the transmission queue.
        oldest_put_at: when the oldest of them was put; None: there is none.
        messages, size: of all batches that were confirmed.
        sent_at: when the last one was; None: never.
        short_retries, long_retries: how often it has tried in vain since it carried something last.
        reason, error: what is wrong; 0 and empty: nothing.
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
