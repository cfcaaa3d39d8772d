"""Fixtures for stores on PostgreSQL, among them a server of a test's own that it may stop and fill."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import psycopg
import pytest
from tests.helpers.proxy import Proxy
from tests.helpers.support import Make
from tests.stores.postgresql.server import Server, missing, port_of
from tests.stores.sqlite.programs import Program, programs

import inorder
from inorder import QueueManager

Connect = Callable[[str], QueueManager]


@pytest.fixture
def own_server(quick_disk: None) -> Iterator[Server]:
    if why := missing():
        pytest.skip(why)
    with Server() as server:
        yield server


@pytest.fixture
def url(postgresql: str, make: Make) -> str:
    """The URL of a store that does not exist yet; it is removed at the end."""
    return make("postgresql")


@pytest.fixture
def qm(url: str) -> Iterator[QueueManager]:
    """A connection as program "test", with a queue Q."""
    with inorder.connect(url, program="test") as one:
        one.create_queue("Q")
        yield one
        one.internals.abandon()


@pytest.fixture
def child(qm: QueueManager, url: str) -> Iterator[Program]:
    """A process that is also connected, as program "child 0"."""
    with programs(url, 1) as [one]:
        yield one


@pytest.fixture
def admin(postgresql: str) -> Iterator[psycopg.Connection[Any]]:
    """An administrator's session, in no schema of a store."""
    with psycopg.connect(postgresql, autocommit=True) as connection:
        yield connection


@pytest.fixture
def proxy(url: str) -> Iterator[Proxy]:
    with Proxy(port_of(url)) as one:
        yield one


@pytest.fixture
def connect(url: str) -> Iterator[Connect]:
    """Connects programs; each has its own session."""
    with ExitStack() as connections:
        yield lambda program: connections.enter_context(inorder.connect(url, program=program))
