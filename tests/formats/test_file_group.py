"""A file becomes records and a file again; every kind of damage is refused, and leaves nothing behind."""

from __future__ import annotations

import errno
import hashlib
import itertools
import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.formats.conftest import LINES
from tests.formats.test_splitting import DATA, RULES

import inorder
from inorder import ArgumentError, Flags
from inorder.formats import (
    FileChanged,
    FileError,
    FileExists,
    FormatError,
    Manifest,
    ManifestError,
    Rebuilder,
    RebuildError,
    Rule,
    UnsafePath,
    describe,
    rebuild,
    records,
)
from inorder.formats.file_group import EXISTING
from inorder.formats.manifest import make, parse


def bodies(source: Path, path: str = "sub/a.txt", rule: str = r"delimiter:\n") -> list[bytes]:
    return [record.body for record in records(source, path, rule)]


def everything(target: Path) -> list[str]:
    return sorted(str(path.relative_to(target)) for path in target.rglob("*") if not path.is_dir())


def manifest(**changes: Any) -> Manifest:
    values = {"path": "a", "size": 3, "mode": 0o600, "sha256": hashlib.sha256(b"abc").hexdigest()}
    return Manifest(**{**values, "rule": "size:1", "messages": 3, **changes})


# ---- records


def test_the_manifest_comes_first_and_the_last_record_says_so(source: Path) -> None:
    (source / "sub/a.txt").chmod(0o640)
    head, *rest = records(source, "sub/a.txt", r"delimiter:\n")
    assert parse(head.body) == describe(source, "sub/a.txt", r"delimiter:\n")
    assert parse(head.body) == Manifest(
        path="sub/a.txt",
        size=14,
        mode=0o640,
        sha256=hashlib.sha256(LINES).hexdigest(),
        rule=r"delimiter:\n",
        messages=3,
    )
    assert [(one.sequence, one.body, one.is_last, one.flags) for one in rest] == [
        (2, b"one\n", False, Flags.IN_GROUP),
        (3, b"two\n", False, Flags.IN_GROUP),
        (4, b"three\n", True, Flags.IN_GROUP | Flags.LAST_IN_GROUP),
    ]
    assert (head.sequence, head.is_last, head.flags) == (1, False, Flags.IN_GROUP)


@pytest.mark.parametrize("rule", [r"delimiter:\n", "size:3", "regex:x", "whole"])
def test_an_empty_file_is_its_manifest_alone(source: Path, rule: str) -> None:
    (only,) = records(source, "empty", rule)
    assert (only.is_last, only.flags) == (True, Flags.IN_GROUP | Flags.LAST_IN_GROUP)
    assert parse(only.body).messages == 0


def test_a_whole_file_is_one_logical_message_in_segments(source: Path) -> None:
    head, *rest = records(source, "sub/a.txt", "whole", chunk=6)
    assert parse(head.body).messages == 1
    group, segment = Flags.IN_GROUP | Flags.LAST_IN_GROUP, Flags.SEGMENT
    assert [(one.sequence, one.offset, one.body, one.is_last, one.flags) for one in rest] == [
        (2, 0, LINES[:6], False, group | segment),
        (2, 6, LINES[6:12], False, group | segment),
        (2, 12, LINES[12:], True, group | segment | Flags.LAST_SEGMENT),
    ]
    (_, only) = records(source, "sub/a.txt", "whole")
    assert (only.offset, only.flags) == (0, group)


def test_a_file_that_is_too_long_for_one_message_is_refused_at_once(source: Path) -> None:
    with open(source / "huge", "wb") as file:  # noqa: PTH123
        file.truncate(1_000_000_000)  # takes no space
    with pytest.raises(ArgumentError, match="rule must be one that splits"):
        next(records(source, "huge", "whole"))


@pytest.mark.parametrize("change", [b"one\ntwO\nthree\n", b"one\ntwo\nthree\nfour\n", b"one\ntwo\n"])
@pytest.mark.parametrize("rule", [r"delimiter:\n", "size:4", "whole"])
def test_a_file_that_changes_while_it_is_read_never_has_a_last_record(source: Path, change: bytes, rule: str) -> None:
    reading = records(source, "sub/a.txt", rule, chunk=4)
    found = [next(reading)]
    (source / "sub/a.txt").write_bytes(change)
    with pytest.raises(FileChanged, match=r"'sub/a\.txt' changed") as raised:
        found.extend(reading)
    assert raised.value.path == "sub/a.txt"
    assert not any(record.is_last for record in found)


def test_a_record_that_is_too_long_is_refused_before_anything_is_returned(source: Path) -> None:
    with pytest.raises(FormatError, match="longer than 5 bytes"):
        next(records(source, "sub/a.txt", r"delimiter:\n", record_max=5))


def test_bad_arguments_are_refused_at_once(source: Path) -> None:
    with pytest.raises(ArgumentError, match="rule"):
        records(source, "sub/a.txt", "lines")
    with pytest.raises(FileError, match="'nothing'"):
        next(records(source, "nothing", "whole"))


# ---- files from records


