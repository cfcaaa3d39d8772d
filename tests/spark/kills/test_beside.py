"""A second query under the same name, and a query that is stopped and started again."""

from __future__ import annotations

import pytest
from tests.spark.kills.checker import archived, wrong_at_sink, wrong_in_store
from tests.spark.kills.processes import Driver, DriverFailed
from tests.spark.kills.world import SOURCE, World

import inorder

FEW = 100


def test_of_two_queries_under_one_name_the_older_one_stops(world: World, successor: Driver) -> None:
    second = world.folder / "second"
    younger = world.to_files(
        source=world.source(allowNewCheckpoint=True),
        checkpoint=str(world.folder / "checkpoint 2"),
        sink_options={"path": str(second)},
    )
    successor.ask("start", name="older", follow=True, **world.to_files())
    successor.ask("catch_up", name="older")
    successor.ask("start", name="younger", follow=True, **younger)
    with pytest.raises(DriverFailed, match="application 'killed' was started again after this reader"):
        successor.ask("wait", name="older")
    with inorder.connect(world.url) as qm:
        world.put(qm, FEW)
    successor.ask("catch_up", name="younger")
    successor.ask("stop", name="younger")
    complaints = wrong_at_sink(archived(world.archive, second), world.plan) + wrong_in_store(world.url, SOURCE)
    assert archived(second)
    assert not complaints, complaints


def test_a_query_that_is_stopped_goes_on_whichever_trigger_it_has(world: World, successor: Driver) -> None:
    successor.ask("start", name="files", follow=True, **world.to_files())
    successor.ask("stop", name="files")  # wherever it is
    world.check_so_far()
    for messages in (FEW, 0):
        with inorder.connect(world.url) as qm:
            world.put(qm, messages)
        successor.ask("run", name="files", **world.to_files())
        world.check_so_far()
    world.finish()
    world.check_archive()
