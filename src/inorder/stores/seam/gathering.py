"""Collects the promises of a thread's verbs and their events for observers; `process.EnginePromises` keeps them."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Protocol

from ...support.locks import Lock

Step = Callable[[Callable[[], object]], None]
"""Runs, as a verb of its own, what is left to do for the medium; see `Host.after`."""
Emit = Callable[[BaseException | None], object]
"""Tells the observers of a verb; given the error with which what it had promised has failed, if that has."""


class Gatherer(Protocol):
    """What verbs need of `process.EnginePromises`."""

    def add(self, ticket: int, answer: object) -> None:
        """A verb has promised that the commit with this ticket will be on disk; what it answers."""

    def put_off(self, step: Step) -> None:
        """A verb is over, and something is left to do for the medium."""

    def emit_later(self, emit: Emit) -> None:
        """Observers hear of a verb when no lock is held, and what was promised is on disk or has failed."""


class PromiseHolder(Protocol):
    """What the lock of verbs needs of `process.EnginePromises`.

    Attributes:
        at_it: held as long as a thread is inside of `at_once`.
    """

    at_it: Lock

    def let_go(self) -> None:
        """Gives the lock back, and what else is held for calls that are made at once."""


class Gathering(threading.local):
    """Of one store, and of this thread.

    Attributes:
        promises: None: each verb brings its own to disk.
        holder: for what the thread has the lock of verbs, or tries to get it, beyond a single verb.
    """

    promises: Gatherer | None = None
    holder: PromiseHolder | None = None
