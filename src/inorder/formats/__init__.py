"""Formats of messages outside queues: files as groups, and IBM's dmpmqmsg text files; without Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .errors import FileChanged, FileError, FileExists, FormatError, ManifestError, RebuildError, UnsafePath
from .file_group import Rebuilder, Record, describe, rebuild, records
from .manifest import FORMAT, Manifest
from .paths import folder
from .splitting import Delimiter, Regex, Rule, Size, Whole, join, parse_rule, split
from .transfer import FileGot, FilePut, get_file, put_file

if TYPE_CHECKING:
    from .loading import LoadEvent, LoadResult, load_folder

__all__ = [
    "FORMAT",
    "Delimiter",
    "FileChanged",
    "FileError",
    "FileExists",
    "FileGot",
    "FilePut",
    "FormatError",
    "LoadEvent",
    "LoadResult",
    "Manifest",
    "ManifestError",
    "RebuildError",
    "Rebuilder",
    "Record",
    "Regex",
    "Rule",
    "Size",
    "UnsafePath",
    "Whole",
    "describe",
    "folder",
    "get_file",
    "join",
    "load_folder",
    "parse_rule",
    "put_file",
    "rebuild",
    "records",
    "split",
]


if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        """The members of `loading`, which needs multiprocessing: that takes as long to import as all the others."""
        if name not in ("LoadEvent", "LoadResult", "load_folder"):
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name)
        from . import loading  # noqa: PLC0415

        return getattr(loading, name)
