"""The seam above the verbs: the requests of a queue manager to a store, as values in and out.

A verb is one transaction: it happens completely or not at all, and its answer was true at one instant. (Housekeeping
takes several, and so does a call that meets the work of a dead process: it backs that out first, and tries again.)
Handles keep their own group state and browse cursor. They pass them in with a request and get the new ones back. The
seam has nothing local to this process, neither callbacks nor lazy sequences, so that a remote store can implement it.
A store in the same process offers more as a `LocalStore`.

The verbs for many messages are in `bulk_protocol`. `store.QueueStore` implements all of them, for all backends.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Any, Literal, Protocol, TypeVar

from ...errors import Reason
from ...model.attributes import ManagerAttributes, QueueAttributes, QueueStatus
from ...model.message import Got, Message, UniqueId
from ...model.options import OpenOptions
from ...rules.gaps import Gaps
from ...rules.grouping import GroupState
from ...rules.puts import Program
from ...rules.retries import Later
from ...support.clock import Clock
from .bulk_protocol import BulkStore
from .changes import Changes
from .records import (
    Act,
    GetOutcome,
    GetRequest,
    Leased,
    Locked,
    LockRequest,
    OneMessage,
    Opened,
    Outcome,
    PutOutcome,
    PutRequest,
    Rest,
)
from .tables import ObjectRow
from .telemetry import Telemetry
from .views import ConnectionView, Dropped, LockView, LookRequest, MessageView, OrderView, QueueView, Unit, Wait

T = TypeVar("T")


class Store(BulkStore, Protocol):
    """A store of queues, used by any number of connections at once.

    Errors common to all verbs: `ConnectionBroken` (2009) after the store was stopped or restarted under the
    caller; `StoreError` for trouble with the medium, after which nothing has changed.
    """

    # --- connections and handles

    def connect(self, program: Program) -> int:
        """Registers a connection and returns its number, the owner of handles and of a unit of work."""

    def disconnect(self, owner: int) -> None:
        """Ends a connection: its unit of work is backed out, its locks and handles are freed.

        Also done for an owner that died, by the process that notices. Harmless if it has ended already.
        """

    def open(
        self, owner: int, queue: str, options: OpenOptions, *, manager: str = "", dynamic_name: str = "*"
    ) -> Opened:
        """Opens a queue; a model queue makes a dynamic one (R4.1 to R4.4).

        Args:
            manager: the queue manager that has the queue; blank: this one.

        Raises: UnknownQueue 2085, ObjectInUse 2042, WrongQueueType 2045, 2082, 2087 ..., TooManyHandles 2017,
        ObjectExists 2100, ArgumentError 2011 bad dynamic name.
        """

    def extend(self, handle: int, options: OpenOptions) -> Opened:
        """Opens a handle for more than before; refused like `open`, and then unchanged."""

    def close(self, handle: int, *, delete: bool = False, purge: bool = False) -> None:
        """Closes a handle: its lock and marks go, a temporary dynamic queue that it made goes too (R4.3).

        Raises: QueueNotEmpty 2055, ObjectInUse 2042, WrongQueueType 2045; the handle then stays open.
        """

    def keep_handles(self, owner: int, handles: Sequence[int]) -> None:
        """Closes all handles of a connection but these: its caller was interrupted and may not know some of them."""

    def check_handle(self, handle: int) -> None:
        """Raises: QueueDeleted 2052, the queue of this handle is gone."""

    # --- queues

    def create_queue(self, attributes: QueueAttributes) -> None:
        """Defines a queue. Raises: ObjectExists 2100, WrongQueueType 2001 for an alias of an alias."""

    def alter_queue(self, name: str, by: Literal["alter", "set"], changes: dict[str, Any]) -> None:
        """Changes attributes; messages on the queue keep their places (R4.10).

        Raises: ArgumentError; ObjectInUse 2042, a change of `order` while a put is unresolved (B-19).
        """

    def delete_queue(self, name: str, *, purge: bool) -> None:
        """Deletes a queue. Raises: ObjectInUse 2042 while open, QueueNotEmpty 2055.

        With `purge` messages go in steps before. If somebody opens the queue in between, it stays with the rest.
        """

    def clear_queue(self, name: str) -> int:
        """Removes all messages of a local queue, locked ones too; how many. Raises: as `delete_queue`; 2001.

        They go in steps. What comes after the first one stays, and what others have got or locked since.
        """

    def queues(self) -> list[QueueAttributes]:
        """All queues by name."""

    def queue(self, name: str) -> QueueAttributes:
        """One queue's attributes. Raises: UnknownQueue 2085 with the nearest names."""

    def status(self, name: str) -> QueueStatus:
        """Depth and open counts, after discarding what has expired (R4.6)."""

    def manager(self) -> ManagerAttributes:
        """The queue manager's own attributes."""

    def alter_manager(self, changes: dict[str, Any]) -> None:
        """Changes attributes of the queue manager."""

    def rename(self, owner: int, name: str) -> str:
        """Gives the queue manager another name, which was checked; the name before. Ids are made of the old one still.

        Raises: ObjectInUse 2042, others have the store open; ArgumentError 2058, a definition leads to a queue manager
        of this name.
        """

    # --- objects: what is defined and is not a queue

    def define_object(self, kind: str, name: str, attributes: str) -> None:
        """Defines a channel or a process; its attributes, as JSON, were checked. Raises: ObjectExists 2100."""

    def alter_object(self, kind: str, name: str, before: str, attributes: str) -> None:
        """Gives an object other attributes instead of those that it had.

        Raises: UnknownObject 2085; QueueCondition 2041, it has others than `before` by now.
        """

    def delete_object(self, kind: str, name: str) -> None:
        """Deletes an object. Raises: UnknownObject 2085."""

    def object(self, kind: str, name: str) -> ObjectRow:
        """One object. Raises: UnknownObject 2085 with the nearest names."""

    def objects(self, kind: str) -> list[ObjectRow]:
        """All objects of a kind, by name."""

    # --- messages

    def put(self, request: PutRequest) -> PutOutcome:
        """Puts messages, all or none (mq-semantics 2, `rules.puts`).

        A database inserts them in bulk: one row each, a place from the queue's counter, no read but the queue's
        own row. Raises: what `plan_put` raises; QueueFull 2053; UnitTooLarge 2024.

        Under a key that is taken (`rules.duplicates`) nothing is put, and the results say so when what was put before
        is on disk. The key is taken with the messages, and settled with their unit. Raises: DuplicatePending 9051.
        """

    def end_group(self, handle: int, state: GroupState) -> GroupState:
        """Marks what the handle put last, all pieces of that message, as last in group.

        Raises: InconsistentCall 2242, its last segment is missing; WrongState, it is committed already.
        """

    def withdraw(self, handle: int, state: GroupState, *, whole_group: bool) -> None:
        """Takes back what the handle's unit has put so far of the logical message, or of the group (R2.26)."""

    def get(self, request: GetRequest) -> GetOutcome:
        """Gets or browses (mq-semantics 3, `rules.gets`); an empty list if nothing suitable is available.

        A strict get asks for each level for the first available and the first pending message above the cursor, and
        compares them: two steps in the index (queue, rank, number, ordinal), one over available and one over pending
        rows (`rules.ordering.decide`); with nothing pending it is one step, not a scan. A relaxed get never asks for
        what is pending. Entered groups (B-45) and wait-for edges (B-31) are small tables of their own.

        A database walks the index (queue, state, rank, number, ordinal) for physical order, the same index over
        heads for logical order, (queue, group, sequence, offset) for the next member, and keeps a record of each
        group's completeness. Raises: what `wanted` and `judge` raise; GetInhibited 2016; NoMessageUnderCursor
        2034; CallerError 2246; UnitTooLarge 2024; OrderSelfBlocked, OrderDeadlock, OrderUnsupported.
        """

    def wait(self, request: GetRequest) -> GetOutcome:
        """As `get`, but if it is given nothing it waits, `request.options.wait` seconds at most, and looks again.

        A waiting call is woken by changes of any process and by time; several are woken in the order of R3.27.
        Raises: as `get`; OrderDeadlock, readers that wait for each other (B-31); ConnectionBroken 2009, the connection
        was ended meanwhile.
        """

    page_messages: int
    """How many messages `browse_page` may be asked for; 1: pages are not worth while, a call costs hardly more than its
    message.
    """

    def browse_page(self, request: GetRequest, most: int) -> list[GetOutcome]:
        """What so many consecutive calls of `get` for the next message show at one moment.

        Fewer, if one of them gives nothing or warns; none, if `get` has to say so, or the browse changes something.
        Raises: as `get`, if the first of them does.
        """

    def read_rest(self, handle: int, rest: Rest) -> tuple[list[Got], Rest | None]:
        """The next messages of a large group that a unit of work has got, and what is then left.

        Raises: UnitNotFound, the unit has been settled.
        """

    def unlock(self, handle: int) -> bool:
        """Frees the handle's browse lock; whether there was one (R3.71)."""

    def leave_group(self, handle: int) -> None:
        """The handle is inside no group that it gets any more (B-45); what units hold of one they go on holding."""

    # --- confirmed calls; confirm ids and lock ids live per queue

    def browse_and_lock(self, request: LockRequest) -> Locked:
        """Locks what matches now, or the first so many, under one new lock id (A-12); later arrivals are not locked.

        With a lease the lock id is over at its end, inclusively: what it locks is unlocked, what was got under it goes
        on without a lock, and the id is not known any more (A-19). Like expiry it is done by the next call on the
        queue, and by `discard_expired`. A database keeps the end with the unit, under an index of those that have one,
        and asks for the first end where it asks for the first expiry.
        """

    def one_message(self, request: OneMessage) -> Reason | None:
        """Confirms, unlocks or deletes one message, as table A.3 says; the warning NOT_FOUND if it is absent.

        Raises: NotFound, WrongState, LockMismatch, ConfirmIdMismatch; nothing has changed.
        """

    def undo(self, handle: int, confirm_id: int) -> int:
        """Takes back what was put, got and locked under a confirm id (A-15 to A-17); of how many messages.

        Raises: NotFound, nothing is held under it.
        """

    def release_lock(self, handle: int, lock_id: int) -> int:
        """The operator's undo of a lock id: its messages are unlocked (A-19). Raises: NotFound."""

    def unique_ids(self, handle: int, confirm_id: int, lock_id: int) -> list[UniqueId]:
        """What stands under one of the two ids, the other being 0, in queue order, and behind it what has no place yet.

        Under a confirm id all that its undo would act on; under a lock id what it locks and what was got under it.
        Raises: NotFound, nothing does.
        """

    # --- strict reading

    def order_view(self, queue: str) -> OrderView:
        """What is pending on a queue, and who waits (B-33)."""

    def end_waits(self, owner: int) -> bool:
        """Ends the wait of a connection, from another thread: it raises WaitEnded; whether there was one."""

    # --- units of work

    def settle(self, owner: int, outcome: Outcome, later: Later | None = None, *, moves: bool = False) -> bool:
        """Commits or backs out the connection's unit of work; whether there was one (R5.2, R5.3).

        Args:
            moves: an operator has moved messages: what was got is not delivered, what was put does not arrive.
            later: of a back out whose work has failed: what the unit got may not be read again before its delay is
                over, and its error is kept with the first message of each queue. On disk when it returns.
        """

    def prepare(self, owner: int, name: str) -> None:
        """Gives the connection's unit a name; it then outlives the connection (R5.10).

        Raises: UnitExists; UnitNotFound, the connection has no unit of work.
        """

    def settle_prepared(self, name: str, outcome: Outcome) -> None:
        """Commits or backs out a prepared unit, from any connection. Raises: UnitNotFound."""

    def units(self) -> list[Unit]:
        """All unsettled units, oldest first."""

    def has_unit(self, owner: int) -> bool:
        """Whether the connection has a unit of work open."""

    # --- leases: units with a token and a deadline (`rules.leases`)

    def begin_lease(self, owner: int, name: str, user: str, seconds: float, most: int | None) -> Leased:
        """Begins a lease, of which the store knows only the name. On disk when it returns.

        Args:
            most: leases of the user, this one too; None: any number.

        Raises: UnitNotAvailable, there would be more.
        """

    def lease(self, name: str, user: str | None) -> Leased:
        """A lease. Raises: LeaseOver, it is not there, or `user` is given and it is another's."""

    def extend_lease(self, name: str, user: str | None, seconds: float) -> Leased:
        """Sets the deadline to so many seconds from now. On disk when it returns. Raises: LeaseOver."""

    def enter_lease(self, owner: int, name: str, user: str | None) -> Leased:
        """The lease is the connection's unit of work, until it leaves it or settles it.

        Raises: LeaseOver; CallerError 2128, the connection has a unit of work.
        """

    def leave_lease(self, owner: int) -> None:
        """The connection has no unit of work any more; the lease goes on. Harmless if it is in none."""

    def end_lease(self, name: str) -> None:
        """Backs out a lease by its name. Raises: LeaseOver."""

    # --- who comes through a server

    def try_log_in(self, keys: Sequence[str]) -> float:
        """Counts a log-in in each of these buckets (`rules.log_ins`); if it is refused, returns for how many
        seconds.
        """

    def forgive_log_in(self, keys: Sequence[str]) -> None:
        """A log-in that was counted has succeeded."""

    def begin_act(self, user: str, address: str, act: str, queue: str) -> int:
        """Notes what is about to be done; its number. The oldest beyond `acts_kept` go. On disk when it returns."""

    def end_act(self, number: int, outcome: Literal["done", "failed"], messages: int | None, error: str) -> None:
        """Notes the outcome. On disk when it returns."""

    def acts(self, before: Act | None, most: int) -> list[Act]:
        """So many of the log, the newest first, older than that one."""

    # --- marks (`authority`)

    def is_own(self, token: bytes) -> bool:
        """Whether the message with this token, on a queue or held by a unit, is a trigger message of the queue manager.

        It is not if somebody else has put it, whatever it says, or has put it again.
        """

    def report_exception(self, owner: int, message: Message, reason: int, *, in_unit: bool) -> None:
        """Makes the exception report that a message asks for, with the authority of whoever put it.

        Where it cannot be put it is a dead letter, or dropped and counted.

        Args:
            message: as it was got.
            in_unit: it is put in the connection's unit of work.

        Raises: ConnectionBroken 2009; UnitTooLarge 2024.
        """

    # --- time, and the end

    def discard_expired(self, limit: int) -> int:
        """Discards up to `limit` messages whose time is over; how many (R6.2). Leases that are over end, too (A-19)."""

    def stop(self) -> None:
        """Takes no more calls: waiting ones and later ones end with 2162."""

    # --- operators

    def look(self, request: LookRequest) -> Sequence[MessageView]:
        """A page of a listing of a queue, in any state; fewer than asked for: it ends here.

        In physical order by place. In logical order groups, and messages in segments, stand where their first message
        stands, members by sequence number and offset; groups without their first message come after all others, each
        where the first of its members stands that is there. In both what has no place yet comes last: of each process
        as it came, for each draws its numbers some at a time.

        A database merges the available and the pending rows by their indexes, of each holder as many as are asked for;
        members of groups come by theirs. Raises: UnknownQueue 2085, WrongQueueType 2045.
        """

    def gaps(self, queue: str, group_id: bytes) -> Gaps:
        """What is missing from a group, or from a message in segments, whatever the state of the others (`rules.gaps`).

        Raises: as `look`.
        """

    def waits(self) -> list[Wait]:
        """The calls that wait, by connection (B-31, B-33)."""

    def locks(self) -> list[LockView]:
        """What locks messages: handles and lock ids, the oldest first."""

    def list_connections(self) -> list[ConnectionView]:
        """The connections of living processes by number, with what they have open."""

    def overview(self, name: str | None = None) -> list[QueueView]:
        """All local queues by name, at one moment; or the one that has this name, if the store keeps it.

        A database counts what is held or delayed by indexes, and what is available not at all: it costs the same at
        any depth. A transmission queue has the channels that send from it.
        """

    def dropped(self) -> list[Dropped]:
        """What had to be dropped because no queue took it, by the queue whose messages it was about (C-5)."""

    def check(self, part: int | None) -> tuple[list[str], int]:
        """Everything that is wrong in one part of the store, from 0 on, in words, and how many parts there are.

        Args:
            part: None: nothing is checked, the parts are counted.

        What is too damaged to be read is one of the findings, not an error.
        """


