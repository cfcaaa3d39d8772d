"""litequeue: SQLite through the standard module; its own synchronous=NORMAL is raised to FULL here."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import litequeue

from benchmarks.systems import System

TIMEOUT_SECONDS = 60


class LiteQueue(System):
    """put; pop and done. Messages that are done stay in the table until `prune`, which is not timed."""

    name = "litequeue"

    def __init__(self, folder: Path, port: int) -> None:
        self._queue: Any = litequeue.LiteQueue(folder / "litequeue.db", timeout=TIMEOUT_SECONDS)
        self._queue.conn.execute("PRAGMA synchronous = FULL")

    def settings(self) -> str:
        pragmas = ", ".join(f"{name}={self._pragma(name)}" for name in ("journal_mode", "synchronous"))
        return (
            f"litequeue {litequeue.__version__}, SQLite {sqlite3.sqlite_version}, {pragmas} "
            "(2 is FULL, set by the benchmark; its own default, NORMAL, does not sync)"
        )

    def close(self) -> None:
        self._queue.close()

    def put(self, body: bytes) -> None:
        self._queue.put(body.decode("ascii"))

    def put_many(self, bodies: Sequence[bytes]) -> None:
        with self._queue.transaction():
            for body in bodies:
                self.put(body)

    def get(self) -> None:
        self._queue.done(self._queue.pop().message_id)

    def empty(self) -> None:
        self._queue.conn.execute(f"DELETE FROM {self._queue.table}")

    def _pragma(self, name: str) -> str:
        return str(self._queue.conn.execute(f"PRAGMA {name}").fetchone()[0])
