"""The bell that processes with one store share: no order of steps loses a change, and nothing stays behind."""

from __future__ import annotations

import ctypes
import mmap
import os
import signal
import sys
import threading
from collections.abc import Callable
from functools import partial
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
from tests.helpers.support import LIMIT_SECONDS, Call, room_of, until, waiting
from tests.stores.sqlite.programs import FOREVER, Program, programs
from tests.tiers import gate, nightly

import inorder
from inorder import QueueManager
from inorder.errors import ConnectionBroken, ConnectionClosed
from inorder.stores.seam.changes import Change, Changes
from inorder.stores.sqlite import SqliteStore, bell, watch
from inorder.stores.sqlite.bell import QUEUE_BITS, SharedBell
from inorder.stores.sqlite.coordination import RINGS, SLOTS_AT, WAITED, WAITERS, WORDS, Coordination
from inorder.stores.sqlite.watch import SqliteBell, SqliteWatch, WaitedQueues
from inorder.support.locks import Lock

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="Linux has the futex")
QUEUE, LIKE_IT, OTHER = 1, 1 + QUEUE_BITS, 2  # the second has the bit of the first
SWITCHES_MAX = 3
CHANGES: dict[str, list[int | None]] = {
    "of its queue": [QUEUE],
    "of one with the same bit, then of its queue": [LIKE_IT, QUEUE],
    "of two at once": [OTHER, QUEUE],
    "lost with who made it": [None],
    "of one with the same bit, then lost": [LIKE_IT, None],
}
CHEAP = ("of its queue", "lost with who made it")


class Schedule:
    """Two threads on shared words, of which one runs at a time; they change places at the given steps.

    A step is a read of a word of the bell or of the changes, a write to it, a wake, or the beginning of a sleep.
    """

    def __init__(self, switches: tuple[int, ...]) -> None:
        self._switches, self.steps = frozenset(switches), 0
        self._may_run = {"waits": threading.Semaphore(0), "changes": threading.Semaphore(0)}
        self._over = set[str]()
        self._asleep: int | None = None  # the bits with which the waiting thread sleeps
        self._words = [0] * WORDS

    # ---- the words, for the code that is tested

    def __getitem__(self, at: int) -> int:
        self._step(at)
        return self._words[at]

    def __setitem__(self, at: int, value: int) -> None:
        self._step(at)
        self._words[at] = value

    def sleep(self, _address: int, rings: int, bits: int, _seconds: float) -> None:
        self._step(RINGS)
        if self._words[RINGS] != rings:
            return
        self._asleep = bits
        self._change_places()
        if self._asleep is not None:
            raise SystemExit  # ends this thread

    def wake(self, _address: int, bits: int) -> int:
        self._step(RINGS)
        if self._asleep is None or not self._asleep & bits:
            return 0
        self._asleep = None
        return 1

    # ---- the thread that runs

    def _step(self, at: int) -> None:
        if at in (RINGS, WAITED, WAITERS) or at >= SLOTS_AT:
            self.steps += 1
            if self.steps in self._switches:
                self._change_places()

    def _change_places(self) -> None:
        own = threading.current_thread().name
        other = "changes" if own == "waits" else "waits"
        if other in self._over or (other == "waits" and self._asleep is not None):
            return
        self._may_run[other].release()
        assert self._may_run[own].acquire(timeout=LIMIT_SECONDS)

    def run(self, first: str, waits: threading.Thread, changes: threading.Thread) -> None:
        for thread in (waits, changes):
            thread.start()
        self._may_run[first].release()
        for thread in (waits, changes):
            thread.join(LIMIT_SECONDS)

    def begin(self) -> None:
        assert self._may_run[threading.current_thread().name].acquire(timeout=LIMIT_SECONDS)

    def end(self) -> None:
        own = threading.current_thread().name
        self._over.add(own)
        self._may_run["changes" if own == "waits" else "waits"].release()


class Lone:
    """The attributes of a process in which one call waits."""

    def __init__(self, **has: Any) -> None:
        vars(self).update(has)


def is_told(monkeypatch: pytest.MonkeyPatch, made: list[int | None], first: str, switches: tuple[int, ...]) -> int:
    """A process that waits must be told of these changes, which another makes. Returns the number of steps."""
    words = Schedule(switches)
    monkeypatch.setattr(bell, "sleep", words.sleep)
    monkeypatch.setattr(bell, "wake", words.wake)
    memory: Any = words
    shared, others = (SharedBell(memory, 0, RINGS, WAITED, WAITERS) for _ in range(2))
    process: Any = Lone(words=words, bell=others, users={1})

    def seen(slot: int) -> int:
        return Coordination.seen(process, slot)

    queues = WaitedQueues()
    store: Any = Lone(lock=Lock(), changes=Changes())
    database: Any = Lone(shared=Lone(bell=shared, seen=seen))
    watching = SqliteWatch(store, database, queues)
    told = SqliteBell(watching, "Q")
    store.changes.subscribe(lambda happened: told.ring() if happened == Change("Q") else None)
    queues.attend(1)
    words.steps = -(1 << 30)  # the look has its own turn, and is no step
    watching.looked(QUEUE, "Q")
    words.steps = 0
    is_over = []

    def wait() -> None:
        words.begin()
        told.wait(None)
        is_over.append(True)
        words.end()

    def change() -> None:
        words.begin()
        for queue in made:
            if queue is None:
                Coordination.announce_lost(process)
            else:
                Coordination.after_commit(process, [queue])
        words.end()

    process.after_commit = partial(Coordination.after_commit, process)
    words.run(first, *(threading.Thread(target=act, name=name) for act, name in ((wait, "waits"), (change, "changes"))))
    assert is_over, f"not told of changes of {made}: {first} first, changing places at steps {switches}"
    return words.steps