@given(data=DATA, rule=RULES, chunk=st.integers(1, 70))
def test_a_file_is_rebuilt_byte_for_byte(
    tmp_path_factory: pytest.TempPathFactory, data: bytes, rule: Rule, chunk: int
) -> None:
    folder = tmp_path_factory.getbasetemp() / "round-trip"
    (folder / "in").mkdir(parents=True, exist_ok=True)
    (folder / "out").mkdir(exist_ok=True)
    (folder / "in/file").write_bytes(data)
    head, *rest = records(folder / "in", "file", rule, chunk=chunk)
    with Rebuilder(parse(head.body), folder / "out", existing="replace", sync=False) as file:
        for record in rest:
            file.add(record.body, begins=not record.offset)
        path = file.finish()
    assert path == folder / "out/file"
    assert path.read_bytes() == data
    assert everything(folder / "out") == ["file"]


def test_the_path_and_the_mode_are_restored(source: Path, target: Path) -> None:
    (source / "sub/a.txt").chmod(0o751)
    path = rebuild(bodies(source), target)
    assert path == target / "sub/a.txt"
    assert path.read_bytes() == LINES
    assert path.stat().st_mode & 0o7777 == 0o751


def test_a_name_that_is_not_utf8_is_restored(source: Path, target: Path) -> None:
    (source / os.fsdecode(b"caf\xe9")).write_bytes(LINES)
    rebuild(bodies(source, "caf\udce9"), target)
    assert [os.fsencode(path.name) for path in target.iterdir()] == [b"caf\xe9"]


Damage = Callable[[list[bytes]], list[bytes]]


@pytest.mark.parametrize(
    ("damage", "error", "word"),
    [
        (lambda all_: all_[:-1], RebuildError, "3 messages"),
        (lambda all_: [all_[0], *all_[2:]], RebuildError, "3 messages"),
        (lambda all_: [*all_, b""], RebuildError, "in 4"),
        (lambda all_: [all_[0], all_[2], all_[1], all_[3]], RebuildError, "SHA-256"),
        (lambda all_: [all_[0], all_[1] + all_[2], all_[3]], RebuildError, "2, or more"),
        (lambda all_: all_[1:], ManifestError, "not JSON"),
        (lambda all_: [], RebuildError, "no manifest"),
        (lambda all_: [all_[0].replace(b"sub/a.txt", b"../a.txt_"), *all_[1:]], UnsafePath, "relative"),
    ],
)
def test_a_damaged_group_is_refused_and_leaves_no_file(
    source: Path, target: Path, damage: Damage, error: type[Exception], word: str
) -> None:
    with pytest.raises(error, match=word):
        rebuild(damage(bodies(source)), target)
    assert everything(target) == []
    assert everything(target.parent) == ["in/b.bin", "in/empty", "in/sub/a.txt"]


def test_a_second_file_at_the_path_is_refused(source: Path, target: Path) -> None:
    rebuild(bodies(source), target)
    (source / "sub/a.txt").write_bytes(b"other")
    with pytest.raises(FileExists, match="existing='replace'") as raised:
        rebuild(bodies(source), target)
    assert raised.value.path == "sub/a.txt"
    with pytest.raises(FileExists, match="with other bytes"):
        rebuild(bodies(source), target, existing="same")
    assert (target / "sub/a.txt").read_bytes() == LINES
    rebuild(bodies(source), target, existing="replace")
    assert (target / "sub/a.txt").read_bytes() == b"other"
    rebuild(bodies(source), target, existing="same")
    assert everything(target) == ["sub/a.txt"]


def test_a_file_that_appears_meanwhile_is_not_lost(source: Path, target: Path) -> None:
    head, *rest = bodies(source)
    with Rebuilder(parse(head), target) as file:
        for body in rest:
            file.add(body)
        (target / "sub/a.txt").write_bytes(b"mine")
        with pytest.raises(FileExists):
            file.finish()
    assert (target / "sub/a.txt").read_bytes() == b"mine"
    assert everything(target) == ["sub/a.txt"]


