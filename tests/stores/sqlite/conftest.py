"""Fixtures for stores in files: the file alone, a store, another process, and the syncs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.stores.sqlite.inside import opened
from tests.stores.sqlite.programs import Child, child, path, qm
from tests.tiers import gate

from inorder.stores.sqlite import SqliteStore, log
from inorder.stores.sqlite.database import Database
from inorder.testing import ManualClock

__all__ = ["child", "path", "qm"]


def pytest_itemcollected(item: pytest.Item) -> None:
    """Marks tests that have another process, so that `make test` leaves them out."""
    if {"child", "peer"} & set(getattr(item, "fixturenames", ())):
        item.add_marker(gate)


@pytest.fixture
def database(path: Path) -> Iterator[Database]:
    """A database file with one table and no queues."""
    database = opened(path)
    yield database
    database.close()


@pytest.fixture
def peer(path: Path) -> Iterator[Child]:
    """Another process that has the file open."""
    with Child(path) as process:
        yield process


@pytest.fixture
def store(path: Path, clock: ManualClock) -> Iterator[SqliteStore]:
    store = SqliteStore(path, clock=clock)
    yield store
    store.close_store()


@pytest.fixture
def syncs(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The descriptors that are synced from now on; nothing reaches the disk."""
    done: list[int] = []
    monkeypatch.setattr(log, "sync_data", done.append)
    return done
