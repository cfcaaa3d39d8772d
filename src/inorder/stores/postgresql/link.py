"""The connection to PostgreSQL that a store has: one, from its opening to its end.

It is in no pool: the advisory lock that says who lives belongs to it, so whoever has lost it cannot go on.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

import psycopg
from psycopg.conninfo import make_conninfo

from ...errors import ConnectionBroken
from .address import Address
from .faults import told_as_ours, unreachable
from .pipeline import Answer, Pipeline

log = logging.getLogger("inorder.stores")

FETCHED_AT_ONCE: Final = 256  # rows of a scan
# In a transaction of its own; one that writes nothing would bring nothing to disk.
FLUSH: Final = "SELECT set_config('synchronous_commit', ?, true), pg_logical_emit_message(true, 'inorder', '')"
# What libpq is told where the URL and its environment do not: a machine that vanishes is noticed within 30 s.
KEEPALIVES: Final = {
    "keepalives": "1",
    "keepalives_idle": "10",
    "keepalives_interval": "5",
    "keepalives_count": "3",
    "tcp_user_timeout": "30000",
    "connect_timeout": "30",
}
# What a role, a database or the environment has set must change nothing. Steps into indexes, always: statements name
# what they look for, and no plan may change with what is on a queue. The server, too, notices that a machine has gone.
SETTINGS: Final = {
    "enable_seqscan": "off",
    "enable_bitmapscan": "off",
    "enable_hashjoin": "off",
    "enable_mergejoin": "off",
    "enable_material": "off",
    "enable_indexscan": "on",
    "enable_nestloop": "on",
    "enable_sort": "on",
    "max_parallel_workers_per_gather": "0",
    "jit": "off",
    "plan_cache_mode": "auto",
    "synchronous_commit": "off",
    "inorder.groups": "off",  # until a verb comes to a queue with groups
    "client_min_messages": "warning",
    "client_encoding": "UTF8",
    "timezone": "UTC",
    "datestyle": "ISO, YMD",
    "bytea_output": "hex",
    "extra_float_digits": "1",
    "standard_conforming_strings": "on",
    "transform_null_equals": "off",
    "lock_timeout": "0",
    "statement_timeout": "0",
    "transaction_timeout": "0",
    "idle_in_transaction_session_timeout": "0",
    "idle_session_timeout": "0",
    "exit_on_error": "off",
    "default_transaction_isolation": "read committed",
    "default_transaction_read_only": "off",
    "default_transaction_deferrable": "off",
    "tcp_keepalives_idle": "10",
    "tcp_keepalives_interval": "5",
    "tcp_keepalives_count": "3",
    "tcp_user_timeout": "30000",
}
# Those that this server has. The `synchronous_commit` of before comes back in each row. Without a join, which would be
# compiled where a role has loops switched off.
SET: Final = """
WITH was AS MATERIALIZED (SELECT current_setting('synchronous_commit') AS level)
SELECT (SELECT level FROM was), set_config(given.name, given.value, false)
FROM unnest(%s::text[], %s::text[]) AS given(name, value)
WHERE current_setting(given.name, true) IS NOT NULL
"""


def connected(address: Address, program: str) -> psycopg.Connection[tuple[Any, ...]]:
    """A connection of which each statement is a transaction, unless BEGIN says otherwise.

    Raises: StoreError, there is none, and why.
    """
    name = f"inorder {os.getpid()}: {program}"[:63]
    given = {**KEEPALIVES, "application_name": name, **address.parameters}
    try:
        return psycopg.Connection.connect(make_conninfo("", **given), autocommit=True)
    except psycopg.Error as error:
        raise unreachable(address, error) from error


class Link:
    """See the module.

    Attributes:
        pipeline: its statements.
        flush_level: the `synchronous_commit` that acknowledged work gets: the server's, at least "local".
        commits: how many transactions were committed; `flushed`: so many of them are on disk.
    """

    def __init__(self, address: Address, program: str) -> None:
        self.address, self.commits, self.flushed, self._scans = address, 0, 0, 0
        self._is_inside = False
        self._ends: tuple[bool, Answer | None] = False, None  # is the commit synchronous, and its answer
        self._last: Answer | None = None
        self._flush = 0, 0  # the Sync behind the last flush, and how many commits it brings to disk
        connection = self._connection = connected(address, program)
        try:
            with told_as_ours(address):
                values = {**SETTINGS, "search_path": f"{address.schema}, pg_catalog"}
                # Not prepared: what is at the other end may be a pooler, which is found out next.
                found = connection.execute(SET, [list(values), list(values.values())], prepare=False).fetchall()
                level = str(found[0][0])
                self.flush_level = "on" if level == "off" else level
                self.pipeline = Pipeline(connection)
        except BaseException:
            connection.close()
            raise

    # --- statements

    @property
    def is_closed(self) -> bool:
        return self._connection.closed

    def execute(self, text: str, values: Mapping[str, Any] | Sequence[Any] = ()) -> Answer:
        """Runs a statement of the shared kind: inside a transaction when somebody asks for what it brings."""
        self._last = answer = self.pipeline.execute(text, values)
        if not self._is_inside:
            answer.fetchall()
            self.pipeline.wait_for_sync(self.pipeline.syncs)
        return answer

    def changes(self) -> int:
        """How many rows the last statement has changed."""
        return 0 if self._last is None else self._last.count()

    def execute_many(self, text: str, rows: Iterable[Sequence[Any]]) -> None:
        """The same for many rows of values."""
        for row in rows:
            self.execute(text, row)

    def scan(self, text: str, values: Mapping[str, Any] | Sequence[Any] = ()) -> Iterator[tuple[Any, ...]]:
        """Runs a statement whose rows may be many: they are read as they are asked for, inside the transaction."""
        name, transaction = f"scan{self._scans}", self.commits
        self._scans += 1
        self.execute(f"DECLARE {name} NO SCROLL CURSOR FOR {text}", values)
        fetching = f"FETCH FORWARD {FETCHED_AT_ONCE} FROM {name}"
        try:
            while True:
                rows = self.execute(fetching).fetchall()
                yield from rows
                if len(rows) < FETCHED_AT_ONCE:
                    break
        finally:
            if self._is_inside and transaction == self.commits and not self.is_closed:
                self._scans -= 1
                self.execute(f"CLOSE {name}")

    def script(self, text: psycopg.sql.Composed | psycopg.sql.SQL) -> list[tuple[Any, ...]]:
        """Runs several statements without values, none of which is prepared; the rows of a single one."""
        found = self.pipeline.outside(lambda: self._connection.execute(text, prepare=False))
        return found.fetchall() if found.description else []

    # --- transactions

    def begin(self, text: str) -> None:
        """What is executed from now on is one transaction."""
        self.check()
        self.pipeline.execute(text)
        self._is_inside, self._scans, self._ends = True, 0, (False, None)

    def commit(
        self, *, durably: bool = False, flushes: bool = False, behind: Sequence[tuple[str, Sequence[Any]]] = ()
    ) -> None:
        """The end of the transaction.

        Args:
            durably: it is on disk itself when it has happened.
            flushes: all that is committed is to come to disk: wait for that with `flush`.
            behind: statements that run in a transaction of their own once this one has happened; errors are logged.
        Raises: psycopg.Error, also where the server has rolled back.
        """
        execute = self.pipeline.execute
        if durably:
            execute(f"SET LOCAL synchronous_commit = '{self.flush_level}'")
        self._ends = durably, execute("COMMIT")
        for text, values in behind:
            execute(text, values).heeds = self._logged
        self.pipeline.sync()
        if flushes and not durably:
            self._send_flush(self.commits + 1)
        self._have_committed()

    def _have_committed(self) -> None:
        durably, answer = self._ends
        assert answer is not None
        answer.fetchall()
        if answer.said != b"COMMIT":
            raise psycopg.errors.InFailedSqlTransaction(f"the commit was answered with {answer.said.decode()}")
        self.commits += 1
        if durably:
            self.flushed = self.commits
        self._is_inside = False

    def has_committed(self) -> bool:
        """Whether a commit has happened into which an exception came from outside; if that cannot be told, no more
        comes through this connection.
        """
        try:
            if self._is_inside and self._ends[1] is not None and self.pipeline.is_in_step:
                self._have_committed()
        except psycopg.Error:
            self.close()
        finally:
            if self._is_inside:
                self.close()
        return not self._is_inside

    def end_reading(self) -> None:
        """The end of a transaction that has changed nothing: nobody waits for it."""
        self._is_inside = False
        self.pipeline.execute("COMMIT")
        self.pipeline.sync()

    def roll_back(self, *, is_in_step: bool = False) -> None:
        """Ends a transaction, if one is open; nothing of it has happened.

        Args:
            is_in_step: no exception came from outside, or from the server: then nobody has to wait.
        """
        if not is_in_step:
            self.pipeline.recover(cancels=self._is_inside)
        elif self._is_inside:
            self.pipeline.give_up()
            self.pipeline.execute("ROLLBACK")
            self.pipeline.sync()
        self.commits += self._is_inside  # scans of that transaction are over
        self._is_inside = False

    def _send_flush(self, upto: int) -> None:
        self.pipeline.execute(FLUSH, (self.flush_level,))
        self._flush = self.pipeline.sync(), upto

    def flush(self, upto: int) -> None:
        """Returns when so many commits are on disk."""
        if upto > self.flushed:
            if upto > self._flush[1]:
                self._send_flush(self.commits)
            sync, commits = self._flush
            self.pipeline.wait_for_sync(sync)
            self.flushed = commits

    def _logged(self, error: psycopg.Error) -> None:
        log.warning("those who wait for %s could not be notified: %s", self.address, error)

    # --- the connection

    @property
    def server_pid(self) -> int:
        """The number of the server's process, as it introduced itself."""
        return self._connection.info.backend_pid

    def check(self) -> None:
        """Raises: ConnectionBroken, the connection was lost."""
        if self._connection.closed:
            raise ConnectionBroken(f"the connection to {self.address} was lost: connect again")

    def close(self) -> None:
        self._connection.close()
