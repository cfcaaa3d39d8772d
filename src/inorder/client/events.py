"""Events that happen in this process: hooks (lifecycle A-36, A-37).

A *hook* is called for events of this process on any queue: "put", "visible", "expired", "duplicate". A browse could not
see all of these. Events of other processes are not reported. To receive the messages of a queue from any process, use a
listener: see `listening`.

One separate thread calls all hooks, in the order of the events. An error in a hook is logged and has no other effect.
Closing the last connection waits a few seconds until all events are reported; the end of the interpreter does not wait.
"""

from __future__ import annotations

import functools
import logging
import queue as queues
import threading
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from ..errors import CallerError, Reason, bad_argument
from ..model.message import Message
from ..stores.seam.changes import Change, Changes, Happened

log = logging.getLogger("inorder.events")

JOIN_SECONDS = 5.0  # how long the end of the last connection waits for running hooks

HookName = Literal["put", "visible", "expired", "duplicate"]
HOOKS: tuple[HookName, ...] = ("put", "visible", "expired", "duplicate")


Hook = Callable[[str, Message], object]
Calls = queues.SimpleQueue[Callable[[], object] | None]


@dataclass(frozen=True, slots=True, eq=False)
class Registration:
    """A hook that is registered; `cancel` ends it."""

    name: HookName
    called: Hook
    hub: Hub

    def cancel(self) -> None:
        """Stops the hook: no later event is reported. Harmless when repeated."""
        self.hub.cancel(self)


class Hub:
    """Passes changes of the store to the hooks of this process."""

    def __init__(self, changes: Changes) -> None:
        # Reentrant: the garbage collector may close a generator, and with it a handle, in the middle of a line here.
        self._lock = threading.RLock()
        self._registered: list[Registration] = []
        self._calls: Calls | None = None
        self._thread: threading.Thread | None = None

        self._changes = changes
        self._subscription = changes.subscribe(self._happened)

    def hook(self, name: HookName, called: Hook) -> Registration:
        if not isinstance(name, str) or name not in HOOKS:
            raise bad_argument("hook", name, f"one of: {', '.join(HOOKS)}", Reason.OPTIONS_ERROR)
        check_callable(called)
        if self._changes.are_elsewhere:
            raise CallerError(
                "a hook is called in the process that has the store open, which is a server's: use listen, which "
                "reports the messages of a queue from any process",
                reason=Reason.FUNCTION_NOT_SUPPORTED,
            )
        registration = Registration(name, called, self)
        with self._lock:
            self._registered.append(registration)
            if self._calls is None:
                self._start()
        return registration

    def cancel(self, registration: Registration) -> None:
        with self._lock:
            self._registered = [one for one in self._registered if one is not registration]

    def _start(self) -> None:
        calls: Calls = queues.SimpleQueue()
        self._calls = calls
        self._subscription.turn(heeds=True, wants=True)
        self._thread = threading.Thread(target=_run, args=(calls,), name="inorder events", daemon=True)
        self._thread.start()
        # The thread does not keep the hub alive. It ends with the hub, even if no connection was closed.
        self._no_more = weakref.finalize(self, calls.put, None)
        self._no_more.atexit = False

    def _happened(self, change: Happened) -> None:
        if self._calls is None or not isinstance(change, Change):
            return
        with self._lock:
            registered, calls = self._registered, self._calls
        if calls is not None:
            told = {
                "put": change.put, "visible": change.visible, "expired": change.expired, "duplicate": change.duplicates,
            }  # fmt: skip
            for one in list(registered):
                for message in told[one.name]:
                    calls.put(functools.partial(one.called, change.queue, message))

    def close(self) -> threading.Thread | None:
        """Takes no more events; returns the thread, which still reports the earlier ones and then ends."""
        with self._lock:
            thread, self._thread, self._registered = self._thread, None, []
            self._calls = None
            self._subscription.turn(heeds=False)
            if thread is not None:
                self._no_more()
        return thread


def await_end(thread: threading.Thread | None) -> None:
    """Waits up to `JOIN_SECONDS` for a thread from `Hub.close`, unless this is that thread."""
    if thread is None or thread is threading.current_thread():
        return
    thread.join(JOIN_SECONDS)
    if thread.is_alive():
        log.warning("a hook did not return within %s s; it is left running", JOIN_SECONDS)


def check_callable(called: object) -> None:
    """Raises: ArgumentError, not a callable."""
    if not callable(called):
        raise bad_argument("callback", called, "a callable", Reason.OPTIONS_ERROR)


def _run(calls: Calls) -> None:
    while (call := calls.get()) is not None:
        try:
            call()
        except BaseException:
            log.exception("a hook failed; the queue is not affected")
