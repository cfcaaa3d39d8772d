"""The part of a connection that works in other threads: listeners, and the end of waits.

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
from ..stores.seam.telemetry import Observation, StoreEvent
from .events import Registration, check_callable
from .internals import Internals
from .services import Services
from .session import Session

log = logging.getLogger("inorder.listening")

LOOK_SECONDS = 30.0  # the longest wait of one browse; between two it checks whether its connection has ended
INHIBITED_SECONDS = 0.5  # between two tries while gets are inhibited
JOIN_SECONDS = 5.0  # how long `cancel` waits for a running function
TO_LISTEN = OpenOptions(browse=True, read_order="strict")
THE_END = (ConnectionClosed, ConnectionBroken, QueueManagerStopping)


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrival:
    """The arrival of a message that everyone can see, for a listener."""

    queue: str
    uid: UniqueId | None
    token: bytes
    message_id: bytes
    correlation_id: bytes
    priority: int | None


Told = Callable[[Arrival], object]


class Listener:
    """A listener of a queue, made by `QueueManager.listen`; it ends with the connection, or by `cancel`.

    Attributes:
        error: the error that ended it, which was also logged; None: there was none.
    """

    def __init__(self, own: Connected, queue: str, told: Told, match: Match) -> None:
        self.queue, self.match, self.error = queue, match, None
        self.own = own
        self._told, self._is_over = told, threading.Event()
        self._handle = own.internals.open_growing(queue, TO_LISTEN)
        self._thread = threading.Thread(target=self._run, name=f"inorder listener {queue}", daemon=True)
        self._thread.start()

    error: InorderError | None

    @property
    def is_alive(self) -> bool:
        """Whether it is still running."""
        return self._thread.is_alive() and not self._is_over.is_set()

    def cancel(self) -> None:
        """Ends the listener. Harmless when repeated.

        After the return the function is not called any more. If a call of it is running, this waits at most 5 seconds.
        """
        self._is_over.set()
        self.own.internals.abandon()
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
            self.own.internals.abandon()

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
    """The calls of `QueueManager` for listeners."""

    _services: Services
    _session: Session
    _store: Store

    def listen(self, queue: str, listener: Told, match: Match = EVERYTHING) -> Listener:
        """Calls `listener` with an `Arrival` for each matching message of a local queue, from any process.

        It reports the messages on the queue first, then those that arrive, each once, in the order of the queue, as
        soon as a strict browse would show them. A message that somebody gets before that is skipped. The listener runs
        on its own thread, one call at a time; its exceptions are logged. It receives no body: a get that matches
        the arrival's `token` fetches the message.

        Raises: UnknownQueue 2085. ArgumentError 2043, the queue is not local. OrderUnsupported, the queue keeps no
        order. MatchError. ArgumentError, `listener` is not callable.
        """
        if not isinstance(match, Match):
            raise MatchError(f"match must be a Match, not {written(match)}")
        selector_of(match)  # raises if the selector is wrong
        check_callable(listener)
        with self._session:
            definition = self._store.queue(queue)
        if definition.type != "local":
            raise bad_argument("queue", queue, "a local queue", Reason.OBJECT_TYPE_ERROR)
        own = self.connect()
        try:
            made = Listener(own, queue, listener, match)
        except BaseException:
            own.internals.abandon()
            raise
        self._session.keep(made)
        # If this connection is dropped without an end, the listener's connection ends too.
        own.internals.end_with(self._session)
        return made

    def end_waits(self) -> bool:
        """Ends the wait of a call on this connection; another thread calls it, and it returns at once.

        The waiting call raises WaitEnded 9022. The connection and its unit of work stay open. A call that has already
        found its message returns it.

        Returns: whether a call was waiting. A call that begins to wait later is not affected.

        Raises: ConnectionClosed 2018.
        """
        self._session.check()  # no lock: a call is in progress
        sessions = (self._session, *self._session.owners.values())
        return any(one.store.end_waits(one.owner) for one in sessions)

    @abstractmethod
    def connect(self, *, program: str | None = None) -> Connected: ...


class Connected(Protocol):
    """The connection that `connect` returns."""

    @property
    def internals(self) -> Internals: ...


__all__ = ["Arrival", "Listener", "Observation", "Registration", "StoreEvent"]