class Promises(Protocol):
    """What calls of one thread promise: inside `with` they return before it is on disk, and `keep` brings it there.

    It is for who makes calls for several others in one thread, and hands out no answer before `keep` has returned.
    A call that raises may have promised something, too. None of them may wait: a get with a wait raises CallInProgress.
    Observers hear of a call when it is over, no lock is held, and what the block has promised is on disk.

    Attributes:
        count: how often something was promised.
    """

    count: int

    @property
    def is_empty(self) -> bool:
        """Whether `keep` has nothing to do."""

    @property
    def is_quick(self) -> bool:
        """Whether `keep` will take about a millisecond at most, as far as that can be known."""

    def keep(self) -> None:
        """Returns when all of it is on disk. Raises: StoreError, it cannot be brought there; OutcomeUnknown."""

    def take_puts(self) -> Sequence[PutOutcome]:
        """What those that have promised something have put since this was asked last."""

    def at_once(self, call: Callable[[], T]) -> tuple[T] | None:
        """What a call answers that is made as if inside of `with`, and waits for nobody.

        Nobody else can write until it is over, whatever calls of this store it consists of. It makes none of another
        store, which somebody may have who waits for this one.

        Returns: None: it cannot be, and has not been made. Somebody else, of any process, runs a call that writes, or
            the store is on a server.
        """

    def __enter__(self) -> object: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


