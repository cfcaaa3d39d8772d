"""The small records that a backend keeps besides the messages: one class for each table, plain values only.

`Backend.select`, `save` and `remove_records` handle all of them alike, by the names of their fields. A database has a
table for each class (`unit` for `UnitRow`) and a column for each field. The first fields, as many as `KEY_LENGTHS`
says, are the key. State that changes with every message is elsewhere: a queue's counters (`backend.QueueState`) and the
messages themselves (`queued.QueuedMessage`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal, NamedTuple

from ...rules.puts import Program
from .records import Act

UnitKind = Literal["session", "prepared", "confirm", "lock", "claim", "staging", "lease"]
Decision = Literal["", "commit", "back_out"]
ReaderId = str  # `handle_reader` or `application_reader`


def handle_reader(number: int) -> ReaderId:
    """The id of a handle that reads groups."""
    return f"h{number}"


def application_reader(name: str) -> ReaderId:
    """The id of an application that reads groups by claims."""
    return f"a{name}"


class ManagerRow(NamedTuple):
    """The queue manager itself; there is one.

    Args:
        attributes: as JSON.
        revision: grows with every change of a definition, so that processes notice when their caches are old.
        boot: the boot of the machine in which the store was last started.
        identifier: identifies the store among all others; a restored backup keeps it.
        created_at: the time of the store's first start; 0: it was never started.
    """

    id: int
    attributes: str
    revision: int
    boot: str
    identifier: str
    created_at: float


class DefinitionRow(NamedTuple):
    """A queue, an alias or a model. A queue that is created again under the same name has another id (B-41)."""

    id: int
    name: str
    type: str
    attributes: str
    created_at: float
    altered_at: float


class ObjectRow(NamedTuple):
    """A definition other than a queue: a channel, process, user or token; `attributes` as JSON."""

    type: str
    name: str
    attributes: str
    altered_at: float


class ProcessRow(NamedTuple):
    """A process that has the store open."""

    id: int


class ConnectionRow(NamedTuple):
    """A connection of a process."""

    id: int
    process: int
    user: str
    program: str


class HandleRow(NamedTuple):
    """An open queue of any process; `name` is the name with which it was opened."""

    id: int
    connection: int
    queue: int
    name: str
    input: int
    output: int
    co_op: int
    exclusive: int
    made_temporary: int


class UnitRow(NamedTuple):
    """Work that will later be confirmed or undone. A session unit ends with its connection; the others outlive it.

    Args:
        queue: of a confirm id, lock id, claim or staging: its queue.
        connection: of a session unit: its connection; None: anyone may settle it.
        lease_ends_at: of a lock id with a lease: when it ends by itself (A-19).
    """

    id: int
    kind: UnitKind
    name: str
    queue: int | None
    connection: int | None
    user: str
    program: str
    started_at: float
    lease_ends_at: float | None = None

    @property
    def by(self) -> Program:
        """The program that began it."""
        return Program(self.user, self.program)


class MarkRow(NamedTuple):
    """A handle's browse mark on a message (3.11)."""

    message: int
    handle: int


class EnteredRow(NamedTuple):
    """A group, or a message in segments, that a reader has entered and not finished (B-45).

    It ends with its reader, unless an unsettled unit holds a member: then it stays for that unit.

    Args:
        reader: the reader inside; None: it has left.
        entered_in: the unit whose back out removes the entry.
        left_in: the unit in which the reader left; the exit counts once it is committed.
        entry: the place of its first message, that message, and the owner of the reader, as JSON.
    """

    id: int
    queue: int
    group_id: bytes
    reader: ReaderId | None
    entered_in: int | None
    left_in: int | None
    entry: str


class WaitRow(NamedTuple):
    """A call that waits (B-31).

    Args:
        pending: the message that it waits for, as of its last look, as JSON; `withheld`: whether that one blocks
            another.
        levels: for each level at which a strict call waits, the connections that block it, as JSON. Valid until the
            queue changes: each change sets it to None, and the call looks again.
    """

    connection: int
    queue: int
    pending: str | None
    withheld: int
    levels: str | None


