"""One side of a comparison: a store, its clock, and everything that a history has opened on it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, Literal, TypeVar

from tests.helpers.support import LIMIT_SECONDS, Call, all_settle
from tests.machine.pairs import Outcome, Returned, failed

from inorder import Arrival, InorderError, Match, Message, QueueManager, UnitOfWork, connect
from inorder.client.bulk import ClaimReader
from inorder.client.leases import Lease
from inorder.client.queue import Queue
from inorder.stores.seam.protocol import Store
from inorder.stores.seam.views import ConnectionView, QueueView
from inorder.support.callers import Caller
from inorder.support.clock import Clock
from inorder.testing import ManualClock
from inorder.testing.remote import ServedStore
from inorder.testing.stores import RestartableStore

T = TypeVar("T")
MakeStore = Callable[[Clock], RestartableStore]
Action = Callable[["Side"], Any]
OPERATOR = 3
CONNECTIONS = (0, 1, 2, OPERATOR)
SENTINEL = "SENTINEL"
PROGRAM = "program "  # prefix of the history's programs; the comparison and the server have others
HOOKS: tuple[Literal["put", "expired", "duplicate"], ...] = ("put", "expired", "duplicate")
VERBS = {name for name, value in vars(Store).items() if callable(value) and name[0] != "_" and name != "attend"}


NOBODY = Call(Caller.now).result()  # a thread that has ended: any thread may continue its unit of work


class Failure(Exception):
    """Raised by a program of the history to leave a block or break a stream."""


class Side:
    """A store and everything that a history has opened on it; equal numbers name equal things on both sides.

    Attributes:
        handles: by number.
        tokens: of strict browses, in the order in which they were taken.
        readers: applications that claim, by name.
        calls: by connection: a call that waits, on a thread of its own.
        told: the calls of hooks since the last comparison.
        hooking: the connection with the hooks: the operator's, or one on the server of a store elsewhere.
    """

    def __init__(self, make: MakeStore, translate: Callable[[str, Any], Any]) -> None:
        self.clock = ManualClock()
        self.store: RestartableStore = self._prepared(make(self.clock))
        self.translate = translate
        self.connections: dict[int, QueueManager] = {}
        self.handles: dict[int, Queue] = {}
        self.blocks: dict[int, UnitOfWork | Lease] = {}
        self.tokens: list[str] = []
        self.readers: dict[str, ClaimReader] = {}
        self.calls: dict[int, Call[Any]] = {}
        self.told: list[tuple[Any, ...]] = []
        self._caught_up = threading.Event()
        self._thread = threading.current_thread()
        for number in CONNECTIONS:
            self.connect(number)
        self.operator.create_queue(SENTINEL)
        self.register()

    def _prepared(self, store: Any) -> Any:
        """The store, or a connection's part of a store elsewhere; after each of its verbs waiting calls look again."""
        for name in VERBS & set(dir(type(store))):
            setattr(store, name, self._settling(getattr(store, name)))
        if (again := store.again) is not None:
            store.again = lambda: self._prepared(again())
        return store

    @property
    def operator(self) -> QueueManager:
        return self.connections[OPERATOR]

    def connect(self, number: int) -> None:
        self.connections[number] = connect(self.store, program=f"{PROGRAM}{number}")

    def match(self, fields: Mapping[str, Any]) -> Match:
        """A match with this store's ids and tokens."""
        return Match(**{name: self.translate(_kind_of(name), value) for name, value in fields.items()})

    def options(self, options: Mapping[str, Any]) -> dict[str, Any]:
        """Options as keywords, with this store's matches, unique ids and lock ids."""
        own = dict(options)
        if "match" in own:
            own["match"] = self.match(own["match"])
        if "uid" in own:
            own["uid"] = self.translate("uid", own["uid"])
        if "lock_id" in own:
            own["lock_id"] = self.translate("lock", own["lock_id"])
        return own

    # --- calls

    def attempt(self, action: Action) -> Outcome:
        """Returns the outcome as the caller sees it, when all waiting calls are asleep again."""
        try:
            return Returned(action(self))
        except (InorderError, Failure) as error:
            return failed(error)
        finally:
            self.settle()

    def begin(self, number: int, action: Action) -> None:
        """Begins a call that may wait, on a thread of its own; returns when it sleeps or has ended."""
        session = self.connections[number]._session
        session.opener = session.opener and NOBODY  # another thread continues the unit of work
        self.calls[number] = Call(lambda: action(self))
        self.settle()

    def settle(self) -> None:
        """Waits until every waiting call has seen everything."""
        all_settle([(call, self.connections[number]) for number, call in self.calls.items()])

    def _settling(self, verb: Callable[..., T]) -> Callable[..., T]:
        """The verb; when the history's thread calls it, waiting calls look at its effects before the next verb."""

        def settled(*given: Any, **named: Any) -> T:
            try:
                return verb(*given, **named)
            finally:
                if threading.current_thread() is self._thread:
                    self.settle()

        return settled

    def advance(self, seconds: float) -> None:
        """Advances the clock; waiting calls look again."""
        self.clock.advance(seconds)
        self.settle()

    def ended(self) -> dict[int, Outcome]:
        """Removes the calls that wait no more; returns their outcomes."""
        done = {number: call for number, call in self.calls.items() if call.done}
        self.calls = {number: call for number, call in self.calls.items() if number not in done}
        return {number: _outcome_of(call) for number, call in done.items()}

    # --- hooks

    def register(self) -> None:
        """Registers all hooks; for a store elsewhere, on its server."""
        served = self.store.inner if isinstance(self.store, ServedStore) else None
        self.hooking = self.operator if served is None else connect(served, program="hooks")
        hook = self.hooking.inspect.hook
        self._registered = [hook(event, partial(self._hooked, event)) for event in HOOKS]
        self._registered.append(hook("visible", self._seen))

    def _seen(self, queue: str, message: Message) -> None:
        if queue == SENTINEL:
            self._caught_up.set()
        else:
            fields = {name: getattr(message, name) for name in Arrival.__slots__ if name != "queue"}
            self.told.append(("visible", Arrival(queue=queue, **fields)))

    def _hooked(self, what: str, queue: str, message: Any) -> None:
        if queue != SENTINEL:
            self.told.append((what, queue, message))

    def hear(self) -> list[tuple[Any, ...]]:
        """The calls of hooks since the last time, when all have been made."""
        self._caught_up.clear()
        self.operator.put(SENTINEL, b"", syncpoint=False)
        assert self._caught_up.wait(LIMIT_SECONDS), "the listener was not called in time"
        self.operator.get(SENTINEL, syncpoint=False, read_order="relaxed")
        told, self.told = self.told, []
        return told

    def overview(self) -> list[QueueView]:
        """All queues except the comparison's own."""
        return [one for one in self.operator.inspect.overview() if one.name != SENTINEL]

    # --- the end

    def replace(self, number: int) -> None:
        """Ends a connection, with its waiting call, and connects again."""
        self.connections[number].internals.abandon()
        self.blocks.pop(number, None)
        self.settle()
        self.connect(number)

    def restart(self) -> None:
        """Restarts the store, and connects again."""
        for one in self._registered:  # a server keeps running, with its hooks
            one.cancel()
        self.store.restart()
        self._abandon_all()
        self.handles.clear()
        self.blocks.clear()
        self.settle()
        for number in CONNECTIONS:
            self.connect(number)
        self.register()

    def _abandon_all(self) -> None:
        for connection in (*self.connections.values(), self.hooking):
            connection.internals.abandon()

    def close(self) -> None:
        self._abandon_all()
        self.store.stop()
        for call in self.calls.values():
            call.ends()
        self.store.close_store()


def opened(operator: QueueManager) -> list[ConnectionView]:
    """The history's connections and handles, without the time and host of a connection, which a server changes."""
    found = operator.inspect.connections()
    return [replace(one, since=None, host="") for one in found if one.program.name.startswith(PROGRAM)]


def listing(source: Iterator[Any], limit: int | None = None) -> tuple[list[Any], Any]:
    """The items of an iterator up to a limit, and the error that ended it."""
    found: list[Any] = []
    try:
        while limit is None or len(found) < limit:
            found.append(next(source))
    except StopIteration:
        return found, None
    except InorderError as error:
        return found, failed(error)
    return found, None


def _kind_of(field: str) -> str:
    return "id" if field.endswith("_id") else field


def _outcome_of(call: Call[Any]) -> Outcome:
    try:
        return Returned(call.result())
    except InorderError as error:
        return failed(error)