class LocalStore(Store, Protocol):
    """A store that this process has open itself."""

    clock: Clock
    path: str
    """The file that it is in, as an absolute path; ":memory:" if it is in none."""
    changes: Changes
    telemetry: Telemetry
    shared: object | None
    """What all connections of this process to it share; None until the first comes, and theirs to set."""

    def get_if(self, request: GetRequest, accepts: Callable[[Got], object]) -> GetOutcome:
        """Gets as `get`, unless `accepts` raises: then nothing has happened.

        It is called with each message before the get has happened, and again if the get has to be tried again. Nobody
        else can write meanwhile.
        """

    def watch(self, handle: int, changed: Callable[[], object]) -> None:
        """Calls `changed` whenever a get that found nothing on the handle's queue may find something now.

        Once at the beginning, then after each change of the queue by any process, and when time alone may bring
        something. Whatever happens after a call of `changed`, another one follows: so a caller that looks each time
        misses nothing. It is called on this thread, outside of verbs, and may end all this by raising something.

        Raises: WaitEnded, `end_waits`; ConnectionBroken 2009, the connection is ended; QueueDeleted 2052, the queue is.
        """

    def set_user(self, owner: int, user: str | None) -> str | None:
        """What a connection puts from now on, it puts with the authority of this user as far as reports are asked for.

        Confirm ids and lock ids that it begins are listed under the user.

        Args:
            user: None: that of the program.
        Returns: which it was before.

        Raises: ConnectionBroken 2009.
        """

    def refuse_lost(self) -> None:
        """See `Host.refuse_lost`."""

    def promises(self) -> Promises:
        """To have what several calls of one thread promise brought to disk at once; see `Promises`."""

    def backup(
        self, path: str | os.PathLike[str], *, replace: bool, progress: Callable[[int, int], object] | None
    ) -> None:
        """Copies the store as it is at one instant to another file, while others go on; also after a stop.

        Raises: ArgumentError, a file is there and is not to be replaced; CallerError 2298, there is no file to
        copy; StoreError, StoreFull. At `path` there is then what was there before.
        """

    def close_store(self) -> None:
        """Lets go of the medium; connections of this process that are left end. Harmless when repeated."""
