"""The seam: what a queue manager asks of a store, as verbs of the domain.

A verb is one transaction: it happens wholly or not at all, and what it answers was true at one instant. Every
change of state goes through `rules.lifecycle`, every choice through `rules.grouping` and `rules.ordering`; a
store brings rows to the rules and writes down what they decide. Handles keep their own group state and browse
cursor; they pass them in with a request and are given the new ones back.

What a verb must do fast in a database, and with which index, is said with each. The memory store is the
specification: a store that gives other answers is wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, Protocol

from ..attributes import ManagerAttributes, QueueAttributes, QueueStatus
from ..clock import Clock
from ..message import Message
from ..options import GetOptions, OpenOptions, PutOptions
from ..rules.grouping import GroupState
from ..rules.ordering import Cursor
from ..rules.puts import Program, PutResult

Outcome = Literal["commit", "back_out"]
UnitState = Literal["open", "prepared"]


class Opened(NamedTuple):
    """An open handle.

    Args:
        handle: its id.
        name: the queue as opened; a model gives a new one.
        queue: the local queue that this is or stands for: the one whose changes matter.
    """

    handle: int
    name: str
    queue: str
    options: OpenOptions


@dataclass(frozen=True, slots=True, kw_only=True)
class PutRequest:
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


@dataclass(frozen=True, slots=True, kw_only=True)
class GetRequest:
    """Gets or browses through one handle, as if called one after another.

    Args:
        count: how many messages at most; the answer ends before the first that cannot be had, and after the
            first that has a warning.
        one_group: end after the message that ends its group.
    """

    handle: int
    options: GetOptions
    state: GroupState
    cursor: Cursor
    syncpoint: bool
    count: int = 1
    one_group: bool = False


class GetOutcome(NamedTuple):
    """What was got, where the handle stands now, and when time alone may bring something.

    Args:
        look_again_at: nothing was found, but a delayed message can be read at this time.
    """

    messages: list[Message]
    state: GroupState
    cursor: Cursor
    look_again_at: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Unit:
    """A unit that is not settled: what an operator sees of it.

    Args:
        name: of a prepared unit; None for a connection's own.
        program: who began it.
        started_at: seconds since 1970.
        puts, gets: messages that it holds.
    """

    name: str | None
    state: UnitState
    program: Program
    started_at: float
    puts: int
    gets: int


@dataclass(frozen=True, slots=True)
class Change:
    """What a verb did to one queue, told to observers after its transaction.

    Args:
        put: messages put by this verb, visible or not.
        visible: messages that everyone can see from now on.
        expired: messages discarded because their time was over.
    """

    queue: str
    put: Sequence[Message] = ()
    visible: Sequence[Message] = ()
    expired: Sequence[Message] = ()


Observer = Callable[[Change], None]


class Store(Protocol):
    """A store of queues, used by any number of connections at once.

    Errors common to all verbs: `ConnectionBroken` (2009) after the store was stopped or restarted under the
    caller; `StoreError` for trouble with the medium, after which nothing has changed.
    """

    clock: Clock
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

    def withdraw(self, handle: int, state: GroupState) -> None:
        """Takes back the pieces of the logical message that the handle's unit has put so far (R2.26)."""
        ...

    def get(self, request: GetRequest) -> GetOutcome:
        """Gets or browses (mq-semantics 3, `rules.gets`); an empty list if nothing suitable is available.

        A database walks the index (queue, state, rank, number, ordinal) for physical order, the same index over
        heads for logical order, (queue, group, sequence, offset) for the next member, and keeps a record of each
        group's completeness. Raises: what `wanted` and `judge` raise; GetInhibited 2016; NoMessageUnderCursor
        2034; InvalidMessageUnderCursor 2246; UnitTooLarge 2024.
        """
        ...

    def unlock(self, handle: int) -> bool:
        """Frees the handle's browse lock; whether there was one (R3.71)."""
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
        """Discards up to `limit` messages whose time is over; how many (R6.2)."""
        ...

    def observe(self, observer: Observer) -> None:
        """Calls `observer` after each change, in the order of the changes, outside the transaction.

        It is called in the process that made the change, by one thread at a time. What it raises is logged.
        """
        ...

    def stop(self) -> None:
        """Takes no more calls: waiting ones and later ones end with 2162."""
        ...
