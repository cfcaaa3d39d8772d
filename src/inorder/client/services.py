"""The services of an open store in this process: its connections and their shared parts.

A process opens a store once for all connections, and closes it with the last of them. An abandoned connection is ended
too, but not by the garbage collector itself, which may run in the middle of any line, even of a store's call. The
collector only notes the owner; the next call of any connection to the store ends it.
"""

from __future__ import annotations

import atexit
import contextlib
import logging
import os
import threading
import weakref
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from ..errors import CallInProgress, ConnectionBroken, ConnectionClosed, InorderError, QueueManagerStopping, StoreError
from ..model.message import Message
from ..rules.puts import Program
from ..stores.seam.protocol import LocalStore
from ..support import forks
from ..support.locks import AtEnd, Lock
from .events import Hub, await_end

if TYPE_CHECKING:
    from collections.abc import Hashable

log = logging.getLogger("inorder.session")

T = TypeVar("T")
Carry = Callable[[list[Message | bytes]], list[Message | bytes]]


class DroppedConnection(weakref.ref[object]):
    """A weak reference to a connection, which remembers its number after the object is dropped.

    Its callback is a C function. A Python function could be interrupted, and Python would drop the exception.

    Attributes:
        owner: the connection's number.
    """

    __slots__ = ("owner",)
    owner: int


class Services:
    """The shared state of all connections of this process to one store; made by `services_of` and `connect_at`.

    Args:
        file: the key of a store that was opened by name; the end of the last connection closes that store.
        opens: opens the store again for another connection, if each connection has its own store object.
    """

    def __init__(
        self, store: LocalStore, file: Hashable | None = None, opens: Callable[[], LocalStore] | None = None
    ) -> None:
        self.store = store
        self.now = store.clock.now
        self.telemetry = store.telemetry
        self.carry: Carry | None = None  # an integration's change to messages before a put
        self.leads_to: weakref.WeakSet[Services] = weakref.WeakSet()  # those of owners that its connections have used
        self._file, self._opens = file, opens
        self.coming: set[object] = set()  # connections in the making, for which the file stays open
        self.hub = Hub(store.changes)
        self.forgotten: deque[int | DroppedConnection] = deque()  # owners; the collector may add one at any moment
        self._owners: set[int] = set()
        self._watched: dict[int, list[DroppedConnection]] = {}  # by owner: the references whose drop ends it
        self._lock = Lock()
        self.is_over = False  # the interpreter is ending
        self._life = forks.current
        _all_services.add(self)

    @property
    def is_alone(self) -> bool:
        """Whether each connection has its own store object."""
        return self._opens is not None

    @property
    def connections(self) -> int:
        """The number of open connections."""
        return len(self._owners)

    def connect(self, program: Program) -> int:
        owner = self.store.connect(program)
        try:
            with self._lock:
                self._owners.add(owner)
            self.reap()
        except BaseException:
            self.forgotten.append(owner)
            raise
        return owner

    def forget_with(self, one: object, owner: int) -> None:
        """Makes the next call end the connection after `one` is dropped."""
        dropped = DroppedConnection(one, self.forgotten.append)
        dropped.owner = owner
        self._watched.setdefault(owner, []).append(dropped)

    def another(self, connect: Callable[[Services], T]) -> T:
        """Makes another connection to the same queue manager with `connect`."""
        return connect(self) if self._opens is None else connect_at(None, self._opens, connect)

    def end(self, owner: int) -> None:
        """Ends a connection as if the program had died. Harmless when repeated."""
        try:
            self.store.disconnect(owner)
        except (ConnectionClosed, QueueManagerStopping):  # the store was closed, which ended all connections
            pass
        except StoreError:
            self._has_ended(owner)
            raise
        self._has_ended(owner)

    def _has_ended(self, owner: int) -> None:
        with self._lock:
            self._owners.discard(owner)
            self._watched.pop(owner, None)
            is_last = not self._owners
            thread = self.hub.close() if is_last else None
        if is_last:
            self.telemetry.close()
        await_end(thread)
        if is_last and self._file is not None:
            self.close_unless_used()

    def close_unless_used(self) -> None:
        """Closes the file after its last connection, unless another one was made meanwhile."""
        with _making:
            if not self._owners and not self.coming and _open_files.get(self._file) is self:
                del _open_files[self._file]
                self.store.close_store()

    def reap(self) -> None:
        """Ends the dropped connections; one that cannot be ended now is tried again by a later call."""
        while self.forgotten and not self.is_over:
            found = self.forgotten[0]
            try:
                self.end(found.owner if isinstance(found, DroppedConnection) else found)
            except InorderError as error:
                self.forgotten.rotate(-1)
                if not isinstance(error, CallInProgress):
                    log.exception("an abandoned connection could not be ended; the next try follows")
                return
            with contextlib.suppress(ValueError):  # another thread has removed it
                self.forgotten.remove(found)
        for owner in _members(self.leads_to):  # the connection to it may have been dropped with one of these
            if owner.forgotten:
                owner.reap()

    def end_all(self) -> None:
        """At the interpreter's end: ends all connections, backs out their units, and waits for no thread."""
        if self._life is not forks.current:
            return
        self.is_over = True
        self.telemetry.close()  # these ends are not reported
        for owner in list(self._owners):
            with contextlib.suppress(InorderError):
                self.store.disconnect(owner)
        if self._file is not None:
            with contextlib.suppress(ConnectionBroken):  # it is already closed
                self.store.close_store()

    def serves_this_process(self) -> bool:
        """Whether this process made it, not a parent process before a fork."""
        return self._life is forks.current


