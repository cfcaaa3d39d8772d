"""Paths below a folder: opens them part by part without following links, and lists them in a stable order."""

from __future__ import annotations

import contextlib
import errno
import os
import re
import stat
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from ..errors import bad_argument
from ..stores.open import is_of_any_store, is_of_open_store
from .errors import FileError, UnsafePath
from .manifest import check_path, path_bytes, path_text

Root = str | bytes | os.PathLike[str] | os.PathLike[bytes]
FOLDER_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
EVERY_FILE = ("**",)


@contextlib.contextmanager
def naming(path: str) -> Iterator[None]:
    """Turns errors about a file into ours, with its path."""
    try:
        yield
    except OSError as trouble:
        raise FileError(f"{path!r}: {trouble.strerror or trouble}", path=path, number=trouble.errno) from trouble


def open_root(root: Root) -> int:
    """Opens a folder as a descriptor. Raises FileError."""
    with naming(path_text(root)):
        return os.open(root, FOLDER_FLAGS)


@contextlib.contextmanager
def parent_of(root: Root, path: str, *, make: bool) -> Iterator[tuple[int, bytes]]:
    """Opens the folder that contains a path below `root`; gives its descriptor, and the name of the file in it.

    Args:
        root: a folder; it may itself be reached through links.
        path: relative; no part of it may be a symbolic link.
        make: whether missing folders are created.

    Raises UnsafePath; FileError.
    """
    *folders, name = path_bytes(check_path(path)).split(b"/")
    at = open_root(root)
    place = Path(os.fsdecode(root))
    try:
        for part in folders:
            place /= os.fsdecode(part)
            inner = _enter(at, part, path, place if make else None)
            os.close(at)
            at = inner
        yield at, name
    finally:
        os.close(at)


def _enter(at: int, part: bytes, path: str, made_at: Path | None) -> int:
    """Opens a folder in a folder; if `made_at`, its whole path, is given, a missing one is created."""
    with naming(path):
        try:
            return os.open(part, FOLDER_FLAGS | os.O_NOFOLLOW, dir_fd=at)
        except FileNotFoundError:
            if made_at is None:
                raise
            refuse_store(made_at, path)
            with contextlib.suppress(FileExistsError):
                os.mkdir(part, dir_fd=at)
                os.fsync(at)
            return _enter(at, part, path, None)
        except OSError as trouble:
            if trouble.errno not in (errno.ELOOP, errno.ENOTDIR):
                raise
            part_text = path_text(part)
            raise UnsafePath(f"{path!r}: its part {part_text!r} is a link, or not a folder", path=path) from None


def refuse_store(place: Path, path: str) -> None:
    """Raises UnsafePath if the path must not be written: it is a store, or has the name of one of a store's files.

    Args:
        place: the whole path.
        path: the path for the error.
    """
    if is_of_any_store(place):
        raise UnsafePath(f"{path!r} is a store, or the name of a store's other file: it must not be written", path=path)


def _refuse_open_store(place: Path, path: str) -> None:
    """Raises FileError for a file of a store that this process has open: closing it would drop the store's locks."""
    if is_of_open_store(place):
        raise FileError(f"{path!r} belongs to a store that is open in this process: it must not be read", path=path)


def open_file(root: Root, path: str) -> int:
    """Opens a regular file below a folder for reading, as a descriptor. Raises UnsafePath; FileError."""
    _refuse_open_store(Path(os.fsdecode(root)) / os.fsdecode(path_bytes(check_path(path))), path)
    with parent_of(root, path, make=False) as (at, name), naming(path):
        try:
            # Without blocking: opening a pipe would wait for its writer.
            file = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=at)
        except OSError as trouble:
            if trouble.errno != errno.ELOOP:
                raise
            raise UnsafePath(f"{path!r} is a symbolic link", path=path) from None
        if not stat.S_ISREG(os.fstat(file).st_mode):
            os.close(file)
            raise FileError(f"{path!r} is not a regular file", path=path)
        return file


