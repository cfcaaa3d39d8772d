"""Notices that the source of a program has changed, for `inorder work --reload`."""

from __future__ import annotations

import sys
import sysconfig
from collections.abc import Iterable, Mapping
from pathlib import Path


def source_folders() -> frozenset[Path]:
    """The folders of the modules that this program has loaded, but for Python's own and installed libraries."""
    libraries = [Path(sysconfig.get_path(name)).resolve() for name in ("stdlib", "platstdlib", "purelib", "platlib")]
    files = [getattr(module, "__file__", None) for module in list(sys.modules.values())]
    found = {Path(file).resolve().parent for file in files if isinstance(file, str) and file.endswith(".py")}
    return frozenset(one for one in found if not any(one.is_relative_to(library) for library in libraries))


def versions(folders: Iterable[Path]) -> Mapping[Path, tuple[int, int]]:
    """The time of the last change, and the size, of each Python file in these folders."""
    found: dict[Path, tuple[int, int]] = {}
    for folder in folders:
        for file in folder.glob("*.py"):
            try:
                stat = file.stat()
            except OSError:  # it has just been replaced or removed
                continue
            found[file] = stat.st_mtime_ns, stat.st_size
    return found


class SourceWatch:
    """Watches the files of the loaded modules, and the others beside them."""

    def __init__(self) -> None:
        self._folders = source_folders()
        self._last = versions(self._folders)

    def has_changed(self) -> bool:
        """Whether a file has changed since this was last asked."""
        now = versions(self._folders)
        is_new, self._last = now != self._last, now
        return is_new
