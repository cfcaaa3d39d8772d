"""The seam beneath the verbs: the keeper of the rows (`Backend`), and a process as others see it (`Host`).

Verbs, rules, life cycle and errors are above this seam and written once. A backend keeps messages, counters and small
records, finds them in order, and changes them in transactions. It makes no decisions except those of `rules/`. Only one
verb at a time uses a backend, because its caller holds the store's lock.

A change of a message names the expected state (`write`, `remove`, `move`). The backend checks the number of changed
rows, and raises AssertionError if it is wrong. When the last message of a group is removed, for any reason, no reader
is inside the group any more: the backend sets `reader` to None in its `EnteredRow` (B-45).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any, NamedTuple, Protocol, TypeVar

from ...model.attributes import QueueAttributes
from ...model.message import Message, Place, Row
from ...rules.grouping import Wanted
from ...rules.lifecycle import State
from ...rules.ordering import Cursor, Decision, Pending, StrictMatch
from ...rules.staged_columns import Batch
from ...support.locks import Bell
from .bulk_page import BulkPage
from .queued import QueuedMessage, Reader, SeenRow
from .records import Stretch
from .surveying import Cut
from .tables import ActRow, StagingRow, UnitRow
from .views import LookRequest, OrderView, Position

T = TypeVar("T")


class OperationKind(NamedTuple):
    """What a verb may do, and when.

    Args:
        feeds: it brings more into the store.
        in_room: it has found the medium full, and is tried once more when room has been made.
        alone: of those that write and say so one runs at a time. The others change what belongs to their queues, and
            may run beside it and each other where a backend can do that.
        appends: the numbers that it draws are those of messages that arrive, and nothing that it does depends on how
            high they are.
        beside: it changes nothing that belongs to its queues, only what it holds itself (`Backend.hold_stagings`), and
            wants them to stay: it may run beside all that does not remove one.
        together: it puts or gets. On a queue that keeps no order it may run together with others that do.
    """

    writes: bool = True
    though_stopped: bool = False
    feeds: bool = False
    in_room: bool = False
    alone: bool = True
    appends: bool = False
    beside: bool = False
    together: bool = False


class Passing(Exception):
    """Others were in the way of a verb, which has changed nothing: run again it succeeds."""


class Alone(Passing):
    """A verb that runs beside others turns out to change a definition: it has changed nothing, and runs again alone."""


class QueueState(NamedTuple):
    """A queue as it is at the beginning of a verb: its counters, and whether there is something to do or to heed.

    Args:
        counter: the number drawn last; up to `reserved` numbers may have been given away.
        next_expiry, next_due, next_lease_end: when the first message expires or is due, the first lease is over.
        has_edges: some wait knows who is in its way; has_marks: some message anywhere has a handle's mark;
        has_entered: readers are inside groups; has_reports: some messages ask the queue manager for reports.
        revision: the queue manager's when that changed last by which calls on the queue go.
    """

    counter: int
    reserved: int
    depth: int
    next_expiry: float | None
    next_due: float | None
    next_lease_end: float | None
    has_edges: int
    has_marks: int
    has_entered: int
    has_reports: int
    revision: int


class QueueCounters(NamedTuple):
    """The counters of a queue at the end of a verb; `added` to the depth, and `arrived`, by the verb."""

    queue: int
    counter: int
    reserved: int
    added: int
    arrived: int


class Share(NamedTuple):
    """What a unit holds on one queue in one state, counted; `expires`: some of it does; `unplaced`: has no place."""

    queue: int
    state: State
    away: int
    messages: int
    size: int
    expires: int
    forgotten: int
    persistent: int
    unplaced: int


class Expired(NamedTuple):
    """What a backend has discarded: how many, the units that held or locked some."""

    total: int
    units: Sequence[int]


class Counts(NamedTuple):
    """What is counted of a queue for those who look at all queues; see `views.QueueView`."""

    queue: int
    depth: int
    arrived: int
    numbered: int
    puts: int
    gets: int
    locked: int
    delayed: int
    oldest_put_at: float | None


class Listed(NamedTuple):
    """What a listing brings.

    Args:
        reached: a selector was asked about as much as a step may be: the listing goes on behind this.
    """

    found: Sequence[tuple[Position, QueuedMessage]]
    reached: Position | None = None


class SearchedQueue(Protocol):
    """What a search asks back: the rules, with this transaction's units and entries at hand."""

    id: int
    attributes: QueueAttributes
    state: QueueState

    @property
    def depth(self) -> int:
        """How many messages it has now."""

    def selects(self, row: QueuedMessage, wanted: Wanted, reader: Reader) -> bool:
        """Whether the call chooses from this message, beside its match and marks, available or not (B-13)."""

    def has_what_it_needs(self, row: QueuedMessage, wanted: Wanted, reader: Reader) -> bool:
        """Whether the group or logical message that begins here is complete for the reader, if it must be."""

    def judge(
        self, row: QueuedMessage, wanted: Wanted, reader: Reader, *, logical: bool
    ) -> StrictMatch[QueuedMessage] | None:
        """Whether a message takes part in a strict decision, and whether it is pending (B-13, B-44)."""

    def pending_of(self, row: QueuedMessage, reader: Reader) -> Pending | None:
        """Why this reader cannot be given the row yet; None if it can."""

    def entered_by_others(self, wanted: Wanted, reader: Reader) -> list[StrictMatch[QueuedMessage]]:
        """Groups that the call would choose were nobody else inside them, in order of place (B-45)."""

    def unit(self, number: int) -> UnitRow:
        """A unit by its number."""

    def has_locked(self, handle: int) -> bool:
        """Whether a handle of this process has browsed something with lock."""