def test_a_file_system_without_hard_links_is_supported(
    source: Path, target: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_links(*_: object, **__: object) -> None:
        raise OSError(errno.EOPNOTSUPP, "no links")

    monkeypatch.setattr(os, "link", no_links)
    rebuild(bodies(source), target)
    rebuild(bodies(source), target, existing="same")
    assert (target / "sub/a.txt").read_bytes() == LINES
    assert everything(target) == ["sub/a.txt"]


@pytest.mark.parametrize("existing", ["refuse", "same"])
def test_a_link_at_the_path_counts_as_an_existing_file(source: Path, target: Path, existing: Any) -> None:
    (target.parent / "victim").write_bytes(LINES)
    (target / "sub").mkdir()
    (target / "sub/a.txt").symlink_to(target.parent / "victim")
    with pytest.raises(FileExists):
        rebuild(bodies(source), target, existing=existing)
    rebuild(bodies(source), target, existing="replace")
    assert not (target / "sub/a.txt").is_symlink()
    assert (target.parent / "victim").read_bytes() == LINES


def test_a_link_among_the_folders_of_a_path_is_not_followed(source: Path, target: Path) -> None:
    elsewhere = target.parent / "elsewhere"
    elsewhere.mkdir()
    (target / "sub").symlink_to(elsewhere)
    with pytest.raises(UnsafePath, match="its part 'sub' is a link"):
        rebuild(bodies(source), target)
    assert everything(elsewhere) == []


def test_a_file_and_a_folder_of_one_name_are_refused(target: Path) -> None:
    rebuild([make(manifest(path="a")), b"a", b"b", b"c"], target)
    with pytest.raises(UnsafePath, match="is a link, or not a folder"):
        rebuild([make(manifest(path="a/b")), b"a", b"b", b"c"], target)
    (target / "c").mkdir()
    with pytest.raises(FileError, match="'c'"):
        rebuild([make(manifest(path="c")), b"a", b"b", b"c"], target, existing="replace")
    assert everything(target) == ["a"]


BESIDE = ("", "-lock", "-wal", "-shm", "-journal")
MINE = "orders.db"


def as_file(path: str) -> list[bytes]:
    """The messages of a file of three records, at a path that somebody else chose."""
    return [make(manifest(path=path)), b"a", b"b", b"c"]


@pytest.fixture
def store(target: Path) -> Path:
    """A store with a message in the folder to which files are written; no program has it open."""
    with inorder.connect(target / MINE) as qm:
        qm.create_queue("Q")
        qm.put("Q", b"kept")
    return target / MINE


def is_whole(store: Path) -> bool:
    with inorder.connect(store) as qm:
        return not qm.admin.check() and [message.body for message in qm.browse("Q")] == [b"kept"]


@pytest.mark.parametrize("path", ["{}", "{}/a"], ids=["as a file", "as a folder"])
def test_a_path_that_would_be_a_store_or_a_file_beside_one_is_refused(store: Path, target: Path, path: str) -> None:
    before = everything(target)
    for suffix, existing in itertools.product(BESIDE, EXISTING):
        with pytest.raises(FormatError, match=r"is a store|not a folder|already exists"):
            rebuild(as_file(path.format(f"{MINE}{suffix}")), target, existing=existing)
    assert everything(target) == before
    assert sorted(target.iterdir()) == sorted(target / one for one in before), "a folder was made"
    assert is_whole(store)


@pytest.mark.parametrize("existing", EXISTING)
def test_names_like_those_of_store_files_are_allowed_beside_a_file_that_is_not_a_store(
    target: Path, existing: Any
) -> None:
    (target / MINE).write_bytes(b"notes")
    for suffix in BESIDE[1:]:
        rebuild(as_file(f"{MINE}{suffix}"), target, existing=existing)
    assert everything(target) == sorted(f"{MINE}{suffix}" for suffix in BESIDE)


def test_a_hard_link_to_a_file_of_an_open_store_is_refused(store: Path, target: Path) -> None:
    with inorder.connect(store) as qm:
        qm.put("Q", b"now")
        for suffix in BESIDE[:4]:
            (target / "other").hardlink_to(f"{store}{suffix}")
            for existing in ("same", "replace"):
                with pytest.raises(UnsafePath, match="'other' is a store, or the name of a store's other file"):
                    rebuild(as_file("other"), target, existing=existing)
            with pytest.raises(FileError, match="'other' belongs to a store that is open in this process"):
                list(records(target, "other", "whole"))
            (target / "other").unlink()
        assert qm.get("Q").body == b"kept"


@pytest.mark.parametrize("kind", [stat.S_IFIFO, stat.S_IFCHR, stat.S_IFSOCK, stat.S_IFDIR])
def test_anything_but_a_regular_file_is_never_replaced_nor_opened(target: Path, kind: int) -> None:
    try:
        (target / "a").mkdir() if kind == stat.S_IFDIR else os.mknod(target / "a", kind | 0o600, os.makedev(1, 3))
    except PermissionError:
        pytest.skip("this user makes no such file")
    before = (target / "a").lstat()
    empty = make(manifest(path="a", size=0, messages=0, sha256=hashlib.sha256(b"").hexdigest()))
    # A pipe that nobody writes into reads like an empty file.
    for bodies_, existing in itertools.product((as_file("a"), [empty]), EXISTING):
        with pytest.raises(FileError, match=r"'a' (already )?exists"):
            rebuild(bodies_, target, existing=existing)
    after = (target / "a").lstat()
    assert (after.st_ino, after.st_mode) == (before.st_ino, before.st_mode)
    assert everything(target) in ([], ["a"])


def test_a_missing_target_folder_is_not_created(source: Path, tmp_path: Path) -> None:
    with pytest.raises(FileError, match="nowhere"):
        rebuild(bodies(source), tmp_path / "nowhere")


def test_a_full_disk_is_reported_with_the_path(source: Path, target: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    (target / "sub").mkdir()
    with pytest.raises(FileError, match=r"'sub/a\.txt': No space left"):
        rebuild(bodies(source), target)
    assert everything(target) == []


def test_the_argument_existing_must_be_refuse_same_or_replace(target: Path) -> None:
    with pytest.raises(ArgumentError, match="one of: refuse, same, replace"):
        Rebuilder(manifest(), target, existing="yes")  # type: ignore[arg-type]
