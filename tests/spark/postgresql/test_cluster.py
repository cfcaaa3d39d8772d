"""A standalone cluster works on a store in PostgreSQL, and its processes are killed on the way."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from benchmarks.servers import LOOPBACK
from tests.spark.kills.on_cluster import Run, a_seed
from tests.stores.postgresql.server import Server

pytest.importorskip("psycopg", reason="needs the extra inorder[postgresql]")

LONG = "INORDER_LONG" in os.environ
PASSWORD = "seen-by-libpq-alone"


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


@pytest.mark.spark
def test_executor_worker_and_driver_are_killed_and_nothing_is_lost_or_doubled(folder: Path, secret: str) -> None:
    run = Run(folder, secret, 300, secret=PASSWORD)
    with run.cluster(folder) as of_two, run.driver(of_two) as first:
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
    assert run.with_secret() == []


@pytest.mark.spark
@pytest.mark.skipif(not LONG, reason="takes minutes; INORDER_LONG=1 runs it")
def test_processes_are_killed_at_random_moments(folder: Path, secret: str) -> None:
    run = Run(folder, secret, 600, secret=PASSWORD)
    run.kill_at_random(a_seed())
    assert run.with_secret() == []
