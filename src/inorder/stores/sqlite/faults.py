"""Translates SQLite's errors into ours."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import apsw

from ...errors import StoreDamaged, StoreError, StoreFull
from ..seam.damage import damaged
from .files import FULL, opening_error

HEADER_LENGTH = 100  # bytes at the beginning of a file

# Another process has a lock, or is recovering the log. That will end, after any length of time.
PASSING = (apsw.BusyError, apsw.LockedError, apsw.ProtocolError)


def is_full(error: apsw.Error, connection: apsw.Connection | None) -> bool:
    """Whether the disk, or this user's share of it, is full.

    Args:
        connection: the one that failed, if it still exists.
    """
    # SQLite reports a full disk if a write found no space. If a quota was reached, or its index of the log cannot be
    # lengthened, it only reports that input or output failed.
    if isinstance(error, apsw.IOError):
        errno = 0 if connection is None else connection.system_errno
        return getattr(error, "extendedresult", 0) == apsw.SQLITE_IOERR_SHMSIZE or errno in FULL
    return isinstance(error, apsw.FullError)


def patiently(connection: apsw.Connection, statement: str) -> apsw.Cursor:
    """Execute a statement as soon as nothing blocks it any more."""
    while True:
        try:
            return connection.execute(statement)
        except PASSING:
            continue


def header_of(path: Path) -> bytes:
    """Return the beginning of a file, read through SQLite, which opens it read-only and writes nothing.

    Closing any other descriptor of the file would drop the locks that SQLite holds on it for this process.
    """
    with contextlib.closing(apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)) as connection:
        return connection.read("main", 0, 0, HEADER_LENGTH)[1]


@contextmanager
def told_as_ours(path: Path) -> Iterator[None]:
    """Raise `store_error` for SQLite's errors, and ours for an OSError; other exceptions pass unchanged."""
    try:
        yield
    except OSError as error:
        raise opening_error(path, error) from error
    except Exception as error:
        ours = store_error(path, error)
        if ours is None:
            raise
        raise ours from error


def store_error(path: Path, error: BaseException, connection: apsw.Connection | None = None) -> StoreError | None:
    """Return the error to raise for an error of a statement; None: it is not translated, such as a wrong statement.

    Callers' values were checked before, so a failing constraint, a text that cannot be decoded, and a number that no
    column can hold come from rows that inorder has not written.
    """
    if isinstance(error, apsw.Error) and is_full(error, connection):
        return StoreFull(
            f"the disk that holds {path} is full; the call has changed nothing. Get or delete messages, or free some "
            "space there.",
            path=str(path),
        )
    match error:
        case apsw.CorruptError() | apsw.NotADBError():
            return StoreDamaged(f"{path} is damaged: {_torn(path) or error}. Restore it from a backup.", path=str(path))
        case apsw.ConstraintError() | apsw.MismatchError() | UnicodeDecodeError() | OverflowError():
            return damaged(str(path), f"its contents contradict each other ({error})", path=str(path))
        case apsw.SQLError() if any(one in str(error) for one in ("overflow", "malformed JSON")):  # sums, descriptors
            return damaged(str(path), f"its contents contradict each other ({error})", path=str(path))
        case apsw.ReadOnlyError():
            return StoreError(f"{path} cannot be written any more: {error}", path=str(path))
        case apsw.CantOpenError() | apsw.PermissionsError():
            return StoreError(f"{path} or a file beside it cannot be opened: {error}", path=str(path))
        case apsw.IOError() | apsw.NoMemError():
            return StoreError(f"reading or writing {path} failed: {error}", path=str(path))
        case _:
            return None


def _torn(path: Path) -> str:
    """Return in words that a file is shorter than its header says, because it was cut, or copied while it was written;
    otherwise "".
    """
    try:
        header, found = header_of(path), path.stat().st_size
    except (OSError, apsw.Error):
        return ""
    size, pages = (int.from_bytes(header[begin:end], "big") for begin, end in ((16, 18), (28, 32)))
    expected = (size if size != 1 else 65536) * pages
    if header[24:28] != header[92:96] or found >= expected:
        return ""
    return f"it has {found:,} of {expected:,} bytes, as an unfinished copy has"
