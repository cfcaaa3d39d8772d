"""Connections (Hconn) and open objects (Hobj) of this process, and the threads that may use them.

A unit of work belongs to its connection, whichever thread calls: a runtime like Node's makes each call from another
thread of a pool. So the connection admits every caller, and the calls take turns here.

Rules: M-7 to M-9.
"""

from __future__ import annotations

import atexit
import contextlib
import itertools
import logging
import threading
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, Protocol

from ..client.manager import QueueManager
from ..client.users import User
from ..errors import CallInProgress, InorderError, Reason
from ..model.message import Row, UniqueId
from ..rules.authorities import Authority
from ..support import forks
from . import handles as message_handles
from .constants import MQCNO_HANDLE_SHARE_BLOCK, MQCNO_HANDLE_SHARE_NO_BLOCK, MQCNO_HANDLE_SHARE_NONE
from .refusals import MQCC_OK, Codes, Refused
from .settings import StoreSettings

if TYPE_CHECKING:
    from ..client.queue import Queue

SHARES: Final = MQCNO_HANDLE_SHARE_NONE | MQCNO_HANDLE_SHARE_BLOCK | MQCNO_HANDLE_SHARE_NO_BLOCK

_log = logging.getLogger("inorder.mqi")

_handles = itertools.count(1)  # the bindings take 0 for none
_connections: dict[int, MqiConnection] = {}
_left: deque[tuple[int, Callable[[], Codes]]] = deque()  # calls of finalizers, with their threads


class MqiConnection:
    """A program's connection to a queue manager; a `with` block of it is a call.

    Attributes:
        name: the name of the queue manager as the program gave it; empty: the default one.
        own_name: its name.
        settings: the settings of its store; None: a test has made it from an open store.
        character_set: its coded character set.
        share: one of MQCNO_HANDLE_SHARE_*: which threads may call.
        is_client: whether the program named a channel; such a connection is always a new one.
        objects: the open objects, by their handles.
        user: the user of the program's log-in; None: the store has no users, or the program named none.
        consumers: the functions that MQCB registered; None: there were never any.
        requests: the requests to the command server in the unit of work.
    """

    def __init__(
        self, manager: QueueManager, name: str, settings: StoreSettings | None = None, *, share: int, is_client: bool
    ) -> None:
        self.handle = next(_handles)
        self.manager, self.name, self.share, self.is_client = manager, name, share, is_client
        self.settings, self.thread = settings, threading.get_ident()
        self._thread_of_system = threading.get_native_id()  # which the system does not soon reuse
        self.user: User | None = None
        self.objects: dict[int, OpenObject] = {}
        self.consumers: Consumption | None = None
        self.requests: list[UniqueId] = []
        self.session = manager.internals.shared()
        own = manager.admin.manager_attributes()
        self.own_name, self.character_set = own.name, own.coded_character_set_id
        self.now = self.session.services.now
        self._lock = threading.RLock()
        self._is_over = False
        self._puts, self._failure = [0, 0, 0], (0, "", b"")
        self._life = forks.current

    def __enter__(self) -> None:
        """Begins a call. Raises: Refused 2009, 2018, 2219, 2500."""
        is_consumer = self.check()
        if not self._lock.acquire(blocking=False):
            if self.share == MQCNO_HANDLE_SHARE_NO_BLOCK and not is_consumer:
                raise Refused(Reason.CALL_IN_PROGRESS)
            self._lock.acquire()
        if self._is_over:
            self._lock.release()
            raise Refused(Reason.HCONN_ERROR)

    def __exit__(self, *raised: object) -> None:
        self._lock.release()
        if _left:
            _do_left()

    @property
    def is_of_this_process(self) -> bool:
        """Whether it was made by this process, not by a parent."""
        return self._life is forks.current

    def count(self, warning: object) -> None:
        """Notes a put whose answer the program does not wait for."""
        self._puts[0 if warning is None else 1] += 1

    def count_failure(self, reason: int, opened: OpenObject) -> None:
        """Notes a put that failed, and that the program does not wait for."""
        self._puts[2] += 1
        if not self._failure[0]:
            self._failure = reason, opened.name, opened.resolved

    def take_counts(self) -> tuple[list[int], tuple[int, str, bytes]]:
        """Since the last call, the numbers of such puts that succeeded, with a warning, and failed; and of the first
        failure the reason, or 0, the name of the queue, and the resolved names.
        """
        taken = self._puts, self._failure
        self._puts, self._failure = [0, 0, 0], (0, "", b"")
        return taken

    def check(self, *, controls: bool = False) -> bool:
        """Whether the calling thread calls the program's functions.

        Args:
            controls: whether the call is one that others may make while functions are called: MQCTL, MQDISC.

        Raises: Refused 2009, 2018, 2500.
        """
        if self._life is not forks.current:
            raise Refused(Reason.CONNECTION_BROKEN)
        if self.consumers is not None and (self.consumers.is_runner if controls else self.consumers.admit()):
            return True
        if self.share == MQCNO_HANDLE_SHARE_NONE and threading.get_ident() != self.thread:
            raise Refused(Reason.HCONN_ERROR)
        return False

    def admits_thread(self) -> bool:
        """Whether MQCONN gives it to the calling thread again: it is alive, local, and for this thread alone."""
        return (
            self.share == MQCNO_HANDLE_SHARE_NONE
            and not self.is_client
            and self._thread_of_system == threading.get_native_id()
            and self._life is forks.current
        )

    def may(self, authority: Authority, queue: str) -> bool:
        """Whether the user has an authority on a queue; '' is the queue manager. Without a user it has every one."""
        return self.user is None or self.user.may(authority, queue)

    def check_authority(self, authority: Authority, queue: str) -> None:
        """Raises: NotAuthorized 2035, the user lacks an authority."""
        if self.user is not None:
            self.user.check(authority, queue)

    @property
    def identifier(self) -> bytes:
        """MQ's identifier of the connection: its mark, the beginning of the queue manager's name, and our number."""
        return b"AMQC" + self.own_name.encode()[:12].ljust(12) + self.session.owner.to_bytes(8, "big")

    @property
    def holds_unit(self) -> bool:
        """Whether it has uncommitted work; a connection that is lost has none."""
        with contextlib.suppress(InorderError):
            return self.is_of_this_process and self.session.has_unit
        return False

    def add(self, opened: OpenObject) -> int:
        """Gives an open object its handle."""
        handle = next(_handles)
        self.objects[handle] = opened
        return handle

    def end(self) -> None:
        """Inside a call: commits the unit of work and ends the connection, also if the commit fails.

        Raises: CallInProgress, a finalizer calls in the middle of another call of its thread; it has not ended.
        """
        is_ended = True
        try:
            self.manager.close()
        except CallInProgress:  # nothing has happened
            is_ended = False
            raise
        finally:
            if is_ended:
                self._is_over = True
                _connections.pop(self.handle, None)
                message_handles.forget(self.handle)

    def abandon(self) -> None:
        """Ends the connection and backs out its unit of work."""
        if self.consumers is not None:
            self.consumers.stop()
        self._is_over = True
        _connections.pop(self.handle, None)
        message_handles.forget(self.handle)
        self.manager.internals.abandon()


