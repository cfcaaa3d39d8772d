"""Events: listeners and hooks (lifecycle A-36, A-37).

A *listener* is told of each message of one queue that becomes visible, and only then: an uncommitted put tells
nobody. It is given the event, not the message; a get with the unique id's token fetches it. A *hook* is told
of what happens anywhere in this queue manager: "put", "expired", "duplicate".

All are called on one thread that is not the application's, in the order in which things happened. An error in
one is logged and changes nothing.
"""

from __future__ import annotations

import logging
import queue as queues
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from .errors import Reason, bad_argument
from .message import Message, UniqueId
from .options import EVERYTHING, Match
from .stores.base import Change, Store

log = logging.getLogger("inorder.events")

HookName = Literal["put", "expired", "duplicate"]
HOOKS: tuple[HookName, ...] = ("put", "expired", "duplicate")


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrival:
    """A message has become visible on a queue."""

    queue: str
    uid: UniqueId | None
    token: bytes
    message_id: bytes
    correlation_id: bytes
    priority: int | None


Listener = Callable[[Arrival], object]
Hook = Callable[[str, Message], object]


@dataclass(frozen=True, slots=True, eq=False)
class Registration:
    """A listener or hook that is registered; `cancel` ends it."""

    queue: str | None
    match: Match
    listener: Listener | None
    hook: HookName | None
    called: Hook | None
    hub: Hub

    def cancel(self) -> None:
        """No event that happens from now on is told. Harmless when repeated."""
        self.hub.cancel(self)


class Hub:
    """Passes on what observers of the store see to listeners and hooks of this process."""

    def __init__(self, store: Store) -> None:
        self._lock = threading.Lock()
        self._registered: list[Registration] = []
        self._calls: queues.SimpleQueue[Callable[[], object] | None] = queues.SimpleQueue()
        self._thread: threading.Thread | None = None
        store.observe(self._changed)

    def listen(self, queue: str, listener: Listener, match: Match = EVERYTHING) -> Registration:
        return self._register(Registration(queue, match, listener, None, None, self))

    def hook(self, name: HookName, called: Hook) -> Registration:
        if name not in HOOKS:
            raise bad_argument("hook", name, f"one of {', '.join(HOOKS)}", Reason.OPTIONS_ERROR)
        return self._register(Registration(None, EVERYTHING, None, name, called, self))

    def cancel(self, registration: Registration) -> None:
        with self._lock:
            self._registered = [one for one in self._registered if one is not registration]

    def _register(self, registration: Registration) -> Registration:
        for called in (registration.listener, registration.called):
            if called is not None and not callable(called):
                raise bad_argument("callback", called, "something that can be called", Reason.OPTIONS_ERROR)
        with self._lock:
            self._registered.append(registration)
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="inorder events", daemon=True)
                self._thread.start()
        return registration

    def _changed(self, change: Change) -> None:
        for one in self._registered:
            if one.listener is not None and one.queue == change.queue:
                for message in change.visible:
                    if one.match.accepts(message):
                        self._calls.put(_call(one.listener, _arrival(change.queue, message)))
            for hook, messages in (("put", change.put), ("expired", change.expired), ("duplicate", change.duplicates)):
                if one.called is not None and one.hook == hook:
                    for message in messages:
                        self._calls.put(_call(one.called, change.queue, message))

    def _run(self) -> None:
        while (call := self._calls.get()) is not None:
            try:
                call()
            except Exception:
                log.exception("a listener or hook failed; the queue is as it was")

    def flush(self) -> None:
        """Blocks until everything that has happened so far has been told."""
        if self._thread is not None and self._thread.is_alive():
            told = threading.Event()
            self._calls.put(told.set)
            told.wait()

    def close(self) -> None:
        """Tells what has happened so far, then ends the thread."""
        with self._lock:
            thread, self._thread, self._registered = self._thread, None, []
        if thread is not None:
            self._calls.put(None)
            if thread is not threading.current_thread():
                thread.join()


def _call(called: Callable[..., object], *arguments: object) -> Callable[[], object]:
    return lambda: called(*arguments)


def _arrival(queue: str, message: Message) -> Arrival:
    return Arrival(
        queue=queue,
        uid=message.uid,
        token=message.token,
        message_id=message.message_id,
        correlation_id=message.correlation_id,
        priority=message.priority,
    )
