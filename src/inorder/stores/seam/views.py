"""Views of a store for operators, and the records of workers.

A store keeps a record as JSON, as one object for each connection that a worker reports on. Programs on other machines
send records, too, and pages show them, so the store checks each number and text.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

from ...errors import bad_argument
from ...model.fields import PUT_AT_MAX
from ...model.message import NO_ID, Message, Place
from ...model.options import EVERYTHING, Match
from ...model.parameters import is_storable
from ...rules.ordering import Pending
from ...rules.puts import Program
from ...support.old_paths import renamed
from .channel_records import ChannelNow
from .damage import decodes
from .tables import Branch, Decision, UnitKind

ListingOrder = Literal["physical", "logical"]

SightState = Literal["available", "delayed", "put", "got", "locked", "claimed"]

HolderKind = Literal["session", "prepared", "confirm", "lock", "claim", "lease", "handle"]

LockKind = Literal["handle", "lock"]


WITH_HEAD, WITHOUT_HEAD, UNPLACED = range(3)  # stages of a listing
NOWHERE = Place(0, 0, 0)


class Position(NamedTuple):
    """The position of a message in a listing; smaller is earlier.

    Args:
        stage: WITH_HEAD: in physical order everything that has a place; WITHOUT_HEAD: groups whose first message is
            missing; UNPLACED: messages that have no place yet.
        anchor: in logical order, the place of the first remaining member of the group; else the message's own place.
        group_id: of its group, in logical order.
        number: of a message without a place: its number among all messages.
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
    """An unsettled unit, as an operator sees it.

    Args:
        kind: a connection's own unit of work ("session"), "prepared", "confirm" (a confirm id), "lock", "claim",
            "staging", "lease", or "global": it has parts at other queue managers, and its part here is a session unit.
        name: of a prepared or global unit, a staging or a lease; the id of a confirm or lock unit; the application and
            number of a claim; empty for a connection's own.
        queue: of a confirm or lock unit: the queue to which the id belongs (A-15); of a claim: the queue that it reads;
            of a staging: the queue that it is for; else empty.
        program: the program that began it.
        started_at: seconds since 1970; of a session unit up to 0.1 seconds early.
        puts, gets, locks: messages that it holds.
        connection: of a session unit: the number of its connection, whose end backs it out; of a global unit: the same,
            None after the end; else None.
        process: of a session unit: the id of the process that has the connection; None if that is not known.
        queues: the queues on which it holds messages, by name.
        ends_at: of a lease or a staging: when it ends by itself, seconds since 1970; else None.
        branches: of a global unit: its parts at owners that are not known to be settled.
        outcome: of a global unit: "commit" or "back_out" once it is decided; else empty.
        age: seconds since it began, by the store's clock; None: a server of 0.2.0 does not say it.
    """

    kind: UnitKind | Literal["global"]
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
    branches: tuple[Branch, ...] = ()
    outcome: Decision = ""
    age: float | None = None


