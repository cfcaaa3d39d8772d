"""A driver that carries messages from queue to queue is killed when a task has staged, and when a batch is put."""

from __future__ import annotations

import os

import pytest
from tests.spark.kills.checker import on_queue, wrong_at_sink
from tests.spark.kills.processes import Driver
from tests.spark.kills.world import PER_BATCH, TARGET, World, killed_at
from tests.tiers import gate

import inorder
from inorder.stores.seam.views import Unit

EXPIRY_SECONDS = 60.0
REPEATS = 5 if "INORDER_LONG" in os.environ else 1


def stagings(world: World) -> list[Unit]:
    with inorder.connect(world.url) as qm:
        return [unit for unit in qm.inspect.units() if unit.kind == "staging"]


@pytest.mark.parametrize("_", range(REPEATS))
def test_what_a_dead_driver_has_staged_is_never_seen_and_expires(world: World, successor: Driver, _: int) -> None:
    order = world.to_queue()
    order["sink_options"]["stagingExpiry"] = str(EXPIRY_SECONDS)
    with killed_at(world, "staged:2", "run", name="queue", **order):
        log = world.log()
        assert log.offsets == log.commits + 1
    before = on_queue(world.url, TARGET)
    assert wrong_at_sink(before, world.plan, all_there=False) == []
    left = stagings(world)
    assert left
    successor.ask("run", name="queue", **order)
    world.finish()
    assert wrong_at_sink(on_queue(world.url, TARGET), world.plan) == []
    assert set(left) <= set(stagings(world))
    world.let_time_pass(2 * EXPIRY_SECONDS)
    world.check_target()


@gate
@pytest.mark.parametrize("_", range(REPEATS))
def test_a_batch_that_was_put_by_a_dead_driver_is_not_put_again(world: World, successor: Driver, _: int) -> None:
    with killed_at(world, "settled:2", "run", name="queue", **world.to_queue()):
        log = world.log()
        assert (log.offsets, log.commits, log.open) == (1, 0, (2, True))
    before = on_queue(world.url, TARGET)
    assert len(before) > PER_BATCH
    assert wrong_at_sink(before, world.plan, all_there=False) == []
    successor.ask("run", name="queue", **world.to_queue())
    world.finish()
    world.check_target()
