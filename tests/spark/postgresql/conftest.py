"""Queues in PostgreSQL instead of a file: the fixtures of the tests beside this folder work on them, too."""

from __future__ import annotations

import secrets
from collections.abc import Iterator

import pytest
from tests.stores.postgresql.conftest import own_server

import inorder
from inorder.stores.postgresql import drop, parse


@pytest.fixture
def url(postgresql: str) -> Iterator[str]:
    """The URL of a store with a queue Q, in a schema that is gone at the end."""
    schema = f"spark_{secrets.token_hex(4)}"
    at = f"{postgresql}{'&' if '?' in postgresql else '?'}schema={schema}"
    with inorder.connect(at) as qm:
        qm.create_queue("Q")
    yield at
    drop(parse(at))


__all__ = ["own_server"]
