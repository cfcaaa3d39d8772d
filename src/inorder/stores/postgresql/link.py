"""A store's connection to PostgreSQL: a single one, from its opening to its end.

It is not pooled: the advisory lock that shows that the process is alive belongs to it, so a process that has lost its
connection cannot go on.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, Final

import psycopg
from psycopg.conninfo import make_conninfo

from ...errors import ConnectionBroken, OutcomeUnknown
from .address import Address
from .faults import told_as_ours, unreachable
from .pipeline import Pipeline, StatementResult
from .statement import array
from .statements import STATEMENTS

log = logging.getLogger("inorder.stores")

FETCHED_AT_ONCE: Final = 256  # rows of a scan
SYNC_WAIT: Final = "SyncRepWaitForLSN"  # the function in the server where a wait for a standby ends, in any language
# Defaults if URL, environment and service set nothing: a machine that vanishes is noticed within 30 s.
KEEPALIVES: Final = {
    "keepalives": "1",
    "keepalives_idle": "10",
    "keepalives_interval": "5",
    "keepalives_count": "3",
    "tcp_user_timeout": "30000",
    "connect_timeout": "30",
}
# Settings of a role, a database or the environment must have no effect. Statements always step into indexes: they name
# their search, and no plan may change with the contents of a queue, or be made again for each value. The server also
# notices that a machine has vanished.
SETTINGS: Final = {
    "enable_seqscan": "off",
    "enable_bitmapscan": "off",
    "enable_hashjoin": "off",
    "enable_mergejoin": "off",
    "enable_material": "off",
    "enable_indexscan": "on",
    "enable_tidscan": "on",
    "enable_nestloop": "on",
    "enable_sort": "on",
    "max_parallel_workers_per_gather": "0",
    "jit": "off",
    "plan_cache_mode": "force_generic_plan",
    "synchronous_commit": "off",
    "inorder.groups": "off",  # until an operation reads a queue with groups
    "inorder.fronts": "off",  # or one with fronts
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
# Sets those that this server has. Each row returns the previous `synchronous_commit`. Without a join, which would be
# compiled if a role has loops switched off. Nothing is set if a pooler will give the session to others.
SET: Final = """
WITH was AS MATERIALIZED (SELECT current_setting('synchronous_commit') AS level)
SELECT (SELECT level FROM was), set_config(given.name, given.value, false)
FROM unnest(%s::text[], %s::text[]) AS given(name, value)
WHERE pg_backend_pid() = %s AND (current_setting(given.name, true) IS NOT NULL OR given.name LIKE 'inorder.%%')
"""


def connected(address: Address, program: str) -> psycopg.Connection[tuple[Any, ...]]:
    """Connects. Each statement is a transaction, unless BEGIN says otherwise.

    Raises: StoreError, with the reason, if that fails.
    """
    name = f"inorder {os.getpid()}: {program}"[:63]
    given = {**_keepalives(address), "fallback_application_name": name, **address.parameters}
    try:
        return psycopg.Connection.connect(make_conninfo("", **given), autocommit=True)
    except psycopg.Error as error:
        raise unreachable(address, error) from error


def _keepalives(address: Address) -> dict[str, str]:
    """Returns defaults for unset parameters; none if the URL names a service, whose settings only libpq knows."""
    if "service" in address.parameters:
        return {}
    known = {one.keyword.decode() for one in psycopg.pq.Conninfo.get_defaults() if one.val is not None}
    return {name: value for name, value in KEEPALIVES.items() if name not in known}


# The end of a transaction that was sent: whether it is synchronous, the answer to COMMIT if it has begun with
# BEGIN, and its Sync.
End = tuple[bool, StatementResult | None, int]
NO_END: Final[End] = False, None, 0
SYNCHRONOUSLY: Final = "SELECT set_config('synchronous_commit', ?, true)"


class Link:
    """A connection; see the module.

    Attributes:
        pipeline: its statements.
        flush_level: the `synchronous_commit` for acknowledged work: the server's, at least "local".
        is_durable: the transaction's commit will already wait for the disk.
        last: the answer to the last statement; None: this transaction has executed nothing yet.
        commits: how many transactions were committed; `flushed`: how many of them are on disk.
    """

    def __init__(self, address: Address, program: str) -> None:
        self.address, self.commits, self.flushed, self._scans = address, 0, 0, 0
        self._is_inside = self.is_durable = False
        self._ends = NO_END
        self.last: StatementResult | None = None
        # The last flush: the Sync after it, how many commits it covers, and whether it succeeds.
        self._flush: tuple[int, int, StatementResult | None] = 0, 0, None
        self._is_unreplicated = False  # a wait for a synchronous standby was cancelled
        connection = self._connection = connected(address, program)
        try:
            with told_as_ours(address):
                values = {**SETTINGS, "search_path": f"{address.schema}, pg_catalog"}
                # Not prepared: the other end may be a pooler, which the next statement detects.
                given = [list(values), list(values.values()), self.server_pid]
                levels = {str(level) for level, _ in connection.execute(SET, given, prepare=False)}
                self.flush_level = "".join(levels - {"off"}) or "on"
                self.pipeline = Pipeline(connection)
            connection.add_notice_handler(self._notice)
        except BaseException:
            connection.close()
            raise

    # --- statements

    @property
    def is_closed(self) -> bool:
        return self._connection.closed

    def execute(self, text: str, values: Mapping[str, Any] | Sequence[Any] = ()) -> StatementResult:
        """Runs a statement; inside a transaction it waits only when the answer is read."""
        self.last = answer = self.pipeline.execute(text, values)
        if not self._is_inside:
            self.pipeline.wait_for_sync(self.pipeline.sync())
        return answer

    def changes(self) -> int:
        """Returns how many rows the last statement changed."""
        return 0 if self.last is None else self.last.count()

    def scan(self, text: str, values: Mapping[str, Any] | Sequence[Any] = ()) -> Iterator[tuple[Any, ...]]:
        """Runs a statement that may have many rows: they are read as needed, inside the transaction."""
        self.block()
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
        """Runs several statements without values and without preparing them. Returns the rows if there is only one."""
        found = self.pipeline.outside(lambda: self._connection.execute(text, prepare=False))
        return found.fetchall() if found.description else []

    # --- transactions

    @property
    def is_inside(self) -> bool:
        """Whether a transaction is open, as far as that is known."""
        return self._is_inside and not self.is_closed

    def begin(self, block: str = "") -> None:
        """Begins a transaction.

        Args:
            block: the statement that begins it; without one its Sync ends it.
        Raises: ConnectionBroken, if the connection was lost; `check` says whether that is known.
        """
        if self.pipeline.listen():
            self.check(known=False)
        if self._is_inside:  # too many exceptions came from outside during its end
            self.roll_back()
        elif self.pipeline.is_unasked:  # left by an interrupted call: it would become part of this transaction
            self.pipeline.give_up()
            self.pipeline.sync()
        self._is_inside, self._scans, self._ends, self.is_durable, self.last = True, 0, NO_END, False, None
        if block:
            self.block(block)

    def block(self, text: str = "BEGIN") -> None:
        """Turns the present transaction into one that COMMIT ends, for savepoints and cursors."""
        if not self.pipeline.in_block:
            self.pipeline.execute(text)
            self.pipeline.in_block = True  # after BEGIN: before it, a Sync by `recover` would commit

    def commit(self, *, durably: bool = False, flushes: bool = False, wakes: Collection[int] = ()) -> None:
        """Ends the transaction.

        Args:
            durably: the commit itself waits for the disk.
            flushes: bring all commits to disk; wait for that with `flush`.
            wakes: notify calls that wait on these queues, after the commit.
        Raises: psycopg.Error, also if the server has rolled back.
        """
        pipeline, flushes = self.pipeline, flushes and not durably
        if durably and not self.is_durable:
            pipeline.execute(SYNCHRONOUSLY, (self.flush_level,))
        answer = pipeline.execute("COMMIT") if pipeline.in_block else None
        self._ends = durably, answer, pipeline.sync()
        if wakes:  # while the server works on the commit
            pipeline.execute(STATEMENTS["notify listeners"], (array(list(wakes)),)).heeds = self._logged
            pipeline.sync(self._logged)
        if flushes:
            self._send_flush(self.commits + 1)
        self._have_committed()

    def _have_committed(self) -> None:
        durably, answer, sync = self._ends
        self.pipeline.wait_for_sync(sync)
        if answer is not None and answer.said != b"COMMIT":
            raise psycopg.errors.InFailedSqlTransaction(f"the commit was answered with {answer.said.decode()}")
        self.commits += 1
        self._is_inside = self.pipeline.in_block = False
        if durably:
            self._check_replicated()
            self.flushed = self.commits

    def _notice(self, notice: psycopg.errors.Diagnostic) -> None:
        self._is_unreplicated |= notice.source_function == SYNC_WAIT

    def _check_replicated(self) -> None:
        """Raises: OutcomeUnknown, if the server has not waited for its standby: the commit may be lost with the
        server.
        """
        if self._is_unreplicated:
            self._is_unreplicated = False
            raise OutcomeUnknown(
                f"the wait of {self.address} for its synchronous standby was cancelled: the call's changes are "
                "visible, but may be lost if that standby takes over",
                uids=(),
            )

    def has_committed(self) -> bool:
        """Whether a commit that an exception from outside interrupted has happened. If that cannot be determined, the
        connection is no longer used.
        """
        try:
            if self._is_inside and self._ends is not NO_END and self.pipeline.is_in_step:
                if self.pipeline.is_unasked:  # statements after the commit are another transaction
                    self.pipeline.sync()
                self._have_committed()
        except psycopg.Error:
            self.close()
        except OutcomeUnknown:  # it has; the caller gets the exception from outside
            pass
        finally:
            if self._is_inside:
                self.close()
        return not self._is_inside

    def end_reading(self) -> None:
        """Ends a transaction that has changed nothing, without waiting."""
        self.pipeline.execute("COMMIT")
        self.pipeline.sync()
        self._is_inside = self.pipeline.in_block = False

    def roll_back(self, *, is_in_step: bool = False) -> None:
        """Rolls back the transaction, if one is open.

        Args:
            is_in_step: no exception came from outside, and the connection was not lost: then there is no need to wait.
        """
        pipeline = self.pipeline
        if not (is_in_step and pipeline.is_in_step):
            pipeline.recover(cancels=self._is_inside)
        elif self._is_inside:
            if pipeline.in_block:
                pipeline.sync()  # after an error everything up to here is skipped
                pipeline.execute("ROLLBACK")
            elif self._ends is NO_END:  # after an error these are skipped, which rolls back
                pipeline.execute("BEGIN")
                pipeline.execute("ROLLBACK")
            pipeline.give_up()
            pipeline.sync()
        self.commits += self._is_inside  # scans of that transaction are over
        self._is_inside = pipeline.in_block = False

    def flush(self, upto: int) -> None:
        """Returns when this many commits are on disk."""
        while upto > self.flushed:
            sync, commits, answer = self._flush
            if upto <= commits and answer is not None:
                self._flush = 0, 0, None
                self.pipeline.wait_for_sync(sync)
                self._check_replicated()
                if answer.has_come and answer.fetchall():  # `recover` may have dropped answers and errors
                    self.flushed = commits
            else:
                self._send_flush(self.commits)

    def _send_flush(self, commits: int) -> None:
        answer = self.pipeline.execute(STATEMENTS["flush commits"], (self.flush_level,))
        self._flush = self.pipeline.sync(), commits, answer

    def _logged(self, error: psycopg.Error) -> None:
        log.warning("calls that wait on %s could not be notified: %s", self.address, error)

    # --- the connection

    @property
    def server_pid(self) -> int:
        """The id of the server's process, as it reported it."""
        return self._connection.info.backend_pid

    def check(self, *, known: bool = True) -> None:
        """Raises: ConnectionBroken, if the connection was lost; `known`: an earlier call has already reported that."""
        if self._connection.closed:
            told_before: dict[str, Any] = {"known": True} if known else {}
            raise ConnectionBroken(f"the connection to {self.address} was lost: connect again", **told_before)

    def close(self) -> None:
        self._connection.close()
