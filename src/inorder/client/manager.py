"""QueueManager: a connection to a queue manager, and everything a program does with it."""

from __future__ import annotations

import contextlib
import os
from collections import OrderedDict
from collections.abc import Generator, Iterable, Iterator, Set
from types import TracebackType
from typing import IO, TYPE_CHECKING, Any, NamedTuple

from ..errors import (
    IN_MEMORY,
    CallInProgress,
    ConnectionBroken,
    QueueDeleted,
    QueueManagerStopping,
    Reason,
    TooManyHandles,
    UnknownQueue,
    WrongQueueType,
    bad_argument,
)
from ..model.attribute import check_queue_name
from ..model.message import Got, Message, UniqueId
from ..model.options import (
    EVERYTHING,
    BrowseKeywords,
    GetKeywords,
    GetOptions,
    Match,
    OpenKeywords,
    OpenOptions,
    PutOptions,
    check_instance,
)
from ..rules.ordering import ReadOrder
from ..rules.puts import Program, PutResult
from ..stores.open import locate
from ..stores.seam.protocol import LocalStore
from ..stores.seam.records import Locked
from . import groups, housekeeping
from .browsing import Browsing
from .bulk import BulkCalls
from .dead_letters import DeadLetters
from .defining import Defining
from .keywords import PutCall, sweep_options
from .leases import Lease, LeaseCalls
from .listening import Listening
from .operating import OperatorCalls
from .operator_log import ActCalls
from .pooling import Lending
from .processes import ProcessCalls
from .programs import program_name, running_script, user_name
from .queue import Queue
from .requesting import Data, Requesting
from .services import Services, connect_at, services_of
from .session import Session, by_name
from .unit_of_work import UnitOfWork, later_of
from .users import UserCalls

if TYPE_CHECKING:
    from typing_extensions import Unpack


class Elsewhere(NamedTuple):
    """The name of a queue, and of the queue manager that has it; no tuple that a caller gives as a name is one."""

    queue: str
    manager: str


Name = str | Elsewhere
_HERE = ""  # the default, which a put by name knows by `is`: what is given may be nothing that can be compared


def connect(
    store: str | os.PathLike[str] | LocalStore = IN_MEMORY, *, program: str | None = None, name: str | None = None
) -> QueueManager:
    """Connects to a queue manager.

    Args:
        store: the path of a file, which is made if it is missing: any number of processes use it at once. Or
            ":memory:" for a new queue manager in this process's memory. Or the URL of a PostgreSQL database,
            "postgresql://host/database?schema=orders", with whose store programs on any number of machines work; the
            other parameters are libpq's, and a password is never shown. Or a store: all connections of a process to
            one store object, and to one file, share its waiting room and its listeners.
        program: the name recorded with each message put; default: the name of the running script.
        name: of a queue manager that is made: 1 to 48 characters, part of the ids that it makes. Default: "INORDER"
            in memory, the schema's name in PostgreSQL, else made from the file's name.

    Returns: a connection. Use it as a context manager: the normal end of the block commits and closes, an
    exception backs out and closes. For another thread or asyncio task take another connection with `connect` of
    this one.

    Raises: ArgumentError. StoreForeign, StoreNewer: the file is not ours to open, and was left as it was.
    StoreError: there can be no store here, and why.
    """
    script = running_script() if program is None else program_name(program)
    who = Program(user_name(), script)
    if name is not None:
        check_queue_name(name, argument="name", reason=Reason.Q_MGR_NAME_ERROR)
    if isinstance(store, str | os.PathLike):
        return _connect_by_name(store, who, name)
    if not hasattr(store, "begin_claims"):
        raise bad_argument("store", store, f"a path, {IN_MEMORY!r} or a store")
    return QueueManager(services_of(store), who)


def _connect_by_name(store: str | os.PathLike[str], who: Program, name: str | None) -> QueueManager:
    where = locate(store)
    chosen = name or where.default_name

    def opens() -> LocalStore:
        return where.open(chosen, who.name)

    def connects(services: Services) -> QueueManager:
        return QueueManager(services, who)

    if where.is_in_memory:
        return connects(services_of(opens()))
    return connect_at(where.resolved, opens, connects)


