"""The write-ahead log of a store: syncs it for all waiting calls, and keeps it short.

**Sync.** SQLite commits without a sync (`synchronous=NORMAL`); a commit is on disk once the log's file has been synced
after it. A thread that needs a sync waits with its commit's number, outside the turn. One of these threads becomes the
leader, for all threads and processes: it reads the number of the last commit, syncs the file and publishes the number.
All waiting threads find their commits covered and return without another sync (`Coordination.sync`).

This covers every commit up to the number, wherever it then is:

* It is in the log. Its frames were written before its number was announced, so before the leader's sync began.
* It was in the log, which has been restarted since (that overwrites it in the same file, or in one made after
  the last process closed the old one). SQLite does that only when every frame of the log has been copied to the
  database, and a checkpoint says so only after syncing first the log and then the database (`synchronous` is not OFF,
  of any of our connections). So it is on disk, in the database.
* It was in a log that is gone: a fork had closed the connections of this process, and another process, the last to
  close the store, copied the log in the same way and removed it. While a connection is open here SQLite removes no
  log; if the log is missing nevertheless, another program removed it, and its contents are lost.

The files for a sync are opened with the store, so that a process which can open no more files can still sync. Failing
to open them does not count as a failed sync: nothing was lost, and the next one tries again.

A sync that failed is never repeated: the kernel reports the loss of pages once and then counts them as clean, so that a
second sync would succeed without having written them. The store then refuses everything until all its processes have
closed it and it is opened again, when SQLite reads what is really in the files.

**Tidy.** SQLite's own checkpoints run in the commit of some writer, which waits for them. Ours run on a second
connection, in the process that first notices that the log is long. It first copies without the turn, while others
write, which covers nearly everything. Under constant load the writers are always some frames ahead, and the log could
never be restarted; so the rest is copied with the turn, when no process can write.

**Room.** A log can only be copied if the database has room to grow by the new pages in it, and any program may fill the
disk at any moment. So the log has a *reserve* in the sidecar, which is never shorter than the log: it grows with the
log in steps, and if it cannot grow, the log is copied at once. When a write finds the disk full, the operation is
retried and first releases the reserve. That room always suffices to copy the log; truncating the log then frees more
than the copy took. The operation then works in the room of the reserve. Before the turn is passed on, its log is also
copied and truncated, and the reserve is filled again. No other process can write in between and take that room.
"""

from __future__ import annotations

import errno
import itertools
import os
import sys
from collections.abc import Callable
from pathlib import Path

import apsw

from ...errors import StoreError
from ...support.locks import AtEnd, Lock
from ..engine import points
from .coordination import SYNC_FAILED, TIDYING, TURN, Coordination
from .faults import PASSING, is_full, told_as_ours
from .files import opening_error

if sys.platform == "darwin":
    import fcntl

LONG_PAGES = 4_000  # 16 MB
STEP_PAGES = 256  # the step by which the reserve follows the log
FRAME_BYTES = 4_096 + 24  # a page in the log, and its header
RESERVE_BYTES = 1 << 20  # in addition to the length of the log
CLOSED_BYTES = RESERVE_BYTES + STEP_PAGES * FRAME_BYTES  # kept by a closed store: enough for its next opening
RESERVE_BYTES_MAX = RESERVE_BYTES + (LONG_PAGES + STEP_PAGES) * FRAME_BYTES  # kept when the log is short again
READERS_MS = 50  # how long to wait for readers before the log is truncated