def _members(of: weakref.WeakSet[Services]) -> list[Services]:
    """Lists a set to which other threads may add: an addition during the listing ends it with a RuntimeError."""
    while True:
        with contextlib.suppress(RuntimeError):
            return list(of)


_all_services: weakref.WeakSet[Services] = weakref.WeakSet()
_making = Lock()
_open_files: dict[Hashable, Services] = {}


def connect_at(path: Path | None, open_store: Callable[[], LocalStore], connect: Callable[[Services], T]) -> T:
    """Makes a connection with `connect` from the services of a store; the last connection closes the store.

    Args:
        path: the path of the store's file, with all links resolved; None: the connection has its own store object.

    Raises: as `open_store` and `connect`.
    """
    opens = open_store if path is None else None
    file: Hashable = object() if path is None else path
    coming = object()
    alone: Services | None = None
    with AtEnd(_has_come, file, coming) as again, again:
        try:
            if opens is not None:  # outside the lock: other connections need not wait for a server's answer
                alone = Services(open_store(), file, opens)
                _reap_alone()
            with _making:
                services = _open_files.get(file)
                if services is None or not services.serves_this_process():
                    services = _open_files[file] = alone or Services(open_store(), file, opens)
                services.coming.add(coming)
            services.reap()  # outside the lock: it calls observers
            return connect(services)
        except BaseException:
            if alone is not None:  # no program has its connections
                alone.reap()
                if file not in _open_files:
                    alone.store.close_store()
            raise


def _reap_alone() -> None:
    """Ends dropped connections with their own store objects, on which no other connection makes calls."""
    for services in _members(_all_services):
        if services.forgotten and services.is_alone and services.serves_this_process():
            services.reap()


def _has_come(file: Hashable, coming: object) -> None:
    """Notes that a connection is made or has failed. Harmless when repeated."""
    with _making:
        services = _open_files.get(file)
        if services is not None:
            services.coming.discard(coming)
            services.close_unless_used()


def services_of(store: LocalStore) -> Services:
    """Returns the services of a store object; all its connections share them."""
    with _making:
        if not isinstance(store.shared, Services):
            store.shared = Services(store)
        return store.shared


def _forget_parents_files() -> None:
    """Runs in a forked child: another thread of the parent may have been opening a file."""
    global _making  # noqa: PLW0603 - a thread that the child does not have may hold the inherited lock
    _making = Lock()
    _open_files.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_parents_files)


def _leave_daemons_quiet(hook: Callable[[Any], object]) -> Callable[[Any], object]:
    """Wraps `threading.excepthook` for the interpreter's end: hides errors of daemon threads on closed stores."""

    def heard(told: Any) -> None:
        is_daemon = told.thread is not None and told.thread.daemon
        if not (is_daemon and isinstance(told.exc_value, InorderError)):
            hook(told)

    return heard


@atexit.register
def _end_all() -> None:
    if _all_services:
        threading.excepthook = _leave_daemons_quiet(threading.excepthook)
    for services in _members(_all_services):
        services.end_all()
