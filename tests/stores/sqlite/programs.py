"""Processes that run the code that a test sends them: the test decides their order, without sleeping.

They are forked from a server that has opened no store, so they start at once and share only the file.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

import pytest
from tests.helpers.forked import SERVER
from tests.helpers.support import LIMIT_SECONDS
from tests.stores.sqlite.inside import serve

import inorder

if TYPE_CHECKING:
    from typing_extensions import Self

FOREVER = 600.0  # longer than any test takes: a wait that lasts as long was not woken


class Told:
    """A process that runs the code that it receives, with the names of `inside.py`."""

    def __init__(self) -> None:
        self._pipe, theirs = SERVER.Pipe()
        self.process = SERVER.Process(target=serve, args=(theirs,), daemon=True)
        self.process.start()
        theirs.close()

    def begin(self, code: str) -> None:
        """Starts the code there, and does not wait for it."""
        self._pipe.send(code)

    def answer(self, seconds: float = LIMIT_SECONDS) -> Any:
        """Waits for the code that was started. Returns the value that it left as `answer`."""
        assert self._pipe.poll(seconds), "the process has said nothing in time"
        try:
            return self._pipe.recv()
        except EOFError:
            raise AssertionError("the process has ended") from None

    def run(self, code: str) -> Any:
        self.begin(code)
        return self.answer()

    def ask(self, expression: str) -> Any:
        return self.run(f"answer = {expression}")

    def kill(self) -> None:
        """Sends SIGKILL, so that nothing is cleaned up; returns when the process is gone."""
        self.process.kill()
        self.process.join()
        self._pipe.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.process.is_alive():
            self.kill()


class Program(Told):
    """A process with a connection to the store: `qm`."""

    def __init__(self, path: Path | str, program: str = "child") -> None:
        super().__init__()
        self.begin(f"path = {str(path)!r}; qm = inorder.connect(path, program={program!r})")


class Child(Told):
    """A process that only knows the files of a store; `database` is open there if a path is given."""

    def __init__(self, path: Path | None = None) -> None:
        super().__init__()
        if path is not None:
            self.run(f"database = opened({str(path)!r})")


@contextmanager
def programs(path: Path | str, count: int) -> Iterator[list[Program]]:
    """Several processes that are connected; those that still live at the end are killed."""
    each = [Program(path, f"child {number}") for number in range(count)]
    try:
        for one in each:
            one.answer()
        yield each
    finally:
        for one in each:
            if one.process.is_alive():
                one.kill()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "orders.db"


@pytest.fixture
def qm(path: Path) -> Iterator[inorder.QueueManager]:
    """This process's own connection, with a queue Q."""
    manager = inorder.connect(path, program="test")
    manager.create_queue("Q")
    yield manager
    manager.internals.abandon()


@pytest.fixture
def child(qm: inorder.QueueManager, path: Path) -> Iterator[Program]:
    with programs(path, 1) as [one]:
        yield one