class Backend(Protocol):
    """Rows and transactions."""

    def name_after(self, manager_name: str, origin: str) -> None:
        """Ids are read and written as those of this queue manager from now on.

        Args:
            manager_name: its name.
            origin: the name that it was created with, of which ids are made.
        """

    # --- transactions

    @property
    def is_inside(self) -> bool:
        """Whether a transaction has begun, or may have, and is neither committed nor aborted."""

    @property
    def has_happened(self) -> bool:
        """Whether the last one that has begun was committed; an exception from outside may hide that."""

    def begin(self, kind: OperationKind) -> None:
        """Begins one; a writing one waits for its turn. If it raises, `abort` is to follow. Raises: StoreError."""

    def keep(self, counts: Sequence[QueueCounters]) -> None:
        """What was done so far is a step of its own: it stays, even if the transaction is taken back."""

    def commit(
        self, counts: Sequence[QueueCounters], changed: Collection[int], *, reserves: bool, durable: bool
    ) -> int:
        """All of it has happened, counters included, and the change of these queues is announced to others.

        Args:
            reserves: it reserves numbers, none of which may be given away before it is on disk.
            durable: `Host.sync` is going to be called: what it waits for may begin.
        Returns: a ticket, for `Host.sync`.
        Raises: StoreFull, StoreDamaged, StoreError: nothing has happened.
        """

    def abort(self, error: BaseException, *, keeps: bool = False) -> bool:
        """Nothing of it has happened; if it `keeps` them, but for the steps of their own before it.

        What has happened nevertheless stays so: see `has_happened`. Harmless when repeated.

        Returns: whether there was such a step: then that is to be committed.

        Raises: StoreFull, StoreDamaged, StoreError, Passing, where the error is the database's.
        """

    def common_time(self, now: float) -> float:
        """The time by which all who have the store open judge deadlines: one clock for all; `now`: the caller's."""

    # --- small records

    def select(self, kind: type[T], /, **where: Any) -> list[T]:
        """The records with these values, by their keys; `UpTo(x)`: a value is there, and none above x.

        `UpTo(x, most)`: of these so many at most, with the lowest values.
        """

    def save(self, record: Any) -> None:
        """Writes a record: a new one, or instead of the one with its key."""

    def remove_records(self, kind: type[Any], /, **where: Any) -> int:
        """Removes records with these values; how many."""

    def newest_acts(self, before: tuple[float, int] | None, most: int, skip: int = 0) -> Sequence[ActRow]:
        """So many of the log, the newest first, older than this time and number; `skip`: without so many of these."""

    def revise(self, queues: Collection[int] | None) -> None:
        """The revision of these queues, or of all, is from now on that of the queue manager."""

    def forget_edges(self, queue: int, but: int) -> None:
        """Those who wait on a queue know no more who is in their way; one connection does still."""

    def draw(self, count: int, reserve: int) -> tuple[range, bool]:
        """Draws so many numbers that name things and are never given again; and whether more are reserved by it now.

        Args:
            reserve: how many more are reserved if these exceed the numbers reserved so far.
        """

    reserved_unseen: int
    """How many more numbers may have been reserved and given away than the store says after a loss of power."""

    def skip_reserved(self) -> None:
        """The numbers that name things go on behind what is reserved of them."""

    def state(self, queue: int) -> QueueState | None:
        """A queue as it is now; None: there is none."""

    def check_certain(self, queue: int) -> None:
        """Checks the verb's assumption about a queue. Raises: Passing, if it is wrong."""

    # --- finding messages

    def rows(self, most: int | None = None, /, **where: Any) -> Sequence[QueuedMessage]:
        """Messages by what keeps them together, the first so many, in order of place if nothing else is said.

        `queue`, `number`: that one. `queue`, `uid`. `unit`: what it holds, as it came. `queue`, `group_id`: what of the
        group has a place. `queue`, `everything_of`: all of a group. `queue`, `group_id`, `unit`, `first`, `state`: what
        the unit has put or got of the group from this sequence number on, in the order of the group. `queue`, `member`:
        those with these `rules.grouping.Numbers`. `lock`. `queue`, `lock_confirm`. `locked_handle`. `queue` and True in
        `forgotten` (and unlocked), `volatile` (not persistent), or `co_op_marked`. `queue`, `over`: whose time is over
        then, first those for which it has been longest. What asks for reports: `queue`, `reporting_from`, with this
        number or a higher one; `unit`, `reporting_on`, what the unit holds on that queue, as it came.
        """

    def read(self, rows: Sequence[QueuedMessage], most: int | None = None) -> Sequence[QueuedMessage]:
        """The same with their whole messages: the others have what a search needs. `most`: so much of each body."""

    def candidates(
        self, queue: SearchedQueue, wanted: Wanted, reader: Reader, after: Place | None
    ) -> Iterable[QueuedMessage]:
        """What is behind a place and may suit, in order; marks and the match have been heeded, the rest may not."""

    def levels(self, queue: SearchedQueue) -> Sequence[int]:
        """The ranks at which messages stand, in order."""

    def rows_at(
        self, queue: SearchedQueue, wanted: Wanted, reader: Reader, rank: int, after: Place
    ) -> Iterable[QueuedMessage]:
        """What is at a rank behind a place, in order, held or not; marks and the match have been heeded."""

    def level(self, queue: SearchedQueue, wanted: Wanted, reader: Reader, rank: int, after: Place) -> Iterable[SeenRow]:
        """What is at a rank behind a place, in order, held or not; with a selector.

        Marks and the match have been heeded. Nothing is read of a message but what the selector asks for.
        """

    def decide(
        self, queue: SearchedQueue, wanted: Wanted, reader: Reader, cursor: Cursor, *, logical: bool
    ) -> Decision[QueuedMessage]:
        """The strict decision over everything that matches, in order of place (B-11)."""

    def earlier(
        self,
        queue: SearchedQueue,
        before: QueuedMessage | None,
        wanted: Wanted,
        reader: Reader,
        after: Place | None,
        *,
        logical: bool,
    ) -> Sequence[Pending]:
        """What would withhold a strict call, for a notify call: before a row on its level, or behind `after` (B-16)."""

    def look_again_at(self, queue: SearchedQueue, reader: Reader, *, strict: bool) -> float | None:
        """When time alone may bring the call something: a delivery, the end of a lease or of a cooperative mark; to a
        strict one also the end of a delay or of a life (B-28, R3.74, A-19)."""

    def takers(self, queue: int, group_id: bytes, now: float | None) -> Sequence[int]:
        """The units that have got a member of a group, by their numbers; `now`: but for members whose time is over."""

    def gets_of_group(self, queue: int, group_id: bytes) -> int:
        """How many gets take the whole group; a message in no group takes one.

        One for each logical message; where pieces differ in character set or encoding, up to one for each piece.
        """

    # --- changing messages

    def arrive(
        self,
        queue: SearchedQueue,
        rows: Sequence[Row],
        state: State,
        first_number: int | None,
        unit: int | None,
        now: float,
    ) -> bool:
        """Messages come to the queue, with a number each from the first one on, or without a place.

        Returns: whether some of them ask the queue manager for reports (`message.REPORT_GENERATED`).
        """

    def sign(self, number: int, put_by: str) -> None:
        """Stores whose authority counts for a message that has just arrived (`authority`)."""

    def signed(self, number: int) -> Sequence[str | None]:
        """What `sign` stored with a message; None: nothing. Empty: there is no such message."""

    def write(self, before: QueuedMessage, after: QueuedMessage) -> None:
        """Whatever has changed of one row, which is in the state that it had before; of its message the flags alone."""

    def remove(self, rows: Sequence[QueuedMessage], before: State) -> None:
        """Rows that are in this state go for good, with their contents."""

    def clear(self, queue: int) -> None:
        """Everything on a queue goes, in whatever state."""

    def clear_some(self, queue: int, upto: int, most: int) -> Expired:
        """So many messages with numbers up to this one go that no unit but that of a lock id, and no handle, holds."""

    def expire(self, queue: int, now: float, most: int) -> Expired:
        """Discards so many of the messages whose time is over, as `rows` brings those that are `over` (R6.2).

        What is due can be read from now on.
        """

    def is_idle(self, unit: int) -> bool:
        """Whether a unit holds and locks nothing; a step, however much another one does."""

    def shares(self, unit: int, *, locked: bool = False) -> Sequence[Share]:
        """What a unit holds, counted; or, of the unit of a lock id, what it locks."""

    def move(self, unit: int, share: Share, after: State, now: float, backouts: int) -> Sequence[int]:
        """All of a share comes to another state; the units of lock ids that may have lost something by it."""

    def delay_gets(self, unit: int, share: Share, due_at: float) -> None:
        """What the unit has got and holds, of a share, is not to be read before that time once it is back."""

    def describe(self, row: QueuedMessage, message: Message) -> None:
        """The properties of a message on a queue are these now; nothing else of it has changed."""

    def restart_unit(self, unit: int, now: float) -> None:
        """The record of a session's last unit of work is that of its next one, which begins now."""

    def number_unit(self, unit: int, queue: int, number: int) -> None:
        """What the unit has put and what has no place yet is given this number, in the order of the puts (B-5)."""

    # --- in bulk

    def spans(self, unit: UnitRow) -> Sequence[tuple[int, int]]:
        """The first and last position of each group in a claim."""

    def claim_page(self, unit: UnitRow, first: int, last: int) -> BulkPage:
        """The rows of a claim at these positions, or as many of the first of them as make a page."""

    def survey(
        self, queue: SearchedQueue, reader: Reader, cursor: Cursor, most: int, most_bytes: int, slices: int,
        *, logical: bool, strict: bool,
    ) -> list[Cut]:  # fmt: skip
        """What a browse would show next, level by level, cut into about so many slices."""

    def stretch_page(
        self, queue: SearchedQueue, reader: Reader, stretch: Stretch, after: tuple[Any, ...]
    ) -> tuple[BulkPage, tuple[Any, ...] | None]:
        """A page of a stretch behind where the one before ended, and where it ends; None: with the stretch."""

    def hold_stagings(self, names: Collection[str], *, begins: bool) -> None:
        """Until the verb ends nobody else changes what stands under these names; `begins`: nor begins it."""

    def stage(self, unit: int, first: int, batch: Batch) -> None:
        """Rows are written beside the queues, from this turn on in their staging."""

    def put_staged(
        self,
        queue: SearchedQueue,
        stagings: Sequence[StagingRow],
        first: int,
        now: float,
        put_by: str | None,
        *,
        own: bool,
        tells: bool,
    ) -> Sequence[Message]:
        """Staged rows become messages, from this number on: each with its `own`, or with one for all, and ordinals.

        Args:
            put_by: as `sign` has it; None: a program.

        Returns: those messages, if `tells`.

        Raises: InconsistentCall, the numbers of a group of the caller's own have a gap or a repeat.
        """

    def end_staging(self, staging: StagingRow, *, drops: bool) -> None:
        """A staging's rows go, with what was staged if it drops that."""

    # --- for operators

    def listing(self, queue: SearchedQueue, request: LookRequest, unit: int | None, now: float) -> Listed:
        """A page of a listing, with the beginnings of bodies; `unit`: of the one asked for, 0: it is over."""

    def overview(self, now: float, queue: int | None = None, *, briefly: bool = False) -> Sequence[Counts]:
        """All queues at one moment, or one; `briefly`: its counters, and what is put and got."""

    def volatile_queues(self) -> Sequence[int]:
        """The queues with messages that are not persistent."""

    def timed_queues(self) -> Sequence[int]:
        """All queues on which time may end something: messages and leases that expire, delays; others may be there."""

    def order_view(self, queue: SearchedQueue, now: float) -> OrderView:
        """What is pending on a queue, but for what waits (B-33)."""


