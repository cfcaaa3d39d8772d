"""A standalone cluster works on a store elsewhere, while its processes and the server are killed.

It drains a queue into another one, and that into an archive. Master, workers and driver have folders of their own, and
share only the store. Each worker and the driver find their password or their credentials in files. Checkpoints and
archives must be in a place that all processes reach: a local folder stands for a cluster's object store.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import NamedTuple

import pytest

pytest.importorskip("psycopg", reason="needs the extra inorder[postgresql]")
pytest.importorskip("msgspec", reason="needs the extra inorder[remote]")
pytest.importorskip("uvicorn", reason="needs the extra inorder[server]")

from benchmarks.servers import LOOPBACK
from tests.spark.kills.cluster import SPECULATION, Cluster, cluster
from tests.spark.kills.processes import Driver, driver
from tests.spark.kills.world import SOURCE, TARGET, World, seeded
from tests.spark.serving import READS, WRITES, ServedFile
from tests.stores.postgresql.conftest import own_server
from tests.stores.postgresql.server import Server

import inorder
from inorder.spark.options import DAY_SECONDS

__all__ = ["own_server"]
LONG = "INORDER_LONG" in os.environ
PASSWORD = "seen-by-libpq-alone"
ROUNDS = 10
CREDENTIALS = "credentials"  # the name of the files that may contain the secret

pytestmark = pytest.mark.spark


class Run:
    """A run.

    Args:
        secret: must be in no file.
        store: as in `World`.
        own: as in `cluster`, for the driver as well.
    """

    def __init__(
        self,
        folder: Path,
        url: str,
        messages: int,
        *,
        secret: str,
        store: Path | None = None,
        own: Callable[[Path], Mapping[str, str]] = lambda _: {},
    ) -> None:
        self._secret, self._own = secret.encode(), own
        self.world = World(folder, url=url, store=store, messages=messages)
        self.events = folder / "events"
        self.events.mkdir()
        self.settings = SPECULATION | {"spark.eventLog.enabled": "true", "spark.eventLog.dir": f"file://{self.events}"}

    def cluster(self, folder: Path) -> AbstractContextManager[Cluster]:
        return cluster(folder, own=self._own)

    def driver(self, of: Cluster) -> AbstractContextManager[Driver]:
        folder = self.world.folder
        return driver(folder, master=of.master, settings=self.settings, environment=self._own(folder / "driver"))

    def query(self) -> dict[str, object]:
        return self.world.to_queue(source=self.world.source(partitions=4))

    def end(self, one: Driver) -> None:
        """A driver completes the query, and drains the other queue into an archive; each message must be there once."""
        world, archive = self.world, self.world.folder / "archive of target"
        one.ask("run", name="copy", **self.query())
        world.finish()
        world.let_time_pass(2 * DAY_SECONDS)  # rows staged by dead tasks
        world.check_target()
        arguments = world.drains(queue=TARGET, archive=str(archive), checkpoint=None, messages_per_batch=10_000)
        messages = one.ask("drain", **arguments)["messages"]
        found = one.ask("audit", archive=str(archive), output=str(world.folder / "findings"))
        groups = sum(len(line) > 1 for line in world.plan)
        due = sum(map(len, world.plan))
        assert (messages, found) == (due, {"messages": due, "groups": groups, "errors": 0})
        with inorder.connect(world.store) as qm:
            assert (qm.depth(SOURCE), qm.depth(TARGET), qm.inspect.units(), qm.admin.check()) == (0, 0, [], [])

    def with_secret(self) -> list[Path]:
        """The files of this run that contain the secret."""
        files = (path for path in self.world.folder.rglob("*") if path.is_file() and path.name != CREDENTIALS)
        return [path for path in files if self._secret in path.read_bytes()]

    def kill_at_random(self, kill_server: Callable[[], object] = lambda: None) -> None:
        """Runs clusters, one after the other, and kills their processes at random moments; the last one completes."""
        folder, chance = self.world.folder, seeded()
        for number in range(ROUNDS):
            with self.cluster(folder / str(number)) as of_two, self.driver(of_two) as one:
                one.ready()
                one.order("run", name="copy", **self.query())
                for _ in range(3):
                    one.has_ended(chance.uniform(0.5, 4.0))
                    if chance.random() < 0.5:
                        of_two.kill_executor()
                    if chance.random() < 0.5:
                        kill_server()
                of_two.kill_worker()
                one.has_ended(chance.uniform(0.5, 6.0))
                one.kill()
            shutil.rmtree(folder / str(number))
            with inorder.connect(self.world.store) as qm:
                self.world.put(qm, 300, seed=chance.randrange(10**6))
        with self.cluster(folder / "last") as of_two, self.driver(of_two) as last:
            self.end(last)


class Place(NamedTuple):
    """The place of a run's store.

    Args:
        run: makes a run with this number of messages and its files in a folder.
        kill_server: kills the store's server and starts another; None: the server is not killed.
    """

    run: Callable[[Path, int], Run]
    kill_server: Callable[[], None] | None = None


@pytest.fixture
def in_database(own_server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    """A database whose user needs a password, which libpq reads from a file."""
    own_server.sql(f"CREATE USER spark PASSWORD '{PASSWORD}'")
    own_server.sql("CREATE DATABASE orders OWNER spark")
    rules = own_server.folder / "data/pg_hba.conf"
    rules.write_text(f"host all postgres {LOOPBACK}/32 trust\nhost orders spark {LOOPBACK}/32 scram-sha-256\n")
    own_server.sql("SELECT pg_reload_conf()")
    passes = tmp_path / "pgpass"
    passes.write_text(f"{LOOPBACK}:{own_server.port}:orders:spark:{PASSWORD}\n")
    passes.chmod(0o600)
    monkeypatch.setenv("PGPASSFILE", str(passes))  # daemons and drivers inherit it
    return Place(lambda folder, messages: Run(folder, own_server.url("orders", "spark"), messages, secret=PASSWORD))


@pytest.fixture
def at_own_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Place]:
    """A server for one test, whose user has a token."""
    with ServedFile(tmp_path / "server") as one:
        one.grant({SOURCE: READS, TARGET: ("get", *WRITES)})
        one.log_in(tmp_path / CREDENTIALS, monkeypatch)

        def own(place: Path) -> Mapping[str, str]:
            return {"INORDER_CREDENTIALS": str(one.keep_credentials(place / CREDENTIALS))}

        def kill_server() -> None:
            one.kill()
            one.start()

        yield Place(
            lambda folder, messages: Run(folder, one.url, messages, secret=one.token, store=one.path, own=own),
            kill_server,
        )


@pytest.fixture(params=["in_database", "at_own_server"])
def place(request: pytest.FixtureRequest) -> Place:
    found: Place = request.getfixturevalue(request.param)
    return found


def test_executor_worker_server_and_driver_are_killed_and_nothing_is_lost_or_doubled(
    folder: Path, place: Place
) -> None:
    run = place.run(folder, 300)
    with run.cluster(folder) as of_two, run.driver(of_two) as first:
        first.ready()
        with run.driver(of_two) as second:  # it starts meanwhile, and gets no core before the first one is dead
            first.order("run", name="copy", **run.query())
            run.world.await_batch(0, first)
            of_two.kill_executor()
            run.world.await_batch(1, first)
            of_two.kill_worker()
            if place.kill_server is not None:
                run.world.await_batch(2, first)
                place.kill_server()
            run.world.await_batch(3, first)
            first.kill()
            run.end(second)
    assert any(run.events.rglob("*")), "Spark has written its event log"
    assert list(folder.rglob("*/work/*/*/stderr")), "tasks have run in the workers' own folders"
    assert run.with_secret() == []


@pytest.mark.skipif(not LONG, reason="takes minutes; INORDER_LONG=1 runs it")
def test_processes_killed_at_random_moments_lose_and_double_nothing(folder: Path, place: Place) -> None:
    run = place.run(folder, 600)
    run.kill_at_random(place.kill_server or (lambda: None))
    assert run.with_secret() == []
