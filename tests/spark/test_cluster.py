"""A standalone cluster works on a store elsewhere, and its processes, and the server, are killed on the way.

Each worker and the driver find their password or their credentials in files; they share nothing but the URL.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import pytest

pytest.importorskip("psycopg", reason="needs the extra inorder[postgresql]")
pytest.importorskip("msgspec", reason="needs the extra inorder[remote]")
pytest.importorskip("uvicorn", reason="needs the extra inorder[server]")

from benchmarks.servers import LOOPBACK
from tests.spark.kills.on_cluster import CREDENTIALS, Run, a_seed
from tests.spark.kills.world import SOURCE, TARGET
from tests.spark.serving import READS, WRITES, ServedFile
from tests.stores.postgresql.conftest import own_server
from tests.stores.postgresql.server import Server

__all__ = ["own_server"]
LONG = "INORDER_LONG" in os.environ
PASSWORD = "seen-by-libpq-alone"

pytestmark = pytest.mark.spark


class Place(NamedTuple):
    """Where the store of a run is.

    Args:
        run: a run of so many messages, with its files in a folder.
        kill_server: kills the store's server and begins another; None: that server is not killed.
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
    monkeypatch.setenv("PGPASSFILE", str(passes))  # of daemons and drivers, too: their environment is this one's
    return Place(lambda folder, messages: Run(folder, own_server.url("orders", "spark"), messages, secret=PASSWORD))


@pytest.fixture
def at_own_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Place]:
    """A server for one test, whose user has a token."""
    with ServedFile(tmp_path / "server") as one:
        one.grant({SOURCE: READS, TARGET: ("get", *WRITES)})
        monkeypatch.delenv("INORDER_TOKEN", raising=False)
        monkeypatch.setenv("INORDER_CREDENTIALS", str(one.keep_credentials(tmp_path / CREDENTIALS)))

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
        with run.driver(of_two) as second:  # it starts meanwhile, and has no core before the first one is gone
            first.order("run", name="copy", **run.query())
            run.await_batch(0, first)
            of_two.kill_executor()
            run.await_batch(1, first)
            of_two.kill_worker()
            if place.kill_server is not None:
                run.await_batch(2, first)
                place.kill_server()
            run.await_batch(3, first)
            first.kill()
            run.end(second)
    assert any(run.events.rglob("*")), "Spark has written its event log"
    assert list(folder.rglob("*/work/*/*/stderr")), "tasks have run in the workers' own folders"
    assert run.with_secret() == []


@pytest.mark.skipif(not LONG, reason="takes minutes; INORDER_LONG=1 runs it")
def test_processes_are_killed_at_random_moments(folder: Path, place: Place) -> None:
    run = place.run(folder, 600)
    run.kill_at_random(a_seed(), place.kill_server or (lambda: None))
    assert run.with_secret() == []
