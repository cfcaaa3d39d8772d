"""MQCB and MQCTL: functions of the program are called with messages and events.

A connection has a consumer for each queue handle with a function, and perhaps a function for events. While consumption
is started, one thread makes all calls of the connection, one at a time: the thread of MQOP_START_WAIT's caller, or one
of its own. It gets a message and calls the function, for one consumer after the other. If none of them has a message,
it sleeps until one of the queues has changed (`LocalStore.watch_apart`), a wait interval is over, or another call wakes
it. So waiting costs nothing, and a stop takes effect at once.

While consumption is started, only that thread may use the connection: other threads get 2500, except for MQCTL and
MQDISC. While it is suspended, every thread may.

IBM's pages leave one case open: a message that is too long for MaxMsgLength and must not be cut is passed on once, and
again only when the queue has changed.

Rules: M-13 of *mqi*; the pages of IBM MQ's reference about MQCB, MQCTL, MQCBC and MQCBD.
"""

from __future__ import annotations

import contextlib
import logging
import math
import struct
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from ..errors import ConnectionClosed, InorderError, WaitEnded
from ..support.locks import Bell
from . import constants as mq
from . import getting
from .handles import structure
from .layouts import layout
from .opening import object_of
from .refusals import MQCC_FAILED, MQCC_OK, Refused, reason_of
from .registering import BROWSES, CALLS, Callback, Consumer, described, written

if TYPE_CHECKING:
    from ..client.manager import QueueManager
    from .connections import MqiConnection

log = logging.getLogger("inorder.mqi")

OPTIONS_AT: Final = 8  # of MQGMO
FIRST_BUFFER: Final = 65_536
INHIBITED_SECONDS: Final = 0.5  # between two tries while gets are inhibited
OPERATIONS: Final = frozenset({
    mq.MQOP_REGISTER, mq.MQOP_REGISTER | mq.MQOP_SUSPEND, mq.MQOP_REGISTER | mq.MQOP_RESUME,
    mq.MQOP_DEREGISTER, mq.MQOP_SUSPEND, mq.MQOP_RESUME,
})  # fmt: skip
CONTROLS: Final = {mq.MQOP_START, mq.MQOP_START_WAIT, mq.MQOP_STOP, mq.MQOP_SUSPEND, mq.MQOP_RESUME}
OF_CONNECTION: Final = frozenset({
    mq.MQRC_CONNECTION_BROKEN, mq.MQRC_HCONN_ERROR, mq.MQRC_Q_MGR_STOPPING, mq.MQRC_Q_MGR_QUIESCING,
    mq.MQRC_Q_MGR_NOT_AVAILABLE,
})  # fmt: skip
"""Reasons that end the consumption of the whole connection."""


