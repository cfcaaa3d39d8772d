"""Notices changes by other processes: wakes a waiting call when its queue has changed.

A call that will wait first writes a row of the table `listener` and marks the row of the queue, commits, and then
looks. A change of a queue finds in the mark whether there are listeners; if so it reads that table afterwards, in a
separate transaction, and notifies the listed ones. So either the look sees the change, or the change finds the
listener. All connections of a process share one that listens. When it is lost, another one is made, and then all
waiting calls look, because notifications may have been lost.

Once a second, one of the calls that wait on a store checks for all of them, in two statements: whether their queues
have changed without a notification, for example by a process that was killed before it could notify; whether the rows
of the listeners still exist; and whether a process has died, whose messages then become available.
"""

from __future__ import annotations

import contextlib
import logging
import math
import operator
import os
import secrets
import threading
import time
import weakref
from typing import TYPE_CHECKING, Final

import psycopg

from ...errors import ConnectionClosed, InorderError
from ...support.locks import Bell, Lock
from ..engine.connections import end_dead_processes
from ..seam.changes import Change
from .faults import replaced, told_as_ours
from .link import Link, connected
from .statement import array

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from ..engine.process import OpenStore
    from .address import Address

log = logging.getLogger("inorder.stores")

LOOK_SECONDS: Final = 1.0
KEPT_SECONDS: Final = 5.0  # how long to listen to a queue after the last wait for it
RECONNECT_SECONDS: Final = 1.0

Seen = tuple[int, str]  # a queue's number, and a text that differs after each change


class PostgresWatch:
    """The shared state of the calls that wait on one store. It does not keep the store alive."""

    def __init__(self, store: OpenStore, link: Link, sql: Mapping[str, str]) -> None:
        self._store, self._link, self._sql = weakref.ref(store), link, sql
        self._lock = Lock()
        self.ended = False
        self._bells: weakref.WeakSet[PostgresBell] = weakref.WeakSet()  # of the calls that wait now
        self._look_at = math.inf
        self._schema = 0
        self._listener: DatabaseListener | None = None

    # --- waiting calls

    def listen(self, bell: PostgresBell) -> None:
        """Registers for changes of a queue, before a call that will wait looks at it."""
        store = self._store()
        assert store is not None, "a call waits on a store that is gone"
        with store.lock:
            if self.ended:
                raise ConnectionClosed("the store was closed while this call waited")
            if self._listener is None or self._listener.is_over:
                self._listener = listener_for(self._link.address, self)
            bell.seen = self._say([bell.queue]).get(bell.queue)
        with self._lock:
            if not self._bells:
                self._look_at = time.monotonic() + LOOK_SECONDS
            self._bells.add(bell)

    def _say(self, queues: Sequence[str]) -> dict[str, Seen]:
        """Registers as a listener to these queues. Returns the state of each that exists. Under the store's lock.

        Raises: StoreError with `must_reopen`, if another store is there now.
        """
        assert self._listener is not None
        values = {"names": array(queues, str), "channel": self._listener.channel, "seconds": KEPT_SECONDS}
        states = {}
        with told_as_ours(self._link.address):
            for name, number, change, schema in self._link.execute(self._sql["listen to queues"], values):
                states[name] = number, change
                if self._schema not in (0, schema):
                    raise replaced(self._link.address)
                self._schema = schema
        return states

    def _waiting(self) -> list[PostgresBell]:
        with self._lock:
            return list(self._bells)

    def end(self) -> None:
        """Makes waiting calls raise an error, before the store is closed."""
        self.ended = True
        if self._listener is not None:
            self._listener.detach(self)

    # --- notifications

    def hear(self, schema: int, queue: int) -> None:
        """Wakes the calls that wait for a queue, which has changed."""
        if schema == self._schema:
            self._wake({bell.queue for bell in self._waiting() if bell.seen is not None and bell.seen[0] == queue})

    def miss(self) -> None:
        """Wakes all calls, because notifications may have been missed."""
        self._wake({bell.queue for bell in self._waiting()})

    def _wake(self, queues: Collection[str]) -> None:
        store = self._store()
        if queues and store is not None and not self.ended:
            store.changes.report([Change(name) for name in sorted(queues)])

    def look(self) -> None:
        """Checks for missed changes, once a second in one call for all. Raises: the errors of an operation."""
        with self._lock:
            now = time.monotonic()
            if now < self._look_at:
                return
            self._look_at = now + LOOK_SECONDS
        store, changed = self._store(), set()
        assert store is not None
        with store.lock:
            self._link.check()
            bells = self._waiting()
            states = self._say(sorted({bell.queue for bell in bells}))
            for bell in bells:
                if bell.seen != states.get(bell.queue):
                    bell.seen = states.get(bell.queue)
                    changed.add(bell.queue)
            with told_as_ours(self._link.address):
                ((is_anybody_dead,),) = self._link.execute(self._sql["any process is dead"], (store.process,))
        self._wake(changed)
        if is_anybody_dead:
            end_dead_processes(store)


