"""PostgreSQL through psycopg: a table as a queue, FOR UPDATE SKIP LOCKED."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import psycopg

from benchmarks.systems import System

SCHEMA = """
CREATE TABLE IF NOT EXISTS bench (id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY, body BYTEA NOT NULL)
"""
INSERT = "INSERT INTO bench (body) VALUES (%s)"
INSERT_MANY = "INSERT INTO bench (body) SELECT unnest(%b::bytea[])"
TAKE = """
DELETE FROM bench WHERE id = ANY (ARRAY(SELECT id FROM bench ORDER BY id LIMIT %s FOR UPDATE SKIP LOCKED))
RETURNING id, body
"""
CLAIM = "SELECT id, body FROM bench ORDER BY id LIMIT %s FOR UPDATE SKIP LOCKED"
DELETE = "DELETE FROM bench WHERE id = ANY (%s)"
LOOPBACK = "127.0.0.1"
CREATING = 1  # the key of the lock that lets only one process make the table


def connected(port: int) -> Any:
    """Returns a connection on which each statement is a transaction."""
    return psycopg.connect(host=LOOPBACK, port=port, user="postgres", dbname="postgres", autocommit=True)


def settings_of(connection: Any) -> str:
    """Returns the versions, and the server's settings for flushes."""
    names = ("fsync", "synchronous_commit", "full_page_writes", "wal_sync_method", "shared_buffers")
    shown = {name: connection.execute(f"SHOW {name}").fetchone()[0] for name in ("server_version", *names)}
    version = str(shown.pop("server_version")).split()[0]
    told = ", ".join(f"{name}={value}" for name, value in shown.items())
    return f"PostgreSQL {version}, psycopg {psycopg.__version__}, {told}"


class PostgreSQL(System):
    """INSERT; DELETE of rows that SKIP LOCKED finds; a claim by SELECT FOR UPDATE, then DELETE, then COMMIT."""

    name = "PostgreSQL"
    is_server = True

    def __init__(self, folder: Path, port: int) -> None:
        self._connection = connected(port)
        with self._connection.transaction():
            self._connection.execute("SELECT pg_advisory_xact_lock(%s)", [CREATING])
            self._connection.execute(SCHEMA)

    def settings(self) -> str:
        return settings_of(self._connection)

    def close(self) -> None:
        self._connection.close()

    def put(self, body: bytes) -> None:
        self._connection.execute(INSERT, [body])

    def put_many(self, bodies: Sequence[bytes]) -> None:
        self._connection.execute(INSERT_MANY, [list(bodies)])

    def get(self) -> None:
        self.get_many(1)

    def get_many(self, count: int) -> None:
        self._connection.execute(TAKE, [count]).fetchall()

    def get_many_in_unit(self, count: int) -> None:
        with self._connection.transaction():
            self._claim(count)

    def get_put(self, body: bytes) -> None:
        with self._connection.transaction():
            self._claim(1)
            self._connection.execute(INSERT, [body])

    def empty(self) -> None:
        self._connection.execute("TRUNCATE bench")

    def _claim(self, count: int) -> None:
        rows = self._connection.execute(CLAIM, [count]).fetchall()
        self._connection.execute(DELETE, [[row[0] for row in rows]])