class Holder(NamedTuple):
    """The unit or handle that keeps a message from others.

    Args:
        kind: as of a `Unit`, or "handle": a browse lock.
        name: as of a `Unit`; empty for a handle.
        since: when the unit or the lock began; seconds since 1970.
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
        position: its position in the listing; another page can begin after it.
        state: "available"; "delayed", hidden until `due_at`; "put" and "got" in an unsettled unit; "locked" by a
            browse; "claimed" by a reader in bulk.
        holder: the unit or handle that put, got, locked or claimed it; None if it is available or delayed.
        message: as a browse returns it; its body is cut to the preview, but `message.length` is the full length.
        visible_since: when it first became visible to everyone, seconds since 1970; None: it has not yet.
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
        """Its place on the queue; None: its number is not drawn yet (B-5)."""
        return self.message.place

    @property
    def length(self) -> int:
        """The length of the whole body, in bytes."""
        return self.message.length

    @property
    def put_at(self) -> float:
        """When it was put, as its descriptor says; seconds since 1970."""
        return self.message.put_at


@dataclass(frozen=True, slots=True, kw_only=True)
class LookRequest:
    """A request for one page of a listing.

    Args:
        after: the page begins after this position; None: at the beginning.
        most: the largest number of messages.
        preview: the largest number of bytes of each body.
        unit: list only messages that this unit holds; None: everything.
        numbered_after: list only messages with a higher number on the queue; None: everything. In physical order.
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
        queue: the queue on which it waits.
        connection, program, process: of the caller; see `Unit`.
        pending: of a strict call: the message that it waits for, as of its last look; None: for no particular message.
        withheld: whether there are messages that only the pending one keeps from the call (B-11).
    """

    queue: str
    connection: int
    program: Program
    process: int | None
    pending: Pending | None
    withheld: bool


class Opening(NamedTuple):
    """A queue that a connection has open with one handle. A call by name has a handle too.

    Args:
        queue: the local queue that is open: an alias's target, or the transmission queue of a remote queue; empty: it
            has been deleted since (2052).
        name: as it was opened.
        input: "shared" or "exclusive"; None: not open for gets.
        output: whether it is open for puts.
        co_op: whether it browses cooperatively (3.11).
    """

    queue: str
    name: str
    input: Literal["shared", "exclusive"] | None
    output: bool
    co_op: bool

    @property
    def uses(self) -> str:
        """The uses of the handle, in words; "look": it browses, inquires or sets."""
        gets = {None: "", "shared": "get", "exclusive": "get exclusive"}[self.input]
        looks = "browse together" if self.co_op else ""
        return ", ".join(filter(None, (gets, "put" if self.output else "", looks))) or "look"


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionView:
    """A connection of a living process, and the queues that it has open.

    Args:
        connection, program, process: see `Unit`.
        host: for a store on a server, the address of the process as the server sees it; empty: this machine, or unknown
            here.
        since: when the process began or, for a store on a server, when it opened the store; seconds since 1970. None:
            unknown here.
        opened: one for each handle, in the order in which they were opened. Their times are not kept; a handle for
            neither gets nor puts browses, inquires or sets.
    """

    connection: int
    program: Program
    process: int | None
    host: str
    since: float | None
    opened: tuple[Opening, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class LockView:
    """A handle or lock id that locks messages of a queue.

    Args:
        kind: "handle", a browse lock of an open handle (3.10), which ends with it; "lock", a lock id (A-12).
        lock_id: None for a handle.
        connection, process: of the handle; None for a lock id.
        since: seconds since 1970.
        messages: how many it locks, including those got under it.
        lease_ends_at: of a lock id with a lease: when it ends by itself, seconds since 1970; else None.
        age: as of a `Unit`.
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
    age: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueView:
    """A queue at one moment, for programs that poll. Expired messages that have not been discarded count.

    Args:
        created_at: distinguishes it from earlier queues of its name.
        depth: as in `QueueStatus`.
        arrived: messages ever put on it, including those in units and those backed out later. Between two polls, the
            growth of `arrived` minus the growth of `depth` is the number of messages that left, less those that came
            back.
        numbered: the highest number drawn so far, for `numbered_after` of `look`.
        puts, gets: messages put and got in unsettled units, claims included.
        locked: messages locked but not got.
        delayed: messages hidden until later.
        oldest_put_at: when the oldest message was put. The comparison includes the message with the lowest number of
            each unit or lock (the first that its process put), and the first available message of each priority. None:
            there is no message.
        open_input_count, open_output_count: handles.
        waiters: calls that wait.
        dropped: reports about its messages that neither their queue nor the dead-letter queue accepted; see `Dropped`.
        channels: of a transmission queue, the channels that send from it, by name; `depth` and `oldest_put_at` show how
            far they lag.
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
    """Messages that the queue manager had to drop: reports, trigger messages, and those of a channel that
    came outside batches (C-4).

    Args:
        queue: the queue whose messages they concerned; empty: none in this store.
        messages: their total number.
        last_at: when the last one was dropped, seconds since 1970.
        reason: why the last one could not be put on its queue; the dead-letter queue did not accept it either.
    """

    queue: str
    messages: int
    last_at: float
    reason: int


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderView:
    """The state of a queue's order, for the operator of strict readers (B-33).

    Args:
        unresolved_puts: puts that have a number and are not committed.
        pending_out: messages got, locked or delayed.
        oldest_put, oldest_out: of each kind the message that has been pending longest; None if there is none.
        withheld: messages that are available but blocked by a pending one of their level.
        strict_waiters: strict calls that wait.
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


# --- records of workers

WORKER: Final = "worker"
"""The kind of object that a record is."""
TEXT_MAX: Final = 500
"""Characters of a text in a record."""
ITEMS_MAX: Final = 1_000
"""Tasks, and schedules, of a worker."""
RECORD_MAX: Final = 2**20
"""Characters of a record."""


