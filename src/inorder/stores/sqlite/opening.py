"""Checks whether a path can be opened as a store, before anything is written to the file or beside it.

A path is refused with an error that names it and the remedy. A file counts as a store if SQLite's header in it has our
application id. A new store is written with its id in one transaction of the rollback journal, so no crash leaves a file
with content but no id.
"""

from __future__ import annotations

import contextlib
import functools
import os
import re
import stat
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import apsw

from ...errors import StoreError, StoreForeign, StoreNewer, StoreOlder
from ..seam.migrations import Ladder
from .coordination import attached
from .faults import HEADER_LENGTH, header_of, told_as_ours
from .files import identity_of, opening_error

APPLICATION_ID: Final = 0x696E6F72  # "inor", at byte 68 of the file
SIDECAR: Final = "-lock"
BESIDE: Final = (SIDECAR, "-wal", "-shm", "-journal")
LONGEST_BESIDE: Final = max(BESIDE, key=len)
OBJECTS: Final = "SELECT type, name, tbl_name, coalesce(sql, ''), rootpage FROM sqlite_schema"
# The tables in which ANALYZE stores figures for the planner, with their texts; other objects of such names are refused.
FIGURES: Final = frozenset(
    ("table", name, name, f"CREATE TABLE {name}({columns})")
    for name, columns in {
        "sqlite_stat1": "tbl,idx,stat",
        "sqlite_stat2": "tbl,idx,sampleno,sample",
        "sqlite_stat3": "tbl,idx,neq,nlt,ndlt,sample",
        "sqlite_stat4": "tbl,idx,neq,nlt,ndlt,sample",
    }.items()
)
MAGIC: Final = b"SQLite format 3\x00"
MOUNTS: Final = Path("/proc/mounts")

# Several hosts can mount these. Processes on two hosts share no memory and, reliably, no locks.
NETWORK_FILE_SYSTEMS: Final = frozenset(
    "9p afs beegfs ceph cifs coda fuse.ceph fuse.ceph-fuse fuse.glusterfs fuse.juicefs fuse.rclone fuse.s3fs "
    "fuse.sshfs gfs2 glusterfs gpfs lustre ncpfs nfs nfs4 ocfs2 orangefs smb2 smb3 smbfs".split()
)
MODE_OF_NEW: Final = 0o600


def resolved(path: str | os.PathLike[str]) -> Path:
    """Return the path of a store with all links resolved.

    Raises: StoreError, if its links form a circle, or it is too long for the names of the files beside it.
    """
    try:
        found = Path(path).resolve()
        for name in (found, f"{found}{LONGEST_BESIDE}"):
            with contextlib.suppress(FileNotFoundError, NotADirectoryError, PermissionError):
                os.stat(name)  # noqa: PTH116 - of a text
    except RuntimeError:  # Python 3.13 leaves this error to the system
        raise StoreError(f"{path} cannot be opened: its links form a circle", path=os.fspath(path)) from None
    except OSError as error:
        raise opening_error(Path(path), error) from error
    return found


def refuse_unfit(path: Path) -> int | None:
    """Raise if a store can neither exist nor be created at this path; nothing is written.

    Args:
        path: the store's file, with all links resolved.
    Returns: the version of its schema; None if that cannot be known yet: there is no file, or a transaction in a
    rollback journal was cut off, so that the header may not be valid.
    Raises: StoreError, for a path that cannot hold a store; StoreForeign, for a file that is not a store.
    """
    folder = path.parent
    if not folder.is_dir():
        raise _unfit(path, f"there is no folder {folder}. Create it first.")
    _refuse_mounted(path)
    if is_beside_any_store(path):
        raise _unfit(path, "it is the name of a file beside another store. Name another file.")
    if not os.access(folder, os.R_OK | os.W_OK | os.X_OK):
        raise _unfit(
            path,
            f"the folder {folder} cannot be read, or cannot be written, and a store needs files beside it, whose names "
            "it syncs. Give this user the rights to read and write there.",
        )
    _refuse_strange_beside(path)
    return _version_in(path) if path.exists() else None


def _unfit(path: Path, why: str, **data: Any) -> StoreError:
    return StoreError(f"{path} cannot be opened: {why}", path=str(path), **data)


def is_of_store(path: Path, store: Path) -> bool:
    """Whether a path leads, under any name, to a store's file or to one beside it, whether that exists or not.

    A process that has the store open must not open such a file even for reading: closing it would drop the locks of the
    process on it.
    """
    own = [f"{os.path.realpath(store)}{suffix}" for suffix in ("", *BESIDE)]
    found = _identity_of(path)
    return os.path.realpath(path) in own or (found is not None and found in map(_identity_of, own))


def is_of_open_store(path: Path) -> bool:
    """As `is_of_store`, for the stores that this process has open."""
    return any(is_of_store(path, Path(str(sidecar).removesuffix(SIDECAR))) for sidecar in attached())