@pytest.fixture
def never_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    """A waiting call looks only when it is woken, not because time has passed."""
    monkeypatch.setattr(watch, "DEAD_CHECK_SECONDS", 1e6)


@pytest.mark.usefixtures("never_by_itself")
@pytest.mark.parametrize("what", [what if what in CHEAP else pytest.param(what, marks=nightly) for what in CHANGES])
def test_no_order_of_steps_loses_a_change(monkeypatch: pytest.MonkeyPatch, what: str) -> None:
    made = CHANGES[what]
    for first in ("waits", "changes"):
        steps = is_told(monkeypatch, made, first, ())
        for count in range(1, SWITCHES_MAX + 1):
            for switches in combinations(range(1, steps + 4), count):
                is_told(monkeypatch, made, first, switches)


@pytest.mark.usefixtures("never_by_itself")
def test_a_ring_just_before_a_waiting_call_sleeps_is_not_lost(
    qm: QueueManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another thread of its process rings, without a change of the queue."""
    sleep, room, slept = SqliteBell._sleep, room_of(qm), list[float]()

    def late(own: SqliteBell, seconds: float) -> None:
        if not slept:
            room.dismiss(room._waiters[0].owner)
        slept.append(seconds)
        sleep(own, seconds)

    monkeypatch.setattr(SqliteBell, "_sleep", late)
    assert isinstance(Call(lambda: qm.get("Q", wait=FOREVER)).error(), ConnectionBroken)
    assert len(slept) == 1


class HeldUp(dict[int, int]):
    """Words to which one process writes only after others have acted."""

    def __init__(self, meanwhile: Callable[[], None]) -> None:
        super().__init__({RINGS: 0, WAITED: 0, WAITERS: 0})
        self._meanwhile: Callable[[], None] | None = meanwhile

    def __setitem__(self, at: int, value: int) -> None:
        meanwhile, self._meanwhile = self._meanwhile, None
        if meanwhile is not None:
            meanwhile()
        super().__setitem__(at, value)


@pytest.mark.usefixtures("woken")
def test_a_delayed_ring_restores_no_number_on_which_another_process_is_about_to_sleep() -> None:
    def meanwhile() -> None:
        other.ring()
        read.append(own.rings)
        other.ring()

    memory: Any = HeldUp(meanwhile)
    own, other = (SharedBell(memory, 0, RINGS, WAITED, WAITERS) for _ in range(2))
    read: list[int] = []
    own.ring()
    assert own.rings != read[0]


class Interrupting(dict[Any, Any]):
    """Raises an exception, as if from outside, when it has been cleared."""

    def clear(self) -> None:
        super().clear()
        raise KeyboardInterrupt


def test_an_exception_at_the_end_of_a_wait_leaves_no_queue_number_without_its_queue() -> None:
    queues = WaitedQueues()
    queues.queues, queues.numbers = Interrupting(), Interrupting()
    queues.attend(1)
    queues.looked(QUEUE, "Q", 0)
    with pytest.raises(KeyboardInterrupt):
        queues.attend(0)
    assert set(queues.numbers.values()) <= queues.queues.keys(), "the next who waits looks for what is not there"


# ---- the cost, and the marks of dead processes


@pytest.fixture
def woken(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The bits of each system call that wakes; it finds nobody asleep."""
    calls: list[int] = []

    def wake(_address: int, bits: int) -> int:
        calls.append(bits)
        return 0

    monkeypatch.setattr(bell, "wake", wake)
    return calls


def test_a_change_for_which_no_call_waits_makes_no_system_call(qm: QueueManager, woken: list[int]) -> None:
    qm.create_queue("R")
    for _ in range(3):
        qm.put("Q", b"x")
        qm.get("Q")
        qm.put("R", b"x", syncpoint=True)
        qm.commit()
    assert not woken


def test_a_change_of_another_queue_than_the_awaited_one_makes_no_system_call(
    qm: QueueManager, child: Program, woken: list[int]
) -> None:
    qm.create_queue("R")
    child.run("wait = Waiting(qm, lambda: qm.get('R', wait=600))")
    qm.put("Q", b"x")
    assert not woken


def test_a_change_awaited_only_in_its_own_process_wakes_no_other_process(qm: QueueManager, woken: list[int]) -> None:
    other = qm.connect()
    call = waiting(other, lambda: other.get("Q", wait=FOREVER).body)
    qm.put("Q", b"1")
    assert call.result() == b"1"
    assert set(woken) <= {bell.own_bit()}, "its call is told by its own process"


@pytest.mark.parametrize("first", ["this process", "another"])
def test_a_change_that_another_process_awaits_too_wakes_that_process(
    qm: QueueManager, child: Program, woken: list[int], first: str
) -> None:
    other, wait = qm.connect(), "wait = Waiting(qm, lambda: qm.get('Q', wait=600))"
    if first == "another":
        child.run(wait)
    call = waiting(other, lambda: other.get("Q", wait=FOREVER).body)
    if first == "this process":
        child.run(wait)
    child.kill()
    qm.put("Q", b"1")
    assert call.result() == b"1"
    assert set(woken) - {bell.own_bit()}, "the others are not told"


def test_the_mark_of_a_dead_waiter_costs_the_next_change_of_its_queue_two_system_calls(
    qm: QueueManager, child: Program, woken: list[int]
) -> None:
    child.run("wait = Waiting(qm, lambda: qm.get('Q', wait=600))")
    child.kill()
    qm.put("Q", b"x")
    assert len(woken) == 2
    for _ in range(3):
        qm.put("Q", b"x")
    assert len(woken) == 2


# ---- among processes


@gate
def test_a_stopped_waiter_delays_no_other_waiter_and_continues_later(path: Path, qm: QueueManager) -> None:
    with programs(path, 2) as [stopped, other]:
        for one in (stopped, other):
            one.run("watch.DEAD_CHECK_SECONDS = 1e6; wait = Waiting(qm, lambda: qm.get('Q', wait=600))")
        process = stopped.process.pid
        assert process is not None
        os.kill(process, signal.SIGSTOP)
        status = Path(f"/proc/{process}/stat")
        until(lambda: status.read_text().rpartition(")")[2].split()[0] == "T", "the process is stopped")
        qm.put("Q", b"1")
        assert other.ask("wait.end()") == b"1"
        qm.put("Q", b"2")
        os.kill(process, signal.SIGCONT)
        assert stopped.ask("wait.end()") == b"2"


def test_a_change_by_a_process_killed_between_commit_and_ring_still_wakes_waiters(
    path: Path, qm: QueueManager, child: Program
) -> None:
    """Others find the dead process: they look once a second, and here more often."""
    child.run("import signal; bell.wake = lambda *_: os.kill(os.getpid(), signal.SIGKILL)")
    with programs(path, 1) as [waits]:
        waits.run("watch.DEAD_CHECK_SECONDS = 0.05; wait = Waiting(qm, lambda: qm.get('Q', wait=600))")
        child.begin("qm.put('Q', b'1')")
        child.process.join()
        assert waits.ask("wait.end()") == b"1"


@pytest.mark.usefixtures("never_by_itself")
def test_two_stores_of_one_process_on_one_file_wake_each_other(tmp_path: Path) -> None:
    """They share the process's data about the file, but not the stream of changes."""
    waits, changes = (SqliteStore(tmp_path / "orders.db") for _ in range(2))
    with inorder.connect(waits) as manager, inorder.connect(changes) as other:
        other.create_queue("Q")
        call = waiting(manager, lambda: manager.get("Q", wait=FOREVER).body)
        other.put("Q", b"1")
        assert call.result() == b"1"
    for store in (waits, changes):
        store.close_store()


def test_closing_a_store_ends_the_calls_that_wait_in_it(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "store.db")
    manager = inorder.connect(store)
    manager.create_queue("Q")
    call = waiting(manager, lambda: manager.get("Q", wait=FOREVER))
    store.close_store()
    assert isinstance(call.error(), ConnectionClosed | ConnectionBroken)


# ---- where no process can wake another


@pytest.mark.parametrize("who", ["child", "this process"])
def test_a_waiting_call_notices_changes_without_a_futex(
    qm: QueueManager, child: Program, monkeypatch: pytest.MonkeyPatch, who: str
) -> None:
    monkeypatch.setattr(bell, "WAKES", False)
    child.run("bell.WAKES = False")
    other = qm.connect()
    call = waiting(other, lambda: other.get("Q", wait=FOREVER).body)
    if who == "child":
        child.run("qm.put('Q', b'1')")
    else:
        monkeypatch.setattr(watch, "LOOK_SECONDS", FOREVER)  # this process rings for itself
        qm.put("Q", b"1")
    assert call.result() == b"1"


def test_an_error_of_the_system_call_is_raised() -> None:
    with pytest.raises(OSError, match="Invalid argument"):
        bell.sleep(ctypes.addressof(ctypes.c_uint64()), 0, 0, 1.0)  # no bits


def test_a_sleep_on_unmapped_memory_returns_at_once() -> None:
    with mmap.mmap(-1, mmap.PAGESIZE) as memory:
        address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    bell.sleep(address, 0, bell.ALL_BITS, FOREVER)
