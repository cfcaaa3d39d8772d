"""persist-queue: its SQLite queue, with auto_commit for single calls and with task_done for units of several gets.

In both modes each put is a separate transaction. So it cannot put several messages, or get and put, in one transaction.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import persistqueue

from benchmarks.harness import Cannot
from benchmarks.systems import BODY, System

TIMEOUT_SECONDS = 60


class PersistQueue(System):
    """FIFOSQLiteQueue of persist-queue."""

    name = "persist-queue"

    def __init__(self, folder: Path, port: int) -> None:
        self._single: Any = persistqueue.FIFOSQLiteQueue(str(folder), auto_commit=True, timeout=TIMEOUT_SECONDS)
        self._unit: Any = persistqueue.FIFOSQLiteQueue(str(folder), auto_commit=False, timeout=TIMEOUT_SECONDS)

    def settings(self) -> str:
        pragmas = ", ".join(f"{name}={self._pragma(name)}" for name in ("journal_mode", "synchronous"))
        return f"persist-queue {version('persist-queue')}, SQLite {sqlite3.sqlite_version}, {pragmas} (2 is FULL)"

    def close(self) -> None:
        self._single.close()
        self._unit.close()

    def put(self, body: bytes) -> None:
        self._single.put(body)

    def put_many(self, bodies: Sequence[bytes]) -> None:
        raise Cannot("each put is a transaction of its own")

    def get(self) -> None:
        self._single.get(block=False)

    def get_many_in_unit(self, count: int) -> None:
        for _ in range(count):
            self._unit.get(block=False)
        self._unit.task_done()

    def get_put(self, body: bytes) -> None:
        raise Cannot("each put is a transaction of its own")

    def empty(self) -> None:
        self._unit.cursor = 2**62  # its task_done removes everything up to the cursor
        self._unit.task_done()
        self._unit.cursor = 0

    def stock(self, count: int) -> None:
        self._single._conn.execute("PRAGMA synchronous = OFF")
        for _ in range(count):
            self._single.put(BODY)
        self._single._conn.execute("PRAGMA synchronous = FULL")

    def _pragma(self, name: str) -> str:
        return str(self._single._conn.execute(f"PRAGMA {name}").fetchone()[0])