class Consumption(Protocol):
    """The calls of `consumers.Consumers` that its connection makes."""

    @property
    def is_runner(self) -> bool: ...

    def admit(self) -> bool: ...

    def stop(self) -> None: ...

    def end(self) -> None: ...

    def closed(self, hobj: int) -> None: ...


class OpenObject:
    """An open object.

    Attributes:
        options: the sum of MQOO's bits.
        kind: MQOT's number.
        name: as opened; of a model queue the name of the queue that it made.
        queue: the open queue; None: it is no queue.
        resolved: the names of the queue and queue manager to which the name led, filled with blanks.
        selector: a selection string of the open; None: none.
        is_maker: whether the open has made the queue, which is dynamic.
        takes_back: whether a get can ask inside the operation whether the message fits.
        saved: the context of the last message got, of a handle that saves it; None: there is none.
    """

    __slots__ = (
        "is_maker", "kind", "name", "options", "put", "queue", "read", "resolved", "saved", "selector", "takes_back",
    )  # fmt: skip

    def __init__(
        self, kind: int, name: str, options: int, queue: Queue | None, resolved: bytes, selector: str | None = None
    ) -> None:
        self.kind, self.name, self.options, self.queue, self.resolved = kind, name, options, queue, resolved
        self.selector, self.is_maker = selector, False
        self.saved: Row | None = None
        if queue is not None:
            self.put, self.read, self.takes_back = queue.put, queue.internals.read, queue.internals.takes_back


def or_later(call: Callable[[], Codes]) -> Codes:
    """Makes a call; after the present one, if a finalizer of a binding makes it in the middle of that.

    Python may run finalizers in any line.
    """
    try:
        return call()
    except CallInProgress:
        _left.append((threading.get_ident(), call))
        return MQCC_OK, 0


def _do_left() -> None:
    """Makes the calls that this thread could not make when they came."""
    for each in [one for one in tuple(_left) if one[0] == threading.get_ident()]:
        with contextlib.suppress(ValueError):  # a call inside this one has made it
            _left.remove(each)
            try:
                each[1]()
            except CallInProgress:
                _left.append(each)
            except (Refused, InorderError) as error:
                _log.debug("a call of a finalizer failed: %s", error)


def add(connection: MqiConnection) -> int:
    """Enters a connection into the table; returns its handle."""
    _connections[connection.handle] = connection
    return connection.handle


def connection_of(handle: int) -> MqiConnection:
    """The connection of a handle. Raises: Refused 2018."""
    found = _connections.get(handle)
    if found is None:
        raise Refused(Reason.HCONN_ERROR)
    return found


def known(name: str, settings: StoreSettings) -> MqiConnection | None:
    """The connection that this thread already has to a queue manager and shares with no other; None: none."""
    every = [one for one in list(_connections.values()) if one.settings == settings and one.admits_thread()]
    return next((one for one in every if (one.name or one.own_name) == (name or one.own_name)), None)


def abandon_all() -> None:
    """Ends every connection of this process, and backs out their units of work: at the end of a test."""
    for connection in tuple(_connections.values()):
        connection.abandon()


@atexit.register
def _warn_at_the_end() -> None:
    """Backs out at the end of Python, before it deletes objects of bindings, whose destructors call MQDISC."""
    if any(one.holds_unit for one in _connections.values()):
        _log.warning("the program ends without MQDISC: the messages that it did not commit are backed out")
