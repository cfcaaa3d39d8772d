"""Helpers for several test files: stores closed at the end, calls on threads, snapshots of the visible state."""

from __future__ import annotations

import contextlib
import io
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Generic, NamedTuple, TypeVar

import pytest
from hypothesis import settings

from inorder import Flags, Listener, QueueManager, Reason, connect
from inorder.errors import ArgumentError, InorderError, NoMessageAvailable
from inorder.stores.engine.process import NO_NUMBERS
from inorder.stores.engine.waiting import WaitingRoom
from inorder.stores.seam.protocol import LocalStore
from inorder.stores.seam.records import GetOutcome, GetRequest, PutOutcome, PutRequest
from inorder.support.clock import Clock, SystemClock
from inorder.testing import ManualClock
from inorder.testing.stores import RestartableStore, make_store

T = TypeVar("T")
# No wait of a test takes this long unless the test fails, even on a slow, busy machine. The limit is shorter than the
# 600 seconds of waits that must be woken: at its end a wait looks once more, which would hide a lost wake-up. It is
# shorter than the time limit of a test (300 s), so that the error names what has not ended.
LIMIT_SECONDS = 240.0
DRAWN_AHEAD = 5  # numbers that a connection keeps for its next puts, where connections draw apart


# For tests of a property of the memory store alone; each states the reason.
memory_alone = pytest.mark.parametrize("kind", ["memory"], indirect=True)


def called(call: Callable[[], object]) -> Counter[str]:
    """Counts the calls of each Python function, by its name, during a call, on this thread."""
    found: Counter[str] = Counter()
    profile = sys.getprofile()
    sys.setprofile(lambda frame, event, _: found.update([frame.f_code.co_name] if event == "call" else ()))
    try:
        call()
    finally:
        sys.setprofile(profile)
    return found


def close_store(store: LocalStore) -> None:
    store.stop()
    store.close_store()


Make = Callable[[str], str]  # returns the path or URL of an empty place for a store