def length_of(root: Root, path: str) -> int:
    """The size of a file below a folder in bytes; for a link, the size of the link. Raises FileError."""
    with naming(path):
        return os.lstat(os.path.join(os.fsencode(root), path_bytes(path))).st_size  # noqa: PTH118 - bytes


def folder(
    root: Root,
    patterns: Iterable[str] = EVERY_FILE,
    *,
    exclude: Iterable[str] = (),
    skipped: Callable[[str, str], None] | None = None,
) -> Iterator[str]:
    """The regular files below a folder, as relative paths with "/", in the order of their paths' bytes.

    Args:
        root: the folder.
        patterns: a path must match one of them. `*` and `?` stand for characters in one part of the path, `**` for any
            characters, `**/` also for nothing, `[...]` for one of several characters: `**/*.py`.
        exclude: patterns of paths to leave out; a folder that matches is not entered.
        skipped: called with the path and the reason for each matching link, pipe, socket and device: none of them is
            listed or followed.

    Raises ArgumentError for a bad pattern; FileError if a folder cannot be listed, or a matching file cannot be read.
    """
    wanted, unwanted = _matcher("patterns", patterns), _matcher("exclude", exclude)
    with naming(path_text(root)):
        top = os.fsencode(root)
    return _listed(top, b"", wanted, unwanted, skipped)


def _listed(
    top: bytes,
    below: bytes,
    wanted: Callable[[str], bool],
    unwanted: Callable[[str], bool],
    skipped: Callable[[str, str], None] | None,
) -> Iterator[str]:
    inner = os.path.join(top, below)  # noqa: PTH118 - bytes, which a Path does not take
    with naming(path_text(inner)), os.scandir(inner) as entries:
        found = sorted((entry.name + b"/" * entry.is_dir(follow_symlinks=False), entry) for entry in entries)
    for name, entry in found:
        path = path_text(below + name)
        if unwanted(path.rstrip("/")):
            continue
        if name.endswith(b"/"):
            yield from _listed(top, below + name, wanted, unwanted, skipped)
        elif wanted(path):
            if entry.is_file(follow_symlinks=False):
                if not os.access(entry.path, os.R_OK):
                    raise FileError(f"{path!r} cannot be read: {os.strerror(errno.EACCES)}", path=path)
                yield path
            elif skipped is not None:
                skipped(path, "a symbolic link" if entry.is_symlink() else "not a regular file")


def _matcher(argument: str, patterns: Iterable[str]) -> Callable[[str], bool]:
    if isinstance(patterns, str):
        raise bad_argument(argument, patterns, "several patterns, for example a list")
    compiled = [_compiled(argument, pattern) for pattern in patterns]
    return lambda path: any(each.fullmatch(path) for each in compiled)


_WILD = re.compile(r"\*\*/|\*\*|\*|\?|\[!?\]?[^]/]*\]")


def _compiled(argument: str, pattern: str) -> re.Pattern[str]:
    allowed = "patterns of relative paths, for example **/*.py"
    if not isinstance(pattern, str) or not pattern or pattern.startswith("/"):
        raise bad_argument(argument, pattern, allowed)
    made, at = "", 0
    for wild in _WILD.finditer(pattern):
        made += re.escape(pattern[at : wild.start()]) + _wild(wild[0])
        at = wild.end()
    try:
        return re.compile(made + re.escape(pattern[at:]), re.DOTALL)
    except re.error as wrong:
        raise bad_argument(argument, pattern, f"{allowed} ({wrong})") from None


def _wild(sign: str) -> str:
    known = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}
    if sign in known:
        return known[sign]
    negated = sign.startswith("[!")
    inner = "".join(each if each == "-" else re.escape(each) for each in sign[2 if negated else 1 : -1])
    return f"(?!/)[{'^' if negated else ''}{inner}]"
