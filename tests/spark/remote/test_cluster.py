"""A standalone cluster works on a store elsewhere, and its processes and the server are killed on the way.

Each worker and the driver have credentials of their own, and share nothing but the URL.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from tests.spark.kills.on_cluster import CREDENTIALS, Run, a_seed
from tests.spark.kills.world import SOURCE, TARGET
from tests.spark.serving import READS, WRITES, ServedFile

LONG = "INORDER_LONG" in os.environ


@pytest.fixture
def alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ServedFile]:
    """A server for one test."""
    with ServedFile(tmp_path / "server") as one:
        one.grant({SOURCE: READS, TARGET: ("get", *WRITES)})
        monkeypatch.delenv("INORDER_TOKEN", raising=False)
        monkeypatch.setenv("INORDER_CREDENTIALS", str(one.keep_credentials(tmp_path / CREDENTIALS)))
        yield one


def run_of(folder: Path, served: ServedFile, messages: int) -> Run:
    def own(place: Path) -> Mapping[str, str]:
        return {"INORDER_CREDENTIALS": str(served.keep_credentials(place / CREDENTIALS))}

    return Run(folder, served.url, messages, secret=served.token, store=served.path, own=own)


def kill(served: ServedFile) -> None:
    served.kill()
    served.start()


@pytest.mark.spark
def test_executor_worker_server_and_driver_are_killed_and_nothing_is_lost_or_doubled(
    folder: Path, alone: ServedFile
) -> None:
    run = run_of(folder, alone, 300)
    with run.cluster(folder) as of_two, run.driver(of_two) as first:
        first.ready()
        with run.driver(of_two) as second:  # it starts meanwhile, and has no core before the first one is gone
            first.order("run", name="copy", **run.query())
            run.await_batch(0, first)
            of_two.kill_executor()
            run.await_batch(1, first)
            of_two.kill_worker()
            run.await_batch(2, first)
            kill(alone)
            run.await_batch(3, first)
            first.kill()
            run.end(second)
    assert any(run.events.rglob("*")), "Spark has written its event log"
    assert run.with_secret() == []


@pytest.mark.spark
@pytest.mark.skipif(not LONG, reason="takes minutes; INORDER_LONG=1 runs it")
def test_processes_are_killed_at_random_moments(folder: Path, alone: ServedFile) -> None:
    run = run_of(folder, alone, 600)
    run.kill_at_random(a_seed(), lambda: kill(alone))
    assert run.with_secret() == []
