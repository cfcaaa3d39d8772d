"""The stream of changes in a store, in order, for listeners in this process.

An operation appends its changes while it holds the store's lock, so they are in the order of the operations. They are
delivered after the lock has been released, so a listener may call the store. One thread delivers at a time. Another
thread, or a listener whose own call makes changes, leaves them to that thread.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from ...model.message import Message
from ...rules.puts import Program
from ...support.locks import Bell, Lock, LockTaken, TryLock

log = logging.getLogger("inorder.stores")


@dataclass(slots=True, init=False)
class Change:
    """The effect of an operation on one queue.

    Attributes:
        put: messages put by this operation, visible or not.
        visible: messages that have become visible to everyone; their bodies may be missing.
        expired: messages discarded because they had expired.
        duplicates: messages refused because their unique id is on the queue.
        discarded: how many expired; also counted if no listener wants messages.
    """

    queue: str
    put: list[Message]
    visible: list[Message]
    expired: list[Message]
    duplicates: list[Message]
    discarded: int

    def __init__(self, queue: str) -> None:
        self.queue, self.discarded = queue, 0
        self.put, self.visible, self.expired, self.duplicates = [], [], [], []

    def copy(self) -> Change:
        """Returns a copy of its present state."""
        one = Change(self.queue)
        one.put, one.visible, one.expired, one.duplicates = map(
            list, (self.put, self.visible, self.expired, self.duplicates)
        )
        one.discarded = self.discarded
        return one


@dataclass(frozen=True, slots=True)
class Death:
    """A connection was backed out because its process died."""

    program: Program


Happened = Change | Death
Listener = Callable[[Happened], object]


class Subscription:
    """A listener, and the changes that it wants at present."""

    def __init__(self, changes: Changes, listener: Listener, *, is_ours: bool) -> None:
        self._changes, self.listener, self.is_ours = changes, listener, is_ours
        self.heeds = self.wants = False

    def turn(self, *, heeds: bool, wants: bool = False) -> None:
        """Sets whether the listener wants changes.

        Args:
            heeds: it wants changes at all; if no listener does, only changes that discarded messages need be reported.
            wants: it wants the messages of a change; if no listener does, a change may contain only its queue.
        """
        with self._changes.turning:
            self.heeds, self.wants = heeds, wants
            self._changes.weigh()


class Changes:
    """The changes of one store in this process.

    Attributes:
        is_heard: whether some listener wants changes now.
        is_watched: whether some listener wants messages now.
        waiting: changes that have not been delivered yet.
        watchers: bells rung when all changes have been delivered.
        are_elsewhere: whether they happen in another process, and none is ever delivered here.
    """

    def __init__(self, *, are_elsewhere: bool = False) -> None:
        self.are_elsewhere = are_elsewhere
        self.is_heard = self.is_watched = False
        self.turning = Lock()
        self._subscriptions: list[Subscription] = []
        self.waiting: deque[Happened] = deque()
        self.watchers: list[Bell] = []
        self._told = 0  # listeners already called with the first waiting change
        self._handing_out = TryLock()

    def subscribe(self, listener: Listener, *, is_ours: bool = False) -> Subscription:
        """Calls `listener` with each `Change` and `Death`, outside of transactions and locks.

        One thread of this process calls it at a time. Its exceptions are logged and reach no caller of an operation.
        Initially it wants no changes: see `Subscription.turn`.

        Args:
            is_ours: it raises nothing by itself.
        """
        subscription = Subscription(self, listener, is_ours=is_ours)
        self._subscriptions.append(subscription)
        return subscription

    def weigh(self) -> None:
        """Updates the two flags after a subscription has turned."""
        self.is_heard = any(one.heeds for one in self._subscriptions)
        self.is_watched = any(one.wants for one in self._subscriptions)

    def add(self, happened: Iterable[Happened]) -> None:
        """Appends these changes; the caller holds the lock under which they happened."""
        self.waiting.extend(happened)

    def hand_out(self) -> None:
        """Delivers all waiting changes."""
        # Checked again after the lock is free: a change may be added after the inner loop's last check.
        while self.waiting:
            try:
                with self._handing_out:
                    while self.waiting:
                        self._report(self.waiting[0])
                        self.waiting.popleft()
            except LockTaken:
                return
            for bell in self.watchers:
                bell.ring()

    def _report(self, happened: Happened) -> None:
        # A thread that is interrupted leaves the rest, and the listener that it was calling, to the next one.
        for one in self._subscriptions[self._told :]:
            try:
                one.listener(happened)
            except Exception:
                if one.is_ours:  # the exception came from outside, and the listener is called again
                    raise
                log.exception("a listener failed; the change that it was called with has happened")
            self._told += 1
        self._told = 0

    def report(self, happened: Sequence[Happened]) -> None:
        """Appends these changes and delivers them; to be called outside of locks and transactions."""
        self.add(happened)
        self.hand_out()