class Consumers:
    """The consumers of a connection, and the thread that calls them."""

    def __init__(self, connection: MqiConnection) -> None:
        self._connection = connection
        self._clock = connection.manager.internals.clock
        self._by_handle: dict[int, Consumer] = {}
        self._changed = threading.Condition(threading.RLock())  # guards the following
        self._state = mq.MQOP_STOP  # MQOP_START and MQOP_SUSPEND are the others
        self._waits = False  # the state was begun by MQOP_START_WAIT
        self._runner: int | None = None  # the thread that calls, while it is in its loop
        self._is_busy = False  # it gets or calls
        self._is_leaving = False  # it has left its loop, and makes the stop calls
        self._reason = int(mq.MQRC_NONE)  # why it left
        self._area = 0
        self._turn = 0
        self._later: list[tuple[Consumer, int]] = []  # calls after the present one
        self._elsewhere: list[tuple[QueueManager, threading.Event]] = []  # the watches of a server's store
        self._bell = Bell()
        self._clock.watch(self._bell.ring)

    @property
    def is_runner(self) -> bool:
        """Whether the calling thread makes the calls."""
        return self._runner == threading.get_ident()

    def admit(self) -> bool:
        """Whether the calling thread makes the calls.

        Raises: Refused 2500, another thread has the connection.
        """
        if self._state == mq.MQOP_STOP and self._runner is None:
            return False
        if self.is_runner:
            return True
        with self._changed:
            while self._is_ending():
                self._changed.wait()
            if self._state == mq.MQOP_START:
                raise Refused(mq.MQRC_HCONN_ASYNC_ACTIVE)
        return False

    def _is_ending(self) -> bool:
        """Whether a stop or suspension takes effect when the present function returns."""
        is_stopping = self._state == mq.MQOP_STOP and self._runner is not None
        return is_stopping or (self._is_busy and self._state == mq.MQOP_SUSPEND)

    # --- MQCB

    def change(self, operation: int, cbd: Any, hobj: int, md: Any, gmo: Any, callback: Callback | None) -> None:
        """MQCB, inside a call. Raises: Refused 2019, 2036, 2037, 2046, 2444, 2448, 2483 to 2486, 2488."""
        if operation not in OPERATIONS:
            raise Refused(mq.MQRC_OPERATION_ERROR)
        if operation & mq.MQOP_REGISTER:
            self._register(described(self._connection, cbd, hobj, md, gmo, callback), bool(operation & mq.MQOP_SUSPEND))
            return
        is_handler = cbd is not None and structure("CBD", cbd).CallbackType == mq.MQCBT_EVENT_HANDLER
        hobj = mq.MQHO_NONE if is_handler else hobj
        if hobj != mq.MQHO_NONE:
            object_of(self._connection, hobj)
        found = self._by_handle.get(hobj)
        if found is None:
            raise Refused(mq.MQRC_CALLBACK_NOT_REGISTERED)
        if operation == mq.MQOP_DEREGISTER:
            self._deregister(found)
            return
        found.is_suspended = operation == mq.MQOP_SUSPEND
        found.has_news = True
        self._bell.ring()

    def _register(self, new: Consumer, is_suspended: bool) -> None:
        before = self._by_handle.get(new.hobj)
        with self._changed:
            new.is_suspended = is_suspended
            if before is not None:
                before.is_over, new.is_started = True, before.is_started
            self._by_handle[new.hobj] = new
        if before is None:
            self._call_now_or_later(new, mq.MQCBCT_REGISTER_CALL)
        if self._state != mq.MQOP_STOP and not new.is_started:
            self._call_now_or_later(new, mq.MQCBCT_START_CALL)
        self._bell.ring()

    def _deregister(self, gone: Consumer, hobj: int | None = None) -> None:
        with self._changed:
            gone.is_over = True
            self._by_handle.pop(gone.hobj, None)
        self._end_watches()
        if hobj is not None:
            gone.hobj = hobj
        if gone.is_started:
            self._call_now_or_later(gone, mq.MQCBCT_STOP_CALL)
        self._call_now_or_later(gone, mq.MQCBCT_DEREGISTER_CALL)
        self._bell.ring()

    def closed(self, hobj: int) -> None:
        """Inside a call: the handle was closed, which deregisters its function."""
        gone = self._by_handle.get(hobj)
        if gone is not None:
            self._deregister(gone, mq.MQHO_UNUSABLE_HOBJ)

    # --- MQCTL

    def control(self, operation: int, ctlo: Any) -> tuple[int, int]:
        """MQCTL, outside of a call. Raises: Refused 2012, 2445, 2446, 2488, 2500, 2528, 2534."""
        if operation not in CONTROLS:
            raise Refused(mq.MQRC_OPERATION_ERROR)
        about = structure("CTLO", ctlo)
        if about.Options & ~(mq.MQCTLO_THREAD_AFFINITY | mq.MQCTLO_FAIL_IF_QUIESCING):
            raise Refused(mq.MQRC_OPTIONS_ERROR)
        if operation == mq.MQOP_STOP:
            self.stop()
        elif operation == mq.MQOP_SUSPEND:
            self._suspend()
        elif operation == mq.MQOP_RESUME:
            return self._resume()
        else:
            self._area = about.ConnectionArea
            return self._start(operation == mq.MQOP_START_WAIT)
        return MQCC_OK, 0

    def _start(self, waits: bool) -> tuple[int, int]:
        if self.is_runner:
            if waits:
                raise Refused(mq.MQRC_ENVIRONMENT_ERROR)
            with self._changed:
                if self._is_leaving:
                    raise Refused(mq.MQRC_OPERATION_NOT_ALLOWED)
                self._state = mq.MQOP_START  # takes back a stop
            return MQCC_OK, 0
        with self._connection, self._changed:
            if self._state != mq.MQOP_STOP or self._runner is not None:
                raise Refused(mq.MQRC_HCONN_ASYNC_ACTIVE)
            is_begun = threading.Event()
            runner: int | None = threading.get_ident()
            if not waits:
                thread = threading.Thread(target=self._run, args=(is_begun,), name="inorder consumers", daemon=True)
                thread.start()
                runner = thread.ident
            self._state, self._waits, self._runner, self._is_busy = mq.MQOP_START, waits, runner, True
        if waits:
            return self._run_here()
        is_begun.wait()
        if self._state == mq.MQOP_STOP:
            raise Refused(mq.MQRC_CONNECTION_STOPPED)
        return MQCC_OK, 0

    def _run_here(self) -> tuple[int, int]:
        reason = self._run(threading.Event())
        if reason == mq.MQRC_NO_CALLBACKS_ACTIVE:
            raise Refused(reason)
        return (mq.MQCC_WARNING if reason else MQCC_OK), reason

    def _suspend(self) -> None:
        with self._changed:
            if self._state == mq.MQOP_STOP:
                raise Refused(mq.MQRC_OPERATION_NOT_ALLOWED)
            self._state = mq.MQOP_SUSPEND
            self._wait_for_runner()

    def _resume(self) -> tuple[int, int]:
        with self._changed:
            if self._state != mq.MQOP_SUSPEND:
                raise Refused(mq.MQRC_OPERATION_NOT_ALLOWED)
            self._state = mq.MQOP_START
            self._bell.ring()
            if not self._waits or self._runner is not None:
                return MQCC_OK, 0
            self._runner, self._is_busy = threading.get_ident(), True
        return self._run_here()

    def stop(self) -> None:
        """Ends consumption; returns when no function is running, or when another call has started it again, and at once
        inside a function. Harmless when repeated.
        """
        with self._changed:
            was_started, self._state = self._state != mq.MQOP_STOP, mq.MQOP_STOP
            self._wait_for_runner()
            if was_started and self._runner is None and self._state == mq.MQOP_STOP:  # MQOP_START_WAIT was suspended
                self._end_consumption()
            while self._state == mq.MQOP_STOP and self._runner not in (None, threading.get_ident()):
                self._changed.wait()

    def end(self) -> None:
        """Inside MQDISC, after `stop`: deregisters all functions."""
        for one in list(self._by_handle.values()):
            self._deregister(one, mq.MQHO_UNUSABLE_HOBJ)

    def _wait_for_runner(self) -> None:
        """Waits until the thread has seen the new state, or another call changes it; not inside one of its calls."""
        state = self._state
        self._bell.ring()
        while self._is_busy and self._state == state and not self.is_runner:
            self._changed.wait()

    # --- the thread

    def _run(self, is_begun: threading.Event) -> int:
        """Calls the functions until the state is another; returns the reason."""
        with self._changed:
            pass  # the starter has stored the runner
        try:
            for one in list(self._by_handle.values()):
                if not one.is_started:
                    self._call_control(one, mq.MQCBCT_START_CALL)
            is_begun.set()
            while (ready := self._next()) is not None:
                self._look(ready)
                self._call_later_ones()
        except BaseException:
            self._state = mq.MQOP_STOP
            raise
        finally:
            is_begun.set()
            reason = self._reason
            if self.is_runner:
                self._end_consumption()
                with self._changed:
                    self._leave()
        return reason

    def _leave(self) -> None:
        self._runner, self._is_busy, self._is_leaving = None, False, False
        self._changed.notify_all()

    def _next(self) -> Consumer | None:
        """The next consumer that may find a message; None: the thread must end."""
        while True:
            with self._changed:
                self._is_busy = False
                self._changed.notify_all()
                if self._must_end():
                    self._decide_end()
                    return None
                left = math.inf
                if self._state == mq.MQOP_START:
                    now = self._clock.monotonic()
                    active = [one for one in self._by_handle.values() if one.opened is not None]
                    order = active[self._turn :] + active[: self._turn]
                    ready = next((one for one in order if one.is_ready(now)), None)
                    if ready is not None:
                        self._turn, self._is_busy = active.index(ready) + 1, True
                        return ready
                    left = min((one.due - now for one in active if not one.is_suspended), default=math.inf)
            self._bell.wait(self._clock.nap(left))

    def _decide_end(self) -> None:
        """The thread leaves its loop; after a suspension of MQOP_START_WAIT another thread may be the next to call."""
        self._reason, self._is_leaving = int(mq.MQRC_NONE), True
        if self._state == mq.MQOP_SUSPEND:
            self._reason = int(mq.MQRC_CONNECTION_SUSPENDED)
            self._leave()
        elif self._state == mq.MQOP_START:  # no thread is left to make the calls
            self._state, self._reason = mq.MQOP_STOP, int(mq.MQRC_NO_CALLBACKS_ACTIVE)

    def _must_end(self) -> bool:
        if self._state == mq.MQOP_STOP:
            return True
        consumers = [one for one in self._by_handle.values() if one.opened is not None and not one.is_suspended]
        return self._waits and (self._state == mq.MQOP_SUSPEND or not consumers)

    def _end_consumption(self) -> None:
        self._end_watches()
        for one in list(self._by_handle.values()):
            if one.is_started:
                self._call_control(one, mq.MQCBCT_STOP_CALL, mq.MQRC_NONE)

    # --- gets

    def _look(self, one: Consumer) -> None:
        """Tries to get a message for a consumer, and calls its function if there is something to tell."""
        one.has_news = False
        if not one.is_watched:
            self._watch(one)
        now = self._clock.monotonic()
        if not one.buffer:
            one.buffer = bytearray(FIRST_BUFFER if one.length < 0 else one.length)
        md, gmo = bytearray(one.md), written("GMO", one.gmo)
        length, completion, reason = self._get(one, md, gmo)
        if completion == MQCC_FAILED:
            self._tell(one, reason, now, md, gmo)
            return
        if reason == mq.MQRC_TRUNCATED_MSG_FAILED and one.length < 0:
            one.buffer, one.has_news = bytearray(length * one.growth), True
            return
        found = layout("GMO").read(gmo)
        is_too_long = reason == mq.MQRC_TRUNCATED_MSG_FAILED
        if is_too_long and one.passed_on == found.MsgToken:
            return
        one.has_news, one.is_empty, one.due = True, False, now + one.interval
        one.passed_on = found.MsgToken if is_too_long else b""
        if one.gmo.Options & BROWSES == BROWSES:
            one.gmo.Options &= ~mq.MQGMO_BROWSE_FIRST
        is_removed = not is_too_long and not found.Options & BROWSES
        kind = mq.MQCBCT_MSG_REMOVED if is_removed else mq.MQCBCT_MSG_NOT_REMOVED
        returned = max(0, found.ReturnedLength)
        data = bytearray(memoryview(one.buffer)[:returned]) if returned else None
        self._call(one, kind, completion, reason, md=md, gmo=gmo, data=data, length=length)

    def _get(self, one: Consumer, md: bytearray, gmo: bytearray) -> tuple[int, int, int]:
        if one.gmo.Options & BROWSES == BROWSES:
            struct.pack_into("=i", gmo, OPTIONS_AT, one.gmo.Options & ~mq.MQGMO_BROWSE_NEXT)
        try:
            longest = len(one.buffer) // one.growth
            return getting.get(self._connection.handle, one.hobj, md, gmo, one.buffer, longest)
        except Refused as refused:
            return 0, refused.completion, refused.reason
        except InorderError as error:
            return 0, MQCC_FAILED, reason_of(error)
        except Exception:
            log.exception("a get for a consumer failed")
            return 0, MQCC_FAILED, int(mq.MQRC_UNEXPECTED_ERROR)

    def _tell(self, one: Consumer, reason: int, now: float, md: bytearray, gmo: bytearray) -> None:
        """Tells a consumer that there is no message, or that a get failed."""
        state = mq.MQCS_NONE
        if reason == mq.MQRC_NO_MSG_AVAILABLE:
            must_wait = one.due > now if one.interval else one.is_empty
            if must_wait:
                return
            is_told, one.is_empty = one.interval != math.inf, True
            one.due = now + one.interval if one.interval else math.inf
            if not is_told:
                return
        elif reason == mq.MQRC_GET_INHIBITED:
            one.due, was_told, one.is_empty = now + INHIBITED_SECONDS, one.is_empty, True
            if was_told:
                return
            state = mq.MQCS_SUSPENDED_TEMPORARY
        elif reason in OF_CONNECTION:
            self._break(reason)
            return
        else:
            one.is_suspended, state = True, mq.MQCS_SUSPENDED
        self._call(one, mq.MQCBCT_EVENT_CALL, MQCC_FAILED, reason, md=md, gmo=gmo, state=state)

    def _break(self, reason: int) -> None:
        """Reports to all functions that the connection is unusable, and stops."""
        for one in [one for one in self._by_handle.values() if one.opened is not None or not one.is_suspended]:
            self._call(one, mq.MQCBCT_EVENT_CALL, MQCC_FAILED, reason, state=mq.MQCS_STOPPED)
        with self._changed:
            self._state = mq.MQOP_STOP

    # --- watches

    def _watch(self, one: Consumer) -> None:
        """From now on, changes of the queue wake the thread; the first comes at once."""
        opened = one.opened
        assert opened is not None
        assert opened.queue is not None
        internals = opened.queue.internals

        def changed() -> None:
            if one.is_over or self._state == mq.MQOP_STOP:
                raise WaitEnded("the consumer is not registered, or not started, any more")
            one.has_news = True
            self._bell.ring()

        def ended(_: BaseException) -> None:
            one.is_watched, one.has_news = False, True
            self._bell.ring()

        one.is_watched = True
        store: Any = internals.session.services.store
        if store.changes.are_elsewhere:
            self._watch_elsewhere(opened.queue.local_name, changed, ended)
            return
        try:
            store.watch_apart(internals.number, changed, ended)
        except InorderError as error:  # the following get reports the fault
            ended(error)

    def _watch_elsewhere(self, name: str, changed: Callable[[], None], ended: Callable[[BaseException], None]) -> None:
        """A server's store can only be watched by a thread with a connection."""
        own, is_over = self._connection.manager.connect(), threading.Event()
        self._elsewhere.append((own, is_over))

        def heard() -> None:
            if is_over.is_set():
                raise WaitEnded("the watch is over")
            changed()

        def watch() -> None:
            try:
                own.internals.watch(name, heard)
            except InorderError as error:
                ended(error)
            finally:
                own.internals.abandon()

        threading.Thread(target=watch, name=f"inorder consumer of {name}", daemon=True).start()

    def _end_watches(self) -> None:
        """Ends the watches of this connection; those of remaining consumers begin anew."""
        watching, self._elsewhere = self._elsewhere, []
        for _, is_over in watching:
            is_over.set()  # for a thread that has not begun to watch
        for one in (self._connection.manager, *(own for own, _ in watching)):
            with contextlib.suppress(ConnectionClosed):
                one.end_waits()

    # --- calls

    def _call_now_or_later(self, one: Consumer, kind: int) -> None:
        """Makes a control call: at once, or inside a function when that has returned."""
        if self.is_runner:
            self._later.append((one, kind))
        else:
            self._call_control(one, kind)

    def _call_later_ones(self) -> None:
        while self._later:
            self._call_control(*self._later.pop(0))

    def _call_control(self, one: Consumer, kind: int, reason: int = 0) -> None:
        if kind == mq.MQCBCT_START_CALL:
            one.is_started, one.due, one.is_empty = True, self._clock.monotonic() + one.interval, False
        elif kind == mq.MQCBCT_STOP_CALL:
            one.is_started = False
        if one.options & CALLS[kind]:
            state = mq.MQCS_STOPPED if kind == mq.MQCBCT_STOP_CALL else mq.MQCS_NONE
            self._call(one, kind, MQCC_OK, reason, state=state)

    def _call(
        self,
        one: Consumer,
        kind: int,
        completion: int,
        reason: int,
        *,
        md: bytearray | None = None,
        gmo: bytearray | None = None,
        data: bytearray | None = None,
        length: int = 0,
        state: int = mq.MQCS_NONE,
    ) -> None:
        context = layout("CBC").new(
            CallType=kind,
            Hobj=one.hobj,
            CallbackArea=one.area,
            ConnectionArea=self._area,
            CompCode=completion,
            Reason=reason,
            State=state,
            DataLength=length,
            BufferLength=0 if data is None else len(data),
            ReconnectDelay=mq.MQRD_NO_RECONNECT,
        )
        if one.opened is not None and md is None:
            md, gmo = bytearray(one.md), written("GMO", one.gmo)
        try:
            one.callback(self._connection.handle, md, gmo, data, context)
        except Exception:
            log.exception("a function that MQCB registered failed")


def of_connection(connection: MqiConnection) -> Consumers:
    """The consumers of a connection."""
    found = connection.consumers
    if found is None:
        found = connection.consumers = Consumers(connection)
    assert isinstance(found, Consumers)
    return found
