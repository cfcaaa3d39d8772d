"""The state of an open store in one process: connections, handles, definitions, and the lock of its operations."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Protocol, TypeVar
from weakref import ref

from ...errors import CallInProgress, ConnectionBroken, forked
from ...model.message import Transmission
from ...model.options import OpenOptions
from ...rules.puts import Program, PutPlan
from ...support import forks
from ...support.clock import Clock
from ...support.locks import Lock
from ..seam.backend import Backend, Host
from ..seam.changes import Changes
from ..seam.definitions import Definitions
from ..seam.gathering import Emit, Gathering, Step
from ..seam.records import PutOutcome

T = TypeVar("T")
NO_NUMBERS: Iterator[int] = iter(())
NOTHING_RESERVED = range(0)


@dataclass(slots=True, eq=False)
class OpenConnection:
    """A connection of this process.

    Attributes:
        unit: the number of its unit of work, if it has one (R5.1); `calls`: puts and gets made in it (R5.8).
        record: the number of the record that its units of work share, once there is one.
        started_at: the start of a unit of work that this record contains.
        ended: the number of units of work that it has ended.
        keyed: the value of `ended` during the last unit that put a message under a key.
        waits: a record says that one of its calls waits.
        handles: the number of its open handles.
        is_leased: its unit of work is a lease, which may end independently.
        reserved: the numbers reserved for unique ids of its puts and not used yet.
        user: the user for whom it puts messages and begins confirm ids and lock ids; None: the program's own user.
    """

    id: int
    program: Program
    unit: int | None = None
    record: int | None = None
    started_at: float = 0.0
    calls: int = 0
    ended: int = 0
    keyed: int = -1
    waits: bool = False
    handles: int = 0
    is_leased: bool = False
    reserved: range = NOTHING_RESERVED
    user: str | None = None

    @property
    def holder(self) -> Program:
        """The holder of units that begin now."""
        return self.program if self.user is None else self.program._replace(user=self.user)


@dataclass(slots=True, eq=False, kw_only=True)
class OpenHandle:
    """An open queue of this process.

    Attributes:
        name: the queue as opened, and `manager` the queue manager given with it. `queue_name` and `queue` are the local
            queue's name and number, `transmission` the destination of its messages after it.
        is_direct: it was opened by its own name, so no other definition applies.
        exclusive: no other handle may be open for input.
        has_locked: it has a browse lock, or has had one since it last released all.
        plan: the shared part of its last puts, valid for the definitions from which it was made.
    """

    id: int
    connection: OpenConnection
    queue: int
    queue_name: str
    name: str
    options: OpenOptions
    exclusive: bool
    is_direct: bool
    manager: str = ""
    transmission: Transmission | None = None
    has_locked: bool = False
    plan: PutPlan | None = None


class _Latest(threading.local):
    """The lock of the operation that a thread began last."""

    lock: Callable[[], VerbLock | None] = staticmethod(lambda: None)


_latest = _Latest()


class VerbLock(Lock):
    """Held while an operation runs: one at a time in a process, and only in the process that opened the store.

    A thread may hold it for several operations in a row (`EnginePromises.at_once`).

    Raises: ForkedConnection, in a forked child, whose copy of the store is useless; CallInProgress, if a finalizer or a
    signal handler makes a call in the middle of an operation of its own thread, on this store or on another one, which
    may be another connection to the same database, and would wait for that operation.
    """

    def __init__(self, store: OpenStore) -> None:
        super().__init__()
        self._store, self._life, self._ref = store, forks.current, ref(self)

    def recovered(self) -> bool:
        """Releases the lock if `at_once` has ended without doing so, because of too many exceptions. Returns whether it
        did.
        """
        holder = self._store.gathering.holder
        if holder is None or holder.at_it.is_mine or not self._is_owned():
            return False
        with holder.at_it:  # a finalizer's call meanwhile counts as inside `at_once`
            holder.let_go()
        return True

    def __enter__(self) -> None:
        if self._life is not forks.current:
            raise forked(self._store.path)
        gathering, latest = self._store.gathering, _latest.lock()
        if not self._is_owned():
            if latest is not None and latest._is_owned() and latest._store.unfinished is not None:
                raise CallInProgress("a call was made from inside one on another store, by a finalizer")
            if gathering.holder is not None and not gathering.holder.at_it.is_mine:
                gathering.holder = None  # too many exceptions came before it got the lock
        elif not self.recovered() and (gathering.holder is None or self._store.unfinished is not None):
            raise CallInProgress("a call was made from inside another one, by a finalizer or a signal handler")
        try:
            self.acquire()
            _latest.lock = self._ref
        except BaseException:
            try:  # noqa: SIM105 - `suppress` is not written in C
                self.release()
            except RuntimeError:  # the exception came while it waited
                pass
            raise


class Undoable(Protocol):
    """A running operation."""

    def undo(self, error: BaseException) -> None:
        """Undoes everything. Harmless when repeated."""


class EnginePromises:
    """See `protocol.Promises` and `Gatherer`."""

    def __init__(self, store: OpenStore) -> None:
        self._store = store
        self.at_it = Lock()  # held inside `at_once`
        self._ticket: int | None = None
        self._step: Step | None = None
        self._puts: list[PutOutcome] = []
        self._new: list[Emit] = []  # from calls inside the present `with`
        self._untold: list[Emit] = []  # from earlier calls, until `keep`
        self.count = self._before = 0

    def add(self, ticket: int, answer: object) -> None:
        if isinstance(answer, PutOutcome):
            self._puts.append(answer)
        self._ticket = ticket if self._ticket is None else max(ticket, self._ticket)
        self.count += 1

    def put_off(self, step: Step) -> None:
        self._step = step

    def emit_later(self, emit: Emit) -> None:
        self._new.append(emit)

    def take_puts(self) -> Sequence[PutOutcome]:
        puts, self._puts = self._puts, []
        return puts

    @property
    def is_empty(self) -> bool:
        return self._ticket is None and self._step is None

    @property
    def is_quick(self) -> bool:
        return self._step is None and (self._ticket is None or self._store.host.syncs_quickly)

    def keep(self) -> None:
        if self._store.gathering.promises is self:  # an exception from outside interrupted `__exit__`
            self._end()
        (ticket, self._ticket), (step, self._step) = (self._ticket, None), (self._step, None)
        failure: BaseException | None = None
        try:
            if ticket is not None:
                self._store.host.sync(ticket)
        except BaseException as error:
            failure = error
            raise
        finally:
            if self._untold:
                untold, self._untold = self._untold, []
                for emit in untold:
                    emit(failure)
        if step is not None:
            self._store.host.after(step)

    def at_once(self, call: Callable[[], T]) -> tuple[T] | None:
        """See `protocol.Promises`.

        After an exception from outside in the call, and one more in the attempt to let go, nothing is held that others
        wait for. After more of them, this thread's next operation lets go.
        """
        store = self._store
        lock = store.lock
        if lock._is_owned() and not lock.recovered():
            return None
        with self.at_it:
            store.gathering.holder = self
            try:
                try:
                    if not store.hold():
                        return None
                except OSError as error:
                    if error.errno is None:  # it is a time-out of the caller's
                        raise
                    return None  # the thread that then makes the call will raise it
                self.__enter__()
                return (call(),)
            finally:
                try:
                    try:
                        self.let_go()
                    finally:
                        if lock._is_owned():
                            self.let_go()
                finally:
                    self._end()

    def let_go(self) -> None:
        """Lets others write again, and this thread's operations sync their own commits. Harmless when repeated."""
        gathering = self._store.gathering
        if gathering.promises is self:
            gathering.promises = None
        self._store.let_go()

    def _end(self) -> None:
        self._store.gathering.promises = None
        self._store.report()
        if self._new:
            self._emit()

    def _emit(self) -> None:
        """Notifies observers of calls that deferred nothing at once; of others after `keep`."""
        new, self._new = self._new, []
        if self.count > self._before:
            self._untold += new
        else:
            for emit in new:
                emit(None)

    def __enter__(self) -> None:
        self._before, self._store.gathering.promises = self.count, self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end()


