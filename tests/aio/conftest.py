"""Queue managers for tasks, and one for checks."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractAsyncContextManager

import pytest
from tests.helpers.support import Stores

from inorder import QueueManager, aio, connect
from inorder.stores.seam.protocol import LocalStore
from inorder.testing.stores import RestartableStore


@pytest.fixture
def store(stores: Stores) -> RestartableStore:
    """A store with the machine's clock, because threads wait."""
    return stores.make()


@pytest.fixture
def qm(store: LocalStore) -> Iterator[QueueManager]:
    """A connection that checks the effects of tasks."""
    with connect(store) as manager:
        manager.create_queue("Q")
        yield manager


@pytest.fixture
def one(store: LocalStore, qm: QueueManager) -> AbstractAsyncContextManager[aio.QueueManager]:
    """A queue manager for tasks, connected while the test runs."""
    return aio.connect(store, connections=2)