class AccountRow(NamedTuple):
    """An application that reads a queue by claims: its last start, and its progress (`rules.claims`).

    Args:
        state: the position of its reader in a group, as JSON.
    """

    queue: int
    application: str
    user: str
    program: str
    epoch: int
    settled: int
    delivered: int
    state: str


class ClaimRow(NamedTuple):
    """A claim that holds messages.

    Args:
        state: the position of its reader in a group once it is confirmed, as JSON.
        more: whether its limits left messages on the queue.
    """

    unit: int
    queue: int
    application: str
    number: int
    messages: int
    size: int
    state: str
    more: int
    planned: int


class StagingRow(NamedTuple):
    """The counts of a staging, and when it expires.

    Args:
        given: rows as the caller counts; `messages`: a body that was split counts more than once; `size`: bytes of
            bodies.
        has_keys, has_order, has_numbers: some rows have a group key, an order key, or a group id from the caller.
        has_reports: some rows ask the queue manager for reports, and count as arrivals when they are put.
    """

    unit: int
    expires_at: float
    given: int
    messages: int
    size: int
    has_keys: int
    has_order: int
    has_numbers: int
    has_reports: int


class LeaseRow(NamedTuple):
    """The deadline of a unit of kind "lease" (`rules.leases`).

    Args:
        ends_at: when it is backed out, unless it is settled before.
        seconds: the duration with which it was last begun or extended.
        calls: puts and gets made under it.
    """

    unit: int
    ends_at: float
    seconds: float
    calls: int


class Branch(NamedTuple):
    """The part of a global unit at one owner (K-2).

    Args:
        connection: the name of the connection to the owner.
        manager: the name of the owner.
        user: the user as which the owner knows this side; empty: it does not distinguish users.
    """

    connection: str
    manager: str
    user: str = ""


class GlobalUnitRow(NamedTuple):
    """A unit of work of this store that also has parts at other queue managers (K-2).

    Args:
        connection: its connection here. Without a decision, the end of the connection backs the unit out.
        branches: the parts that are not known to be settled, as JSON: connection, queue manager and user of each.
        outcome: the decision; empty: there is none yet.
    """

    name: str
    connection: int
    user: str
    program: str
    started_at: float
    branches: str
    outcome: Decision


class AttemptRow(NamedTuple):
    """Recent failed log-ins (`rules.log_ins`).

    Args:
        key: of a user, or of an address.
        level: the number that counted at the time `at`.
        empty_at: when none of them will count any more.
    """

    key: str
    level: float
    at: float
    empty_at: float


class SampleRow(NamedTuple):
    """The counts of all queues at one moment, in a slot of a ring (`rules.history`).

    Args:
        seconds: the length of the ring's slots.
        at: when it was taken.
        queues: as `rules.history.text_of` writes them.
    """

    seconds: int
    slot: int
    at: float
    queues: str


class LedgerRow(NamedTuple):
    """A batch that was put on a queue. It prevents a repeat of the batch."""

    id: int
    queue: int
    application: str
    query: str
    batch: str
    messages: int
    committed_at: float


class PutKeyRow(NamedTuple):
    """A caller's key under which messages were put, so that a repeated put does nothing (`rules.duplicates`).

    Args:
        target: the destination of the messages, if the queue is a transmission queue; otherwise empty.
        unit: the unsettled unit that has put them; None if they are committed.
        put_at: the time of the put, or of the settlement of its unit. `expires_at`: the time when the key becomes free
            again.
        message_id, uid_origin, uid_number: of the message, or of the first if there were several.
        met_at: the first time that a put found `put_at` in the future of its clock; None: no put has.
    """

    queue: int
    target: str
    key: str
    unit: int | None
    put_at: float
    expires_at: float
    message_id: bytes
    uid_origin: str
    uid_number: int
    met_at: float | None = None


