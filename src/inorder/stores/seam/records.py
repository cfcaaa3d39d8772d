"""The requests and answers of a store's operations: values only."""

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
        name: the queue as opened; for a model queue the name of the new queue.
        queue: the local queue behind the name.
        incarnation: distinguishes this queue from earlier ones of its name, whose browse tokens are refused (B-41).
    """

    handle: int
    name: str
    queue: str
    options: OpenOptions
    incarnation: int


class PutRequest(NamedTuple):
    """Messages to put through one handle, in this order, all or none. Bytes stand for a message with only a body.

    Args:
        uid_number: the number of the first message's unique id, reserved with `reserve_numbers`. The next message has
            the next number. A message that is split counts once: its first segment has the id. 0: the store assigns all
            ids.
    """

    handle: int
    messages: Sequence[Message | bytes]
    options: PutOptions
    state: GroupState
    in_unit: bool
    uid_number: int = 0


class PutOutcome(NamedTuple):
    """The results of a put, and the handle's new group state."""

    results: Sequence[PutResult]
    state: GroupState


class GetRequest(NamedTuple):
    """Gets or browses through one handle, as if called one after another.

    Args:
        most: the largest number of messages. The answer ends before the first message that cannot be got, and after the
            first that has a warning.
        one_group: whether to end after the message that ends its group.
        most_bytes: the bytes of bodies after which the answer ends, unless it is one group; None: no limit.
    """

    handle: int
    options: GetOptions
    state: GroupState
    cursor: Cursor
    syncpoint: bool
    most: int = 1
    one_group: bool = False
    most_bytes: int | None = None


class Rest(NamedTuple):
    """The unread part of a large group that a unit of work has got. It must be read before the unit is settled.

    Args:
        unit: the unit that holds it.
        ended: the number of units of work that the connection had ended before.
        messages: the number of messages left.
        group_id, sequence_number: of the message before the first of them.
        got_at: when the group was got; seconds since 1970.
    """

    unit: int
    ended: int
    messages: int
    group_id: bytes
    sequence_number: int
    got_at: float


class GetOutcome(NamedTuple):
    """The messages of a get, and the handle's new state and cursor.

    Args:
        rest: the unread part of a large group that was got whole.
        before_unit: the handle's state before the first message that the unit of work took, if it took any.
        withheld: if a strict call got nothing: the pending message that withholds the first available one (B-11).
        pending: if a strict call got nothing: the first pending message, whether it withholds any or not (B-26).
        is_far: the search has used up its budget of selector evaluations before its end; nothing was changed.
        age: seconds since the hold of `pending` began, by the store's clock; None: a server of 0.2.0 does not say it.
    """

    messages: Sequence[Got]
    state: GroupState
    cursor: Cursor
    before_unit: GroupState | None = None
    rest: Rest | None = None
    withheld: Pending | None = None
    pending: Pending | None = None
    is_far: bool = False
    age: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LockRequest:
    """A browse and lock of everything that matches now (A-12, A-13).

    Args:
        most: the largest number of messages, the first in queue order; None: all.
        lease: seconds after which the lock id ends by itself; None: never (A-19). most_bytes: as in `GetRequest`.
    """

    handle: int
    match: Match
    confirm_id: int
    most: int | None = None
    lease: float | None = None
    most_bytes: int | None = None


class Locked(NamedTuple):
    """The messages that a browse and lock has locked, and their lock id."""

    messages: list[Got]
    lock_id: int


@dataclass(frozen=True, slots=True, kw_only=True)
class OneMessage:
    """A confirmed call about one message: confirm put, confirm get, unlock, delete (A-10, A-12).

    Args:
        lock_id: the lock presented; 0: none.
        confirm_id: the confirm id that must hold the message (A-11); 0: any.
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

First comes the row's place. Then the place of the head of its group: its own if it is in no group; None if the head is
not on the queue or, in a claim, not in the claim, so that it is the same at each reading. `delivery` is the row's
position in the read. The rest are fields of `Message`; `properties` is the stored text (`Properties.from_text`). None
means an unlimited expiry, or no correlation id, group id, accounting token, properties or transmission.
"""

BulkRow = tuple[Any, ...]
PAGE_ROWS, PAGE_BYTES = 8192, 8 * 2**20  # rows and bytes of bodies that are read at once


class Claimer(NamedTuple):
    """One start of an application that reads a queue in bulk.

    Args:
        handle: open for input.
        epoch: from `begin_claims`. Calls with an older epoch than the latest are refused.
        delivers: whether confirmed messages have reached their reader, so that COD reports them. False: they go on to
            another queue.
    """

    handle: int
    application: str
    epoch: int
    delivers: bool = True


class ClaimStart(NamedTuple):
    """Where a reader begins.

    Args:
        settled: the number of the last settled claim; 0: none.
        horizon: the highest number drawn on the queue so far.
    """

    epoch: int
    settled: int
    horizon: int


