"""The services of an open store in this process: its connections and their shared parts.

A process opens a store once for all connections, and closes it with the last of them. An abandoned connection is ended
too, but not by the garbage collector itself, which may run in the middle of any line, even of a verb. The collector
only notes the owner; the next call of any connection to the store ends it.
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
    """What is known of a connection when its object is dropped.

    Its callback is a function written in C: one written in Python may be interrupted, and Python drops the exception.

    Attributes:
        owner: its number.
    """

    __slots__ = ("owner",)
    owner: int


class Services:
    """What all connections of this process to one store share; made by `services_of` and `connect_at`.

    Args:
        file: what stands for the store that was opened by name: the end of the last connection closes it.
        opens: opens the store again for another connection, where each has a store object of its own.
    """

    def __init__(
        self, store: LocalStore, file: Hashable | None = None, opens: Callable[[], LocalStore] | None = None
    ) -> None:
        self.store = store
        self.now = store.clock.now
        self.telemetry = store.telemetry
        self.carry: Carry | None = None  # what an integration does with messages before they are put
        self._file, self._opens = file, opens
        self.coming: set[object] = set()  # connections that are being made at the file: it stays open for them
        self.hub = Hub(store.changes)
        self.forgotten: deque[int | DroppedConnection] = deque()  # owners; the collector may add one at any moment
        self._owners: set[int] = set()
        self._watched: dict[int, list[DroppedConnection]] = {}  # of each owner, what it is forgotten with
        self._lock = Lock()
        self.is_over = False  # the interpreter ends
        self._life = forks.current
        _all_services.add(self)

    @property
    def is_alone(self) -> bool:
        """Whether the store object is for one connection."""
        return self._opens is not None

    @property
    def connections(self) -> int:
        """How many connections are open."""
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
        """When `one` is dropped the connection is forgotten, unless it has ended by then."""
        dropped = DroppedConnection(one, self.forgotten.append)
        dropped.owner = owner
        self._watched.setdefault(owner, []).append(dropped)

    def another(self, connect: Callable[[Services], T]) -> T:
        """What `connect` makes for another connection to the same queue manager."""
        return connect(self) if self._opens is None else connect_at(None, self._opens, connect)

    def end(self, owner: int) -> None:
        """Ends a connection as if the program had died. Harmless when repeated."""
        try:
            self.store.disconnect(owner)
        except (ConnectionClosed, QueueManagerStopping):  # the store was closed, which ended all of them
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
        """The file's last connection has gone; unless another one came meanwhile, the file is closed."""
        with _making:
            if not self._owners and not self.coming and _open_files.get(self._file) is self:
                del _open_files[self._file]
                self.store.close_store()

    def reap(self) -> None:
        """Ends the connections that were forgotten; one that cannot be ended now is kept for the next time."""
        while self.forgotten and not self.is_over:  # nearly never, and each call asks
            found = self.forgotten[0]
            try:
                self.end(found.owner if isinstance(found, DroppedConnection) else found)
            except InorderError as error:
                self.forgotten.rotate(-1)
                if not isinstance(error, CallInProgress):
                    log.exception("an abandoned connection could not be ended; the next try follows")
                return
            with contextlib.suppress(ValueError):  # another thread was at it, too
                self.forgotten.remove(found)

    def end_all(self) -> None:
        """The interpreter ends: units are backed out, nobody is awaited."""
        if self._life is not forks.current:
            return
        self.is_over = True
        self.telemetry.close()  # nobody hears of the end of all
        for owner in list(self._owners):
            with contextlib.suppress(InorderError):
                self.store.disconnect(owner)
        if self._file is not None:
            with contextlib.suppress(ConnectionBroken):  # it has ended already
                self.store.close_store()

    def serves_this_process(self) -> bool:
        """Whether it was made by this process, and not by the one from which it was forked."""
        return self._life is forks.current


_all_services: weakref.WeakSet[Services] = weakref.WeakSet()
_making = Lock()
_open_files: dict[Hashable, Services] = {}


def connect_at(path: Path | None, open_store: Callable[[], LocalStore], connect: Callable[[Services], T]) -> T:
    """What `connect` makes of the services of a store, which are closed with the store's last connection.

    Args:
        path: of the store's file, with all links resolved; None: the connection has a store object of its own.
    Raises: what `open_store` and `connect` raise.
    """
    opens = open_store if path is None else None
    file: Hashable = object() if path is None else path
    coming = object()
    alone: Services | None = None
    with AtEnd(_has_come, file, coming) as again, again:
        try:
            if opens is not None:  # nobody else comes here: others need not wait until a server has answered
                alone = Services(open_store(), file, opens)
                _reap_alone()
            with _making:
                services = _open_files.get(file)
                if services is None or not services.serves_this_process():
                    services = _open_files[file] = alone or Services(open_store(), file, opens)
                services.coming.add(coming)
            services.reap()  # outside the lock: observers hear of what is called here
            return connect(services)
        except BaseException:
            if alone is not None:  # what has been connected there by now nobody has
                alone.reap()
                if file not in _open_files:
                    alone.store.close_store()
            raise


def _reap_alone() -> None:
    """Connections that were dropped, and had a store object of their own, which nobody else calls."""
    for services in list(_all_services):
        if services.forgotten and services.is_alone and services.serves_this_process():
            services.reap()


def _has_come(file: Hashable, coming: object) -> None:
    """It is connected, or has given up. Harmless when repeated."""
    with _making:
        services = _open_files.get(file)
        if services is not None:
            services.coming.discard(coming)
            services.close_unless_used()


def services_of(store: LocalStore) -> Services:
    """The services of a store, which carries them: all connections to it meet in one hub."""
    with _making:
        if not isinstance(store.shared, Services):
            store.shared = Services(store)
        return store.shared


def _forget_parents_files() -> None:
    """In a child made by fork; another thread of the parent may have been opening a file."""
    global _making  # noqa: PLW0603 - the lock that was inherited is held by a thread that is not here
    _making = Lock()
    _open_files.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_parents_files)


def _leave_daemons_quiet(hook: Callable[[Any], object]) -> Callable[[Any], object]:
    """A `threading.excepthook` for the interpreter's end: daemon threads run into closed stores, which is no news."""

    def heard(told: Any) -> None:
        is_daemon = told.thread is not None and told.thread.daemon
        if not (is_daemon and isinstance(told.exc_value, InorderError)):
            hook(told)

    return heard


@atexit.register
def _end_all() -> None:
    if _all_services:
        threading.excepthook = _leave_daemons_quiet(threading.excepthook)
    for services in list(_all_services):
        services.end_all()