class TriggeredRow(NamedTuple):
    """When a trigger message was last put for a queue (R4.9)."""

    queue: int
    at: float


class ChannelRow(NamedTuple):
    """The state of a channel at the sender (C-6).

    Args:
        carrier: the connection that runs it. The run ends with the connection, whatever `status` says.
        epoch: of the claims of its last run.
        stop: how an operator stopped it; empty: it was not stopped.
        short_retries, long_retries: failed attempts of the run since it last sent something.
        reason, error: why it does not run; 0 and empty: there is no trouble.
        fast: whether its last run sent non-persistent messages outside the batches.
        reset: whether the receiver has yet to take the number that an operator has set.
    """

    name: str
    status: str
    carrier: int | None
    epoch: int
    stop: str
    short_retries: int
    long_retries: int
    reason: int
    error: str
    changed_at: float
    fast: int = 0
    reset: int = 0


class SentRow(NamedTuple):
    """The progress of a channel on a transmission queue.

    Args:
        number: of the last confirmed batch. The open claim of the channel is the next one.
        messages, size: of all confirmed batches, and of the messages sent outside of them.
    """

    queue: int
    channel: str
    number: int
    messages: int
    size: int
    sent_at: float | None


class ReceivedRow(NamedTuple):
    """The last batch of a channel that delivers here (C-1).

    Args:
        identifier: of the sending store; `incarnation` distinguishes its transmission queue from earlier ones of its
            name.
        manager: the name of the sending queue manager.
        number, epoch, messages, digest: of the batch.
    """

    identifier: str
    incarnation: int
    channel: str
    manager: str
    number: int
    epoch: int
    messages: int
    digest: bytes
    received_at: float


class BodyRow(NamedTuple):
    """A long body of the next batch of a channel that delivers here, as far as it has arrived (`PieceRow`).

    Args:
        position: of its message in the batch.
        batch: the digest of the batch.
        digest: SHA-256 of the whole body.
        size: bytes of the whole body.
        held: bytes that have arrived.
    """

    identifier: str
    incarnation: int
    channel: str
    position: int
    batch: bytes
    digest: bytes
    size: int
    held: int


class PieceRow(NamedTuple):
    """A piece of such a body. `first`: the number of bytes before it."""

    identifier: str
    incarnation: int
    channel: str
    position: int
    first: int
    data: bytes


class DroppedRow(NamedTuple):
    """Messages that the queue manager had to drop: its own, and those that came outside of batches (C-4, C-5).

    Args:
        queue: the queue whose messages they concerned; 0: none in this store.
        messages: their total number.
        last_at, reason: the time of the last drop, and why that message could not be put on its queue.
    """

    queue: int
    messages: int
    last_at: float
    reason: int


KEY_LENGTHS: Final[Mapping[type[Any], int]] = {
    ManagerRow: 1,
    DefinitionRow: 1,
    ProcessRow: 1,
    ConnectionRow: 1,
    HandleRow: 1,
    UnitRow: 1,
    MarkRow: 2,
    EnteredRow: 1,
    WaitRow: 1,
    AccountRow: 2,
    ClaimRow: 1,
    StagingRow: 1,
    LeaseRow: 1,
    GlobalUnitRow: 1,
    AttemptRow: 1,
    Act: 1,
    SampleRow: 2,
    LedgerRow: 1,
    PutKeyRow: 3,
    TriggeredRow: 1,
    ObjectRow: 2,
    ChannelRow: 1,
    SentRow: 2,
    ReceivedRow: 3,
    BodyRow: 4,
    PieceRow: 5,
    DroppedRow: 1,
}


class UpTo(NamedTuple):
    """In a selection: the field has a value, at most this one.

    Args:
        most: the largest number of records, those with the lowest values; None: all.
    """

    value: float
    most: int | None = None
