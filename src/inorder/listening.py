"""The part of a connection that tells a program what happens: listeners, hooks, observers of events."""

from __future__ import annotations

from .errors import Reason, bad_argument
from .events import Hook, HookName, Listener, Registration
from .options import EVERYTHING, Match
from .session import Services, Session
from .stores.protocol import Store
from .stores.telemetry import Observation, StoreObserver


class Listening:
    """What `QueueManager` has of it."""

    _services: Services
    _session: Session
    _store: Store

    def listen(self, queue: str, listener: Listener, match: Match = EVERYTHING) -> Registration:
        """Calls `listener` with an `Arrival` for each matching message that becomes visible on a local queue.

        It is called on a thread of its own, after the fact; what it raises is logged (A-37).
        """
        with self._session:
            definition = self._store.queue(queue)
            if definition.type != "local":
                raise bad_argument("queue", queue, "a local queue", Reason.OBJECT_TYPE_ERROR)
            return self._services.hub.listen(queue, listener, match)

    def hook(self, name: HookName, called: Hook) -> Registration:
        """Calls `called(queue, message)` after each "put", and for each message "expired" (A-36).

        "duplicate" is told of puts refused as duplicates. Called like a listener; what it raises is logged.
        """
        with self._session:
            return self._services.hub.hook(name, called)

    def observe(self, observer: StoreObserver) -> Observation:
        """Calls `observer` with a `StoreEvent` for each call on the store, of all connections of this process to it.

        It is called on the thread of the call, when that is over and before the caller has the answer; so it should be
        quick. What it raises is logged. Calls that it makes itself, on another connection, report nothing. It ends with
        `Observation.cancel`, or with the last connection. docs/reference/events.md lists the events.

        Raises: ArgumentError, `observer` cannot be called.
        """
        with self._session:
            return self._services.telemetry.observe(observer)
