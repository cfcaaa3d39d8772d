"""The small records that a backend keeps beside the messages: one kind for each table, plain values only.

`Backend.select`, `save` and `remove_records` work on all of them alike, by the names of their fields; a backend that
is a database has a table for each kind (`unit` for `UnitRow`) and a column for each field. The first
fields, as many as `KEY_LENGTHS` says, are the key. State that changes with every message is elsewhere: a queue's
counters (`backend.QueueState`) and the messages themselves (`queued.QueuedMessage`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal, NamedTuple

from ...rules.puts import Program

UnitKind = Literal["session", "prepared", "confirm", "lock", "claim", "staging", "lease"]
ReaderId = str  # `handle_reader` or `application_reader`


def handle_reader(number: int) -> ReaderId:
    """A handle as one who reads groups."""
    return f"h{number}"


def application_reader(name: str) -> ReaderId:
    """The same of an application that claims."""
    return f"a{name}"


class ManagerRow(NamedTuple):
    """The queue manager itself; there is one.

    Args:
        attributes: as JSON.
        revision: grows with every change of a definition: what processes keep of definitions is old then.
        boot: the run of the machine in which the store was started last.
        identifier: names the store among all others; what is put back from a backup has the same.
    """

    id: int
    attributes: str
    revision: int
    boot: str
    identifier: str


class DefinitionRow(NamedTuple):
    """A queue, an alias or a model. The id names it since it was created: another of its name has another (B-41)."""

    id: int
    name: str
    type: str
    attributes: str
    created_at: float
    altered_at: float


class ObjectRow(NamedTuple):
    """A definition other than a queue: a channel, a process, a user, a token; `attributes` as JSON."""

    type: str
    name: str
    attributes: str
    altered_at: float


class ProcessRow(NamedTuple):
    """Who has the store open."""

    id: int


class ConnectionRow(NamedTuple):
    """A connection of a process."""

    id: int
    process: int
    user: str
    program: str


class HandleRow(NamedTuple):
    """An open queue, of any process; `name` is the queue as opened, itself or another name of it."""

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
    """Work that will later be confirmed or undone. A session unit goes with its connection, the others outlive it.

    Args:
        queue: of a confirm id, lock id, claim or staging: where it lives.
        connection: of a session unit: whose unit of work it is; None: anyone may settle it.
        lease_ends_at: of a lock id with a lease: it ends by itself then (A-19).
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
        """Who began it."""
        return Program(self.user, self.program)


class MarkRow(NamedTuple):
    """A handle's browse mark on a message (3.11)."""

    message: int
    handle: int


class EnteredRow(NamedTuple):
    """A group, or a message in segments, that a reader has entered and not finished (B-45).

    It goes with its reader, unless a unit that is not settled holds a member: then it stays for that unit.

    Args:
        reader: who is inside; None: nobody any more.
        entered_in: the unit whose back out takes the entry back.
        left_in: the unit in which the reader went elsewhere: it has left when that is committed.
        entry: where its first message stood, that message, and whose the reader is, as JSON.
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
        pending: what it waits for, by its last look, as JSON; `withheld`: something stands behind that.
        levels: for each level at which a strict call waits the connections in its way, as JSON. True of the queue as it
            was: each change of the queue sets it to None, and the waiter looks again.
    """

    connection: int
    queue: int
    pending: str | None
    withheld: int
    levels: str | None


class AccountRow(NamedTuple):
    """An application that reads a queue by claims: its last start, and how far it has come (`rules.claims`).

    Args:
        state: where its reader stands in a group, as JSON.
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
        state: where its reader stands when it is confirmed, as JSON.
        more: its limits have left messages behind.
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
    """What was staged under the name of a unit, counted, and until when it is kept.

    Args:
        given: rows as the caller counts; `messages`: a body that was split is several; `size`: bytes of bodies.
        has_keys, has_order, has_numbers: some rows have a group key, an order key, a group id that the caller gave.
        has_reports: some ask the queue manager for reports, and arrive when they are put.
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
    """Until when a unit of kind "lease" is kept (`rules.leases`).

    Args:
        ends_at: it is backed out then, unless it was settled before.
        seconds: with how many it was begun or extended last.
        calls: puts and gets made under it.
    """

    unit: int
    ends_at: float
    seconds: float
    calls: int


class AttemptRow(NamedTuple):
    """Log-ins that have failed of late (`rules.log_ins`).

    Args:
        key: of a user, or of an address.
        level: how many counted then, `at`.
        empty_at: when none of them will count any more.
    """

    key: str
    level: float
    at: float
    empty_at: float


class ActRow(NamedTuple):
    """An act that cannot be taken back, done by a user through a server.

    Args:
        outcome: "begun" until it is known: then "done" or "failed".
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


class LedgerRow(NamedTuple):
    """What was settled on a queue, so that a batch that comes again is put only once."""

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
        met_at: the first time that a put found `put_at` in the future of its own clock; None if none has.
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
    """What a channel does at its sender's (C-6).

    Args:
        carrier: the connection that runs it; its end is the end of the run, whatever `status` says.
        epoch: of the claims of its last run.
        stop: how an operator has stopped it; empty: nobody has.
        short_retries, long_retries: how often the run has tried in vain since it carried something last.
        reason, error: why it does not run; 0 and empty: there is no trouble.
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


class SentRow(NamedTuple):
    """How far a channel is with a transmission queue.

    Args:
        number: of the last batch that was confirmed. The open claim of the channel is the next one.
        messages, size: of all confirmed batches.
    """

    queue: int
    channel: str
    number: int
    messages: int
    size: int
    sent_at: float | None


class ReceivedRow(NamedTuple):
    """The last batch of a channel that comes here (C-1).

    Args:
        identifier: of the store that sends; `incarnation`: the number of its transmission queue since it was made.
        manager: the name of the queue manager that sends.
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


class DroppedRow(NamedTuple):
    """Reports and the like that the queue manager has made and had to drop (C-5).

    Args:
        queue: whose messages they were about; 0: of no queue here.
        messages: how many, ever.
        last_at, reason: of the last one: when, and why it could not be put where it should have gone.
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
    AttemptRow: 1,
    ActRow: 1,
    LedgerRow: 1,
    PutKeyRow: 3,
    TriggeredRow: 1,
    ObjectRow: 2,
    ChannelRow: 1,
    SentRow: 2,
    ReceivedRow: 3,
    DroppedRow: 1,
}


class UpTo(NamedTuple):
    """In a selection: the field has a value, and none above this one.

    Args:
        most: so many records at most, those with the lowest values; None: all.
    """

    value: float
    most: int | None = None
