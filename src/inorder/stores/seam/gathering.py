"""Collects the deferred commits of a thread's operations and their events; `process.EnginePromises` implements this."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Protocol

from ...support.locks import Lock

Step = Callable[[Callable[[], object]], None]
"""Runs the remaining work for the medium as a separate operation; see `Host.after`."""
Emit = Callable[[BaseException | None], object]
"""Notifies the observers of an operation. Its argument is the error with which its promise has failed, or None."""


class Gatherer(Protocol):
    """The part of `process.EnginePromises` that operations and their lock use.

    Attributes:
        at_it: held while a thread is inside `at_once`.
    """

    at_it: Lock

    def add(self, ticket: int, answer: object) -> None:
        """An operation has promised that the commit with this ticket will be on disk, and has returned `answer`."""

    def put_off(self, step: Step) -> None:
        """An operation has ended and left work for the medium."""

    def emit_later(self, emit: Emit) -> None:
        """Notifies observers later, when no lock is held and the promise is on disk or has failed."""

    def let_go(self) -> None:
        """Releases the lock, and everything else that `at_once` holds."""


class Gathering(threading.local):
    """The present thread's state for one store.

    Attributes:
        promises: None: each operation syncs its own commit.
        holder: set while the thread holds the lock of operations, or tries to get it, for more than one operation.
    """

    promises: Gatherer | None = None
    holder: Gatherer | None = None
