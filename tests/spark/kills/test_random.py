"""Ten lives of a driver, each killed at a moment that chance chose, while a writer goes on putting."""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest
from tests.spark.kills.processes import Driver
from tests.spark.kills.world import World

import inorder
from inorder.spark.options import DAY_SECONDS

LONG = "INORDER_LONG" in os.environ
LIVES, SECONDS_MAX = 10, 8.0
MESSAGES_EACH = 120


@pytest.mark.skipif(not LONG, reason="takes minutes; INORDER_LONG=1 runs it")
@pytest.mark.parametrize("sink", ["files", "queue"])
def test_ten_drivers_are_killed_at_random_moments(folder: Path, successor: Driver, sink: str) -> None:
    seed = os.environ.get("INORDER_SEED") or str(random.randrange(10**9))
    print(f"INORDER_SEED={seed}")  # the moments are the same again, what happens then is not
    chance = random.Random(seed)
    world = World(folder)
    order = {"name": sink, **(world.to_files() if sink == "files" else world.to_queue())}
    for _ in range(LIVES):
        one = Driver(folder)
        try:
            one.ready()
            one.order("run", **order)
            one.has_ended(chance.uniform(0.0, SECONDS_MAX))
        finally:
            one.kill()
            one.end()
        if sink == "files":
            world.check_so_far()
        with inorder.connect(world.url) as qm:
            world.put(qm, MESSAGES_EACH, seed=chance.randrange(10**6))
    successor.ask("run", **order)
    world.finish()
    if sink == "files":
        world.check_archive()
    else:
        world.let_time_pass(2 * DAY_SECONDS)  # what the dead have staged
        world.check_target()