class ClaimRequest(NamedTuple):
    """A request for the next claim.

    Args:
        start: claims up to this number are done; an open one among them is confirmed first. With `ahead`, the number of
            the open claim.
        options: `read_order`; in physical order nothing else. With `logical` also `complete` (the segments of a logical
            message are taken together) and `all_messages` (whole groups only).
        most, most_bytes: the largest number of messages, and bytes of bodies; at least one message is taken. With
            `all_messages` a larger group is taken whole.
        horizon: messages with higher numbers are not taken; None: no such limit.
        ahead: whether this is the claim after the open one, taken before the reader asks for it.
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
        number: 1, 2, 3 ...; the number of a released claim is not used again.
        messages, size: the number of messages, and bytes of bodies.
        delivered: messages of all claims before it.
        more: whether the limits of its request left messages on the queue.
        planned: whether the reader has begun to process it.
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
    """One application's claims on one queue, as an operator sees them.

    Args:
        program: the program that started last.
        settled: the number of the last settled claim.
        delivered: messages of settled claims.
        held: the claims that hold messages, by number: claim `settled` while its messages are being removed, the open
            claim, and the claim taken ahead.
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
        """The claim that the application reads now, or reads next."""
        return next((one for one in self.held if one.number == self.settled + 1), None)


class Slice(NamedTuple):
    """A part of a claim: positions `first` to `last`, counted from 1. `delivered` messages came before the claim."""

    claim: int
    first: int
    last: int
    delivered: int


class SurveyRequest(NamedTuple):
    """A request to survey the messages that a browse would show next.

    Args:
        handle: open for browse.
        options: `read_order`; with `logical` whole groups only.
        cursor: the position of the browse; only the levels of a strict cursor matter.
        most, most_bytes: as in `ClaimRequest`.
        slices: the approximate number of stretches.
        horizon: messages with higher numbers are not shown.
    """

    handle: int
    options: GetOptions
    cursor: Cursor
    most: int
    most_bytes: int
    slices: int
    horizon: int | None = None


class Stretch(NamedTuple):
    """Consecutive messages of one level, or consecutive groups, by their heads.

    Args:
        first, last: number and ordinal of the first and the last message or head.
        messages: the number of messages, counting members of groups.
    """

    logical: bool
    rank: int
    first: tuple[int, int]
    last: tuple[int, int]
    messages: int


class Survey(NamedTuple):
    """The result of a survey.

    Args:
        cursor: the position of a strict browse after it has shown all of it.
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
LEDGER_BATCHES_MAX = 1000  # of one streaming query on one queue; older ones are deleted


class StageRequest(NamedTuple):
    """Rows to stage under a name. All rows under one name are for one queue.

    Args:
        handle: opened for output.
        name: of the staging, unique in the store; the first request creates it. count: rows in this request.
        columns: by names from `rules.staged_columns.STAGED_COLUMNS`, each with `count` values; `body` is required. A
            missing column, or None in any column except `body`, means the put's default. Context comes from the
            caller's columns, as in a put that sets all context. Properties are mappings. `group_key` and `order_key`:
            int of 64 bits, float, str or bytes; None: in no group, and first in the order.
        lasts: seconds from now until the staging expires, above 0; each request sets it again.
        checks_numbers: whether the numbers in the caller's own groups must be consecutive when they are put.
        arrives: whether the messages enter the system now, so that COA is reported; else from another queue.
        is_bounded: whether the user's stagings for the queue have at most `max_depth` rows; a server sets it.
    """

    handle: int
    name: str
    count: int  # type: ignore[assignment]  # a method of tuples that nobody misses
    columns: Mapping[str, Sequence[Any]]
    lasts: float
    checks_numbers: bool = True
    arrives: bool = True
    is_bounded: bool = False


class Staged(NamedTuple):
    """A staging from its writer's view: its name, and the number of rows staged in all."""

    name: str
    count: int  # type: ignore[assignment]  # a method of tuples that nobody misses


class LedgerKey(NamedTuple):
    """Identifies a batch permanently, on each queue.

    Args:
        application: the application that writes.
        query: of a streaming query; empty for a transaction of an application (a load).
        batch: the number of the batch, or the name of the transaction; empty: the settle is not recorded.
    """

    application: str
    query: str
    batch: str


class Noted(NamedTuple):
    """The ledger's entry for a key.

    Args:
        at: when it was settled, seconds since 1970.
        messages: how many were put; a body that was split counts as its segments.
    """

    at: float
    messages: int


class Settled(NamedTuple):
    """The answer to a settle.

    Args:
        already: the ledger had the key for every queue concerned, so the stagings were dropped.
        messages: put by this call; a body that was split counts as its segments.
    """

    already: bool
    messages: int


# --- leases


class Leased(NamedTuple):
    """A lease in force.

    Args:
        user: its owner.
        ends_at: when it will be backed out by itself, seconds since 1970.
        seconds: the duration with which it was last begun or extended.
    """

    name: str
    user: str
    ends_at: float
    seconds: float


# --- users of a server


class Act(NamedTuple):
    """An action that cannot be undone, done by a user through a server.

    Args:
        id: identifies it permanently.
        at: when it began, seconds since 1970.
        user, address: the client's.
        act: the kind of action, such as "clear".
        queue: the queue concerned; empty: the queue manager.
        outcome: "done", "failed"; "begun": still running, or unknown because the server was killed meanwhile.
        messages: the number of messages concerned; None: unknown.
        error: the cause of a failure.
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