class OpenStore:
    """The state of a store that this process has open; the operations are subclasses of this class.

    `protocol.LocalStore` documents the methods that have no text here.

    Attributes:
        numbers: identifying numbers that this process has drawn and not used yet.
        page_messages: see `protocol.Store`.

    Args:
        path: the absolute path of its file, or ":memory:" if it has none.
        name: of the queue manager; it is part of generated ids.
    """

    page_messages = 1
    again = None

    def __init__(self, backend: Backend, host: Host, path: str, name: str, clock: Clock) -> None:
        self.backend, self.host, self.path, self.name, self.clock = backend, host, path, name, clock
        self.lock, self.gathering = VerbLock(self), Gathering()
        self.unfinished: Undoable | None = None  # the running operation, or one left half done
        self.changes = Changes()
        self.definitions = Definitions()
        self.process = 0
        self.numbers = NO_NUMBERS
        self.connections: dict[int, OpenConnection] = {}
        self.handles: dict[int, OpenHandle] = {}
        self.is_closed = False

    def trigger(self, operation: Any) -> None:
        """Puts the trigger messages that are due after an operation (R4.9)."""
        raise NotImplementedError

    def end_dead_processes(self) -> bool:
        raise NotImplementedError

    def refuse_lost(self) -> None:
        self.host.refuse_lost()

    def commits(self) -> int | None:
        return self.host.commits()

    def promises(self) -> EnginePromises:
        return EnginePromises(self)

    def set_user(self, owner: int, user: str | None) -> str | None:
        connection = self.connection(owner)
        before, connection.user = connection.user, user
        return before

    def hold(self) -> bool:
        """Lets this thread run its next operations without waiting for others. Returns whether it can.

        `let_go` must follow in either case. No other thread or process can write until then.
        """
        return self.lock.acquire(blocking=False) and self.host.hold()

    def let_go(self) -> None:
        """Ends `hold`. Harmless when repeated, and when this thread holds nothing."""
        lock, gathering = self.lock, self.gathering
        if lock._is_owned():
            self.host.let_go()
            gathering.holder = None  # nothing can interrupt between this and the release
            lock.release()
        else:
            gathering.holder = None

    def report(self) -> None:
        """Delivers the operations' changes to listeners, outside of locks and of `EnginePromises`."""
        if self.changes.waiting and self.gathering.promises is None and not self.lock.is_mine:
            self.changes.hand_out()

    def refuse_wait(self, remedy: str = "look with wait=0") -> None:
        """Raises: CallInProgress, inside `EnginePromises`, where other callers would have to wait too."""
        self.lock.recovered()
        if self.gathering.promises is not None:
            raise CallInProgress(f"a brief call cannot wait, because others would have to wait with it: {remedy}")

    def connection(self, owner: int) -> OpenConnection:
        if owner not in self.connections:
            raise ConnectionBroken("the connection was lost: connect again")
        return self.connections[owner]

    def handle(self, handle: int) -> OpenHandle:
        if handle not in self.handles:
            raise ConnectionBroken("the connection of this handle was lost: connect again")
        return self.handles[handle]
