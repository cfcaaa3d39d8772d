"""The lower seam: `Backend` keeps the rows, and `Host` represents this process to the others that have the store open.

Operations, rules, life cycle and errors are written once, above this seam. A backend stores messages, counters and
small records, finds them in order, and changes them in transactions. It makes no decisions except those of `rules/`.
Only one operation at a time uses a backend, because its caller holds the store's lock.

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
from .bulk_page import BulkPage, PageEnd
from .queued import QueuedMessage, Reader, SeenRow
from .records import Act, Stretch
from .surveying import Cut
from .tables import StagingRow, UnitRow
from .views import LookRequest, OrderView, Position

T = TypeVar("T")


class OperationKind(NamedTuple):
    """The kind of an operation: its effects, and the operations that may run beside it.

    Args:
        feeds: it adds data to the store.
        in_room: the medium was full; it is retried once, after room has been made.
        alone: only one writer with this flag runs at a time. Other writers change only their own queues, and may run
            beside it and each other if the backend supports that.
        appends: it draws numbers only for arriving messages, and does not depend on how high they are.
        beside: of its queues it changes nothing but the stagings that it holds (`Backend.hold_stagings`). It may run
            beside everything except their removal.
        together: it puts or gets. On a queue without order it may run together with other puts and gets.
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
    """Another operation interfered. This one has changed nothing, and succeeds when run again."""


class Alone(Passing):
    """An operation beside others needs to change a definition. It has changed nothing, and runs again alone."""


class QueueState(NamedTuple):
    """A queue at the beginning of an operation: its counters, and flags for work that is due.

    Args:
        counter: the number drawn last; numbers up to `reserved` may already have been used.
        next_expiry, next_due, next_lease_end: when the first message expires or becomes due, or the first lease ends.
        has_edges: some waiting call has recorded its blockers; has_marks: a message of any queue has a handle's mark;
        has_entered: readers are inside groups; has_reports: some messages ask the queue manager for reports.
        revision: the queue manager's revision at the last change of a definition that matters to calls on this queue.
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
    """A queue's counters after an operation; `added` is the change of the depth, `arrived` counts arrivals."""

    queue: int
    counter: int
    reserved: int
    added: int
    arrived: int


class Share(NamedTuple):
    """Counts of a unit's messages on one queue in one state. `expires`, `forgotten`, `persistent`: whether any of them
    is.
    """

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
    """Discarded messages: their number, and the units that held or locked some of them."""

    total: int
    units: Sequence[int]


class Counts(NamedTuple):
    """The counts of a queue for an overview; see `views.QueueView`."""

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
    """A page of a listing.

    Args:
        reached: the position at which the budget of selector evaluations was used up; the listing continues there.
    """

    found: Sequence[tuple[Position, QueuedMessage]]
    reached: Position | None = None


class SearchedQueue(Protocol):
    """The queue as a search sees it: the rules, with the units and entered groups of this transaction."""

    id: int
    attributes: QueueAttributes
    state: QueueState

    @property
    def depth(self) -> int:
        """The present number of messages."""

    def selects(self, row: QueuedMessage, wanted: Wanted, reader: Reader) -> bool:
        """Whether the call may choose this message, available or not, apart from its match and marks (B-13)."""

    def has_what_it_needs(self, row: QueuedMessage, wanted: Wanted, reader: Reader) -> bool:
        """Whether the group or logical message that begins here is complete, if the call requires that."""

    def judge(
        self, row: QueuedMessage, wanted: Wanted, reader: Reader, *, logical: bool
    ) -> StrictMatch[QueuedMessage] | None:
        """Whether a message takes part in a strict decision, and whether it is pending (B-13, B-44)."""

    def pending_of(self, row: QueuedMessage, reader: Reader) -> Pending | None:
        """Why this reader cannot get the row yet; None if it can."""

    def entered_by_others(self, wanted: Wanted, reader: Reader) -> list[StrictMatch[QueuedMessage]]:
        """The groups that the call would choose if no other reader were inside them, in order of place (B-45)."""

    def has_locked(self, handle: int) -> bool:
        """Whether a handle of this process has a browse lock."""