class QueueManager(
    Defining,
    ProcessCalls,
    UserCalls,
    ActCalls,
    LeaseCalls,
    Requesting,
    OperatorCalls,
    BulkCalls,
    Lending,
    DeadLetters,
    Listening,
):
    """A connection to a queue manager; made by `inorder.connect`.

    It has one unit of work, and a default handle for each queue that its calls name: opened at first use for
    what the call needs, with its own group states, closed with the connection or by `close_queue`. A connection
    is used by one thread at a time; a second one that calls meanwhile gets 2219. While a unit of work is open, puts
    and gets that would be part of it are for the thread and the asyncio task that opened it; others get 9021.
    """

    def __init__(self, services: Services, program: Program) -> None:
        self._services = services
        self._program = program
        self._session = Session(services, program)
        self._store = services.store
        self._queues: OrderedDict[Name, Queue] = OrderedDict()
        self._reply_queues = {}
        housekeeping.tidy(self._store)

    def connect(self, *, program: str | None = None) -> QueueManager:
        """Another connection to the same queue manager: with its own unit of work, for another thread or task."""
        chosen = self._program if program is None else self._program._replace(name=program_name(program))
        return self._services.another(lambda services: QueueManager(services, chosen))

    # --- handles

    def open(self, name: str, *, manager: str = "", dynamic_name: str = "*", **options: Unpack[OpenKeywords]) -> Queue:
        """Opens a queue: a handle with its own cursor, lock and group states.

        Args:
            name: a local, alias, model or remote queue, the last for output alone.
            manager: the queue manager that has the queue, as MQ's ObjectQMgrName; "": this one.
            dynamic_name: for a model: the new queue's name, or a prefix of at most 33 characters and "*".
            **options: see `OpenOptions`; without any: shared input by the queue's default, output and browse.

        Raises: UnknownQueue 2085, ObjectInUse 2042, WrongQueueType 2001, 2045, 2082; of a remote name 2087, 2091, 2092,
        2184, 2196, 2197, 2198, 2199; TooManyHandles 2017, OptionsError 2046, ObjectExists 2100, ArgumentError 2011.
        """
        if not options:
            options = {"input": "as_queue", "output": True, "browse": True}
        unknown = sorted(options.keys() - set(OpenOptions.__slots__))
        if unknown:
            allowed = ", ".join(OpenOptions.__slots__)
            raise bad_argument("option", unknown[0], f"one of: {allowed}", Reason.OPTIONS_ERROR)
        chosen = OpenOptions(**options)
        return self._open(_name(name, manager), chosen, dynamic_name=dynamic_name).given()

    def open_growing(self, name: str, options: OpenOptions, *, manager: str = "") -> Queue:
        """A handle that is opened for more whenever a call needs it, as the default handles are."""
        check_instance("options", options, OpenOptions, "OpenOptions")
        return self._open(_name(name, manager), options, grows=True).given()

    @property
    def owner(self) -> int:
        """The connection's number in the store."""
        return self._session.owner

    def close_queue(self, name: str, *, manager: str = "") -> Reason | None:
        """Closes the default handle of a queue; the warning as `Queue.close`, None if it was not open."""
        return self._close_default(_name(name, manager)) if isinstance(name, str) else None

    def _close_default(self, name: Name) -> Reason | None:
        queue = self._queues.get(name)
        if queue is None:
            return None
        warning = None if queue.closed else queue.close()
        self._queues.pop(name, None)
        return warning

    def _close_idle(self, handles: Set[int]) -> bool:
        """Closes these if all are default handles that nobody would miss; whether they were."""
        idle = {queue.number: name for name, queue in self._queues.items() if queue.is_idle}
        if not handles <= idle.keys():
            return False
        for number in handles:
            self._close_default(idle[number])
        return True

    def _default(self, name: Name) -> Queue:
        """The default handle of a queue, not opened before a call needs it; the one used last is the last."""
        queue = self._queues.get(name) if isinstance(name, str | Elsewhere) else None
        if queue is None or queue.closed:
            self._check_no_model(name)
            if queue is not None:  # its close was interrupted
                self._queues.pop(name, None)
            return self._queues.setdefault(name, self._made(name, _FOR_BROWSE, grows=True, lazy=True))
        self._queues.move_to_end(name)
        queue.was_used = True
        return queue

    def _open(self, name: Name, options: OpenOptions, **how: Any) -> Queue:
        while True:
            try:
                with self._session:
                    return self._made(name, options, **how)
            except TooManyHandles:
                if not self._make_room():
                    raise

    def _made(self, name: Name, options: OpenOptions, **how: Any) -> Queue:
        if isinstance(name, Elsewhere):
            name, how["manager"] = name
        return Queue(self._session, name, options, **how)

    def _check_no_model(self, name: Name) -> None:
        if not isinstance(name, Elsewhere) and self.attributes(name).type == "model":
            raise WrongQueueType(
                f"{name} is a model queue: open it, which makes a queue to use", reason=Reason.Q_TYPE_ERROR
            )

    def _make_room(self, queue: str = "", manager: str = _HERE) -> bool:
        """At the limit of handles: closes the default handle used longest ago that nobody would miss; whether any.

        Args:
            queue, manager: whose default handle the call is on. If that is open the limit is another's, which what the
                call was given has reached: a stream, or a function.
        """
        own = self._queues.get(_name(queue, manager))
        if own is not None and own.number and not own.closed:
            return False
        idle = next((name for name, queue in self._queues.items() if queue.is_idle), None)
        if idle is not None:
            self._close_default(idle)
        return idle is not None

    def _renew(self, queue: str, manager: str = _HERE) -> bool:
        """The queue of a default handle was deleted: closes it; whether another queue has the name now.

        A handle inside a group is closed alone: the group is not silently begun again. If the handle has its queue the
        error is another's, of a stream or a function that the call was given: that has read or done something.
        """
        name = _name(queue, manager)
        own = self._queues.get(name)
        if own is None or own.closed or self._has_queue(own):
            return False
        was_idle = own.is_idle
        self._close_default(name)
        if was_idle:
            with contextlib.suppress(UnknownQueue):
                self._default(name)
                return True
        return False

    def _has_queue(self, handle: Queue) -> bool:
        """Whether the queue of an open handle is there still."""
        try:
            with self._session:
                if handle.number:
                    self._store.check_handle(handle.number)
                return handle.number != 0
        except QueueDeleted:
            return False

    # --- messages

    @by_name
    def put(
        self,
        queue: str,
        body: Data,
        options: PutOptions | None = None,
        *,
        manager: str = "",
        **keywords: Unpack[PutCall],
    ) -> PutResult:
        """Puts one message through the default handle of a queue; see `Queue.put`.

        Args:
            manager: the queue manager that has the queue, as with `open`.
        """
        name = queue if manager is _HERE else _name(queue, manager)
        return self._default(name).put(body, options, **keywords)

    def put_json(
        self,
        queue: str,
        value: Any,
        options: PutOptions | None = None,
        *,
        manager: str = "",
        **keywords: Unpack[PutCall],
    ) -> PutResult:
        """Puts a value as JSON, which `Message.json` of the message is again; see `Message.of_json`, `Queue.put`."""
        return self.put(queue, Message.of_json(value), options, manager=manager, **keywords)

    def put_many(
        self,
        queue: str,
        messages: Iterable[Data],
        options: PutOptions | None = None,
        *,
        manager: str = "",
        **keywords: Unpack[PutCall],
    ) -> list[PutResult]:
        """Puts messages in order, all or none; see `put` and `Queue.put_many`."""
        again = list(messages) if isinstance(messages, Iterator) else messages  # for a call that is made twice
        return self._put_many(queue, again, options, manager=manager, **keywords)

    @by_name
    def _put_many(
        self, queue: str, messages: Iterable[Data], options: PutOptions | None, *, manager: str, **keywords: Any
    ) -> list[PutResult]:
        name = queue if manager is _HERE else _name(queue, manager)
        return self._default(name).put_many(messages, options, **keywords)

    @by_name
    def get(self, queue: str, options: GetOptions | None = None, **keywords: Unpack[GetKeywords]) -> Got:
        """Removes one message and returns it; see `Queue.get`."""
        return self._default(queue).get(options, **keywords)

    @by_name
    def get_many(
        self, queue: str, count: int, options: GetOptions | None = None, **keywords: Unpack[GetKeywords]
    ) -> list[Got]:
        """Removes up to `count` messages; see `Queue.get_many`."""
        return self._default(queue).get_many(count, options, **keywords)

    def browse(self, queue: str, *, after: str | None = None, **keywords: Unpack[BrowseKeywords]) -> Browsing:
        """Copies every suitable message, from the first on, or on from a token; see `Queue.browse`.

        Each call has a handle of its own, closed at the end of the loop, so loops may be nested.
        """
        return Browsing(self._opened_to_browse(queue), sweep_options(None, keywords), after)

    @contextlib.contextmanager
    def _opened_to_browse(self, queue: str) -> Iterator[Queue]:
        with self._open(queue, _FOR_BROWSE) as handle:
            yield handle

    @by_name
    def leave_group(self, queue: str) -> bool:
        """Leaves the group that the default handle of a queue is inside for its gets; see `Queue.leave_group`."""
        return self._default(queue).leave_group()

    def group(self, queue: str, *, manager: str = "") -> groups.GroupWriter:
        """A block that puts one group in logical order, through a handle of its own; see `GroupWriter` and `put`."""
        name = _name(queue, manager)
        self._check_no_model(name)
        return groups.GroupWriter(self._session, self._open(name, _FOR_OUTPUT))

    def get_group(
        self,
        queue: str,
        *,
        wait: float = 0,
        match: Match = EVERYTHING,
        read_order: ReadOrder | None = None,
    ) -> Generator[Got, None, None]:
        """A complete group in order, or one message in no group, segments joined; taken as one step.

        Args:
            wait: seconds to wait until a whole group is there, from 0; or `FOREVER`.
            match: which group: what its first message must be.
            read_order: "strict", "relaxed" or "notify"; None: as the queue says.

        Outside a unit of work it makes one: committed when the loop ends, backed out when it is left early. Until
        then puts and gets of this connection belong to that unit; an iterator kept in a name wants its `close()`.

        Raises: NoMessageAvailable 2033; InconsistentCall 2241, the default handle is inside a group; as `Queue.get`.
        """
        return self._take_groups(queue, groups.whole_group(wait=wait, match=match, read_order=read_order))

    def _take_groups(self, queue: str, options: GetOptions) -> Generator[Got, None, None]:
        yield from groups.get_group(self._session, self._for_groups(queue), options)

    @by_name
    def _for_groups(self, queue: str) -> Queue:
        return self._default(queue).checked_for("input")

    @by_name
    def put_stream(self, queue: str, stream: IO[bytes], *, manager: str = "", **options: Any) -> PutResult:
        """Puts a binary stream as one logical message in segments, or as a group; see `client.groups.put_stream`."""
        name = _name(queue, manager)
        return groups.put_stream(self._session, self._default(name), stream, **options)

    @by_name
    def get_stream(
        self,
        queue: str,
        stream: IO[bytes],
        *,
        wait: float = 0,
        match: Match = EVERYTHING,
        as_group: bool = False,
    ) -> Got:
        """Gets one logical message, or a group, into a binary stream; see `client.groups.get_stream`."""
        handle = self._default(queue)
        return groups.get_stream(self._session, handle, stream, wait=wait, match=match, as_group=as_group)

    # --- confirmed calls: confirm ids, lock ids and unique ids live per queue

    @by_name
    def confirm_put(self, queue: str, uid: UniqueId, *, confirm_id: int = 0) -> Reason | None:
        """Makes a message that was put under a confirm id visible; see `Queue.confirm_put`."""
        return self._default(queue).confirm_put(uid, confirm_id=confirm_id)

    @by_name
    def confirm_get(self, queue: str, uid: UniqueId, *, confirm_id: int = 0) -> Reason | None:
        """Removes for good a message that was got under a confirm id; see `Queue.confirm_get`."""
        return self._default(queue).confirm_get(uid, confirm_id=confirm_id)

    @by_name
    def browse_and_lock(
        self,
        queue: str,
        match: Match = EVERYTHING,
        *,
        confirm_id: int = 0,
        most: int | None = None,
        lease: float | None = None,
    ) -> Locked:
        """Copies and locks messages that match, under one new lock id; see `Queue.browse_and_lock`."""
        return self._default(queue).browse_and_lock(match, confirm_id=confirm_id, most=most, lease=lease)

    @by_name
    def unlock(self, queue: str, uid: UniqueId, *, lock_id: int) -> None:
        """Frees one message that `browse_and_lock` locked. Raises: NotFound, WrongState, LockMismatch."""
        self._default(queue).unlock(uid, lock_id=lock_id)

    @by_name
    def delete(self, queue: str, uid: UniqueId, *, lock_id: int = 0) -> None:
        """Removes one message, unlocked, or locked under `lock_id`; see `Queue.delete`."""
        self._default(queue).delete(uid, lock_id=lock_id)

    @by_name
    def undo(self, queue: str, confirm_id: int) -> int:
        """Takes back everything put, got or locked under a confirm id; see `Queue.undo`."""
        return self._default(queue).undo(confirm_id)

    @by_name
    def release_lock(self, queue: str, lock_id: int) -> int:
        """Unlocks all messages that are still locked under a lock id; see `Queue.release_lock`."""
        return self._default(queue).release_lock(lock_id)

    @by_name
    def unique_ids(self, queue: str, *, confirm_id: int = 0, lock_id: int = 0) -> list[UniqueId]:
        """The unique ids of what stands under a confirm id or a lock id; see `Queue.unique_ids`."""
        return self._default(queue).unique_ids(confirm_id=confirm_id, lock_id=lock_id)

    # --- units of work

    def unit_of_work(self) -> UnitOfWork:
        """A block whose puts and gets are one unit: committed at its end, backed out by an exception.

        They are those of the thread and the asyncio task that began it. A put or get of another one that would be
        part of it raises UnitOfAnother 9021; any may settle it.
        """
        return UnitOfWork(self._session)

    def commit(self) -> None:
        """Commits the connection's unit of work, whichever caller opened it; nothing happens if it has none."""
        if isinstance(self._session.block, UnitOfWork | Lease):
            self._session.block.commit()
        else:
            self._session.settle("commit")

    def back_out(self, *, delay: float = 0, error: str = "") -> None:
        """Backs out the connection's unit of work, whichever caller opened it; nothing happens if it has none.

        What it put is undone; what it got returns to its place, with one more back out.

        Args:
            delay: seconds before what it got may be read again, 0 to 99,999,999.9. Until then relaxed readers pass it
                over, and strict readers wait behind it.
            error: why the work failed. It is kept with the first message that the unit got on each queue, as the
                properties `retry.error` (its first 1,000 characters), `retry.time` and `retry.attempt`; where these
                find no room beside the message's own, nothing is kept.

        With either of them the back out is on disk when the call returns. A message in a group is delayed with all
        that the unit got of it.

        Raises: ArgumentError, a bad delay or error.

        Rules: R5.3, A-40, B-26.
        """
        if isinstance(self._session.block, UnitOfWork | Lease):
            self._session.block.back_out(delay=delay, error=error)
        else:
            self._session.settle("back_out", later_of(delay, error))

    def prepare(self, name: str) -> None:
        """Prepares the connection's unit of work under a name; anyone may settle it, also after a restart.

        Raises: ArgumentError, the name has not 1 to 256 characters; UnitExists; UnitNotFound, there is none.

        Rules: R5.10.
        """
        if isinstance(self._session.block, UnitOfWork):
            self._session.block.prepare(name)
        else:
            self._session.prepare(name)

    # --- the end

    def close(self) -> None:
        """Ends the connection; an open unit of work is committed. Harmless when repeated.

        If the commit fails the connection ends all the same, and the unit is backed out; where a call has said already
        that the connection is lost, nothing is raised. Raises: CallInProgress 2219, another thread is inside a call
        on it; it then stays open.

        Rules: R5.6.
        """
        if self._session.closed:
            return
        try:
            if isinstance(self._session.block, Lease):
                self._session.block.leave()
            elif self._session.opener is not None:
                self.commit()
            with self._session, contextlib.suppress(QueueManagerStopping, ConnectionBroken):  # nothing left to tidy
                housekeeping.tidy(self._store)
        except CallInProgress:  # refused before anything was done: the call of the other thread goes on
            raise
        except BaseException as error:
            self.abandon()
            if isinstance(error, ConnectionBroken) and "known" in error.data:
                return  # an earlier call has said so, and that the unit of work is lost
            raise
        self.abandon()

    def stop(self) -> None:
        """Stops the queue manager for everyone: calls that wait, and all later ones, end with 2162."""
        self._session.check()  # not more: it may end a call that waits on this connection
        self._store.stop()

    def abandon(self) -> None:
        """Ends the connection as if the program had died: an open unit of work is backed out."""
        self._session.end()

    def __enter__(self) -> QueueManager:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            self.close()
        else:
            self.abandon()

    def __repr__(self) -> str:
        return f"<connection to queue manager{' (closed)' if self._session.closed else ''}>"


def _name(queue: str, manager: str) -> Name:
    """A queue, and the queue manager that has it, if one is named. Raises: ArgumentError 2058, it is not a name."""
    if isinstance(manager, str) and manager == _HERE:
        return queue
    manager = check_queue_name(manager, argument="manager", reason=Reason.Q_MGR_NAME_ERROR)
    return Elsewhere(queue, manager) if isinstance(queue, str) else queue  # which is then refused as a name here is


_FOR_OUTPUT = OpenOptions(output=True)
_FOR_BROWSE = OpenOptions(browse=True)


__all__ = ["QueueManager", "connect"]
