"""The upper seam: the operations that a store offers to a queue manager. Requests and answers are values.

An operation is one transaction: it happens completely or not at all, and its answer describes one instant. There are
two exceptions. Housekeeping takes several transactions. An operation that meets the work of a dead process backs that
out first and then tries again.

Each handle keeps its own group state and browse cursor, passes them in with a request, and gets the new ones back.
Nothing here is local to this process (no callbacks, no lazy sequences), so a remote store can implement the seam. A
store in the same process offers more as a `LocalStore`.

`bulk_protocol` has the operations on units of work and for many messages. `store.QueueStore` implements all of them,
for every backend.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeVar

from ...errors import Reason
from ...model.attributes import ManagerAttributes, QueueAttributes, QueueStatus
from ...model.message import Got, Message, UniqueId
from ...model.options import OpenOptions
from ...rules.gaps import Gaps
from ...rules.grouping import GroupState
from ...rules.puts import Program
from ...support.clock import Clock
from .bulk_protocol import BulkStore, UnitStore
from .changes import Changes
from .records import Act, GetOutcome, GetRequest, Locked, LockRequest, OneMessage, Opened, PutOutcome, PutRequest, Rest
from .tables import ObjectRow, UnitKind
from .telemetry import Telemetry
from .views import ConnectionView, Dropped, LockView, LookRequest, MessageView, OrderView, QueueView, Wait, WorkerRecord

if TYPE_CHECKING:
    from ...rules.history import HistoryPoint, Period

T = TypeVar("T")
May = Callable[[Callable[[str, str], str]], object]
"""Raises if a user has lost a right; its argument reads the attributes of an object by kind and name."""


class Store(BulkStore, UnitStore, Protocol):
    """A store of queues, used by any number of connections at once.

    Errors that every operation may raise: `ConnectionBroken` (2009) after the store was stopped or restarted during the
    connection; `StoreError` for trouble with the medium, after which nothing has changed.
    """

    # --- connections and handles

    def connect(self, program: Program) -> int:
        """Registers a connection and returns its number. The connection owns its handles and its unit of work."""

    def disconnect(self, owner: int) -> None:
        """Ends a connection: backs out its unit of work, and frees its locks and handles.

        If a connection's process dies, the process that notices does the same. Harmless if the connection has already
        ended.
        """

    def reserve_numbers(self, owner: int, count: int) -> UniqueId:
        """Reserves consecutive unique ids for the connection's puts, and returns the first (`PutRequest.uid_number`).

        The rest of an earlier block is no longer reserved. No other message ever gets one of these ids.

        Args:
            count: 1 to 10,000.

        Raises: ArgumentError.
        """

    def open(
        self, owner: int, queue: str, options: OpenOptions, *, manager: str = "", dynamic_name: str = "*"
    ) -> Opened:
        """Opens a queue. Opening a model queue creates a dynamic queue (R4.1 to R4.4).

        Args:
            manager: the queue manager that has the queue; blank: this one.

        Raises: UnknownQueue 2085, ObjectInUse 2042, WrongQueueType 2045, 2082, 2087 ..., TooManyHandles 2017,
        ObjectExists 2100, ArgumentError 2011 for a bad dynamic name.
        """

    def extend(self, handle: int, options: OpenOptions) -> Opened:
        """Adds options to an open handle. Raises the same errors as `open`; the handle is then unchanged."""

    def close(self, handle: int, *, delete: bool = False, purge: bool = False) -> None:
        """Closes a handle: drops its lock and marks, and deletes a temporary dynamic queue that it created (R4.3).

        Raises: QueueNotEmpty 2055, ObjectInUse 2042, WrongQueueType 2045; the handle then stays open.
        """

    def keep_handles(self, owner: int, handles: Sequence[int]) -> None:
        """Closes all other handles of a connection, whose caller was interrupted and may not know some of them."""

    def check_handle(self, handle: int) -> None:
        """Raises: QueueDeleted 2052, if the handle's queue has been deleted."""

    # --- queues

    def create_queue(self, attributes: QueueAttributes) -> None:
        """Defines a queue. Raises: ObjectExists 2100; WrongQueueType 2001 for an alias of an alias."""

    def alter_queue(self, name: str, by: Literal["alter", "set"], changes: dict[str, Any]) -> None:
        """Changes attributes of a queue; its messages keep their places (R4.10).

        Raises: ArgumentError; ObjectInUse 2042, if `order` changes while a put is unresolved (B-19).
        """

    def delete_queue(self, name: str, *, purge: bool) -> None:
        """Deletes a queue. Raises: ObjectInUse 2042 if it is open; QueueNotEmpty 2055.

        With `purge` its messages are removed first, in several steps. If another caller opens the queue meanwhile, the
        queue and the remaining messages stay.
        """

    def clear_queue(self, name: str) -> int:
        """Removes all messages of a local queue, locked ones too. Returns how many. Raises: as `delete_queue`; 2001.

        It takes several steps. Messages that arrive after the first step stay, and so do those that others get or lock
        meanwhile.
        """

    def retry_now(self, name: str, uid: UniqueId | None = None) -> int:
        """Ends the delay of all messages that were backed out with one, on a local queue or an alias's; with `uid` only
        the delay of that message, if it has one, and of those of its group that the same back out delayed.

        They are available at once, in their places, with their backout counts. Calls that wait for them are woken.
        Messages in their delivery delay stay hidden. Returns the number of messages made available. Raises:
        UnknownQueue 2085; WrongQueueType 2043.
        """

    def queues(self) -> list[QueueAttributes]:
        """Returns the attributes of all queues, by name."""

    def queue(self, name: str) -> QueueAttributes:
        """Returns the attributes of one queue. Raises: UnknownQueue 2085, with the nearest names."""

    def status(self, name: str) -> QueueStatus:
        """Discards expired messages, then returns the depth and the numbers of handles (R4.6)."""

    def manager(self) -> ManagerAttributes:
        """Returns the attributes of the queue manager."""

    def alter_manager(self, changes: dict[str, Any]) -> None:
        """Changes attributes of the queue manager."""

    def rename(self, owner: int, name: str) -> str:
        """Renames the queue manager and returns its old name. The caller has checked the new one. Ids still contain the
        first name.

        Raises: ObjectInUse 2042, if others have the store open; ArgumentError 2058, if a definition refers to a queue
        manager of the new name.
        """

    # --- objects: channels and processes

    def define_object(self, kind: str, name: str, attributes: str) -> None:
        """Defines a channel or a process. The caller has checked the attributes, which are JSON. Raises: ObjectExists
        2100.
        """

    def alter_object(self, kind: str, name: str, before: str, attributes: str) -> None:
        """Replaces attributes. Raises: UnknownObject 2085; QueueCondition 2041, if they are no longer `before`;
        ObjectInUse 2042, for another transmission queue while the channel runs or has a batch in doubt.
        """

    def delete_object(self, kind: str, name: str) -> None:
        """Deletes an object. Raises: UnknownObject 2085; ObjectInUse 2042, if a channel runs or is in doubt."""

    def object(self, kind: str, name: str) -> ObjectRow:
        """Returns one object. Raises: UnknownObject 2085, with the nearest names."""

    def objects(self, kind: str) -> list[ObjectRow]:
        """Returns all objects of a kind, by name."""

    def note_worker(self, owner: int, record: WorkerRecord | None) -> None:
        """Stores the record of the worker that reports on this connection, in place of its last one; None: deletes it.

        The first record deletes those of ended connections. Raises: ArgumentError, a value that no worker has.
        """

    # --- messages

    def put(self, request: PutRequest) -> PutOutcome:
        """Puts all of the messages or none (mq-semantics 2, `rules.puts`).

        A database inserts them in bulk: one row each, with places from the queue's counter, and it reads only the
        queue's own row. Raises: the errors of `plan_put`; QueueFull 2053; UnitTooLarge 2024.

        If the request's key has already been used (`rules.duplicates`), nothing is put, and the results say so once the
        earlier messages are on disk. The key is stored with the messages and is committed or backed out with their
        unit. Raises: DuplicatePending 9051.

        With `uid_number`, raises: ArgumentError, if not all the ids are reserved for the connection and unused;
        DuplicateMessage 9005, if one is on the queue already, put with `PutOptions.uid`.
        """

    def end_group(self, handle: int, state: GroupState) -> GroupState:
        """Marks the message that the handle put last, with all its segments, as the last of its group.

        Raises: InconsistentCall 2242, if its last segment is missing; WrongState, if it is already committed.
        """

    def withdraw(self, handle: int, state: GroupState, *, whole_group: bool) -> None:
        """Removes the handle's puts in its unit that belong to the current logical message or group (R2.26)."""

    def get(self, request: GetRequest) -> GetOutcome:
        """Gets or browses (mq-semantics 3, `rules.gets`). Returns no messages if none is suitable.

        A strict get finds, level by level, the first available and the first pending message above the cursor, and
        compares them. That takes two steps in the index (queue, rank, number, ordinal), one over available and one over
        pending rows (`rules.ordering.decide`); if nothing is pending it takes one step, and never a scan. A relaxed get
        ignores pending messages. Entered groups (B-45) and wait-for edges (B-31) have small tables of their own.

        A database uses the index (queue, state, rank, number, ordinal) for physical order, the same index over heads
        for logical order, and (queue, group, sequence, offset) for the next member. It keeps a record of how complete
        each group is.

        Raises: the errors of `wanted` and `judge`; GetInhibited 2016; NoMessageUnderCursor 2034; CallerError 2246;
        UnitTooLarge 2024; OrderSelfBlocked, OrderDeadlock, OrderUnsupported.
        """

    def wait(self, request: GetRequest) -> GetOutcome:
        """As `get`, but if there is nothing to get, waits up to `request.options.wait` seconds and looks again.

        Changes made by any process wake waiting calls, and so does time; they are woken in the order of R3.27.

        Raises: as `get`; OrderDeadlock, if readers wait for each other (B-31); ConnectionBroken 2009, if the connection
        ends meanwhile.
        """

    page_messages: int
    """The largest page that `browse_page` accepts. 1 means that pages save nothing, because a call costs hardly more
    than its message.
    """

    def browse_page(self, request: GetRequest, most: int) -> list[GetOutcome]:
        """Returns the results that the next `most` calls of `get` for the next message would have at one moment.

        The page ends early where a call would return nothing or a warning. It is empty if `get` itself has to give the
        answer, or if the browse would change something. Raises: as `get`, if the first call would.
        """

    def read_rest(self, handle: int, rest: Rest) -> tuple[list[Got], Rest | None]:
        """Reads the next messages of a large group that a unit of work has got. Also returns the rest after them.

        Raises: UnitNotFound, if the unit has been settled.
        """

    def unlock(self, handle: int) -> bool:
        """Frees the handle's browse lock. Returns whether there was one (R3.71)."""

    def leave_group(self, handle: int) -> None:
        """Makes the handle leave the groups that it has entered (B-45). Units keep the messages that they hold."""

    # --- confirmed calls; each queue has its own confirm ids and lock ids

    def browse_and_lock(self, request: LockRequest) -> Locked:
        """Locks the messages that match now, at most `most`, under one new lock id (A-12). Later arrivals are not
        locked.

        A lock id with a lease ends at the end of the lease, inclusively: its messages are unlocked, messages got under
        it stay got without a lock, and the id is forgotten (A-19). As with expiry, the next call on the queue does
        this, or `discard_expired`. A database stores the end with the unit and indexes the units that have one; it
        looks for the earliest end together with the earliest expiry.
        """

    def one_message(self, request: OneMessage) -> Reason | None:
        """Confirms, unlocks or deletes one message (table A.3). Returns the warning NOT_FOUND if it is absent.

        Raises: NotFound, WrongState, LockMismatch, ConfirmIdMismatch, ArgumentError for any other event; nothing has
        changed then.
        """

    def undo(self, handle: int, confirm_id: int) -> int:
        """Undoes the puts, gets and locks under a confirm id (A-15 to A-17). Returns the number of messages.

        Raises: NotFound, if nothing is held under the id.
        """

    def release_lock(self, handle: int, lock_id: int) -> int:
        """Unlocks the messages of a lock id, for an operator (A-19). Raises: NotFound."""

    def unique_ids(self, handle: int, confirm_id: int, lock_id: int) -> list[UniqueId]:
        """Lists the messages under one of the two ids; the other is 0. Those without a place come last, the rest in
        queue order.

        Under a confirm id: every message that its undo would change. Under a lock id: messages that it locks and those
        got under it. Raises: NotFound, if there are none.
        """

    # --- strict reading

    def order_view(self, queue: str) -> OrderView:
        """Returns the pending messages of a queue and the number of waiting calls (B-33)."""

    def end_waits(self, owner: int) -> bool:
        """Ends the wait of a connection from another thread: the call raises WaitEnded. Returns whether there was
        one.
        """

    # --- marks (`authority`)

    def is_own(self, token: bytes) -> bool:
        """Whether the message with this token, on a queue or held by a unit, is a trigger message from the queue
        manager itself.

        False if another caller put it, or put it again, with any contents.
        """

    def report_exception(self, owner: int, message: Message, reason: int, *, in_unit: bool) -> None:
        """Puts the exception report that a message asks for, with the authority of the user who put the message.

        If the report cannot be put, it becomes a dead letter, or else is dropped and counted.

        Args:
            message: as it was got.
            reason: 0 to 999,999,999, the feedback of the report.
            in_unit: the report is put in the connection's unit of work.

        Raises: ArgumentError 2014, for the reason; ConnectionBroken 2009; UnitTooLarge 2024.
        """

    # --- time, and the end

    def discard_expired(self, limit: int) -> int:
        """Discards up to `limit` expired messages and returns how many (R6.2). Also ends leases that are over
        (A-19).
        """

    def stop(self) -> None:
        """Refuses further calls: those that wait, and later ones, raise 2162."""

    # --- operators

    def look(self, request: LookRequest) -> Sequence[MessageView]:
        """Returns a page of a queue's messages, in any state. A short page is the last one.

        In physical order, messages are listed by place. In logical order, a group or a message in segments is listed at
        the place of its first message, and its members by sequence number and offset. Groups without their first
        message follow all others, each at the place of its first remaining member. In both orders, messages without a
        place come last, in the order in which each process put them: processes draw their numbers in ranges.

        A database merges available and pending rows from their indexes, reading at most a page for each holder. Members
        of groups come from the index of groups. Raises: UnknownQueue 2085, WrongQueueType 2045.
        """

    def gaps(self, queue: str, group_id: bytes) -> Gaps:
        """Returns the missing members of a group, or segments of a message; the others may be in any state
        (`rules.gaps`).

        Raises: as `look`.
        """

    def waits(self) -> list[Wait]:
        """Returns the waiting calls, by connection (B-31, B-33)."""

    def locks(self) -> list[LockView]:
        """Returns the handles and lock ids that lock messages, oldest first."""

    def list_connections(self) -> list[ConnectionView]:
        """Returns the connections of living processes by number, with the queues that each has open."""

    def overview(self, name: str | None = None) -> list[QueueView]:
        """Returns all local queues by name, as of one moment, or only the one of this name if the store has it.

        A database counts held and delayed messages from indexes and does not count available ones, so the cost is the
        same at any depth. A transmission queue includes the channels that send from it.
        """

    def dropped(self) -> list[Dropped]:
        """Returns the numbers of messages that no queue accepted, by the queue that they concerned (C-5)."""

    def check(self, part: int | None) -> tuple[list[str], int]:
        """Checks one part of the store, counted from 0. Returns the findings in words, and the number of parts.

        Args:
            part: None: only count the parts.

        Damage that prevents reading is a finding, not raised. Raises: ArgumentError, there is no such part.
        """


