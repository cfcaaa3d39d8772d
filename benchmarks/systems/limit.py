"""The limit: the smallest queue that SQLite can be, and so the measure for all others that keep a file with it.

One table, one index of available messages and one of messages in units of work, one row that counts, one fdatasync of
the log for each promise. It has one priority, and no groups, ids, expiry, states of others, rules or waits.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import apsw

from benchmarks.harness import Cannot
from benchmarks.systems import System

LIMIT = "the limit"
BUSY_MS = 60_000
LOG_PAGES = 4096  # 16 MiB, the limit of our store

SETTINGS = "PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; PRAGMA cache_size = -8192"
SCHEMA = """
CREATE TABLE IF NOT EXISTS message (
    id INTEGER PRIMARY KEY, queue INT, rank INT, number INT, state INT, unit INT, body BLOB
);
CREATE UNIQUE INDEX IF NOT EXISTS place ON message (queue, rank, number) WHERE state = 2;
CREATE INDEX IF NOT EXISTS held ON message (unit) WHERE unit IS NOT NULL;
CREATE TABLE IF NOT EXISTS tally (queue INTEGER PRIMARY KEY, counter INT, depth INT);
INSERT OR IGNORE INTO tally VALUES (1, 0, 0);
"""
COUNTER = "SELECT counter, depth FROM tally WHERE queue = 1"
INSERT = "INSERT INTO message VALUES (?, 1, 0, ?, 2, NULL, ?)"
ARRIVED = "UPDATE tally SET counter = ?, depth = depth + ? WHERE queue = 1"
FIRST = "SELECT id, body FROM message INDEXED BY place WHERE queue = 1 AND state = 2 ORDER BY rank, number LIMIT ?"
REMOVE = "DELETE FROM message WHERE id = ?"
HOLD = "UPDATE message SET state = 4, unit = 1 WHERE id = ?"
LEFT = "UPDATE tally SET depth = depth - ? WHERE queue = 1"
SETTLE = "DELETE FROM message WHERE unit = 1"


class Limit(System):
    """The smallest queue."""

    name = LIMIT
    role = "limit"

    def __init__(self, folder: Path, port: int = 0) -> None:
        path = folder / "limit.db"
        self._connection = apsw.Connection(str(path), statementcachesize=64)
        self._connection.set_busy_timeout(BUSY_MS)
        self._execute: Any = self._connection.execute
        self._many: Any = self._connection.executemany
        self._execute(SETTINGS).fetchall()
        self._execute("BEGIN IMMEDIATE")
        self._execute(SCHEMA).fetchall()
        self._execute("COMMIT")
        self._connection.wal_autocheckpoint(LOG_PAGES)
        self._log = os.open(f"{path}-wal", os.O_RDWR)

    def settings(self) -> str:
        synchronous = {1: "NORMAL", 2: "FULL"}[self._connection.pragma("synchronous")]
        return (
            f"SQLite {apsw.sqlite_lib_version()}, APSW {apsw.apsw_version()}, log (WAL), synchronous={synchronous}, "
            "fdatasync of the log after each commit that promises"
        )

    def close(self) -> None:
        os.close(self._log)
        self._connection.close()

    def put(self, body: bytes) -> None:
        self.put_many([body])

    def put_many(self, bodies: Sequence[bytes]) -> None:
        self._execute("BEGIN IMMEDIATE")
        self._insert(bodies)
        self._promise()

    def get(self) -> None:
        self.get_many(1)

    def get_many(self, count: int) -> None:
        self._execute("BEGIN IMMEDIATE")
        self._take(REMOVE, count)
        self._promise()

    def get_many_in_unit(self, count: int) -> None:
        self._claim(count)
        self._execute("BEGIN IMMEDIATE")
        self._execute(SETTLE).fetchall()
        self._promise()

    def get_put(self, body: bytes) -> None:
        self._claim(1)
        self._execute("BEGIN IMMEDIATE")
        self._insert([body])
        self._execute(SETTLE).fetchall()
        self._promise()

    def empty(self) -> None:
        self._execute("BEGIN IMMEDIATE; DELETE FROM message; UPDATE tally SET depth = 0; COMMIT").fetchall()

    def _insert(self, bodies: Sequence[bytes]) -> None:
        ((counter, _),) = self._execute(COUNTER).fetchall()
        rows = [(number, number, body) for number, body in enumerate(bodies, counter + 1)]
        if len(rows) == 1:
            self._execute(INSERT, rows[0])
        else:
            self._many(INSERT, rows)
        self._execute(ARRIVED, (counter + len(rows), len(rows)))

    def _take(self, statement: str, count: int) -> None:
        self._execute(COUNTER).fetchall()
        found = self._execute(FIRST, (count,)).fetchall()
        if len(found) < count:
            raise Cannot("too little there: the stock is wrong")
        self._many(statement, [row[:1] for row in found])
        self._execute(LEFT, (count,))

    def _claim(self, count: int) -> None:
        """Takes messages into a unit of work, in a transaction that promises nothing."""
        self._execute("BEGIN IMMEDIATE")
        self._take(HOLD, count)
        self._execute("COMMIT")

    def _promise(self) -> None:
        self._execute("COMMIT")
        os.fdatasync(self._log)
