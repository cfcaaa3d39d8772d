"""A stream from queue to queue on a store elsewhere: the driver is killed, and the server twice."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("msgspec", reason="needs the extra inorder[remote]")
pytest.importorskip("uvicorn", reason="needs the extra inorder[server]")

from tests.spark.kills.processes import driver
from tests.spark.kills.world import SOURCE, TARGET, World, killed_at, newest
from tests.spark.serving import READS, WRITES, ServedFile
from tests.tiers import gate

from inorder.spark.options import DAY_SECONDS

BATCH_SECONDS = 240.0


@pytest.fixture
def served(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ServedFile]:
    """A server; drivers and their tasks inherit where its user's credentials are."""
    with ServedFile(folder / "server") as one:
        one.grant({SOURCE: READS, TARGET: WRITES})
        monkeypatch.delenv("INORDER_TOKEN", raising=False)
        monkeypatch.setenv("INORDER_CREDENTIALS", str(one.keep_credentials(folder / "credentials")))
        yield one


@gate
@pytest.mark.spark
def test_driver_and_server_are_killed_and_nothing_is_lost_or_doubled(folder: Path, served: ServedFile) -> None:
    world = World(folder, url=served.url, store=served.path)
    with killed_at(world, "settled:2", "run", name="queue", **world.to_queue()):
        served.kill()
    served.start()
    with driver(folder) as second:
        second.order("run", name="queue", **world.to_queue())
        deadline = time.monotonic() + BATCH_SECONDS
        while newest(world.checkpoint / "offsets") < 3:
            assert not second.has_ended(0.05), "the driver has ended"
            assert time.monotonic() < deadline, "batch 3 has not begun"
        served.kill()
        served.start()
        second.answer()  # the query itself goes on
    world.finish()
    world.let_time_pass(2 * DAY_SECONDS)  # what tasks have staged whose connections were lost
    world.check_target()
