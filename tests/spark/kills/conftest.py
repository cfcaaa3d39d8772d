"""One driver for all that is to end well: it is nobody's victim, and every killed driver's successor."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("pyspark", reason="needs the extra inorder[spark]")

from tests.spark.kills.processes import Driver, driver
from tests.spark.kills.world import World

collect_ignore_glob = [] if sys.platform == "linux" else ["test_*.py"]  # /proc tells which processes are whose


@pytest.fixture(scope="session")
def successor() -> Iterator[Driver]:
    """A driver that is held nowhere."""
    with tempfile.TemporaryDirectory(prefix="inorder-driver-") as name, driver(Path(name)) as one:
        one.ready()
        yield one


@pytest.fixture
def world(folder: Path) -> World:
    """Some 300 messages in mixed groups."""
    return World(folder)
