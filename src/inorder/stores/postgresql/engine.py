"""The engine of a store in PostgreSQL: transactions on its connection, and its statements."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import psycopg

from ...errors import CallInProgress, InorderError, OutcomeUnknown
from ...rules.staging import Key
from ...support.locks import Lock
from ..engine import points
from ..seam.backend import OperationKind, Passing
from ..sql.shapes import Table
from .faults import fault, is_lost
from .keys import encoded
from .link import Link
from .pipeline import StatementResult
from .statement import array
from .statements import STATEMENTS, TABLES

READING = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
FOLLOW_FRONTS = "SELECT set_config('inorder.fronts', 'on', true)"
FOLLOW_GROUPS = "SELECT set_config('inorder.groups', 'on', true)"
IGNORE_GROUPS = "SELECT set_config('inorder.groups', 'off', true)"


class PostgresEngine:
    """See `sql.engine.Engine`.

    A writing transaction locks queue by queue (`backend.py`); only one about the catalog runs at a time. A commit does
    not wait for the disk unless it reserves numbers: `sync` waits.
    """

    def __init__(self, link: Link) -> None:
        self.link, self._in_use = link, Lock()
        self.sql: Mapping[str, str] = STATEMENTS
        self.tables: Mapping[str, Table] = TABLES
        self.has_triggers = False
        self.has_happened = False
        self._commits = self._writes = False
        self._granted: Mapping[str, str] | None = None  # by `restrict` or `substitute`
        self._is_restricted = False
        self._first: Callable[[], object] | None = None

    # --- statements

    def execute(self, sql: str, values: Mapping[str, Any] | Sequence[Any] = ()) -> StatementResult:
        if self._first is not None:
            self.run_held_back()
        return self.link.execute(sql if self._granted is None else self._as_granted(sql), values)

    run = execute

    def scan(self, sql: str, values: Mapping[str, Any] | Sequence[Any] = ()) -> Iterator[tuple[Any, ...]]:
        self.run_held_back()
        return self.link.scan(self._as_granted(sql), values)

    def hold_back(self, first: Callable[[], object]) -> None:
        """Runs this later, before anything else in this transaction or before its commit."""
        if self._first is not None:
            self.run_held_back()
        self._first = first

    def commits_at(self, synchronously: bool) -> str:
        """Records that the caller sets `synchronous_commit` of this transaction to this value."""
        self.link.is_durable = synchronously
        return self.link.flush_level if synchronously else "off"

    @property
    def holds_back(self) -> bool:
        return self._first is not None

    def withdraw(self) -> bool:
        """Drops the held-back statement, whose work the caller does. Returns whether there was one."""
        held, self._first = self._first is not None, None
        return held

    def run_held_back(self) -> None:
        first, self._first = self._first, None
        if first is not None:
            first()

    def restrict(self, granted: Mapping[str, str]) -> None:
        """Allows only these statements, in this form, until the transaction ends; any other one raises `Passing`."""
        self._granted, self._is_restricted = granted, True

    def substitute(self, others: Mapping[str, str]) -> None:
        """Runs these statements in this form until the transaction ends."""
        self._granted = others

    def _as_granted(self, sql: str) -> str:
        if self._granted is None:
            return sql
        if self._is_restricted and sql not in self._granted:
            raise Passing("the operation does more than operations that run together may do")
        return self._granted.get(sql, sql)

    def changes(self) -> int:
        return self.link.changes()

    def array(self, values: Sequence[int] | Sequence[bytes] | Sequence[str]) -> bytes:
        return array(values)

    def keys(self, values: Sequence[Key]) -> Sequence[Any]:
        return encoded(values)

    def beginning(self, number: int, size: int) -> bytes | None:
        for (beginning,) in self.execute(self.sql["beginning of body"], (number, size)):
            found: bytes = beginning
            return found
        return None

    # --- groups, and fronts

    def follow_fronts(self) -> None:
        """Lets messages that become available move the fronts back, until the transaction ends (fronts.sql)."""
        self.link.execute(FOLLOW_FRONTS)

    def follow_groups(self) -> None:
        """Enables the triggers for groups, until the transaction ends."""
        self.link.execute(FOLLOW_GROUPS)
        self.has_triggers = True

    @contextmanager
    def ignore_groups(self) -> Iterator[None]:
        if not self.has_triggers:
            yield
            return
        self.link.execute(IGNORE_GROUPS)
        yield
        self.follow_groups()

    # --- transactions

    @property
    def is_inside(self) -> bool:
        return self._in_use.is_mine

    def begin(self, kind: OperationKind) -> None:
        if self._in_use.is_mine:
            raise CallInProgress("a call was made from inside another one, by a finalizer or a signal handler")
        self.link.check()
        self._in_use.acquire()
        self._writes, self._commits, self.has_happened = kind.writes, False, False
        self.has_triggers, self._granted, self._is_restricted, self._first = False, None, False, None
        self.link.begin("" if kind.writes else READING)
        if kind.writes and points.reached:
            points.reached("begun")

    def commit(self, changed: Collection[int], *, reserves: bool, durable: bool) -> int:
        """Sends the end with the last changes, the notifications and the flush, in one round trip."""
        self.run_held_back()
        link = self.link
        if not self._writes:
            self.has_happened = True
            link.end_reading()
            self._in_use.release()
            return link.commits
        if reached := points.reached:
            link.pipeline.wait_for_all()  # the server has executed everything
            reached("written")
        self._commits = True
        link.commit(durably=reserves, flushes=durable, wakes=changed)
        self._commits = False
        self.has_happened = True
        self._in_use.release()
        if points.reached:
            points.reached("committed")
        return link.commits

    def abort(self, error: BaseException) -> None:
        if self.is_inside:
            try:
                try:
                    self._roll_back(error)
                finally:
                    if self.link.is_inside:
                        self._roll_back(error)
            finally:
                self._in_use.release()
        if isinstance(error, psycopg.Error):
            raise self._ours(error) from error

    def _roll_back(self, error: BaseException) -> None:
        if self._commits and not isinstance(error, psycopg.Error):
            self.has_happened = self.link.has_committed()
        elif not self.link.is_closed:
            try:
                in_step = isinstance(error, InorderError | Passing) or _is_answer(error)
                self.link.roll_back(is_in_step=in_step)
            except psycopg.Error:
                self.link.close()

    def _ours(self, error: psycopg.Error) -> InorderError | Passing:
        if self._commits and is_lost(error):
            return OutcomeUnknown(
                f"the connection to {self.link.address} was lost while the call was being committed: whether it has "
                "happened is not known",
                uids=(),
            )
        return fault(self.link.address, error)


def _is_answer(error: BaseException) -> bool:
    """Whether it is the server's answer to a statement: it was read in its place, and others can follow."""
    return isinstance(error, psycopg.Error) and error.sqlstate is not None and not is_lost(error)
