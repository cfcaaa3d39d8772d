"""Tasks that run more than once: one that raises, and one that is overtaken by its twin."""

from __future__ import annotations

import os
from typing import Any

import pytest
from tests.spark.kills.cluster import SPECULATION, cluster
from tests.spark.kills.processes import Driver, driver
from tests.spark.kills.world import World

from inorder.spark.options import DAY_SECONDS

LONG = "INORDER_LONG" in os.environ


def to(sink: str, world: World) -> dict[str, Any]:
    return world.to_files() if sink == "files" else world.to_queue()


def check(sink: str, world: World) -> None:
    world.finish()
    if sink == "files":
        world.check_archive()
    else:
        world.check_target()


@pytest.mark.parametrize("sink", ["files", "queue"])
def test_a_task_that_raises_is_run_again(world: World, successor: Driver, sink: str) -> None:
    flag = world.folder / "raised"
    successor.ask("run", name=sink, fault="raise once", flag=str(flag), **to(sink, world))
    assert flag.exists()
    check(sink, world)


@pytest.mark.skipif(not LONG, reason="five JVMs; INORDER_LONG=1 runs it")
@pytest.mark.parametrize("sink", ["files", "queue"])
def test_a_slow_task_is_overtaken_by_its_twin(world: World, sink: str) -> None:
    flag = world.folder / "slow"
    with cluster(world.folder) as of_two, driver(world.folder, master=of_two.master, settings=SPECULATION) as one:
        one.ask("run", name=sink, fault="slow once", flag=str(flag), **to(sink, world))
    assert sorted(path.name for path in world.folder.glob("slow.*")) == ["slow.0", "slow.1"]
    world.let_time_pass(2 * DAY_SECONDS)  # what the slow one may have staged
    check(sink, world)
