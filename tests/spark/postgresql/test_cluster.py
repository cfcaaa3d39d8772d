"""A standalone cluster works on a store in PostgreSQL, and its processes are killed on the way.

Master, workers and driver have folders of their own, and nothing in common but the server. Checkpoints and archives
must be in a place that all reach: one local folder stands for the object store that a cluster has.
"""

from __future__ import annotations

import os
import random
import shutil
import time
from contextlib import AbstractContextManager
from pathlib import Path

import pytest
from benchmarks.servers import LOOPBACK
from tests.spark.kills.cluster import SPECULATION, Cluster, cluster
from tests.spark.kills.processes import Driver, driver
from tests.spark.kills.world import SOURCE, TARGET, World, newest
from tests.stores.postgresql.server import Server

import inorder
from inorder.spark.options import DAY_SECONDS

pytest.importorskip("psycopg", reason="needs the extra inorder[postgresql]")

LONG = "INORDER_LONG" in os.environ
PASSWORD = "seen-by-libpq-alone"
ROUNDS = 10
BATCH_SECONDS = 120.0


@pytest.fixture
def secret(own_server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The URL of a database whose user needs a password, which libpq reads from a file."""
    own_server.sql(f"CREATE USER spark PASSWORD '{PASSWORD}'")
    own_server.sql("CREATE DATABASE orders OWNER spark")
    rules = own_server.folder / "data/pg_hba.conf"
    rules.write_text(f"host all postgres {LOOPBACK}/32 trust\nhost orders spark {LOOPBACK}/32 scram-sha-256\n")
    own_server.sql("SELECT pg_reload_conf()")
    passes = tmp_path / "pgpass"
    passes.write_text(f"{LOOPBACK}:{own_server.port}:orders:spark:{PASSWORD}\n")
    passes.chmod(0o600)
    monkeypatch.setenv("PGPASSFILE", str(passes))  # of daemons and drivers, too: their environment is this one's
    return own_server.url("orders", "spark")


class Run:
    """What is on the queue goes to another one, and from there to an archive, while processes die."""

    def __init__(self, folder: Path, url: str, messages: int) -> None:
        self.world = World(folder, url=url, messages=messages)
        self.events = folder / "events"
        self.events.mkdir()
        self.settings = SPECULATION | {"spark.eventLog.enabled": "true", "spark.eventLog.dir": f"file://{self.events}"}

    def driver(self, of: Cluster) -> AbstractContextManager[Driver]:
        return driver(self.world.folder, master=of.master, settings=self.settings)

    def query(self) -> dict[str, object]:
        return self.world.to_queue(source=self.world.source(partitions=4))

    def await_batch(self, number: int, one: Driver) -> None:
        """Until Spark has logged that batch; fails if the driver ends before."""
        deadline = time.monotonic() + BATCH_SECONDS
        while newest(self.world.checkpoint / "offsets") < number:
            assert not one.has_ended(0.05), "the driver has ended"
            assert time.monotonic() < deadline, f"batch {number} has not begun"

    def end(self, one: Driver) -> None:
        """A driver goes on to the end, and drains the other queue into an archive; each message is there once."""
        world, archive = self.world, self.world.folder / "archive of target"
        one.ask("run", name="copy", **self.query())
        world.finish()
        world.let_time_pass(2 * DAY_SECONDS)  # what the dead have staged
        world.check_target()
        arguments = world.drains(queue=TARGET, archive=str(archive), checkpoint=None, messages_per_batch=10_000)
        messages = one.ask("drain", **arguments)["messages"]
        found = one.ask("audit", archive=str(archive), output=str(world.folder / "findings"))
        groups = sum(len(line) > 1 for line in world.plan)
        due = sum(map(len, world.plan))
        assert (messages, found) == (due, {"messages": due, "groups": groups, "errors": 0})
        with inorder.connect(world.url) as qm:
            assert (qm.depth(SOURCE), qm.depth(TARGET), qm.inspect.units(), qm.admin.check()) == (0, 0, [], [])

    def with_password(self) -> list[Path]:
        """Files of this run that hold the password."""
        return [
            path for path in self.world.folder.rglob("*") if path.is_file() and PASSWORD.encode() in path.read_bytes()
        ]


@pytest.mark.spark
def test_executor_worker_and_driver_are_killed_and_nothing_is_lost_or_doubled(folder: Path, secret: str) -> None:
    run = Run(folder, secret, messages=300)
    with cluster(folder) as of_two, run.driver(of_two) as first:
        first.ready()
        with run.driver(of_two) as second:  # it starts meanwhile, and has no core before the first one is gone
            first.order("run", name="copy", **run.query())
            run.await_batch(0, first)
            of_two.kill_executor()
            run.await_batch(1, first)
            of_two.kill_worker()
            run.await_batch(3, first)
            first.kill()
            run.end(second)
    assert any(run.events.rglob("*")), "Spark has written its event log"
    assert list(folder.rglob("*/work/*/*/stderr")), "tasks have run in the workers' own folders"
    assert run.with_password() == []


@pytest.mark.spark
@pytest.mark.skipif(not LONG, reason="takes minutes; INORDER_LONG=1 runs it")
def test_processes_are_killed_at_random_moments(folder: Path, secret: str) -> None:
    seed = os.environ.get("INORDER_SEED") or str(random.randrange(10**9))
    print(f"INORDER_SEED={seed}")  # the moments are the same again, what happens then is not
    chance = random.Random(seed)
    run = Run(folder, secret, messages=600)
    for number in range(ROUNDS):
        with cluster(folder / str(number)) as of_two, run.driver(of_two) as one:
            one.ready()
            one.order("run", name="copy", **run.query())
            for _ in range(3):
                one.has_ended(chance.uniform(0.5, 4.0))
                if chance.random() < 0.5:
                    of_two.kill_executor()
            of_two.kill_worker()
            one.has_ended(chance.uniform(0.5, 6.0))
            one.kill()
        shutil.rmtree(folder / str(number))
        with inorder.connect(secret) as qm:
            run.world.put(qm, 300, seed=chance.randrange(10**6))
    with cluster(folder / "last") as of_two, run.driver(of_two) as last:
        run.end(last)
    assert run.with_password() == []
