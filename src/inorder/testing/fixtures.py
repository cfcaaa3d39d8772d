"""Fixtures of pytest: `pytest_plugins = ["inorder.testing.fixtures"]` in `conftest.py` makes them known."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from ..client.manager import QueueManager
from .clock import ManualClock
from .stores import temporary_manager


@pytest.fixture
def clock() -> ManualClock:
    """The clock of `qm`, which stands still until the test moves it."""
    return ManualClock()


@pytest.fixture
def qm(clock: ManualClock) -> Iterator[QueueManager]:
    """A connection to a queue manager in memory, which is gone after the test."""
    with temporary_manager(clock=clock) as manager:
        yield manager