class Promises(Protocol):
    """Defers durability for several calls of one thread: inside `with` they return at once, and `keep` writes them to
    disk.

    For a thread that makes calls for several clients and sends no answer before `keep` has returned. A call that raises
    may have changed something, too. Calls must not wait: a get with a wait raises CallInProgress. Observers are
    notified after the call, when no lock is held and the block's changes are on disk.

    Attributes:
        count: how many changes were deferred.
    """

    count: int

    @property
    def is_empty(self) -> bool:
        """Whether `keep` has nothing to do."""

    @property
    def is_quick(self) -> bool:
        """Whether `keep` is expected to take about a millisecond at most."""

    def keep(self) -> None:
        """Returns when every deferred change is on disk. Raises: StoreError, if that fails; OutcomeUnknown."""

    def take_puts(self) -> Sequence[PutOutcome]:
        """Returns the outcomes of the deferred puts since this was last called."""

    def at_once(self, call: Callable[[], T]) -> tuple[T] | None:
        """Makes a call as if inside `with`, if it need not wait for other callers.

        No other thread or process can write until it ends, however many calls of this store it makes. It must not call
        another store, because a thread that holds that one may be waiting for this one.

        Returns: the answer; None: nothing was called, because another thread or process is writing, or the store is on
        a server.
        """

    def __enter__(self) -> object: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


