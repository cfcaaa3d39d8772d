"""A driver that drains a queue into files is killed, with all its processes, at each point; another one goes on.

Where the dead driver stood is looked up in Spark's logs and in the store before the other one starts.
"""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest
from tests.spark.kills.checker import METADATA
from tests.spark.kills.processes import Driver, DriverFailed
from tests.spark.kills.world import PER_BATCH, Log, World, killed_at, newest
from tests.support import until

SECONDS_MAX = 120.0
STEP_SECONDS = 0.0005
LONG = "INORDER_LONG" in os.environ
REPEATS = 5 if LONG else 1

POINTS = [
    ("claimed:2", Log(0, 0, (2, False))),
    ("logged:2", Log(1, 0, (2, False))),
    ("next:3", Log(1, 1, (2, True))),
]
MORE_POINTS = [
    ("claimed:1", Log(-1, -1, (1, False))),
    ("logged:1", Log(0, -1, (1, False))),
    ("planned:2", Log(1, 0, (2, True))),
    ("next:2", Log(0, 0, (1, True))),
]
TRIED = POINTS + (MORE_POINTS if LONG else [])


@pytest.mark.parametrize("_", range(REPEATS))
@pytest.mark.parametrize(("point", "log"), TRIED, ids=[point for point, _ in TRIED])
def test_a_driver_that_plans_is_killed(world: World, successor: Driver, point: str, log: Log, _: int) -> None:
    with killed_at(world, point, "drain", **world.drains()):
        assert world.log() == log
    world.check_so_far()
    successor.ask("drain", **world.drains())
    world.check_archive()


BESIDE = [
    ("confirming:2", [1, 2]),  # the messages of claim 1 are about to go
    ("confirmed:2", [2]),
    ("ahead:2", [2, 3]),
]


@pytest.mark.parametrize("_", range(REPEATS))
@pytest.mark.parametrize(("point", "held"), BESIDE, ids=[point for point, _ in BESIDE])
def test_a_driver_is_killed_beside_its_tasks(
    world: World, successor: Driver, point: str, held: list[int], _: int
) -> None:
    with killed_at(world, point, "drain", **world.drains()):
        until(lambda: world.log() == Log(1, 1, (2, True)), "Spark has done the second batch")
        assert world.held() == held
    world.check_so_far()
    successor.ask("drain", **world.drains())
    world.check_archive()


@pytest.mark.skipif(not LONG, reason="where Spark stands is left to chance; INORDER_LONG=1 runs it")
@pytest.mark.parametrize("_", range(REPEATS))
@pytest.mark.parametrize("point", ["confirming:1", "confirming:3", "ahead:1", "ahead:3"])
def test_a_driver_is_killed_beside_its_tasks_wherever_these_are(
    world: World, successor: Driver, point: str, _: int
) -> None:
    with killed_at(world, point, "drain", **world.drains()):
        pass
    world.check_so_far()
    successor.ask("drain", **world.drains())
    world.check_archive()


@pytest.mark.parametrize("_", range(REPEATS))
def test_a_driver_is_killed_while_its_tasks_read(world: World, successor: Driver, _: int) -> None:
    with killed_at(world, "reading:2", "drain", **world.drains()):
        log = world.log()
        assert log.offsets == log.commits + 1
        assert log.open == (log.offsets + 1, True)
    world.check_so_far()
    successor.ask("drain", **world.drains())
    world.check_archive()


@pytest.mark.parametrize("_", range(REPEATS))
def test_a_driver_is_killed_between_the_commit_of_the_files_and_that_of_spark(
    folder: Path, successor: Driver, _: int
) -> None:
    world = World(folder, messages=20 * PER_BATCH)  # batches enough to meet the moment
    one = Driver(folder)
    try:
        one.ready()
        one.order("drain", **world.drains())
        batch = stop_between(one, world)
    finally:
        one.kill()
        one.end()
    assert world.log() == Log(batch, batch - 1, (batch + 1, True))
    assert world.check_so_far() > batch * PER_BATCH / 2
    successor.ask("drain", **world.drains())
    world.check_archive()


def stop_between(one: Driver, world: World) -> int:
    """Stops the JVM where the files of a batch are committed, and the batch is not; which batch it was.

    The moment is short. So the JVM is let on in short steps, and looked at where it stands still.
    """
    java, deadline = one.java(), time.monotonic() + SECONDS_MAX
    files, commits = world.archive / METADATA, world.checkpoint / "commits"
    while time.monotonic() < deadline:
        os.kill(java, signal.SIGSTOP)
        batch = newest(commits) + 1
        if has(files, batch):
            while Path(f"/proc/{java}/stat").read_text().rpartition(")")[2].split()[0] != "T":
                continue
            if newest(commits) == batch - 1:
                return batch
        os.kill(java, signal.SIGCONT)
        until = time.monotonic() + STEP_SECONDS
        while time.monotonic() < until:
            continue
    raise DriverFailed("the moment was never met")


def has(files: Path, batch: int) -> bool:
    return (files / str(batch)).exists() or (files / f"{batch}.compact").exists()


def test_the_last_file_of_the_commit_log_is_lost(world: World, successor: Driver) -> None:
    with killed_at(world, "next:4", "run", name="files", **world.to_files()):
        assert world.log() == Log(2, 2, (3, True))
    before = world.check_so_far()
    world.forget(2)
    successor.ask("run", name="files", **world.to_files())
    assert before < world.check_so_far()
    world.finish()
    world.check_archive()


def test_the_commit_of_a_batch_that_is_confirmed_is_lost(world: World, successor: Driver) -> None:
    successor.ask("run", name="files", **world.to_files())
    log = world.log()
    assert log.open is None  # the run looked for more, and so confirmed its last batch
    world.forget(log.commits)
    successor.ask("run", name="files", **world.to_files())  # the sink knows that batch
    world.check_archive()


def test_a_batch_that_is_confirmed_cannot_be_read_again(world: World, successor: Driver) -> None:
    successor.ask("run", name="queue", **world.to_queue())
    last = world.log().commits
    world.forget(last)
    with pytest.raises(DriverFailed, match=f"claim {last + 1} of application 'killed' is over"):
        successor.ask("run", name="queue", **world.to_queue())
    world.check_target()


@pytest.mark.skipif(not LONG, reason="each point is tried by itself; INORDER_LONG=1 runs it")
@pytest.mark.parametrize("_", range(REPEATS))
def test_two_drivers_are_killed_one_after_the_other(world: World, successor: Driver, _: int) -> None:
    with killed_at(world, "logged:2", "drain", **world.drains()):
        assert world.log() == Log(1, 0, (2, False))
    with killed_at(world, "claimed:1", "drain", **world.drains()):
        assert world.log() == Log(1, 1, (3, False))
    world.check_so_far()
    successor.ask("drain", **world.drains())
    world.check_archive()