class TaskMinute(NamedTuple):
    """The attempts at a task that ended within one minute.

    Args:
        minute: since 1970.
        ended, failed: the numbers of all attempts and of failed ones.
        duration, longest: the duration of all attempts together, and of the longest one, in seconds.
    """

    minute: int
    ended: int = 0
    failed: int = 0
    duration: float = 0.0
    longest: float = 0.0

    def plus(self, other: TaskMinute) -> TaskMinute:
        """Both together, in the minute of this one."""
        return TaskMinute(
            self.minute, self.ended + other.ended, self.failed + other.failed, self.duration + other.duration,
            max(self.longest, other.longest),
        )  # fmt: skip


class TaskRecord(NamedTuple):
    """A task of a worker.

    Args:
        minutes: the last ten minutes in which an attempt ended, the newest last.
        running: the number of running calls; oldest: the seconds for which the oldest of them has run.
        dead: dead letters since the worker began.
        error, failed_at: the last failure.
        stopped: why the task could not continue; empty: it continues.
    """

    name: str
    queue: str
    minutes: Sequence[TaskMinute] = ()
    running: int = 0
    oldest: float = 0.0
    dead: int = 0
    error: str = ""
    failed_at: float | None = None
    stopped: str = ""


class ScheduleRecord(NamedTuple):
    """A schedule of a worker; instants are seconds since 1970.

    Args:
        last: the instant of the last run; None: there was none.
        next: the next instant; None: there is none.
        is_overdue: whether the next instant has passed.
        error: why the last put failed; empty: it did not.
    """

    name: str
    queue: str
    cron: str
    zone: str
    last: float | None
    next: float | None
    is_overdue: bool
    error: str


class WorkerRecord(NamedTuple):
    """A worker: one process of `inorder work`, or one in a program.

    Args:
        connection: the number of the connection that sent the record, as the store knows it.
        process: its process id on its machine.
        began_at, at: when the worker began, and when it made this; seconds since 1970.
    """

    connection: int
    program: str
    process: int
    began_at: float
    at: float
    tasks: Sequence[TaskRecord]
    schedules: Sequence[ScheduleRecord]


@decodes("the record of a worker")
def record_of(text: str) -> WorkerRecord:
    """Reads a stored record. A later version may have written it, with more fields. Raises: StoreDamaged."""
    given = json.loads(text)
    for one in given["tasks"]:
        one["minutes"] = [TaskMinute(*each[: len(TaskMinute._fields)]) for each in one["minutes"]]
    tasks, schedules = (
        [kind(**_known(kind, one)) for one in given[name]]
        for name, kind in (("tasks", TaskRecord), ("schedules", ScheduleRecord))
    )
    return WorkerRecord(**{**_known(WorkerRecord, given), "tasks": tasks, "schedules": schedules})


def _known(kind: Any, given: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in given.items() if name in kind._fields}


def text_of(record: WorkerRecord) -> str:
    """The record in its stored form."""
    tasks, schedules = ([one._asdict() for one in some] for some in (record.tasks, record.schedules))
    return json.dumps({**record._asdict(), "tasks": tasks, "schedules": schedules})


def checked_text(record: WorkerRecord) -> str:
    """The record in its stored form. Raises: ArgumentError, for a value that no worker has."""
    if not (record.tasks or record.schedules):
        raise bad_argument("record", record, "that of a worker with a task or a schedule")
    _check(record, "record")
    text = text_of(record)
    if len(text) > RECORD_MAX:
        raise bad_argument("record", f"{len(text):,} characters", f"at most {RECORD_MAX:,}")
    return text


def _check(value: Any, name: str) -> None:
    """Checks each number and text in a value. Raises: ArgumentError, with the name of its field."""
    if isinstance(value, str):
        if len(value) > TEXT_MAX or not is_storable(value):
            raise bad_argument(name, value, f"a text of at most {TEXT_MAX:,} characters")
    elif isinstance(value, int | float):
        if not 0 <= value <= PUT_AT_MAX:
            raise bad_argument(name, value, f"a number from 0 to {PUT_AT_MAX:,.0f}")
    elif hasattr(value, "_fields"):
        for one, field in zip(value, value._fields, strict=True):
            _check(one, field)
    elif value is not None:
        if len(value) > ITEMS_MAX:
            raise bad_argument(name, f"{len(value):,} of them", f"at most {ITEMS_MAX:,}")
        for one in value:
            _check(one, name)


if not TYPE_CHECKING:  # otherwise a type checker would accept any name
    __getattr__ = renamed(__name__, Sight="MessageView")
