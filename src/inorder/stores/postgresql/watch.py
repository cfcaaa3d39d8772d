"""Noticing what other processes do: a call that waits is woken when its queue has changed.

A call that is going to wait first writes a row of the table `listener` and marks the row of the queue, commits, and
looks then. A change of a queue sees from the mark whether there are listeners; if so it reads that table afterwards, in
a transaction of its own, and notifies those it names. So either the look sees the change, or the change sees the
listener. All connections of a process share one that listens; when it is lost another one is made, and then all look,
so that a wait is woken at once whatever was not heard.

Once a second one of the calls that wait on a store looks, for all of them and in two statements, whether their queues
have changed without a notification, as by a process that was killed before it could notify; whether the rows that say
who listens are still there; and whether some process has died: what that one held becomes free.
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
KEPT_SECONDS: Final = 5.0  # how long a queue is listened to after the last wait for it
RECONNECT_SECONDS: Final = 1.0

Seen = tuple[int, str]  # a queue's number, and what is another with each change


class PostgresWatch:
    """What the calls that wait on one store share. It does not keep the store alive."""

    def __init__(self, store: OpenStore, link: Link, sql: Mapping[str, str]) -> None:
        self._store, self._link, self._sql = weakref.ref(store), link, sql
        self._lock = Lock()
        self.ended = False
        self._bells: weakref.WeakSet[PostgresBell] = weakref.WeakSet()  # of those who wait now
        self._look_at = math.inf
        self._schema = 0
        self._listener: DatabaseListener | None = None

    # --- who waits

    def listen(self, bell: PostgresBell) -> None:
        """Before a call looks at a queue for which it is going to wait: from now on its changes are heard."""
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
        """Says that somebody waits for these queues; how each is now, if it is there. Under the store's lock.

        Raises: StoreError with `must_reopen`, another store is there now.
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
        """The store is about to be closed: waiting calls raise an error."""
        self.ended = True
        if self._listener is not None:
            self._listener.detach(self)

    # --- who hears

    def hear(self, schema: int, queue: int) -> None:
        """A queue has changed: those who wait for it look."""
        if schema == self._schema:
            self._wake({bell.queue for bell in self._waiting() if bell.seen is not None and bell.seen[0] == queue})

    def miss(self) -> None:
        """Nobody knows what changed while nothing could be heard: all look."""
        self._wake({bell.queue for bell in self._waiting()})

    def _wake(self, queues: Collection[str]) -> None:
        store = self._store()
        if queues and store is not None and not self.ended:
            store.changes.report([Change(name) for name in sorted(queues)])

    def look(self) -> None:
        """The net beneath the notifications, once a second by one call for all. Raises: what a verb raises."""
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
    """Wakes a thread that waits for a queue: when it is rung, or now and then to look after all.

    Attributes:
        seen: how the queue was before the last look; None: it was gone.
    """

    seen: Seen | None

    def __init__(self, watch: PostgresWatch, queue: str) -> None:
        super().__init__()
        self._watch, self.queue = watch, queue
        watch.listen(self)

    def wait(self, seconds: float | None) -> None:
        """As with `Bell`. Raises: what `PostgresWatch.look` raises; ConnectionClosed."""
        left = math.inf if seconds is None else seconds
        super().wait(min(left, LOOK_SECONDS))
        if self._watch.ended:
            raise ConnectionClosed("the store was closed while this call waited")
        self._watch.look()


class DatabaseListener:
    """The connection of this process that listens to one database, and its thread; it ends when nobody needs it.

    Attributes:
        channel: what it is notified by.
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
        """It is needed until the watch is detached, or gone."""
        with self._lock:
            self._users.add(watch)

    def detach(self, watch: PostgresWatch) -> None:
        """A watch hears of nothing more."""
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
            with contextlib.suppress(InorderError):  # waiting calls meet it, too
                hear(watch)

    def _reconnect(self) -> None:
        """After a loss: what was notified meanwhile is not known."""
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
    """In a child made by fork: the lock may be held by a thread that is not here."""
    global _listeners_lock  # noqa: PLW0603
    _listeners_lock = threading.Lock()
    _listeners.clear()


os.register_at_fork(after_in_child=_forget_parents_listeners)


def _place(address: Address) -> frozenset[tuple[str, str]]:
    """The database, and as whom: stores in several schemas have one listener."""
    return frozenset(address.parameters.items())


def listener_for(address: Address, watch: PostgresWatch) -> DatabaseListener:
    """The listener of this process for an address; a new one if there is none. Raises: what connecting raises."""
    with _listeners_lock:
        found = _listeners.get(_place(address))
        if found is None or found.is_over or found.process != os.getpid():
            with told_as_ours(address):
                found = _listeners[_place(address)] = DatabaseListener(address)
        found.serve(watch)
        return found