class Backend(Protocol):
    """Stores rows, and changes them in transactions."""

    def name_after(self, manager_name: str, origin: str) -> None:
        """Sets the queue manager's names, for reading and writing ids.

        Args:
            manager_name: its name.
            origin: the name that it was created with, which ids contain.
        """

    # --- transactions

    @property
    def is_inside(self) -> bool:
        """Whether a transaction has begun, or may have, and has neither been committed nor aborted."""

    @property
    def has_happened(self) -> bool:
        """Whether the last transaction was committed, even if an exception from outside hid that from the caller."""

    def begin(self, kind: OperationKind) -> None:
        """Begins a transaction; a writing one waits its turn. `abort` must follow an exception. Raises: StoreError."""

    def keep(self, counts: Sequence[QueueCounters]) -> None:
        """Makes everything so far a separate step, which stays even if the transaction is aborted."""

    def commit(
        self, counts: Sequence[QueueCounters], changed: Collection[int], *, reserves: bool, durable: bool
    ) -> int:
        """Commits the transaction with these counters, and announces the change of these queues to other processes.

        Args:
            reserves: it reserves numbers, and none of them may be used before the commit is on disk.
            durable: `Host.sync` will follow, so work for it may begin.
        Returns: a ticket for `Host.sync`.
        Raises: StoreFull, StoreDamaged, StoreError; nothing has happened then.
        """

    def abort(self, error: BaseException, *, keeps: bool = False) -> bool:
        """Rolls the transaction back; if `keeps`, all but the earlier separate steps.

        If the transaction was committed after all, it stays so: see `has_happened`. Harmless when repeated.

        Returns: whether there was such a step, which must then be committed.

        Raises: StoreFull, StoreDamaged, StoreError, Passing, if `error` is the database's.
        """

    def common_time(self, now: float) -> float:
        """The clock by which all processes of the store judge deadlines; `now` is the caller's time."""

    # --- small records

    def select(self, kind: type[T], /, **where: Any) -> list[T]:
        """Returns the records with these values, in order of their keys. `UpTo(x)`: the field has a value, at most x.

        `UpTo(x, most)`: at most `most` of these, the ones with the lowest values.
        """

    def save(self, record: Any) -> None:
        """Writes a record, replacing any with the same key."""

    def remove_records(self, kind: type[Any], /, **where: Any) -> int:
        """Removes the records with these values. Returns how many."""

    def newest_acts(self, before: tuple[float, int] | None, most: int, skip: int = 0) -> Sequence[Act]:
        """Up to `most` entries of the operator log older than this time and number, newest first, without the first
        `skip`.
        """

    def revise(self, queues: Collection[int] | None) -> None:
        """Sets the revision of these queues, or of all, to the queue manager's."""

    def forget_edges(self, queue: int, but: int) -> None:
        """Deletes the records of the blockers of calls that wait on a queue, except for the connection `but`."""

    def draw(self, count: int, reserve: int) -> tuple[range, bool]:
        """Draws identifying numbers, which are never used again: `count` or more. Returns them, and whether this has
        reserved more.

        Args:
            reserve: how many more to reserve if these exceed the numbers reserved so far.
        """

    reserved_unseen: int
    """How many numbers beyond the recorded reservation may have been reserved and used before a loss of power."""

    def skip_reserved(self) -> None:
        """Makes identifying numbers continue after the reserved ones."""

    def state(self, queue: int) -> QueueState | None:
        """Returns the present state of a queue, or None if it does not exist."""

    def check_certain(self, queue: int) -> None:
        """Checks the operation's assumption about a queue. Raises: Passing, if it is wrong."""

    # --- finding messages

    def rows(self, most: int | None = None, /, **where: Any) -> Sequence[QueuedMessage]:
        """Returns messages by one of these keys, at most `most`, in order of place unless stated otherwise.

        `queue`, `number`. `queue`, `numbers`: a set. `queue`, `uid`. `queue`, `uids`: with one of these
        consecutive unique ids, which are nobody's own number. `unit`: held by it, in order of arrival. `queue`,
        `group_id`: members of the group that have a place; also `lock`: those under it, in any order. `queue`,
        `everything_of`: all members. `queue`, `group_id`, `unit`, `first`, `state`: members that the unit has put or
        got, from this sequence number on, in group order. `queue`, `member`: with these `rules.grouping.Numbers`.
        `lock`. `queue`, `lock_confirm`. `locked_handle`. `queue` and True in `forgotten` (and unlocked), `volatile`
        (not persistent), or `co_op_marked`. `queue`, `over`: expired by then, longest first. Messages that ask for
        reports: `queue`, `reporting_from`, with this number or a higher one; `unit`, `reporting_on`, held by the unit
        on that queue, in order of arrival.
        """

    def read(self, rows: Sequence[QueuedMessage], most: int | None = None) -> Sequence[QueuedMessage]:
        """Returns the rows with whole messages; a search needs less. `most`: bytes of each body."""

    def candidates(
        self, queue: SearchedQueue, wanted: Wanted, reader: Reader, after: Place | None
    ) -> Iterable[QueuedMessage]:
        """Yields rows after a place, in order, that pass the marks and the match; other conditions are unchecked."""

    def levels(self, queue: SearchedQueue) -> Sequence[int]:
        """Returns the ranks that have messages, in order."""

    def rows_at(
        self, queue: SearchedQueue, wanted: Wanted, reader: Reader, rank: int, after: Place
    ) -> Iterable[QueuedMessage]:
        """Yields the rows of a rank after a place, in order, held or not, that pass the marks and the match."""

    def level(self, queue: SearchedQueue, wanted: Wanted, reader: Reader, rank: int, after: Place) -> Iterable[SeenRow]:
        """As `rows_at`, for a call with a selector.

        Reads only the parts of a message that the selector needs.
        """

    def decide(
        self, queue: SearchedQueue, wanted: Wanted, reader: Reader, cursor: Cursor, *, logical: bool
    ) -> Decision[QueuedMessage]:
        """Returns the strict decision over all matching messages, in order of place (B-11)."""

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
        """Returns the messages that would withhold a strict call, before a row on its level or after `after` (B-16)."""

    def look_again_at(self, queue: SearchedQueue, reader: Reader, *, strict: bool) -> float | None:
        """Returns when time alone may make a message available: by a delivery, or the end of a lease or cooperative
        mark; for a strict call also by the end of a delay, or an expiry (B-28, R3.74, A-19).
        """

    def takers(self, queue: int, group_id: bytes, now: float | None) -> Sequence[int]:
        """Returns the numbers of units that have got members of a group; with `now`, only of unexpired ones."""

    def gets_of_group(self, queue: int, group_id: bytes) -> int:
        """Returns the number of gets that read the whole group; a message in no group takes one.

        One for each logical message; if segments differ in character set or encoding, up to one for each segment.
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
        """Adds messages to the queue: with consecutive numbers from the first one on, or without places.

        Returns: whether some of them ask the queue manager for reports (`message.REPORT_GENERATED`).
        """

    def sign(self, number: int, put_by: str) -> None:
        """Stores the mark of a message that has just arrived (`authority`)."""

    def signed(self, number: int) -> Sequence[str | None]:
        """Returns a message's mark from `sign`; [None] if it has none, empty if there is no such message."""

    def write(self, before: QueuedMessage, after: QueuedMessage) -> None:
        """Writes the changes of a row that is in the state `before`; of its message only the flags may differ."""

    def remove(self, rows: Sequence[QueuedMessage], before: State) -> None:
        """Deletes rows that are in this state, with their bodies."""

    def clear(self, queue: int) -> None:
        """Deletes all messages on a queue, in any state."""

    def clear_some(self, queue: int, upto: int, most: int) -> Expired:
        """Deletes up to `most` messages with numbers up to this one; only a lock id's unit may hold them."""

    def expire(self, queue: int, now: float, most: int) -> Expired:
        """Discards up to `most` expired messages, in the order of `rows` with `over` (R6.2).

        Also makes delayed messages that are due available.
        """

    def is_idle(self, unit: int) -> bool:
        """Whether a unit holds and locks nothing. The cost does not depend on other units."""

    def shares(self, unit: int, *, locked: bool = False) -> Sequence[Share]:
        """Counts the messages that a unit holds or, with `locked`, that the unit of a lock id locks."""

    def move(self, unit: int, share: Share, after: State, now: float, backouts: int) -> Sequence[int]:
        """Moves all of a share to another state. Returns the lock ids' units that may have lost messages by it."""

    def delay_gets(self, unit: int, share: Share, due_at: float) -> None:
        """Hides the messages of a share, which the unit has got, until that time once they are back on the queue."""

    def end_retry_delays(self, queue: int, now: float, numbers: Sequence[int] | None) -> Sequence[int]:
        """Makes messages available that were backed out with a delay, or only these, at least one; returns them."""

    def describe(self, row: QueuedMessage, message: Message) -> None:
        """Replaces the properties of a message on a queue; nothing else of it changes."""

    def restart_unit(self, unit: int, now: float) -> None:
        """Reuses the record of a session's last unit of work for its next one, which begins now."""

    def number_unit(self, unit: int, queue: int, number: int) -> None:
        """Gives this number to the messages that the unit has put without a place, in the order of the puts (B-5)."""

    # --- in bulk

    def spans(self, unit: UnitRow) -> Sequence[tuple[int, int]]:
        """Returns the first and last position of each group in a claim."""

    def claim_page(self, unit: UnitRow, first: int, last: int) -> BulkPage:
        """Returns the rows of a claim at these positions, up to a page."""

    def survey(
        self, queue: SearchedQueue, reader: Reader, cursor: Cursor, most: int, most_bytes: int, slices: int,
        *, logical: bool, strict: bool,
    ) -> list[Cut]:  # fmt: skip
        """Returns the messages that a browse would show next, level by level, cut into about `slices` parts."""

    def stretch_page(
        self, queue: SearchedQueue, reader: Reader, stretch: Stretch, after: PageEnd
    ) -> tuple[BulkPage, PageEnd | None]:
        """Returns a page of a stretch from where the last one ended, and where it ends; None: at the stretch's end."""

    def hold_stagings(self, names: Collection[str], *, begins: bool) -> None:
        """Locks the stagings of these names until the operation ends; `begins`: no other may begin them either."""

    def stage(self, unit: int, first: int, batch: Batch) -> None:
        """Writes rows to their staging, outside of the queues; `first` is the position of the first."""

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
        """Turns staged rows into messages, from this number on: each with its `own` number, or all with one number and
        ordinals.

        Args:
            put_by: as for `sign`; None: a program.

        Returns: those messages, if `tells`.

        Raises: InconsistentCall, if the numbers in a group of the caller's own have a gap or a repeat.
        """

    def end_staging(self, staging: StagingRow, *, drops: bool) -> None:
        """Deletes a staging's rows; if `drops`, also their contents."""

    # --- for operators

    def listing(self, queue: SearchedQueue, request: LookRequest, unit: int | None, now: float) -> Listed:
        """Returns a page of a listing, with the beginnings of bodies; `unit`: the requested one's number, 0: it is
        over.
        """

    def overview(self, now: float, queue: int | None = None, *, briefly: bool = False) -> Sequence[Counts]:
        """Counts all queues at one moment, or one; `briefly`: only its counters, and its uncommitted puts and gets."""

    def volatile_queues(self) -> Sequence[int]:
        """Returns the queues with messages that are not persistent."""

    def timed_queues(self) -> Sequence[int]:
        """Returns all queues where time may end something (expiries, leases, delays), and possibly others."""

    def order_view(self, queue: SearchedQueue, now: float) -> OrderView:
        """Returns the pending messages of a queue; the caller adds the waiting calls (B-33)."""


