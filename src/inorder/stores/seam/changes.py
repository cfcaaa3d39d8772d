"""The stream of changes in a store, in order, for listeners in this process.

A verb appends its changes while it holds the store's lock, so they are in the order of the verbs. They are delivered
after the verb has released the lock, so a listener may call the store. One thread delivers at a time. Another thread,
or a listener whose own call makes changes, leaves them to that thread.
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
    """What a verb did to one queue.

    Attributes:
        put: messages put by this verb, visible or not.
        visible: messages that everyone can see from now on; their bodies may be missing.
        expired: messages discarded because their time was over.
        duplicates: messages refused because their unique id is on the queue.
        discarded: how many expired; also if nobody looks at messages.
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
        """The same as it is now."""
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
    """A listener, and what it wants now."""

    def __init__(self, changes: Changes, listener: Listener, *, is_ours: bool) -> None:
        self._changes, self.listener, self.is_ours = changes, listener, is_ours
        self.heeds = self.wants = False

    def turn(self, *, heeds: bool, wants: bool = False) -> None:
        """From now on it looks at changes, or not.

        Args:
            heeds: it looks at changes at all; if nobody does, those alone need be reported in which messages were
                discarded.
            wants: it looks at the messages of a change; if nobody does, a change may name its queue alone.
        """
        with self._changes.turning:
            self.heeds, self.wants = heeds, wants
            self._changes.weigh()


class Changes:
    """The stream of one store in this process.

    Attributes:
        is_heard: somebody looks at changes now.
        is_watched: somebody looks at messages now.
        waiting: what has not been handed out yet.
        watchers: rung when all has been handed out.
    """

    def __init__(self) -> None:
        self.is_heard = self.is_watched = False
        self.turning = Lock()
        self._subscriptions: list[Subscription] = []
        self.waiting: deque[Happened] = deque()
        self.watchers: list[Bell] = []
        self._told = 0  # listeners that have been called with the first of them
        self._handing_out = TryLock()

    def subscribe(self, listener: Listener, *, is_ours: bool = False) -> Subscription:
        """Calls `listener` with each `Change` and `Death`, outside of transactions and locks.

        By one thread at a time, of this process. What it raises is logged, and reaches no caller of a verb. At first it
        heeds nothing: see `Subscription.turn`.

        Args:
            is_ours: it raises nothing by itself.
        """
        subscription = Subscription(self, listener, is_ours=is_ours)
        self._subscriptions.append(subscription)
        return subscription

    def weigh(self) -> None:
        """A subscription wants something else than before."""
        self.is_heard = any(one.heeds for one in self._subscriptions)
        self.is_watched = any(one.wants for one in self._subscriptions)

    def add(self, happened: Iterable[Happened]) -> None:
        """These happened; the caller holds the lock under which they did."""
        self.waiting.extend(happened)

    def hand_out(self) -> None:
        """Reports what has been added."""
        # Asked again after each turn: a change may come when the last look is over and the turn is not.
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
                if one.is_ours:  # what it raises came from outside, and it is called again
                    raise
                log.exception("a listener failed; the change that it was called with has happened")
            self._told += 1
        self._told = 0

    def report(self, happened: Sequence[Happened]) -> None:
        """Adds, and hands out; outside of locks and transactions."""
        self.add(happened)
        self.hand_out()
