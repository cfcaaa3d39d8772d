"""The listing of a folder: its files, their order, and reports of skipped ones."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from inorder import ArgumentError
from inorder.formats import FileError, UnsafePath, folder
from inorder.formats.paths import open_file

FILES = ["a-b.py", "a.py", "a/b.py", "a/b/c.txt", "b.txt", "B.txt", "docs/x.md", "ä.txt", "z[1].txt"]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    top = tmp_path / "in"
    for name in FILES:
        (top / name).parent.mkdir(parents=True, exist_ok=True)
        (top / name).write_bytes(b"x")
    return top


def test_every_file_is_listed_in_the_order_of_the_bytes_of_its_path(root: Path) -> None:
    found = list(folder(root))
    assert sorted(found) == sorted(FILES)
    assert found == sorted(found, key=os.fsencode)
    assert found[:4] == ["B.txt", "a-b.py", "a.py", "a/b.py"]


@pytest.mark.parametrize(
    ("patterns", "exclude", "expected"),
    [
        (["*"], [], ["B.txt", "a-b.py", "a.py", "b.txt", "z[1].txt", "ä.txt"]),
        (["**/*.py"], [], ["a-b.py", "a.py", "a/b.py"]),
        (["a/**"], [], ["a/b.py", "a/b/c.txt"]),
        (["?.txt"], [], ["B.txt", "b.txt", "ä.txt"]),
        (["[!a-b].*"], [], ["B.txt", "ä.txt"]),
        (["z[[]1].txt"], [], ["z[1].txt"]),
        (["**"], ["a", "*.txt"], ["a-b.py", "a.py", "docs/x.md"]),
        (["**"], ["a/b"], ["B.txt", "a-b.py", "a.py", "a/b.py", "b.txt", "docs/x.md", "z[1].txt", "ä.txt"]),
    ],
)
def test_patterns_select_files(root: Path, patterns: list[str], exclude: list[str], expected: list[str]) -> None:
    assert list(folder(root, patterns, exclude=exclude)) == expected


@pytest.mark.parametrize("patterns", ["**", [""], ["/x"], [7], ["[z-a]"]])
def test_bad_patterns_are_refused(root: Path, patterns: list[str]) -> None:
    with pytest.raises(ArgumentError, match="patterns"):
        list(folder(root, patterns))


def test_links_and_pipes_are_reported_and_not_followed(root: Path) -> None:
    (root / "link").symlink_to(root / "a.py")
    (root / "out").symlink_to(root.parent)
    os.mkfifo(root / "pipe")
    skipped: list[tuple[str, str]] = []
    assert sorted(folder(root, skipped=lambda path, why: skipped.append((path, why)))) == sorted(FILES)
    assert skipped == [("link", "a symbolic link"), ("out", "a symbolic link"), ("pipe", "not a regular file")]


def test_a_name_that_is_not_utf8_is_kept(root: Path) -> None:
    name = b"caf\xe9"
    with open(os.path.join(os.fsencode(root), name), "wb") as file:  # noqa: PTH118, PTH123
        file.write(b"x")
    assert "caf\udce9" in list(folder(root))
    os.close(open_file(root, "caf\udce9"))
    assert "caf\udce9" in list(folder(os.fsencode(root)))


def test_a_file_that_cannot_be_read_is_named(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "access", lambda path, mode: not os.fsencode(path).endswith(b"/b.txt"))
    with pytest.raises(FileError, match=r"'b\.txt' cannot be read") as raised:
        list(folder(root))
    assert raised.value.path == "b.txt"


@pytest.mark.parametrize(
    ("path", "error", "word"),
    [
        ("link", UnsafePath, "symbolic link"),
        ("up/x", UnsafePath, "its part 'up' is a link"),
        ("a.py/x", UnsafePath, "not a folder"),
        ("pipe", FileError, "not a regular file"),
        ("a", FileError, "not a regular file"),
        ("nothing", FileError, "No such file"),
        ("../x", UnsafePath, "must be relative"),
    ],
)
def test_only_a_regular_file_below_the_folder_is_opened(
    root: Path, path: str, error: type[Exception], word: str
) -> None:
    (root / "link").symlink_to(root / "a.py")
    (root / "up").symlink_to(root.parent)
    os.mkfifo(root / "pipe")
    with pytest.raises(error, match=word):
        open_file(root, path)