class Peer(NamedTuple):
    """A process that has the store open.

    Args:
        process: its process id on its machine; None: unknown here.
        host: the address of that machine; empty: this one, or unknown.
        since: when it began or, for a server, connected; seconds since 1970. None: unknown.
    """

    process: int | None
    host: str
    since: float | None


class Host(Protocol):
    """Represents this process to others that have the store open, and does the shared work of its callers."""

    stopped: bool
    """Whether the queue manager was stopped, for all processes."""

    @property
    def is_closed(self) -> bool:
        """Whether `close` was called, or this process was forked from the one that opened it."""

    def own(self, process: int) -> bool:
        """Marks this process as alive under that number, until `disown`, `close`, or its death.

        Returns: False if another process already lives under that number: a program that has not noticed that the store
        was restored.
        """

    def disown(self, process: int) -> None:
        """Ends the mark of `own`."""

    def is_alive(self, process: int) -> bool:
        """Whether the process that owns this number is alive, here or elsewhere. It depends on no clock (B-32)."""

    def process_of(self, process: int) -> int | None:
        """Returns the operating system's id of the process that owns this number, if it is known here."""

    def peer(self, process: int) -> Peer:
        """Inside an operation: returns details of the process that owns this number, as far as they are known here."""

    def refuse_lost(self) -> None:
        """Raises: StoreError with `must_reopen`, if only a process that opens the store anew can use it again."""

    def run(self) -> tuple[bool, str, bool]:
        """Returns three facts: whether no other process has the store open; an id of the machine's boot, "" if unknown;
        whether unsynced changes may be missing without a restart, because the store was copied here.
        """

    def is_reservation_open(self) -> bool:
        """Whether numbers drawn now may belong to a reservation that is not on disk yet."""

    def commits(self) -> int | None:
        """Returns the number of commits so far, of all processes; None: it can only be read from the store."""

    def attend(self, waiting: int) -> None:
        """Announces how many calls of this process wait now."""

    def looked(self, queue: int, name: str) -> None:
        """Inside an operation: a call has looked at a queue in its present state, and will wait until it changes."""

    def bell(self, queue: str | None) -> Bell:
        """Returns a bell for a call to wait with, before it looks at this queue. Changes that other processes make
        after the look end the wait too, and are reported then.

        Args:
            queue: None: for a thread that waits for many calls, each of which has its own bell.
        """

    def sync(self, ticket: int) -> None:
        """Returns when this commit and all before it are on disk. Raises: StoreError."""

    @property
    def syncs_quickly(self) -> bool:
        """Whether `sync` is expected to take a millisecond at most: the last one did, and none is running."""

    def make_room(self, *, feeds: bool) -> None:
        """Makes room for an operation that writes, has done nothing yet, and found the medium full before.

        Args:
            feeds: it adds data, and must leave the room that others need for gets.
        Raises: StoreError and its kinds.
        """

    def hold(self) -> bool:
        """Under the store's lock: lets this thread's transactions run without waiting for others. Returns whether it
        can.

        `let_go` must follow in either case. False: somebody else is writing, or the medium is remote.
        """

    def let_go(self) -> None:
        """Ends `hold`. Harmless when repeated, and when nothing is held."""

    @property
    def has_more_to_do(self) -> bool:
        """Whether `after` has something to do."""

    def after(self, step: Callable[[Callable[[], object]], None]) -> None:
        """Does pending work for the medium, after an operation that writes has released its lock.

        Args:
            step: runs a function that uses the backend as a separate operation.
        """

    def check(self, part: int | None) -> tuple[list[str], int]:
        """Checks one part of the store. Returns the findings in words and the number of parts; None: only that."""

    def backup(
        self, path: str | os.PathLike[str], *, replace: bool, progress: Callable[[int, int], object] | None
    ) -> None:
        """Copies the store, as of one instant, while others continue."""

    def close(self) -> None:
        """Releases the medium. Harmless when repeated."""