class LocalStore(Store, Protocol):
    """A store that this process itself has open."""

    clock: Clock
    path: str
    """The absolute path of its file, or ":memory:" if it has none."""
    changes: Changes
    telemetry: Telemetry
    shared: object | None
    """The shared state of this process's connections to the store. They set it; None until the first one does."""

    def get_if(self, request: GetRequest, accepts: Callable[[Got], object], *, waits: bool = False) -> GetOutcome:
        """Gets as `get`, or as `wait` if `waits`; if `accepts` raises, nothing has happened.

        `accepts` is called with each message before the get happens, and again if the get has to be retried. No other
        thread or process can write meanwhile.
        """

    def identifier(self) -> str:
        """Returns the id of the store; only a copy of the store has the same."""

    @property
    def again(self) -> Callable[[], LocalStore] | None:
        """Opens another store object on the store, if each connection needs its own; None: connections share it."""

    def wait_apart(
        self, request: GetRequest, done: Callable[[GetOutcome | BaseException], object], may: May | None = None
    ) -> None:
        """As `wait`, but returns soon; the wait costs no thread. For a server.

        `done` is called once, with the answer of `wait` or the error that it would raise: perhaps at once, in this
        thread, or later in a thread that serves all waits and must not be held up.

        Args:
            may: called in the operation that has found messages. If it raises, nothing has happened, and the wait ends.

        Raises: CallInProgress; ConnectionBroken, the connection of the handle was lost. `done` is not called then.
        """

    def watch(self, handle: int, changed: Callable[[], object]) -> None:
        """Calls `changed` whenever a get that found nothing on the handle's queue might find something now.

        It is called once at the beginning, after each change of the queue by any process, and when time alone may make
        a message available. Every change after a call leads to another call, so a caller that looks each time misses
        nothing. It runs on this thread, outside of operations, and ends the watch by raising.

        Raises: WaitEnded, by `end_waits`; ConnectionBroken 2009, if the connection ends; QueueDeleted 2052.
        """

    def watch_apart(self, handle: int, changed: Callable[[], object], done: Callable[[BaseException], object]) -> None:
        """As `watch`, but returns soon, as `wait_apart`; `done` is called with the error that ends the watch."""

    def end_dead_processes(self) -> bool:
        """Ends the connections of dead processes and backs out leases that are over. Returns whether there were any."""

    def set_user(self, owner: int, user: str | None) -> str | None:
        """Sets the user on whose authority a connection puts, as far as reports are concerned. Returns the previous
        one.

        Confirm ids and lock ids that it begins are listed under the user.

        Args:
            user: None: the user of the program.

        Raises: ConnectionBroken 2009.
        """

    # --- users of a server

    def try_log_in(self, keys: Sequence[str]) -> float:
        """Counts a log-in attempt in each of these buckets (`rules.log_ins`). Returns 0, or for how many seconds
        log-ins are refused.
        """

    def forgive_log_in(self, keys: Sequence[str]) -> None:
        """Takes back the count of an attempt that has succeeded."""

    def begin_act(self, user: str, address: str, act: str, queue: str) -> int:
        """Records an action before it is done, on disk, and returns its number. Deletes the oldest over `acts_kept`."""

    def end_act(self, number: int, outcome: Literal["done", "failed"], messages: int | None, error: str) -> None:
        """Records the outcome of an action. On disk when the call returns."""

    def acts(self, before: Act | None, most: int) -> list[Act]:
        """Returns up to `most` entries of the operator log, newest first; with `before` only older ones."""

    # --- the history of queues

    def sample(self) -> int:
        """Adds the counts of all queues to the history (`rules.history`), unless this minute already has them.

        It is not on disk when the call returns.

        Returns: the number of queues; 0: this minute has a sample, or there are no queues.
        """

    def history(self, queues: Sequence[str], period: Period) -> list[list[HistoryPoint]]:
        """Returns the samples of each of these queues in the last hour, day or week, in order of time.

        Raises: UnknownQueue 2085; WrongQueueType 2045, one of them stores no messages.
        """

    # --- the medium

    def users_of(self, kind: UnitKind, name: str, handle: int | None = None) -> frozenset[str]:
        """Returns the users who began the unsettled units of this kind and name: prepared ones, leases, stagings.

        Args:
            handle: of the queue of a confirm id or lock id. Users who locked messages under a confirm id are included.
        """

    def refuse_lost(self) -> None:
        """See `Host.refuse_lost`."""

    def commits(self) -> int | None:
        """See `Host.commits`."""

    def promises(self) -> Promises:
        """Returns an object that writes the changes of several calls of one thread to disk together; see `Promises`."""

    def backup(
        self, path: str | os.PathLike[str], *, replace: bool, progress: Callable[[int, int], object] | None
    ) -> None:
        """Copies the store, as of one instant, to another file while others continue; also after a stop.

        Raises: ArgumentError, if a file exists and `replace` is false; CallerError 2298, if the store has no file to
        copy; StoreError, StoreFull. `path` is unchanged then.
        """

    def close_store(self) -> None:
        """Releases the medium and ends the remaining connections of this process. Harmless when repeated."""