class Log:
    """The log of one database, as this process has it.

    Args:
        path: the database's file.
        coordination: the state shared by its processes.
        connect: makes a connection for checkpoints.

    Attributes:
        connected: 0 while this process has no connection to the database; else a number for the period in which SQLite
            removes no log. When it changes, the next sync checks whether the log still exists.
        is_sought: call `find_file` before anything is written.
        is_long: `tidy` has something to do.
    """

    def __init__(self, path: Path, coordination: Coordination, connect: Callable[[], apsw.Connection]) -> None:
        self._database = path
        self._path = Path(f"{path}-wal")
        self._coordination = coordination
        self._descriptor: int | None = None
        self._folder: int | None = None
        self._has_name = self.is_sought = False  # its name is on disk, too
        self.next_number = itertools.count(1).__next__
        self.connected = self._found_in = 0
        self._file_in_use = Lock()
        self._connect = connect
        self._connection: apsw.Connection | None = None
        self._checkpointing = Lock()
        self._pages = 0
        self._tidy_at = LONG_PAGES
        self._step_at = 0
        self.is_long = self.is_lent = self.has_grown = self._is_closed = False

    # ---- sync

    def sync_file(self) -> None:
        """Sync the log; for `Coordination.sync`.

        Raises: StoreError, if a sync failed, now or earlier, or the log could not be opened.
        """
        words = self._coordination.words
        if words[SYNC_FAILED]:
            raise self._failed()
        try:
            with self._file_in_use:
                if not self.connected or self._found_in != self.connected:
                    self._have_file()
                if self._descriptor is not None:
                    sync_data(self._descriptor)
        except OSError as error:
            if error.errno is None:  # a time-out of the caller's, which came meanwhile
                raise
            words[SYNC_FAILED] = 1  # before any call, which an exception might interrupt
            raise StoreError(
                f"{self._path} could not be synced to disk: {error.strerror}",
                path=str(self._database),
                must_reopen=True,
            ) from error

        if words[SYNC_FAILED]:  # another process meanwhile: the kernel has reported it there
            raise self._failed()

    def refuse_failed(self) -> None:
        """Raise StoreError if a sync of any process has failed."""
        if self._coordination.words[SYNC_FAILED]:
            raise self._failed()

    def _failed(self) -> StoreError:
        return StoreError(
            f"{self._database}: an earlier sync to disk failed, so the contents of the disk are unknown. Close the "
            "store in all processes, check the disk, and open it again.",
            path=str(self._database),
            must_reopen=True,
        )

    def _have_file(self) -> None:
        """Open the present log, and bring its name to disk; `_descriptor` stays None if the log was copied, synced and
        removed while this process had no connection.

        Raises: OSError, if its name could not be synced, or another program has removed it; StoreError, if it cannot be
        opened.
        """
        connected = self.connected
        self._find_file()
        if self._descriptor is None and self.connected:
            self._find_file()  # another thread has just connected, which creates the log
        if None not in (self._folder, self._descriptor):
            if not self._has_name:
                assert self._folder is not None
                os.fsync(self._folder)
                self._has_name = True
            self._found_in = connected
        elif self.connected:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))

    def find_file(self) -> None:
        """Open the files for a sync, before anything is written that must be synced.

        Raises: StoreError, if they cannot be opened.
        """
        with self._file_in_use:
            self._find_file()
        self.is_sought = False

    def _find_file(self) -> None:
        """Open the log, which may have been replaced while this process had no connection."""
        if self._folder is None:
            self._folder = self._open(self._path.parent, os.O_RDONLY)
        if self._descriptor is None or not os.fstat(self._descriptor).st_nlink:
            self._close_file()
            self._descriptor = self._open(self._path, os.O_RDWR)

    @staticmethod
    def _open(path: Path, flags: int) -> int | None:
        try:
            return os.open(path, flags | os.O_CLOEXEC)
        except FileNotFoundError:
            return None
        except OSError as error:
            if error.errno is None:  # a time-out of the caller's
                raise
            raise opening_error(path, error) from error

    def _close_file(self) -> None:
        if self._descriptor is not None:
            descriptor, self._descriptor, self._found_in, self._has_name = self._descriptor, None, 0, False
            os.close(descriptor)

    def close_files(self) -> None:
        """Close the files for a sync. May be repeated."""
        self._close_file()
        if self._folder is not None:
            folder, self._folder = self._folder, None
            os.close(folder)

    # ---- tidy

    def note_length(self, connection: apsw.Connection, name: str, pages: int) -> int:
        """Record the length of the log after a commit of this process; SQLite calls it, in the turn."""
        if pages <= self._pages:  # SQLite has restarted it
            self._tidy_at, self._step_at = LONG_PAGES, 0
        self._pages = pages
        self.has_grown = pages >= self._step_at
        self.is_long = pages >= self._tidy_at
        return apsw.SQLITE_OK

    def follow(self, connection: apsw.Connection) -> None:
        """In the turn, when the log has grown by a step: extend the reserve and the limit of one transaction."""
        self.has_grown = False
        self._step_at = (self._pages // STEP_PAGES + 1) * STEP_PAGES
        length = RESERVE_BYTES + self._step_at * FRAME_BYTES
        try:
            if not self._coordination.reserve(length, max(length, RESERVE_BYTES_MAX)):
                if self._pages < STEP_PAGES // 2 and self.have_reserve():
                    self._step_at = STEP_PAGES // 2
                else:
                    self._tidy_at = min(self._tidy_at, self._pages)
            self._limit_growth(connection, free_bytes(self._database.parent))
        except apsw.Error:
            self._tidy_at = min(self._tidy_at, self._pages)  # `tidy` will report the problem
        self.is_long = self._pages >= self._tidy_at

    def tidy(self) -> None:
        """Checkpoint if the log is long and no other process is doing so.

        Raises: StoreError and its kinds, if the database cannot be written.
        """
        if not self.is_long or self._coordination.has(TIDYING):
            return
        shared, rest = self._coordination, 0
        with AtEnd(shared.give, TIDYING) as again, again:
            if not shared.try_take(TIDYING):
                return
            self.is_long = False
            self._tidy_at = self._pages + LONG_PAGES // 4  # after a failure, not again at each commit
            if points.reached:
                points.reached("checkpoint")
            with told_as_ours(self._database):
                rest = self._tidy()
        # A reader that still needs the log prevents a whole copy: then do not retry at each commit.
        self._tidy_at = self._pages + LONG_PAGES // 4 if rest else LONG_PAGES

    def _tidy(self) -> int:
        try:
            return self._checkpoint() and self._in_turn(self._checkpoint)
        except apsw.Error as error:
            if not is_full(error, self._connection):
                raise
            return self._in_turn(self._copy_with_reserve)

    def _in_turn(self, act: Callable[[], int]) -> int:
        with AtEnd(self._coordination.give, TURN) as again, again:
            self._coordination.take(TURN)
            return act()

    def _checkpoint(self, mode: int = apsw.SQLITE_CHECKPOINT_PASSIVE) -> int:
        """Copy all pages that can be copied, and return how many are left. Waits only if the mode does."""
        with self._checkpointing:
            if self._connection is None:
                self._connection = self._connect()
                self._connection.set_busy_timeout(READERS_MS)
            try:
                length, copied = self._connection.wal_checkpoint("main", mode)
            except PASSING:
                return 1  # another program, perhaps a shell, is doing that, or reads
        return length - copied

    # ---- room, in the turn

    def make_room(self, connection: apsw.Connection, *, feeds: bool) -> None:
        """Release the reserve, copy the log and truncate it; `take_back` must follow before the turn is passed on.

        Args:
            connection: the one that will write, outside a transaction.
            feeds: it adds data, and may use only room that the reserve does not need.
        """
        self.lend()
        self._checkpoint(apsw.SQLITE_CHECKPOINT_TRUNCATE)
        # Found by trying, because `free_bytes` does not know a user's quota.
        has_more = self._coordination.reserve(2 * RESERVE_BYTES, 2 * RESERVE_BYTES)
        self._coordination.reserve(0, 0)
        least = 0 if feeds else RESERVE_BYTES
        self._limit_growth(connection, free_bytes(self._database.parent) - RESERVE_BYTES if has_more else least)

    def lend(self) -> None:
        """Release the reserve until `take_back`."""
        self.is_lent = True
        self._coordination.reserve(0, 0)

    def take_back(self) -> None:
        """Copy and truncate the log written in the room of the reserve, and fill the reserve again."""
        self.is_lent, self._step_at = False, 0
        try:
            self._checkpoint(apsw.SQLITE_CHECKPOINT_TRUNCATE)
        except apsw.Error:
            self.is_long = True  # `tidy` tries again, and reports the problem
        self.have_reserve()

    def have_reserve(self) -> bool:
        """Fill the reserve of a short log as far as there is room. Returns whether it is complete."""
        length = RESERVE_BYTES
        while not self._coordination.reserve(length, length):
            length //= 2
        return length == RESERVE_BYTES

    def _copy_with_reserve(self) -> int:
        self._coordination.reserve(0, 0)
        try:
            return self._checkpoint(apsw.SQLITE_CHECKPOINT_TRUNCATE)
        finally:
            self.have_reserve()

    @staticmethod
    def _limit_growth(connection: apsw.Connection, room: int) -> None:
        """Limit a transaction to pages for which the database has room once they are in the log."""
        pages = connection.pragma("page_count")
        assert isinstance(pages, int)
        connection.pragma("max_page_count", pages + max(0, room) // 2 // FRAME_BYTES)

    # ---- closing, and forks

    def close(self) -> None:
        """Close the log in this process after its users have finished; the last process shortens the reserve.

        Harmless when repeated, also when the sidecar has been closed since.
        """
        if self._is_closed:
            return
        self._cut()
        with self._file_in_use:
            self.close_files()
        self._close_connection()
        self._is_closed = True

    def _cut(self) -> None:
        """Shorten the reserve if the turn is free; otherwise the process with the turn does it."""
        shared = self._coordination
        if shared.has(TURN):
            return
        with AtEnd(shared.give, TURN) as again, again:
            if shared.try_take(TURN):
                if self.is_lent:
                    self.take_back()
                if len(shared.users) == 1 and shared.is_alone:
                    shared.reserve(0, CLOSED_BYTES)

    def before_fork(self) -> None:
        """Close the connection and keep it closed until `after_fork`."""
        self._checkpointing.acquire()
        self._close_connection()

    def after_fork(self) -> None:
        """Let checkpoints go on."""
        if self._checkpointing.is_mine:
            self._checkpointing.release()

    def _close_connection(self) -> None:
        with self._checkpointing:
            if self._connection is not None:
                connection, self._connection = self._connection, None
                connection.close()


def free_bytes(folder: Path) -> int:
    """Return how much this user can still write on a folder's disk, as far as that is known."""
    try:
        found = os.statvfs(folder)
    except OSError as error:
        if error.errno is None:  # a time-out of the caller's
            raise
        return 1 << 62
    if not found.f_blocks:  # the file system does not report it
        return 1 << 62
    return (found.f_bavail if os.geteuid() else found.f_bfree) * found.f_frsize


if sys.platform == "darwin":

    def sync_data(descriptor: int) -> None:
        """Sync a file's data. Raises: OSError."""
        fcntl.fcntl(descriptor, fcntl.F_FULLFSYNC)  # fsync leaves it in the drive's cache there
else:
    sync_data: Callable[[int], None] = os.fdatasync


def sync_folder(path: Path) -> None:
    """Sync the names in a folder. Raises: OSError."""
    folder = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
