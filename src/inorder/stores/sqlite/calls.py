"""What the verbs of a store in a file have in common: their block, their queue, and what is done around them."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TypeVar

from ...attributes import QueueAttributes
from ...errors import InorderError, StoreError
from . import owners
from .catalog import SqliteCatalog
from .handles import SqliteHandle
from .home import Home
from .leftovers import remove_some
from .points import reached
from .shelf import SqliteQueue
from .transaction import SqliteTransaction
from .verb import Verb

log = logging.getLogger("inorder.stores")

T = TypeVar("T")


class Calls(Home):
    """A store as this process has it open, with what its verbs are made of."""

    def verb(self, *, writes: bool = True, though_stopped: bool = False) -> Verb:
        """One verb, as a block; see `Verb`."""
        return Verb(self, writes=writes, though_stopped=though_stopped)

    def _queue(self, verb: SqliteTransaction, handle: SqliteHandle) -> SqliteQueue:
        """The handle's queue, without what has expired, with leases ended that are over, and with what is due."""
        return verb.tidy(handle.queue, handle.queue_name, handle.name)

    def _attributes(self, verb: SqliteTransaction, handle: SqliteHandle, queue: SqliteQueue) -> QueueAttributes:
        """The attributes that a call through this handle goes by."""
        if handle.name == queue.attributes.name:
            return queue.attributes
        return SqliteCatalog(verb).resolved(handle.name, queue.attributes)

    def _unless_dead(self, call: Callable[[], T], *errors: type[InorderError]) -> T:
        """Before it says that somebody is in the way, it sees whether they live."""
        try:
            return call()
        except errors:
            if not owners.bury_dead(self):
                raise
        return call()

    def _remove_leftovers(self) -> None:
        """The contents of a large unit that was settled, a step at a time, so that others come between."""
        try:
            while self.has_leftovers:
                reached("settled")
                with self.verb(though_stopped=True) as verb:
                    self.has_leftovers = remove_some(verb)
        except StoreError:  # the call has happened, and says so: the caller would do it once more
            log.exception("contents of messages that are gone could not be removed; a later call will")
