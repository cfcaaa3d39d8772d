"""The part of a connection that reports events to a program: listeners, hooks, observers.

A *listener* is a function that is called for each message. It has its own thread and its own connection with a waiting
strict browse. So it receives messages from any process, each once while it lives, and misses none that stays on the
queue until the browse reaches it (B-38). Messages come in the order of the queue, as for a strict reader: an
uncommitted, delayed or held message holds back those after it on its level until it is settled (B-6). Messages stay in
the store until the function is ready for them. A queue that keeps no order does not support such a browse, and is
refused.
"""

from __future__ import annotations

import logging
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from ..errors import (
    ConnectionBroken,
    ConnectionClosed,
    GetInhibited,
    InorderError,
    MatchError,
    NoMessageAvailable,
    OrderPending,
    QueueManagerStopping,
    Reason,
    bad_argument,
    written,
)
from ..model.message import Message, UniqueId
from ..model.options import EVERYTHING, GetOptions, Match, OpenOptions
from ..rules.selectors import selector_of
from ..stores.seam.protocol import Store
from ..stores.seam.telemetry import Observation, StoreEvent, StoreObserver
from .events import Hook, HookName, Registration, check_callable
from .queue import Queue
from .services import Services
from .session import Session

log = logging.getLogger("inorder.listening")

LOOK_SECONDS = 30.0  # so often it sees whether the connection that it belongs to was forgotten
INHIBITED_SECONDS = 0.5  # so often it looks again while gets are inhibited
JOIN_SECONDS = 5.0  # so long its end waits for a function that is being called
TO_LISTEN = OpenOptions(browse=True, read_order="strict")
THE_END = (ConnectionClosed, ConnectionBroken, QueueManagerStopping)


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrival:
    """A message is on a queue, for everyone to see."""

    queue: str
    uid: UniqueId | None
    token: bytes
    message_id: bytes
    correlation_id: bytes
    priority: int | None


Told = Callable[[Arrival], object]


class Own(Protocol):
    """A connection that a listener has for itself."""

    @property
    def owner(self) -> int: ...

    def open_growing(self, name: str, options: OpenOptions) -> Queue: ...

    def abandon(self) -> None: ...


class Listener:
    """A listener of a queue, made by `QueueManager.listen`; it ends with the connection, or by `cancel`.

    Attributes:
        error: what ended it, if that was an error; it was logged.
    """

    def __init__(self, own: Own, queue: str, told: Told, match: Match) -> None:
        self.queue, self.match, self.error = queue, match, None
        self.own = own
        self._told, self._is_over = told, threading.Event()
        self._handle = own.open_growing(queue, TO_LISTEN)
        self._thread = threading.Thread(target=self._run, name=f"inorder listener {queue}", daemon=True)
        self._thread.start()

    error: InorderError | None

    @property
    def is_alive(self) -> bool:
        """Whether it goes on."""
        return self._thread.is_alive() and not self._is_over.is_set()

    def cancel(self) -> None:
        """Ends it. Harmless when repeated. When this returns it is called no more, unless a call takes 5 seconds."""
        self._is_over.set()
        self.own.abandon()
        if self._thread is threading.current_thread():
            return
        self._thread.join(JOIN_SECONDS)
        if self._thread.is_alive():
            log.warning("a listener of %s did not return within %s s; it is left running", self.queue, JOIN_SECONDS)

    def _run(self) -> None:
        try:
            self._listen()
        except THE_END as end:
            if not self._is_over.is_set():
                log.info("a listener of %s ends: %s", self.queue, end)
        except InorderError as error:
            self.error = error
            log.error("a listener of %s ends: %s", self.queue, error)
        finally:
            self._is_over.set()
            self.own.abandon()

    def _listen(self) -> None:
        browse = self._handle.browse_first
        looks = GetOptions(browse="first", wait=LOOK_SECONDS, match=self.match, buffer=0, accept_truncated=True)
        while not self._is_over.is_set():
            try:
                message = browse(looks)
            except (NoMessageAvailable, OrderPending):
                continue
            except GetInhibited:
                self._is_over.wait(INHIBITED_SECONDS)
                continue
            browse = self._handle.browse_next
            self._tell(message)

    def _tell(self, message: Message) -> None:
        arrival = Arrival(
            queue=self.queue,
            uid=message.uid,
            token=message.token,
            message_id=message.message_id,
            correlation_id=message.correlation_id,
            priority=message.priority,
        )
        try:
            self._told(arrival)
        except BaseException:
            log.exception("a listener of %s failed; the queue is not affected", self.queue)

    def __repr__(self) -> str:
        return f"<listener of {self.queue}{'' if self.is_alive else ', ended'}>"


class Listening(ABC):
    """What `QueueManager` has of it."""

    _services: Services
    _session: Session
    _store: Store

    def listen(self, queue: str, listener: Told, match: Match = EVERYTHING) -> Listener:
        """Calls `listener` with an `Arrival` for each matching message of a local queue, from any process.

        It hears of what is there when it begins, then of what comes, each once, in the order of the queue, when a
        strict browse would show it. It is called on a thread of its own, and given the next message when it has
        returned; what it raises is logged. The message is not given to it: a get with the arrival's `token` fetches it.
        A message that somebody takes before it is reached is passed over.

        Raises: UnknownQueue 2085. ArgumentError 2043, it is not a local queue. OrderUnsupported, it keeps no order.
        MatchError. ArgumentError, `listener` cannot be called.
        """
        if not isinstance(match, Match):
            raise MatchError(f"match must be a Match, not {written(match)}")
        selector_of(match)  # which says what is wrong in it
        check_callable(listener)
        with self._session:
            definition = self._store.queue(queue)
        if definition.type != "local":
            raise bad_argument("queue", queue, "a local queue", Reason.OBJECT_TYPE_ERROR)
        own = self.connect()
        try:
            made = Listener(own, queue, listener, match)
        except BaseException:
            own.abandon()
            raise
        self._session.keep(made)
        # A connection that is dropped is not ended by the collector: the listener's is forgotten with it.
        own._session.services.forget_with(self._session, own.owner)
        return made

    @abstractmethod
    def connect(self, *, program: str | None = None) -> Connected: ...

    def hook(self, name: HookName, called: Hook) -> Registration:
        """Calls `called(queue, message)` for what calls of this process do, on any queue.

        "put" is reported after each put, "visible" when everyone can see a message, "expired" when one is
        discarded by a call of this process, "duplicate" of puts refused as duplicates. All hooks are called on one
        thread of their own, in the order of what happened; what they raise is logged.

        Rules: A-36.
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


class Connected(Own, Protocol):
    """What `connect` of a connection returns, as far as it matters here."""

    _session: Session


__all__ = ["Arrival", "Listener", "Observation", "Registration", "StoreEvent"]
