"""Small disks for a store: a real one if this user may mount it, and one that is counted in this process."""

from __future__ import annotations

import contextlib
import errno
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import apsw
import pytest

SYSTEM_VFS = "unix"


class Disk:
    """A folder on a small disk, for a store and for the ballast of another user."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.store = folder / "orders.db"
        self._ballast = folder / "ballast"

    def fill(self) -> None:
        """Writes ballast until the disk is full."""
        with self._ballast.open("ab", buffering=0) as file, contextlib.suppress(OSError):
            while True:
                file.write(bytes(4096))

    def clear(self) -> None:
        self._ballast.unlink()


@contextmanager
def mounted(folder: Path, size: int) -> Iterator[Disk]:
    """A file system in memory; skips the test if it cannot be mounted."""
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", f"size={size}", "none", str(folder)]
    if os.geteuid() or subprocess.run(command, check=False, capture_output=True).returncode:
        pytest.skip("a small disk can be mounted by root alone, and where the system permits it")
    try:
        yield Disk(folder)
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


class CountedDisk(Disk):
    """A folder whose files together may have `size` bytes; only this process, through SQLite and `os`, respects it.

    Attributes:
        quota: a write that finds no room fails because the user's quota is used up.
        heeded: whether the size counts; counting takes a descriptor.
    """

    def __init__(self, folder: Path, size: int) -> None:
        super().__init__(folder)
        self.size, self.quota, self.heeded = size, False, True

    @property
    def free(self) -> int:
        return self.size - sum(one.stat().st_size for one in self.folder.iterdir())

    def fill(self) -> None:
        with self._ballast.open("ab") as file:
            file.truncate(file.tell() + self.free)

    def has_room(self, descriptor: int | Path, end: int) -> bool:
        """Whether a file can grow to this end."""
        if not self.heeded:
            return True
        status = os.stat(descriptor)  # noqa: PTH116 - of a descriptor too
        if end <= status.st_size:
            return True
        is_here = status.st_ino in {one.stat().st_ino for one in self.folder.iterdir()}
        return not is_here or end - status.st_size <= self.free


class _File(apsw.VFSFile):
    def __init__(self, disk: CountedDisk, name: Any, flags: Any) -> None:
        super().__init__(SYSTEM_VFS, name, flags)
        self._disk, self._path = disk, Path(name.filename() if isinstance(name, apsw.URIFilename) else name or "")

    def xWrite(self, data: Any, offset: int) -> None:  # noqa: N802 - its name in SQLite
        if self._path.exists() and not self._disk.has_room(self._path, offset + len(data)):
            if self._disk.quota:
                raise apsw.exception_for(apsw.SQLITE_IOERR_WRITE)
            raise apsw.FullError("no room")
        super().xWrite(data, offset)

    def xSync(self, flags: int) -> None:  # noqa: N802 - as above
        """Does nothing: a full disk is checkpointed at nearly every call, and no test here loses power."""


class _FileSystem(apsw.VFS):
    def __init__(self, disk: CountedDisk) -> None:
        super().__init__("counted", SYSTEM_VFS, makedefault=True)
        self._disk = disk

    def xOpen(self, name: Any, flags: Any) -> apsw.VFSFile:  # noqa: N802 - as above
        return _File(self._disk, name, flags)

    def xGetLastError(self) -> tuple[int, str]:  # noqa: N802 - as above
        return errno.EDQUOT if self._disk.quota else 0, ""


@contextmanager
def counted(folder: Path, size: int) -> Iterator[CountedDisk]:
    """A disk that is small without mounting; all connections must be closed at the end."""
    folder.mkdir()
    disk, allocate, write = CountedDisk(folder, size), os.posix_fallocate, os.pwrite

    def refuse(descriptor: int, end: int) -> None:
        if not disk.has_room(descriptor, end):
            raise OSError(errno.EDQUOT if disk.quota else errno.ENOSPC, "no room")

    def posix_fallocate(descriptor: int, start: int, length: int) -> None:
        refuse(descriptor, start + length)
        allocate(descriptor, start, length)

    def pwrite(descriptor: int, data: bytes, start: int) -> int:
        refuse(descriptor, start + len(data))
        return write(descriptor, data, start)

    def statvfs(_: object) -> SimpleNamespace:
        free = 1 << 30 if disk.quota else disk.free  # the system does not report quotas
        return SimpleNamespace(f_blocks=disk.size, f_bavail=free, f_bfree=free, f_frsize=1)

    system = _FileSystem(disk)
    with pytest.MonkeyPatch.context() as patched:
        for act in (posix_fallocate, pwrite, statvfs):
            patched.setattr(os, act.__name__, act)
        patched.setattr(os, "fdatasync", lambda _: None)
        try:
            yield disk
        finally:
            system.unregister()
