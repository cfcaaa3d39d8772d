"""Turns a file into a group, its manifest and then its records, and a group back into a file.

A file is read twice: once for the manifest (size, SHA-256, number of messages), once for the records. The last record
is only returned if the second reading gave the same bytes as the first, so a file that changes meanwhile never makes a
whole group.

A file is written under another name in its folder, and gets its own name when it is complete, checked and on disk. No
part of its path may be a link: each part is opened from the one before, so no other process can slip a link in.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import secrets
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import TracebackType
from typing import IO, Final, Literal, NamedTuple

from ..errors import bad_argument
from ..model.fields import NUMBER_MAX
from ..model.message import IN_GROUP, LAST_IN_GROUP, LAST_SEGMENT, SEGMENT
from ..model.parameters import Choice
from .errors import FileChanged, FileError, FileExists, FormatError, RebuildError
from .manifest import MODE_MAX, Manifest, make, parse, path_bytes
from .paths import Root, naming, open_file, parent_of, refuse_store
from .splitting import CHUNK_BYTES, RECORD_BYTES_MAX, Readable, Rule, Whole, rule_of, split

Existing = Literal["refuse", "same", "replace"]
EXISTING: Final[tuple[Existing, ...]] = ("refuse", "same", "replace")
TEMPORARY_PREFIX: Final = ".inorder-"
NO_HARD_LINKS: Final = frozenset({errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK})


class Record(NamedTuple):
    """One message of a file's group.

    Args:
        sequence: its number in the group; the manifest is 1.
        body: the manifest's JSON, or bytes of the file.
        is_last: whether it is the last of the group.
        offset: for a segment, the number of bytes of the logical message before it.
        flags: `inorder.Flags` that the message needs, for its group and its segment.
    """

    sequence: int
    body: bytes
    is_last: bool
    offset: int = 0
    flags: int = IN_GROUP


def describe(
    root: Root, path: str, rule: Rule | str, *, chunk: int = CHUNK_BYTES, record_max: int = RECORD_BYTES_MAX
) -> Manifest:
    """Makes the manifest of a file below a folder. Arguments and errors are those of `records`."""
    with _opened(root, path) as file:
        return _described(file, path, rule_of(rule), chunk, record_max)


def records(
    root: Root, path: str, rule: Rule | str, *, chunk: int = CHUNK_BYTES, record_max: int = RECORD_BYTES_MAX
) -> Iterator[Record]:
    """Makes the messages of a file, its manifest first.

    Args:
        root: a folder.
        path: the path of a file below it: relative, with "/", no part of it a symbolic link.
        rule: how to split the file: a rule or its text.
        chunk: bytes read at a time; for the rule `whole` also bytes of a segment.
        record_max: the most bytes that a record may have.

    Raises ArgumentError for a bad rule or number, or for 1,000,000,000 bytes or more with `whole`; UnsafePath;
    FileError if the file cannot be read; FileChanged if it changed while it was read; FormatError if a record is too
    long.
    """
    return _records(root, path, rule_of(rule), chunk, record_max)


def _records(root: Root, path: str, rule: Rule, chunk: int, record_max: int) -> Iterator[Record]:
    with _opened(root, path) as file:
        manifest = _described(file, path, rule, chunk, record_max)
        yield Record(1, make(manifest), not manifest.messages, 0, _group_flags(is_last=not manifest.messages))
        file.again()
        again = _Hashing(file)
        pieces = _without_last(split(again, rule, chunk=chunk, record_max=record_max))
        number, offset = 0, 0
        try:
            for body, is_last in pieces:
                if is_last:
                    again.read_rest()
                    _check_unchanged(file, manifest, again, 1 if isinstance(rule, Whole) else number + 1)
                yield _record(rule, number, offset, body, is_last=is_last)
                number, offset = number + 1, offset + len(body)
        except FormatError as wrong:
            if isinstance(wrong, FileError):
                raise
            raise _changed(manifest.path) from wrong  # the first reading found no record too long
        if not number and manifest.messages:
            raise _changed(manifest.path)


def _record(rule: Rule, number: int, offset: int, body: bytes, *, is_last: bool) -> Record:
    if not isinstance(rule, Whole):
        return Record(number + 2, body, is_last, 0, _group_flags(is_last=is_last))
    segment = LAST_SEGMENT | SEGMENT if is_last else SEGMENT
    # All segments of the last logical message are last in group; a single one is not a segment.
    return Record(2, body, is_last, offset, _group_flags(is_last=True) | (0 if is_last and not offset else segment))


def _group_flags(*, is_last: bool) -> int:
    return IN_GROUP | LAST_IN_GROUP if is_last else IN_GROUP


def _without_last(pieces: Iterator[bytes]) -> Iterator[tuple[bytes, bool]]:
    """Returns each piece, and whether it is the last."""
    held = next(pieces, None)
    while held is not None:
        following = next(pieces, None)
        yield held, following is None
        held = following


class _Source:
    """A raw file whose errors name its path."""

    def __init__(self, file: IO[bytes], path: str) -> None:
        self._file, self._path = file, path

    def read(self, size: int = -1, /) -> bytes:
        with naming(self._path):
            return self._file.read(size)

    def again(self) -> None:
        """Begins again at the start of the file."""
        with naming(self._path):
            self._file.seek(0)

    def status(self) -> os.stat_result:
        with naming(self._path):
            return os.fstat(self._file.fileno())


class _Hashing:
    """Hashes and counts bytes while they are read."""

    def __init__(self, source: Readable) -> None:
        self._source, self.hash, self.size = source, hashlib.sha256(), 0

    def read(self, size: int = -1, /) -> bytes:
        data = self._source.read(size)
        self.hash.update(data)
        self.size += len(data)
        return data

    def read_rest(self) -> None:
        while self.read(CHUNK_BYTES):
            pass


@contextlib.contextmanager
def _opened(root: Root, path: str) -> Iterator[_Source]:
    # Exceptions of a consumer of the records pass through here, too; only those of our own reads get the path.
    with os.fdopen(open_file(root, path), "rb", buffering=0) as file:
        yield _Source(file, path)


def _described(file: _Source, path: str, rule: Rule, chunk: int, record_max: int) -> Manifest:
    status = file.status()
    if isinstance(rule, Whole) and status.st_size > NUMBER_MAX:
        allowed = f"one that splits, for a file of {status.st_size:,} bytes: one logical message has {NUMBER_MAX:,}"
        raise bad_argument("rule", str(rule), allowed)
    reading = _Hashing(file)
    count = sum(1 for _ in split(reading, rule, chunk=chunk, record_max=record_max))
    if reading.size != status.st_size:
        raise _changed(path)
    return Manifest(
        path=path,
        size=reading.size,
        mode=status.st_mode & MODE_MAX,
        sha256=reading.hash.hexdigest(),
        rule=str(rule),
        messages=min(1, count) if isinstance(rule, Whole) else count,
    )


def _check_unchanged(file: _Source, manifest: Manifest, again: _Hashing, messages: int) -> None:
    now = (file.status().st_size, again.size, again.hash.hexdigest(), messages)
    if now != (manifest.size, manifest.size, manifest.sha256, manifest.messages):
        raise _changed(manifest.path)


def _changed(path: str) -> FileChanged:
    return FileChanged(f"{path!r} changed while it was read: read it again when no program writes to it", path=path)


# ---- groups into files


class Rebuilder:
    """Writes one file from its group, and removes it if it is not finished.

    ::

        with Rebuilder(manifest, target) as file:
            for body in bodies:
                file.add(body)
            path = file.finish()

    Args:
        manifest: the description of the file.
        target: an existing folder; the file is written below it, and missing folders are created.
        existing: what to do if the path exists: "refuse"; accept a file with the "same" bytes; "replace" a regular file
            or a link.
        sync: whether the file is on disk, with its name, when `finish` returns.

    Raises UnsafePath if a part of the path is a link or not a folder, or if the path is a store or one of
    its files; FileExists; FileError.
    """

    def __init__(self, manifest: Manifest, target: Root, *, existing: Existing = "refuse", sync: bool = True) -> None:
        Choice(EXISTING).check("existing", existing)
        self.manifest = manifest
        self._existing, self._sync = existing, sync
        self._hash, self._size, self._messages = hashlib.sha256(), 0, 0
        self._target = Path(os.fsdecode(target)) / os.fsdecode(path_bytes(manifest.path))
        self._temporary = f"{TEMPORARY_PREFIX}{secrets.token_hex(8)}.part".encode()
        self._is_there = False  # whether the temporary name exists
        self._stack = contextlib.ExitStack()
        try:
            self._at, self._name = self._stack.enter_context(parent_of(target, manifest.path, make=True))
            if existing == "refuse" and self._taken():
                raise self._exists()
            with naming(manifest.path):
                flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW
                file = os.open(self._temporary, flags, 0o600, dir_fd=self._at)
                self._is_there = True
                self._file = self._stack.enter_context(os.fdopen(file, "wb"))
        except BaseException:
            self.abandon()
            raise

    def add(self, body: bytes, *, begins: bool = True) -> None:
        """Writes the next bytes.

        Args:
            begins: whether they begin a logical message; a later segment of one does not.

        Raises RebuildError if there are more than the manifest says; FileError, for example if the disk is full.
        """
        self._size += len(body)
        self._messages += begins
        if self._size > self.manifest.size or self._messages > self.manifest.messages:
            raise self._wrong()
        self._hash.update(body)
        with naming(self.manifest.path):
            self._file.write(body)

    def finish(self) -> Path:
        """Checks the file, sets its mode and its name, and syncs both to disk.

        Returns: its path.

        Raises RebuildError if it does not match the manifest; FileExists; FileError.
        """
        if (self._size, self._messages) != (self.manifest.size, self.manifest.messages):
            raise self._wrong()
        if self._hash.hexdigest() != self.manifest.sha256:
            raise RebuildError(
                f"{self.manifest.path!r}: the bytes have the SHA-256 {self._hash.hexdigest()}, "
                f"not {self.manifest.sha256} as the manifest says",
                path=self.manifest.path,
            )
        with naming(self.manifest.path):
            self._file.flush()
            os.fchmod(self._file.fileno(), self.manifest.mode)
            if self._sync:
                os.fsync(self._file.fileno())
            self._publish()
            self._discard()
            if self._sync:
                os.fsync(self._at)
        self.abandon()
        return self._target

    def _publish(self) -> None:
        """Gives the file its name, in one step; replaces another file only if that was allowed."""
        refuse_store(self._target, self.manifest.path)
        if self._existing == "replace":
            self._refuse_irreplaceable()
            os.replace(self._temporary, self._name, src_dir_fd=self._at, dst_dir_fd=self._at)
            self._is_there = False
            return
        try:
            os.link(self._temporary, self._name, src_dir_fd=self._at, dst_dir_fd=self._at, follow_symlinks=False)
        except FileExistsError:
            self._accept_same()
        except OSError as trouble:
            if trouble.errno not in NO_HARD_LINKS:
                raise
            if self._taken():
                self._accept_same()
            else:
                os.rename(self._temporary, self._name, src_dir_fd=self._at, dst_dir_fd=self._at)
                self._is_there = False

    def _accept_same(self) -> None:
        if self._existing != "same" or not self._has_same_bytes():
            raise self._exists()

    def _has_same_bytes(self) -> bool:
        kind = self._kind()
        if kind is None or not stat.S_ISREG(kind):  # even opening a device may have an effect
            return False
        file = os.open(self._name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=self._at)
        with os.fdopen(file, "rb", buffering=0) as there:
            found = _Hashing(there)
            if os.fstat(file).st_size != self.manifest.size:
                return False
            found.read_rest()
        return found.hash.hexdigest() == self.manifest.sha256

    def _refuse_irreplaceable(self) -> None:
        kind = self._kind()
        if kind is not None and not stat.S_ISREG(kind) and not stat.S_ISLNK(kind):
            raise FileError(
                f"{self.manifest.path!r} exists and is not a regular file: pipes, devices and folders are not replaced",
                path=self.manifest.path,
            )

    def _taken(self) -> bool:
        return self._kind() is not None

    def _kind(self) -> int | None:
        """The mode of the file at the path, without following a link; None if there is none."""
        try:
            return os.stat(self._name, dir_fd=self._at, follow_symlinks=False).st_mode
        except FileNotFoundError:
            return None

    def _exists(self) -> FileExists:
        other = ", with other bytes" if self._existing == "same" else ""
        return FileExists(
            f"{self.manifest.path!r} already exists{other}: move it away, or give existing='replace'",
            path=self.manifest.path,
        )

    def _wrong(self) -> RebuildError:
        return RebuildError(
            f"{self.manifest.path!r} has {self.manifest.size:,} bytes in {self.manifest.messages:,} messages, as the "
            f"manifest says; the group has {self._size:,} in {self._messages:,}, or more",
            path=self.manifest.path,
        )

    def abandon(self) -> None:
        """Removes an unfinished file; harmless when repeated, and after `finish`."""
        with naming(self.manifest.path):
            try:
                self._discard()
            finally:
                self._stack.close()

    def _discard(self) -> None:
        """Removes the temporary name."""
        if self._is_there:
            self._is_there = False
            os.unlink(self._temporary, dir_fd=self._at)

    def __enter__(self) -> Rebuilder:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.abandon()


def rebuild(bodies: Iterable[bytes], target: Root, *, existing: Existing = "refuse", sync: bool = True) -> Path:
    """Writes a file back from the bodies of its group: the manifest, then the logical messages, whole and in order.

    Args and errors: as `Rebuilder`; also ManifestError if the first body is not a manifest; RebuildError if there is
    none.
    """
    following = iter(bodies)
    first = next(following, None)
    if first is None:
        raise RebuildError("there is no manifest: the group of a file has at least one message")
    with Rebuilder(parse(first), target, existing=existing, sync=sync) as file:
        for body in following:
            file.add(body)
        return file.finish()