class Peer(NamedTuple):
    """A process that has the store open.

    Args:
        process: its number on its own machine; None: it is not known here.
        host: the address of that machine; empty: this one, or it is not known.
        since: when it began, or when it came to a server; seconds since 1970. None: it is not known.
    """

    process: int | None
    host: str
    since: float | None


class Host(Protocol):
    """What this process is to others that have the store open, and what it does for all of its callers."""

    stopped: bool
    """The queue manager was stopped, for all processes."""

    @property
    def is_closed(self) -> bool:
        """Whether `close` was called, or this process was forked from the one that opened it."""

    def own(self, process: int) -> bool:
        """From now on this process lives as that owner: until `disown`, `close`, or death.

        Returns: False if the owner lives already, in a program that has not noticed that the store was restored.
        """

    def disown(self, process: int) -> None:
        """It does not live as that owner any more."""

    def is_alive(self, process: int) -> bool:
        """Whether that owner lives, here or elsewhere; never asked of a clock (B-32)."""

    def process_of(self, process: int) -> int | None:
        """The operating system's number of the process that lives as that owner, if it is known here."""

    def peer(self, process: int) -> Peer:
        """Inside a verb: more about the process that lives as that owner, as far as it is known here."""

    def refuse_lost(self) -> None:
        """Raises: StoreError with `must_reopen`, only a process that opens the store anew can use it again."""

    def run(self) -> tuple[bool, str, bool]:
        """Whether nobody else has the store open; which run of the machine this is, "" if it does not say; and whether
        what was not synced may be missing though the machine ran on: the store was copied here."""

    def is_reservation_open(self) -> bool:
        """Whether numbers drawn now may be of a reservation that is not on disk yet."""

    def attend(self, waiting: int) -> None:
        """So many calls of this process wait now."""

    def looked(self, queue: int, name: str) -> None:
        """Inside a verb: a call has looked at a queue as it is now, and waits until it is otherwise."""

    def bell(self, queue: str) -> Bell:
        """What a call waits with that is about to look at this queue: its wait ends also when others, elsewhere, have
        changed the queue since the look; that is reported then."""

    def sync(self, ticket: int) -> None:
        """Returns when this commit, and with it all before it, is on disk. Raises: StoreError."""

    @property
    def syncs_quickly(self) -> bool:
        """Whether `sync` will take about a millisecond at most: the last one did, and nobody is at it."""

    def make_room(self, *, feeds: bool) -> None:
        """Inside a verb that writes, has done nothing yet and found the medium full before: it is to succeed now.

        Args:
            feeds: it brings more in, and is not to take the room that others need to get something out.
        Raises: StoreError and its kinds.
        """

    def hold(self) -> bool:
        """Under the store's lock: transactions of this thread wait for nobody from now on; whether that can be.

        `let_go` is to follow, whatever comes of it. False: somebody is there now, or the medium is far away.
        """

    def let_go(self) -> None:
        """Others come again. Harmless when repeated, and when nothing is held."""

    @property
    def has_more_to_do(self) -> bool:
        """Whether `after` has something to do."""

    def after(self, step: Callable[[Callable[[], object]], None]) -> None:
        """A verb that writes is over, its lock is free: what is left to do for the medium can be done.

        Args:
            step: runs what uses the backend, as a verb of its own.
        """

    def check(self, part: int | None) -> tuple[list[str], int]:
        """What is wrong in one part of the store, in words, and how many parts there are; None: those alone."""

    def backup(
        self, path: str | os.PathLike[str], *, replace: bool, progress: Callable[[int, int], object] | None
    ) -> None:
        """Copies the store as it is at one instant, while others go on."""

    def close(self) -> None:
        """Lets go of the medium. Harmless when repeated."""
