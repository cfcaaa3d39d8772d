"""Drivers killed with all their processes, at each point or at random; tasks and queries that run twice.

Before the next driver starts, the test checks the progress of the dead one in Spark's logs and in the store.
"""

from __future__ import annotations

import json
import os
import random
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from demo.__main__ import main
from tests.helpers.support import until
from tests.spark.kills.checker import archived, on_queue, wrong_at_sink, wrong_counts, wrong_in_store
from tests.spark.kills.cluster import SPECULATION, cluster
from tests.spark.kills.processes import Driver, DriverFailed, driver
from tests.spark.kills.world import PER_BATCH, SOURCE, TARGET, Log, World, killed_at, seeded
from tests.spark.serving import READS, WRITES, ServedFile
from tests.tiers import gate

import inorder
from inorder.spark.options import DAY_SECONDS

LONG = "INORDER_LONG" in os.environ
REPEATS = 5 if LONG else 1
DEMO_FILES = 12
# The point where a process is held, Spark's logs and the open claim at that time, and the claims that hold messages.
POINTS = [
    pytest.param("claimed:2", Log(0, 0, (2, False)), None),
    pytest.param("logged:2", Log(1, 0, (2, False)), None, marks=gate),
    pytest.param("next:3", Log(1, 1, (2, True)), None),
    pytest.param("confirming:2", Log(1, 1, (2, True)), [1, 2]),  # the messages of claim 1 are about to be removed
    pytest.param("confirmed:2", Log(1, 1, (2, True)), [2]),
    pytest.param("ahead:2", Log(1, 1, (2, True)), [2, 3]),
]
MORE_POINTS = [
    pytest.param("claimed:1", Log(-1, -1, (1, False)), None),
    pytest.param("logged:1", Log(0, -1, (1, False)), None),
    pytest.param("planned:2", Log(1, 0, (2, True)), None),
    pytest.param("next:2", Log(0, 0, (1, True)), None),
    # These run beside the tasks, which may have made any progress.
    *(pytest.param(point, None, None) for point in ("confirming:1", "confirming:3", "ahead:1", "ahead:3")),
]


def goes_on(world: World, successor: Driver) -> None:
    world.check_so_far()
    successor.ask("drain", **world.drains())
    world.check_archive()


@pytest.mark.parametrize("_", range(REPEATS))
@pytest.mark.parametrize(("point", "log", "held"), POINTS + (MORE_POINTS if LONG else []))
def test_another_driver_continues_the_query_of_a_killed_one(
    world: World, successor: Driver, point: str, log: Log | None, held: list[int] | None, _: int
) -> None:
    with killed_at(world, point, "drain", **world.drains()):
        if log is not None:
            until(lambda: world.log() == log, f"{log}")
        if held is not None:
            assert world.held() == held
    goes_on(world, successor)


@pytest.mark.parametrize("_", range(REPEATS))
def test_another_driver_continues_after_a_kill_while_tasks_read(world: World, successor: Driver, _: int) -> None:
    with killed_at(world, "reading:2", "drain", **world.drains()):
        log = world.log()
        assert log.offsets == log.commits + 1
        assert log.open == (log.offsets + 1, True)
    goes_on(world, successor)


def test_a_lost_last_file_of_the_commit_log_loses_and_doubles_no_message(world: World, successor: Driver) -> None:
    """A kill between the commit of a batch's files and Spark's own commit leaves the same state."""
    with killed_at(world, "next:4", "run", name="files", **world.to_files()):
        assert world.log() == Log(2, 2, (3, True))
    before = world.check_so_far()
    world.forget(2)
    successor.ask("run", name="files", **world.to_files())
    assert before < world.check_so_far()
    world.finish()
    world.check_archive()


def test_a_lost_commit_of_a_confirmed_batch_loses_and_doubles_no_message(world: World, successor: Driver) -> None:
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
def test_a_third_driver_continues_after_two_killed_ones(world: World, successor: Driver, _: int) -> None:
    with killed_at(world, "logged:2", "drain", **world.drains()):
        assert world.log() == Log(1, 0, (2, False))
    with killed_at(world, "claimed:1", "drain", **world.drains()):
        assert world.log() == Log(1, 1, (3, False))
    goes_on(world, successor)


# --- from queue to queue: killed when a task has staged, or when a batch has been put

EXPIRY_SECONDS = 3600.0


