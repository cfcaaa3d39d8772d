"""A store behind a server: the processes of Spark know its URL, and find their credentials in a file."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("msgspec", reason="needs the extra inorder[remote]")
pytest.importorskip("uvicorn", reason="needs the extra inorder[server]")

from tests.spark.serving import ServedFile


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedFile]:
    """A server of a store with the queues Q and BAD."""
    with ServedFile(tmp_path_factory.mktemp("server"), "Q", "BAD") as one:
        yield one


@pytest.fixture
def served(server: ServedFile, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ServedFile:
    """The same, with the user's credentials in the file that this process reads."""
    monkeypatch.delenv("INORDER_TOKEN", raising=False)
    monkeypatch.setenv("INORDER_CREDENTIALS", str(server.keep_credentials(tmp_path / "credentials")))
    return server
