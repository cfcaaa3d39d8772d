"""What goes wrong between files and messages; a branch of the tree in `inorder.errors`.

::

    InorderError
    └── FormatError              what is read is not in the format, or not what was written
        ├── ManifestError            the first message of a group is not a manifest, or a bad one
        ├── RebuildError             the records do not make the file of the manifest
        ├── UnsafePath               the path would lead out of the folder
        └── FileError                trouble with a file, which it names
            ├── FileChanged              the file changed while it was read
            └── FileExists               there is a file already, and nobody said to replace it

A bad argument is an `inorder.ArgumentError`, as everywhere.
"""

from __future__ import annotations

from ..errors import InorderError, Reason


class FormatError(InorderError):
    """What is read is not in the format; data: line or path, where there is one."""

    reason = Reason.FORMAT_ERROR


class ManifestError(FormatError):
    """A message is not a manifest, or one that contradicts itself."""


class RebuildError(FormatError):
    """The records are not those of the manifest: too few, too many, or other bytes; data: path."""


class UnsafePath(FormatError):
    """A path leads out of the folder, or through something that is not a folder; data: path."""


class FileError(FormatError):
    """A file cannot be listed, read or written; data: path."""

    reason = Reason.RESOURCE_PROBLEM


class FileChanged(FileError):
    """A file changed while it was read: what was read of it is not a state that it ever had; data: path."""


class FileExists(FileError):
    """There is a file of this path already; data: path."""
