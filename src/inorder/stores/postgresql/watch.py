"""Noticing what other processes do: a call that waits is woken when its queue has changed, by whomever.

Who is going to wait first says so in the table `listener`, commits, and looks then. Who has changed a queue asks that
table afterwards, in a transaction of its own, and notifies those it names: so either the look sees the change, or the
one who made it sees the listener. All connections of a process share one that listens.

Once a second one of the calls that wait looks whether the queues have changed without a word, and whether some process
has died: what that one held becomes free.
"""

from __future__ import annotations

import contextlib
import logging
import math
import os
import secrets
import threading
import time
import weakref
from typing import TYPE_CHECKING, Final

import psycopg

from ...errors import ConnectionClosed, InorderError
from ...locks import Bell, Lock
from ..changes import Change
from ..connections import bury_dead
from .faults import told_as_ours
from .link import Link, connected
from .statement import array

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..process import OpenStore
    from .address import Address

log = logging.getLogger("inorder.stores")

LOOK_SECONDS: Final = 1.0
KEPT_SECONDS: Final = 5.0  # a queue is listened to so long after the last wait for it
RECONNECT_SECONDS: Final = 1.0


class Watch:
    """What the calls that wait on one store share. It does not keep the store alive."""

    def __init__(self, store: OpenStore, link: Link, sql: Mapping[str, str]) -> None:
        self._store, self._link, self._sql = weakref.ref(store), link, sql
        self._lock = Lock()
        self.ended = False
        self._waiting = 0
        self._look_at = math.inf
        self._numbers: dict[str, int] = {}
        self._seen: dict[int, str] = {}
        self._listener: Listener | None = None

    # --- who waits

    def attend(self, waiting: int) -> None:
        """So many calls wait now."""
        with self._lock:
            self._waiting = waiting
            if not waiting:
                self._look_at = math.inf
                self._seen.clear()

    def listen(self, name: str) -> None:
        """Before a call looks at a queue for which it is going to wait: from now on its changes are heard."""
        store = self._store()
        assert store is not None, "a call waits on a store that is gone"
        with store.lock:
            if self.ended:
                raise ConnectionClosed("the store was closed while this call waited")
            if self._listener is None or self._listener.is_over:
                self._listener = listener_for(self._link.address, self)
            with told_as_ours(self._link.address):
                values = {"name": name, "channel": self._listener.channel, "seconds": KEPT_SECONDS}
                found = self._link.execute(self._sql["listen"], values)
            for number, schema in found:
                self._numbers[name] = number
                self._listener.attach(schema, number, self)
        with self._lock:
            self._look_at = min(self._look_at, time.monotonic() + LOOK_SECONDS)

    def end(self) -> None:
        """The store is about to be closed: whoever waits has an error."""
        self.ended = True
        if self._listener is not None:
            self._listener.detach(self)

    # --- who hears

    def hear(self, queue: int) -> None:
        """Others have changed a queue: those who wait for it look. Also called where they may have."""
        store = self._store()
        names = [name for name, number in list(self._numbers.items()) if number == queue]
        if store is None or self.ended or not self._waiting or not names:
            return
        store.changes.report([Change(name) for name in names])

    def look(self) -> None:
        """The net beneath the notifications, once a second by one call for all. Raises: what a verb raises."""
        with self._lock:
            now = time.monotonic()
            if now < self._look_at:
                return
            self._look_at = now + LOOK_SECONDS
        store = self._store()
        assert store is not None
        changed = []
        assert self._listener is not None
        values = {
            "queues": array(sorted(set(self._numbers.values()))),
            "channel": self._listener.channel,
            "seconds": KEPT_SECONDS,
        }
        with store.lock, told_as_ours(self._link.address):
            self._link.check()
            for queue, state in self._link.execute(self._sql["listens on"], values):
                if self._seen.get(queue) not in (None, state):
                    changed.append(queue)
                self._seen[queue] = state
        for queue in changed:
            self.hear(queue)
        bury_dead(store)


class QueueBell(Bell):
    """Wakes a thread that waits for a queue: when it is rung, or now and then to look after all."""

    def __init__(self, watch: Watch, queue: str) -> None:
        super().__init__()
        self._watch = watch
        watch.listen(queue)

    def wait(self, seconds: float | None) -> None:
        """As with `Bell`. Raises: what `Watch.look` raises; ConnectionClosed."""
        left = math.inf if seconds is None else seconds
        super().wait(min(left, LOOK_SECONDS))
        if self._watch.ended:
            raise ConnectionClosed("the store was closed while this call waited")
        self._watch.look()


class Listener:
    """The connection of this process that listens at one address, and its thread; it ends when nobody needs it.

    Attributes:
        channel: what it is notified by.
    """

    def __init__(self, address: Address) -> None:
        self._address, self.channel = address, f"inorder_{secrets.token_hex(8)}"
        self._lock = threading.Lock()
        self._users: weakref.WeakSet[Watch] = weakref.WeakSet()
        self._watches: dict[tuple[int, int], weakref.WeakSet[Watch]] = {}
        self.is_over = False
        self.process = os.getpid()
        self._connection = self._connect()
        threading.Thread(target=self._run, name="inorder-listener", daemon=True).start()

    def _connect(self) -> psycopg.Connection[tuple[object, ...]]:
        connection = connected(self._address, "listener")
        connection.execute(f'LISTEN "{self.channel}"')
        return connection

    def serve(self, watch: Watch) -> None:
        """It is needed until the watch is detached, or gone."""
        with self._lock:
            self._users.add(watch)

    def attach(self, schema: int, queue: int, watch: Watch) -> None:
        """From now on a watch hears of a queue."""
        with self._lock:
            self._watches.setdefault((schema, queue), weakref.WeakSet()).add(watch)

    def detach(self, watch: Watch) -> None:
        """A watch hears of nothing more."""
        with self._lock:
            self._users.discard(watch)
            for watches in self._watches.values():
                watches.discard(watch)

    def _run(self) -> None:
        while not self.is_over:
            try:
                for notice in self._connection.notifies(timeout=KEPT_SECONDS):
                    schema, _, queue = notice.payload.partition(" ")
                    self._tell(int(schema), int(queue))
                self._end_unless_needed()
            except psycopg.Error:
                self._reconnect()

    def _tell(self, schema: int, queue: int) -> None:
        with self._lock:
            watches = list(self._watches.get((schema, queue), ()))
        for watch in watches:
            with contextlib.suppress(InorderError):  # whoever waits meets it, too
                watch.hear(queue)

    def _reconnect(self) -> None:
        """After a loss: what was notified meanwhile is not known, so that all look."""
        while not self.is_over:
            try:
                self._connection = self._connect()
                break
            except (psycopg.Error, InorderError):
                time.sleep(RECONNECT_SECONDS)
                self._end_unless_needed()
        for schema, queue in list(self._watches):
            self._tell(schema, queue)

    def _end_unless_needed(self) -> None:
        with _listeners_lock, self._lock:
            if not self._users:
                self.is_over = True
                _listeners.pop(str(self._address), None)
        if self.is_over:
            self._connection.close()


_listeners_lock = threading.Lock()
_listeners: dict[str, Listener] = {}


def listener_for(address: Address, watch: Watch) -> Listener:
    """The listener of this process at an address; a new one if there is none. Raises: what connecting raises."""
    with _listeners_lock:
        found = _listeners.get(str(address))
        if found is None or found.is_over or found.process != os.getpid():
            with told_as_ours(address):
                found = _listeners[str(address)] = Listener(address)
        found.serve(watch)
        return found
