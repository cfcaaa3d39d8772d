"""One driver that is never killed, and continues after every killed one."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("pyspark", reason="needs the extra inorder[spark]")

from tests.spark.kills.processes import Driver, driver
from tests.spark.kills.world import World

collect_ignore_glob = [] if sys.platform == "linux" else ["test_*.py"]  # /proc shows the session of each process


@pytest.fixture(scope="session")
def successor() -> Iterator[Driver]:
    """A driver that is held at no point."""
    with tempfile.TemporaryDirectory(prefix="inorder-driver-") as name, driver(Path(name)) as one:
        one.ready()
        yield one


@pytest.fixture
def world(folder: Path) -> World:
    """A queue with about 300 messages in mixed groups."""
    return World(folder)
