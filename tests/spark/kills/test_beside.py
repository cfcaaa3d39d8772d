"""A query and others: a second query, units of work that are open, readers and writers of the same queue."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import pytest
from tests.spark.kills.checker import (
    archived,
    wrong_at_sink,
    wrong_counts,
    wrong_in_store,
    wrong_lines,
    wrong_numbers,
)
from tests.spark.kills.processes import Driver, DriverFailed
from tests.spark.kills.world import LINES_OPEN, SOURCE, World, mixture
from tests.support import Call

import inorder
from inorder import Flags

FEW = 100
WAIT_SECONDS = 0.05


def test_of_two_queries_under_one_name_the_older_one_stops(world: World, successor: Driver) -> None:
    second = world.folder / "second"
    younger = world.to_files(checkpoint=str(world.folder / "checkpoint 2"), sink_options={"path": str(second)})
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


@pytest.mark.parametrize("read_order", ["strict", "relaxed"])
def test_a_put_of_another_process_is_open_in_the_middle(folder: Path, successor: Driver, read_order: str) -> None:
    world = World(folder, messages=FEW, order="put")
    order = world.drains(options={"readOrder": read_order})
    with inorder.connect(world.url) as other, inorder.connect(world.url) as qm:
        before = FEW
        other.put(SOURCE, b"open", syncpoint=True)
        world.plan.append([b"open"])
        world.put(qm, FEW)
        successor.ask("drain", **order)
        assert world.check_so_far() == (before if read_order == "strict" else 2 * FEW)
        other.commit()
        successor.ask("drain", **order)
    world.check_archive(heads_in_order=read_order == "strict")
    assert (archived(world.archive)[-1].body == b"open") == (read_order == "relaxed")


def take_groups(url: str, is_over: threading.Event, read_order: str) -> list[bytes]:
    """A reader that takes whole groups, each in a unit of work, until it is over and nothing is left."""
    taken: list[bytes] = []
    with inorder.connect(url) as qm, qm.open(SOURCE, input="shared") as queue:
        while True:
            last_look = is_over.is_set()
            try:
                with qm.unit_of_work():
                    inside = True
                    while inside:
                        message = queue.get(
                            logical=True,
                            all_messages=True,
                            read_order="strict" if read_order == "strict" else "relaxed",
                            wait=WAIT_SECONDS,
                        )
                        taken.append(message.body)
                        inside = bool(message.flags & Flags.IN_GROUP) and not message.flags & Flags.LAST_IN_GROUP
            except (inorder.NoMessageAvailable, inorder.OrderPending):
                if last_look:
                    return taken


def put_groups(url: str, puts: Sequence[tuple[int, Flags, bytes]]) -> None:
    """A writer that puts one message at a time, each on its own."""
    with inorder.connect(url) as qm:
        handles = [qm.open(SOURCE, output=True) for _ in range(LINES_OPEN)]
        for writer, flags, body in puts:
            handles[writer].put(body, flags=flags, logical=bool(flags))


def test_a_query_works_beside_readers_and_writers(world: World, successor: Driver) -> None:
    is_over = threading.Event()
    mixtures = [mixture(FEW, seed, prefix=f"writer {seed}/") for seed in (1, 2)]
    successor.ask("start", name="files", follow=True, **world.to_files())
    readers = [Call(partial(take_groups, world.url, is_over, how)) for how in ("strict", "relaxed")]
    writers = [Call(partial(put_groups, world.url, one.puts)) for one in mixtures]
    for call in writers:
        call.result()
    successor.ask("catch_up", name="files")
    is_over.set()
    taken = [call.result() for call in readers]
    successor.ask("catch_up", name="files")
    successor.ask("stop", name="files")
    world.finish()
    plan = [*world.plan, *(line for one in mixtures for line in one.plan)]
    rows = archived(world.archive)
    complaints = [
        *wrong_counts([row.body for row in rows] + [body for one in taken for body in one], plan),
        *wrong_numbers([row.delivery_number for row in rows]),
        *wrong_lines(rows, plan, heads_in_order=False),
        *wrong_in_store(world.url, SOURCE),
    ]
    for one in taken:
        complaints += wrong_counts(one, plan, all_there=False)
    assert not complaints, complaints
