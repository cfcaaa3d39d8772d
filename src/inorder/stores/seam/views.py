"""Views of a store for operators: values only."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

from ...model.message import NO_ID, Message, Place
from ...model.options import EVERYTHING, Match
from ...rules.ordering import Pending
from ...rules.puts import Program
from ...support.old_paths import renamed
from .records import ChannelNow
from .tables import UnitKind

ListingOrder = Literal["physical", "logical"]

SightState = Literal["available", "delayed", "put", "got", "locked", "claimed"]

HolderKind = Literal["session", "prepared", "confirm", "lock", "claim", "lease", "handle"]

LockKind = Literal["handle", "lock"]


WITH_HEAD, WITHOUT_HEAD, UNPLACED = range(3)  # stages of a listing
NOWHERE = Place(0, 0, 0)


class Position(NamedTuple):
    """Where a message stands in a listing; smaller is earlier.

    Args:
        stage: WITH_HEAD, in physical order everything that has a place; WITHOUT_HEAD, groups whose first message is
            not there; UNPLACED, what has no place yet.
        anchor: in logical order, the place of the group's first member that is there; else the message's own.
        group_id: of the group that stands there, in logical order.
        number: of what has no place: its number among all messages.
    """

    stage: int
    anchor: Place = NOWHERE
    group_id: bytes = NO_ID
    sequence_number: int = 0
    offset: int = 0
    place: Place = NOWHERE
    number: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Unit:
    """A unit that is not settled: what an operator sees of it.

    Args:
        kind: a connection's own unit of work ("session"), "prepared", "confirm" (a confirm id), "lock", "claim",
            "staging" or "lease".
        name: of a prepared unit, a staging or a lease; the id of a confirm or lock unit; the application and number of
            a claim; empty for a connection's own.
        queue: of a confirm or lock unit: the queue on which the id lives (A-15); of a claim: what it reads; of a
            staging: what it is for; else empty.
        program: who began it.
        started_at: seconds since 1970.
        puts, gets, locks: messages that it holds.
        connection: of a session unit: the number of its connection, which ends it; else None.
        process: of a session unit: the id of the process that has that connection; None if that is not known.
        queues: the queues on which it holds something, by name.
        ends_at: of a lease or a staging: when it ends by itself, seconds since 1970; else None.
    """

    kind: UnitKind
    name: str
    queue: str
    program: Program
    started_at: float
    puts: int
    gets: int
    locks: int
    connection: int | None = None
    process: int | None = None
    queues: tuple[str, ...] = ()
    ends_at: float | None = None


class Holder(NamedTuple):
    """Who keeps a message from others.

    Args:
        kind: as of a `Unit`, or "handle": a browse lock.
        name: as of a `Unit`; empty for a handle.
        since: when the unit began, or the lock; seconds since 1970.
        connection, process: of a session unit or a handle; see `Unit`.
    """

    kind: HolderKind
    name: str
    program: Program
    since: float
    connection: int | None = None
    process: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageView:
    """A message on a queue, as an operator sees it.

    Args:
        position: where it stands in the listing; a listing may go on behind it.
        state: "available"; "delayed", not to be read before `due_at`; "put" and "got" in a unit that is not settled;
            "locked" by a browse; "claimed" by a reader in bulk.
        holder: who put, got, locked or claimed it; None if it is available or delayed.
        message: as a browse shows it; its body is cut to the preview, `message.length` is that of the whole body.
        visible_since: when everyone could see it first, seconds since 1970; None: nobody could yet.
        due_at: of a delayed message; else None.
    """

    position: Position
    state: SightState
    holder: Holder | None
    message: Message
    visible_since: float | None
    due_at: float | None

    @property
    def place(self) -> Place | None:
        """Where it sits on the queue; None: its number is not drawn yet (B-5)."""
        return self.message.place

    @property
    def length(self) -> int:
        """Of the whole body, in bytes."""
        return self.message.length

    @property
    def put_at(self) -> float:
        """When it was put, as its descriptor says; seconds since 1970."""
        return self.message.put_at


@dataclass(frozen=True, slots=True, kw_only=True)
class LookRequest:
    """One page of a listing.

    Args:
        after: the listing goes on behind this; None: from its beginning.
        most: so many messages at most.
        preview: so many bytes of each body.
        unit: only what this unit holds; None: everything.
        numbered_after: only what has been given a higher number on the queue; None: everything. In physical order.
    """

    queue: str
    order: ListingOrder
    after: Position | None
    most: int
    preview: int
    match: Match = EVERYTHING
    unit: Unit | None = None
    numbered_after: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Wait:
    """A call that waits for messages.

    Args:
        queue: on which it waits.
        connection, program, process: whose call it is; see `Unit`.
        pending: of a strict call: the message that it waits for, by its last look: of which kind, by whom it is held,
            since when, and where; None: for no message in particular.
        withheld: there are messages that it would be given if the pending one were not there (B-11).
    """

    queue: str
    connection: int
    program: Program
    process: int | None
    pending: Pending | None
    withheld: bool


class Opening(NamedTuple):
    """A queue that a connection has open, with one handle; a call by name has one too.

    Args:
        queue: the local queue that is open, behind an alias or, of a remote queue, the transmission queue; empty: it
            was deleted since (2052).
        name: as it was opened.
        input: "shared" or "exclusive"; None: not for gets.
        output: for puts.
        co_op: it browses together with others (3.11).
    """

    queue: str
    name: str
    input: Literal["shared", "exclusive"] | None
    output: bool
    co_op: bool

    @property
    def uses(self) -> str:
        """For what, in words; "look": it browses, inquires or sets."""
        gets = {None: "", "shared": "get", "exclusive": "get exclusive"}[self.input]
        looks = "browse together" if self.co_op else ""
        return ", ".join(filter(None, (gets, "put" if self.output else "", looks))) or "look"


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionView:
    """A connection that a living process has, and what it has open.

    Args:
        connection, program, process: see `Unit`.
        host: of a store on a server, the address from which the process has come to it, as the server sees it; empty:
            this machine, or it is not known here.
        since: when the process began, of a store on a server when it opened the store; seconds since 1970. None: it is
            not known here.
        opened: one for each handle, in the order in which they were opened. When that was is not kept, and neither is
            whether a handle that neither gets nor puts browses, inquires or sets.
    """

    connection: int
    program: Program
    process: int | None
    host: str
    since: float | None
    opened: tuple[Opening, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class LockView:
    """What locks messages of a queue.

    Args:
        kind: "handle", a browse lock of an open handle (3.10), which ends with it; "lock", a lock id (A-12).
        lock_id: None for a handle.
        connection, process: whose handle it is; None for a lock id.
        since: seconds since 1970.
        messages: how many it locks, those that were got under it included.
        lease_ends_at: of a lock id with a lease: when it ends by itself, seconds since 1970; else None.
    """

    kind: LockKind
    queue: str
    lock_id: int | None
    program: Program
    connection: int | None
    process: int | None
    since: float
    messages: int
    lease_ends_at: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueView:
    """A queue at one moment, for programs that poll; expired messages that are still there are counted.

    Args:
        created_at: another queue of this name has another.
        depth: as in `QueueStatus`.
        arrived: messages that have ever been put on it, in units too, also those that were backed out later. So between
            two looks the growth of `arrived` less the growth of `depth` is how many have left it, less those that
            came back.
        numbered: the highest number drawn so far, for `LookRequest.numbered_after`.
        puts, gets: messages put and got in units that are not settled, claims included.
        locked: messages locked, and not got.
        delayed: messages not to be read yet.
        oldest_put_at: when the oldest message was put: of what each unit or lock holds the one of the lowest number (of
            one process the first that it put), of all that are available the first of each priority. None: there is
            none.
        open_input_count, open_output_count: handles.
        waiters: calls that wait.
        dropped: reports about its messages that no queue took, not even the dead-letter queue: see `Dropped`.
        channels: of a transmission queue, the channels that send from it, by name; `depth` and `oldest_put_at` are how
            far they lag behind.
    """

    name: str
    created_at: float
    depth: int
    arrived: int
    numbered: int
    puts: int
    gets: int
    locked: int
    delayed: int
    oldest_put_at: float | None
    open_input_count: int
    open_output_count: int
    waiters: int
    dropped: int
    channels: tuple[ChannelNow, ...] = ()


class Dropped(NamedTuple):
    """What the queue manager had made and had to drop: reports, trigger messages.

    Args:
        queue: whose messages they were about; empty: of no queue that is here.
        messages: how many, ever.
        last_at: when the last one was dropped, seconds since 1970.
        reason: why that one could not be put where it should have gone; the dead-letter queue did not take it either.
    """

    queue: str
    messages: int
    last_at: float
    reason: int


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderView:
    """What an operator asks of a queue that strict readers read (B-33).

    Args:
        unresolved_puts: puts that have a number and are not committed.
        pending_out: messages got, locked, or not to be read yet.
        oldest_put, oldest_out: the one of each that has been pending longest; None if there is none.
        withheld: available messages behind a pending one of their level.
        strict_waiters: calls that wait for their turn.
    """

    unresolved_puts: int
    oldest_put: Pending | None
    pending_out: int
    oldest_out: Pending | None
    withheld: int
    strict_waiters: int


NOTHING_PENDING: Final = OrderView(
    unresolved_puts=0, oldest_put=None, pending_out=0, oldest_out=None, withheld=0, strict_waiters=0
)


if not TYPE_CHECKING:  # a type checker would take every name for one that is there
    __getattr__ = renamed(__name__, Sight="MessageView")