def is_of_any_store(path: Path) -> bool:
    """As `is_of_store`, for the stores that this process has open and those in the path's folder."""
    return is_of_open_store(path) or is_beside_any_store(path) or _is_store(_followed(path))


def is_beside_any_store(path: Path) -> bool:
    """Whether it is the name of a file beside a store, whether that exists or not."""
    name = _followed(path)
    return any(_is_store(name.removesuffix(suffix)) for suffix in BESIDE if name.endswith(suffix))


def _identity_of(path: str | Path) -> tuple[int, int] | None:
    try:
        return identity_of(path)
    except OSError:  # nothing can exist there
        return None


def _followed(path: Path) -> str:
    """Return the target of a link. Links on the way do not matter: the files beside the target are in its folder."""
    return os.path.realpath(path) if os.path.islink(path) else str(path)  # noqa: PTH114 - quicker, for each file


def _is_store(name: str) -> bool:
    try:
        if not stat.S_ISREG(os.lstat(name).st_mode):
            return False
        found = _header(Path(name))
    except (OSError, StoreError):  # there is no file, or this user cannot read it
        return False
    return found.startswith(MAGIC) and _application_id(found) == APPLICATION_ID


def _refuse_strange_beside(path: Path) -> None:
    """Refuse files beside a store that lead to other files, because SQLite and inorder write to them."""
    for beside in (Path(f"{path}{suffix}") for suffix in BESIDE):
        try:
            mode = beside.lstat().st_mode
        except FileNotFoundError:  # also if another process has just closed the store and so removed it
            continue
        if not stat.S_ISREG(mode):
            raise _unfit(
                path,
                f"{beside} belongs to it, and is a link or not an ordinary file. Nothing was written. Find out who "
                "made it, and remove it.",
            )


def _version_in(path: Path) -> int | None:
    status = path.stat()
    if stat.S_ISDIR(status.st_mode):
        raise _unfit(path, "it is a directory. Name a file in it.")
    if not stat.S_ISREG(status.st_mode):
        raise _unfit(path, "it is not an ordinary file. Name another.")
    if not os.access(path, os.R_OK | os.W_OK):
        raise _unfit(
            path,
            "this user cannot read and write it. Give this user those rights: a reader also writes, to record what it "
            "got.",
        )
    if status.st_nlink > 1:
        raise _unfit(
            path,
            f"the file has {status.st_nlink} names (hard links). A program that uses another name would have another "
            "log, and the two would damage the store. Remove the other names.",
        )
    return _version_of_ours(path, status.st_size) if status.st_size else None


def _version_of_ours(path: Path, length: int) -> int | None:
    found = _header(path) if length >= HEADER_LENGTH else b""
    if not found.startswith(MAGIC):
        raise StoreForeign(
            f"{path} is not an inorder store, and no SQLite file either. It was not changed: name another file.",
            path=str(path),
        )
    application_id = _application_id(found)
    if application_id != APPLICATION_ID:
        raise StoreForeign(
            f"{path} is an SQLite file of another program (application id {application_id:#x}, not "
            f"{APPLICATION_ID:#x}). It was not changed: name another file.",
            path=str(path),
            application_id=application_id,
        )
    return None if Path(f"{path}-journal").exists() else int.from_bytes(found[60:64], "big")


def refuse_other_version(path: Path, found: object, ladder: Ladder) -> None:
    """Raise StoreNewer if the file's version is above ours, StoreOlder if it is below."""
    refuse_newer(path, found, ladder)
    if found != ladder.newest:
        raise older(path, found, ladder)


def refuse_newer(path: Path, found: object, ladder: Ladder) -> None:
    """Raise StoreNewer if the file's version is above ours."""
    assert isinstance(found, int), found
    if found > ladder.newest:
        raise StoreNewer(
            f"{path} was written by a newer release of inorder (schema version {found}; this release knows up to "
            f"{ladder.newest}). It was not changed: use that release, or another file.",
            path=str(path),
            version=found,
        )


def older(path: Path, found: object, ladder: Ladder) -> StoreOlder:
    """Return the error for a file whose version is below ours, with the remedy."""
    assert isinstance(found, int), found
    can_upgrade = ladder.can_upgrade(found)
    remedy = (
        f"Upgrade it: inorder upgrade --store {path}. A backup is made first"
        if can_upgrade
        else f"It is too old to upgrade: the oldest version that can be upgraded is {ladder.oldest}. Move its messages "
        "to another store with the release that created it"
    )
    return StoreOlder(
        f"{path} was written by an older release of inorder (schema version {found}; this release needs "
        f"{ladder.newest}). {remedy}.",
        path=str(path),
        version=found,
        upgradable=can_upgrade,
    )


