"""The write-ahead log of a store: brought to disk for all who wait, and kept short.

**Sync.** SQLite commits without a sync (`synchronous=NORMAL`); a commit is on disk once the log's file has been synced
after it. Whoever needs that names its commit's number, outside the turn. One of those who ask becomes the leader, for
all threads and processes: it reads the number of the last commit, syncs the file and publishes the number. All who
waited find their commit covered and return without a sync of their own (`Coordination.sync`).

Why that covers every commit up to the number, wherever it is by then:

* It is in the log. Its frames were written before its number was announced, so before the leader's sync began.
* It was in the log, which has been started anew since (that overwrites it in the same file, or in one made after
  the last process closed the old one). SQLite does that only when every frame of the log has been copied to the
  database, and a checkpoint says so only after syncing first the log and then the database (`synchronous` is not OFF,
  of any connection of ours). So it is on disk, in the database.
* It was in a log that is gone: a fork had closed the connections of this process, and another one, which closed the
  store as the last, copied the log in the same way and removed it. While a connection is open here SQLite removes no
  log; then somebody else did, and what was in it is lost.

A sync that failed is never repeated: the kernel reports the loss of pages once and then counts them as clean, so that a
second sync would succeed without having written them. The store then promises nothing any more until all its
processes have closed it and it is opened again, when SQLite reads from the files what is really there.

**Tidy.** SQLite's own checkpoints run in the commit of some writer, which waits for them. Ours run on a second
connection, by whichever process notices first that the log is long; the others pass by. First without the turn, while
others write: nearly everything is copied then. Under constant load the writers are always some frames ahead, so that
the log could never be started anew; so the rest is copied with the turn, when nobody can write.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path

import apsw

from ...errors import StoreError
from ...locks import Lock
from .. import points
from .coordination import TIDYING, TURN, Coordination
from .faults import PASSING, told_as_ours

if sys.platform == "darwin":
    import fcntl

LONG_PAGES = 4_000  # 16 MB


class Log:
    """The log of one database, as this process has it.

    Args:
        path: the database's file.
        coordination: what its processes share.
        connect: makes a connection for checkpoints.
        is_connected: whether this process has the database open now.
    """

    def __init__(
        self,
        path: Path,
        coordination: Coordination,
        connect: Callable[[], apsw.Connection],
        is_connected: Callable[[], bool],
    ) -> None:
        self._database = path
        self._path = Path(f"{path}-wal")
        self._coordination = coordination
        self._descriptor: int | None = None
        self._file_in_use = Lock()
        self._connect, self._is_connected = connect, is_connected
        self._connection: apsw.Connection | None = None
        self._checkpointing = Lock()
        self._pages = 0
        self._tidy_at = LONG_PAGES
        self.is_long = False

    # ---- sync

    def sync(self, number: int) -> None:
        """Return when the commit of this number, and all before it, are on disk.

        Raises: StoreError, if a sync failed, now or earlier.
        """
        self._coordination.sync(number, self._sync_file)

    def _sync_file(self) -> None:
        if self._coordination.sync_failed:
            raise StoreError(
                f"{self._database}: an earlier sync to disk failed, and what the disk holds is unknown. Close the "
                "store in all processes, see to the disk, and open it again.",
                path=str(self._database),
            )
        try:
            with self._file_in_use:
                descriptor = self._current()
                if descriptor is not None:
                    sync_data(descriptor)
        except OSError as error:
            self._coordination.fail_sync()
            raise StoreError(
                f"{self._path} could not be synced to disk: {error.strerror}", path=str(self._database)
            ) from error

    def _current(self) -> int | None:
        """A descriptor of the log as it is now; it may have been made anew while this process had no connection.

        Returns: None, the log was copied, synced and removed while this process had no connection.
        """
        if self._descriptor is None or not os.fstat(self._descriptor).st_nlink:
            self._close_file()
            try:
                self._descriptor = self._open()
            except FileNotFoundError:
                if not self._is_connected():
                    return None
                self._descriptor = self._open()  # another thread has connected just now, which makes the log
            sync_folder(self._path.parent)
        return self._descriptor

    def _open(self) -> int:
        return os.open(self._path, os.O_RDWR | os.O_CLOEXEC)

    def _close_file(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    # ---- tidy

    def note_length(self, connection: apsw.Connection, name: str, pages: int) -> int:
        """Remember how long the log is after a commit of this process; for SQLite, which calls it there."""
        self._pages = pages
        if pages < LONG_PAGES:
            self._tidy_at = LONG_PAGES
        self.is_long = pages >= self._tidy_at
        return apsw.SQLITE_OK

    def tidy(self) -> None:
        """Checkpoint if the log is long and nobody else is at it.

        Raises: StoreError and its kinds, if the database cannot be written.
        """
        if self._pages < self._tidy_at:
            return
        shared, rest = self._coordination, 0
        try:
            if not shared.try_take(TIDYING):
                return
            self._tidy_at = self._pages + LONG_PAGES // 4  # if it fails: not again at each commit
            if points.reached:
                points.reached("checkpoint")
            with told_as_ours(self._database):
                rest = self._checkpoint()
                if rest:
                    rest = self._checkpoint_in_turn()
        finally:
            try:
                shared.give(TIDYING)
            finally:
                shared.give(TIDYING)
        # What a reader still needs of the log keeps it from being copied whole: not again at each commit, then.
        self._tidy_at = self._pages + LONG_PAGES // 4 if rest else LONG_PAGES
        self._pages = 0

    def _checkpoint_in_turn(self) -> int:
        try:
            self._coordination.take(TURN)
            return self._checkpoint()
        finally:
            try:
                self._coordination.give(TURN)
            finally:
                self._coordination.give(TURN)

    def _checkpoint(self) -> int:
        """Copy what can be copied, waiting for nobody; how many pages are left."""
        with self._checkpointing:
            if self._connection is None:
                self._connection = self._connect()
            try:
                length, copied = self._connection.wal_checkpoint("main", apsw.SQLITE_CHECKPOINT_PASSIVE)
            except PASSING:
                return 1  # somebody else is at it, a shell perhaps
        return length - copied

    # ---- closing, and forks

    def close(self) -> None:
        """Close what this process has open of the log, after whoever is using it."""
        with self._file_in_use:
            self._close_file()
        self._close_connection()

    def before_fork(self) -> None:
        """Close the connection and keep it closed until `after_fork`."""
        self._checkpointing.acquire()
        self._close_connection()

    def after_fork(self) -> None:
        """Let checkpoints go on."""
        self._checkpointing.release()

    def _close_connection(self) -> None:
        with self._checkpointing:
            if self._connection is not None:
                self._connection.close()
                self._connection = None


def sync_data(descriptor: int) -> None:
    """Bring what was written to a file to disk. Raises: OSError."""
    if sys.platform == "darwin":
        fcntl.fcntl(descriptor, fcntl.F_FULLFSYNC)  # fsync leaves it in the drive's cache there
    else:
        os.fdatasync(descriptor)


def sync_folder(path: Path) -> None:
    """Bring the names in a folder to disk. Raises: OSError."""
    folder = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