def stagings(world: World) -> set[str]:
    """The names of all that is staged."""
    with inorder.connect(world.url) as qm:
        return {unit.name for unit in qm.inspect.units() if unit.kind == "staging"}


@pytest.mark.parametrize("_", range(REPEATS))
def test_rows_staged_by_a_dead_driver_are_never_seen_and_expire(world: World, successor: Driver, _: int) -> None:
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
    assert left <= stagings(world)
    world.let_time_pass(2 * EXPIRY_SECONDS)
    world.check_target()


@gate
@pytest.mark.parametrize("_", range(REPEATS))
def test_a_query_killed_between_commits_of_two_stores_drains_and_puts_each_message_once(
    world: World, successor: Driver, _: int
) -> None:
    """One query drains a queue in each of two stores into the queues of their names in two others."""
    (world.folder / "second").mkdir()
    worlds = [world, World(world.folder / "second", source="Q.TWO")]
    targets, order = to_two_stores(worlds)
    with killed_at(world, "settled first:2", "run", name="queue", **order):
        log = world.log()
        assert (log.offsets, log.commits) == (1, 0)
        for one in worlds:
            with inorder.connect(one.store) as qm:
                assert [(claim.number, claim.planned) for each in qm.bulk.claims() for claim in each.held] == [
                    (2, True)
                ]
    assert [batches_of(target) for target in targets] == [["0", "1"], ["0"]]
    for one in worlds:
        for target in targets:
            assert wrong_at_sink(on_queue(target, one.queue), one.plan, all_there=False) == []
    successor.ask("run", name="queue", **order)
    check_two_stores(worlds, targets)


def to_two_stores(worlds: list[World]) -> tuple[list[str], dict[str, Any]]:
    """Makes two stores with the worlds' queues; returns them, and an order that drains all worlds into both."""
    first = worlds[0]
    targets = [str(first.folder / name) for name in ("target.db", "another.db")]
    for target in targets:
        with inorder.connect(target) as qm:
            for name in (TARGET, *(each.queue for each in worlds)):
                qm.create_queue(name)
    stores = [*dict.fromkeys(one.url for one in worlds)]
    order = first.to_queue(
        source=first.source(url=json.dumps(stores), queue="Q*", maxMessagesPerTrigger=3 * PER_BATCH),
        sink_options={
            "url": json.dumps(targets), "queue": TARGET, "queueColumn": "queue", "orderBy": "delivery_number"
        },
    )  # fmt: skip
    return targets, order


def check_two_stores(worlds: list[World], targets: list[str]) -> None:
    """Checks that each message came once, to the queue of its name in one of the stores, in order there."""
    for one in worlds:
        rows = [on_queue(target, one.queue) for target in targets]
        assert all(rows)
        complaints = [each for some in rows for each in wrong_at_sink(some, one.plan, all_there=False)]
        complaints += wrong_counts([row.body for some in rows for row in some], one.plan)
        assert complaints + wrong_in_store(one.store, one.queue) == []


def batches_of(target: str) -> list[str]:
    """The batches in the ledger of a sink's store."""
    with closing(sqlite3.connect(target)) as store:
        found = store.execute("SELECT DISTINCT batch FROM ledger WHERE query NOT LIKE 'stores of %' ORDER BY batch")
        return [batch for (batch,) in found]


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


