"""ManualClock: time that only tests move, in one process and in several."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.helpers.support import Stores, bodies, waiting

from inorder import FOREVER, NoMessageAvailable, connect
from inorder.support.clock import SystemClock
from inorder.testing import STORES, ManualClock, temporary_manager

IN_ANOTHER_PROCESS = """
import sys
from inorder.testing import ManualClock
clock = ManualClock(path=sys.argv[1])
before = clock.now()
print(before, clock.advance(float(sys.argv[2])), clock.now())
"""


def advance_elsewhere(path: Path, seconds: float) -> list[float]:
    """Moves the clock in another process; returns the time before, the answer of the call, and the time after."""
    command = [sys.executable, "-c", IN_ANOTHER_PROCESS, str(path), str(seconds)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return [float(word) for word in done.stdout.split()]


# ---- in one process


def test_a_manual_clock_moves_only_when_it_is_advanced() -> None:
    assert ManualClock().now() == 1_000_000_000.0
    clock = ManualClock(start=5)
    assert clock.now() == clock.now() == 5
    assert clock.advance(2.5) == 7.5
    assert clock.advance(0) == 7.5
    assert clock.now() == 7.5


def test_a_watcher_of_a_clock_is_called_at_every_advance() -> None:
    clock, times = ManualClock(start=0), list[float]()
    clock.watch(lambda: times.append(clock.now()))
    clock.advance(1)
    clock.advance(2)
    assert times == [1, 3]


def test_a_temporary_manager_uses_the_clock_it_is_given() -> None:
    clock = ManualClock(start=100)
    with temporary_manager(clock=clock) as qm:
        qm.create_queue("Q")
        clock.advance(5)
        qm.put("Q", b"1", expiry=10)
        assert qm.get("Q").put_at == 105
        assert qm.inspect.status("Q").created_at == 100


def test_a_temporary_manager_is_stopped_after_its_block(kind: str) -> None:
    with temporary_manager(kind) as qm:
        other = qm.connect()
        other.create_queue("Q")
        call = waiting(other, lambda: other.get("Q", wait=FOREVER))
    assert getattr(call.error(), "reason", None) == 2162


@pytest.mark.parametrize("name", STORES)
def test_a_temporary_manager_takes_every_store_by_name(name: str) -> None:
    with temporary_manager(name) as qm:
        qm.create_queue("Q")
        qm.put("Q", b"1")
        assert bodies(qm) == [b"1"]


# ---- shared through a path


def test_two_processes_share_a_clock(tmp_path: Path) -> None:
    path = tmp_path / "clock"
    clock = ManualClock(start=100, path=path)
    clock.advance(5)
    assert ManualClock(start=7, path=str(path)).now() == 105
    assert advance_elsewhere(path, 2.5) == [105, 107.5, 107.5]
    assert clock.now() == 107.5


def test_a_wait_notices_that_another_process_moved_the_time(stores: Stores, tmp_path: Path) -> None:
    path = tmp_path / "clock"
    clock = ManualClock(path=path)
    with connect(stores.make(clock)) as qm:
        qm.create_queue("Q")
        other = qm.connect()
        qm.put("Q", b"1", delay=5)
        call = waiting(other, lambda: other.get("Q", wait=10).body)
        advance_elsewhere(path, 5)
        assert call.result() == b"1"
        call = waiting(other, lambda: other.get("Q", wait=10).body)
        advance_elsewhere(path, 9.5)
        call.sleeps(other)
        clock.advance(0.5)
        assert isinstance(call.error(), NoMessageAvailable)


# ---- the machine's clock


def test_the_system_clock_runs_and_calls_no_watcher() -> None:
    clock, moved = SystemClock(), list[None]()
    before = time.time()
    clock.watch(lambda: moved.append(None))
    assert before <= clock.now() <= time.time()
    assert moved == []
