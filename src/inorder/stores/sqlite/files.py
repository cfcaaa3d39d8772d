"""Facts about the files of a store: which file is at a path, whether it has room, why it cannot be opened."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Final

from ...errors import StoreError, StoreFull

FULL: Final = frozenset({errno.ENOSPC, errno.EDQUOT})
REMEDIES: Final = {
    errno.EMFILE: ". This process may have no more files open: close some, or raise its limit (ulimit -n).",
    errno.ENFILE: ". The system may have no more files open.",
    errno.EACCES: ". Give this user the rights to it.",
}


def allocate(descriptor: int, start: int, length: int) -> None:
    """Make a file longer, and allocate the added bytes on the disk."""
    if hasattr(os, "posix_fallocate"):
        try:
            os.posix_fallocate(descriptor, start, length)
        except OSError as error:  # not every file system supports it; on a full disk the writes fail as well
            if error.errno is None:  # a time-out of the caller's
                raise
        else:
            return
    if os.pwrite(descriptor, bytes(length), start) < length:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def identity_of(path: str | Path) -> tuple[int, int] | None:
    """Device and inode of the file at a path; None if there is none."""
    try:
        status = os.stat(path)  # noqa: PTH116 - Path.stat costs three times as much, and each write asks
    except FileNotFoundError:
        return None
    return status.st_dev, status.st_ino


def replaced(path: Path) -> StoreError:
    """Return the error for another file, or none, at the path of the database."""
    return StoreError(
        f"{path} was deleted or replaced while it was open. The file now at this path was not touched; close the store "
        "and open it again.",
        path=str(path),
        must_reopen=True,
    )


def opening_error(path: Path, error: OSError, act: str = "opened") -> StoreError:
    """Return the error for a file of the store that the system refused to open, lock or write."""
    if error.errno is None:  # a time-out of the caller's
        raise error
    if error.errno in FULL:
        return StoreFull(f"{path} cannot be written: the disk is full", path=str(path))
    remedy = REMEDIES.get(error.errno, "")
    return StoreError(f"{path} cannot be {act}: {error.strerror}{remedy}", path=str(path))
