"""The seam: what a queue manager asks of a store, as verbs of the domain.

A verb is one transaction: it happens wholly or not at all, and what it answers was true at one instant. Every
change of state goes through `rules.lifecycle`, unless a message goes with its queue or at a restart; every choice
through `rules.grouping` and `rules.ordering`. A store brings rows to the rules and writes down what they decide.
Handles keep their own group state and browse cursor; they pass them in with a request and are given the new ones
back.

What a verb must do fast in a database, and with which index, is said with each. The memory store is the
specification: a store that gives other answers is wrong.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, Protocol

from ..attributes import ManagerAttributes, QueueAttributes, QueueStatus
from ..clock import Clock
from ..errors import Reason
from ..message import Message, UniqueId
from ..options import GetOptions, Match, OpenOptions, PutOptions
from ..rules.grouping import GroupState
from ..rules.lifecycle import Event
from ..rules.ordering import Cursor, Pending
from ..rules.puts import Program, PutResult
from .base_operating import OperatorVerbs
from .base_operating import Outcome as Outcome  # noqa: PLC0414 - re-exported
from .base_operating import Unit as Unit  # noqa: PLC0414 - re-exported
from .base_operating import UnitKind as UnitKind  # noqa: PLC0414 - re-exported
from .base_staging import STAGED_COLUMNS as STAGED_COLUMNS  # noqa: PLC0414 - re-exported
from .base_staging import LedgerKey as LedgerKey  # noqa: PLC0414 - re-exported
from .base_staging import Settled as Settled  # noqa: PLC0414 - re-exported
from .base_staging import Staged as Staged  # noqa: PLC0414 - re-exported
from .base_staging import StageRequest as StageRequest  # noqa: PLC0414 - re-exported
from .base_staging import StagingVerbs as StagingVerbs  # noqa: PLC0414 - re-exported
from .claims import ClaimVerbs


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
    """Messages to put through one handle, in this order, all or none."""

    handle: int
    messages: Sequence[Message]
    options: PutOptions
    state: GroupState
    in_unit: bool


class PutOutcome(NamedTuple):
    """What was put, and where the handle stands now."""

    results: list[PutResult]
    state: GroupState


class GetRequest(NamedTuple):
    """Gets or browses through one handle, as if called one after another.

    Args:
        most: how many messages at most; the answer ends before the first that cannot be had, and after the
            first that has a warning.
        one_group: end after the message that ends its group.
        waits: the call will wait if it is given nothing: what blocks it is recorded, so that readers that wait
            for each other are found (B-31).
    """

    handle: int
    options: GetOptions
    state: GroupState
    cursor: Cursor
    syncpoint: bool
    waits: bool = False
    most: int = 1
    one_group: bool = False


class GetOutcome(NamedTuple):
    """What was got, where the handle stands now, and when time alone may bring something.

    Args:
        messages: of a large group they may be read from the store while the caller goes through them, as long as the
            unit of work that got them is not settled; after that it raises UnitNotFound.
        before_unit: where the handle stood before the first message that the unit of work took, if any did.
        look_again_at: nothing was found, but time alone may bring something then.
        withheld: of a strict call that was given nothing: what withholds the first message (B-11).
        pending: of a strict call that was given nothing: the first pending message, withholding or not (B-26).
    """

    messages: Sequence[Message]
    state: GroupState
    cursor: Cursor
    before_unit: GroupState | None = None
    look_again_at: float | None = None
    withheld: Pending | None = None
    pending: Pending | None = None


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

    messages: list[Message]
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


@dataclass(frozen=True, slots=True)
class Change:
    """What a verb did to one queue, told to observers after its transaction.

    Args:
        put: messages put by this verb, visible or not.
        visible: messages that everyone can see from now on; their bodies may be missing.
        expired: messages discarded because their time was over.
        duplicates: messages refused because their unique id is on the queue.
        discarded: how many expired; also if nobody looks at messages.
    """

    queue: str
    put: Sequence[Message] = ()
    visible: Sequence[Message] = ()
    expired: Sequence[Message] = ()
    duplicates: Sequence[Message] = ()
    discarded: int = 0


Observer = Callable[[Change], None]
Progress = Callable[[int, int], object]  # bytes done, bytes in all


class Store(ClaimVerbs, StagingVerbs, OperatorVerbs, Protocol):
    """A store of queues, used by any number of connections at once.

    Errors common to all verbs: `ConnectionBroken` (2009) after the store was stopped or restarted under the
    caller; `StoreError` for trouble with the medium, after which nothing has changed.
    """

    clock: Clock
    path: str
    """The file that it is in, as an absolute path; ":memory:" if it is in none."""
    shared: object | None
    """What all connections of this process to the store share; None until the first comes, and theirs to set."""

    # --- connections and handles

    def connect(self, program: Program) -> int:
        """Registers a connection and returns its number, the owner of handles and of a unit of work."""
        ...

    def disconnect(self, owner: int) -> None:
        """Ends a connection: its unit of work is backed out, its locks and handles are freed.

        Also what happens, by whoever notices, to an owner that died. Harmless if it has ended already.
        """
        ...

    def open(self, owner: int, queue: str, options: OpenOptions, *, dynamic_name: str = "*") -> Opened:
        """Opens a queue; a model queue makes a dynamic one (R4.1 to R4.4).

        Raises: UnknownQueue 2085, ObjectInUse 2042, WrongQueueType 2045, 2082, TooManyHandles 2017,
        ObjectExists 2100, ArgumentError 2011 bad dynamic name.
        """
        ...

    def extend(self, handle: int, options: OpenOptions) -> Opened:
        """Opens a handle for more than before; refused like `open`, and then unchanged."""
        ...

    def close(self, handle: int, *, delete: bool = False, purge: bool = False) -> None:
        """Closes a handle: its lock and marks go, a temporary dynamic queue that it made goes too (R4.3).

        Raises: QueueNotEmpty 2055, ObjectInUse 2042, WrongQueueType 2045; the handle then stays open.
        """
        ...

    def check_handle(self, handle: int) -> None:
        """Raises: QueueDeleted 2052, the queue of this handle is gone."""
        ...

    # --- queues

    def create_queue(self, attributes: QueueAttributes) -> None:
        """Defines a queue. Raises: ObjectExists 2100, WrongQueueType 2001 for an alias of an alias."""
        ...

    def alter_queue(self, name: str, by: Literal["alter", "set"], changes: dict[str, Any]) -> None:
        """Changes attributes; messages on the queue keep their places (R4.10).

        Raises: ArgumentError; ObjectInUse 2042, a change of `order` while a put is unresolved (B-19).
        """
        ...

    def delete_queue(self, name: str, *, purge: bool) -> None:
        """Deletes a queue. Raises: ObjectInUse 2042 while open, QueueNotEmpty 2055."""
        ...

    def clear_queue(self, name: str) -> int:
        """Removes all messages of a local queue, locked ones too; how many. Raises: as `delete_queue`; 2001."""
        ...

    def queues(self) -> list[QueueAttributes]:
        """All queues by name."""
        ...

    def queue(self, name: str) -> QueueAttributes:
        """One queue's attributes. Raises: UnknownQueue 2085 with the nearest names."""
        ...

    def status(self, name: str) -> QueueStatus:
        """Depth and open counts, after discarding what has expired (R4.6)."""
        ...

    def manager(self) -> ManagerAttributes:
        """The queue manager's own attributes."""
        ...

    def alter_manager(self, changes: dict[str, Any]) -> None:
        """Changes attributes of the queue manager."""
        ...

    # --- messages

    def put(self, request: PutRequest) -> PutOutcome:
        """Puts messages, all or none (mq-semantics 2, `rules.puts`).

        A database inserts them in bulk: one row each, a place from the queue's counter, no read but the queue's
        own row. Raises: what `plan_put` raises; QueueFull 2053; UnitTooLarge 2024.
        """
        ...

    def end_group(self, handle: int, state: GroupState) -> GroupState:
        """Marks what the handle put last, all pieces of that message, as last in group.

        Raises: InconsistentCall 2242, its last segment is missing; WrongState, it is committed already.
        """
        ...

    def withdraw(self, handle: int, state: GroupState, *, whole_group: bool) -> None:
        """Takes back what the handle's unit has put so far of the logical message, or of the group (R2.26)."""
        ...

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
        ...

    def unlock(self, handle: int) -> bool:
        """Frees the handle's browse lock; whether there was one (R3.71)."""
        ...

    def leave_group(self, handle: int) -> None:
        """The handle is inside no group that it gets any more (B-45); what units hold of one they go on holding."""
        ...

    # --- confirmed calls; confirm ids and lock ids live per queue

    def browse_and_lock(self, request: LockRequest) -> Locked:
        """Locks what matches now, or the first so many, under one new lock id (A-12); later arrivals are not locked.

        With a lease the lock id is over at its end, inclusively: what it locks is unlocked, what was got under it goes
        on without a lock, and the id is not known any more (A-19). Like expiry it is done by whoever touches the queue,
        and by `discard_expired`. A database keeps the end with the unit, under an index of those that have one, and
        asks for the first end where it asks for the first expiry.
        """
        ...

    def one_message(self, request: OneMessage) -> Reason | None:
        """Confirms, unlocks or deletes one message, as table A.3 says; the warning NOT_FOUND if it is absent.

        Raises: NotFound, WrongState, LockMismatch, ConfirmIdMismatch; nothing has changed.
        """
        ...

    def undo(self, handle: int, confirm_id: int) -> int:
        """Takes back what was put, got and locked under a confirm id (A-15 to A-17); of how many messages.

        Raises: NotFound, nothing is held under it.
        """
        ...

    def release_lock(self, handle: int, lock_id: int) -> int:
        """The operator's undo of a lock id: its messages are unlocked (A-19). Raises: NotFound."""
        ...

    def unique_ids(self, handle: int, confirm_id: int, lock_id: int) -> list[UniqueId]:
        """What stands under one of the two ids, the other being 0, in queue order, and behind it what has no place yet.

        Under a confirm id all that its undo would act on; under a lock id what it locks and what was got under it.
        Raises: NotFound, nothing does.
        """
        ...

    # --- strict reading

    def order_view(self, queue: str) -> OrderView:
        """What is pending on a queue, and who waits (B-33)."""
        ...

    def end_wait(self, owner: int) -> None:
        """The connection does not wait any more (B-31)."""
        ...

    # --- units of work

    def settle(self, owner: int, outcome: Outcome) -> bool:
        """Commits or backs out the connection's unit of work; whether there was one (R5.2, R5.3)."""
        ...

    def prepare(self, owner: int, name: str) -> None:
        """Gives the connection's unit a name; it then outlives the connection (R5.10).

        Raises: UnitExists; UnitNotFound, the connection has no unit of work.
        """
        ...

    def settle_prepared(self, name: str, outcome: Outcome) -> None:
        """Commits or backs out a prepared unit, from any connection. Raises: UnitNotFound."""
        ...

    def units(self) -> list[Unit]:
        """All unsettled units, oldest first."""
        ...

    def has_unit(self, owner: int) -> bool:
        """Whether the connection has a unit of work open."""
        ...

    # --- time, and telling others

    def discard_expired(self, limit: int) -> int:
        """Discards up to `limit` messages whose time is over; how many (R6.2). Leases that are over end, too (A-19)."""
        ...

    def observe(
        self,
        observer: Observer,
        wants: Callable[[], bool] | None = None,
        heeds: Callable[[], bool] | None = None,
    ) -> None:
        """Calls `observer` after each change, in the order of the changes, outside the transaction.

        Args:
            wants: whether the observer looks at the messages of a change, now; None: never. If nobody does, a
                change may name its queue alone.
            heeds: whether it looks at changes at all, now; None: always. If nobody does, those alone need be told in
                which messages were discarded.

        It is called in the process that made the change, by one thread at a time. What it raises is logged.
        """
        ...

    def observe_deaths(self, observer: Callable[[Program], object]) -> None:
        """Calls `observer` with the program of each connection that this store backs out because its process died.

        After the transaction, on the thread of whoever noticed. What it raises is logged.
        """
        ...

    def attend(self, *, waits: bool) -> None:
        """A call of this process begins (or ends) to wait: observers are to be told what other processes change."""
        ...

    def backup(self, path: str | os.PathLike[str], *, replace: bool, progress: Progress | None) -> None:
        """Copies the store as it is at one instant to another file, while others go on; also after a stop.

        Raises: ArgumentError, a file is there and is not to be replaced; CallerError 2298, there is no file to
        copy; StoreError, StoreFull. At `path` there is then what was there before.
        """
        ...

    def stop(self) -> None:
        """Takes no more calls: waiting ones and later ones end with 2162."""
        ...

    def close_store(self) -> None:
        """Lets go of the medium; connections of this process that are left end. Harmless when repeated."""
        ...
