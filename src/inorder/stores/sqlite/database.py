"""An SQLite file that this process has open: transactions, durability, and communication between processes.

A write waits for the turn (`coordination.py`), so that writers queue up instead of meeting in SQLite's busy handler,
and commits without a sync; `sync` brings it to disk afterwards, outside the turn (`log.py`).

**Forks.** SQLite records the locks of a process in the process's memory. A child made by fork inherits this memory, but
not the locks: it cannot use an inherited connection, and could not even open the file itself, because SQLite would
treat the inherited locks as held. So no connection is open while a process forks: a fork waits for the transactions of
other threads to end, closes the connections (without a checkpoint), and the parent opens them again at its next call.
In the child, a `Database` made before the fork refuses every call, and a new one works. If the forking thread itself is
inside a transaction, its connection must stay open, and the child cannot open this file at all.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from time import monotonic
from typing import Final

import apsw

from ...errors import (
    CallInProgress,
    ConnectionClosed,
    ForkedConnection,
    InorderError,
    QueueManagerStopping,
    StoreError,
    StoreForeign,
    forked,
)
from ...support.locks import AtEnd, Lock
from ..engine import points
from ..seam.migrations import Ladder
from .coordination import TURN, UNANNOUNCED, Coordination, attach, detach
from .faults import PASSING, is_full, patiently, store_error, told_as_ours
from .files import identity_of, replaced
from .forks import databases, inherited, opening
from .log import Log
from .opening import APPLICATION_ID, OBJECTS, made, refuse_other_schema, refuse_other_version, refuse_unfit, resolved

BUSY_MS: Final = 1_000  # how long SQLite waits at a time; in between, signal handlers run
CACHE_KIB: Final = 8_192
CHECKPOINT_CACHE_KIB: Final = 256
LOG_KEPT_BYTES: Final = 64 << 20
STATEMENTS_KEPT: Final = 64
LOOK_SECONDS: Final = 0.1  # how often to check whether the files of the store are still at their paths

SETTINGS: Final = f"""
PRAGMA synchronous = NORMAL;                   -- a checkpoint syncs, a commit does not: log.py does
PRAGMA fullfsync = ON;                         -- macOS: into the drive, not only to it
PRAGMA checkpoint_fullfsync = ON;
PRAGMA cache_size = -{{cache_kib}};
PRAGMA mmap_size = 0;                          -- an error of the disk must be an error, not the end of the process
PRAGMA journal_size_limit = {LOG_KEPT_BYTES};  -- a log that had to grow shrinks again
PRAGMA foreign_keys = OFF;                     -- checked as a whole (foreign_key_check), not at each statement
"""


class Database:
    """A store's file. One thread at a time is inside a transaction; the others wait.

    A missing or empty file becomes a store, with permissions 0600; the files beside it get those of the store.

    Args:
        path: the file; links are resolved.
        schema: the statements that create the tables of a new store.
        rows: the statements that fill them.
        ladder: leads to the version of that schema.
    Attributes:
        execute: runs a statement on a reused cursor, which saves 0.4 us: read all its rows before the next one. As with
            `connection`, another one after a fork.
        log: its write-ahead log.
    Raises: StoreError, if no store can be opened here; StoreForeign, if the file is something else; StoreNewer,
    StoreOlder, if another release wrote it; StoreFull, if the disk is full. Nothing was written then, except perhaps
    the beginning of a new store.
    """

    def __init__(self, path: str | os.PathLike[str], *, schema: str, rows: str = "", ladder: Ladder) -> None:
        self.path = resolved(path)
        self._name = str(self.path)
        self._schema, self._rows, self._ladder = schema, rows, ladder
        self._owners: set[int] = set()
        self._refusal: type[InorderError] | None = None
        self._sidecar, self._user, self._in_use = Path(f"{self.path}-lock"), object(), Lock()
        self._has_let_go = self._forks = False
        self._writes = self._commits = self._keeps_turn = False
        self._looked_at = -LOOK_SECONDS
        self.has_happened = False  # of the latest transaction
        self._connection: apsw.Connection | None = None
        self.execute: Callable[..., apsw.Cursor]
        with opening:
            if self.path in inherited:
                raise ForkedConnection(f"{self.path}: this process was forked inside a call on it and cannot open it")
            found = refuse_unfit(self.path)
            if found is not None:
                refuse_other_version(self.path, found, self._ladder)
            try:
                mode = made(self.path)
                with told_as_ours(self.path):
                    self._identity = identity_of(self.path)
                self._coordination = attach(self._sidecar, mode, self._user, self._identity)
                self._turn = self._coordination.lock_of(TURN)
                self.log = Log(self.path, self._coordination, lambda: self._connect(CHECKPOINT_CACHE_KIB))
                self._open_first()
                databases.add(self)
            except BaseException:
                with AtEnd(detach, self._sidecar, self._user) as again, again:
                    self._disconnect()
                raise

    # ---- opening

    def _open_first(self) -> None:
        """Connect. Creates a missing schema under the write lock; a second process waits."""
        if self._turn.is_mine:  # releasing it would release the outer call's
            raise CallInProgress("the store was opened once more from inside a call on it")
        with AtEnd(self._coordination.give, TURN) as again, again:
            try:
                self._coordination.take(TURN)
                with told_as_ours(self.path):
                    try:
                        self._connect_first()
                    except apsw.Error as error:
                        if not is_full(error, self._connection):
                            raise
                        self._disconnect()
                        self.log.lend()  # until the first transaction that writes ends
                        self._connect_first()
            except BaseException:
                self.log.close_files()
                raise

    def _connect_first(self) -> None:
        connection = self._connect_anew()
        if self._pragma("application_id") != APPLICATION_ID:
            self._create(connection)
        refuse_other_version(self.path, self._pragma("user_version"), self._ladder)
        refuse_other_schema(self.path, patiently(connection, OBJECTS), self._schema)
        self._use_log()
        self.log.find_file()

    def _connect(self, cache_kib: int) -> apsw.Connection:
        connection = apsw.Connection(self._name, flags=apsw.SQLITE_OPEN_READWRITE, statementcachesize=STATEMENTS_KEPT)
        connection.set_busy_timeout(BUSY_MS)
        # Before the first statement, which reads the schema: a manipulated schema must call no functions.
        connection.config(apsw.SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0)
        connection.config(apsw.SQLITE_DBCONFIG_DEFENSIVE, 1)
        connection.config(apsw.SQLITE_DBCONFIG_DQS_DML, 0)
        # Without it a statement is planned again at each call, in case a value let it use one of the partial indexes.
        connection.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, 1)
        connection.wal_autocheckpoint(0)
        for statement in SETTINGS.format(cache_kib=cache_kib).strip().splitlines():
            patiently(connection, statement)
        return connection

    def _connect_anew(self) -> apsw.Connection:
        connection = self._connect(CACHE_KIB)
        connection.set_wal_hook(self.log.note_length)
        execute, number = connection.cursor().execute, self.log.next_number()
        # Together, or an exception from outside comes between: see `locks`.
        self._connection, self.execute, self.log.connected, self.log.is_sought = connection, execute, number, True
        return connection

    def _create(self, connection: apsw.Connection) -> None:
        # Still in a rollback journal, and synced: see opening.py.
        patiently(connection, "PRAGMA synchronous = FULL")
        patiently(connection, "BEGIN EXCLUSIVE")
        try:
            if connection.execute("SELECT 1 FROM sqlite_schema").fetchone():
                raise StoreForeign(f"{self.path} is an SQLite file of another program", path=str(self.path))
            connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            connection.execute(f"PRAGMA user_version = {self._ladder.newest}")
            connection.execute(self._schema + self._rows).fetchall()  # to the end, also past one that gives rows
            patiently(connection, "COMMIT")
        except BaseException:
            self._end_transaction(connection)
            raise
        patiently(connection, "PRAGMA synchronous = NORMAL")

    def _use_log(self) -> None:
        mode = self._pragma("journal_mode = WAL")
        if mode != "wal":
            raise StoreError(
                f"{self.path} cannot have a write-ahead log here (SQLite offers {mode!r}). Put it on another disk.",
                path=str(self.path),
            )

    def _pragma(self, text: str) -> apsw.SQLiteValue:
        assert self._connection is not None
        value: apsw.SQLiteValue = patiently(self._connection, f"PRAGMA {text}").get
        return value

    # ---- transactions

    @property
    def is_inside(self) -> bool:
        """Whether this thread is inside a transaction, or was when an exception from outside came."""
        return self._in_use.is_mine

    @property
    def connection(self) -> apsw.Connection:
        """For statements inside `writing` or `reading`; another one after a fork, so not to be kept.

        Raises: ConnectionClosed; ForkedConnection, in a child made by fork.
        """
        if self._refusal is not None:
            self._refuse_unusable()
        if self._connection is None:
            with told_as_ours(self.path):
                return self._connect_anew()
        return self._connection

    def begin(self, *, writes: bool) -> apsw.Connection:
        """Begin a transaction; `commit` or `abort` must follow, on the same thread, also if it raises.

        A writing one waits for the turn. A reading one sees one state of the database, even if others write meanwhile.

        Raises: StoreDamaged, StoreError; ConnectionClosed, ForkedConnection.
        """
        if self._refusal is not None:
            self._refuse_unusable()
        in_use = self._in_use
        assert not in_use._is_owned(), "a transaction inside another one"
        if self._turn._is_owned() and not self._keeps_turn:
            raise CallInProgress("a call was made by a finalizer or a signal handler, in the middle of work on the log")
        in_use.acquire()
        self._writes, self.has_happened = writes, False
        connection = self._connection
        if connection is None or self._refusal is not None:
            connection = self.connection
        elif connection.txn_state("main") != apsw.SQLITE_TXN_NONE:
            # An exception is on its way through the frames of a call that was reading: its statements are still open,
            # and keep the connection at the state that it saw.
            self._disconnect()
            connection = self.connection
        if writes and not self._keeps_turn:
            self._coordination.take(TURN)
        if (now := monotonic()) - self._looked_at >= LOOK_SECONDS:
            self._refuse_replaced()
            self.log.connected, self._looked_at = self.log.next_number(), now
        if writes:
            try:
                self.execute("BEGIN IMMEDIATE")
            except PASSING:
                patiently(connection, "BEGIN IMMEDIATE")
            if self.log.is_sought:
                self.log.find_file()
            if points.reached:
                points.reached("begun")
        else:
            self.execute("BEGIN")
            # BEGIN alone fixes no state yet: the first statement does, so that one has to wait.
            patiently(connection, "SELECT 1 FROM sqlite_schema LIMIT 1")
        return connection

    def commit(self, changed: Collection[int] = (), *, reserves: bool = False) -> int:
        """Commit the transaction, and announce that these slots, from 0 on, changed.

        Args:
            reserves: it reserves numbers, and none of them may be used before the commit is on disk.
        Returns: a ticket for `sync`.

        Raises: SQLite's own errors. `abort` must follow, and raises ours.
        """
        connection, shared, ticket = self._connection, self._coordination, 0
        assert connection is not None
        if self._writes:
            shared.words[UNANNOUNCED] = 1
            if points.reached:
                points.reached("written")
            self._commits = True  # SQLite's state then shows whether it has happened
            try:
                self.execute("COMMIT")
            except PASSING:
                patiently(connection, "COMMIT")
            ticket = shared.after_commit(changed, reserves=reserves)
            if points.reached:
                points.reached("committed")
        else:
            self.execute("COMMIT")
        self.has_happened = True
        if self.log.has_grown:
            self.log.follow(connection)
        self._leave()
        return ticket

    def abort(self, error: BaseException) -> None:
        """Roll the transaction back because of this error, unless it had been committed before.

        Harmless when repeated. Raises: StoreFull, StoreDamaged, StoreError, if the error is SQLite's and about the
        file.
        """
        if self.is_inside and self._refusal is None:  # in a child made by fork, the open files are the parent's
            self._roll_back(error)
            self._leave()
        ours = store_error(self.path, error, self._connection)
        if ours is not None:
            raise ours from error

    def _roll_back(self, error: BaseException) -> None:
        connection = self._connection
        if connection is not None and connection.in_transaction:
            self._commits = False
            self._end_transaction(connection)
            if self._writes:
                self._coordination.no_commit()
        elif self._commits and not isinstance(error, apsw.Error):
            self.has_happened = True  # an exception from outside came when COMMIT was over

    def _leave(self) -> None:
        if self._writes:
            if self.log.is_lent:
                self.log.take_back()
            if not self._keeps_turn:
                self._coordination.give(TURN)
            elif self._coordination.words[UNANNOUNCED]:  # as in `give`: the next commit would clear it
                self._coordination.announce_lost()
        self._commits = False
        self._in_use.release()

    def keep_turn(self) -> bool:
        """Take the turn for all transactions until `give_turn`, which must follow. Returns whether it was free."""
        if self._refusal is not None or self._turn._is_owned():
            return False
        self._keeps_turn = True
        return self._coordination.try_take(TURN)

    def give_turn(self) -> None:
        """End `keep_turn`. Harmless when repeated, and when it did not take the turn."""
        if self._keeps_turn:
            self._coordination.give(TURN)
            self._keeps_turn = False

    def make_room(self, *, feeds: bool) -> None:
        """Make room on a full disk for a writing transaction that has done nothing yet.

        Args:
            feeds: it adds data, and must leave the room that others need for gets.
        Raises: as `begin`.
        """
        assert self._connection is not None
        with told_as_ours(self.path):
            self._connection.execute("ROLLBACK")  # in it SQLite could not restart the log
            self.log.make_room(self._connection, feeds=feeds)
            patiently(self._connection, "BEGIN IMMEDIATE")

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Run the block as one transaction: completely, or not at all if it raises. Raises: as `begin`."""
        yield from self._block(writes=True)

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Run the block on one state of the database. Raises: as `begin`."""
        yield from self._block(writes=False)

    def _block(self, *, writes: bool) -> Iterator[None]:
        try:
            self.begin(writes=writes)
            yield
            self.commit()
        except BaseException as error:
            with AtEnd(self.abort, error):
                self.abort(error)
            raise

    def _end_transaction(self, connection: apsw.Connection) -> None:
        if not connection.in_transaction:
            return
        try:
            connection.execute("ROLLBACK")
        except apsw.Error:
            # Closing it rolls back as well; the next call connects again.
            self._disconnect()

    def refuse_lost(self) -> None:
        """Raise StoreError if only a process that opens the store anew can use it: replaced, or a sync failed."""
        with self._in_use:
            if self._refusal is None:
                self._refuse_replaced()
                self.log.refuse_failed()

    def _refuse_replaced(self) -> None:
        with told_as_ours(self.path):
            found = identity_of(self._name)
        if found != self._identity:
            raise replaced(self.path)
        self._coordination.refuse_removed()

    def _refuse_unusable(self) -> None:
        assert self._refusal is not None, "the caller has checked"
        raise forked(self._name) if self._refusal is ForkedConnection else self._refusal(f"{self.path} was closed")

    # ---- durability

    def sync(self, ticket: int) -> None:
        """Return when this commit, and all before it of any process, are on disk.

        Call it outside the caller's lock and outside a transaction, so that others can go on meanwhile.

        Args:
            ticket: from `commit`.
        Raises: StoreError, if a sync failed, now or earlier: the contents of the disk are unknown then.
        """
        if self._refusal is not None:
            self._refuse_unusable()
        if points.reached:
            points.reached("before-sync")
        try:
            self._coordination.sync(ticket, self.log.sync_file)
        except ValueError:  # its memory was released: another thread has closed the store
            if self._refusal is None:
                raise
            self._refuse_unusable()
        if points.reached:
            points.reached("synced")

    @property
    def may_have_lost(self) -> bool:
        """Whether unsynced changes may be missing: the sidecar is new, so the file may have been copied here."""
        return self._coordination.is_new

    def tidy_log(self) -> None:
        """Shorten the log if it is long and no other process is doing so; to be called like `sync`, after it.

        Raises: StoreFull, StoreDamaged, StoreError. No commit is harmed; the log stays as it was.
        """
        if self._refusal is not None:
            self._refuse_unusable()
        self.log.tidy()

    # ---- communication between processes

    @property
    def shared(self) -> Coordination:
        """The state that its processes share. Raises: as `begin`, if it cannot be used."""
        if self._refusal is not None:
            self._refuse_unusable()
        return self._coordination

    # ---- owners

    def hold_owner(self, number: int) -> bool:
        """Mark this process as alive under that number, 0 to 2**61, until `release_owner`, `close` or its death. False:
        the number is taken.
        """
        if held := self.shared.hold_owner(number):
            self._owners.add(number)
        return held

    def release_owner(self, number: int) -> None:
        """End the mark of `hold_owner`."""
        self.shared.release_owner(number)
        self._owners.discard(number)

    # ---- closing, and forks

    @property
    def is_closed(self) -> bool:
        """Whether `close` was called, or this process was forked from the one that opened it."""
        return self._refusal is not None

    def again(self) -> Database:
        """Open the same file once more, for a long reading transaction beside those of this one."""
        if self._refusal is not None:
            self._refuse_unusable()
        return Database(self.path, schema=self._schema, rows=self._rows, ladder=self._ladder)

    def close(self) -> None:
        """Close the files and release this object's owner numbers. Harmless when repeated."""
        if self._refusal is ForkedConnection or self._has_let_go:
            return
        with opening, self._in_use:
            assert self._connection is None or not self._connection.in_transaction, "closed inside a transaction"
            if self._refusal is None:
                self._refusal = QueueManagerStopping if self._coordination.stopped else ConnectionClosed
            with AtEnd(self._let_go):
                self._let_go()

    def _let_go(self) -> None:
        """Closes and releases everything; may be repeated until it has finished."""
        if self._has_let_go:
            return
        self.log.close()
        self._disconnect()
        for number in tuple(self._owners):
            self._coordination.release_owner(number)
            self._owners.discard(number)
        detach(self._sidecar, self._user)
        databases.discard(self)
        self._has_let_go = True

    def _disconnect(self) -> None:
        if self._connection is not None:
            connection, self._connection = self._connection, None
            self.log.connected = 0
            try:  # not `told_as_ours`: an exception from outside could interrupt it and leave the files open
                connection.close()
            except apsw.Error as error:
                raise store_error(self.path, error) or error from error

    def before_fork(self) -> None:
        """Wait for the transactions of other threads, and close the connections."""
        self._forks = True
        self._in_use.acquire()
        self.log.before_fork()
        if self._connection is not None and not self._connection.in_transaction:
            # Without this SQLite would copy the whole log if no other process has the file open.
            self._connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
            self._disconnect()

    def after_fork(self) -> None:
        """In the parent: continue; the next call connects. Harmless when repeated, or after an interruption."""
        self.log.after_fork()
        if self._forks:
            self._forks = False
            with contextlib.suppress(RuntimeError):  # an exception came during the wait for it
                self._in_use.release()

    def after_fork_in_child(self) -> None:
        """In the child: refuse every call from now on."""
        if self._refusal is not ForkedConnection and self._connection is not None:
            inherited.add(self.path)
            # Closing it, even at the end of the process, would touch the parent's files, so it is kept forever.
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(self._connection))
        self._refusal = ForkedConnection
        self.log.close_files()
        self.after_fork()