@gate
@pytest.mark.spark
def test_driver_and_server_are_killed_and_nothing_is_lost_or_doubled(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with ServedFile(folder / "server") as served:
        served.grant({SOURCE: READS, TARGET: WRITES})
        served.log_in(folder / "credentials", monkeypatch)
        world = World(folder, url=served.url, store=served.path)
        with killed_at(world, "settled:2", "run", name="queue", **world.to_queue()):
            served.kill()
        served.start()
        with driver(folder) as second:
            second.order("run", name="queue", **world.to_queue())
            world.await_batch(3, second)
            served.kill()
            served.start()
            second.answer()  # the query itself continues
        world.finish()
        world.let_time_pass(2 * DAY_SECONDS)  # rows staged by tasks that lost their connections
        world.check_target()


# --- a task that raises, and one that its twin overtakes


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
def test_a_slow_task_and_its_speculative_copy_double_no_message(world: World, sink: str) -> None:
    flag = world.folder / "slow"
    with cluster(world.folder) as of_two, driver(world.folder, master=of_two.master, settings=SPECULATION) as one:
        one.ask("run", name=sink, fault="slow once", flag=str(flag), **to(sink, world))
    assert sorted(path.name for path in world.folder.glob("slow.*")) == ["slow.0", "slow.1"]
    world.let_time_pass(2 * DAY_SECONDS)  # rows that the slow task may have staged
    check(sink, world)


# --- a second query under the same name, and one that is stopped and started again

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


def test_a_stopped_query_continues_with_another_trigger(world: World, successor: Driver) -> None:
    successor.ask("start", name="files", follow=True, **world.to_files())
    successor.ask("stop", name="files")  # at any point
    world.check_so_far()
    for messages in (FEW, 0):
        with inorder.connect(world.url) as qm:
            world.put(qm, messages)
        successor.ask("run", name="files", **world.to_files())
        world.check_so_far()
    world.finish()
    world.check_archive()


# --- at random moments, while a writer continues to put

KILLS = int(os.environ.get("INORDER_KILLS", "10" if LONG else "3"))
KILL_TIMEOUT_SECONDS = 180  # for a driver, from its start to the checks after its end
SECONDS_MAX = 8.0


def killed_at_random(
    folder: Path,
    chance: random.Random,
    order: dict[str, Any],
    kill_others: Callable[[Driver], object] = lambda _: None,
) -> Iterator[None]:
    """Kills drivers some time after they get their order; yields after each.

    Args:
        kill_others: kills other processes, some time before the driver.
    """
    for _ in range(KILLS):
        one = Driver(folder)
        try:
            one.ready()
            one.order("run", **order)
            if not one.has_ended(chance.uniform(0.0, SECONDS_MAX)):
                kill_others(one)
                one.has_ended(chance.uniform(0.0, SECONDS_MAX))
        finally:
            one.kill()
            one.end()
        yield


@pytest.mark.skipif(not LONG, reason="takes minutes; INORDER_LONG=1 runs it")
@pytest.mark.timeout(600 + KILLS * KILL_TIMEOUT_SECONDS)
@pytest.mark.parametrize("sink", ["files", "queue"])
def test_drivers_killed_at_random_moments_lose_and_double_nothing(folder: Path, successor: Driver, sink: str) -> None:
    chance, world = seeded(), World(folder)
    order = {"name": sink, **to(sink, world)}
    for _ in killed_at_random(folder, chance, order):
        if sink == "files":
            world.check_so_far()
        world.put_more(chance)
    successor.ask("run", **order)
    world.let_time_pass(2 * DAY_SECONDS)  # rows staged by dead drivers
    check(sink, world)


@pytest.mark.spark
@pytest.mark.timeout(600 + KILLS * KILL_TIMEOUT_SECONDS)
def test_drivers_tasks_and_a_server_killed_at_random_lose_and_double_nothing(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two queues in a file and two on a server are drained to the queues of their names in two other stores."""
    chance = seeded()
    with ServedFile(folder / "server", role="admin") as served:
        served.log_in(folder / "credentials", monkeypatch)
        places: list[dict[str, Any]] = [{"url": str(folder / "file.db")}, {"url": served.url, "store": served.path}]
        worlds = [World(folder, source=f"Q.{number}", **places[number % 2]) for number in range(4)]
        targets, order = to_two_stores(worlds)

        def kill_others(one: Driver) -> None:
            if chance.random() < 0.5:
                one.kill_worker(chance)
            if chance.random() < 0.5:
                served.kill()
                served.start()

        for _ in killed_at_random(folder, chance, {"name": "queue", **order}, kill_others):
            for one in worlds:
                for target in targets:
                    assert wrong_at_sink(on_queue(target, one.queue), one.plan, all_there=False) == []
                one.put_more(chance)
        with driver(folder) as last:
            last.ask("run", name="queue", **order)
        check_two_stores(worlds, targets)


# --- the whole of `make demo`: loaders and Spark's driver are killed


@gate
@pytest.mark.timeout(900)
def test_the_files_of_a_folder_are_restored_unchanged(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder, output = tmp_path / "folder", tmp_path / "output"
    folder.mkdir()
    for number in range(DEMO_FILES):
        (folder / f"{number}.txt").write_text("".join(f"line {n} of {number}\n\n" for n in range(40)))
    status = main(["files", str(folder), "--output", str(output)])
    told = capsys.readouterr().out
    assert status == 0, told
    assert f"0 of {DEMO_FILES} files differ from the originals" in told
    assert "errors in their order: 0." in told
    assert (output / "audit/report.html").is_file()
