"""Queues in PostgreSQL instead of a file: the fixtures of the tests beside this folder work on them, too."""

from __future__ import annotations

import pytest
from tests.stores.postgresql.conftest import own_server


@pytest.fixture
def url(in_postgresql: str) -> str:
    return in_postgresql


__all__ = ["own_server"]
