"""Whether this release can open a file; to be removed, with its skips, as soon as it can."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest

import inorder


def files_are_supported() -> bool:
    with tempfile.TemporaryDirectory() as folder:
        try:
            inorder.connect(str(Path(folder) / "probe.db")).close()
        except inorder.ArgumentError:
            return False
    return True


needs_files = pytest.mark.skipif(
    not files_are_supported(), reason="inorder.connect does not open files yet: nothing to kill, cut or share"
)
