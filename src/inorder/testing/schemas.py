"""PostgreSQL schemas for the stores of tests: a used schema is emptied, with its tables, for the next store."""

from __future__ import annotations

import os
import uuid
from collections import defaultdict
from typing import Final

import psycopg
from psycopg import sql

from ..stores.engine.store import new_manager

STORES_MAX: Final = 50  # in one schema, one after the other: deleted rows take up space until they are vacuumed
BYTES_MAX: Final = 2**20  # of the table of messages
LOCK_TIMEOUT: Final = "10s"  # for a store that was never closed and still holds locks

IN_USE: Final = sql.SQL("SELECT EXISTS (SELECT 1 FROM {0}.process) OR pg_relation_size('{0}.message') > %s")
PARTS: Final = """
SELECT relname, relkind::text FROM pg_class
WHERE relnamespace = %s::regnamespace AND relkind IN ('r', 'S') AND relname <> 'store'
"""
DROPPED: Final = sql.SQL("DROP SCHEMA IF EXISTS {} CASCADE")
EMPTIED: Final = {"r": sql.SQL("DELETE FROM {}"), "S": sql.SQL("ALTER SEQUENCE {} RESTART")}


class Schemas:
    """The schemas of a database that a process has created, and the empty ones among them."""

    def __init__(self, url: str, process: int) -> None:
        self._url, self._process = url, process
        self._used: dict[str, int] = {}
        self._empty: defaultdict[str, list[str]] = defaultdict(list)  # by the queue manager's name

    def take(self, manager: str) -> str:
        """Returns a new schema for a store of a queue manager of this name, or an emptied one."""
        empty = self._empty[manager]
        schema = empty.pop() if empty else f"inorder_{uuid.uuid4().hex}"
        self._used[schema] = self._used.get(schema, 0) + 1
        return schema

    def give_back(self, schema: str, manager: str) -> None:
        """Takes back the schema of a store that is no longer used. A forked child leaves that to its parent."""
        if self._process != os.getpid():
            return
        options = f"-c lock_timeout={LOCK_TIMEOUT} -c inorder.groups=off -c inorder.fronts=off"
        with psycopg.connect(self._url, autocommit=True, options=options) as connection:
            if self._used[schema] < STORES_MAX and _empty(connection, schema, manager):
                self._empty[manager].append(schema)
            else:
                connection.execute(DROPPED.format(sql.Identifier(schema)))

    def drop_all(self) -> None:
        """Drops all schemas, at the end of the process."""
        empty = [schema for several in self._empty.values() for schema in several]
        if empty and self._process == os.getpid():
            with psycopg.connect(self._url, autocommit=True, options=f"-c lock_timeout={LOCK_TIMEOUT}") as connection:
                for schema in empty:
                    connection.execute(DROPPED.format(sql.Identifier(schema)))


def _empty(connection: psycopg.Connection, schema: str, manager: str) -> bool:
    """Empties a store for another queue manager; returns False if a program has it open, or it is too large."""
    name = sql.Identifier(schema)
    with connection.transaction():
        try:
            with connection.transaction():
                found = connection.execute(IN_USE.format(name), (BYTES_MAX,)).fetchone()
        except psycopg.errors.UndefinedTable:  # a test has removed it
            return False
        if found is None or found[0]:
            return False
        parts = connection.execute(PARTS, (schema,)).fetchall()
        connection.execute(
            sql.SQL("; ").join(EMPTIED[kind].format(sql.Identifier(schema, part)) for part, kind in parts)
        )
        connection.execute(
            sql.SQL("INSERT INTO {}.manager (id, attributes) VALUES (1, %s)").format(name), (new_manager(manager),)
        )
    return True