class Stores:
    """Makes stores of one kind, and closes them at the end of its block."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self._made: list[RestartableStore] = []

    def make(self, clock: Clock | None = None) -> RestartableStore:
        """Makes a store; by default it uses the system clock."""
        self._made.append(make_store(self.kind, clock or SystemClock()))
        return self._made[-1]

    def __enter__(self) -> Stores:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        while self._made:
            close_store(self._made.pop())


def drawing_apart(store: RestartableStore, *, all_puts: bool = True) -> RestartableStore:
    """Has each connection of the store draw the numbers of its puts in blocks of its own, as separate processes may.

    Args:
        all_puts: False: only puts in leases and under confirm ids do this; all others have rising numbers.
    """
    blocks: dict[int, Iterator[int]] = {}
    opened: Any = getattr(store, "inner", store)  # the server's, for a store elsewhere
    put: Callable[[PutRequest], PutOutcome] = opened.put

    def apart(request: PutRequest) -> PutOutcome:
        connection = opened.handles[request.handle].connection if request.handle in opened.handles else None
        if connection is None or not (all_puts or connection.is_leased or request.options.confirm_id):
            return put(request)
        owner, draw = connection.id, opened.backend.draw
        opened.numbers = blocks.pop(owner, NO_NUMBERS)
        opened.backend.draw = lambda count, reserve: draw(count + DRAWN_AHEAD, reserve)
        try:
            return put(request)
        finally:
            opened.backend.draw = draw
            blocks[owner], opened.numbers = opened.numbers, NO_NUMBERS

    opened.put = apart
    return store


@contextlib.contextmanager
def fresh_manager(kind: str) -> Iterator[QueueManager]:
    """Yields a connection to a new queue manager, for each example of a property."""
    with Stores(kind) as stores, connect(stores.make(ManualClock()), program="test") as manager:
        yield manager


def examples(kind: str) -> settings:
    """Settings with fewer examples where each of them makes a file, or a schema on a server."""
    return settings(max_examples=max(1, settings().max_examples // {"memory": 1, "postgresql": 20}.get(kind, 4)))


class Call(Generic[T]):
    """A call on a thread of its own; waits for its end have a time limit."""

    def __init__(self, function: Callable[[], T]) -> None:
        self._function = function
        self._results: list[T] = []
        self._error: BaseException | None = None
        self.watcher: QueueManager | None = None
        self.done = False
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            self._results.append(self._function())
        except BaseException as error:  # noqa: BLE001 - `result` raises it again
            self._error = error
        self.done = True
        if self.watcher is not None:
            room_of(self.watcher).poke()

    def result(self) -> T:
        """Returns the result of the call, or raises its error."""
        self.ends()
        if self._error is not None:
            raise self._error
        return self._results[0]

    def error(self) -> BaseException:
        self.ends()
        assert self._error is not None, f"the call returned {self._results[0]!r}"
        return self._error

    def ends(self) -> None:
        """Waits until the call has returned or raised."""
        self._thread.join(LIMIT_SECONDS)
        assert not self._thread.is_alive(), "the call has not ended in time"

    def settles(self, manager: QueueManager) -> None:
        """Waits until the call has ended, or sleeps with nothing left to look at.

        Args:
            manager: the connection that makes the call.
        """
        all_settle([(self, manager)])

    def sleeps(self, manager: QueueManager) -> None:
        """Waits until the call sleeps with nothing left to look at; fails if it ends instead.

        Args:
            manager: the connection that makes the call.
        """
        self.settles(manager)
        assert not self.done, f"the call ended: {self._results} {self._error!r}"


def room_of(manager: QueueManager) -> WaitingRoom:
    """The waiting room of this process for the store of a connection."""
    store: Any = manager._services.store
    room: WaitingRoom = store.waiting
    return room


def looks_once(qm: QueueManager, request: GetRequest) -> tuple[GetOutcome, float | None]:
    """Looks once as a call that would wait; returns the outcome, and when it would look again without a change."""
    store: Any = qm._services.store
    found: tuple[GetOutcome, float | None] = store._look(request, waits=True)
    return found


def all_settle(calls: Sequence[tuple[Call[Any], QueueManager]]) -> None:
    """Waits until, at one moment, each call on its connection has ended or sleeps with nothing left to look at."""
    for call, manager in calls:
        call.watcher = manager
    if not all(call.done for call, _ in calls):
        room = room_of(calls[0][1])

        def at_rest() -> bool:
            return all(call.done or room.is_asleep(manager.internals.owner) for call, manager in calls)

        Call(lambda: room.watch_until(at_rest)).result()


def waiting(manager: QueueManager, function: Callable[[], T]) -> Call[T]:
    """Starts a call on `manager`, and returns it when it waits."""
    call = Call(function)
    call.sleeps(manager)
    return call


def until(condition: Callable[[], bool], what: str, seconds: float = 240.0) -> None:
    """Waits for an effect of another thread or process. Raises: AssertionError, the time limit was exceeded."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"after {seconds:g} s not yet: {what}"
        time.sleep(0.005)


def bodies(manager: QueueManager, queue: str = "Q", **keywords: Any) -> list[bytes]:
    """The bodies on a queue, in the order of a browse."""
    return [message.body for message in manager.browse(queue, **keywords)]


def bodies_at(place: str | Path, queue: str = "Q") -> list[bytes]:
    """The bodies on a queue of a store, in the order of a browse."""
    with connect(place) as manager:
        return bodies(manager, queue)


def put_figure(manager: QueueManager, queue: str = "Q", **fields: Any) -> None:
    """Puts figures 1 and 2 of the manual: Y3.2 is the second segment of the third message of group Y."""
    last, segment, end = Flags.LAST_IN_GROUP, Flags.SEGMENT, Flags.LAST_SEGMENT
    figure: list[tuple[str, int, int]] = [
        ("A", 0, 0), ("Y1", Flags.IN_GROUP, 0), ("Z2", last, 0), ("Y2", Flags.IN_GROUP, 0),
        ("Y3.1", last | segment, 0), ("Y3.2", last | end, 4), ("Z1", Flags.IN_GROUP, 0), ("B", 0, 0),
    ]  # fmt: skip
    for name, flags, offset in figure:
        group, number = name[:1].encode(), int(name[1:2] or 1)
        manager.put(queue, name.encode(), flags=flags, group_id=group, sequence_number=number, offset=offset, **fields)


