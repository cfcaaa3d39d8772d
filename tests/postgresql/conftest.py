"""Servers of a test's own, for what the server that all share must not go through."""

from __future__ import annotations

import uuid
from collections.abc import Iterator

import pytest
from tests.postgresql.server import Server, missing

from inorder.stores.postgresql import drop, parse


@pytest.fixture
def own_server(quick_disk: None) -> Iterator[Server]:
    """A server that the test may stop, restart and fill."""
    if why := missing():
        pytest.skip(why)
    with Server() as server:
        yield server


@pytest.fixture
def url(postgresql: str) -> Iterator[str]:
    """Of a store that nobody has made yet; it is gone at the end."""
    one = f"{postgresql}?schema=inorder_{uuid.uuid4().hex}"
    yield one
    drop(parse(one))
