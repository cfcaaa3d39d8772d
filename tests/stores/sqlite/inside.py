"""The code inside the processes of `programs.py`, with the names that tests may use there."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, NoReturn

import apsw
from tests.helpers.support import room_of

import inorder
from inorder.errors import ForkedConnection, InorderError
from inorder.stores.seam.migrations import Ladder
from inorder.stores.sqlite import bell, coordination, log, watch
from inorder.stores.sqlite.database import Database

LIMIT_SECONDS = 200.0  # less than in tests/helpers/support.py, so that the error names what has not ended
HUNG_SECONDS = 300  # then a child that nobody has ended ends by itself

# The database of the tests that need no queues.
SCHEMA = "CREATE TABLE note (id INTEGER PRIMARY KEY, text)"
VERSION = 1


def serve(pipe: Connection) -> None:
    """Runs each code that arrives, and sends what it left as `answer`; with `tell`, it sends values meanwhile."""
    names: dict[str, Any] = {**globals(), "tell": pipe.send}
    while True:
        try:
            code = pipe.recv()
        except EOFError:
            return
        names["answer"] = None
        exec(code, names)
        pipe.send(names["answer"])


def error_of(call: Callable[[], object]) -> str | None:
    try:
        call()
    except InorderError as error:
        return type(error).__name__
    return None


def body_or_error(call: Callable[[], inorder.Message]) -> object:
    """The body that a get returns, or the name of its error."""
    try:
        return call().body
    except InorderError as error:
        return type(error).__name__


def apart(call: Callable[[], object]) -> None:
    """Makes a call on a thread that then ends: any other thread may go on with the unit of work that it opens."""
    thread = threading.Thread(target=call)
    thread.start()
    thread.join()


def opened(path: Path | str, version: int = VERSION) -> Database:
    return Database(Path(path), schema=SCHEMA, ladder=Ladder(version))


def write(database: Database, text: str = "x" * 1000) -> int:
    """Returns the ticket with which the write is synced."""
    try:
        database.begin(writes=True)
        database.connection.execute("INSERT INTO note (text) VALUES (?)", (text,))
        return database.commit()
    except BaseException as error:
        database.abort(error)
        raise


def count(database: Database) -> int:
    with database.reading():
        found = database.connection.execute("SELECT count(*) FROM note").get
    assert isinstance(found, int)
    return found


class Waiting:
    """A get on its own thread that has begun to wait; `said` is its result.

    Args:
        begun: returns when the get has begun to wait; None: wait until it is asleep.
    """

    def __init__(
        self,
        manager: inorder.QueueManager,
        call: Callable[[], inorder.Message],
        begun: Callable[[], object] | None = None,
    ) -> None:
        self.said: object = None
        self._call, self._manager = call, manager
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()
        if begun is None:
            room = room_of(manager)
            room.watch_until(lambda: self.said is not None or room.is_asleep(manager.internals.owner))
        else:
            begun()
        assert self.said is None, self.said

    def _run(self) -> None:
        self.said = body_or_error(self._call)
        room_of(self._manager).poke()

    def end(self) -> object:
        """The result of the get; None if it still waits."""
        self._thread.join(LIMIT_SECONDS)
        return self.said


def forked(act: Callable[[], object], end: Callable[[int], NoReturn] = os._exit) -> object:
    """The value of `act` in a forked child, which ends by `end`, with status 0."""
    read_end, write_end = os.pipe()
    child = os.fork()
    if child == 0:
        signal.alarm(HUNG_SECONDS)
        try:
            said = repr(act())
        except BaseException as error:  # noqa: BLE001 - the parent is told
            said = repr(f"failed: {error!r}")
        os.write(write_end, said.encode())
        end(0)
    os.close(write_end)
    with os.fdopen(read_end) as pipe:
        said = eval(pipe.read())
    assert os.waitpid(child, 0)[1] == 0
    return said


def left_behind() -> int:
    """Forks a child that does nothing, and outlives this process until it is ended. Returns its id."""
    child = os.fork()
    if child == 0:
        signal.alarm(HUNG_SECONDS)
        while True:
            signal.pause()
    return child


__all__ = [
    "ForkedConnection", "Waiting", "apsw", "bell", "body_or_error", "coordination", "error_of", "forked", "left_behind",
    "log", "room_of", "serve", "sys", "watch",
]  # fmt: skip