class PostgresBell(Bell):
    """Wakes a thread that waits for a queue: when it is rung, and now and then for a look without a ring.

    Attributes:
        queue: None: the thread waits for many calls, whose own bells listen.
        seen: the state of the queue before the last look; None: it did not exist.
    """

    seen: Seen | None

    def __init__(self, watch: PostgresWatch, queue: str | None) -> None:
        super().__init__()
        self._watch = watch
        if queue is not None:
            self.queue = queue
            watch.listen(self)

    def wait(self, seconds: float | None) -> None:
        """As `Bell.wait`. Raises: the errors of `PostgresWatch.look`; ConnectionClosed."""
        left = math.inf if seconds is None else seconds
        super().wait(min(left, LOOK_SECONDS))
        if self._watch.ended:
            raise ConnectionClosed("the store was closed while this call waited")
        self._watch.look()


class DatabaseListener:
    """This process's connection that listens to one database, and its thread; it ends after its last user.

    Attributes:
        channel: the channel of its notifications.
    """

    def __init__(self, address: Address) -> None:
        self._address, self.channel = address, f"inorder_{secrets.token_hex(8)}"
        self._lock = threading.Lock()
        self._users: weakref.WeakSet[PostgresWatch] = weakref.WeakSet()
        self.is_over = False
        self.process = os.getpid()
        self._connection = self._connect()
        threading.Thread(target=self._run, name="inorder-listener", daemon=True).start()

    def _connect(self) -> psycopg.Connection[tuple[object, ...]]:
        connection = connected(self._address, "listener")
        connection.execute(f'LISTEN "{self.channel}"')
        return connection

    def serve(self, watch: PostgresWatch) -> None:
        """Serves a watch until it is detached, or garbage-collected."""
        with self._lock:
            self._users.add(watch)

    def detach(self, watch: PostgresWatch) -> None:
        """Ends the notifications of a watch."""
        with self._lock:
            self._users.discard(watch)

    def _run(self) -> None:
        while not self.is_over:
            try:
                for notice in self._connection.notifies(timeout=KEPT_SECONDS):
                    schema, _, queue = notice.payload.partition(" ")
                    self._tell(operator.methodcaller("hear", int(schema), int(queue)))
                self._end_unless_needed()
            except psycopg.Error:
                self._reconnect()

    def _tell(self, hear: Callable[[PostgresWatch], object]) -> None:
        with self._lock:
            watches = list(self._users)
        for watch in watches:
            with contextlib.suppress(InorderError):  # waiting calls get it, too
                hear(watch)

    def _reconnect(self) -> None:
        """Connects again after a loss; notifications in between are lost."""
        while not self.is_over:
            try:
                self._connection = self._connect()
                break
            except (psycopg.Error, InorderError):
                time.sleep(RECONNECT_SECONDS)
                self._end_unless_needed()
        self._tell(PostgresWatch.miss)

    def _end_unless_needed(self) -> None:
        with _listeners_lock, self._lock:
            if not self._users:
                self.is_over = True
                _listeners.pop(_place(self._address), None)
        if self.is_over:
            self._connection.close()


_listeners_lock = threading.Lock()
_listeners: dict[frozenset[tuple[str, str]], DatabaseListener] = {}


def _forget_parents_listeners() -> None:
    """In a forked child: a thread that does not exist here may hold the lock."""
    global _listeners_lock  # noqa: PLW0603
    _listeners_lock = threading.Lock()
    _listeners.clear()


os.register_at_fork(after_in_child=_forget_parents_listeners)


def _place(address: Address) -> frozenset[tuple[str, str]]:
    """Returns the database and the user: stores in several schemas share one listener."""
    return frozenset(address.parameters.items())


def listener_for(address: Address, watch: PostgresWatch) -> DatabaseListener:
    """Returns this process's listener for an address; a new one if there is none. Raises: the errors of connecting."""
    with _listeners_lock:
        found = _listeners.get(_place(address))
        if found is None or found.is_over or found.process != os.getpid():
            with told_as_ours(address):
                found = _listeners[_place(address)] = DatabaseListener(address)
        found.serve(watch)
        return found
