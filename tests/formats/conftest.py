"""A folder of files to read, and an empty one to write to."""

from __future__ import annotations

from pathlib import Path

import pytest

LINES = b"one\ntwo\nthree\n"


@pytest.fixture
def source(tmp_path: Path) -> Path:
    (tmp_path / "in/sub").mkdir(parents=True)
    (tmp_path / "in/sub/a.txt").write_bytes(LINES)
    (tmp_path / "in/b.bin").write_bytes(bytes(range(256)) * 40)
    (tmp_path / "in/empty").write_bytes(b"")
    return tmp_path / "in"


@pytest.fixture
def target(tmp_path: Path) -> Path:
    (tmp_path / "out").mkdir()
    return tmp_path / "out"
