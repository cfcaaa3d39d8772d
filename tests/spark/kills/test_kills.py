"""A driver that drains a queue into files is killed, with all its processes, at each point; another one goes on.

Where the dead driver stood is looked up in Spark's logs and in the store before the other one starts.
"""

from __future__ import annotations

import os

import pytest
from tests.helpers.support import until
from tests.spark.kills.processes import Driver, DriverFailed
from tests.spark.kills.world import Log, World, killed_at
from tests.tiers import gate

LONG = "INORDER_LONG" in os.environ
REPEATS = 5 if LONG else 1
# Where a process is held, how far Spark's logs and the claims are then, and which claims hold messages.
POINTS = [
    pytest.param("claimed:2", Log(0, 0, (2, False)), None),
    pytest.param("logged:2", Log(1, 0, (2, False)), None, marks=gate),
    pytest.param("next:3", Log(1, 1, (2, True)), None),
    pytest.param("confirming:2", Log(1, 1, (2, True)), [1, 2]),  # the messages of claim 1 are about to go
    pytest.param("confirmed:2", Log(1, 1, (2, True)), [2]),
    pytest.param("ahead:2", Log(1, 1, (2, True)), [2, 3]),
]
MORE_POINTS = [
    pytest.param("claimed:1", Log(-1, -1, (1, False)), None),
    pytest.param("logged:1", Log(0, -1, (1, False)), None),
    pytest.param("planned:2", Log(1, 0, (2, True)), None),
    pytest.param("next:2", Log(0, 0, (1, True)), None),
    # Beside the tasks, wherever these are.
    *(pytest.param(point, None, None) for point in ("confirming:1", "confirming:3", "ahead:1", "ahead:3")),
]


@pytest.mark.parametrize("_", range(REPEATS))
@pytest.mark.parametrize(("point", "log", "held"), POINTS + (MORE_POINTS if LONG else []))
def test_another_driver_goes_on_for_one_that_is_killed(
    world: World, successor: Driver, point: str, log: Log | None, held: list[int] | None, _: int
) -> None:
    with killed_at(world, point, "drain", **world.drains()):
        if log is not None:
            until(lambda: world.log() == log, f"{log}")
        if held is not None:
            assert world.held() == held
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


def test_the_last_file_of_the_commit_log_is_lost(world: World, successor: Driver) -> None:
    """So it stands, too, where a driver is killed between the commit of a batch's files and that of Spark."""
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