def put_group(manager: QueueManager, *bodies: bytes, queue: str = "Q", **fields: Any) -> bytes:
    """Puts a group of messages; returns its id."""
    with manager.group(queue) as group:
        for body in bodies:
            group.put(body, **fields)
    return group.group_id


def drained(manager: QueueManager, queue: str = "Q", **keywords: Any) -> list[bytes]:
    """Gets all messages; returns their bodies."""
    found = []
    with contextlib.suppress(NoMessageAvailable):
        while True:
            found.append(manager.get(queue, **keywords).body)
    return found


def told(manager: QueueManager, sentinel: str = "SENTINEL") -> None:
    """Waits until listeners of this connection, and all hooks, have been called for everything that happened so far.

    Hooks are called on one thread, in order: when the hook made here is called, all earlier calls have been made.
    """
    manager.create_queue(sentinel)
    called = threading.Event()
    registration = manager.inspect.hook("visible", lambda queue, message: called.set() if queue == sentinel else None)
    manager.put(sentinel, b"", syncpoint=False)
    assert called.wait(LIMIT_SECONDS), "the hook was not called in time"
    registration.cancel()
    manager.delete_queue(sentinel, purge=True)
    heard(manager)


def heard(manager: QueueManager) -> None:
    """Waits until the listeners of this connection sleep with nothing left to look at."""
    for one in manager._session.belongings:
        assert isinstance(one, Listener)
        _waits(one)


def _waits(listener: Listener) -> None:
    own: Any = listener.own
    room = room_of(own)
    Call(lambda: room.watch_until(lambda: not listener.is_alive or room.is_asleep(own.internals.owner))).result()
    if not listener.is_alive:  # the function that it is calling may have cancelled it
        listener._thread.join(LIMIT_SECONDS)


def snapshot(manager: QueueManager) -> tuple[object, ...]:
    """The visible state of a queue manager, read by another connection."""
    onlooker = manager.connect(program="onlooker")
    try:
        queues = onlooker.queues()
        locals_ = [queue.name for queue in queues if queue.type == "local"]
        return (
            queues,
            [onlooker.inspect.status(name) for name in locals_],
            [list(onlooker.browse(name)) for name in locals_ if onlooker.attributes(name).get_allowed],
            onlooker.inspect.units(),
            onlooker.admin.manager_attributes(),
            onlooker.admin.processes(),
        )
    finally:
        onlooker.internals.abandon()


class Line(NamedTuple):
    """A line of a table of bad calls: the call on a world, and its expected error.

    Args:
        word: expected in the error's text: the argument's name, or its value.
    """

    call: Callable[[Any], object]
    error: type[InorderError]
    reason: Reason
    word: str


def check(line: Line, world: Any) -> None:
    """Checks that the call fails with its error, and that nothing visible to `world.qm` has changed."""
    before = snapshot(world.qm)
    with pytest.raises(InorderError) as raised:
        line.call(world)
    error = raised.value
    assert isinstance(error, line.error)
    assert error.reason == line.reason
    assert line.word in str(error), error
    if isinstance(error, ArgumentError):
        assert {"argument", "value"} <= error.data.keys()
    assert snapshot(world.qm) == before


def error_of(call: Callable[..., object], *given: Any, **named: Any) -> InorderError:
    with pytest.raises(InorderError) as raised:
        call(*given, **named)
    return raised.value


class StillClock:
    """A clock that stands still until it is set."""

    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        return self.now


class Raw(io.RawIOBase):
    """A stream without a buffer, as a socket is: each write takes at most three bytes."""

    def __init__(self, *, is_full: bool = False) -> None:
        self.written, self._is_full = b"", is_full

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int | None:
        taken = bytes(data)[:3]
        self.written += taken
        return None if self._is_full else len(taken)
