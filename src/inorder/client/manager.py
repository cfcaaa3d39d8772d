"""QueueManager: a connection to a queue manager, and everything a program does with it."""

from __future__ import annotations

import contextlib
import os
from collections import OrderedDict
from collections.abc import Callable
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
from ..stores.open import Location, check_no_credentials, locate
from ..stores.seam.protocol import LocalStore
from ..stores.seam.records import Outcome
from ..support import old_paths
from .admin import STEP_MESSAGES, Admin
from .bulk import Bulk
from .by_name import name_of
from .dead_letters import DeadLetters
from .inspection import Inspect
from .internals import Internals
from .leases import Lease, LeaseCalls
from .listening import Listening
from .programs import USER_LENGTH, program_name, running_script, user_name
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
    store: str | os.PathLike[str] | LocalStore = IN_MEMORY,
    *,
    program: str | None = None,
    name: str | None = None,
    token: str | None = None,
    ca: str | os.PathLike[str] | None = None,
    certificate: str | os.PathLike[str] | None = None,
    key: str | os.PathLike[str] | None = None,
    reconnect: float | None = None,
) -> QueueManager:
    """Connects to a queue manager.

    Args:
        store: the path of a file, which any number of processes can use at once; a missing file is created. Or
            ":memory:" for a new queue manager in this process's memory. Or the URL of a PostgreSQL database,
            "postgresql://host/database?schema=orders", which programs on any number of machines can use; the
            other parameters are libpq's, and a password is never shown. Or "https://host:9443", the URL of `inorder
            serve` on another machine; http:// only for this one. Or a store object. All connections of a process to
            one store object, or to one file, share its waiting calls and its listeners.
        program: the name recorded with each message put; default: the name of the running script.
        name: the name of a new queue manager, 1 to 48 characters; its generated ids contain it. Default: "INORDER"
            in memory, the schema's name in PostgreSQL, otherwise derived from the file's name.
        token: for https://, a token of a user of that server. Default, in this order: INORDER_TOKEN; the file
            ~/.config/inorder/credentials, which `inorder login` writes. It is never shown.
        ca: for https://, the file of the authorities that may sign the server's certificate, in PEM. Default, in this
            order: INORDER_CA; the credentials file; the authorities that the system trusts.
        certificate: for https://, the file of a client certificate, in PEM, instead of a token or with one. Default:
            INORDER_CERTIFICATE or the credentials file, unless there is a token.
        key: the file of the certificate's key, in PEM, without a password. Default: it is in the same file.
        reconnect: for https://, for how many seconds a call tries to make a lost connection again, 0 to 86,400. 0: a
            lost connection stays lost, and each call raises ConnectionBroken 2009. Default: 30.

    Returns: a connection. Use it as a context manager: the normal end of the block commits and closes, an
    exception backs out and closes. Another thread or asyncio task needs its own connection: call this one's
    `connect`.

    Raises: ArgumentError. CallerError 2012, a file with credentials is not usable, or a library is not installed.
    StoreForeign, StoreNewer: the file belongs to another program or a newer release, and was
    not changed. StoreError: the store cannot be opened or created; the text says why.
    """
    credentials = {"token": token, "ca": ca, "certificate": certificate, "key": key, "reconnect": reconnect}
    if isinstance(store, str | os.PathLike):
        return connect_to(locate(store, credentials=credentials), program=program, name=name)
    if not hasattr(store, "begin_claims"):
        raise bad_argument("store", store, f"a path, {IN_MEMORY!r} or a store")
    check_no_credentials(credentials)
    who = _who(program, name)
    if store.again is not None:
        return connect_at(None, store.again, lambda services: QueueManager(services, who))
    return QueueManager(services_of(store), who)


def connect_to(
    where: Location, *, program: str | None = None, name: str | None = None, user: str | None = None
) -> QueueManager:
    """Connects to the queue manager at a location; `user` stands for the owner of the process. Else as `connect`."""
    who = _who(program, name)
    if user:
        who = who._replace(user=user[:USER_LENGTH])
    chosen = name or where.default_name

    def opens() -> LocalStore:
        return where.open(chosen, who.name)

    def connects(services: Services) -> QueueManager:
        return QueueManager(services, who)

    if where.is_in_memory:
        return connects(services_of(opens()))
    return connect_at(where.resolved, opens, connects)


