"""QueueManager: a connection to a queue manager, and everything a program does with it."""

from __future__ import annotations

import contextlib
import os
from collections import OrderedDict
from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING, Any

from ..errors import (
    IN_MEMORY,
    CallInProgress,
    ConnectionBroken,
    QueueManagerStopping,
    Reason,
    UnitNotFound,
    bad_argument,
    written,
)
from ..model.attribute import check_queue_name
from ..model.options import (
    OpenKeywords,
    OpenOptions,
)
from ..model.parameters import Choice, is_storable
from ..rules.puts import Program
from ..stores.open import locate
from ..stores.seam.protocol import LocalStore
from ..stores.seam.records import Outcome
from ..support import old_paths
from . import housekeeping
from .admin import Admin
from .bulk import Bulk
from .by_name import name_of
from .dead_letters import DeadLetters
from .inspection import Inspect
from .internals import Internals
from .leases import Lease, LeaseCalls
from .listening import Listening
from .programs import program_name, running_script, user_name
from .queue import Queue
from .requesting import Requesting
from .services import Services, connect_at, services_of
from .session import Session
from .unit_of_work import UnitOfWork, later_of
from .users import Accounts

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ..work.reporting import WorkerEvent
    from ..work.tasks import Tasks
    from ..work.worker import Worker


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
        return _connect_bynamed(store, who, name)
    if not hasattr(store, "begin_claims"):
        raise bad_argument("store", store, f"a path, {IN_MEMORY!r} or a store")
    return QueueManager(services_of(store), who)


def _connect_bynamed(store: str | os.PathLike[str], who: Program, name: str | None) -> QueueManager:
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
    LeaseCalls,
    Requesting,
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
        self._queues = OrderedDict()
        self._reply_queues = {}
        housekeeping.tidy(self._store)

    def connect(self, *, program: str | None = None) -> QueueManager:
        """Another connection to the same queue manager: with its own unit of work, for another thread or task."""
        chosen = self._program if program is None else self._program._replace(name=program_name(program))
        return self._services.another(lambda services: QueueManager(services, chosen))

    # --- what else it does

    @property
    def admin(self) -> Admin:
        """Administration: process definitions, the queue manager's attributes, backup, check, stop."""
        return Admin(self)

    @property
    def accounts(self) -> Accounts:
        """Users of servers, their tokens, and the log of their acts."""
        return Accounts(self)

    @property
    def bulk(self) -> Bulk:
        """Bulk reads and writes: claims and staged rows."""
        return Bulk(self)

    @property
    def dead(self) -> DeadLetters:
        """Dead letters: list, replay, discard, add."""
        return DeadLetters(self)

    @property
    def inspect(self) -> Inspect:
        """Looks: queues and their messages, units of work, locks, waits, connections, events."""
        return Inspect(self)

    @property
    def internals(self) -> Internals:
        """For other parts of this package, not for programs: it may change with any version."""
        return Internals(self)

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            return old_paths.member(self, name)

    # --- handles

    def open(self, name: str, *, manager: str = "", dynamic_name: str = "*", **options: Unpack[OpenKeywords]) -> Queue:
        """Opens a queue: a handle with its own cursor, lock and group states.

        Args:
            name: a local, alias, model or remote queue, the last for output alone.
            manager: the queue manager that has the queue, as MQ's ObjectQMgrName; "": this one.
            dynamic_name: for a model: the new queue's name, or a prefix of at most 33 characters and "*".
            **options: `OpenOptions` has their meaning: input=None, output=False, browse=False, co_op=False,
                read_order=None. Without any: shared input by the queue's default, output and browse.

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
        return self._open(name_of(name, manager), chosen, dynamic_name=dynamic_name).internals.given()

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

    def settle(self, name: str, outcome: Outcome) -> None:
        """Settles a prepared unit: outcome is "commit" or "back_out". Raises: UnitNotFound."""
        Choice(("commit", "back_out")).check("outcome", outcome)
        if not isinstance(name, str) or not is_storable(name):
            raise UnitNotFound(f"no unit is named {written(name)}", unit=name)
        with self._session:
            self._store.settle_prepared(name, outcome)

    def worker(self, tasks: Tasks, *, threads: int = 1, log: Callable[[WorkerEvent], object] | None = None) -> Worker:
        """Runs functions for the messages of queues, in threads of this process; see `inorder.work.Worker`.

        Schedules among the tasks are run by one thread more. Each thread has a connection of its own; this one is free
        for other calls, and must stay open.

        Args:
            tasks: what is to be run.
            threads: how many work on each task that does not say it itself, 1 to 1,000.
            log: called with each attempt that has ended, and whatever else happens, one after another; None: it goes to
                the logger `inorder.work`.

        Returns: a worker, to be used as a context manager, or started and stopped.

        Raises: ArgumentError.
        """
        from ..work.worker import Worker  # noqa: PLC0415 - who has no tasks does not load it

        self._session.check()
        return Worker(self, tasks, threads=threads, log=log)

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
            self._session.end()
            if isinstance(error, ConnectionBroken) and "known" in error.data:
                return  # an earlier call has said so, and that the unit of work is lost
            raise
        self._session.end()

    def __enter__(self) -> QueueManager:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            self.close()
        else:
            self._session.end()

    def __repr__(self) -> str:
        return f"<connection to queue manager{' (closed)' if self._session.closed else ''}>"


_FOR_OUTPUT = OpenOptions(output=True)


__all__ = ["QueueManager", "connect"]
