"""A store in a file behind `inorder serve`, and a user of that server for Spark."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from tests.server.conftest import Running

import inorder

USER = "spark"
READS, BROWSES, WRITES = ("get", "inquire"), ("browse", "inquire"), ("put", "inquire")


class ServedFile:
    """A store and its server, which listens on the same port whenever it is started.

    Args:
        folder: for the store's file.
        queues: the names of queues to create.
        role: of the user.
    """

    def __init__(self, folder: Path, *queues: str, role: str = "application") -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.path = folder / "store.db"
        with inorder.connect(self.path) as qm:
            for name in queues:
                qm.create_queue(name)
            qm.accounts.create_user(USER, roles=[role])
            self.token = qm.accounts.create_token(USER, "Spark")
        self._running = Running(self.path)
        self.url = self._running.record["url"].rstrip("/")

    def grant(self, queues: Mapping[str, tuple[str, ...]]) -> None:
        """Gives the user these authorities in place of the earlier ones."""
        with inorder.connect(self.path) as qm:
            qm.accounts.alter_user(USER, queues=queues)

    def kill(self) -> None:
        """Kills the server and its workers with SIGKILL."""
        self._running.kill()

    def start(self) -> None:
        self._running = Running(self.path, "--port", str(urlsplit(self.url).port))

    def keep_credentials(self, file: Path) -> Path:
        """Writes the user's credentials for this server, as `inorder login` does."""
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch(mode=0o600)
        file.write_text(f"[{urlsplit(self.url).netloc}]\ntoken = {self.token}\n", encoding="utf-8")
        return file

    def log_in(self, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """Writes the user's credentials, and has this process and its children use them."""
        monkeypatch.delenv("INORDER_TOKEN", raising=False)
        monkeypatch.setenv("INORDER_CREDENTIALS", str(self.keep_credentials(file)))

    def __enter__(self) -> ServedFile:
        return self

    def __exit__(self, *_: Any) -> None:
        self.kill()