def refuse_other_schema(path: Path, objects: Iterable[tuple[Any, ...]], schema: str) -> None:
    """Raise StoreForeign if the file has a table, index, trigger or view that the schema does not create, or lacks one.

    An added trigger would run in the middle of our statements. If two tables began on one page of the file, one would
    overwrite the other.

    Args:
        objects: the rows of OBJECTS.
        schema: the statements that create the expected objects.
    """
    strange = _strange(schema, tuple(objects))
    if strange:
        named = [f"{kind} {name!r}" for kind, name in sorted(strange)]
        raise StoreForeign(
            f"{path} is not a store as inorder creates it: {', '.join(named[:5])} is missing, was added or was "
            "changed. It was not changed: use a backup, or remove what was added.",
            path=str(path),
            objects=sorted({name for _, name in strange}),
        )


@functools.lru_cache(maxsize=8)  # a process that reopens stores compares no texts again
def _strange(schema: str, found: tuple[tuple[Any, ...], ...]) -> frozenset[tuple[str, str]]:
    """Type and name of each object that is missing, was added, or was changed."""
    differing = ((kind, name) for kind, name, *_ in (_as_told(found) - FIGURES) ^ _objects_of(schema))
    return frozenset(differing).union(_misplaced(found))


def _misplaced(objects: Iterable[tuple[Any, ...]]) -> Iterator[tuple[str, str]]:
    """Return tables and indexes that do not have a first page of their own, and triggers and views that have one."""
    taken: set[object] = {1}  # the schema's own
    for kind, name, *_, page in objects:
        has_page = kind in ("table", "index")
        if (page in taken) if has_page else page:
            yield kind, name
        if has_page:
            taken.add(page)


@functools.lru_cache(maxsize=8)
def _objects_of(schema: str) -> frozenset[tuple[str, str, str, str]]:
    with contextlib.closing(apsw.Connection(":memory:")) as connection:
        connection.execute(schema).fetchall()
        return _as_told(connection.execute(OBJECTS))


def _as_told(objects: Iterable[tuple[Any, ...]]) -> frozenset[tuple[str, str, str, str]]:
    """Return type, name, table, and text without comments, in which releases may differ."""
    return frozenset((kind, name, table, _plain(text)) for kind, name, table, text, _ in objects)


@functools.lru_cache(maxsize=256)
def _plain(text: str) -> str:
    """Normalize a text as ALTER TABLE leaves it: SQLite puts a new column last, and a new name in quotes."""
    words = " ".join(re.sub(r"--[^\n]*", "", text).split())
    return re.sub(r" ?([(),]) ?", r"\1", re.sub(r'"(\w+)"', r"\1", words))


def _header(path: Path) -> bytes:
    with told_as_ours(path):
        return header_of(path)


def _application_id(header: bytes) -> int:
    return int.from_bytes(header[68:72], "big")


def _refuse_mounted(path: Path) -> None:
    with told_as_ours(path):
        mounts = MOUNTS.read_text(encoding="utf-8", errors="surrogateescape") if MOUNTS.exists() else ""
    kind = file_system(path, mounts)
    if any(folder == f"{path}/" and path.is_file() for folder, _ in _mounted(mounts)):
        raise _unfit(
            path,
            "this file alone is mounted here, and its log would lie elsewhere. Mount the folder that has the store and "
            "the files beside it.",
        )
    if kind in NETWORK_FILE_SYSTEMS:
        raise _unfit(
            path,
            f"it lies on a network file system ({kind}), and SQLite's write-ahead log needs memory that all its users "
            "share, on one host. Put the store on a local disk.",
            file_system=kind,
        )


def file_system(path: Path, mounts: str) -> str:
    """Return the kind of file system of a path, such as ext4 or nfs4; "" if unknown.

    Args:
        path: absolute, with all links resolved.
        mounts: the text of ``/proc/mounts``; of two mounts on one folder the later one counts.
    """
    within, nearest, kind = f"{path}/", 0, ""
    for folder, its_kind in _mounted(mounts):
        if len(folder) >= nearest and within.startswith(folder):
            nearest, kind = len(folder), its_kind
    return kind


@functools.lru_cache(maxsize=1)
def _mounted(mounts: str) -> Sequence[tuple[str, str]]:
    """Return the mounted folders, each with a slash at its end, and their file systems. Cached, as they rarely
    change.
    """
    lines = [line.split(" ") for line in mounts.splitlines()]
    return [(f"{_unescaped(fields[1]).rstrip('/')}/", fields[2]) for fields in lines if len(fields) > 2]


def _unescaped(field: str) -> str:
    return re.sub(r"\\([0-7]{3})", lambda found: chr(int(found[1], 8)), field)


def made(path: Path) -> int:
    """Create an empty file if there is none.

    Returns: the permissions for the files beside it.
    """
    try:
        with contextlib.suppress(FileExistsError):
            os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, MODE_OF_NEW))
        return path.stat().st_mode & 0o666
    except OSError as error:
        raise opening_error(path, error) from error
