"""What SQLite reports, in the words of our errors."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import apsw

from ...errors import StoreDamaged, StoreError, StoreFull

# Someone else has a lock, or is recovering the log: it passes, however long it takes.
PASSING = (apsw.BusyError, apsw.LockedError, apsw.ProtocolError)


@contextmanager
def told_as_ours(path: Path) -> Iterator[None]:
    """Raise the error that `store_error` makes of one of SQLite's; others go through as they are."""
    try:
        yield
    except apsw.Error as error:
        ours = store_error(path, error)
        if ours is None:
            raise
        raise ours from error


def store_error(path: Path, error: apsw.Error) -> StoreError | None:
    """The error to raise instead of SQLite's; None for a fault of our own, such as a wrong statement."""
    match error:
        case apsw.FullError():
            return StoreFull(
                f"the disk that holds {path} is full; the call has changed nothing. Free some space there.",
                path=str(path),
            )
        case apsw.CorruptError() | apsw.NotADBError():
            return StoreDamaged(f"{path} is damaged: {error}. Restore it from a backup.", path=str(path))
        case apsw.ReadOnlyError():
            return StoreError(f"{path} cannot be written any more: {error}", path=str(path))
        case apsw.CantOpenError() | apsw.PermissionsError():
            return StoreError(f"{path} or a file beside it cannot be opened: {error}", path=str(path))
        case apsw.IOError():
            return StoreError(f"reading or writing {path} failed: {error}", path=str(path))
        case _:
            return None