def _who(program: str | None, name: str | None) -> Program:
    """The user and program of a new connection. Raises: ArgumentError."""
    who = Program(user_name(), running_script() if program is None else program_name(program))
    if name is not None:
        check_queue_name(name, argument="name", reason=Reason.Q_MGR_NAME_ERROR)
    return who


class QueueManager(
    LeaseCalls,
    Requesting,
    Listening,
):
    """A connection to a queue manager; made by `inorder.connect`.

    It has one unit of work. It also keeps a default handle for each queue that its calls name. The first call opens
    that handle, and `close_queue` or the end of the connection closes it; the handle has its own group states.

    Only one thread may use a connection at a time: a second one that calls meanwhile gets 2219. While a unit of work is
    open, only the thread and asyncio task that opened it may put and get in it; others get 9021.
    """

    def __init__(self, services: Services, program: Program) -> None:
        self._services = services
        self._program = program
        self._session = Session(services, program)
        self._store = services.store
        self._queues = OrderedDict()
        self._reply_queues = {}
        self._store.discard_expired(STEP_MESSAGES)  # on unused queues; each call does it on the queue that it uses

    def connect(self, *, program: str | None = None) -> QueueManager:
        """Opens another connection to the same queue manager, with its own unit of work, for another thread or task."""
        chosen = self._program if program is None else self._program._replace(name=program_name(program))
        made = self._services.another(lambda services: QueueManager(services, chosen))
        made._session.stays_here = self._session.stays_here
        return made

    # --- namespaces

    @property
    def admin(self) -> Admin:
        """Administration: process definitions, the queue manager's attributes, backup, check, stop."""
        return Admin(self)

    @property
    def accounts(self) -> Accounts:
        """Users of servers, their tokens, and the log of operators' actions."""
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
        """Inspection without changes: queues, their messages, units of work, locks, waits, connections, events."""
        return Inspect(self)

    @property
    def internals(self) -> Internals:
        """For other parts of this package only; it may change in any release."""
        return Internals(self)

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            return old_paths.member(self, name)

    # --- handles

    def open(self, name: str, *, manager: str = "", dynamic_name: str = "*", **options: Unpack[OpenKeywords]) -> Queue:
        """Opens a queue and returns a handle with its own cursor, lock and group states.

        Args:
            name: a local, alias, model or remote queue; a remote queue can only be opened for output.
            manager: the queue manager that has the queue, as MQ's ObjectQMgrName; "": this one.
            dynamic_name: for a model: the new queue's name, or a prefix of at most 33 characters and "*".
            **options: see `OpenOptions`: input=None, output=False, browse=False, co_op=False, read_order=None.
                With none given, the queue is opened for input (as the queue's default says), output and browse.

        Raises: UnknownQueue 2085, ObjectInUse 2042, WrongQueueType 2001, 2045, 2082; for a remote name 2087, 2091,
        2092, 2184, 2196 to 2199; TooManyHandles 2017, OptionsError 2046, ObjectExists 2100, ArgumentError 2011.
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
        """Returns a block whose puts and gets form one unit: its end commits them, an exception backs them out.

        The unit belongs to the thread and asyncio task that began it. A put or get by another one that would join it
        raises UnitOfAnother 9021. Any thread or task may commit it or back it out.
        """
        return UnitOfWork(self._session, self)

    def commit(self) -> Reason | None:
        """Commits the connection's unit of work, whoever opened it; does nothing if it has none.

        Returns: None; or the warning OUTCOME_PENDING 2124: the unit is committed, but the owner of a synchronous remote
        queue could not be reached to carry it out there, which happens when a program here reaches it again.

        Raises: QueueCondition 2003, the unit had to be backed out: a queue manager could not commit.

        Rules: R5.2, K-2.
        """
        block = self._session.block
        if isinstance(block, Lease):
            block.commit()
            return None
        return block.commit() if isinstance(block, UnitOfWork) else self._session.settle("commit")

    def back_out(self, *, delay: float = 0, error: str = "") -> None:
        """Backs out the connection's unit of work, whoever opened it; does nothing if it has none.

        Its puts are undone. The messages it got return to their places, and their back out counts rise by one.

        Args:
            delay: seconds before those messages may be read again, 0 to 99,999,999.9. Until then relaxed readers skip
                them, and strict readers wait for them.
            error: why the work failed. It is stored with the first message that the unit got from each queue, as the
                properties `retry.error` (its first 1,000 characters), `retry.time` and `retry.attempt`. If the
                message's own properties leave no room for these, nothing is stored.

        With either argument the back out is on disk when the call returns. The delay of a message in a group applies
        to every message of the group that the unit got.

        Raises: ArgumentError, a bad delay or error.

        Rules: R5.3, A-40, B-26.
        """
        if isinstance(self._session.block, UnitOfWork | Lease):
            self._session.block.back_out(delay=delay, error=error)
        else:
            self._session.settle("back_out", later_of(delay, error))

    def prepare(self, name: str) -> None:
        """Prepares the connection's unit of work under a name; anyone may settle it, even after a restart.

        Raises: ArgumentError, the name must have 1 to 256 characters; UnitExists, the name is taken; UnitNotFound, no
        unit of work is open.

        Rules: R5.10.
        """
        if isinstance(self._session.block, UnitOfWork):
            self._session.block.prepare(name)
        else:
            self._session.prepare(name)

    def settle(self, name: str, outcome: Outcome) -> None:
        """Commits or backs out a prepared unit; `outcome` is "commit" or "back_out". Raises: UnitNotFound."""
        Choice(("commit", "back_out")).check("outcome", outcome)
        if not isinstance(name, str) or not is_storable(name):
            raise UnitNotFound(f"no unit is named {written(name)}", unit=name)
        with self._session:
            self._store.settle_prepared(name, outcome)

    def worker(
        self,
        tasks: Tasks,
        *,
        threads: int = 1,
        log: Callable[[WorkerEvent], object] | None = None,
        burst: bool = False,
    ) -> Worker:
        """Makes a worker, which runs functions on the messages of queues; see `inorder.work.Worker`.

        The functions run in threads of this process; one more thread runs the schedules. Each thread has its own
        connection. This connection must stay open, but is free for other calls.

        Args:
            tasks: the functions to run.
            threads: how many threads work on each function of messages, and on each queue of tasks with arguments, if
                these do not set a number themselves, 1 to 1,000.
            log: called, one call at a time, with each attempt that has ended and with other events of the worker;
                None: these go to the logger `inorder.work`.
            burst: whether the worker ends by itself as soon as no message is ready and no call runs. It does not wait
                for delayed messages and later attempts, and runs no schedules. See also `Tasks.drain`.

        Returns: a worker: use it as a context manager, or start and stop it.

        Raises: ArgumentError.
        """
        from ..work.worker import Worker  # noqa: PLC0415 - programs without tasks do not load it

        self._session.check()
        return Worker(self, tasks, threads=threads, log=log, burst=burst)

    # --- the end

    def close(self) -> None:
        """Commits an open unit of work and ends the connection. Harmless when repeated.

        If the commit fails, the unit is backed out and the connection ends nevertheless. If an earlier call has already
        reported that the connection is lost, `close` raises nothing. Raises: CallInProgress 2219, another thread is
        inside a call on it; the connection then stays open.

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
                if not self._services.store.changes.are_elsewhere:  # a lost connection would be made again for it
                    self._store.discard_expired(STEP_MESSAGES)
        except CallInProgress:  # nothing was done: the other thread's call goes on
            raise
        except BaseException as error:
            self._session.end()
            if isinstance(error, ConnectionBroken) and "known" in error.data:
                return  # an earlier call has reported this, and the loss of the unit of work
            raise
        self._session.end()

    def __enter__(self) -> QueueManager:
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if error is None:
            self.close()
        else:
            self._session.end()

    def __repr__(self) -> str:
        return f"<connection to queue manager{' (closed)' if self._session.closed else ''}>"


__all__ = ["QueueManager", "connect"]
