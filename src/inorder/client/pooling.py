"""The part of a connection for programs that manage it from another thread, or pool it among callers.

Any program can use `end_waits`. The rest serves `inorder.aio`, whose tasks share a few connections. It tells whether a
connection is free for another caller, and when a get that found no message should try again.
"""

from __future__ import annotations

import contextlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from ..errors import ConnectionBroken, bad_argument
from ..model.message import Got
from ..model.options import GetOptions, OpenKeywords
from ..model.parameters import is_storable
from ..rules.puts import Program
from ..stores.seam.protocol import Promises, Store
from ..support.clock import Clock
from .events import check_callable
from .queue import Queue
from .session import Session, by_name
from .unit_of_work import later_of

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ..work.reporting import WorkerEvent
    from ..work.tasks import Tasks
    from ..work.worker import Worker


USER_LENGTH_MAX: Final = 256


class Lending(ABC):
    """What `QueueManager` has of it."""

    _session: Session
    _store: Store
    _program: Program
    _reply_queues: dict[str, Queue]

    def end_waits(self) -> bool:
        """Ends the wait of a call that is under way on this connection; for another thread, and never waits itself.

        The call raises WaitEnded 9022, and nothing else has happened: the connection, and its unit of work if it has
        one, go on. A call that has found its message already returns it.

        Returns: whether a call waited. A call that only comes to wait is not ended.

        Raises: ConnectionClosed 2018.
        """
        self._session.check()  # not more: a call is in progress
        return self._store.end_waits(self._session.owner)

    def give_up(self, *, delay: float = 0, error: str = "") -> None:
        """Ends the connection for a program that does not come to an end with its work; for another thread.

        Its unit of work is backed out as `back_out` does with this delay and error. Whatever the program does through
        the connection from then on raises ConnectionClosed 2018.

        Raises: ArgumentError, as `back_out`.
        """
        self._session.end(later_of(delay, error))

    @property
    def has_unit(self) -> bool:
        """Whether a unit of work is open that has put or got something."""
        return not self._session.closed and self._store.has_unit(self._session.owner)

    @property
    def is_idle(self) -> bool:
        """Whether the next call may be another caller's: no unit of work, queue, group or cursor is open.

        Queues that calls by name have opened are left open, and so is one for replies.
        """
        return self._session.closed or (self._session.block is None and not self.has_unit and not self._open_handles())

    def _open_handles(self) -> Collection[Queue]:
        by_name, replies = set(map(id, self._queues.values())), set(map(id, self._reply_queues.values()))
        handles = [one for one in self._session.handles() if isinstance(one, Queue) and id(one) not in replies]
        return [one for one in handles if one.number and not (id(one) in by_name and one.is_idle)]

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

    def tell(self, event: str, measurements: Mapping[str, float], metadata: Mapping[str, object]) -> None:
        """Tells the observers of this store something that happened beside its calls."""
        self._session.services.telemetry.report(event, measurements, metadata)

    @property
    def is_observed(self) -> bool:
        """Whether anybody hears what `tell` says."""
        return self._session.services.telemetry.is_observed

    def check_store(self) -> None:
        """Looks whether the store can be used on; for a program that runs for long, between its calls.

        Raises: ConnectionClosed 2018; StoreError with `must_reopen`: the store was deleted, replaced or restored, or a
            sync to its disk has failed. This process can use it again after it has closed it; after a failed sync, all
            processes must have closed it.
        """
        self._session.check()
        self._session.services.store.refuse_lost()

    @property
    def program(self) -> str:
        """The name that is recorded with each message that this connection puts."""
        return self._program.name

    @property
    def clock(self) -> Clock:
        """The time that waits go by."""
        return self._session.services.store.clock

    @property
    def path(self) -> str:
        """Where the store is: a file, a server without its password, or ":memory:"."""
        return self._session.services.store.path

    def watch(self, queue: str, changed: Callable[[], object]) -> None:
        """Calls `changed` whenever a get that found nothing on a queue may find something now; see `LocalStore.watch`.

        It occupies the connection until `end_waits`, the end of the connection, or what `changed` raises.

        Raises: UnknownQueue 2085, WrongQueueType 2057; ArgumentError, `changed` cannot be called. WaitEnded;
        ConnectionBroken; QueueDeleted 2052, the queue has gone.
        """
        check_callable(changed)
        self._check_no_model(queue)
        with self.open(queue, browse=True) as handle, self._session:
            self._session.services.store.watch(handle.number, changed)

    @by_name
    def get_if(self, queue: str, accepts: Callable[[Got], object], options: GetOptions | None = None) -> Got:
        """Gets a message, unless `accepts` refuses it: what that raises leaves the message where it was, uncounted.

        Args:
            accepts: called with the message just before the get has happened, and once more with what is found then if
                that has to be tried again. Nobody else can put or get meanwhile, so it must be quick, must not wait,
                and must make no call of this queue manager.
            options: as of `get`.

        Returns: the message. It is gone, or in the unit of work, as `get` says.

        Raises: what `accepts` raises; as `get`. ArgumentError, it cannot be called.
        """
        return self._default(queue).get_if(accepts, options)

    @contextlib.contextmanager
    def on_behalf_of(self, user: str) -> Iterator[None]:
        """A block for servers, whose calls are those of one of the store's users.

        A message that is put in it and asks for reports is put with the user's authority: the user needs `put` where
        the reports go, now and when they are made. Confirm ids and lock ids that begin in it are listed under the
        user, as leases are; they belong to nobody, and whoever knows one ends it. What else the user may do the
        server asks before.

        Args:
            user: 1 to 256 characters; "launch-token": whoever may do what the server may.

        Raises: ArgumentError. In the block: NotAuthorized 2035, by a put.
        """
        if not isinstance(user, str) or not is_storable(user) or not 1 <= len(user) <= USER_LENGTH_MAX:
            raise bad_argument("user", user, f"a text of 1 to {USER_LENGTH_MAX} characters")
        self._session.check()
        store, owner = self._session.services.store, self._session.owner
        before = store.set_user(owner, user)
        try:
            yield
        finally:
            with contextlib.suppress(ConnectionBroken):  # it was lost, and its user with it
                store.set_user(owner, before)

    def close_unused_queues(self) -> None:
        """Closes the default handles that no call has used since this was called last, and that nobody would miss.

        So a program that serves many keeps no queue in use that nobody uses. The next call by name opens it again.
        """
        for name, queue in list(self._queues.items()):
            if queue.is_idle and not queue.was_used:
                self._close_default(name)
            queue.was_used = False

    @property
    def has_queues(self) -> bool:
        """Whether calls by name have left queues open."""
        return bool(self._queues)

    def promises(self) -> Promises:
        """For calls that a thread makes for several others: what they promise goes to disk at once.

        Calls of this thread on this store return inside `with promises:` before what they promise is on disk, and
        `promises.keep()` brings it there. Nobody may be given an answer of theirs before.
        """
        return self._session.services.store.promises()

    # --- what it is made of

    _queues: Mapping[Any, Queue]

    @abstractmethod
    def connect(self, *, program: str | None = None) -> Any: ...
    @abstractmethod
    def open(
        self, name: str, *, manager: str = "", dynamic_name: str = "*", **options: Unpack[OpenKeywords]
    ) -> Queue: ...
    @abstractmethod
    def _default(self, name: Any) -> Queue: ...
    @abstractmethod
    def _close_default(self, name: Any) -> object: ...
    @abstractmethod
    def _check_no_model(self, name: str) -> None: ...
