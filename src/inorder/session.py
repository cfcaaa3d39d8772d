"""A session: what one connection shares among its handles.

Its number in the store, its one unit of work (R5.1), its handles' retained group states, and the rule that only
one call is in progress at a time.
"""

from __future__ import annotations

import os
import threading
from types import TracebackType
from typing import TYPE_CHECKING

from .errors import CallInProgress, ConnectionClosed, ForkedConnection, bad_argument
from .events import Hub
from .rules.grouping import NOTHING_OPEN, GroupState
from .rules.puts import Program
from .stores.base import Outcome, Store
from .waiting import Room

if TYPE_CHECKING:
    from collections.abc import Iterable


class Services:
    """What all connections of this process to one store share."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.room = Room(store)
        self.hub = Hub(store)
        self.connections = 0


class Retained:
    """One kind of group state of a handle, and how to take it back (R2.9, R3.32).

    The state that stood before the first call of a unit of work on this handle comes back when the unit is
    backed out; a commit forgets it.
    """

    __slots__ = ("_saved", "state")

    def __init__(self) -> None:
        self.state = NOTHING_OPEN
        self._saved: GroupState | None = None

    def advance(self, state: GroupState, *, before_unit: GroupState | None) -> None:
        """A successful call leaves `state`; `before_unit` stood before its first act in the unit of work, if any."""
        if self._saved is None:
            self._saved = before_unit
        self.state = state

    def settled(self, outcome: Outcome) -> None:
        if outcome == "back_out" and self._saved is not None:
            self.state = self._saved
        self._saved = None


class Session:
    """A connection to a store, from connect to close."""

    def __init__(self, services: Services, program: Program) -> None:
        self.services = services
        self.store = services.store
        self.owner = services.store.connect(program)
        self.block: object | None = None  # the `with unit_of_work()` block that calls stand in
        self._retained: list[Retained] = []
        self._in_progress = threading.Lock()
        self._process = os.getpid()
        self.closed = False
        services.connections += 1

    # --- one call at a time

    def __enter__(self) -> None:
        """Begins a call. Raises: ConnectionClosed 2018, ForkedConnection, CallInProgress 2219."""
        if self._process != os.getpid():
            raise ForkedConnection("this connection was made before a fork: connect again in the child")
        if self.closed:
            raise ConnectionClosed("the connection is closed")
        if not self._in_progress.acquire(blocking=False):
            raise CallInProgress("another thread has a call in progress on this connection; give each thread its own")

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._in_progress.release()

    # --- the unit of work

    def in_unit(self, syncpoint: bool | None) -> bool:
        """Whether a call with this option is part of the unit of work."""
        return self.block is not None if syncpoint is None else syncpoint

    def unit_is_open(self) -> bool:
        """Whether the connection has a unit of work, by a block or by a call with syncpoint (R5.1)."""
        return self.block is not None or self.store.has_unit(self.owner)

    def retained(self, *kinds: Retained) -> None:
        """A handle was opened: these states follow the unit of work."""
        self._retained.extend(kinds)

    def forget(self, kinds: Iterable[Retained]) -> None:
        """A handle was closed."""
        gone = {id(one) for one in kinds}
        self._retained = [one for one in self._retained if id(one) not in gone]

    def settle(self, outcome: Outcome) -> None:
        with self:
            self.store.settle(self.owner, outcome)
            self._settled(outcome)

    def prepare(self, name: str) -> None:
        if not isinstance(name, str) or not name:
            raise bad_argument("name", name, "a text, not empty: a prepared unit is settled by its name")
        with self:
            self.store.prepare(self.owner, name)
            self._settled("commit")  # for handles prepare acts as commit (R5.10)

    def _settled(self, outcome: Outcome) -> None:
        for one in self._retained:
            one.settled(outcome)

    # --- the end

    def end(self) -> None:
        """Ends the connection as if the program had died: a wait is dismissed, the unit backed out (R5.6)."""
        if self.closed or self._process != os.getpid():
            return
        self.closed = True
        self.services.room.dismiss(self.owner)
        self.store.disconnect(self.owner)
        self.services.connections -= 1
        if not self.services.connections:
            self.services.hub.close()
