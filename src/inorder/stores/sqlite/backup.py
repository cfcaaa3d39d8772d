"""Copies a store while others use it: one consistent state, in one file.

The copy is made page by page inside one reading transaction, so it is the store at one instant; other writers neither
change it nor wait. (SQLite restarts a copy in steps when another process writes between two of them, unless the steps
share a transaction.) `VACUUM INTO` would also copy one state, but rebuilds every index, reports no progress, and does
not sync.

The copy is written under a temporary name, synced, and then renamed, so its name always leads to a whole copy or the
previous file. It uses a separate connection, so that the other threads of this process can work; a fork waits for it.

The copy also contains the units of work, handles and waits of connected programs. The copy has none of these programs,
so the first process to open it starts its queue manager, which backs out and closes all of them, as after a crash of
the machine.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Final

import apsw

from ...errors import ArgumentError, StoreError, bad_argument
from .database import Database
from .faults import told_as_ours
from .files import opening_error
from .log import sync_data, sync_folder
from .opening import is_beside_any_store, is_of_store, resolved

STEP_PAGES: Final = 1_024  # 4 MiB between two calls of `progress`

# A copy lacks numbers that its original gives later, also if it takes the original's place and finds the sidecar there.
NUMBERS_JUMP: Final = "PRAGMA locking_mode = EXCLUSIVE; PRAGMA journal_mode = OFF; UPDATE manager SET boot = ''"

NEW: Final = "the path of a file that does not exist yet"


def back_up(
    store: Database, path: str | os.PathLike[str], *, replace: bool, progress: Callable[[int, int], object] | None
) -> None:
    """Copy a store to another file. The copy contains everything committed before the call.

    Args:
        store: the store to copy; it is opened once more.
        path: of the copy.
        replace: replace an existing file, unless it is a store that is open.
        progress: called with the bytes copied and the total; an exception from it ends the copy.

    Raises: ArgumentError, if a file exists and `replace` is false; StoreError, StoreFull.
    """
    target = resolved(path)
    refuse_target(target, store.path, replace=replace)
    with contextlib.closing(store.again()) as source, source.reading():
        copy_to(target, source.connection, store.path, replace=replace, progress=progress)


def copy_to(
    target: Path,
    source: apsw.Connection,
    store: Path,
    *,
    replace: bool = False,
    argument: str = "path",
    progress: Callable[[int, int], object] | None,
) -> None:
    """Copy the state that a connection sees to a path that `refuse_target` has allowed. As `back_up`."""
    try:
        descriptor, name = tempfile.mkstemp(prefix=f"{target.name}.", suffix=".part", dir=target.parent)
    except OSError as error:
        raise opening_error(target, error) from error
    os.close(descriptor)
    try:
        _copy(source, name, target, progress)
        _publish(Path(name), target, store, replace=replace, argument=argument)
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(name)  # noqa: PTH108 - as mkstemp named it


def refuse_target(target: Path, store: Path, *, replace: bool = False, argument: str = "path") -> None:
    """Raise if no copy of a store can be written to this path, the value of that argument. As `back_up`."""
    if not target.parent.is_dir():
        raise StoreError(f"{target} cannot be written: there is no folder {target.parent}", path=str(target))
    if target.is_dir() or (target.exists() and not replace):
        raise _taken(target, argument)
    if target.exists() and not target.is_file():
        raise bad_argument(argument, str(target), "a regular file")
    if is_of_store(target, store) or is_beside_any_store(target):
        raise bad_argument(argument, str(target), "a file other than those of a store")
    for log in (f"{target}-wal", f"{target}-journal"):
        if os.path.lexists(log):
            raise StoreError(
                f"{target} cannot be replaced: {log} exists, so a program has it open, or died with it open. "
                "Close it, or open it once and close it; or choose another path.",
                path=str(target),
            )


def _taken(target: Path, argument: str) -> ArgumentError:
    # Only `replace` lets a backup replace a file.
    return bad_argument(argument, str(target), f"{NEW}, unless replace=True is given" if argument == "path" else NEW)


def _copy(source: apsw.Connection, name: str, target: Path, progress: Callable[[int, int], object] | None) -> None:
    with told_as_ours(target), contextlib.closing(_new(name)) as copy:
        with copy.backup("main", source, "main") as steps:
            while not steps.step(STEP_PAGES):
                _tell(steps, source, progress)
            _tell(steps, source, progress)
        copy.execute(NUMBERS_JUMP).fetchall()


def _new(name: str) -> apsw.Connection:
    # No other process knows the file, so it needs neither locks, which a network file system may lack, nor a journal.
    connection = apsw.Connection(name, flags=apsw.SQLITE_OPEN_READWRITE, vfs="unix-none")
    connection.execute("PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF").fetchall()
    return connection


def _tell(steps: apsw.Backup, source: apsw.Connection, progress: Callable[[int, int], object] | None) -> None:
    if progress is not None:
        page = int(source.execute("PRAGMA page_size").get)
        progress((steps.page_count - steps.remaining) * page, steps.page_count * page)


def _publish(part: Path, target: Path, store: Path, *, replace: bool, argument: str) -> None:
    """Sync the copy, and rename it to its path."""
    try:
        descriptor = os.open(part, os.O_RDWR | os.O_CLOEXEC)
        try:
            sync_data(descriptor)
        finally:
            os.close(descriptor)
        refuse_target(target, store, replace=replace, argument=argument)
        if replace or not _linked(part, target):
            part.replace(target)
        sync_folder(target.parent)
    except FileExistsError:
        raise _taken(target, argument) from None
    except OSError as error:
        raise opening_error(target, error) from error


def _linked(part: Path, target: Path) -> bool:
    """Gives the copy a name that no file has: if two backups use one path, one of them fails.

    Returns: whether the copy has its name. If hard links are impossible here, an empty file has it, to be replaced.
    """
    try:
        target.hardlink_to(part)
    except FileExistsError:
        raise
    except OSError as error:
        if error.errno is None:  # a time-out of the caller's
            raise
        os.close(os.open(target, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
        return False
    part.unlink()
    return True
