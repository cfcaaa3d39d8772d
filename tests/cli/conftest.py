"""The command for tests: it runs in this process, on a store for each test."""

from __future__ import annotations

import io
import json
import math
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from tests.helpers.pages import SLOW

from inorder.cli import main, running


class Ended(NamedTuple):
    """The exit status and the output of a command."""

    status: int
    out: str
    err: str

    @property
    def records(self) -> list[dict[str, Any]]:
        """The records that `--json` printed."""
        return [json.loads(line) for line in self.out.splitlines()]


Command = Callable[..., Ended]


class Terminal(io.StringIO):
    """A stream that says that it is a terminal."""

    def isatty(self) -> bool:
        return True


def told(errors: str) -> str:
    """The standard error of a process, without the note that its store took seconds to open on a busy machine."""
    return SLOW.sub("", errors)


@pytest.fixture(autouse=True)
def no_note(monkeypatch: pytest.MonkeyPatch) -> None:
    """The command says nothing of a store that takes seconds to open on a busy machine."""
    monkeypatch.setattr(running, "TOLD_AFTER_SECONDS", math.inf)


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The path of a store that does not exist yet; commands find it through INORDER_STORE."""
    path = tmp_path / "orders.db"
    monkeypatch.setenv("INORDER_STORE", str(path))
    monkeypatch.chdir(tmp_path)
    return path


@pytest.fixture
def run(store: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Command:
    """Runs `inorder` with arguments, and with `given` on standard input."""

    def command(*arguments: str, given: bytes = b"") -> Ended:
        capsys.readouterr()
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(given), encoding="utf-8"))
        status = main(list(arguments))
        told = capsys.readouterr()
        return Ended(status, told.out, told.err)

    return command


@pytest.fixture
def queue(run: Command) -> str:
    """An empty queue ORDERS in the store."""
    assert run("queue", "create", "ORDERS").status == 0
    return "ORDERS"
