"""Fixtures of pytest: `pytest_plugins = ["inorder.testing.fixtures"]` in `conftest.py` makes them known."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from ..client.manager import QueueManager
from .clock import ManualClock
from .stores import temporary_manager

if TYPE_CHECKING:
    from .mq import MqTest


@pytest.fixture
def clock() -> ManualClock:
    """The clock of `qm`, which stands still until the test moves it."""
    return ManualClock()


@pytest.fixture
def qm(clock: ManualClock) -> Iterator[QueueManager]:
    """A connection to a queue manager in memory, which is deleted after the test."""
    with temporary_manager(clock=clock) as manager:
        yield manager


@pytest.fixture
def mq() -> Iterator[MqTest]:
    """A queue manager QM1 for programs written for IBM MQ, with the queues DEV.QUEUE.1 to DEV.QUEUE.3."""
    from .mq import temporary_mq  # noqa: PLC0415 - loads what only these programs need

    with temporary_mq("DEV.QUEUE.1", "DEV.QUEUE.2", "DEV.QUEUE.3") as made:
        yield made
