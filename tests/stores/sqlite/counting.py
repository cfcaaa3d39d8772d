"""Counts what a call sends to SQLite and to the operating system: exactly, in this process, and without a clock.

SQLite's Unix layer calls the system through a table of functions that a program may replace; `os_unix.c` keeps it for
tests. Each entry is replaced by one that counts the call and passes it on. Only syncs are not in that table; they are
counted where SQLite asks for them. The interpreter tells a profiler of the calls that Python makes by itself (`os`,
`fcntl`).
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType

import apsw

from inorder.stores.sqlite import SqliteStore

# The number of arguments of each function; all arguments are numbers and addresses.
ARGUMENTS = {
    **dict.fromkeys(("close", "unlink", "rmdir"), 1),
    **dict.fromkeys(("access", "getcwd", "stat", "fstat", "lstat", "ftruncate", "fchmod", "mkdir", "munmap"), 2),
    **dict.fromkeys(("open", "fcntl", "read", "write", "fchown", "readlink", "ioctl", "fallocate"), 3),
    **dict.fromkeys(("pread", "pwrite", "pread64", "pwrite64", "mremap"), 4),
    "mmap": 6,
}
# These make no system call, or one that is counted separately.
UNCOUNTED = frozenset({"openDirectory", "getpagesize", "geteuid", "gethostuuid"})
SYNCS = frozenset({"fsync", "fdatasync", "sync"})
NO_SYSTEM_CALL = frozenset({"fspath"})


@dataclass(slots=True)
class Counts:
    """The counts. `calls` are those of the operating system, by name, including syncs; a "sync" is one of SQLite's."""

    statements: list[str] = field(default_factory=list)
    calls: Counter[str] = field(default_factory=Counter)
    log_bytes: int = 0

    @property
    def syncs(self) -> int:
        return sum(self.calls[name] for name in SYNCS)

    def __str__(self) -> str:
        calls = ", ".join(f"{name} {count}" for name, count in sorted(self.calls.items()))
        statements = "\n".join(f"    {statement}" for statement in self.statements)
        return f"system calls: {calls or 'none'}; {self.log_bytes:,} bytes of log; statements:\n{statements}"


class CountingFile(apsw.VFSFile):
    def __init__(self, owner: CountingSystem, name: str | apsw.URIFilename | None, flags: list[int]) -> None:
        super().__init__("unix", name, flags)
        self._owner = owner

    def xSync(self, flags: int) -> None:  # noqa: N802 - SQLite's name
        self._owner.count("sync")
        super().xSync(flags)


class CountingSystem(apsw.VFS):
    """Stands between SQLite and the operating system, for stores that are opened in its block."""

    def __init__(self) -> None:
        super().__init__("counting", "unix", makedefault=True)
        self._counts: Counter[str] | None = None
        self._thread = 0
        self._replaced = {name: self._counting(name, ARGUMENTS[name]) for name in self._names()}

    def xOpen(self, name: str | apsw.URIFilename | None, flags: list[int]) -> apsw.VFSFile:  # noqa: N802 - as above
        return CountingFile(self, name, flags)

    def _names(self) -> Iterator[str]:
        name: str | None = None
        while (name := self.xNextSystemCall(name)) is not None:
            if name not in UNCOUNTED and self.xGetSystemCall(name):
                yield name

    def _counting(self, name: str, arguments: int) -> Callable[..., int]:
        kind = ctypes.CFUNCTYPE(ctypes.c_long, *[ctypes.c_long] * arguments, use_errno=True)
        address = self.xGetSystemCall(name)
        assert address is not None
        real = kind(address)

        def counting(*given: int) -> int:
            self.count(name)
            return int(real(*given))

        replaced = kind(counting)
        self.xSetSystemCall(name, ctypes.cast(replaced, ctypes.c_void_p).value or 0)
        return replaced

    def count(self, name: str) -> None:
        if self._counts is not None and self._thread == threading.get_ident():
            self._counts[name] += 1

    @contextlib.contextmanager
    def counting(self, store: SqliteStore) -> Iterator[Counts]:
        """Counts what the block does to a store, on this thread; garbage is not collected meanwhile."""
        found, log, connection = Counts(), Path(f"{store.database.path}-wal"), store.database.connection
        length, profile = log.stat().st_size, sys.getprofile()

        def profiled(_frame: FrameType, event: str, called: object) -> None:
            if event == "c_call" and getattr(called, "__module__", None) in ("posix", "fcntl"):
                name = getattr(called, "__name__", "")
                if name not in NO_SYSTEM_CALL and not name.startswith("_"):
                    found.calls[name] += 1

        connection.trace_v2(apsw.SQLITE_TRACE_PROFILE, lambda event: found.statements.append(str(event["sql"])))
        self._counts, self._thread = found.calls, threading.get_ident()
        gc.disable()
        sys.setprofile(profiled)
        try:
            yield found
        finally:
            sys.setprofile(profile)
            gc.enable()
            self._counts = None
            connection.trace_v2(0, None)
        found.log_bytes = log.stat().st_size - length

    def end(self) -> None:
        """Lets SQLite call the system directly again."""
        for name in self._replaced:
            self.xSetSystemCall(name, 0)
        self.unregister()


@contextlib.contextmanager
def counting_system() -> Iterator[CountingSystem]:
    system = CountingSystem()
    try:
        yield system
    finally:
        system.end()
