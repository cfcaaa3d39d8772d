"""Errors in formats and files; a branch of the tree in `inorder.errors`.

::

    InorderError
    └── FormatError              the input is not in the format, or not as it was written
        ├── ManifestError            the first message of a group is not a manifest, or a bad one
        ├── RebuildError             the records do not make the file of the manifest
        ├── UnsafePath               the path would lead out of the folder
        └── FileError                trouble with a file, which it names
            ├── FileChanged              the file changed while it was read
            └── FileExists               the file exists, and may not be replaced

A bad argument is an `inorder.ArgumentError`, as everywhere.
"""

from __future__ import annotations

from ..errors import InorderError, Reason


class FormatError(InorderError):
    """The input is not in the format; data: line or path, if known."""

    reason = Reason.FORMAT_ERROR


class ManifestError(FormatError):
    """A message is not a manifest, or its manifest contradicts itself."""


class RebuildError(FormatError):
    """The records do not match the manifest: too few, too many, or other bytes; data: path."""


class UnsafePath(FormatError):
    """A path leads out of the folder, or through a part that is not a folder; data: path."""


class FileError(FormatError):
    """A file cannot be listed, read or written; data: path."""

    reason = Reason.RESOURCE_PROBLEM


class FileChanged(FileError):
    """A file changed while it was read, so the bytes read are not from a single version; data: path."""


class FileExists(FileError):
    """A file with this path already exists; data: path."""
